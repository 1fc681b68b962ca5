//! What kernels are made of besides operators: memory, control flow, reductions, atomics.

use super::device::{Arg, Device, Dispatch};

pub type Check = fn(&Device) -> Result<(), String>;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../fixtures/msl/", $name, ".metal"))
    };
}

/// The checks, and whether each needs 64-bit integers.
pub fn all() -> Vec<(&'static str, Check, bool)> {
    vec![
        ("grid_is_exact", grid_is_exact, false),
        ("narrow_stores_spare_neighbours", narrow_stores, false),
        ("views_at_any_offset", views, false),
        ("aliased_arguments", aliased_arguments, true),
        ("control_flow", control_flow, true),
        ("reductions", reductions, true),
        ("nan_in_reductions", nan_in_reductions, true),
        ("multistage_reductions", multistage, true),
        ("atomics", atomics, true),
        ("vectors_and_positions", vectors, false),
        ("early_return_before_barriers", early_return, true),
        ("functions", functions, true),
        ("functions_of_the_source", helpers, false),
    ]
}

pub fn bytes<T: bytemuck::NoUninit>(values: &[T]) -> Vec<u8> {
    let mut bytes = bytemuck::cast_slice(values).to_vec();
    bytes.resize(bytes.len().next_multiple_of(4).max(4), 0);
    bytes
}

pub fn values<T: bytemuck::AnyBitPattern>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), String> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("{what}: {found:?} instead of {expected:?}")),
    }
}

fn near(what: &str, found: f32, expected: f32, bound: f32) -> Result<(), String> {
    match found == expected || (found - expected).abs() <= bound * expected.abs().max(1.0) {
        true => Ok(()),
        false => Err(format!("{what}: {found:?} instead of {expected:?}")),
    }
}

/// Every thread of the grid once, none outside; folded dispatches; both places of the words.
fn grid_is_exact(device: &Device) -> Result<(), String> {
    let source =
        "kernel void f(device int* out, constant int& ks0, uint3 p [[thread_position_in_grid]],
            uint3 n [[threads_per_grid]]) {
        out[p.x + n.x * (p.y + n.y * p.z)] += ks0;
    }";
    for (grid, group) in
        [([100, 1, 1], [64, 1, 1]), ([3, 7, 5], [2, 4, 3]), ([1, 1, 1], [64, 4, 4])]
    {
        for fold in [None, Some(1), Some(3), Some(1000)] {
            for words_in_storage in [false, true] {
                let count = (grid[0] * grid[1] * grid[2]) as usize;
                let mut storages = vec![bytes(&vec![1_i32; count + 50])];
                let dispatch = Dispatch { grid, group, fold, words_in_storage };
                device.run(source, &mut storages, &[Arg::Buffer(0, 0), Arg::Int(-3)], dispatch)?;
                let mut expected = vec![-2; count];
                expected.extend([1; 50]);
                expect(&format!("{dispatch:?}"), values::<i32>(&storages[0]), expected)?;
            }
        }
    }
    Ok(())
}

fn narrow_stores(device: &Device) -> Result<(), String> {
    let count = 37;
    let inputs: Vec<f32> = (0..count).map(|i| i as f32 * 0.25 - 4.0).collect();
    for shift in [0_usize, 1, 3] {
        let sizes = [1, 1, 1, 2, 2, 2, 2];
        let mut storages: Vec<Vec<u8>> = sizes.iter().map(|size| vec![0xc3; 84 * size]).collect();
        storages.push(bytes(&inputs));
        let mut args: Vec<Arg> =
            sizes.iter().zip(0..).map(|(size, s)| Arg::Buffer(s, (size * shift) as u32)).collect();
        args.push(Arg::Buffer(7, 0));
        device.run(fixture!("narrow_stores"), &mut storages, &args, Dispatch::linear(count))?;
        for (storage, (&size, found)) in sizes.iter().zip(&storages).enumerate() {
            let mut expected = vec![0xc3; 84 * size];
            for (i, &x) in inputs.iter().enumerate() {
                let bits: u16 = match storage {
                    0 => (x > 0.5).into(),
                    1 | 2 => (x as i32 as u8).into(),
                    3 | 4 => x as i32 as u16,
                    5 => half::f16::from_f32(x).to_bits(),
                    _ => half::bf16::from_f32(x).to_bits(),
                };
                let at = size * (2 * i + shift);
                expected[at..at + size].copy_from_slice(&bits.to_le_bytes()[..size]);
            }
            expect(&format!("output {storage}, shift {shift}"), found, &expected)?;
        }
    }
    Ok(())
}

