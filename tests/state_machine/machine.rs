//! The machine: operations drawn from a seed, done by the library and by the model.

use crate::hostile;
use crate::model::{self, Memory, Place, Storage, TYPES, Tensor, Type};
use aoti_wgpu::ffi::AtenTensorHandle as Handle;
use aoti_wgpu::ffi::attributes::*;
use aoti_wgpu::ffi::extension::*;
use aoti_wgpu::ffi::memory::*;
use aoti_wgpu::ffi::mps::*;
use aoti_wgpu::ffi::scalar::*;
use std::ffi::{CStr, c_void};
use std::ptr::{null, null_mut};
use std::rc::Rc;

/// splitmix64 (Steele, Lea, Flood 2014): every operation has a stream of its own, so
/// that leaving one out does not change the others.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64, operation: u64) -> Self {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ operation);
        random.next();
        random
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    pub fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}

pub fn message() -> String {
    // SAFETY: a C string of this thread.
    unsafe { CStr::from_ptr(aoti_wgpu_last_error_message()) }.to_string_lossy().into_owned()
}

#[track_caller]
pub fn ok(code: i32) {
    assert_eq!(code, 0, "{}", message());
}

/// The caller's memory that blobs lie in, in bytes.
const ARENA: usize = 4096;

const SOURCE: &CStr = c"
#include <metal_stdlib>
using namespace metal;
kernel void next_value(
    device int* out [[buffer(0)]],
    constant int* in [[buffer(1)]],
    constant long& step [[buffer(2)]],
    uint i [[thread_position_in_grid]])
{
    out[i] = in[i] + static_cast<int>(step);
}
";

struct Live {
    handle: Handle,
    /// None for a handle that is not defined.
    tensor: Option<Tensor>,
}

struct Allocation {
    pointer: *mut c_void,
    storage: Rc<Storage>,
}

struct Library {
    handle: AOTIMetalShaderLibraryHandle,
    function: AOTIMetalKernelFunctionHandle,
}

pub struct Machine {
    live: Vec<Live>,
    dead: Vec<Handle>,
    allocations: Vec<Allocation>,
    library: Option<Library>,
    dead_functions: Vec<AOTIMetalKernelFunctionHandle>,
    arena: Box<[u64; ARENA / 8]>,
    arena_storage: Rc<Storage>,
    /// What the adapter info says: `unified`, `device` or `host`.
    memory: String,
    strided: bool,
}

pub fn adapter_memory() -> String {
    // SAFETY: zeroes are a valid value of the struct.
    let mut info: aoti_wgpu_adapter_info_t = unsafe { std::mem::zeroed() };
    info.struct_size = size_of::<aoti_wgpu_adapter_info_t>() as u64;
    // SAFETY: a struct of the size it says.
    ok(unsafe { aoti_wgpu_adapter_info(&mut info) }.cast_signed());
    // SAFETY: a C string that lives as long as the process.
    unsafe { CStr::from_ptr(info.memory_mode) }.to_string_lossy().into_owned()
}

pub fn stats() -> aoti_wgpu_stats_t {
    let mut stats = aoti_wgpu_stats_t {
        struct_size: size_of::<aoti_wgpu_stats_t>() as u64,
        ..Default::default()
    };
    // SAFETY: a struct of the size it says.
    ok(unsafe { aoti_wgpu_stats(&mut stats) }.cast_signed());
    stats
}

pub fn run(seed: u64, operations: u64, span: u64, skip: &[(u64, u64)]) {
    let mut machine = Machine::new();
    for operation in 0..operations {
        if !skip.iter().any(|&(a, b)| (a..=b).contains(&operation)) {
            let mut random = Random::new(seed, operation);
            if std::env::var_os("STATE_TRACE").is_some() {
                eprintln!("operation {operation}: {} handles", machine.live.len());
            }
            machine.step(&mut random);
        }
        if (operation + 1) % span == 0 {
            machine.delete_everything(&mut Random::new(seed, operation ^ 1 << 63));
        }
    }
    machine.delete_everything(&mut Random::new(seed, u64::MAX));
    println!("{operations} operations of seed {seed}: {:?}", stats());
}

impl Machine {
    fn new() -> Self {
        let memory = adapter_memory();
        let arena_storage = Storage::new(ARENA, Place::Borrowed);
        arena_storage.memory.borrow_mut().known.fill(true);
        Machine {
            live: Vec::new(),
            dead: Vec::new(),
            allocations: Vec::new(),
            library: None,
            dead_functions: Vec::new(),
            arena: Box::new([0; ARENA / 8]),
            arena_storage,
            memory,
            strided: std::env::var("AOTI_WGPU_VIEWS").is_ok_and(|v| v == "strided"),
        }
    }

    fn arena_pointer(&mut self) -> *mut u8 {
        self.arena.as_mut_ptr().cast()
    }

    fn step(&mut self, random: &mut Random) {
        match random.below(112) {
            0..14 => self.create(random),
            14..19 => self.blob_of_host(random),
            19..23 => self.blob_of_device(random),
            23..33 => self.view(random),
            33..36 => self.as_strided(random),
            36..40 => self.from_pool(random),
            40..44 => self.second_handle(random),
            44..55 => self.copy(random),
            55..58 => self.zero(random),
            58..62 => self.clone_tensor(random),
            62..65 => self.assign(random),
            65..74 => self.delete(random),
            74..76 => self.delete_again(random),
            76..79 => self.host_write(random),
            79..83 => self.check_values(random),
            83..85 => self.check_pointer(random),
            85..87 => self.item(random),
            87..90 => self.allocate(random),
            90..91 => self.memcpy(random),
            91..92 => self.copy_buffer(random),
            92..93 => self.free(random),
            93..96 => self.dispatch(random),
            96..97 => self.end_library(random),
            97..98 => self.order(random),
            98..100 => self.nonsense(random),
            100..106 => self.dispatch(random),
            _ => self.check_pointer(random),
        }
        if random.chance(8) {
            self.check_counts();
        }
    }

