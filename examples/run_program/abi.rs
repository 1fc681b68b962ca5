//! The two libraries of a run: aoti-wgpu and a compiled program, by their C symbols.

use super::npy::Failure;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LAZY, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};

pub type Handle = *mut c_void;
type Status = i32;

#[repr(C)]
#[derive(Default, Clone, Copy)]
pub struct Stats {
    pub struct_size: u64,
    pub live_handles: u64,
    pub live_storages: u64,
    pub live_device_bytes: u64,
    pub live_host_bytes: u64,
    pub pooled_bytes: u64,
    pub pool_hits: u64,
    pub pool_misses: u64,
    pub dispatches: u64,
    pub submits: u64,
    pub packs: u64,
    pub packs_skipped: u64,
}

/// aoti-wgpu, loaded so that programs find its symbols.
pub struct Shims {
    library: Library,
}

macro_rules! symbol {
    ($library:expr, $name:literal: $type:ty) => {{
        // SAFETY: the symbol has this type in the header that the library comes with, or
        // in PyTorch's `interface.h` for a program.
        unsafe { *$library.get::<$type>(concat!($name, "\0").as_bytes())? }
    }};
}

impl Shims {
    pub fn load(path: &Path) -> Result<Self, Failure> {
        // SAFETY: the library's initialisers touch nothing of this process.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }
            .map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Shims { library })
    }

    /// Where cargo puts the library that belongs to this example.
    pub fn default_path() -> Result<PathBuf, Failure> {
        let name =
            format!("{}aoti_wgpu{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        let exe = std::env::current_exe()?;
        exe.ancestors()
            .skip(1)
            .flat_map(|folder| [folder.join("deps").join(&name), folder.join(&name)])
            .find(|path| path.exists())
            .ok_or_else(|| format!("{name} is not beside {}; see --library", exe.display()).into())
    }

    fn check(&self, status: Status, what: &str) -> Result<(), Failure> {
        if status == 0 {
            return Ok(());
        }
        let message =
            symbol!(self.library, "aoti_wgpu_last_error_message": extern "C" fn() -> *const c_char);
        // SAFETY: never null and valid until this thread's next failing call.
        let text = unsafe { CStr::from_ptr(message()) }.to_string_lossy().into_owned();
        Err(format!("{what}: {text} (code {status})").into())
    }

    pub fn dtype(&self, name: &str) -> Result<i32, Failure> {
        let symbol = CString::new(format!("aoti_torch_dtype_{name}"))?;
        // SAFETY: every symbol of this prefix is a constant function of this type.
        let code =
            unsafe { self.library.get::<extern "C" fn() -> i32>(symbol.as_bytes_with_nul()) }?;
        Ok(code())
    }

    pub fn device(&self, name: &str) -> Result<i32, Failure> {
        let symbol = CString::new(format!("aoti_torch_device_type_{name}"))?;
        // SAFETY: every symbol of this prefix is a constant function of this type.
        let code =
            unsafe { self.library.get::<extern "C" fn() -> i32>(symbol.as_bytes_with_nul()) }?;
        Ok(code())
    }

    /// A tensor over `bytes`, which must outlive it.
    pub fn blob(&self, bytes: &mut [u8], sizes: &[i64], dtype: i32) -> Result<Handle, Failure> {
        type Create = unsafe extern "C" fn(
            *mut c_void,
            i64,
            *const i64,
            *const i64,
            i64,
            i32,
            i32,
            i32,
            *mut Handle,
            i32,
            *const u8,
            i64,
        ) -> Status;
        let create = symbol!(self.library, "aoti_torch_create_tensor_from_blob_v2": Create);
        let mut out = std::ptr::null_mut();
        // SAFETY: the arrays are as long as said, and the caller keeps `bytes`.
        let status = unsafe {
            create(
                bytes.as_mut_ptr().cast(),
                sizes.len() as i64,
                sizes.as_ptr(),
                std::ptr::null(),
                0,
                dtype,
                0,
                0,
                &mut out,
                0,
                std::ptr::null(),
                0,
            )
        };
        self.check(status, "wrapping host memory")?;
        Ok(out)
    }

    pub fn empty(
        &self,
        sizes: &[i64],
        strides: &[i64],
        dtype: i32,
        device: i32,
    ) -> Result<Handle, Failure> {
        type Empty =
            unsafe extern "C" fn(i64, *const i64, *const i64, i32, i32, i32, *mut Handle) -> Status;
        let empty = symbol!(self.library, "aoti_torch_empty_strided": Empty);
        let mut out = std::ptr::null_mut();
        // SAFETY: the arrays are as long as said.
        let status = unsafe {
            empty(sizes.len() as i64, sizes.as_ptr(), strides.as_ptr(), dtype, device, 0, &mut out)
        };
        self.check(status, "allocating a tensor")?;
        Ok(out)
    }

    pub fn copy(&self, to: Handle, from: Handle) -> Result<(), Failure> {
        type Copy = unsafe extern "C" fn(Handle, Handle, i32) -> Status;
        let copy = symbol!(self.library, "aoti_torch_copy_": Copy);
        // SAFETY: handles are checked by the library.
        self.check(unsafe { copy(to, from, 0) }, "copying")
    }

    pub fn delete(&self, handle: Handle) -> Result<(), Failure> {
        type Delete = unsafe extern "C" fn(Handle) -> Status;
        let delete = symbol!(self.library, "aoti_torch_delete_tensor_object": Delete);
        // SAFETY: handles are checked by the library.
        self.check(unsafe { delete(handle) }, "deleting a tensor")
    }

    pub fn second_handle(&self, handle: Handle) -> Result<Handle, Failure> {
        type New = unsafe extern "C" fn(Handle, *mut Handle) -> Status;
        let new = symbol!(self.library, "aoti_torch_new_tensor_handle": New);
        let mut out = std::ptr::null_mut();
        // SAFETY: handles are checked by the library, the output is a local.
        self.check(unsafe { new(handle, &mut out) }, "making a second handle")?;
        Ok(out)
    }

    /// Sizes, strides and dtype of a tensor.
    pub fn describe(&self, handle: Handle) -> Result<(Vec<i64>, Vec<i64>, i32), Failure> {
        type Array = unsafe extern "C" fn(Handle, *mut *mut i64) -> Status;
        type Count = unsafe extern "C" fn(Handle, *mut i64) -> Status;
        type Code = unsafe extern "C" fn(Handle, *mut i32) -> Status;
        let dim = symbol!(self.library, "aoti_torch_get_dim": Count);
        let sizes = symbol!(self.library, "aoti_torch_get_sizes": Array);
        let strides = symbol!(self.library, "aoti_torch_get_strides": Array);
        let dtype = symbol!(self.library, "aoti_torch_get_dtype": Code);
        let (mut rank, mut code) = (0, 0);
        let (mut a, mut b) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: handles are checked by the library, outputs are locals.
        unsafe {
            self.check(dim(handle, &mut rank), "reading a rank")?;
            self.check(sizes(handle, &mut a), "reading sizes")?;
            self.check(strides(handle, &mut b), "reading strides")?;
            self.check(dtype(handle, &mut code), "reading a dtype")?;
            let copy = |p: *mut i64| std::slice::from_raw_parts(p, rank as usize).to_vec();
            Ok((copy(a), copy(b), code))
        }
    }

    pub fn synchronize(&self) -> Result<(), Failure> {
        let wait = symbol!(self.library, "aoti_wgpu_synchronize": extern "C" fn() -> u32);
        self.check(wait() as Status, "waiting")
    }

    pub fn stats(&self) -> Result<Stats, Failure> {
        type Read = unsafe extern "C" fn(*mut Stats) -> u32;
        let read = symbol!(self.library, "aoti_wgpu_stats": Read);
        let mut stats = Stats { struct_size: size_of::<Stats>() as u64, ..Stats::default() };
        // SAFETY: a local of the size that it states.
        self.check(unsafe { read(&mut stats) } as Status, "reading statistics")?;
        Ok(stats)
    }

    /// What ExecuTorch's delegate calls after it closed a program.
    #[allow(dead_code, reason = "for tests that include this file")]
    pub fn cleanup_memory(&self) -> Result<(), Failure> {
        symbol!(self.library, "cleanup_memory": extern "C" fn())();
        Ok(())
    }

    pub fn init_logging(&self) -> Result<(), Failure> {
        let init = symbol!(self.library, "aoti_wgpu_init_logging": extern "C" fn() -> u32);
        self.check(init() as Status, "starting the log")
    }
}

