//! Handles of shader libraries and kernel functions.
//!
//! A handle is the address of two zeroed words that belong to no other handle: taken for
//! an ETensor by mistake it has a null `impl_` and is refused, as a tensor is here.
//! Words of ended handles are used again, the longest ended first.

use crate::error::{Error, Result};
use crate::runtime::{KernelFunction, KernelLibrary};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

/// What a library handle points to, as C sees it.
#[repr(C)]
pub struct AOTIMetalShaderLibraryOpaque {
    _private: [u8; 0],
}

/// What a function handle points to, as C sees it.
#[repr(C)]
pub struct AOTIMetalKernelFunctionOpaque {
    _private: [u8; 0],
}

/// A shader library, as in PyTorch's `shim_mps.h`.
pub type AOTIMetalShaderLibraryHandle = *mut AOTIMetalShaderLibraryOpaque;
/// A kernel function, as in PyTorch's `shim_mps.h`.
pub type AOTIMetalKernelFunctionHandle = *mut AOTIMetalKernelFunctionOpaque;

/// What a handle stands for.
pub(super) enum KernelObject {
    /// A library and the handles of the functions that were asked for.
    Library { library: Arc<KernelLibrary>, functions: Vec<(String, usize)> },
    /// A function.
    Function(Arc<KernelFunction>),
}

#[derive(Default)]
struct Registry {
    live: FxHashMap<usize, KernelObject>,
    ended: VecDeque<usize>,
}

/// Ended handles that stay unused, so that a stale one is refused for long.
const KEPT_APART: usize = 256;

// Never torn down: programs delete libraries from their static destructors.
static REGISTRY: LazyLock<RwLock<Registry>> = LazyLock::new(RwLock::default);

impl Registry {
    fn insert(&mut self, object: KernelObject) -> usize {
        let address = match self.ended.len() > KEPT_APART {
            true => self.ended.pop_front(),
            false => None,
        }
        .unwrap_or_else(|| Box::leak(Box::new([0usize; 2])).as_ptr().addr());
        self.live.insert(address, object);
        address
    }

    fn remove(&mut self, address: usize) {
        if self.live.remove(&address).is_some() {
            self.ended.push_back(address);
        }
    }
}

/// A handle to a library.
pub(super) fn insert(object: KernelObject) -> AOTIMetalShaderLibraryHandle {
    REGISTRY.write().insert(object) as AOTIMetalShaderLibraryHandle
}

/// Ends a library and its functions; null is refused like any other handle that is none.
pub(super) fn remove_library(handle: AOTIMetalShaderLibraryHandle) -> Result<()> {
    let mut registry = REGISTRY.write();
    let functions: Vec<usize> = match registry.live.get(&handle.addr()) {
        Some(KernelObject::Library { functions, .. }) => {
            functions.iter().map(|(_, address)| *address).collect()
        }
        _ => return Err(refuse("library_handle", handle.addr(), "a shader library")),
    };
    for address in functions {
        registry.remove(address);
    }
    registry.remove(handle.addr());
    Ok(())
}

/// The handle of a library's function; the same at every call.
pub(super) fn function_of(
    handle: AOTIMetalShaderLibraryHandle,
    name: &str,
) -> Result<AOTIMetalKernelFunctionHandle> {
    let mut registry = REGISTRY.write();
    let function = match registry.live.get(&handle.addr()) {
        Some(KernelObject::Library { library, functions }) => {
            if let Some((_, address)) = functions.iter().find(|(known, _)| known == name) {
                return Ok(*address as AOTIMetalKernelFunctionHandle);
            }
            library.function(name)?
        }
        _ => return Err(refuse("library_handle", handle.addr(), "a shader library")),
    };
    let address = registry.insert(KernelObject::Function(function));
    if let Some(KernelObject::Library { functions, .. }) = registry.live.get_mut(&handle.addr()) {
        functions.push((name.to_owned(), address));
    }
    Ok(address as AOTIMetalKernelFunctionHandle)
}

/// The function behind a handle.
pub(super) fn function(handle: AOTIMetalKernelFunctionHandle) -> Result<Arc<KernelFunction>> {
    match REGISTRY.read().live.get(&handle.addr()) {
        Some(KernelObject::Function(function)) => Ok(function.clone()),
        _ => Err(refuse("func", handle.addr(), "a kernel function")),
    }
}

/// Whether a live function has this address.
pub(super) fn is_function(address: usize) -> bool {
    matches!(REGISTRY.read().live.get(&address), Some(KernelObject::Function(_)))
}

fn refuse(argument: &'static str, address: usize, what: &str) -> Error {
    let value = if address == 0 { "null".to_owned() } else { format!("{address:#x}") };
    Error::invalid(argument, value, format!("it is not the handle of {what}, or was deleted"))
}