    // ---- Arguments ------------------------------------------------------------------

    fn sizes(random: &mut Random) -> Vec<i64> {
        let rank = random.pick(&[0, 1, 1, 2, 2, 2, 3, 4]);
        (0..rank).map(|_| random.pick(&[1, 2, 3, 3, 4, 5, 7, 0, 9, 8])).collect()
    }

    /// Strides with holes, orders and overlap.
    fn strides(random: &mut Random, sizes: &[i64]) -> Vec<i64> {
        let mut order: Vec<usize> = (0..sizes.len()).rev().collect();
        if random.chance(2) && order.len() > 1 {
            let i = random.below(order.len() as u64) as usize;
            order.swap(0, i);
        }
        let mut strides = vec![1; sizes.len()];
        let mut next = random.pick(&[1, 1, 1, 2, 3]);
        for d in order {
            strides[d] = if random.chance(9) { random.below(3) as i64 } else { next };
            next = strides[d] * sizes[d].max(1) + i64::from(random.chance(4));
            next = next.max(1);
        }
        strides
    }

    fn some(&self, random: &mut Random) -> Option<usize> {
        let defined: Vec<usize> =
            (0..self.live.len()).filter(|&i| self.live[i].tensor.is_some()).collect();
        (!defined.is_empty()).then(|| random.pick(&defined))
    }

    fn tensor(&self, i: usize) -> &Tensor {
        self.live[i].tensor.as_ref().unwrap()
    }

    fn keep(&mut self, handle: Handle, tensor: Option<Tensor>) {
        assert!(!handle.is_null());
        assert!(self.live.iter().all(|live| live.handle != handle), "a handle was given twice");
        self.dead.retain(|&dead| dead != handle);
        self.live.push(Live { handle, tensor });
        self.check_attributes(self.live.len() - 1);
    }

    // ---- Tensors that come ----------------------------------------------------------

    fn create(&mut self, random: &mut Random) {
        let sizes = Self::sizes(random);
        let dtype = if random.chance(4) { model::I32 } else { random.pick(&TYPES) };
        let mps = !random.chance(4);
        let given = random.chance(3);
        let strides = if given { Self::strides(random, &sizes) } else { model::contiguous(&sizes) };
        let pointer = if given { strides.as_ptr() } else { null() };
        let device = if mps { 13 } else { 0 };
        let mut handle = null_mut();
        // SAFETY: arrays of the rank.
        ok(unsafe {
            let rank = sizes.len() as i64;
            let make = match mps || random.chance(2) {
                true => aoti_torch_empty_strided,
                false => aoti_torch_empty_strided_pinned,
            };
            make(rank, sizes.as_ptr(), pointer, dtype.code, device, -1, &mut handle)
        });
        let bytes = model::extent(&sizes, &strides) as usize * dtype.size;
        let tensor = Tensor {
            storage: Storage::new(bytes, if mps { Place::Device } else { Place::Host }),
            base: 0,
            offset: 0,
            sizes,
            strides,
            dtype,
            mps,
            storage_bytes: bytes,
            packed_view: false,
        };
        self.keep(handle, Some(tensor));
        let made = self.live.len() - 1;
        let overlaps = {
            let tensor = self.tensor(made);
            model::may_share_places(&tensor.sizes, &tensor.strides)
        };
        if !overlaps && !random.chance(5) {
            self.fill(made, random);
        }
    }

    /// Writes known values through a copy from a blob on this thread's stack.
    fn fill(&mut self, i: usize, random: &mut Random) {
        let tensor = self.tensor(i);
        let whole = random.chance(2);
        let mut elements = Memory::default();
        for _ in 0..tensor.numel() {
            let bytes = match whole {
                true => tensor.dtype.of_whole(random.below(101) as f64),
                false if tensor.dtype == model::BOOL => vec![(random.next() & 1) as u8],
                false => (0..tensor.dtype.size).map(|_| random.next() as u8).collect(),
            };
            elements.bytes.extend(bytes);
        }
        elements.known = vec![true; elements.bytes.len()];
        let mut source = elements.bytes.clone();
        let blob = host_blob(&mut source, &tensor.sizes, tensor.dtype);
        // SAFETY: two live handles.
        ok(unsafe { aoti_torch_copy_(self.live[i].handle, blob, random.below(2) as i32) });
        // SAFETY: a live handle.
        ok(unsafe { aoti_torch_delete_tensor_object(blob) });
        // A copy has taken its source when it returns.
        source.fill(0xee);
        tensor.write(&elements);
    }

    fn blob_of_host(&mut self, random: &mut Random) {
        let dtype = random.pick(&TYPES);
        let sizes = Self::sizes(random);
        let strides = if random.chance(2) {
            Self::strides(random, &sizes)
        } else {
            model::contiguous(&sizes)
        };
        let bytes = model::extent(&sizes, &strides) as usize * dtype.size;
        let offset = random.below(4) as i64;
        let end = offset as usize * dtype.size + bytes;
        if end > ARENA {
            return;
        }
        // Often near the start, so that blobs overlap.
        let room = if random.chance(3) { ARENA - end } else { (ARENA - end).min(64) };
        let base = random.below(room as u64 + 1) as usize / dtype.size * dtype.size;
        let mps = random.chance(2);
        let mut handle = null_mut();
        let pointer = self.arena_pointer().wrapping_add(base).cast::<c_void>();
        // SAFETY: the arena outlives all handles, and the layout ends within it.
        ok(unsafe {
            aoti_torch_create_tensor_from_blob_v2(
                pointer,
                sizes.len() as i64,
                sizes.as_ptr(),
                strides.as_ptr(),
                offset,
                dtype.code,
                if mps { 13 } else { 0 },
                0,
                &mut handle,
                0,
                null(),
                0,
            )
        });
        let tensor = Tensor {
            storage: self.arena_storage.clone(),
            base,
            offset,
            sizes,
            strides,
            dtype,
            mps,
            storage_bytes: if bytes == 0 { 0 } else { end },
            packed_view: false,
        };
        self.keep(handle, Some(tensor));
    }