type Container = *mut c_void;

/// A compiled program with its container.
pub struct Program<'a> {
    shims: &'a Shims,
    library: Library,
    container: Container,
}

impl<'a> Program<'a> {
    pub fn load(shims: &'a Shims, path: &Path, device: &str) -> Result<Self, Failure> {
        // SAFETY: a compiled program's initialisers call constants of the library alone.
        let library = unsafe { Library::open(Some(path), RTLD_LAZY | RTLD_LOCAL) }
            .map_err(|error| format!("{}: {error}", path.display()))?;
        type Create =
            unsafe extern "C" fn(*mut Container, usize, *const c_char, *const c_char) -> Status;
        let create = symbol!(library, "AOTInductorModelContainerCreateWithDevice": Create);
        let device = CString::new(device)?;
        let mut program = Program { shims, library, container: std::ptr::null_mut() };
        // SAFETY: outputs are locals, texts are C strings.
        let status =
            unsafe { create(&mut program.container, 1, device.as_ptr(), std::ptr::null()) };
        program.check(status, "creating the container")?;
        Ok(program)
    }

    fn check(&self, status: Status, what: &str) -> Result<(), Failure> {
        if status == 0 {
            return Ok(());
        }
        type Last = unsafe extern "C" fn(*mut *const c_char) -> Status;
        // SAFETY: as declared in `interface.h`, where the program has it.
        let own =
            unsafe { self.library.get::<Last>(b"AOTInductorGetLastError\0") }.ok().map(|last| {
                let mut text = std::ptr::null();
                // SAFETY: the output is a local; what comes back is null or a C string.
                unsafe {
                    last(&mut text);
                    if text.is_null() {
                        String::new()
                    } else {
                        CStr::from_ptr(text).to_string_lossy().into()
                    }
                }
            });
        let below = self.shims.check(status, what).err().map(|e| e.to_string()).unwrap_or_default();
        Err(format!("{below} {}", own.unwrap_or_default()).into())
    }

