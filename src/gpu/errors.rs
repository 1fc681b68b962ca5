//! wgpu's error scopes and callbacks as [`Error`] values.
//!
//! An error that no scope catches panics by default, and scopes belong to a thread:
//! so every call that can fail runs inside [`scoped`], and what still slips out is
//! kept by the device's handler for the next submission to report.

use super::ending;
use crate::error::{Error, Result};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Errors that reached no scope, and the loss of the device.
#[derive(Debug, Default)]
pub struct Faults {
    lost: Mutex<Option<Error>>,
    /// Whether `lost` holds something, so that a check takes no lock.
    is_lost: AtomicBool,
    uncaptured: Mutex<Option<Error>>,
}

impl Faults {
    /// Routes the device's callbacks here.
    pub fn install(device: &wgpu::Device) -> Arc<Self> {
        let faults = Arc::new(Faults::default());
        let weak = Arc::downgrade(&faults);
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            log::error!("{error}");
            if let Some(faults) = weak.upgrade() {
                faults.uncaptured.lock().get_or_insert(translate("a command", error));
            }
        }));
        let weak = Arc::downgrade(&faults);
        device.set_device_lost_callback(move |reason, message| {
            // Dropping the device is not a fault.
            if reason != wgpu::DeviceLostReason::Destroyed
                && let Some(faults) = weak.upgrade()
            {
                log::error!("device lost: {message}");
                faults.lose(message);
            }
        });
        faults
    }

    /// Records that the device is gone, for good.
    pub fn lose(&self, message: String) {
        self.lost.lock().get_or_insert(Error::DeviceLost(message));
        self.is_lost.store(true, Ordering::Release);
    }

    /// An error once the device is gone.
    pub fn check(&self) -> Result<()> {
        if !self.is_lost.load(Ordering::Acquire) {
            return Ok(());
        }
        self.lost.lock().clone().map_or(Ok(()), Err)
    }

    /// The error that no scope caught since the last call.
    pub fn take_uncaptured(&self) -> Option<Error> {
        self.uncaptured.lock().take()
    }
}

/// Runs `f` and returns what wgpu had against it.
pub fn scoped<T>(
    device: &wgpu::Device,
    operation: &'static str,
    f: impl FnOnce() -> T,
) -> Result<T> {
    let internal = device.push_error_scope(wgpu::ErrorFilter::Internal);
    let memory = device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
    let validation = device.push_error_scope(wgpu::ErrorFilter::Validation);
    let value = f();
    ending::mark();
    let mut first = None;
    for scope in [validation, memory, internal] {
        if let Some(error) = pollster::block_on(scope.pop()) {
            first.get_or_insert(error);
        }
    }
    match first {
        None => Ok(value),
        Some(error) => Err(translate(operation, error)),
    }
}

fn translate(operation: &'static str, error: wgpu::Error) -> Error {
    match error {
        wgpu::Error::OutOfMemory { source } => Error::OutOfMemory {
            requested: 0,
            reason: format!("during {operation} the driver had no memory left ({source})"),
        },
        wgpu::Error::Validation { description, .. } => {
            Error::Validation { operation, message: description }
        }
        wgpu::Error::Internal { description, .. } => {
            Error::Validation { operation, message: description }
        }
    }
}