    /// A blob over a device address: of an allocation, or a tensor's data pointer.
    fn blob_of_device(&mut self, random: &mut Random) {
        let (pointer, storage) = if random.chance(2) && !self.allocations.is_empty() {
            let i = random.below(self.allocations.len() as u64) as usize;
            (self.allocations[i].pointer, self.allocations[i].storage.clone())
        } else {
            let Some(i) = self.some(random) else { return };
            let tensor = self.tensor(i);
            if tensor.storage.place != Place::Device || tensor.packed_view || tensor.numel() == 0 {
                return;
            }
            let start = tensor.offset as usize * tensor.dtype.size;
            let storage = tensor.storage.clone();
            (self.data_ptr(i).wrapping_byte_sub(start), storage)
        };
        let dtype = random.pick(&TYPES);
        let room = storage.bytes / dtype.size;
        if room == 0 {
            return;
        }
        let skip = random.below(room as u64) as usize;
        let offset = random.below((room - skip) as u64) as usize;
        let left = (room - skip - offset) as i64;
        let sizes = if random.chance(2) { vec![left] } else { vec![left.min(3), left / 3] };
        if model::extent(&sizes, &model::contiguous(&sizes)) > left {
            return;
        }
        let mut handle = null_mut();
        // SAFETY: the address lies in a live allocation.
        ok(unsafe {
            aoti_torch_create_tensor_from_blob(
                pointer.wrapping_byte_add(skip * dtype.size),
                sizes.len() as i64,
                sizes.as_ptr(),
                null(),
                offset as i64,
                dtype.code,
                13,
                0,
                &mut handle,
            )
        });
        let tensor = Tensor {
            base: 0,
            offset: (skip + offset) as i64,
            strides: model::contiguous(&sizes),
            sizes,
            dtype,
            mps: true,
            storage_bytes: storage.bytes,
            storage,
            packed_view: false,
        };
        self.keep(handle, Some(tensor));
    }

    fn view(&mut self, random: &mut Random) {
        let Some(i) = self.some(random) else { return };
        let of = self.tensor(i).clone();
        let sizes = if random.chance(3) { of.sizes.clone() } else { Self::sizes(random) };
        let strides = Self::strides(random, &sizes);
        let room = (of.storage_bytes / of.dtype.size) as i64;
        let extent = model::extent(&sizes, &strides);
        let start = random.below((room - extent).max(0) as u64 + 1) as i64;
        self.make_view(i, &of, sizes, strides, start - of.offset, random.chance(40));
    }

    fn make_view(
        &mut self,
        i: usize,
        of: &Tensor,
        sizes: Vec<i64>,
        strides: Vec<i64>,
        increment: i64,
        unaligned: bool,
    ) {
        let increment = if unaligned { increment - of.offset - 1 } else { increment };
        let offset = of.offset + increment;
        let extent = model::extent(&sizes, &strides);
        let end = (offset.max(0) + extent) as usize * of.dtype.size;
        let fits = offset >= 0 && (extent == 0 || end <= of.storage_bytes);
        let mut handle = null_mut();
        // SAFETY: arrays of the rank.
        let code = unsafe {
            aoti_torch__reinterpret_tensor(
                self.live[i].handle,
                sizes.len() as i64,
                sizes.as_ptr(),
                strides.as_ptr(),
                increment,
                &mut handle,
            )
        };
        if !fits {
            assert_eq!(code, 0x12, "a view of {sizes:?} {strides:?} at {offset} of {of:?}");
            assert!(handle.is_null());
            return;
        }
        ok(code);
        self.keep(handle, Some(self.view_of(of, sizes, strides, offset)));
    }

    fn view_of(&self, of: &Tensor, sizes: Vec<i64>, strides: Vec<i64>, offset: i64) -> Tensor {
        let packed_view = of.mps && !self.strided && !packed(&sizes, &strides);
        Tensor { offset, sizes, strides, packed_view, ..of.clone() }
    }

    fn as_strided(&mut self, random: &mut Random) {
        let Some(i) = self.some(random) else { return };
        let of = self.tensor(i).clone();
        let sizes: Vec<i64> = of.sizes.iter().map(|&n| random.below(n as u64 + 1) as i64).collect();
        let strides = match random.below(3) {
            0 => of.strides.clone(),
            _ => Self::strides(random, &sizes),
        };
        let extent = model::extent(&sizes, &strides);
        let end = (of.offset + extent) as usize * of.dtype.size;
        let mut handle = null_mut();
        // SAFETY: arrays of the rank.
        let code = unsafe {
            aoti_torch_as_strided(
                self.live[i].handle,
                sizes.as_ptr(),
                strides.as_ptr(),
                &mut handle,
            )
        };
        if extent > 0 && end > of.storage_bytes {
            assert_eq!(code, 0x12);
            return;
        }
        ok(code);
        self.keep(handle, Some(self.view_of(&of, sizes, strides, of.offset)));
    }

