//! Packed views: what they report, when they are filled, what is written through them.

use crate::copies::again;
use crate::{Test, World};
use aoti_wgpu::dtype::DType;
use aoti_wgpu::layout::Layout;
use aoti_wgpu::runtime::{MemoryMode, Views};
use aoti_wgpu::tensor::DeviceType;

pub const TESTS: &[(&str, Test)] = &[
    ("views::report_their_buffer", report_their_buffer),
    ("views::follow_the_base", follow_the_base),
    ("views::first_use", first_use),
    ("views::unchanged_base", unchanged_base),
    ("views::mark_written", mark_written),
    ("views::of_host_memory", of_host_memory),
    ("views::strided_on_request", strided_on_request),
    ("views::offsets", offsets),
    ("views::clones", clones),
    ("views::by_bytes", by_bytes),
];

fn report_their_buffer(world: &World) {
    let rt = &world.rt;
    let base = world.iota(&[4, 6]);
    let v = rt.view(&base, &[4, 3], &[6, 1], 1).unwrap();
    assert!(v.is_packed_view());
    assert_eq!(v.layout().strides(), [3, 1]);
    assert_eq!(v.layout().offset(), 0);
    assert_eq!(v.storage_bytes(), 48);
    assert_eq!(v.known_address(), None, "no buffer yet");
    let pointer = rt.data_ptr(&v).unwrap();
    assert_eq!(rt.data_ptr(&v.clone()).unwrap(), pointer, "a second handle, the same buffer");
    assert_eq!(v.known_address(), Some(pointer as usize));
    // Any order of the dimensions without holes is packed already.
    assert!(!rt.view(&base, &[6, 4], &[1, 6], 0).unwrap().is_packed_view());
    assert!(rt.view(&base, &[3, 3], &[2, 2], 0).unwrap().is_packed_view());
}

/// Write the base, read the view, write the view, read the base; no fill in vain.
fn follow_the_base(world: &World) {
    let rt = &world.rt;
    let base = world.iota(&[4, 6]);
    let v = rt.view(&base, &[4, 3], &[6, 1], 0).unwrap();
    let dense = world.over_pointer(&v);
    assert_eq!(world.floats(&dense)[3], 6.0);
    let fills = rt.stats();
    let pointer = rt.data_ptr(&v).unwrap();
    world.over_pointer(&v);
    let again = rt.stats();
    assert_eq!(again.packs, fills.packs, "nothing had changed");
    assert!(again.packs_skipped > fills.packs_skipped);

    let values: Vec<f32> = (0..24).map(|i| 100.0 + i as f32).collect();
    rt.write_bytes(&base, bytemuck::cast_slice(&values)).unwrap();
    assert_eq!(rt.data_ptr(&v).unwrap(), pointer);
    let dense = world.over_pointer(&v);
    assert_eq!(world.floats(&dense)[3], 106.0);
    assert_eq!(rt.stats().packs, again.packs + 1);

    let values = [1.0f32; 12];
    rt.write_bytes(&v, bytemuck::cast_slice(&values)).unwrap();
    let found = world.floats(&base);
    assert!((0..24).all(|i| found[i] == if i % 6 < 3 { 1.0 } else { 100.0 + i as f32 }));
    assert_eq!(world.floats(&world.over_pointer(&v)), values);
}

/// The first use of a packed view is one dispatch and at most one allocation, and none where
/// the pool has memory of its size.
fn first_use(world: &World) {
    if !world.has_gpu() {
        return;
    }
    let rt = &world.rt;
    let base = world.iota(&[64, 128]);
    rt.synchronize().unwrap();
    let use_one = || {
        let before = rt.stats();
        let v = rt.view(&base, &[64, 64], &[128, 1], 0).unwrap();
        assert_eq!(rt.stats().dispatches, before.dispatches, "making a view is no work");
        let dense = world.over_pointer(&v);
        let after = rt.stats();
        assert_eq!(after.dispatches, before.dispatches + 1);
        assert_eq!(after.packs, before.packs + 1);
        assert_eq!(world.floats(&dense)[64], 128.0);
        (after.pool_misses - before.pool_misses, after.pool_hits - before.pool_hits)
    };
    let (misses, hits) = use_one();
    assert_eq!(misses + hits, 1, "its dense buffer");
    rt.synchronize().unwrap();
    assert_eq!(use_one(), (0, 1), "the buffer of the first view");
}

/// A view that is packed again while its base is what it was costs the GPU nothing.
fn unchanged_base(world: &World) {
    let rt = &world.rt;
    let base = world.iota(&[64, 128]);
    let v = rt.view(&base, &[64, 64], &[128, 1], 0).unwrap();
    rt.packed(&v).unwrap();
    rt.synchronize().unwrap();
    let before = rt.stats();
    for _ in 0..3 {
        rt.packed(&v).unwrap();
        rt.data_ptr(&v).unwrap();
        world.over_pointer(&v);
    }
    rt.synchronize().unwrap();
    let after = rt.stats();
    assert_eq!(after.packs, before.packs);
    assert_eq!(after.dispatches, before.dispatches);
    assert_eq!(after.submits, before.submits);
    assert_eq!(
        (after.pool_hits, after.pool_misses, after.live_storages),
        (before.pool_hits, before.pool_misses, before.live_storages)
    );
}

