//! Views that broke other libraries: small inputs with the right values, and those of
//! `../shared/cases` where that folder is there.

use crate::{Test, World};
use aoti_wgpu::dtype::DType;
use aoti_wgpu::tensor::{DeviceType, Tensor};
use serde_json::Value;
use std::path::PathBuf;

pub const TESTS: &[(&str, Test)] = &[
    ("cases::reported", reported),
    ("cases::shared_views", shared_views),
    ("cases::shared_program_views", shared_program_views),
];

fn integers(value: &Value) -> Vec<i64> {
    value.as_array().map(|a| a.iter().filter_map(Value::as_i64).collect()).unwrap_or_default()
}

fn dtype(name: &str) -> DType {
    match name {
        "f32" => DType::F32,
        "i64" => DType::I64,
        "bool" => DType::Bool,
        "i8" => DType::I8,
        other => panic!("a case of {other}"),
    }
}

fn bytes_of(values: &[i64], dtype: DType) -> Vec<u8> {
    values
        .iter()
        .flat_map(|&v| match dtype {
            DType::F32 => (v as f32).to_ne_bytes().to_vec(),
            DType::I64 => v.to_ne_bytes().to_vec(),
            _ => vec![v as u8],
        })
        .collect()
}

fn base_of(world: &World, case: &Value, dtype: DType) -> Tensor {
    let values = match &case["base"] {
        Value::Array(_) => integers(&case["base"]),
        _ => {
            let count = case["base_numel"]
                .as_i64()
                .or(case["expect_base"].as_array().map(|a| a.len() as i64));
            (0..count.unwrap()).collect()
        }
    };
    let bytes = bytes_of(&values, dtype);
    world.rt.from_bytes(&bytes, &[values.len() as i64], dtype, DeviceType::Mps).unwrap()
}

/// Runs one case of the file's format.
fn check(world: &World, case: &Value) {
    let id = case["id"].as_str().unwrap();
    let rt = &world.rt;
    let op = case["op"].as_str().unwrap();
    if op == "plan" {
        return;
    }
    let dtype = dtype(case["dtype"].as_str().unwrap());
    let base = base_of(world, case, dtype);
    let view = |of: &Tensor, sizes: &Value, strides: &Value, offset: &Value| {
        let offset = offset.as_i64().unwrap();
        rt.view(of, &integers(sizes), &integers(strides), offset).unwrap()
    };
    match op {
        "pack" => {
            let v = view(&base, &case["size"], &case["stride"], &case["offset"]);
            let dense = world.over_pointer(&v);
            let found = rt.to_vec(&dense).unwrap();
            assert_eq!(found, rt.to_vec(&v).unwrap(), "{id}");
            if case["expect"].is_array() {
                assert_eq!(found, bytes_of(&integers(&case["expect"]), dtype), "{id}");
            }
            if let Some(last) = case["expect_last"].as_i64() {
                assert!(found.ends_with(&bytes_of(&[last], dtype)), "{id}");
            }
        }
        "write_through_view" => {
            let v = view(&base, &case["size"], &case["stride"], &case["offset"]);
            let values = bytes_of(&integers(&case["vals"]), dtype);
            let source = rt.from_bytes(&values, v.sizes(), dtype, DeviceType::Mps).unwrap();
            rt.copy(&v, &source, false).unwrap();
            let expected = bytes_of(&integers(&case["expect_base"]), dtype);
            assert_eq!(rt.to_vec(&base).unwrap(), expected, "{id}");
        }
        "fill_through_views" => {
            let expected = integers(&case["expect_base"]);
            let mut next = expected.iter().copied();
            for v in case["views"].as_array().unwrap() {
                let v = view(&base, &v[0], &v[1], &v[2]);
                let values: Vec<i64> = next.by_ref().take(v.numel() as usize).collect();
                rt.write_bytes(&v, &bytes_of(&values, dtype)).unwrap();
            }
            assert_eq!(rt.to_vec(&base).unwrap(), bytes_of(&expected, dtype), "{id}");
        }
        "view_of_view" => {
            let first = view(&base, &case["first"][0], &case["first"][1], &case["first"][2]);
            let second = view(&first, &case["second"][0], &case["second"][1], &case["second"][2]);
            let expected = bytes_of(&integers(&case["expect"]), dtype);
            assert_eq!(rt.to_vec(&second).unwrap(), expected, "{id}");
        }
        other => panic!("{id}: a case of {other}"),
    }
}