    fn from_pool(&mut self, random: &mut Random) {
        let Some(i) = self.some(random) else { return };
        let of = self.tensor(i).clone();
        let dtype = random.pick(&TYPES);
        let sizes = Self::sizes(random);
        let strides = if random.chance(3) {
            Self::strides(random, &sizes)
        } else {
            model::contiguous(&sizes)
        };
        let bytes = model::extent(&sizes, &strides) as usize * dtype.size;
        let room = of.storage_bytes.saturating_sub(bytes);
        let offset_bytes = random.below(room as u64 + 2) as i64;
        let mut handle = null_mut();
        // SAFETY: arrays of the rank.
        let code = unsafe {
            aoti_torch__alloc_from_pool(
                self.live[i].handle,
                offset_bytes,
                dtype.code,
                sizes.len() as i64,
                sizes.as_ptr(),
                strides.as_ptr(),
                &mut handle,
            )
        };
        let aligned = offset_bytes as usize % dtype.size == 0;
        if !aligned || (bytes > 0 && offset_bytes as usize + bytes > of.storage_bytes) {
            assert_eq!(code, 0x12);
            return;
        }
        ok(code);
        let offset = offset_bytes / dtype.size as i64;
        let tensor = Tensor { offset, sizes, strides, dtype, packed_view: false, ..of };
        self.keep(handle, Some(tensor));
    }

    fn second_handle(&mut self, random: &mut Random) {
        if self.live.is_empty() || random.chance(6) {
            let mut handle = null_mut();
            // SAFETY: an output.
            ok(unsafe { aoti_torch_new_uninitialized_tensor(&mut handle) });
            return self.keep(handle, None);
        }
        let i = random.below(self.live.len() as u64) as usize;
        let mut handle = null_mut();
        // SAFETY: a live handle and an output.
        ok(unsafe {
            match random.below(2) {
                0 => aoti_torch_new_tensor_handle(self.live[i].handle, &mut handle),
                _ => aoti_torch_assign_tensors_out(self.live[i].handle, &mut handle),
            }
        });
        self.keep(handle, self.live[i].tensor.clone());
    }

    fn clone_tensor(&mut self, random: &mut Random) {
        let Some(i) = self.some(random) else { return };
        let of = self.tensor(i).clone();
        let preserve = random.chance(2);
        let mut handle = null_mut();
        // SAFETY: a live handle and an output.
        ok(unsafe {
            match preserve {
                true => aoti_torch_clone_preserve_strides(self.live[i].handle, &mut handle),
                false => aoti_torch_clone(self.live[i].handle, &mut handle),
            }
        });
        let strides = match preserve {
            true => of.strides.clone(),
            false => {
                // PyTorch's preserve_format has cases; the library says which it took.
                let mut array = null_mut();
                // SAFETY: a live handle and an output.
                ok(unsafe { aoti_torch_get_strides(handle, &mut array) });
                // SAFETY: as many strides as dimensions.
                unsafe { std::slice::from_raw_parts(array, of.sizes.len()) }.to_vec()
            }
        };
        assert!(preserve || packed(&of.sizes, &strides), "a clone has gaps");
        let bytes = model::extent(&of.sizes, &strides) as usize * of.dtype.size;
        let tensor = Tensor {
            storage: Storage::new(bytes, if of.mps { Place::Device } else { Place::Host }),
            base: 0,
            offset: 0,
            strides,
            storage_bytes: bytes,
            packed_view: false,
            ..of.clone()
        };
        tensor.write(&of.read());
        self.keep(handle, Some(tensor));
    }

    fn assign(&mut self, random: &mut Random) {
        if self.live.is_empty() {
            return;
        }
        let src = random.below(self.live.len() as u64) as usize;
        let dst = random.below(self.live.len() as u64) as usize;
        // SAFETY: live handles.
        ok(unsafe { aoti_torch_assign_tensors(self.live[src].handle, self.live[dst].handle) });
        self.live[dst].tensor = self.live[src].tensor.clone();
        self.check_attributes(dst);
    }

    // ---- Contents -------------------------------------------------------------------

    fn copy(&mut self, random: &mut Random) {
        let (Some(dst), Some(mut src)) = (self.some(random), self.some(random)) else { return };
        // Two that fit are rare among random ones: look for one.
        let wanted = self.tensor(dst).clone();
        if random.chance(8) {
            // As it is.
        } else if let Some(fitting) =
            (0..self.live.len()).map(|i| (i + src) % self.live.len()).find(|&i| {
                i != dst
                    && self.live[i]
                        .tensor
                        .as_ref()
                        .is_some_and(|t| t.broadcast(&wanted.sizes).is_some())
            })
        {
            src = fitting;
        }
        let (to, from) = (self.tensor(dst).clone(), self.tensor(src).clone());
        let elements = from.broadcast(&to.sizes).map(|from| from.read());
        let converted = match &elements {
            Some(elements) if to.dtype != from.dtype => {
                match convert(elements, from.dtype, to.dtype) {
                    Some(converted) => Some(converted),
                    // Values whose conversion is for other tests.
                    None if random.chance(2) && self.is_quiet(&from, &to) => None,
                    None => return,
                }
            }
            _ => elements.clone(),
        };
        // SAFETY: two live handles.
        let code = unsafe {
            match random.below(2) {
                0 => aoti_torch_copy_(self.live[dst].handle, self.live[src].handle, 1),
                _ => aoti_torch_tensor_copy_(self.live[src].handle, self.live[dst].handle),
            }
        };
        let complex = (to.dtype == model::C128) != (from.dtype == model::C128);
        if complex {
            assert_eq!(code, 0x10, "complex converts to itself only");
        } else if elements.is_none() || model::may_share_places(&to.sizes, &to.strides) {
            assert_eq!(code, 0x12, "copy of {from:?} to {to:?}");
        } else {
            ok(code);
            match converted {
                Some(converted) => to.write(&converted),
                None => {
                    let bytes = to.numel() as usize * to.dtype.size;
                    to.write(&Memory { bytes: vec![0; bytes], known: vec![false; bytes] });
                }
            }
        }
    }

