//! Host-visible buffers that data passes through on its way to and from device memory.

use crate::error::Result;
use crate::gpu::{Buffer, BufferKind, Gpu};
use std::sync::Arc;

/// Idle staging buffers, kept for the next transfer.
#[derive(Debug, Default)]
pub struct Staging {
    idle: Vec<Arc<Buffer>>,
}

/// Transfers are cut into pieces of at most this many bytes.
pub const PIECE: u64 = 64 << 20;

/// Bytes of idle staging buffers that are kept.
const KEPT: u64 = 4 * PIECE;

impl Staging {
    /// A buffer of at least `bytes` that no GPU work uses.
    ///
    /// # Errors
    /// As [`Buffer::new`].
    pub fn take(&mut self, gpu: &Gpu, bytes: u64, kind: BufferKind) -> Result<Arc<Buffer>> {
        let done = gpu.completed();
        let best = self
            .idle
            .iter()
            .enumerate()
            .filter(|(_, b)| b.kind() == kind && b.size() >= bytes && b.usage().last_use() <= done)
            .min_by_key(|(_, b)| b.size())
            .map(|(i, _)| i);
        match best {
            Some(i) => Ok(self.idle.swap_remove(i)),
            None => Ok(Arc::new(Buffer::new(gpu, bytes.next_power_of_two().max(64 << 10), kind)?)),
        }
    }

    /// Takes a buffer back; recorded work may still use it.
    pub fn give(&mut self, gpu: &Gpu, buffer: Arc<Buffer>) {
        self.idle.push(buffer);
        let mut kept: u64 = self.idle.iter().map(|b| b.size()).sum();
        while kept > KEPT && self.idle.len() > 1 {
            let oldest = self.idle.remove(0);
            kept -= oldest.size();
            gpu.bury(oldest);
        }
    }

    /// Forgets the idle buffers; those that recorded work uses go when it is over.
    pub fn clear(&mut self) {
        self.idle.clear();
    }
}
