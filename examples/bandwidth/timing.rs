//! How long an operation takes when it is queued again and again.

use aoti_wgpu::error::Result;
use aoti_wgpu::runtime::Runtime;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// How long an operation runs before it is timed.
const WARM_UP: Duration = Duration::from_millis(100);

/// Seconds of one operation, by the GPU's clock where it has one and by the host's.
#[derive(Clone, Copy)]
pub struct Seconds {
    pub gpu: Option<f64>,
    pub wall: f64,
}

impl Seconds {
    /// By the better clock there is.
    pub fn best(&self) -> f64 {
        self.gpu.unwrap_or(self.wall)
    }
}

/// The best of five batches, after a warm-up. The operation is given its number, counted
/// over all of them.
pub fn best_of_five(
    rt: &Runtime,
    batch: u32,
    operation: impl Fn(usize) -> Result<()>,
) -> Result<Seconds> {
    let number = Cell::new(0);
    let next = || operation(number.replace(number.get() + 1));
    // Until the pipeline is there and the device has left its idle clock.
    let warm = Instant::now();
    while warm.elapsed() < WARM_UP {
        next()?;
        rt.synchronize()?;
    }
    let (mut wall, mut gpu) = (f64::INFINITY, None::<f64>);
    for _ in 0..5 {
        let started = Instant::now();
        let seconds = rt.gpu_seconds(|| (0..batch).try_for_each(|_| next()))?;
        wall = wall.min(started.elapsed().as_secs_f64());
        if let Some(seconds) = seconds {
            gpu = Some(gpu.map_or(seconds, |best| best.min(seconds)));
        }
    }
    let batch = f64::from(batch);
    Ok(Seconds { gpu: gpu.map(|seconds| seconds / batch), wall: wall / batch })
}