    /// Whether a conversion of any values is defined for these types and memory.
    fn is_quiet(&self, from: &Tensor, to: &Tensor) -> bool {
        // The host's arena is compared byte for byte, so nothing unknown goes there.
        to.storage.place != Place::Borrowed && from.dtype != model::BOOL
    }

    fn zero(&mut self, random: &mut Random) {
        let Some(i) = self.some(random) else { return };
        let tensor = self.tensor(i);
        // SAFETY: a live handle.
        let code = unsafe { aoti_torch_zero_(self.live[i].handle) };
        if model::may_share_places(&tensor.sizes, &tensor.strides) {
            assert_eq!(code, 0x12);
            return;
        }
        ok(code);
        let bytes = tensor.numel() as usize * tensor.dtype.size;
        tensor.write(&Memory { bytes: vec![0; bytes], known: vec![true; bytes] });
    }

    fn data_ptr(&self, i: usize) -> *mut c_void {
        let mut pointer = null_mut();
        // SAFETY: a live handle and an output.
        ok(unsafe { aoti_torch_get_data_ptr(self.live[i].handle, &mut pointer) });
        pointer
    }

    /// Whether the host may use this tensor's pointer.
    fn host_reaches(&self, tensor: &Tensor) -> bool {
        tensor.storage.place != Place::Device || self.memory != "device"
    }

    /// The host writes through a data pointer and says so.
    fn host_write(&mut self, random: &mut Random) {
        let Some(i) = self.some(random) else { return };
        let tensor = self.tensor(i).clone();
        let handle = self.live[i].handle;
        if tensor.numel() == 0 || !self.host_reaches(&tensor) {
            // SAFETY: a live handle.
            let code = unsafe { aoti_wgpu_mark_written(handle) }.cast_signed();
            assert!(code == 0 || code == 0x12);
            if code == 0 && tensor.packed_view && tensor.numel() > 0 {
                // All of the dense buffer goes to the base; its contents may be old.
                self.forget(&tensor);
            }
            return;
        }
        let pointer = self.data_ptr(i).cast::<u8>();
        ok(aoti_wgpu_synchronize().cast_signed());
        let value = random.next() as u8 & 1;
        if tensor.packed_view {
            let overlaps = model::may_share_places(&tensor.sizes, &tensor.strides);
            let mut elements = tensor.read();
            if !overlaps {
                // SAFETY: the dense buffer holds all elements, and no work uses it.
                unsafe { pointer.write(value) };
                elements.bytes[0] = value;
                elements.known[0] = true;
            }
            // SAFETY: a live handle.
            let code = unsafe { aoti_wgpu_mark_written(handle) }.cast_signed();
            if overlaps {
                assert_eq!(code, 0x12);
            } else {
                ok(code);
                tensor.write(&elements);
            }
        } else {
            // SAFETY: the first element's first byte, in memory that no work uses.
            unsafe { pointer.write(value) };
            let at = tensor.places()[0];
            let mut memory = tensor.storage.memory.borrow_mut();
            memory.bytes[at] = value;
            memory.known[at] = true;
            drop(memory);
            // SAFETY: a live handle.
            ok(unsafe { aoti_wgpu_mark_written(handle) }.cast_signed());
        }
    }

    fn forget(&self, tensor: &Tensor) {
        let bytes = tensor.numel() as usize * tensor.dtype.size;
        let mut elements = tensor.read();
        elements.known = vec![false; bytes];
        tensor.write(&elements);
        if tensor.storage.place == Place::Borrowed {
            self.learn_arena();
        }
    }

    /// Takes over what the arena holds.
    fn learn_arena(&self) {
        ok(aoti_wgpu_synchronize().cast_signed());
        let mut memory = self.arena_storage.memory.borrow_mut();
        memory.bytes.copy_from_slice(bytemuck::cast_slice(&self.arena[..]));
        memory.known.fill(true);
    }

    fn item(&mut self, random: &mut Random) {
        let Some(i) = self.some(random) else { return };
        let tensor = self.tensor(i).clone();
        let mut value = -1.0f64;
        // SAFETY: a live handle and an output.
        let code = unsafe { aoti_torch_item_float64(self.live[i].handle, &mut value) };
        if tensor.numel() != 1 {
            assert_eq!(code, 0x12);
            assert_eq!(value, -1.0, "an output was written by a call that failed");
            return;
        }
        let elements = tensor.read();
        if elements.known.iter().all(|&known| known)
            && let Some(wanted) = tensor.dtype.whole(&elements.bytes)
        {
            ok(code);
            assert_eq!(value, wanted);
        }
    }

    // ---- Memory that is known by its address -----------------------------------------

    fn allocate(&mut self, random: &mut Random) {
        let bytes = random.pick(&[0usize, 1, 3, 4, 64, 100, 256, 700]);
        let mut pointer = null_mut();
        // SAFETY: an output.
        ok(unsafe { aoti_torch_mps_malloc(&mut pointer, bytes) });
        assert_eq!(pointer.is_null(), bytes == 0);
        if bytes > 0 {
            self.allocations
                .push(Allocation { pointer, storage: Storage::new(bytes, Place::Device) });
        }
    }

    fn allocation(&self, random: &mut Random) -> Option<usize> {
        let count = self.allocations.len() as u64;
        (count > 0).then(|| random.below(count) as usize)
    }

    fn memcpy(&mut self, random: &mut Random) {
        let Some(i) = self.allocation(random) else { return };
        let to = &self.allocations[i];
        let size = to.storage.bytes as u64;
        let offset = random.below(size) as usize;
        let bytes = random.below(size - offset as u64 + 1) as usize;
        let mut source: Vec<u8> = (0..bytes + 5).map(|_| random.next() as u8).collect();
        // SAFETY: both ranges lie in their memory.
        ok(unsafe { aoti_torch_mps_memcpy(to.pointer, offset, 5, bytes, source.as_mut_ptr()) });
        let mut memory = to.storage.memory.borrow_mut();
        memory.bytes[offset..offset + bytes].copy_from_slice(&source[5..]);
        memory.known[offset..offset + bytes].fill(true);
        drop(memory);
        source.fill(0xdd);
        // One byte more than there is.
        let long = size as usize - offset + 1;
        let mut source = vec![0u8; long];
        // SAFETY: the source is long enough; the destination is refused.
        let code =
            unsafe { aoti_torch_mps_memcpy(to.pointer, offset, 0, long, source.as_mut_ptr()) };
        assert_eq!(code, 0x12);
    }

