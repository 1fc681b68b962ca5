//! How fast operators run, against the contiguous compute copy of the same run or against
//! each other.
//!
//! Before a case is timed, some hundred elements of its result are compared with sums in f64
//! on the host, at the size that is timed, so by the kernel that is.

mod attention;
mod convolution;
mod noise;
mod product;
mod quantized;

use super::table::Table;
use super::timing::{Seconds, best_of_five};
use super::{Options, yes};
use aoti_wgpu::dtype::DType;
use aoti_wgpu::error::{Error, Result};
use aoti_wgpu::runtime::Runtime;
use aoti_wgpu::tensor::Tensor;
use std::collections::{HashMap, HashSet};

/// Bytes of weights that calls in a row read, as those of a model's layers: more than the
/// caches of the largest devices hold.
const WORKING_SET: i64 = 256 << 20;
/// Elements of a result that are checked.
const CHECKED: i64 = 300;

/// What the sizes of all cases are divided by.
#[derive(Clone, Copy)]
pub struct Scale(u32);

impl Scale {
    fn of(self, size: i64) -> i64 {
        (size / i64::from(self.0)).max(1)
    }

    /// How many weights of so many bytes are taken in turn.
    fn turns(self, bytes: i64) -> i64 {
        let set = WORKING_SET / (i64::from(self.0) * i64::from(self.0));
        ((set + bytes - 1) / bytes).clamp(1, 16)
    }
}

/// `--shrink`'s value.
pub fn shrink(text: &str) -> std::result::Result<u32, String> {
    match text.parse() {
        Ok(by @ (1 | 2 | 4 | 8 | 16 | 32)) => Ok(by),
        _ => Err("1, 2, 4, 8, 16 or 32 is expected, which leaves whole groups of weights".into()),
    }
}

/// What one call does: floating-point operations, a multiplication and an addition being
/// two; or bytes that it cannot but read.
#[derive(Clone, Copy)]
enum Work {
    Operations(i64),
    Bytes(i64),
}

impl Work {
    /// TFLOP/s or GB/s.
    fn rate(self, seconds: f64) -> f64 {
        match self {
            Work::Operations(count) => count as f64 / seconds / 1e12,
            Work::Bytes(count) => count as f64 / seconds / 1e9,
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Work::Operations(_) => "TFLOP/s",
            Work::Bytes(_) => "GB/s",
        }
    }
}

/// What a case's rate is divided by.
enum Against {
    Nothing,
    /// The contiguous compute copy, read plus written.
    Copy,
    /// The case of this name, which is measured before.
    Case(String),
}

/// What is aimed at, on the device that the targets were set for.
#[derive(Clone, Copy)]
enum Target {
    Unset,
    /// TFLOP/s.
    Rate(f64),
    /// To what the case is held against.
    Ratio(f64),
}

/// An operator at one size.
struct Case {
    name: String,
    work: Work,
    against: Against,
    target: Target,
    prepare: Prepare,
}

/// Makes the operands.
type Prepare = Box<dyn Fn(&Runtime) -> Result<Ready>>;

/// Queues the operator for the nth time.
type Call = Box<dyn Fn(&Runtime, usize) -> Result<Tensor>>;

/// An operator with its operands.
struct Ready {
    call: Call,
    /// What an element of the first call's result should be, by its row-major index.
    expected: Box<dyn Fn(i64) -> Sum>,
}

/// A sum as the host makes it.
#[derive(Default)]
struct Sum {
    value: f64,
    /// The sum of the terms' magnitudes.
    magnitude: f64,
    terms: f64,
}

impl Sum {
    fn of(terms: impl IntoIterator<Item = f64>) -> Self {
        terms.into_iter().fold(Sum::default(), |sum, term| Sum {
            value: sum.value + term,
            magnitude: sum.magnitude + term.abs(),
            terms: sum.terms + 1.0,
        })
    }

    /// How far a result may be away: the sum in f32 by 8 sqrt(n) 2^-23 of the magnitudes (the
    /// bound of Higham and Mary, 2019, which fails for chance errors once in far more sums
    /// than are looked at; a unit twice as large allows for truncation), its rounding to
    /// the result's type by one unit.
    fn bound(&self, dtype: DType) -> f64 {
        let unit = match dtype {
            DType::BF16 => f64::exp2(-8.0),
            DType::F16 => f64::exp2(-11.0),
            _ => f64::exp2(-24.0),
        };
        8.0 * self.terms.sqrt() * f64::exp2(-23.0) * self.magnitude + unit * self.value.abs()
    }
}

/// A case's figures.
struct Figures {
    case: Case,
    seconds: Seconds,
    rate: f64,
    ratio: Option<f64>,
}

impl Figures {
    /// Whether the target is met, where there is one.
    fn met(&self) -> Option<bool> {
        match (self.case.target, self.ratio) {
            (Target::Rate(least), _) => Some(self.rate >= least),
            (Target::Ratio(least), Some(ratio)) => Some(ratio >= least),
            _ => None,
        }
    }

