//! The command stream: records dispatches and copies in order, submits them in
//! batches, and knows which submission last used what.
//!
//! Submissions are numbered from 1; the one being recorded has the number
//! [`Stream::current`]. A failed submission poisons everything that it should have
//! written (see [`Usage`]): wgpu rejects a command buffer whole, so none of its work
//! took place.

use super::errors::scoped;
use super::faults::{self, Submission};
use super::{Buffer, BufferKind, Gpu, Pipeline, Usage};
use crate::error::{Error, Result, panic_text};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A window of a buffer at a binding of a dispatch, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Binding<'a> {
    /// The buffer.
    pub buffer: &'a Arc<Buffer>,
    /// Where the window starts; a multiple of the device's offset alignment.
    pub offset: u64,
    /// The window's length; a multiple of 4, not 0.
    pub size: u64,
    /// Whether the kernel writes through it.
    pub writes: bool,
}

/// How much went through a stream.
#[derive(Debug, Default)]
pub struct Counters {
    /// Dispatches recorded.
    pub dispatches: AtomicU64,
    /// Submissions made.
    pub submits: AtomicU64,
}

type GroupKey = (u64, SmallVec<[(u64, u64, u64); 4]>);

/// The commands that are being recorded, and those under way.
pub struct Stream {
    encoder: Option<wgpu::CommandEncoder>,
    pass: Option<wgpu::ComputePass<'static>>,
    /// The pipeline and group that the open pass has set.
    bound: Option<(u64, GroupKey)>,
    recorded: u32,
    interval: u32,
    current: u64,
    under_way: VecDeque<(u64, wgpu::SubmissionIndex)>,
    written: Vec<(Arc<Usage>, u64)>,
    /// Mapped buffers that the recorded work writes: made visible to the host at its end.
    mapped: Vec<Arc<Buffer>>,
    groups: FxHashMap<GroupKey, wgpu::BindGroup>,
    /// The first failure that no wait has reported.
    failure: Option<Error>,
    counters: Arc<Counters>,
}

/// More bind groups than this and the cache starts anew: a bound on what it keeps alive.
const MAX_GROUPS: usize = 4096;

impl Stream {
    /// An empty stream that submits after `interval` dispatches, or only at waits for 0.
    pub fn new(interval: u32) -> Self {
        Stream {
            encoder: None,
            pass: None,
            bound: None,
            recorded: 0,
            interval,
            current: 1,
            under_way: VecDeque::new(),
            written: Vec::new(),
            mapped: Vec::new(),
            groups: FxHashMap::default(),
            failure: None,
            counters: Arc::default(),
        }
    }

    /// The counters, which may be read without the stream.
    pub fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// The number of the submission being recorded.
    pub fn current(&self) -> u64 {
        self.current
    }

    /// Dispatches a submission from now on; 0 for no limit.
    pub fn set_interval(&mut self, interval: u32) {
        self.interval = interval;
    }