    fn copy_buffer(&mut self, random: &mut Random) {
        let (Some(a), Some(b)) = (self.allocation(random), self.allocation(random)) else { return };
        let (src, dst) = (&self.allocations[a], &self.allocations[b]);
        let from = random.below(src.storage.bytes as u64) as usize;
        let to = random.below(dst.storage.bytes as u64) as usize;
        let room = (src.storage.bytes - from).min(dst.storage.bytes - to);
        let bytes = random.below(room as u64 + 1) as usize;
        // SAFETY: both ranges lie in their memory.
        ok(unsafe { aoti_torch_mps_copy_buffer(src.pointer, dst.pointer, bytes, from, to) });
        let copied = src.storage.memory.borrow().clone();
        let mut memory = dst.storage.memory.borrow_mut();
        memory.bytes[to..to + bytes].copy_from_slice(&copied.bytes[from..from + bytes]);
        memory.known[to..to + bytes].copy_from_slice(&copied.known[from..from + bytes]);
    }

    fn free(&mut self, random: &mut Random) {
        let Some(i) = self.allocation(random) else { return };
        let pointer = self.allocations[i].pointer;
        // SAFETY: not the start of an allocation.
        assert_eq!(unsafe { aoti_torch_mps_free(pointer.wrapping_byte_add(1)) }, 0x12);
        // SAFETY: an allocation that is freed once.
        ok(unsafe { aoti_torch_mps_free(pointer) });
        self.allocations.swap_remove(i);
        // SAFETY: refused.
        assert_eq!(unsafe { aoti_torch_mps_free(pointer) }, 0x12);
    }

    // ---- Kernels ----------------------------------------------------------------------

    fn library(&mut self) -> (AOTIMetalShaderLibraryHandle, AOTIMetalKernelFunctionHandle) {
        if let Some(library) = &self.library {
            return (library.handle, library.function);
        }
        let (mut handle, mut function) = (null_mut(), null_mut());
        // SAFETY: C strings and outputs.
        unsafe {
            ok(aoti_torch_mps_create_shader_library(SOURCE.as_ptr(), &mut handle));
            let name = c"next_value".as_ptr();
            ok(aoti_torch_mps_get_kernel_function(handle, name, &mut function));
            let mut none = null_mut();
            let name = c"no_such".as_ptr();
            assert_eq!(aoti_torch_mps_get_kernel_function(handle, name, &mut none), 0x12);
            assert!(none.is_null());
        }
        self.dead_functions.retain(|&dead| dead != function);
        self.library = Some(Library { handle, function });
        (handle, function)
    }

    fn dispatch(&mut self, random: &mut Random) {
        // Kernels of integers, over whatever bytes: views of that type are made by from_pool.
        let ints: Vec<usize> = (0..self.live.len())
            .filter(|&i| {
                self.live[i].tensor.as_ref().is_some_and(|t| t.dtype == model::I32 && t.numel() > 0)
            })
            .collect();
        if ints.is_empty() {
            return;
        }
        let (out, input) = (random.pick(&ints), random.pick(&ints));
        let (to, from) = (self.tensor(out).clone(), self.tensor(input).clone());
        if self.memory == "host" {
            return;
        }
        // A kernel counts elements from the true offset, whatever the strides are.
        let reach = |t: &Tensor| (t.storage_bytes / 4) as i64 - t.offset;
        let length = random.below(reach(&to).min(reach(&from)) as u64 + 1) as usize;
        let start = |t: &Tensor| t.base + t.offset as usize * 4;
        let (at, source) = (start(&to), start(&from));
        let bytes = length * 4;
        let apart = at + bytes <= source || source + bytes <= at;
        if to.same_memory(&from) && !apart && at != source {
            return;
        }
        // Where another blob lies over part of what is written, its copy is another's:
        // arguments of one dispatch that overlap are joined, so this is fine.
        let (_, function) = self.library();
        let step = random.below(1000) as i64 - 500;
        // SAFETY: live handles.
        unsafe {
            ok(aoti_torch_mps_start_encoding(function));
            ok(aoti_torch_mps_set_arg_tensor(function, 0, self.live[out].handle));
            ok(aoti_torch_mps_set_arg_tensor(function, 1, self.live[input].handle));
            ok(aoti_torch_mps_set_arg_int(function, 2, step));
            match random.below(3) {
                0 => ok(aoti_torch_mps_dispatch_single(function, length as u64)),
                1 => ok(aoti_torch_mps_dispatch_single_with_group_size(
                    function,
                    length as u64,
                    random.pick(&[1, 3, 32, 1000]),
                )),
                _ => ok(aoti_torch_mps_dispatch_array(function, [length as u64].as_ptr(), 1)),
            }
        }
        let copied = from.storage.memory.borrow().clone();
        let mut memory = to.storage.memory.borrow_mut();
        for i in 0..length {
            let (at, source) = (at + i * 4, source + i * 4);
            let value = i32::from_ne_bytes(copied.bytes[source..source + 4].try_into().unwrap());
            let value = value.wrapping_add(step as i32).to_ne_bytes();
            let known = copied.known[source..source + 4].iter().all(|&k| k);
            memory.bytes[at..at + 4].copy_from_slice(&value);
            memory.known[at..at + 4].fill(known);
        }
        drop(memory);
        let unknown = !to.storage.memory.borrow().known.iter().all(|&k| k);
        if to.storage.place == Place::Borrowed && unknown {
            self.learn_arena();
        }
    }

