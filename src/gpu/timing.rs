//! Time between two points of the command stream, by the GPU's own clock.

use super::errors::scoped;
use super::{Gpu, Stream};
use crate::error::{Error, Result};
use std::sync::mpsc;

/// Two timestamps and the buffers that bring them to the host.
#[derive(Debug)]
pub struct Timer {
    queries: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    readable: wgpu::Buffer,
}

/// Bytes of two timestamps.
const BYTES: u64 = 16;

impl Timer {
    /// A timer; `None` where the adapter has no timestamps outside passes.
    ///
    /// # Errors
    /// What wgpu has against it.
    pub fn new(gpu: &Gpu) -> Result<Option<Self>> {
        let needed =
            wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS;
        if !gpu.features.contains(needed) {
            return Ok(None);
        }
        scoped(&gpu.device, "making a timer", || {
            let buffer = |usage| {
                gpu.device.create_buffer(&wgpu::BufferDescriptor {
                    label: None,
                    size: BYTES,
                    usage: usage | wgpu::BufferUsages::COPY_DST,
                    mapped_at_creation: false,
                })
            };
            Some(Timer {
                queries: gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
                    label: None,
                    ty: wgpu::QueryType::Timestamp,
                    count: 2,
                }),
                resolved: buffer(wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC),
                readable: buffer(wgpu::BufferUsages::MAP_READ),
            })
        })
    }

    /// Records the first timestamp.
    pub fn start(&self, gpu: &Gpu, stream: &mut Stream) {
        stream.encoder(gpu).write_timestamp(&self.queries, 0);
    }

    /// Records the second timestamp and its way to the host.
    pub fn stop(&self, gpu: &Gpu, stream: &mut Stream) {
        let encoder = stream.encoder(gpu);
        encoder.write_timestamp(&self.queries, 1);
        encoder.resolve_query_set(&self.queries, 0..2, &self.resolved, 0);
        encoder.copy_buffer_to_buffer(&self.resolved, 0, &self.readable, 0, BYTES);
    }

    /// Seconds between the two, once the work that records them is complete.
    ///
    /// # Errors
    /// [`Error::Internal`] where the timestamps cannot be read.
    pub fn seconds(&self, gpu: &Gpu) -> Result<f64> {
        let failed = |what: String| Error::Internal(format!("reading timestamps: {what}"));
        let (send, receive) = mpsc::channel();
        self.readable.map_async(wgpu::MapMode::Read, .., move |result| {
            let _ = send.send(result);
        });
        gpu.device
            .poll(wgpu::PollType::wait_indefinitely())
            .map_err(|error| failed(error.to_string()))?;
        receive
            .try_recv()
            .map_err(|error| failed(error.to_string()))?
            .map_err(|error| failed(error.to_string()))?;
        let ticks = {
            let bytes =
                self.readable.get_mapped_range(..).map_err(|error| failed(error.to_string()))?;
            let mut words = bytes.chunks_exact(8).map(|chunk| {
                <[u8; 8]>::try_from(chunk).map(u64::from_le_bytes).unwrap_or_default()
            });
            let first = words.next().unwrap_or_default();
            words.next().unwrap_or_default().saturating_sub(first)
        };
        self.readable.unmap();
        Ok(ticks as f64 * f64::from(gpu.queue.get_timestamp_period()) * 1e-9)
    }
}