    /// Records one dispatch. `immediates` are the kernel's parameters.
    ///
    /// # Errors
    /// Those of the submission that a full batch causes, and a lost device.
    pub fn dispatch(
        &mut self,
        gpu: &Gpu,
        pipeline: &Arc<Pipeline>,
        bindings: &[Binding<'_>],
        immediates: &[u8],
        groups: [u32; 3],
    ) -> Result<()> {
        gpu.faults.check()?;
        let key: GroupKey =
            (pipeline.id, bindings.iter().map(|b| (b.buffer.id(), b.offset, b.size)).collect());
        if !self.groups.contains_key(&key) {
            let group = bind_group(gpu, pipeline, bindings)?;
            if self.groups.len() >= MAX_GROUPS {
                self.groups.clear();
            }
            self.groups.insert(key.clone(), group);
        }
        for binding in bindings {
            self.note(binding.buffer, binding.writes);
        }
        if self.pass.is_none() {
            let encoder = encoder_of(&mut self.encoder, gpu);
            let desc = wgpu::ComputePassDescriptor::default();
            self.pass = Some(encoder.begin_compute_pass(&desc).forget_lifetime());
            self.bound = None;
        }
        let Some(pass) = &mut self.pass else {
            return Err(Error::Internal("no compute pass is open".into()));
        };
        if self.bound.as_ref().is_none_or(|(id, _)| *id != pipeline.id) {
            pass.set_pipeline(&pipeline.raw);
        }
        if self.bound.as_ref().is_none_or(|(id, bound)| *id != pipeline.id || *bound != key) {
            pass.set_bind_group(0, self.groups.get(&key), &[]);
            self.bound = Some((pipeline.id, key));
        }
        if pipeline.immediate_bytes > 0 {
            let bytes = (pipeline.immediate_bytes as usize).min(immediates.len());
            pass.set_immediates(0, immediates.get(..bytes).unwrap_or_default());
        }
        let [x, y, z] = groups;
        pass.dispatch_workgroups(x, y, z);
        self.recorded += 1;
        self.counters.dispatches.fetch_add(1, Ordering::Relaxed);
        if self.interval != 0 && self.recorded >= self.interval { self.flush(gpu) } else { Ok(()) }
    }

    /// Records a copy of `bytes` (a multiple of 4, as are the offsets) between two buffers.
    ///
    /// # Errors
    /// A lost device.
    pub fn copy(
        &mut self,
        gpu: &Gpu,
        (src, src_offset): (&Arc<Buffer>, u64),
        (dst, dst_offset): (&Arc<Buffer>, u64),
        bytes: u64,
    ) -> Result<()> {
        gpu.faults.check()?;
        self.note(src, false);
        self.note(dst, true);
        let encoder = self.encoder(gpu);
        encoder.copy_buffer_to_buffer(src.raw(), src_offset, dst.raw(), dst_offset, bytes);
        Ok(())
    }

    /// The encoder, outside any pass.
    pub(super) fn encoder(&mut self, gpu: &Gpu) -> &mut wgpu::CommandEncoder {
        self.end_pass();
        encoder_of(&mut self.encoder, gpu)
    }

    /// Counts memory that has no buffer among what the recorded work writes.
    pub fn watch(&mut self, usage: &Arc<Usage>) {
        if usage.note(self.current, true) {
            self.written.push((usage.clone(), usage.generation()));
        }
    }

    fn note(&mut self, buffer: &Arc<Buffer>, writes: bool) {
        if buffer.usage().note(self.current, writes) {
            self.written.push((buffer.usage().clone(), buffer.usage().generation()));
            if buffer.kind() == BufferKind::Unified {
                self.mapped.push(buffer.clone());
            }
        }
    }

    fn end_pass(&mut self) {
        self.pass = None;
        self.bound = None;
    }

    /// Submits what is recorded.
    ///
    /// # Errors
    /// What wgpu has against it; everything that it should have written is poisoned then.
    pub fn flush(&mut self, gpu: &Gpu) -> Result<()> {
        self.end_pass();
        let Some(mut encoder) = self.encoder.take() else {
            self.destroy_buried(gpu);
            return Ok(());
        };
        let mapped = std::mem::take(&mut self.mapped);
        let submit = || {
            scoped(&gpu.device, "a submission", || {
                match faults::submission() {
                    Submission::Fine => {}
                    Submission::Refused => refuse(gpu, &mut encoder),
                    Submission::Lost => {
                        gpu.faults.lose("a fault on purpose".into());
                        // A lost device runs nothing any more; lavapipe crashes where one is
                        // destroyed while it does.
                        let _ = gpu.device.poll(wgpu::PollType::wait_indefinitely());
                        gpu.device.destroy();
                    }
                }
                // A barrier towards the host, so that a wait makes the writes visible.
                encoder.transition_resources(
                    mapped.iter().map(|buffer| wgpu::BufferTransition {
                        buffer: buffer.raw(),
                        state: wgpu::BufferUses::MAP_READ,
                    }),
                    std::iter::empty(),
                );
                gpu.queue.submit([encoder.finish()])
            })
        };
        // The commands are gone after a panic in wgpu as after an error, and what they should
        // have written is lost.
        let result = gpu.faults.check().and_then(|()| {
            catch_unwind(AssertUnwindSafe(submit)).unwrap_or_else(|payload| {
                let text = panic_text(payload);
                Err(Error::Internal(format!("a panic while commands were submitted: {text}")))
            })
        });
        let result = gpu.faults.check().and(result);
        let result = match (result, gpu.faults.take_uncaptured()) {
            (Ok(_), Some(error)) => Err(error),
            (result, _) => result,
        };
        let submission = self.current;
        self.current += 1;
        self.recorded = 0;
        match result {
            Ok(index) => {
                self.written.clear();
                self.under_way.push_back((submission, index));
                self.counters.submits.fetch_add(1, Ordering::Relaxed);
                let completed = gpu.completed.clone();
                gpu.queue.on_submitted_work_done(move || {
                    completed.fetch_max(submission, Ordering::AcqRel);
                });
                // Lets wgpu give back what finished submissions held.
                let _ = gpu.device.poll(wgpu::PollType::Poll);
                let done = gpu.completed();
                while self.under_way.front().is_some_and(|&(n, _)| n <= done) {
                    self.under_way.pop_front();
                }
                self.destroy_buried(gpu);
                Ok(())
            }
            Err(error) => {
                for (usage, generation) in self.written.drain(..) {
                    usage.poison(generation, &error);
                }
                self.failure.get_or_insert_with(|| error.clone());
                self.destroy_buried(gpu);
                Err(error)
            }
        }
    }

    /// Frees the buffers that the pool gave up. Only right after a submission: nothing
    /// that is recorded names them then.
    fn destroy_buried(&mut self, gpu: &Gpu) {
        let buried = std::mem::take(&mut *gpu.graveyard.lock());
        if buried.is_empty() {
            return;
        }
        let ids: rustc_hash::FxHashSet<u64> = buried.iter().map(|b| b.id()).collect();
        self.groups.retain(|(_, bindings), _| !bindings.iter().any(|(id, ..)| ids.contains(id)));
        for buffer in buried {
            buffer.raw().destroy();
        }
    }

    /// What to wait for so that `submission` is complete; submits it first where it is
    /// still being recorded. `None` where it is complete already, or failed: what it
    /// should have written says so itself, and nothing else is the waiter's concern.
    ///
    /// # Errors
    /// A lost device.
    pub fn reach(&mut self, gpu: &Gpu, submission: u64) -> Result<Option<wgpu::SubmissionIndex>> {
        if submission >= self.current {
            let _ = self.flush(gpu);
            gpu.faults.check()?;
        }
        if submission <= gpu.completed() {
            return Ok(None);
        }
        let later = self.under_way.iter().find(|&&(n, _)| n >= submission);
        Ok(later.or(self.under_way.back()).map(|(_, index)| index.clone()))
    }

    /// The first failure since the last call, for a wait to report.
    pub fn take_failure(&mut self) -> Option<Error> {
        self.failure.take()
    }
}

impl Gpu {
    /// Blocks until the submission of this index is complete.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn wait(&self, index: wgpu::SubmissionIndex) -> Result<()> {
        let wait = wgpu::PollType::Wait { submission_index: Some(index), timeout: None };
        match self.device.poll(wait) {
            Ok(_) => self.faults.check(),
            Err(error) => {
                self.faults.check()?;
                Err(Error::DeviceLost(error.to_string()))
            }
        }
    }
}