/// The same kinds of input as the shared file's, held here.
fn reported(world: &World) {
    let text = r#"[
      {"id":"second half","op":"pack","dtype":"f32","base_numel":16,"base":"iota","size":[2,4],
       "stride":[4,1],"offset":8,"expect":[8,9,10,11,12,13,14,15]},
      {"id":"columns from an offset","op":"pack","dtype":"f32","base_numel":12,"base":"iota",
       "size":[3,2],"stride":[4,1],"offset":2,"expect":[2,3,6,7,10,11]},
      {"id":"permuted write","op":"write_through_view","dtype":"f32","base":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],
       "size":[1,2,2,2],"stride":[16,1,8,4],"offset":2,"vals":[100,101,102,103,104,105,106,107],
       "expect_base":[0,0,100,104,0,0,101,105,0,0,102,106,0,0,103,107]},
      {"id":"every second","op":"write_through_view","dtype":"f32","base":[0,0,0,0,0,0,0,0],"size":[4],
       "stride":[2],"offset":0,"vals":[1,2,3,4],"expect_base":[1,0,2,0,3,0,4,0]},
      {"id":"expanded scalar","op":"pack","dtype":"i64","base_numel":1,"base":[1],"size":[10],
       "stride":[0],"offset":0,"expect":[1,1,1,1,1,1,1,1,1,1]},
      {"id":"expanded bool","op":"pack","dtype":"bool","base_numel":2,"base":[1,0],"size":[2,2],
       "stride":[1,0],"offset":0,"expect":[1,1,0,0]},
      {"id":"transposed i64","op":"pack","dtype":"i64","base_numel":6,"base":[0,0,1,0,0,1],"size":[3,2],
       "stride":[1,3],"offset":0,"expect":[0,0,0,0,1,1]},
      {"id":"bytes from an odd offset","op":"write_through_view","dtype":"bool",
       "base":[0,0,0,0,0,0,0,0],"size":[6],"stride":[1],"offset":1,"vals":[1,1,1,1,1,1],
       "expect_base":[0,1,1,1,1,1,1,0]},
      {"id":"one byte","op":"write_through_view","dtype":"i8","base":[1,2,3,4],"size":[1],"stride":[1],
       "offset":2,"vals":[9],"expect_base":[1,2,9,4]},
      {"id":"sizes of one","op":"pack","dtype":"f32","base_numel":6,"base":"iota","size":[2,1,3,1],
       "stride":[3,77,1,99],"offset":0,"expect":[0,1,2,3,4,5]},
      {"id":"nothing","op":"pack","dtype":"f32","base_numel":0,"base":"iota","size":[0,1],
       "stride":[1,1],"offset":0,"expect":[]},
      {"id":"shared places","op":"pack","dtype":"f32","base_numel":8,"base":"iota","size":[2,2,2],
       "stride":[5,1,1],"offset":0,"expect":[0,1,1,2,5,6,6,7]},
      {"id":"view of a view","op":"view_of_view","dtype":"f32","base_numel":24,"base":"iota",
       "first":[[4,5],[5,1],4],"second":[[2,3],[3,1],2],"expect":[6,7,8,9,10,11]}
    ]"#;
    let cases: Vec<Value> = serde_json::from_str(text).unwrap();
    cases.iter().for_each(|case| check(world, case));
}

fn shared(name: &str) -> Option<Vec<Value>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/cases").join(name);
    let text = std::fs::read_to_string(path).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

fn shared_views(world: &World) {
    for case in shared("views.json").unwrap_or_default() {
        check(world, &case);
    }
}

/// Every view of compiled programs, for each element size: packed, and written through.
fn shared_program_views(world: &World) {
    let rt = &world.rt;
    for case in shared("program-views.json").unwrap_or_default() {
        let sizes = integers(&case["sizes"]);
        let strides = integers(&case["strides"]);
        let offset =
            case["base_offset"].as_i64().unwrap() + case["offset_increment"].as_i64().unwrap();
        let reach = |sizes: &[i64], strides: &[i64], offset: i64| {
            offset + 1 + sizes.iter().zip(strides).map(|(s, t)| (s - 1) * t).sum::<i64>()
        };
        let end = reach(&sizes, &strides, offset).max(reach(
            &integers(&case["base_sizes"]),
            &integers(&case["base_strides"]),
            case["base_offset"].as_i64().unwrap(),
        ));
        let mut offsets = vec![offset as usize];
        for (&size, &stride) in sizes.iter().zip(&strides) {
            offsets = offsets
                .iter()
                .flat_map(|&o| (0..size as usize).map(move |i| o + i * stride as usize))
                .collect();
        }
        let mut distinct = offsets.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let large = end > 1 << 20;
        for dtype in [DType::U8, DType::BF16, DType::F32, DType::I64, DType::C128] {
            let n = dtype.size();
            if large && n > 4 {
                continue;
            }
            let storage: Vec<u8> = (0..end as usize * n)
                .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
                .collect();
            let base = rt.from_bytes(&storage, &[end], dtype, DeviceType::Mps).unwrap();
            let v = rt.view(&base, &sizes, &strides, offset).unwrap();
            let expected: Vec<u8> =
                offsets.iter().flat_map(|&o| storage[o * n..(o + 1) * n].iter().copied()).collect();
            let dense = world.over_pointer(&v);
            assert!(rt.to_vec(&dense).unwrap() == expected, "{case} {dtype}");
            if distinct.len() != offsets.len() {
                continue;
            }
            let values: Vec<u8> = expected.iter().map(|b| !b).collect();
            let source = rt.from_bytes(&values, &sizes, dtype, DeviceType::Mps).unwrap();
            rt.copy(&v, &source, false).unwrap();
            let mut written = storage;
            for (chunk, &o) in values.chunks_exact(n).zip(&offsets) {
                written[o * n..(o + 1) * n].copy_from_slice(chunk);
            }
            assert!(rt.to_vec(&base).unwrap() == written, "{case} {dtype} written through");
        }
    }
}
