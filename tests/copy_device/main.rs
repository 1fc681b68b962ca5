//! The kernels on an adapter against the plain walk, bit for bit, with every byte
//! outside the view as it was. Without an adapter all of these show as ignored.

#[path = "../support/cases.rs"]
#[allow(dead_code)]
mod cases;
#[path = "../support/gpu.rs"]
mod gpu;
#[path = "../support/layouts.rs"]
mod layouts;

mod conversions;

use aoti_wgpu::copy::device::{DeviceLimits, Launches, launches};
use aoti_wgpu::copy::plan::CopyPlan;
use aoti_wgpu::layout::Layout;
use gpu::Gpu;
use layouts::Random;
use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeMap;
use std::sync::LazyLock;

type Test = Box<dyn FnOnce(&Gpu) -> Result<(), Failed> + Send>;

static GPU: LazyLock<Option<Gpu>> = LazyLock::new(Gpu::new);

fn main() {
    let arguments = Arguments::from_args();
    let absent = !arguments.list && GPU.is_none();
    let trial = |name: String, test: Test| {
        let run = move || match GPU.as_ref() {
            Some(gpu) => test(gpu),
            None => Err("there is no adapter".into()),
        };
        Trial::test(name, run).with_ignored_flag(absent)
    };
    let mut trials = Vec::new();
    for element in [1usize, 2, 4, 8, 16] {
        trials.push(trial(
            format!("random_layouts_of_{element}_bytes"),
            Box::new(move |gpu| random_layouts(gpu, element, 400, &gpu.limits())),
        ));
        trials.push(trial(
            format!("random_layouts_of_{element}_bytes_in_small_windows"),
            Box::new(move |gpu| {
                let limits = DeviceLimits { max_binding_bytes: 8192, ..gpu.limits() };
                random_layouts(gpu, element, 25, &limits)
            }),
        ));
        trials.push(trial(
            format!("transposes_of_{element}_bytes"),
            Box::new(move |gpu| transposes(gpu, element)),
        ));
        trials.push(trial(
            format!("large_layouts_of_{element}_bytes"),
            Box::new(move |gpu| large(gpu, element)),
        ));
    }
    trials.push(trial("views_that_broke_other_libraries".into(), Box::new(known_views)));
    for &dtype in conversions::NUMBERS {
        trials.push(trial(
            format!("conversions_from_{dtype}"),
            Box::new(move |gpu| conversions::values_from(gpu, dtype)),
        ));
    }
    trials.push(trial("conversions_at_any_strides".into(), Box::new(conversions::at_any_strides)));
    libtest_mimic::run(&arguments, trials).exit();
}

/// Copies on the device and on the host; the kernels used, by name.
fn check(
    gpu: &Gpu,
    (dst, src): (&Layout, &Layout),
    element: usize,
    limits: &DeviceLimits,
    random: &mut Random,
) -> Result<Vec<&'static str>, Failed> {
    let plan = CopyPlan::new(dst, src, element)?;
    let from = random.bytes(src.end_bytes(element)? as usize);
    let mut to = random.bytes(dst.end_bytes(element)? as usize + 20);
    let (dst_buffer, src_buffer) = (gpu.buffer(to.len() as u64), gpu.buffer(from.len() as u64));
    gpu.upload(&dst_buffer, &to);
    gpu.upload(&src_buffer, &from);
    let mut list = Launches::new();
    launches(&plan, dst_buffer.size(), src_buffer.size(), limits, &mut list)?;
    gpu.run(&list, &dst_buffer, &src_buffer, 1);
    let got = gpu.download(&dst_buffer, 0, to.len());
    layouts::copy(dst, src, element, &mut to, &from);
    if got != to {
        let at = got.iter().zip(&to).position(|(a, b)| a != b);
        return Err(format!(
            "byte {at:?} differs for {dst:?} <- {src:?} of {element}: {plan:?} {list:?}"
        )
        .into());
    }
    Ok(list.iter().map(|launch| launch.kernel.name).collect())
}