    fn cells(&self) -> [String; 8] {
        let us = |seconds: f64| format!("{:.1}", seconds * 1e6);
        let against = match &self.case.against {
            Against::Nothing => "",
            Against::Copy => " of the copy",
            Against::Case(_) => " of f32",
        };
        [
            self.case.name.clone(),
            self.seconds.gpu.map_or("-".into(), us),
            us(self.seconds.wall),
            format!("{:.*}", digits(self.rate), self.rate),
            self.case.work.unit().into(),
            self.ratio.map_or("-".into(), |ratio| format!("{ratio:.3}{against}")),
            match self.case.target {
                Target::Unset => "-".into(),
                Target::Rate(least) => format!("{least} TFLOP/s"),
                Target::Ratio(least) => format!("{least:.2}"),
            },
            self.met().map_or("", yes).into(),
        ]
    }

    fn json(&self) -> serde_json::Value {
        let against = match &self.case.against {
            Against::Nothing => None,
            Against::Copy => Some("copy"),
            Against::Case(name) => Some(name.as_str()),
        };
        let (rate, ratio) = match self.case.target {
            Target::Unset => (None, None),
            Target::Rate(rate) => (Some(rate), None),
            Target::Ratio(ratio) => (None, Some(ratio)),
        };
        serde_json::json!({
            "case": self.case.name, "gpu_s": self.seconds.gpu, "wall_s": self.seconds.wall,
            "rate": self.rate, "unit": self.case.work.unit(), "against": against,
            "ratio": self.ratio, "target_rate": rate, "target_ratio": ratio,
        })
    }
}

/// Measures and prints the operators; `copy` is the rate of the contiguous compute copy in
/// GB/s. A case that fails is named, and the others are measured still. Returns the rows
/// for JSON and how many failed.
pub fn run(rt: &Runtime, options: &Options, copy: f64) -> Result<(Vec<serde_json::Value>, usize)> {
    let scale = Scale(options.shrink);
    let mut cases = product::cases(scale);
    cases.extend(quantized::cases(scale));
    cases.extend(convolution::cases(scale));
    cases.extend(attention::cases(scale));
    if let Some(text) = &options.case {
        let wanted = |case: &&Case| case.name.contains(text.as_str());
        // And those that these are held against.
        let mut names: HashSet<String> =
            cases.iter().filter(wanted).map(|c| c.name.clone()).collect();
        if names.is_empty() {
            return Err(Error::invalid("--case", text, "no operator's name contains it"));
        }
        names.extend(cases.iter().filter(wanted).filter_map(|case| match &case.against {
            Against::Case(name) => Some(name.clone()),
            _ => None,
        }));
        cases.retain(|case| names.contains(&case.name));
    }
    println!(
        "contiguous copy: {copy:.1} GB/s; operators with sizes divided by {}{}",
        scale.0,
        if scale.0 == 1 { "" } else { ", so without targets" }
    );
    let table = Table::new(
        &[
            ("operator", 62),
            ("GPU us", 9),
            ("wall us", 9),
            ("rate", 7),
            ("unit", 7),
            ("ratio", 17),
            ("target", 12),
            ("met", 3),
        ],
        options.markdown,
    );
    let (mut rates, mut rows, mut failed) = (HashMap::new(), Vec::new(), 0);
    for mut case in cases {
        if scale.0 != 1 {
            case.target = Target::Unset;
        }
        let seconds = match measure(rt, &case, options.batch) {
            Ok(seconds) => seconds,
            Err(error) => {
                eprintln!("{}: {error}", case.name);
                rows.push(serde_json::json!({ "case": case.name, "error": error.to_string() }));
                failed += 1;
                continue;
            }
        };
        let rate = case.work.rate(seconds.best());
        let other = match &case.against {
            Against::Nothing => None,
            Against::Copy => Some(copy),
            Against::Case(name) => rates.get(name).copied(),
        };
        rates.insert(case.name.clone(), rate);
        let figures = Figures { case, seconds, rate, ratio: other.map(|other| rate / other) };
        table.row(&figures.cells());
        rows.push(figures.json());
        rt.trim()?;
    }
    table.end();
    Ok((rows, failed))
}

fn measure(rt: &Runtime, case: &Case, batch: u32) -> Result<Seconds> {
    let ready = (case.prepare)(rt)?;
    verify(rt, &ready)?;
    best_of_five(rt, batch, |turn| (ready.call)(rt, turn).map(drop))
}

/// Compares elements of the first call's result with the host's sums.
fn verify(rt: &Runtime, ready: &Ready) -> Result<()> {
    let result = (ready.call)(rt, 0)?;
    let (dtype, count) = (result.dtype(), result.numel());
    let bytes = rt.to_vec(&result)?;
    // Steps of the golden ratio spread evenly, whatever the number.
    let step = |i: i64| (i as f64 * 0.618_033_988_749_894_9).fract();
    let spread = (0..CHECKED).map(|i| ((step(i) * count as f64) as i64).min(count - 1));
    for index in spread.chain([count - 1]) {
        let expected = (ready.expected)(index);
        let found = noise::element(&bytes, dtype, index as usize)?;
        let far = (found - expected.value).abs();
        if far.is_nan() || far > expected.bound(dtype) {
            return Err(Error::Internal(format!(
                "element {index} is {found}, {} was expected, within {:e}",
                expected.value,
                expected.bound(dtype)
            )));
        }
    }
    Ok(())
}

/// Digits after the point that make three in all, of five at most.
fn digits(rate: f64) -> usize {
    (2.0 - rate.log10().floor()).clamp(0.0, 5.0) as usize
}

/// A type's short name.
fn short(dtype: DType) -> String {
    format!("{dtype:?}").to_lowercase()
}