/// Arguments that start at elements 1, 2, 9, 12, 18 and 81 of their storages.
fn views(device: &Device) -> Result<(), String> {
    for (ty, size) in [("uchar", 1), ("ushort", 2), ("uint", 4)] {
        for (from, to) in [(1, 2), (9, 81), (12, 18), (81, 1)] {
            let source = format!(
                "kernel void f(device {ty}* out, constant {ty}* in, uint i [[thread_position_in_grid]]) {{ out[i] = in[i] + 1; }}"
            );
            let input: Vec<u8> = (0..200 * size).map(|i| (i % 251) as u8).collect();
            let mut storages = vec![vec![0; 200 * size], input.clone()];
            let args = [Arg::Buffer(0, (to * size) as u32), Arg::Buffer(1, (from * size) as u32)];
            device.run(&source, &mut storages, &args, Dispatch::linear(100))?;
            let mut expected = vec![0; 200 * size];
            for i in 0..100 {
                let at = size * (from + i);
                let mut word = [0; 4];
                word[..size].copy_from_slice(&input[at..at + size]);
                let sum = u32::from_le_bytes(word).wrapping_add(1).to_le_bytes();
                expected[size * (to + i)..][..size].copy_from_slice(&sum[..size]);
            }
            expect(&format!("{ty} from {from} to {to}"), &storages[0], &expected)?;
        }
    }
    Ok(())
}

/// `slice_update` in place: one storage, written through one argument and read through another.
fn aliased_arguments(device: &Device) -> Result<(), String> {
    let old: Vec<f32> = (0..36).map(|i| i as f32).collect();
    let new: Vec<f32> = (0..12).map(|i| 100.0 + i as f32).collect();
    let mut expected = old.clone();
    for row in 0..3 {
        expected[12 * row + 2..12 * row + 6].copy_from_slice(&new[4 * row..4 * row + 4]);
    }
    let sums: Vec<f32> = expected.chunks(12).map(|row| row.iter().sum()).collect();
    let mut storages = vec![vec![0; 12], bytes(&old), bytes(&new)];
    let args = [Arg::Buffer(0, 0), Arg::Buffer(1, 0), Arg::Buffer(2, 0), Arg::Buffer(1, 0)];
    device.run(fixture!("slice_update"), &mut storages, &args, Dispatch::rows(3, 12))?;
    expect("in place", values::<f32>(&storages[1]), expected)?;
    expect("sums", values::<f32>(&storages[0]), sums)
}

fn control_flow(device: &Device) -> Result<(), String> {
    let input: Vec<i32> = (0..10).map(|i| 3 * i + 1).collect();
    let mut storages = vec![vec![0; 48], bytes(&input)];
    let args = [Arg::Buffer(0, 0), Arg::Buffer(1, 0), Arg::Int(2)];
    device.run(fixture!("control"), &mut storages, &args, Dispatch::linear(12))?;
    let expected: Vec<i32> = (0..12_i32)
        .map(|x0| {
            if !(2..8).contains(&x0) {
                return -1;
            }
            let sum: i32 =
                (0..10).filter(|&i| i != 3 && i <= x0).map(|i| input[i as usize] + i).sum();
            let mut calls = 32 - (x0 as u32).leading_zeros() as i32;
            while {
                calls += 10;
                calls < 25
            } {}
            let both = x0 > 4;
            calls += i32::from(both);
            let either = x0 > 4 || {
                calls -= 1;
                calls > 0
            };
            let chosen = if x0 % 2 != 0 {
                calls += 1;
                calls - 1
            } else {
                calls += 100;
                calls
            };
            let bits = ((x0 as u32) << 30) >> 1 >> 28;
            sum + 1000 * calls
                + if both { 7 } else { 0 }
                + if either { 70 } else { 0 }
                + 3 * chosen
                + bits as i32
        })
        .collect();
    expect("control", values::<i32>(&storages[0]), expected)
}

