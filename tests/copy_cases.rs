//! Views that broke other libraries, and those that compiled programs take, by the
//! host plan; the device runs the same in `copy_device`.

#[path = "support/cases.rs"]
mod cases;
#[path = "support/layouts.rs"]
#[allow(dead_code)]
mod layouts;

use aoti_wgpu::copy::{host, plan::CopyPlan};
use aoti_wgpu::layout::Layout;
use cases::{PACKS, Pack, WRITES};

fn bytes(values: &[i64], element: usize) -> Vec<u8> {
    values.iter().flat_map(|v| i128::from(*v).to_le_bytes().into_iter().take(element)).collect()
}

fn copy(dst: &Layout, src: &Layout, element: usize, to: &mut [u8], from: &[u8]) {
    host::run_slices(&CopyPlan::new(dst, src, element).unwrap(), to, from).unwrap();
}

#[test]
fn packs_hold_the_elements_in_order() {
    for &Pack { name, base, count, size, stride, offset, expect } in PACKS {
        let counted: Vec<i64> = (0..count).collect();
        let base = if base.is_empty() { &counted } else { base };
        let view = Layout::new(size, stride, offset).unwrap();
        let packed = Layout::contiguous(size).unwrap();
        for element in [1, 2, 4, 8, 16] {
            let mut out = vec![0; expect.len() * element];
            copy(&packed, &view, element, &mut out, &bytes(base, element));
            assert_eq!(out, bytes(expect, element), "{name} of {element} bytes");
        }
    }
}

#[test]
fn writes_through_a_view_change_nothing_else() {
    for case in WRITES {
        let view = Layout::new(case.size, case.stride, case.offset).unwrap();
        let packed = Layout::contiguous(case.size).unwrap();
        for element in [1, 2, 4, 8, 16] {
            let mut base = bytes(case.base, element);
            copy(&view, &packed, element, &mut base, &bytes(case.values, element));
            assert_eq!(base, bytes(case.expect, element), "{} of {element} bytes", case.name);
        }
    }
}

#[test]
fn fills_through_three_rows() {
    let mut base = bytes(&[0; 9], 4);
    for row in 0..3 {
        let view = Layout::new(&[1, 3], &[3, 1], row * 3).unwrap();
        let values: Vec<i64> = (1..4).map(|i| row * 10 + i).collect();
        copy(&view, &Layout::contiguous(&[1, 3]).unwrap(), 4, &mut base, &bytes(&values, 4));
    }
    assert_eq!(base, bytes(&[1, 2, 3, 11, 12, 13, 21, 22, 23], 4));
}

#[test]
fn an_odd_cube_is_permuted_to_its_last_element() {
    let view = Layout::new(&[31, 31, 27], &[31, 1, 961], 0).unwrap();
    let from: Vec<u8> = (0..25_947u32).flat_map(u32::to_le_bytes).collect();
    let mut out = vec![0; from.len()];
    copy(&Layout::contiguous(view.sizes()).unwrap(), &view, 4, &mut out, &from);
    assert_eq!(out[out.len() - 4..], 25_946u32.to_le_bytes());
    for (i, offset) in layouts::walk(&view).into_iter().enumerate() {
        assert_eq!(out[i * 4..][..4], (offset as u32).to_le_bytes());
    }
}

/// The numbers of one list, or the one number, after `key`.
fn numbers(line: &str, key: &str) -> Vec<i64> {
    let rest = line.split_once(&format!("\"{key}\": ")).unwrap().1;
    let end = if rest.starts_with('[') { ']' } else { ',' };
    let list = rest.split(end).next().unwrap();
    list.trim_start_matches('[').split(',').filter_map(|n| n.trim().parse().ok()).collect()
}

#[test]
fn the_views_of_compiled_programs_pack_and_are_written_through() {
    let mut random = layouts::Random(1);
    let mut views = 0;
    for line in include_str!("data/program-views.json").lines().filter(|l| l.contains("sizes")) {
        let offset = numbers(line, "base_offset")[0] + numbers(line, "offset_increment")[0];
        let view = Layout::new(&numbers(line, "sizes"), &numbers(line, "strides"), offset).unwrap();
        let packed = Layout::contiguous(view.sizes()).unwrap();
        views += 1;
        for element in [1, 2, 4, 8, 16] {
            // The reference walks element by element: the large ones once.
            if view.end() > 1_000_000 && element != 2 {
                continue;
            }
            let base = random.bytes(view.end() as usize * element);
            let mut got = vec![0; packed.numel() as usize * element];
            let mut want = got.clone();
            copy(&packed, &view, element, &mut got, &base);
            layouts::copy(&packed, &view, element, &mut want, &base);
            assert!(got == want, "{line} of {element} bytes");
            if !view.overlaps() {
                let values = random.bytes(got.len());
                let (mut got, mut want) = (base.clone(), base);
                copy(&view, &packed, element, &mut got, &values);
                layouts::copy(&view, &packed, element, &mut want, &values);
                assert!(got == want, "written through: {line} of {element} bytes");
            }
        }
    }
    assert!(views > 100, "{views} views were read");
}
