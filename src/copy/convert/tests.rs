use super::*;

/// Converts one value given and wanted as little-endian bytes.
fn convert(src: DType, value: &[u8], dst: DType) -> Vec<u8> {
    let one = Layout::contiguous(&[]).unwrap();
    let plan = ConvertPlan::new((&one, 0, dst), (&one, 0, src)).unwrap();
    let mut out = vec![0; dst.size()];
    run_slices(&plan, &mut out, value).unwrap();
    out
}

fn from_f32(value: f32, dst: DType) -> Vec<u8> {
    convert(DType::F32, &value.to_le_bytes(), dst)
}

#[test]
fn halves_agree_with_the_half_crate() {
    for bits in 0..=u16::MAX {
        let (h, b) = (half::f16::from_bits(bits), half::bf16::from_bits(bits));
        for (dtype, want) in [(DType::F16, h.to_f32()), (DType::BF16, b.to_f32())] {
            let got = convert(dtype, &bits.to_le_bytes(), DType::F32);
            let got = f32::from_le_bytes(got.try_into().unwrap());
            assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(), "{bits:x}");
        }
    }
    let mut bits = 1u32;
    for _ in 0..300_000 {
        bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // Ties, and the neighbours of ties, of both formats more often than by chance.
        for near in
            [bits, bits & !0x1fff | 0x1000, bits & !0xffff | 0x8000, bits & !0xffff | 0x7fff]
        {
            let value = f32::from_bits(near);
            let (h, b) = (half::f16::from_f32(value), half::bf16::from_f32(value));
            assert_eq!(from_f32(value, DType::F16), h.to_bits().to_le_bytes(), "{near:x}");
            assert_eq!(from_f32(value, DType::BF16), b.to_bits().to_le_bytes(), "{near:x}");
        }
    }
}

#[test]
fn floats_to_integers_truncate_and_end_at_the_range() {
    let cases = [
        (1.9, 1, 1, 1),
        (-1.9, -1, 0, -1),
        (300.0, 127, 255, 300),
        (-300.0, -128, 0, -300),
        (3e9, 127, 255, i32::MAX),
        (f32::NEG_INFINITY, -128, 0, i32::MIN),
        (f32::NAN, 0, 0, 0),
    ];
    for (value, i8_, u8_, i32_) in cases {
        assert_eq!(from_f32(value, DType::I8), i8::to_le_bytes(i8_), "{value}");
        assert_eq!(from_f32(value, DType::U8), u8::to_le_bytes(u8_), "{value}");
        assert_eq!(from_f32(value, DType::I32), i32_.to_le_bytes(), "{value}");
    }
}

#[test]
fn integers_wrap_and_bools_are_unequal_to_zero() {
    assert_eq!(convert(DType::I32, &(-129i32).to_le_bytes(), DType::U8), [127]);
    assert_eq!(convert(DType::I64, &(1i64 << 40 | 5).to_le_bytes(), DType::I16), [5, 0]);
    assert_eq!(convert(DType::U8, &[200], DType::I8), [200]);
    assert_eq!(convert(DType::U8, &[255], DType::I64), 255i64.to_le_bytes());
    for (value, want) in [(0.0, 0), (-0.0, 0), (f32::NAN, 1), (1e-45, 1), (0.5, 1)] {
        assert_eq!(from_f32(value, DType::Bool), [want], "{value}");
    }
    assert_eq!(convert(DType::Bool, &[7], DType::F32), 1f32.to_le_bytes());
    assert_eq!(
        convert(DType::U64, &u64::MAX.to_le_bytes(), DType::F32),
        1.8446744e19f32.to_le_bytes()
    );
}

#[test]
fn other_types_are_refused_by_name() {
    let one = Layout::contiguous(&[]).unwrap();
    let text = ConvertPlan::new((&one, 0, DType::F32), (&one, 0, DType::C64)).unwrap_err();
    assert_eq!(text.to_string(), "not supported: a conversion from complex64 to float32");
}

#[test]
fn strides_are_walked_on_both_sides() {
    let src = Layout::new(&[2, 3], &[1, 4], 1).unwrap();
    let dst = Layout::new(&[2, 3], &[5, 1], 2).unwrap();
    let from: Vec<u8> = (0..12u16).flat_map(|i| (i * 100).to_le_bytes()).collect();
    let mut to = [-1f32; 12];
    let mut bytes: Vec<u8> = to.iter().flat_map(|v| v.to_le_bytes()).collect();
    let plan = ConvertPlan::new((&dst, 0, DType::F32), (&src, 0, DType::U16)).unwrap();
    run_slices(&plan, &mut bytes, &from).unwrap();
    for i in 0..2 {
        for j in 0..3 {
            to[2 + i * 5 + j] = ((1 + i + j * 4) * 100) as f32;
        }
    }
    assert_eq!(bytes, to.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>());
}