fn run_reductions(device: &Device, input: &[f32], width: usize) -> Result<Vec<Vec<u8>>, String> {
    let rows = input.len() / width;
    // In the order of the kernel's outputs: four floats, three longs, int, bool, two floats.
    let sizes = [4, 4, 4, 4, 8, 8, 8, 4, 1, 4, 4];
    let mut storages: Vec<Vec<u8>> =
        sizes.iter().map(|size| vec![0; (size * rows).next_multiple_of(4)]).collect();
    storages.push(bytes(input));
    let mut args: Vec<Arg> = (0..12).map(|storage| Arg::Buffer(storage, 0)).collect();
    args.push(Arg::Int(width as i64));
    device.run(
        fixture!("reductions"),
        &mut storages,
        &args,
        Dispatch::rows(rows as u32, width as u32),
    )?;
    Ok(storages)
}

fn reductions(device: &Device) -> Result<(), String> {
    for width in [1_usize, 2, 5, 31, 32, 33, 64, 100, 257, 1024] {
        let rows = 3;
        // Quarters, so that sums are exact; extremes occur more than once.
        let input: Vec<f32> =
            (0..rows * width).map(|i| ((i * 37) % 29) as f32 * 0.25 - 3.0).collect();
        let found = run_reductions(device, &input, width)?;
        for (row, x) in input.chunks(width).enumerate() {
            let what = |name: &str| format!("{name} of {width}, row {row}");
            let float = |output: usize| values::<f32>(&found[output])[row];
            let long = |output: usize| values::<i64>(&found[output])[row];
            let max = x.iter().copied().fold(f32::MIN, f32::max);
            let min = x.iter().copied().fold(f32::MAX, f32::min);
            expect(&what("sum"), float(0), x.iter().sum())?;
            let product: f64 = x.iter().map(|&x| f64::from(x)).product();
            near(&what("prod"), float(1), product as f32, 1e-4)?;
            expect(&what("max"), float(2), max)?;
            expect(&what("min"), float(3), min)?;
            expect(&what("argmax"), long(4), x.iter().position(|&v| v == max).unwrap() as i64)?;
            expect(&what("argmin"), long(5), x.iter().position(|&v| v == min).unwrap() as i64)?;
            expect(&what("long sum"), long(6), x.iter().map(|&v| v as i64).sum())?;
            expect(&what("int max"), values::<i32>(&found[7])[row], max as i32)?;
            expect(&what("any"), found[8][row], u8::from(max > 3.5))?;
            let mean = x.iter().map(|&v| f64::from(v)).sum::<f64>() / width as f64;
            let squares = x.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>();
            near(&what("welford_reduce"), float(9), squares as f32, 1e-5)?;
            near(&what("welford_combine"), float(10), (squares / width as f64) as f32, 1e-5)?;
        }
    }
    Ok(())
}

fn nan_in_reductions(device: &Device) -> Result<(), String> {
    let mut input = vec![1.0_f32; 3 * 40];
    input[7] = f32::NAN;
    input[9] = f32::NAN;
    input[40 + 5] = f32::NEG_INFINITY;
    input[80 + 33] = f32::INFINITY;
    input[80 + 39] = f32::INFINITY;
    let found = run_reductions(device, &input, 40)?;
    let float = |output: usize| values::<f32>(&found[output]);
    let long = |output: usize| values::<i64>(&found[output]);
    expect(
        "NaN wins",
        (float(2)[0].is_nan(), float(3)[0].is_nan(), float(0)[0].is_nan()),
        (true, true, true),
    )?;
    expect("first NaN", (long(4)[0], long(5)[0]), (7, 7))?;
    expect(
        "-inf",
        (float(2)[1], float(3)[1], long(4)[1], long(5)[1]),
        (1.0, f32::NEG_INFINITY, 0, 5),
    )?;
    expect("inf", (float(2)[2], float(3)[2], long(4)[2], long(5)[2]), (f32::INFINITY, 1.0, 33, 0))
}

