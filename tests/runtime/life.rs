//! Owners, order and memory: nothing lost, nothing left.

use crate::copies::again;
use crate::{Test, World};
use aoti_wgpu::dtype::DType;
use aoti_wgpu::layout::Layout;
use aoti_wgpu::runtime::MemoryMode;
use aoti_wgpu::tensor::DeviceType;

pub const TESTS: &[(&str, Test)] = &[
    ("life::every_order_of_deletion", every_order_of_deletion),
    ("life::blobs_at_one_address", blobs_at_one_address),
    ("life::device_addresses", device_addresses),
    ("life::constants_outlive_their_allocation", constants_outlive_their_allocation),
    ("life::the_pool", the_pool),
    ("life::limits", limits),
    ("life::recycled_memory_is_not_handed_out_early", recycled_memory),
    ("life::many_threads", many_threads),
    ("life::a_gibibyte_with_holes", a_gibibyte_with_holes),
];

/// Owner, view at an offset, packed view, its second reference and its dense buffer,
/// dropped in every order.
fn every_order_of_deletion(world: &World) {
    let rt = &world.rt;
    let before = rt.stats();
    let mut orders = vec![vec![]];
    for _ in 0..5 {
        orders = orders
            .iter()
            .flat_map(|o: &Vec<usize>| {
                (0..5).filter(|i| !o.contains(i)).map(|i| [o.clone(), vec![i]].concat())
            })
            .collect();
    }
    assert_eq!(orders.len(), 120);
    for order in orders {
        let base = world.iota(&[4, 6]);
        let part = rt.view(&base, &[2, 6], &[6, 1], 12).unwrap();
        let packed = rt.view(&base, &[4, 3], &[6, 1], 0).unwrap();
        let dense = world.over_pointer(&packed);
        let mut all = [Some(base), Some(part), Some(packed.clone()), Some(packed), Some(dense)];
        let expected = [0.0, 12.0, 0.0, 0.0, 0.0];
        for i in order {
            let tensor = all[i].take().unwrap();
            assert_eq!(world.floats(&tensor)[0], expected[i]);
            drop(tensor);
            for (left, expected) in all.iter().zip(expected) {
                if let Some(tensor) = left {
                    assert_eq!(world.floats(tensor)[0], expected);
                }
            }
        }
        let after = rt.stats();
        assert_eq!(after.live_device_bytes, before.live_device_bytes);
        assert_eq!(after.live_storages, before.live_storages);
    }
}

fn blobs_at_one_address(world: &World) {
    let rt = &world.rt;
    let mut host = [1.0f32, 2.0, 3.0, 4.0];
    let data = host.as_mut_ptr();
    for order in 0..2 {
        let blob = |device| {
            let layout = Layout::contiguous(&[4]).unwrap();
            // SAFETY: `host` outlives both tensors of this turn.
            unsafe { rt.blob(data.cast(), layout, DType::F32, device) }.unwrap()
        };
        let (a, b) = (blob(DeviceType::Cpu), blob(DeviceType::Mps));
        rt.zero(&rt.view(&a, &[1], &[1], order).unwrap()).unwrap();
        assert_eq!(world.floats(&b)[order as usize], 0.0);
        if order == 0 { drop(a) } else { drop(b) }
    }
    assert_eq!(host, [0.0, 0.0, 3.0, 4.0]);
    assert_eq!(rt.stats().live_storages, 0);
}

fn device_addresses(world: &World) {
    let rt = &world.rt;
    let t = world.iota(&[100]);
    let start = rt.data_ptr(&t).unwrap();
    let at = |offset: isize, count: i64| {
        let layout = Layout::contiguous(&[count]).unwrap();
        // SAFETY: addresses inside a live allocation; others are refused or not read.
        unsafe { rt.blob(start.wrapping_offset(offset), layout, DType::F32, DeviceType::Mps) }
    };
    let inside = at(40, 90).unwrap();
    assert!(inside.shares_storage(&t));
    assert_eq!(world.floats(&inside)[0], 10.0);
    assert!(at(40, 91).unwrap_err().to_string().contains("storage of 400 bytes"));
    assert!(at(2, 1).unwrap_err().to_string().contains("multiple"));
    drop(t);
    assert_eq!(world.floats(&inside)[0], 10.0, "a view keeps the allocation");
    drop(inside);
    if world.memory == Some(MemoryMode::Device) {
        assert_eq!(start as usize % 256, 0);
        for offset in [0, 40, 400, 512] {
            assert!(at(offset, 1).unwrap_err().to_string().contains("no live device allocation"));
        }
    }
}

fn constants_outlive_their_allocation(world: &World) {
    let rt = &world.rt;
    let before = rt.stats();
    let address = rt.malloc(256).unwrap();
    let constant = |offset: i64, count| {
        let layout = Layout::new(&[count], &[1], offset).unwrap();
        // SAFETY: inside the live allocation.
        unsafe { rt.blob(address as *mut u8, layout, DType::F32, DeviceType::Mps) }.unwrap()
    };
    let (a, b) = (constant(0, 16), constant(16, 48));
    rt.write_bytes(&b, &[7; 192]).unwrap();
    rt.free(address).unwrap();
    assert!(rt.free(address).is_err());
    rt.free(0).unwrap();
    drop(a);
    assert_eq!(rt.to_vec(&b).unwrap(), [7; 192]);
    drop(b);
    assert_eq!(rt.stats().live_device_bytes, before.live_device_bytes);
}

