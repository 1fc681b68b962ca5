use super::super::host;
use super::*;
use proptest::prelude::*;

fn layout(sizes: &[i64], strides: &[i64], offset: i64) -> Layout {
    Layout::new(sizes, strides, offset).unwrap()
}

fn plan(dst: &Layout, src: &Layout, element: usize) -> CopyPlan {
    CopyPlan::new(dst, src, element).unwrap()
}

/// The offsets of all elements in row-major order: the plain walk.
pub(crate) fn walk(l: &Layout) -> Vec<usize> {
    let mut offsets = vec![l.offset() as usize];
    for (&size, &stride) in l.sizes().iter().zip(l.strides()) {
        let stride = stride as usize;
        offsets =
            offsets.iter().flat_map(|&o| (0..size as usize).map(move |i| o + i * stride)).collect();
    }
    offsets
}

/// A view of a contiguous base: dimensions in some order, each a slice with a step.
fn sliced(order_seed: u64, dims: &[(i64, i64, i64, i64)]) -> Layout {
    // (size, step, before, after)
    let mut order: Vec<usize> = (0..dims.len()).collect();
    order.sort_by_key(|&d| {
        order_seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(d as u32 * 11)
    });
    let (mut strides, mut next, mut offset) = (vec![0; dims.len()], 1, 0);
    for &d in &order {
        let (size, step, before, after) = dims[d];
        strides[d] = next * step;
        offset += before * next;
        next *= before + size * step + after;
    }
    let sizes: Vec<i64> = dims.iter().map(|d| d.0).collect();
    layout(&sizes, &strides, offset)
}

prop_compose! {
    /// Two layouts of the same sizes; the source may be expanded.
    pub(crate) fn pairs()(
        sizes in prop::collection::vec(prop_oneof![4 => 1i64..6, 2 => 6i64..40], 0..5)
            .prop_filter("small", |s| s.iter().product::<i64>() < 6000)
    )(
        dst in prop::collection::vec((prop_oneof![3 => Just(1i64), 1 => 2i64..4], 0i64..3, 0i64..3), sizes.len()),
        src in prop::collection::vec((prop_oneof![3 => Just(1i64), 1 => 2i64..4], 0i64..3, 0i64..3), sizes.len()),
        tight in any::<[bool; 2]>(),
        expand in prop::collection::vec(prop::bool::weighted(0.2), sizes.len()),
        orders in any::<[u64; 2]>(),
        sizes in Just(sizes),
    ) -> (Layout, Layout) {
        let dims = |given: &[(i64, i64, i64)], tight: bool| -> Vec<_> {
            sizes.iter().zip(given).map(|(&n, &(step, before, after))| {
                if tight { (n, 1, 0, 0) } else { (n, step, before, after) }
            }).collect()
        };
        let dst = sliced(orders[0], &dims(&dst, tight[0]));
        let src = sliced(orders[1], &dims(&src, tight[1]));
        let strides: Vec<i64> =
            src.strides().iter().zip(&expand).map(|(&s, &e)| if e { 0 } else { s }).collect();
        let src = layout(src.sizes(), &strides, src.offset());
        (dst, src)
    }
}

pub(crate) fn noise(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|i| (i.wrapping_mul(167) >> 3) as u8 ^ (i as u8).wrapping_mul(31) ^ seed).collect()
}

/// The destination's bytes after a plain element by element copy.
pub(crate) fn reference(
    dst: &Layout,
    src: &Layout,
    element: usize,
    to: &[u8],
    from: &[u8],
) -> Vec<u8> {
    let mut to = to.to_vec();
    for (d, s) in walk(dst).into_iter().zip(walk(src)) {
        to[d * element..][..element].copy_from_slice(&from[s * element..][..element]);
    }
    to
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn the_host_copies_as_the_plain_walk_does(
        (dst, src) in pairs(),
        element in prop::sample::select(vec![1usize, 2, 4, 8, 16]),
    ) {
        let from = noise(src.end_bytes(element).unwrap() as usize, 1);
        let before = noise(dst.end_bytes(element).unwrap() as usize + 5, 2);
        let mut to = before.clone();
        let plan = plan(&dst, &src, element);
        prop_assert_eq!(plan.bytes(), dst.numel() as u64 * element as u64);
        host::run_slices(&plan, &mut to, &from).unwrap();
        prop_assert!(to == reference(&dst, &src, element, &before, &from), "{plan:?}");
    }

    #[test]
    fn bases_off_the_alignment_copy_rightly(
        (dst, src) in pairs(),
        element in prop::sample::select(vec![2usize, 4, 8, 16]),
        dst_base in 0usize..20,
        src_base in 0usize..20,
    ) {
        let from = noise(src.end_bytes(element).unwrap() as usize + src_base, 3);
        let before = noise(dst.end_bytes(element).unwrap() as usize + dst_base, 4);
        let mut to = before.clone();
        let plan = CopyPlan::at(&dst, dst_base as u64, &src, src_base as u64, element).unwrap();
        host::run_slices(&plan, &mut to, &from).unwrap();
        let want = reference(&dst, &src, element, &before[dst_base..], &from[src_base..]);
        prop_assert!(to[..dst_base] == before[..dst_base] && to[dst_base..] == want, "{plan:?}");
    }

    #[test]
    fn a_fill_writes_the_view_alone(
        (dst, _) in pairs(),
        element in prop::sample::select(vec![1usize, 2, 4, 8, 16]),
        base in 0usize..20,
    ) {
        let pattern: Vec<u8> = noise(element, 7).into_iter().cycle().take(16).collect();
        let before = noise(dst.end_bytes(element).unwrap() as usize + base, 5);
        let mut to = before.clone();
        let plan = CopyPlan::fill(&dst, base as u64, element).unwrap();
        host::run_slices(&plan, &mut to, &pattern).unwrap();
        let mut want = before;
        for d in walk(&dst) {
            want[base + d * element..][..element].copy_from_slice(&pattern[..element]);
        }
        prop_assert!(to == want, "{plan:?}");
    }

    #[test]
    fn no_shared_byte_is_missed(
        (dst, src) in pairs(),
        shift in 0i64..64,
        element in prop::sample::select(vec![1usize, 2, 4]),
    ) {
        let src = src.with_offset(src.offset() + shift).unwrap();
        let written: std::collections::HashSet<_> = walk(&dst).into_iter().collect();
        if walk(&src).iter().any(|s| written.contains(s)) {
            prop_assert!(plan(&dst, &src, element).overlaps());
        }
    }
}