fn multistage(device: &Device) -> Result<(), String> {
    for width in [64_usize, 65, 200, 1000] {
        let input: Vec<f32> =
            (0..2 * width).map(|i| ((i * 7919) % 10007) as f32 - 5000.0).collect();
        let mut storages = vec![vec![0; 16], vec![0; 16], bytes(&input)];
        let mut args: Vec<Arg> = (0..3).map(|storage| Arg::Buffer(storage, 0)).collect();
        args.extend([Arg::Int(width as i64); 2]);
        device.run(fixture!("multistage"), &mut storages, &args, Dispatch::rows(2, 64))?;
        let count = |x: &[f32]| x.iter().filter(|&&v| v > 0.0).count() as i64;
        let best =
            |x: &[f32]| x.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0 as i64;
        expect("count", values::<i64>(&storages[0]), input.chunks(width).map(count).collect())?;
        expect("argmax", values::<i64>(&storages[1]), input.chunks(width).map(best).collect())?;
    }
    Ok(())
}

fn atomics(device: &Device) -> Result<(), String> {
    let count = 60;
    let targets: Vec<i64> = (0..count).map(|i| (i * 7) % 6 - i64::from(i == 20)).collect();
    let addends: Vec<f32> = (0..count).map(|i| (i % 5) as f32 - 1.0).collect();
    let mut sums = [0.0_f32; 5];
    let mut any = [0_u8; 5];
    let mut max = [-9.0_f32; 5];
    let mut least = 1000;
    for (&target, &addend) in targets.iter().zip(&addends) {
        if (0..5).contains(&target) {
            sums[target as usize] += addend;
            any[target as usize] |= u8::from(addend != 0.0);
            max[target as usize] = max[target as usize].max(addend);
            least = least.min(addend as i32);
        }
    }
    let whole = sums.map(|sum| sum as i64);
    let mut storages = vec![
        bytes(&[0.0_f32; 5]),
        bytes(&[0_i32; 5]),
        bytes(&[-1_i64; 5]),
        bytes(&[half::f16::ZERO.to_bits(); 6]),
        bytes(&[0_u16; 6]),
        bytes(&[-5_i16; 6]),
        bytes(&[3_i8; 8]),
        bytes(&[250_u8; 8]),
        bytes(&[0_u8; 8]),
        bytes(&[-9.0_f32; 5]),
        bytes(&[1000_i32; 2]),
        bytes(&targets),
        bytes(&addends),
    ];
    let args: Vec<Arg> = (0..storages.len()).map(|storage| Arg::Buffer(storage, 0)).collect();
    device.run(fixture!("atomics"), &mut storages, &args, Dispatch::linear(count as usize))?;
    expect("float", values::<f32>(&storages[0]), sums.to_vec())?;
    expect("int", values::<i32>(&storages[1]), whole.map(|v| v as i32).to_vec())?;
    expect("long", values::<i64>(&storages[2]), whole.map(|v| v - 1).to_vec())?;
    let halves: Vec<f32> =
        values::<u16>(&storages[3]).iter().map(|&v| half::f16::from_bits(v).to_f32()).collect();
    expect("half", &halves[..5], &sums)?;
    let halves: Vec<f32> =
        values::<u16>(&storages[4]).iter().map(|&v| half::bf16::from_bits(v).to_f32()).collect();
    expect("bfloat", &halves[..5], &sums)?;
    expect(
        "short",
        values::<i16>(&storages[5])[..6].to_vec(),
        [0, 1, 2, 3, 4, 5].map(|i| whole.get(i).map_or(-5, |&v| v as i16 - 5)).to_vec(),
    )?;
    expect(
        "char",
        values::<i8>(&storages[6]),
        (0..8).map(|i| whole.get(i).map_or(3, |&v| v as i8 + 3)).collect(),
    )?;
    expect(
        "uchar",
        values::<u8>(&storages[7]),
        (0..8).map(|i| whole.get(i).map_or(250, |&v| (v as u8).wrapping_add(250))).collect(),
    )?;
    expect("bool", &storages[8][..5], &any)?;
    expect("max", values::<f32>(&storages[9]), max.to_vec())?;
    expect("min", values::<i32>(&storages[10]), vec![1000, least])
}