fn mark_written(world: &World) {
    let rt = &world.rt;
    let base = world.iota(&[2, 4]);
    let v = rt.view(&base, &[2, 2], &[4, 1], 1).unwrap();
    // Without a pointer nothing can have been written through one.
    rt.mark_written(&v).unwrap();
    let dense = world.over_pointer(&v);
    rt.write_bytes(&dense, bytemuck::cast_slice(&[9.0f32, 8.0, 7.0, 6.0])).unwrap();
    rt.mark_written(&v).unwrap();
    assert_eq!(world.floats(&base), [0.0, 9.0, 8.0, 3.0, 4.0, 7.0, 6.0, 7.0]);
    let shared = rt.view(&base, &[2, 2], &[0, 1], 0).unwrap();
    rt.data_ptr(&shared).unwrap();
    assert!(rt.mark_written(&shared).unwrap_err().to_string().contains("share a place"));
    if world.memory == Some(MemoryMode::Unified) {
        let pointer = rt.data_ptr(&base).unwrap().cast::<f32>();
        rt.synchronize().unwrap();
        // SAFETY: unified memory of eight floats that no work uses.
        unsafe { pointer.add(1).write(55.0) };
        rt.mark_written(&base).unwrap();
        assert_eq!(world.floats(&world.over_pointer(&v))[0], 55.0);
    }
}

fn of_host_memory(world: &World) {
    let rt = &world.rt;
    let mut host: Vec<f32> = (0..12).map(|i| i as f32).collect();
    let before = rt.stats();
    {
        let layout = Layout::contiguous(&[3, 4]).unwrap();
        // SAFETY: `host` outlives the tensors.
        let t = unsafe { rt.blob(host.as_mut_ptr().cast(), layout, DType::F32, DeviceType::Mps) }
            .unwrap();
        assert_eq!(t.known_address(), Some(host.as_ptr() as usize));
        let v = rt.view(&t, &[3, 2], &[4, 1], 1).unwrap();
        assert!(v.is_packed_view());
        let pointer = rt.data_ptr(&v).unwrap().cast::<f32>();
        // SAFETY: a packed view of host memory is host memory, of six floats.
        let found = unsafe { std::slice::from_raw_parts(pointer, 6) };
        assert_eq!(found, [1.0, 2.0, 5.0, 6.0, 9.0, 10.0]);
        rt.zero(&v).unwrap();
    }
    assert_eq!(host, [0.0, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0, 7.0, 8.0, 0.0, 0.0, 11.0]);
    assert_eq!(rt.stats().live_storages, before.live_storages);
}

fn strided_on_request(world: &World) {
    let rt = again(world, |config| config.views = Views::Strided);
    let base = rt.from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[4], DType::F32, DeviceType::Mps).unwrap();
    let v = rt.view(&base, &[2], &[2], 1).unwrap();
    assert!(!v.is_packed_view());
    assert_eq!(v.layout().strides(), [2]);
    assert_eq!(rt.data_ptr(&v).unwrap() as usize, rt.data_ptr(&base).unwrap() as usize + 4);
    assert_eq!(rt.to_vec(&v).unwrap(), bytemuck::cast_slice::<f32, u8>(&[2.0, 4.0]));
}

fn offsets(world: &World) {
    let rt = &world.rt;
    let base = world.iota(&[10]);
    let v = rt.view(&base, &[4], &[1], 5).unwrap();
    let back = rt.view(&v, &[2], &[1], -5).unwrap();
    assert_eq!(world.floats(&back), [0.0, 1.0]);
    let refused =
        |sizes: &[i64], increment| rt.view(&v, sizes, &[1], increment).unwrap_err().to_string();
    assert!(refused(&[1], -6).contains("-6"));
    assert!(refused(&[6], 0).contains("storage of 40 bytes"));
    assert!(refused(&[1], i64::MAX).contains(&i64::MAX.to_string()));
}

fn clones(world: &World) {
    let rt = &world.rt;
    let base = world.iota(&[4, 6]);
    let v = rt.view(&base, &[4, 3], &[6, 1], 1).unwrap();
    assert_eq!(rt.clone_tensor(&v, false).unwrap().layout().strides(), [3, 1]);
    let kept = rt.clone_tensor(&v, true).unwrap();
    assert_eq!(kept.strided_layout().strides(), [6, 1]);
    assert_eq!(world.floats(&kept), world.floats(&v));
    let transposed = rt.view(&base, &[6, 4], &[1, 6], 0).unwrap();
    assert_eq!(rt.clone_tensor(&transposed, false).unwrap().layout().strides(), [1, 6]);
}

fn by_bytes(world: &World) {
    let rt = &world.rt;
    let pool = rt.from_bytes(&[0; 64], &[64], DType::U8, DeviceType::Mps).unwrap();
    let part = rt.view_bytes(&pool, 16, DType::F32, &[2, 2], &[4, 1]).unwrap();
    assert!(!part.is_packed_view());
    assert_eq!(part.layout().offset(), 4);
    assert!(rt.view_bytes(&pool, 18, DType::F32, &[1], &[1]).is_err());
    assert!(rt.view_bytes(&pool, 60, DType::F32, &[2], &[1]).is_err());
    assert!(rt.view_bytes(&pool, -4, DType::F32, &[1], &[1]).is_err());
}