#[test]
fn what_lies_alike_is_one_run() {
    let whole = Layout::contiguous(&[4, 5, 6]).unwrap();
    let p = plan(&whole, &whole, 4);
    assert_eq!((p.form(), p.run(), p.unit()), (Form::Contiguous, 480, 16));
    let half = layout(&[32, 128, 64], &[128 * 128, 128, 1], 0);
    let p = plan(&Layout::contiguous(half.sizes()).unwrap(), &half, 2);
    assert_eq!((p.form(), p.run(), p.unit()), (Form::Runs, 128, 16));
    assert_eq!(p.dims(), [Dim { size: 4096, dst: 128, src: 256 }]);
    let odd = layout(&[100, 63], &[128, 1], 1);
    let p = plan(&Layout::contiguous(odd.sizes()).unwrap(), &odd, 2);
    assert_eq!((p.form(), p.run(), p.unit()), (Form::Runs, 126, 2));
}

#[test]
fn forms_are_told_by_the_strides() {
    let to = |sizes: &[i64]| Layout::contiguous(sizes).unwrap();
    let form = |src: &Layout, element| plan(&to(src.sizes()), src, element).form();
    assert_eq!(form(&layout(&[64, 64], &[1, 64], 0), 4), Form::Transpose { axis: 0 });
    assert_eq!(form(&layout(&[9, 64, 64], &[1, 640, 10], 0), 4), Form::Transpose { axis: 0 });
    assert_eq!(form(&layout(&[3, 4096], &[1, 3], 0), 4), Form::Elements, "too thin for tiles");
    assert_eq!(form(&layout(&[64], &[2], 0), 4), Form::Elements);
    assert_eq!(form(&layout(&[64, 8], &[1, 0], 0), 4), Form::Splat);
    assert_eq!(form(&layout(&[64, 8], &[0, 1], 0), 4), Form::Runs);
    assert_eq!(form(&layout(&[0, 8], &[0, 1], 0), 4), Form::Empty);
    assert_eq!(form(&layout(&[], &[], 3), 4), Form::Contiguous);
}

#[test]
fn column_ranges_of_one_matrix_do_not_overlap() {
    let columns = |from| layout(&[10, 4], &[16, 1], from);
    assert!(!plan(&columns(0), &columns(4), 4).overlaps());
    assert!(!plan(&columns(12), &columns(0), 4).overlaps());
    assert!(plan(&columns(2), &columns(4), 4).overlaps());
    assert!(!plan(&layout(&[8], &[2], 0), &layout(&[8], &[2], 1), 1).overlaps());
    assert!(plan(&columns(4), &columns(4), 4).is_identity());
    assert!(!plan(&columns(4), &columns(5), 4).is_identity());
}

#[test]
fn what_cannot_be_planned_is_refused_by_name() {
    let square = layout(&[4, 4], &[4, 1], 0);
    for (dst, src, element, name) in [
        (&square, &layout(&[4], &[1], 0), 4, "src"),
        (&layout(&[4, 4], &[0, 1], 0), &square, 4, "self"),
        (&square, &square, 3, "element size"),
        (&layout(&[4, 4], &[4, 1], i64::MAX / 4), &square, 8, "sizes"),
    ] {
        let text = CopyPlan::new(dst, src, element).unwrap_err().to_string();
        assert!(text.starts_with(name), "{text}");
    }
    let mut short = [0; 60];
    let text = host::run_slices(&plan(&square, &square, 4), &mut short, &[0; 64]).unwrap_err();
    assert!(text.to_string().starts_with("dst is 60 bytes"), "{text}");
}

#[test]
fn an_expansion_past_the_caches_is_written_to_its_last_byte() {
    // (sizes, source strides, destination offset), each just over what is streamed.
    for (sizes, strides, offset, element) in [
        (vec![5000i64, 3700], vec![0i64, 1], 3, 1usize),
        (vec![300, 9, 6211], vec![0, 1, 0], 7, 1),
        (vec![9, 3000, 333], vec![0, 666, 2], 1, 2),
        (vec![1500, 3001], vec![0, 3], 5, 4),
    ] {
        let dst = Layout::contiguous(&sizes).unwrap().with_offset(offset).unwrap();
        let src = layout(&sizes, &strides, 2);
        let from = noise(src.end_bytes(element).unwrap() as usize, 1);
        let mut to = vec![7; dst.end_bytes(element).unwrap() as usize + 9];
        let want = reference(&dst, &src, element, &to, &from);
        host::run_slices(&plan(&dst, &src, element), &mut to, &from).unwrap();
        assert!(to == want, "{sizes:?} {strides:?}");
    }
}