fn vectors(device: &Device) -> Result<(), String> {
    let (grid, group) = ([5, 3, 2], [2, 2, 2]);
    let count = 30;
    let input: Vec<f32> = (0..4 * (count + 1)).map(|i| i as f32 * 0.5).collect();
    let mut storages = vec![vec![0; 16 * count], vec![0; 24 * count], bytes(&input)];
    let args = [Arg::Buffer(0, 0), Arg::Buffer(1, 0), Arg::Buffer(2, 0)];
    let dispatch = Dispatch { grid, group, fold: Some(5), words_in_storage: false };
    device.run(fixture!("vectors"), &mut storages, &args, dispatch)?;
    let (floats, words) = (values::<f32>(&storages[0]), values::<u32>(&storages[1]));
    for i in 0..count as u32 {
        let position = [i % 5, i / 5 % 3, i / 15];
        let packed = |v: [u32; 3]| v[0] + 100 * v[1] + 10000 * v[2];
        let at = |f: fn(u32, u32, u32) -> u32| {
            packed(std::array::from_fn(|d| f(position[d], group[d], grid[d])))
        };
        let local = position.map(|p| p % 2);
        let mut a: [f32; 4] = std::array::from_fn(|lane| input[4 * (i as usize + 1) + lane]);
        let b = [a[3] * 2.0, a[2] * 2.0];
        a[0] += b[0];
        a[1] += b[1];
        a[2] = a[0] * 0.5 + a[1];
        let c = [a[0], a[1], a[2], 2.0 + a[3]];
        let expected = [c[0] + 1.0, c[1] + 2.0, c[2] + 2.0, c[3] + 3.0];
        expect("lanes", &floats[4 * i as usize..][..4], &expected)?;
        let expected = [
            at(|p, g, _| p / g),
            packed(local),
            local[0] + 2 * local[1] + 4 * local[2],
            at(|_, g, n| n.div_ceil(g)),
            at(|p, g, n| g.min(n - p / g * g)),
            c[0].to_bits(),
        ];
        expect("positions", &words[6 * i as usize..][..6], &expected)?;
    }
    Ok(())
}

fn early_return(device: &Device) -> Result<(), String> {
    let index: Vec<i64> = (0..40).map(|i| if i % 3 == 2 { 99 } else { i }).collect();
    let table: Vec<f32> = (0..40).map(|i| i as f32 + 0.5).collect();
    let mut storages =
        vec![bytes(&[0.0_f32; 2]), bytes(&[-1.0_f32; 80]), bytes(&index), bytes(&table)];
    let args: Vec<Arg> = (0..4).map(|storage| Arg::Buffer(storage, 0)).collect();
    device.run(fixture!("early_return"), &mut storages, &args, Dispatch::rows(2, 40))?;
    let row: Vec<f32> = (0..40).map(|i| if i % 3 == 2 { -1.0 } else { table[i] }).collect();
    let sum: f32 = row.iter().filter(|&&v| v > 0.0).sum();
    expect("written", values::<f32>(&storages[1]), [row.clone(), row].concat())?;
    expect("sum", values::<f32>(&storages[0]), vec![sum; 2])
}

fn helpers(device: &Device) -> Result<(), String> {
    let input: Vec<f32> = (0..40).map(|i| i as f32 * 0.5 - 10.0).collect();
    let mut storages = vec![vec![0; 160], bytes(&input)];
    let args = [Arg::Buffer(0, 0), Arg::Buffer(1, 0)];
    device.run(fixture!("helpers"), &mut storages, &args, Dispatch::linear(40))?;
    let clipped = |x: f32, most: i32| {
        if x < -5.0 { -5.0 } else { x.min(most as f32) }
    };
    let expected = input.iter().zip(0..).map(|(&x, i)| {
        let i: i32 = i;
        let steps = 32 - (i as u32).leading_zeros();
        clipped(x, 4) * 2.0 + clipped(x, i) + (half::f16::from_f32(x + 0.1).to_f32()) + steps as f32
    });
    expect("helpers", values::<f32>(&storages[0]), expected.collect())
}