    fn end_library(&mut self, random: &mut Random) {
        if let Some(library) = self.library.take() {
            if let Some(i) = self.some(random) {
                // Set and never dispatched.
                // SAFETY: live handles.
                unsafe {
                    ok(aoti_torch_mps_start_encoding(library.function));
                    ok(aoti_torch_mps_set_arg_tensor(library.function, 0, self.live[i].handle));
                }
            }
            // SAFETY: a live library, then a dead one.
            unsafe {
                ok(aoti_torch_mps_delete_shader_library(library.handle));
                assert_eq!(aoti_torch_mps_delete_shader_library(library.handle), 0x12);
            }
            self.dead_functions.push(library.function);
        }
    }

    fn order(&mut self, random: &mut Random) {
        match random.below(4) {
            0 => ok(aoti_wgpu_trim().cast_signed()),
            1 => aoti_wgpu_set_flush_interval(random.pick(&[0, 1, 2, 7, 64])),
            2 => cleanup_memory(),
            _ => {
                ok(aoti_wgpu_synchronize().cast_signed());
                self.check_arena();
            }
        }
    }

    // ---- Handles that go ----------------------------------------------------------------

    fn delete(&mut self, random: &mut Random) {
        if self.live.is_empty() {
            return;
        }
        let i = random.below(self.live.len() as u64) as usize;
        self.delete_at(i);
    }

    fn delete_at(&mut self, i: usize) {
        let live = self.live.swap_remove(i);
        // SAFETY: a live handle.
        ok(unsafe { aoti_torch_delete_tensor_object(live.handle) });
        self.dead.push(live.handle);
        if self.dead.len() > 64 {
            self.dead.remove(0);
        }
        if live.tensor.is_some_and(|t| t.storage.place == Place::Borrowed)
            && !self
                .live
                .iter()
                .any(|l| l.tensor.as_ref().is_some_and(|t| t.storage.place == Place::Borrowed))
        {
            // The last handle to the caller's memory has gone: all of it is there.
            self.compare_arena();
        }
    }

    fn delete_again(&mut self, random: &mut Random) {
        if self.dead.is_empty() {
            return;
        }
        let dead = random.pick(&self.dead);
        hostile::refuses_handle(dead);
    }

    fn nonsense(&mut self, random: &mut Random) {
        let live = self.some(random).map(|i| self.live[i].handle);
        let library = self.library.as_ref().map(|l| (l.handle, l.function));
        hostile::nonsense(random, live, library, &self.dead_functions);
    }

    fn delete_everything(&mut self, random: &mut Random) {
        for i in 0..self.live.len() {
            if self.live[i].tensor.is_some() && random.chance(3) {
                self.check(i);
            }
        }
        self.check_counts();
        while !self.live.is_empty() {
            self.delete(random);
        }
        while !self.allocations.is_empty() {
            let i = random.below(self.allocations.len() as u64) as usize;
            // SAFETY: an allocation that is freed once.
            ok(unsafe { aoti_torch_mps_free(self.allocations.swap_remove(i).pointer) });
        }
        self.end_library(random);
        self.compare_arena();
        let after = stats();
        assert_eq!(after.live_handles, 0);
        assert_eq!(
            (after.live_storages, after.live_device_bytes, after.live_host_bytes),
            (0, 0, 0),
            "live storages, device bytes and host bytes after all handles were deleted"
        );
        if random.chance(2) {
            ok(aoti_wgpu_trim().cast_signed());
            assert_eq!(stats().pooled_bytes, 0);
        }
    }

    // ---- Checks -------------------------------------------------------------------------

    fn check_values(&mut self, random: &mut Random) {
        if let Some(i) = self.some(random) {
            self.check(i);
        }
    }

    /// The elements as a copy to the host shows them.
    fn check(&self, i: usize) {
        let tensor = self.tensor(i);
        let wanted = tensor.read();
        let mut found = vec![0xcc; wanted.bytes.len()];
        let blob = host_blob(&mut found, &tensor.sizes, tensor.dtype);
        // SAFETY: live handles.
        unsafe {
            ok(aoti_torch_copy_(blob, self.live[i].handle, 0));
            ok(aoti_torch_delete_tensor_object(blob));
        }
        compare(&found, &wanted, || format!("{tensor:?}"));
    }

    /// The elements as the data pointer shows them.
    fn check_pointer(&mut self, random: &mut Random) {
        let packed: Vec<usize> = (0..self.live.len())
            .filter(|&i| self.live[i].tensor.as_ref().is_some_and(|t| t.packed_view))
            .collect();
        let i = match self.some(random) {
            _ if !packed.is_empty() && !random.chance(3) => random.pick(&packed),
            Some(i) => i,
            None => return,
        };
        let tensor = self.tensor(i).clone();
        let pointer = self.data_ptr(i);
        if tensor.storage.place == Place::Borrowed && !tensor.packed_view && tensor.numel() > 0 {
            let start = self.arena_pointer().wrapping_add(tensor.range().start);
            assert_eq!(pointer.cast(), start, "a blob's pointer is the caller's");
        }
        let wanted = tensor.read();
        if tensor.numel() == 0 {
            return;
        }
        let dense = tensor.packed_view || tensor.strides == model::contiguous(&tensor.sizes);
        if self.host_reaches(&tensor) && dense {
            if !tensor.packed_view {
                ok(aoti_wgpu_synchronize().cast_signed());
            }
            // SAFETY: as many bytes as the elements have, which no work writes.
            let found = unsafe { std::slice::from_raw_parts(pointer.cast(), wanted.bytes.len()) };
            compare(found, &wanted, || format!("through the pointer: {tensor:?}"));
        } else if dense && tensor.storage.place == Place::Device {
            let mut handle = null_mut();
            let rank = tensor.sizes.len() as i64;
            // SAFETY: an address in a live allocation.
            ok(unsafe {
                aoti_torch_create_tensor_from_blob(
                    pointer,
                    rank,
                    tensor.sizes.as_ptr(),
                    null(),
                    0,
                    tensor.dtype.code,
                    13,
                    0,
                    &mut handle,
                )
            });
            let mut found = vec![0xcc; wanted.bytes.len()];
            let blob = host_blob(&mut found, &tensor.sizes, tensor.dtype);
            // SAFETY: live handles.
            unsafe {
                ok(aoti_torch_copy_(blob, handle, 0));
                ok(aoti_torch_delete_tensor_object(blob));
                ok(aoti_torch_delete_tensor_object(handle));
            }
            compare(&found, &wanted, || format!("a blob over the pointer: {tensor:?}"));
        }
    }

