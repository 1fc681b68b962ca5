use super::*;

fn layout(sizes: &[i64], strides: &[i64]) -> Layout {
    Layout::new(sizes, strides, 0).unwrap()
}

/// The offsets of all elements in row-major order: the plain walk.
fn walk(l: &Layout) -> Vec<i64> {
    let mut offsets = vec![l.offset()];
    for (&size, &stride) in l.sizes().iter().zip(l.strides()) {
        offsets = offsets.iter().flat_map(|&o| (0..size).map(move |i| o + i * stride)).collect();
    }
    offsets
}

#[test]
fn packed_needs_neither_holes_nor_overlap() {
    assert!(layout(&[2, 3], &[3, 1]).is_packed());
    assert!(layout(&[2, 3], &[1, 2]).is_packed());
    assert!(!layout(&[3, 3], &[2, 2]).is_packed(), "as many places as elements, shared");
    assert!(!layout(&[2, 2], &[4, 1]).is_packed());
    assert!(!layout(&[4], &[0]).is_packed());
    assert!(layout(&[1, 1], &[77, 99]).is_packed());
    assert!(layout(&[0, 5], &[3, 9]).is_packed());
    assert!(layout(&[], &[]).is_packed());
}

#[test]
fn limits_are_told_apart() {
    let invalid = |r: Result<Layout>| matches!(r, Err(Error::InvalidArgument { .. }));
    let unsupported = |r: Result<Layout>| matches!(r, Err(Error::NotSupported(_)));
    assert!(invalid(Layout::new(&[-1], &[1], 0)));
    assert!(invalid(Layout::new(&[1], &[-1], 0)));
    assert!(invalid(Layout::new(&[1], &[1], -1)));
    assert!(invalid(Layout::new(&[1; 17], &[1; 17], 0)));
    assert!(invalid(Layout::new(&[1], &[1, 1], 0)));
    assert!(invalid(Layout::contiguous(&[i64::MAX, 2])));
    assert!(invalid(Layout::contiguous(&[1 << 30, 1 << 30, 1 << 30])));
    assert!(invalid(Layout::new(&[2], &[1], i64::MAX)));
    assert!(unsupported(Layout::contiguous(&[1 << 31])));
    assert!(unsupported(Layout::new(&[1], &[1 << 31], 0)));
    assert!(Layout::contiguous(&[(1 << 31) - 1]).is_ok());
    assert_eq!(Layout::contiguous(&[0, 1 << 30, 1 << 30]).unwrap().numel(), 0);
}

#[test]
fn broadcasting_is_pytorchs() {
    let row = layout(&[3], &[1]);
    assert_eq!(row.broadcast_to(&[2, 3]).unwrap().strides(), &[0, 1]);
    assert_eq!(layout(&[1, 3], &[9, 2]).broadcast_to(&[4, 3]).unwrap().strides(), &[0, 2]);
    assert!(row.broadcast_to(&[2, 4]).is_err());
    assert!(layout(&[2, 3], &[3, 1]).broadcast_to(&[6]).is_err());
    assert!(layout(&[2, 3], &[3, 1]).broadcast_to(&[3, 2]).is_err());
    assert_eq!(row.broadcast_to(&[0, 3]).unwrap().numel(), 0);
}

#[test]
fn closing_gaps_keeps_the_order() {
    assert_eq!(layout(&[2, 3], &[1, 8]).closed().unwrap().strides(), &[1, 2]);
    assert_eq!(layout(&[2, 3], &[8, 2]).closed().unwrap().strides(), &[3, 1]);
    assert_eq!(layout(&[2, 3], &[0, 1]).closed().unwrap().strides(), &[3, 1]);
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    fn any_layout() -> impl Strategy<Value = Layout> {
        prop::collection::vec((0i64..5, 0i64..30), 0..5).prop_flat_map(|dims| {
            let (sizes, strides): (Vec<_>, Vec<_>) = dims.into_iter().unzip();
            (0i64..9).prop_map(move |offset| Layout::new(&sizes, &strides, offset).unwrap())
        })
    }

    proptest! {
        #[test]
        fn agrees_with_the_walk(l in any_layout()) {
            let offsets = walk(&l);
            prop_assert_eq!(offsets.len() as i64, l.numel());
            let end = offsets.iter().max().map_or(l.offset(), |m| m + 1);
            prop_assert_eq!(end, l.end());
            let mut sorted = offsets.clone();
            sorted.sort_unstable();
            sorted.dedup();
            if !l.overlaps() {
                prop_assert_eq!(sorted.len(), offsets.len());
            }
            let row_major = offsets.iter().enumerate().all(|(i, &o)| o == l.offset() + i as i64);
            prop_assert_eq!(l.is_contiguous(), row_major);
            if l.is_packed() {
                prop_assert_eq!(sorted.len() as i64, l.extent());
            }
            let closed = l.closed().unwrap();
            prop_assert!(closed.is_packed());
        }
    }
}