fn functions(device: &Device) -> Result<(), String> {
    let ints = [i32::MIN, i32::MIN + 1, -100, -7, -3, -1, 0, 1, 2, 3, 7, 33, 100, i32::MAX];
    let floats = [
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        0.499_999_97,
        -7.25,
        3.0,
        1e10,
        8_388_607.5,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        f32::MAX,
    ];
    let count = ints.len().max(floats.len()).pow(2);
    let pick = |i: usize, n: usize| (i / 16 % n, i % 16 % n);
    let (a, b): (Vec<i32>, Vec<i32>) =
        (0..count).map(|i| pick(i, ints.len())).map(|(x, y)| (ints[x], ints[y])).unzip();
    let (p, q): (Vec<f32>, Vec<f32>) =
        (0..count).map(|i| pick(i, floats.len())).map(|(x, y)| (floats[x], floats[y])).unzip();
    let mut storages = vec![
        vec![0; 32 * count],
        vec![0; 24 * count],
        vec![0; 8 * count],
        vec![0; 52 * count],
        vec![0; (6 * count).next_multiple_of(4)],
        bytes(&a),
        bytes(&b),
        bytes(&p),
        bytes(&q),
    ];
    let args: Vec<Arg> = (0..9).map(|storage| Arg::Buffer(storage, 0)).collect();
    device.run(fixture!("functions"), &mut storages, &args, Dispatch::linear(count))?;
    let found_ints = values::<i32>(&storages[0]);
    let found_longs = values::<i64>(&storages[1]);
    let found_uints = values::<u32>(&storages[2]);
    let found_floats = values::<f32>(&storages[3]);
    for i in 0..count {
        let (a, b, p, q) = (a[i], b[i], p[i], q[i]);
        let (quotient, rest) = match b {
            0 => (a, 0),
            _ => ((f64::from(a) / f64::from(b)).floor() as i64 as i32, {
                let rest = a.wrapping_rem(b);
                if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }
            }),
        };
        let power = match b {
            0.. => a.wrapping_pow(b as u32),
            _ => match a {
                1 => 1,
                -1 => {
                    if b % 2 == 0 {
                        1
                    } else {
                        -1
                    }
                }
                _ => 0,
            },
        };
        let expected = [
            quotient,
            rest,
            a.wrapping_abs(),
            a.max(b),
            a.min(b),
            a.clamp(-5, 5),
            power,
            a.count_ones() as i32 + 100 * a.leading_zeros() as i32,
        ];
        expect(&format!("ints {a} and {b}"), &found_ints[8 * i..][..8], &expected)?;
        let (wide_a, wide_b) = (i64::from(a), i64::from(b));
        let wide_quotient =
            if b == 0 { wide_a } else { (wide_a as f64 / wide_b as f64).floor() as i64 };
        let wide_rest = if b == 0 { 0 } else { wide_a - wide_b * wide_quotient };
        let wide_power = match b {
            0.. => wide_a.wrapping_pow(b as u32),
            _ => power.into(),
        };
        expect(
            &format!("longs {a} and {b}"),
            &found_longs[3 * i..][..3],
            &[wide_quotient, wide_rest, wide_power],
        )?;
        let (ua, ub) = (a as u32, b as u32);
        let expected = [ua.checked_div(ub).unwrap_or(ua), ua.checked_rem(ub).unwrap_or(0)];
        expect(&format!("uints {ua} and {ub}"), &found_uints[2 * i..][..2], &expected)?;
        let nan = p.is_nan() || q.is_nan();
        let expected = [
            p.max(q),
            if nan { f32::NAN } else { p.max(q) },
            p.min(q),
            if nan { f32::NAN } else { p.min(q) },
            p % q,
            p.floor(),
            p.ceil(),
            p.trunc(),
            p.round_ties_even(),
            p.round(),
            if p == 0.0 || p.is_nan() { if p.is_nan() { 0.0 } else { p } } else { p.signum() },
            p.abs(),
            p.copysign(q),
        ];
        for (which, (&found, expected)) in found_floats[13 * i..].iter().zip(expected).enumerate() {
            let same = found == expected || (found.is_nan() && expected.is_nan());
            if !same {
                return Err(format!(
                    "float function {which} of {p} and {q}: {found} instead of {expected}"
                ));
            }
        }
        let replaces = !q.is_nan() && (p.is_nan() || p > q);
        let expected = [
            p.is_nan(),
            p.is_infinite(),
            p.is_finite(),
            p.is_sign_negative(),
            p == f32::NEG_INFINITY,
            replaces,
        ];
        expect(
            &format!("tests of {p} and {q}"),
            &storages[4][6 * i..][..6],
            &expected.map(u8::from),
        )?;
    }
    Ok(())
}