    pub fn update_constants(&self, blob: &[u8]) -> Result<(), Failure> {
        type Update = unsafe extern "C" fn(Container, *const u8) -> Status;
        let update = symbol!(self.library, "AOTInductorModelUpdateConstantsFromBlob": Update);
        // SAFETY: the container is alive, and the blob as long as the program expects.
        self.check(unsafe { update(self.container, blob.as_ptr()) }, "loading the constants")
    }

    pub fn outputs(&self) -> Result<usize, Failure> {
        type Count = unsafe extern "C" fn(Container, *mut usize) -> Status;
        let count = symbol!(self.library, "AOTInductorModelContainerGetNumOutputs": Count);
        let mut outputs = 0;
        // SAFETY: the container is alive, the output a local.
        self.check(unsafe { count(self.container, &mut outputs) }, "counting outputs")?;
        Ok(outputs)
    }

    /// Runs once; `inputs` are the program's from now on, the outputs the caller's.
    pub fn run(&self, inputs: &mut [Handle], outputs: &mut [Handle]) -> Result<(), Failure> {
        type Run = unsafe extern "C" fn(
            Container,
            *mut Handle,
            usize,
            *mut Handle,
            usize,
            *mut c_void,
            *mut c_void,
        ) -> Status;
        let run = symbol!(self.library, "AOTInductorModelContainerRun": Run);
        let null = std::ptr::null_mut();
        // SAFETY: the container is alive and the arrays are as long as said.
        let status = unsafe {
            run(
                self.container,
                inputs.as_mut_ptr(),
                inputs.len(),
                outputs.as_mut_ptr(),
                outputs.len(),
                null,
                null,
            )
        };
        self.check(status, "running")
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        type Delete = unsafe extern "C" fn(Container) -> Status;
        if self.container.is_null() {
            return;
        }
        // SAFETY: as declared in `interface.h`.
        if let Ok(delete) =
            unsafe { self.library.get::<Delete>(b"AOTInductorModelContainerDelete\0") }
        {
            // SAFETY: the container is alive and ends here.
            unsafe { delete(self.container) };
        }
    }
}