    fn check_attributes(&self, i: usize) {
        let handle = self.live[i].handle;
        let mut defined = false;
        // SAFETY: a live handle and an output.
        ok(unsafe { aoti_torch_is_defined(handle, &mut defined) });
        let Some(tensor) = &self.live[i].tensor else {
            assert!(!defined);
            return;
        };
        assert!(defined);
        let (mut sizes, mut strides) = (null_mut(), null_mut());
        let (mut rank, mut numel, mut offset, mut storage) = (0, 0, 0, 0);
        let (mut dtype, mut device, mut dense) = (0, 0, false);
        // SAFETY: a live handle and outputs.
        unsafe {
            ok(aoti_torch_get_sizes(handle, &mut sizes));
            ok(aoti_torch_get_strides(handle, &mut strides));
            ok(aoti_torch_get_dim(handle, &mut rank));
            ok(aoti_torch_get_numel(handle, &mut numel));
            ok(aoti_torch_get_storage_offset(handle, &mut offset));
            ok(aoti_torch_get_storage_size(handle, &mut storage));
            ok(aoti_torch_get_dtype(handle, &mut dtype));
            ok(aoti_torch_get_device_type(handle, &mut device));
            ok(aoti_torch_is_contiguous(handle, &mut dense));
        }
        assert!(!sizes.is_null() && !strides.is_null());
        // SAFETY: as many entries as dimensions.
        let found = unsafe {
            (
                std::slice::from_raw_parts(sizes, rank as usize).to_vec(),
                std::slice::from_raw_parts(strides, rank as usize).to_vec(),
            )
        };
        assert_eq!(numel, tensor.numel());
        assert_eq!((dtype, device == 13), (tensor.dtype.code, tensor.mps));
        assert_eq!(found.0, tensor.sizes);
        if tensor.packed_view {
            let bytes = tensor.numel() * tensor.dtype.size as i64;
            assert_eq!(found.1, model::contiguous(&tensor.sizes));
            assert_eq!((offset, storage, dense), (0, bytes, true));
        } else {
            assert_eq!(found.1, tensor.strides);
            assert_eq!((offset, storage), (tensor.offset, tensor.storage_bytes as i64));
        }
    }

    fn check_counts(&self) {
        let stats = stats();
        assert_eq!(stats.live_handles, self.live.len() as u64);
        let mut seen: Vec<*const Storage> = Vec::new();
        let mut least = 0;
        let tensors = self.live.iter().filter_map(|l| l.tensor.as_ref()).map(|t| &t.storage);
        for storage in tensors.chain(self.allocations.iter().map(|a| &a.storage)) {
            if storage.place == Place::Device && !seen.contains(&Rc::as_ptr(storage)) {
                seen.push(Rc::as_ptr(storage));
                least += storage.bytes as u64;
            }
        }
        assert!(stats.live_device_bytes >= least, "{} < {least}", stats.live_device_bytes);
    }

    fn check_arena(&self) {
        let memory = self.arena_storage.memory.borrow();
        compare(bytemuck::cast_slice(&self.arena[..]), &memory, || "the arena".into());
    }

    /// As [`Machine::check_arena`], when no handle to it is left: without a wait.
    fn compare_arena(&self) {
        self.check_arena();
    }
}

fn packed(sizes: &[i64], strides: &[i64]) -> bool {
    model::is_packed(sizes, strides)
}

fn convert(elements: &Memory, from: Type, to: Type) -> Option<Memory> {
    let mut out = Memory::default();
    for (bytes, known) in elements.bytes.chunks(from.size).zip(elements.known.chunks(from.size)) {
        if !known.iter().all(|&k| k) {
            return None;
        }
        out.bytes.extend(to.of_whole(from.whole(bytes)?));
    }
    out.known = vec![true; out.bytes.len()];
    Some(out)
}

fn host_blob(bytes: &mut [u8], sizes: &[i64], dtype: Type) -> Handle {
    let mut handle = null_mut();
    // SAFETY: `bytes` holds the elements, and outlives the handle.
    ok(unsafe {
        aoti_torch_create_tensor_from_blob(
            bytes.as_mut_ptr().cast(),
            sizes.len() as i64,
            sizes.as_ptr(),
            null(),
            0,
            dtype.code,
            0,
            0,
            &mut handle,
        )
    });
    handle
}

#[track_caller]
fn compare(found: &[u8], wanted: &Memory, what: impl Fn() -> String) {
    assert_eq!(found.len(), wanted.bytes.len());
    for (i, &byte) in found.iter().enumerate() {
        assert!(
            !wanted.known[i] || byte == wanted.bytes[i],
            "byte {i} is {byte}, not {}: {}\nfound  {found:?}\nwanted {:?}",
            wanted.bytes[i],
            what(),
            wanted.bytes
        );
    }
}