fn random_layouts(
    gpu: &Gpu,
    element: usize,
    count: u64,
    limits: &DeviceLimits,
) -> Result<(), Failed> {
    let mut used = BTreeMap::<_, usize>::new();
    for seed in 0..count {
        let mut random = Random(seed + 1000 * element as u64);
        let (dst, src) = layouts::pair(&mut random, 20_000);
        let names = check(gpu, (&dst, &src), element, limits, &mut random)
            .map_err(|e| format!("seed {seed}: {}", e.message().unwrap_or_default()))?;
        for name in names {
            *used.entry(name).or_default() += 1;
        }
    }
    println!("{element} bytes: {used:?}");
    Ok(())
}

/// Matrices around the tiles' sizes, alone, in batches, of every permutation.
fn transposes(gpu: &Gpu, element: usize) -> Result<(), Failed> {
    let mut random = Random(element as u64);
    let sides = [8, 31, 33, 63, 64, 65, 97, 130];
    for rows in sides {
        for columns in sides {
            let sizes = [3, rows, columns];
            for order in [[0, 2, 1], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
                let base = Layout::contiguous(&order.map(|d| sizes[d]))?;
                let mut strides = [0; 3];
                for (at, d) in order.into_iter().enumerate() {
                    strides[d] = base.strides()[at];
                }
                let offset = random.between(0, 4);
                let permuted = Layout::new(&sizes, &strides, offset)?;
                let offset = random.between(0, 4);
                let packed = Layout::contiguous(&sizes)?.with_offset(offset)?;
                check(gpu, (&packed, &permuted), element, &gpu.limits(), &mut random)?;
                check(gpu, (&permuted, &packed), element, &gpu.limits(), &mut random)?;
            }
        }
    }
    Ok(())
}

/// Enough elements for several items an invocation and, of the small ones, for a grid
/// of two dimensions.
fn large(gpu: &Gpu, element: usize) -> Result<(), Failed> {
    let mut random = Random(77 + element as u64);
    for (sizes, strides, offset) in [
        ([4100i64, 512, 1], [1024i64, 1, 1], 3i64),
        ([1500, 1021, 1], [2200, 2, 1], 1),
        ([3, 700, 999], [999 * 700, 1, 700], 2),
        ([50, 40, 1025], [1, 50 * 1030, 50], 5),
        // So many tiles that a workgroup does several, large ones and small ones, along the
        // rows of the one direction and across those of the other.
        ([33, 198_401, 1], [1, 33, 1], 2),
        ([31, 100_001, 1], [1, 31, 1], 3),
        ([9_000_000 / element as i64, 1, 1], [1, 1, 1], 1),
    ] {
        let src = Layout::new(&sizes, &strides, offset)?;
        let dst = Layout::contiguous(&sizes)?.with_offset(random.between(0, 9))?;
        check(gpu, (&dst, &src), element, &gpu.limits(), &mut random)?;
        check(gpu, (&src, &dst), element, &gpu.limits(), &mut random)?;
    }
    Ok(())
}

fn known_views(gpu: &Gpu) -> Result<(), Failed> {
    let mut random = Random(5);
    let packs = cases::PACKS.iter().map(|c| (c.size, c.stride, c.offset));
    let writes = cases::WRITES.iter().map(|c| (c.size, c.stride, c.offset));
    for (size, stride, offset) in packs.chain(writes) {
        let view = Layout::new(size, stride, offset)?;
        let packed = Layout::contiguous(size)?;
        for element in [1, 2, 4, 8, 16] {
            check(gpu, (&packed, &view), element, &gpu.limits(), &mut random)?;
            if !view.overlaps() {
                check(gpu, (&view, &packed), element, &gpu.limits(), &mut random)?;
            }
        }
    }
    Ok(())
}
