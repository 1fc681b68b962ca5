//! The launches' arithmetic, done as the shaders do it, in numbers too large for the
//! memory of a test.

use super::super::plan::tests::walk;
use super::*;
use crate::layout::Layout;

const LIMITS: DeviceLimits =
    DeviceLimits { max_binding_bytes: 128 << 20, offset_alignment: 256, max_groups: 65535 };

fn constant(launch: &Launch, name: &str) -> u32 {
    launch.kernel.constants.iter().find(|(n, _)| *n == name).unwrap().1
}

/// `place` of walk.wgsl: (destination, source, index along dimension 0) of `item`,
/// found from the first item of its workgroup, `per_group` items each.
fn place(launch: &Launch, item: u32, per_group: u32) -> (u32, u32, u32) {
    let rank = constant(launch, "RANK") as usize;
    let dim = |d: usize| &launch.params[4 + 4 * d..][..4];
    let base = item / per_group * per_group;
    let mut rest = base;
    let mut begin = [0; 6];
    for (d, index) in begin.iter_mut().enumerate().take(rank - 1) {
        *index = rest % dim(d)[0];
        rest /= dim(d)[0];
    }
    begin[rank - 1] = rest;
    let (mut dst, mut src, mut inner) = (launch.params[0], launch.params[1], 0);
    let mut carry = item - base;
    for (d, begin) in begin.iter().enumerate().take(rank) {
        let &[size, divider, to, from] = dim(d) else { unreachable!() };
        let i = begin + carry;
        carry = match divider & 0xffff {
            _ if d + 1 == rank => 0,
            0 => u32::from(i >= size),
            factor => (i * factor) >> (divider >> 16),
        };
        let index = i - carry * size;
        assert!(index < size, "item {item}, dimension {d}: {launch:?}");
        dst += index * to;
        src += index * from;
        inner = if d == 0 { index } else { inner };
    }
    (dst, src, inner)
}

/// All launches of a copy, the buffers as large as the layouts need.
fn launches_of(dst: &Layout, src: &Layout, element: usize, limits: &DeviceLimits) -> Launches {
    let plan = CopyPlan::new(dst, src, element).unwrap();
    let mut out = Launches::new();
    let bytes = |end: u64| end.next_multiple_of(16);
    launches(&plan, bytes(plan.dst_end()), bytes(plan.src_end()), limits, &mut out).unwrap();
    for launch in &out {
        for window in [&launch.dst, &launch.src] {
            assert!(window.start % limits.offset_alignment == 0 && window.end % 4 == 0);
            assert!(window.start < window.end);
            assert!(window.end - window.start <= limits.max_binding_bytes, "{launch:?}");
        }
        assert!(launch.groups.iter().all(|&n| n > 0 && n <= limits.max_groups), "{launch:?}");
    }
    out
}

/// The source byte of the unit at destination byte `to`, a packed destination's.
fn strided_source_of(list: &Launches, unit: u64, to: u64) -> u64 {
    for launch in list {
        assert!(launch.kernel.name.starts_with("strided"), "{launch:?}");
        let per_group = 256 * constant(launch, "ITEMS");
        let first = launch.dst.start + u64::from(place(launch, 0, per_group).0) * unit;
        let total = u64::from(launch.params[2]);
        if (first..first + total * unit).contains(&to) {
            let item = (to - first) / unit;
            let groups = u64::from(launch.groups[0]) * u64::from(launch.groups[1]);
            assert!(item < groups * u64::from(per_group));
            let (dst, src, _) = place(launch, item as u32, per_group);
            assert_eq!(launch.dst.start + u64::from(dst) * unit, to);
            let from = launch.src.start + u64::from(src) * unit;
            assert!(from + unit <= launch.src.end);
            return from;
        }
    }
    panic!("no launch writes byte {to}");
}

#[test]
fn rows_beyond_two_to_the_31_elements() {
    // 2,147,486,400 elements in, an i32 has become negative.
    for (element, limit) in [(4usize, 128u64 << 20), (4, (1 << 31) - 4), (4, (1 << 32) - 4)] {
        let src = Layout::new(&[198_000, 64], &[10_944, 1], 0).unwrap();
        let dst = Layout::contiguous(src.sizes()).unwrap();
        let limits = DeviceLimits { max_binding_bytes: limit, ..LIMITS };
        let list = launches_of(&dst, &src, element, &limits);
        for row in [0u64, 1, 12_345, 196_224, 196_225, 197_999] {
            let from = strided_source_of(&list, 16, row * 64 * 4);
            assert_eq!(from, row * 10_944 * 4, "row {row}");
        }
        assert_eq!(strided_source_of(&list, 16, 196_225 * 256), 2_147_486_400 * 4);
    }
}

#[test]
fn a_cache_of_12_gigabytes_of_halves() {
    let sizes = [32, 1, 8, 1, 128];
    let strides = [201_326_592, 4_194_304, 524_288, 128, 1];
    let src = Layout::new(&sizes, &strides, 0).unwrap();
    assert_eq!(src.end() - 1, 6_244_794_495);
    let dst = Layout::contiguous(&sizes).unwrap();
    let list = launches_of(&dst, &src, 2, &LIMITS);
    for i in 0..32u64 {
        for j in 0..8 {
            let from = strided_source_of(&list, 16, (i * 8 + j) * 256);
            assert_eq!(from, (i * 201_326_592 + j * 524_288) * 2);
        }
    }
    assert_eq!(strided_source_of(&list, 16, 32 * 8 * 256 - 16), 6_244_794_496 * 2 - 16);
}