fn the_pool(world: &World) {
    let rt = &world.rt;
    drop(world.iota(&[1000]));
    let first = rt.stats();
    assert_eq!(first.live_device_bytes, 0);
    assert!(first.pooled_bytes >= 4000);
    let t = world.iota(&[900]);
    let second = rt.stats();
    assert_eq!(second.pool_hits, first.pool_hits + 1);
    assert_eq!(second.live_device_bytes, 3600, "exact, not the pool's rounding");
    drop(t);
    rt.trim().unwrap();
    assert_eq!(rt.stats().pooled_bytes, 0);
    let rt = again(world, |config| config.pool_bytes = 0);
    drop(rt.from_bytes(&[0; 64], &[64], DType::U8, DeviceType::Mps).unwrap());
    assert_eq!(rt.stats().pooled_bytes, 0);
}

fn limits(world: &World) {
    let rt = again(world, |config| config.memory_limit = Some(1 << 20));
    let empty =
        |bytes: i64| rt.empty(Layout::contiguous(&[bytes]).unwrap(), DType::U8, DeviceType::Mps);
    drop(empty(600 << 10).unwrap());
    // The pool holds 600 KiB and is emptied for this.
    let held = empty(900 << 10).unwrap();
    let text = empty(200 << 10).unwrap_err().to_string();
    assert!(text.contains("AOTI_WGPU_MEMORY_LIMIT_MB") && text.contains("204800"), "{text}");
    drop(held);
    empty(200 << 10).unwrap();
    if world.has_gpu() {
        let huge = Layout::contiguous(&[1 << 20, 1 << 20]).unwrap();
        let text = world.rt.empty(huge, DType::F32, DeviceType::Mps).unwrap_err().to_string();
        assert!(text.contains("largest buffer"), "{text}");
    }
}

/// Work that is queued on a freed tensor must not reach the next owner of its memory.
fn recycled_memory(world: &World) {
    let rt = &world.rt;
    for _ in 0..50 {
        let a = world.iota(&[4096]);
        let b = rt.view(&a, &[64, 64], &[1, 64], 0).unwrap();
        let c = rt.clone_tensor(&b, true).unwrap();
        let d = rt.empty(Layout::contiguous(&[64, 64]).unwrap(), DType::F32, DeviceType::Mps);
        let d = d.unwrap();
        rt.copy(&d, &rt.view(&c, &[64, 64], &[64, 1], 0).unwrap(), true).unwrap();
        let expected = world.floats(&d);
        drop((a, b, c, d));
        let again = rt.from_slice(&[5.0f32; 4096], &[4096], DType::F32, DeviceType::Mps).unwrap();
        assert!(world.floats(&again).iter().all(|&v| v == 5.0));
        assert_eq!(expected[1], 1.0);
    }
}

fn many_threads(world: &World) {
    let rt = &world.rt;
    let shared = world.iota(&[32, 32]);
    std::thread::scope(|scope| {
        for thread in 0..8u32 {
            let shared = shared.clone();
            scope.spawn(move || {
                for round in 0..25i64 {
                    let own = world.iota(&[16, 16]);
                    let v = rt.view(&own, &[16, 8], &[16, 1], round % 8).unwrap();
                    let found = world.floats(&world.over_pointer(&v));
                    assert_eq!(found[9], (16 + 1 + round % 8) as f32, "thread {thread}");
                    let column = rt.view(&shared, &[32], &[32], i64::from(thread)).unwrap();
                    assert_eq!(world.floats(&column)[2], (64 + thread) as f32);
                    let copy = rt.clone_tensor(&shared, false).unwrap();
                    assert_eq!(world.floats(&copy)[1023], 1023.0);
                }
            });
        }
    });
    drop(shared);
    assert_eq!(rt.stats().live_storages, 0);
}

/// A tensor of many bindings' size is allocated, viewed with holes, packed and read.
fn a_gibibyte_with_holes(world: &World) {
    let rt = &world.rt;
    let (rows, columns) = (1i64 << 14, 1i64 << 14);
    let base = rt.empty(Layout::contiguous(&[rows, columns]).unwrap(), DType::F32, DeviceType::Mps);
    let base = base.unwrap();
    rt.zero(&base).unwrap();
    // A mark in each corner of the view, and one that it leaves out.
    let mark = |row: i64, column: i64, value: f32| {
        let place = rt.view(&base, &[1], &[1], row * columns + column).unwrap();
        rt.write_bytes(&place, &value.to_ne_bytes()).unwrap();
    };
    mark(0, 0, 1.0);
    mark(rows - 1, 0, 2.0);
    mark(0, 1, 3.0);
    mark(rows - 1, columns - 2, 4.0);
    mark(rows / 2, columns / 2, 5.0);
    let half = columns / 2;
    let v = rt.view(&base, &[rows, half], &[columns, 2], 0).unwrap();
    let dense = world.over_pointer(&v);
    let at = |row: i64, column: i64| {
        let place = rt.view(&dense, &[1], &[1], row * half + column).unwrap();
        world.floats(&place)[0]
    };
    assert_eq!(at(0, 0), 1.0);
    assert_eq!(at(rows - 1, 0), 2.0);
    assert_eq!(at(0, 1), 0.0);
    assert_eq!(at(rows - 1, half - 1), 4.0);
    assert_eq!(at(rows / 2, half / 2), 5.0);
}
