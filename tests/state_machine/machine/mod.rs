//! The machine: operations drawn from a seed, done by the library and by the model.

mod checks;
mod contents;
mod tensors;

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