/// The pairs of places of one tile launch, in units: of the corners alone.
fn tile_corners(launch: &Launch) -> Vec<(u64, u64)> {
    let p = |i: usize| u64::from(launch.params[i]);
    [(0, 0), (p(2) - 1, 0), (0, p(3) - 1), (p(2) - 1, p(3) - 1)]
        .map(|(x, y)| (p(0) + x * p(4) + y * p(6), p(1) + x * p(5) + y * p(7)))
        .to_vec()
}

#[test]
fn more_tiles_than_one_dimension_of_a_grid_has() {
    let src = Layout::new(&[32, 4_200_000], &[1, 32], 0).unwrap();
    let dst = Layout::contiguous(src.sizes()).unwrap();
    let one = DeviceLimits { max_binding_bytes: (1 << 31) - 4, ..LIMITS };
    let list = launches_of(&dst, &src, 4, &one);
    assert_eq!(list.len(), 1);
    // Four tiles of 32 x 32 a workgroup.
    let groups = 4_200_000u32.div_ceil(4 * 32);
    assert_eq!(list[0].params[10], groups);
    assert!(groups > list[0].groups[0] && list[0].groups[1] > 1);
    assert!(list[0].groups[0] * list[0].groups[1] >= groups);
    // Cut into windows of 128 MiB on both sides, the corners still lie at their places.
    let list = launches_of(&dst, &src, 4, &LIMITS);
    let mut elements = 0;
    for launch in &list {
        assert!(launch.kernel.name.starts_with("transpose_4"));
        elements += u64::from(launch.params[2]) * u64::from(launch.params[3]);
        for (to, from) in tile_corners(launch) {
            let (to, from) = (launch.dst.start / 4 + to, launch.src.start / 4 + from);
            let (i, j) = (to / 4_200_000, to % 4_200_000);
            assert_eq!(from, j * 32 + i);
        }
    }
    assert_eq!(elements, 32 * 4_200_000);
}

#[test]
fn elements_further_apart_than_a_window() {
    let src = Layout::new(&[3, 2], &[1 << 30, 1], 5).unwrap();
    let dst = Layout::new(&[3, 2], &[1, 1 << 29], 1).unwrap();
    let list = launches_of(&dst, &src, 4, &LIMITS);
    assert_eq!(list.len(), 6);
    for launch in &list {
        let (to, from, _) = place(launch, 0, 256);
        let at = |window: &Range<u64>, unit: u32| (window.start / 4 + u64::from(unit)) as usize;
        let pair = (at(&launch.dst, to), at(&launch.src, from));
        assert!(walk(&dst).into_iter().zip(walk(&src)).any(|p| p == pair));
    }
}

#[test]
fn small_numbers_divide_exactly() {
    for reach in [256u64, 1024, 4112, 1 << 14] {
        for size in (1..reach).chain([reach, reach + 1, 1 << 20]) {
            let divider = divider(size, reach);
            let (factor, shift) = (divider & 0xffff, divider >> 16);
            // The two sides of every multiple are where an error would show first.
            let multiples = (0..size + reach).step_by(size as usize);
            for i in multiples.flat_map(|i| [i, i.saturating_sub(1)]) {
                let i = i as u32;
                let got =
                    if factor == 0 { u32::from(i >= size as u32) } else { (i * factor) >> shift };
                assert_eq!(u64::from(got), u64::from(i) / size, "{i} / {size}");
            }
        }
    }
}

#[test]
fn limits_that_leave_no_room_are_named() {
    let one = Layout::contiguous(&[4]).unwrap();
    let plan = CopyPlan::new(&one, &one, 4).unwrap();
    let mut out = Launches::new();
    let text = launches(&plan, 16, 12, &LIMITS, &mut out).unwrap_err().to_string();
    assert!(text.starts_with("src is a buffer of 12 bytes"), "{text}");
    let none = DeviceLimits { max_binding_bytes: 8, ..LIMITS };
    let text = launches(&plan, 16, 16, &none, &mut out).unwrap_err().to_string();
    assert!(text.starts_with("not supported") && text.contains("bindings of 8 bytes"), "{text}");
    let few = DeviceLimits { max_groups: 100, ..LIMITS };
    assert!(launches(&plan, 16, 16, &few, &mut out).is_err());
}

#[test]
fn many_dimensions_are_peeled_off() {
    let sizes = [2i64; 9];
    let strides: Vec<i64> = (0..9).map(|d| 3i64.pow(d)).collect();
    let src = Layout::new(&sizes, &strides, 0).unwrap();
    let dst = Layout::contiguous(&sizes).unwrap();
    let list = launches_of(&dst, &src, 4, &LIMITS);
    let mut pairs = Vec::new();
    for launch in &list {
        for item in 0..launch.params[2] {
            let (to, from, _) = place(launch, item, 256);
            let at = |window: &Range<u64>, unit: u32| (window.start / 4 + u64::from(unit)) as usize;
            pairs.push((at(&launch.dst, to), at(&launch.src, from)));
        }
    }
    pairs.sort_unstable();
    assert_eq!(pairs, walk(&dst).into_iter().zip(walk(&src)).collect::<Vec<_>>());
}
