//! What small packs take from the allocator, counted by one that counts for each thread.
//!
//! wgpu's own part is not told apart: the commands that it keeps lie in vectors, which grow
//! now and then, so that the total is held to far less than one allocation a pack. Were
//! there one on the way in this crate, each pack would show it.

use aoti_wgpu::dtype::DType;
use aoti_wgpu::runtime::{Config, CopyEngine, MemoryMode, Runtime, list_adapters};
use aoti_wgpu::tensor::{DeviceType, Tensor};
use libtest_mimic::{Arguments, Failed, Trial};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is the system's; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Packs whose allocations are counted.
const PACKS: u64 = 1000;

/// Allocations that `work`, done [`PACKS`] times, makes on this thread.
fn allocations(mut work: impl FnMut()) -> u64 {
    let before = COUNT.get();
    (0..PACKS).for_each(|_| work());
    COUNT.get() - before
}

/// A base of 32 KiB and a view of half of its columns, 16 KiB.
fn base_and_view(rt: &Runtime) -> (Tensor, Tensor) {
    let zeros = vec![0f32; 64 * 128];
    let base = rt.from_slice(&zeros, &[64, 128], DType::F32, DeviceType::Mps).unwrap();
    let view = rt.view(&base, &[64, 64], &[128, 1], 0).unwrap();
    assert!(view.is_packed_view());
    (base, view)
}

/// Every pack of a view whose base changed is recorded, in one batch.
fn packs(rt: &Runtime) {
    let (base, view) = base_and_view(rt);
    rt.set_flush_interval(0);
    let pack = || {
        rt.mark_written(&base).unwrap();
        rt.packed(&view).unwrap();
    };
    // The first ones make the pipeline, the group and most of the vectors.
    allocations(pack);
    let before = rt.stats();
    let count = allocations(pack);
    let after = rt.stats();
    assert_eq!(after.packs - before.packs, PACKS, "each was a fill");
    // The tensor that is returned is one.
    let on_the_way = count - PACKS;
    println!("{on_the_way} allocations on the way of {PACKS} packs");
    assert!(on_the_way <= PACKS / 50, "{on_the_way}");
    rt.synchronize().unwrap();
}

/// The same by `copy_`, which returns nothing.
fn copies(rt: &Runtime) {
    let (_base, view) = base_and_view(rt);
    let out = rt.clone_tensor(&view, false).unwrap();
    rt.set_flush_interval(0);
    let copy = || rt.copy(&out, &view, true).unwrap();
    allocations(copy);
    let count = allocations(copy);
    println!("{count} allocations of {PACKS} copies");
    assert!(count <= PACKS / 50, "{count}");
    rt.synchronize().unwrap();
}

/// A view that is current already takes nothing but the tensor that is returned.
fn unchanged(rt: &Runtime) {
    let (_base, view) = base_and_view(rt);
    rt.packed(&view).unwrap();
    // What was recorded is submitted and waited for once.
    rt.data_ptr(&view).unwrap();
    let count = allocations(|| drop(rt.packed(&view).unwrap()));
    assert_eq!(count, PACKS);
    assert_eq!(allocations(|| assert!(!rt.data_ptr(&view).unwrap().is_null())), 0);
}

type Test = fn(&Runtime);

fn main() {
    let arguments = Arguments::from_args();
    let has_gpu = !list_adapters().is_empty();
    let tests: [(&str, Test); 3] = [("packs", packs), ("copies", copies), ("unchanged", unchanged)];
    let mut trials = Vec::new();
    for memory in [MemoryMode::Unified, MemoryMode::Device] {
        for (name, test) in tests {
            let trial = Trial::test(format!("{}::{name}", memory.name()), move || {
                let copy = CopyEngine::Gpu;
                test(&Runtime::new(Config { memory: Some(memory), copy, ..Config::default() }));
                Ok::<(), Failed>(())
            });
            trials.push(trial.with_ignored_flag(!has_gpu));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}