/// Records a copy that wgpu refuses.
fn refuse(gpu: &Gpu, encoder: &mut wgpu::CommandEncoder) {
    let usage = wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    let desc = wgpu::BufferDescriptor { label: None, size: 16, usage, mapped_at_creation: false };
    let buffer = gpu.device.create_buffer(&desc);
    encoder.copy_buffer_to_buffer(&buffer, 1, &buffer, 0, 64);
}

fn encoder_of<'a>(
    encoder: &'a mut Option<wgpu::CommandEncoder>,
    gpu: &Gpu,
) -> &'a mut wgpu::CommandEncoder {
    encoder.get_or_insert_with(|| {
        gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: None })
    })
}

fn bind_group(gpu: &Gpu, pipeline: &Pipeline, bindings: &[Binding<'_>]) -> Result<wgpu::BindGroup> {
    if bindings.len() != pipeline.writable.len() {
        return Err(Error::Internal(format!(
            "a kernel with {} bindings was given {}",
            pipeline.writable.len(),
            bindings.len()
        )));
    }
    let entries: SmallVec<[_; 4]> = (0u32..)
        .zip(bindings)
        .map(|(binding, b)| wgpu::BindGroupEntry {
            binding,
            resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                buffer: b.buffer.raw(),
                offset: b.offset,
                size: std::num::NonZeroU64::new(b.size),
            }),
        })
        .collect();
    scoped(&gpu.device, "binding buffers", || {
        gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &pipeline.layout,
            entries: &entries,
        })
    })
}
