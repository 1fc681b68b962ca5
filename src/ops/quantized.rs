//! Products with 4-bit weights, by groups along the depth:
//! `weight[n][k] = nibble[n][k] * scale[n][k / gs] + offset[n][k / gs]`.
//!
//! Few rows of activations go through `quantized_digits` where the device has what it needs
//! and the weights fill it, and otherwise through `quantized_vector`; many through
//! `quantized_tile`.

use super::dense::{countable, float_code, grid, params, shader, start, word};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::gpu::Gpu;
use crate::runtime::{Launch, Operand, Runtime};
use crate::tensor::Tensor;
use smallvec::SmallVec;

const VECTOR: (&str, &str) = (
    "quantized_vector",
    shader!(
        "half.wgsl",
        "ops/elements.wgsl",
        "ops/quantized_common.wgsl",
        "ops/quantized_one.wgsl",
        "ops/quantized_vector.wgsl",
    ),
);
const GATHER: (&str, &str) = (
    "quantized_gather",
    shader!(
        "half.wgsl",
        "ops/elements.wgsl",
        "ops/quantized_common.wgsl",
        "ops/quantized_experts.wgsl",
        "ops/quantized_vector.wgsl",
    ),
);
const DIGITS: (&str, &str) = (
    "quantized_digits",
    shader!(
        "half.wgsl",
        "ops/elements.wgsl",
        "ops/quantized_common.wgsl",
        "ops/quantized_one.wgsl",
        "ops/quantized_digits.wgsl",
    ),
);
const GATHER_DIGITS: (&str, &str) = (
    "quantized_gather_digits",
    shader!(
        "half.wgsl",
        "ops/elements.wgsl",
        "ops/quantized_common.wgsl",
        "ops/quantized_experts.wgsl",
        "ops/quantized_digits.wgsl",
    ),
);
const TILE: (&str, &str) = (
    "quantized_tile",
    shader!(
        "half.wgsl",
        "ops/elements.wgsl",
        "ops/quantized_common.wgsl",
        "ops/quantized_tile.wgsl",
    ),
);

/// The kernels, as (name, WGSL).
pub const SHADERS: &[(&str, &str)] = &[VECTOR, GATHER, DIGITS, GATHER_DIGITS, TILE];

/// Rows of activations up to which the weights are read again for each.
const FEW_ROWS: i64 = 8;

/// Workgroups below which a kernel takes fewer rows of weights each.
const ENOUGH_GROUPS: u64 = 512;

/// Bytes of weights from which digits are worth their making.
const MANY_BYTES: u64 = 1 << 20;

/// Workgroups that large devices have room for at once, each of [`DIGIT_THREADS`].
const AT_ONCE: u64 = 132;

/// Invocations of a workgroup that goes by digits, the most first.
const DIGIT_THREADS: [u32; 2] = [512, 256];

/// What a workgroup that goes by digits keeps of its rows' sums.
const SLOTS: u32 = 768;

/// How a product by digits is cut up.
struct Teams {
    threads: u32,
    lanes: u32,
    /// Rows of weights a team.
    rows: u64,
    /// Workgroups for a row of activations.
    blocks: u64,
}

impl Teams {
    /// `None` where the device lacks something, or has too much room for so few weights.
    fn new(gpu: &Gpu, [n, m, k]: [u64; 3]) -> Option<Self> {
        let [least, most] = gpu.subgroup_sizes()?;
        let bytes = n.saturating_mul(m).saturating_mul(k / 2);
        if !gpu.multiplies_bytes() || bytes < MANY_BYTES || !(8..=128).contains(&least) {
            return None;
        }
        let room = gpu.max_invocations();
        let threads = DIGIT_THREADS.into_iter().find(|&threads| threads <= room)?;
        let chunks = k / 32;
        // Lanes that find no chunk left wait for the others.
        let lanes = [128u32, 64, 32]
            .into_iter()
            .filter(|&lanes| lanes >= most)
            .min_by_key(|&lanes| chunks.next_multiple_of(u64::from(lanes)))?;
        let teams = u64::from(threads / lanes);
        let kept = u64::from(SLOTS / (threads / least) / 4 * 4);
        let all = n.saturating_mul(m);
        let rounds = all.div_ceil(AT_ONCE * teams * kept);
        let rows = all.div_ceil(AT_ONCE * teams * rounds).next_multiple_of(4);
        Some(Teams { threads, lanes, rows, blocks: n.div_ceil(teams * rows) })
    }
}

/// The operands of one product, in the ABI's names.
struct Product<'a> {
    operator: &'static str,
    names: [&'static str; 4],
    x: &'a Tensor,
    w: &'a Tensor,
    scales: &'a Tensor,
    offsets: &'a Tensor,
    experts: Option<&'a Tensor>,
    group_size: i64,
}

impl Runtime {
    /// `ret[m][n] = sum_k a[m][k] * weight[n][k]`: a of [M, K], b uint8 of [N, K / 2], s
    /// and z of a's dtype and [N, K / group_size].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for shapes that do not fit, [`Error::NotSupported`] for
    /// dtypes but f32, f16 and bf16, and for groups but of 32, 64, 128 or 256.
    pub fn linear_4bit(
        &self,
        a: &Tensor,
        b: &Tensor,
        group_size: i64,
        s: &Tensor,
        z: &Tensor,
    ) -> Result<Tensor> {
        self.quantized(&Product {
            operator: "_linear_fp_act_4bit_weight",
            names: ["A", "B", "S", "Z"],
            x: a,
            w: b,
            scales: s,
            offsets: z,
            experts: None,
            group_size,
        })
    }

    /// `ret[p][n] = sum_k x[p][k] * weight[experts[p]][n][k]`: x of [P, K], w uint8 of
    /// [E, N, K / 2], scales and biases of x's dtype and [E, N, K / group_size], experts
    /// int32 of `[P]`. A row whose expert is not in 0..E becomes NaN.
    ///
    /// # Errors
    /// As [`Runtime::linear_4bit`].
    pub fn gather_qmv(
        &self,
        x: &Tensor,
        w: &Tensor,
        scales: &Tensor,
        biases: &Tensor,
        experts: &Tensor,
        group_size: i64,
    ) -> Result<Tensor> {
        self.quantized(&Product {
            operator: "gather_qmv",
            names: ["x", "w", "scales", "biases"],
            x,
            w,
            scales,
            offsets: biases,
            experts: Some(experts),
            group_size,
        })
    }

    fn quantized(&self, product: &Product<'_>) -> Result<Tensor> {
        let Product { operator, x, w, experts, .. } = *product;
        let kind = float_code(operator, product.names[0], x.dtype)?;
        let [matrices, n, m, k] = check(product)?;
        let (out, row) = self.fresh_rows(&[m, n], x.dtype)?;
        if m == 0 || n == 0 {
            return Ok(out);
        }
        if k == 0 {
            self.zero(&out)?;
            return self.without_gaps(out);
        }
        if matrices == 0 {
            return Err(Error::invalid("w", "without experts", "the rows of x need one each"));
        }
        for (name, tensor) in product.names.into_iter().zip([x, w, product.scales, product.offsets])
        {
            countable(operator, name, tensor)?;
        }
        let x = self.dense(x, 16)?;
        let w = self.dense(w, 16)?;
        let scales = self.dense(product.scales, 4)?;
        let offsets = self.dense(product.offsets, 4)?;
        let experts = experts.map(|experts| self.dense(experts, 4)).transpose()?;
        let few = experts.is_some() || m <= FEW_ROWS;
        let digits = match self.gpu()? {
            Some(gpu) if few => Teams::new(gpu, [n as u64, m as u64, k as u64]),
            _ => None,
        };
        let vector_groups = |rows: u64| (n as u64).div_ceil(8 * rows).saturating_mul(m as u64);
        let rows = [4u64, 2].into_iter().find(|&rows| vector_groups(rows) >= ENOUGH_GROUPS);
        let rows = rows.unwrap_or(1);
        let groups = match &digits {
            Some(teams) => teams.blocks.saturating_mul(m as u64),
            None if few => vector_groups(rows),
            None => (n as u64).div_ceil(64) * (m as u64).div_ceil(64),
        };
        let (name, wgsl) = match (&digits, &experts) {
            (Some(_), Some(_)) => GATHER_DIGITS,
            (Some(_), None) => DIGITS,
            (None, Some(_)) => GATHER,
            (None, None) if few => VECTOR,
            (None, None) => TILE,
        };
        let mut operands = vec![
            Operand::write(&out),
            Operand::read(&w),
            Operand::read(&x),
            Operand::read(&scales),
            Operand::read(&offsets),
        ];
        operands.extend(experts.as_ref().map(Operand::read));
        let mut constants: SmallVec<[_; 4]> = SmallVec::from_slice(&[("TYPE", kind)]);
        match &digits {
            Some(teams) => constants.extend([
                ("THREADS", teams.threads),
                ("LANES", teams.lanes),
                ("EVEN", u32::from(k / product.group_size % 2 == 0)),
            ]),
            None if few => constants.push(("ROWS", rows as u32)),
            None => {}
        }
        let element = x.dtype.size() as u32;
        let number = |value: i64| word(operator, "a size", value);
        let sizes = [number(n)?, number(k / 32)?, number(k / product.group_size)?];
        let more = [number(m)?, number(row)?, number(matrices)?];
        let (team_rows, blocks) = digits.map_or((0, 0), |teams| (teams.rows, teams.blocks));
        let by_digits = [number(team_rows as i64)?, number(blocks as i64)?];
        // Groups of 32 to 256 are 1 to 8 chunks.
        let shift = (product.group_size / 32).trailing_zeros();
        self.launch(
            Launch {
                name,
                wgsl,
                constants: &constants,
                operands: &operands,
                groups: grid(operator, groups)?,
            },
            |at| {
                params(&[
                    sizes[0],
                    sizes[1],
                    sizes[2],
                    shift,
                    start(at, 0, 4),
                    start(at, 1, 16),
                    start(at, 2, 16),
                    start(at, 3, element),
                    start(at, 4, element),
                    more[0],
                    more[1],
                    start(at, 5, 4),
                    more[2],
                    by_digits[0],
                    by_digits[1],
                ])
            },
        )?;
        self.without_gaps(out)
    }
}

/// The number of matrices, their rows, the rows of x, and the depth.
fn check(product: &Product<'_>) -> Result<[i64; 4]> {
    let Product { operator, names, x, w, group_size, .. } = *product;
    if !matches!(group_size, 32 | 64 | 128 | 256) {
        return Err(Error::NotSupported(format!(
            "{operator}: group_size is {group_size}; 32, 64, 128 and 256 are supported"
        )));
    }
    let shape = |argument, tensor: &Tensor, expected: &str| {
        Error::invalid(
            argument,
            format_args!("of sizes {:?}", tensor.sizes()),
            format!("{operator}: {expected}"),
        )
    };
    let &[m, k] = x.sizes() else { return Err(shape(names[0], x, "a matrix is expected")) };
    let (matrices, n, bytes) = match (product.experts, w.sizes()) {
        (None, &[n, bytes]) => (1, n, bytes),
        (Some(_), &[e, n, bytes]) => (e, n, bytes),
        (None, _) => return Err(shape(names[1], w, "a matrix [N, K / 2] is expected")),
        _ => return Err(shape(names[1], w, "three dimensions [E, N, K / 2] are expected")),
    };
    if w.dtype != DType::U8 {
        return Err(Error::NotSupported(format!(
            "{operator}: {} is of {}; 4-bit weights are uint8",
            names[1], w.dtype
        )));
    }
    if bytes.checked_mul(2) != Some(k) {
        return Err(shape(names[1], w, &format!("rows of {k} weights are {} bytes", k / 2)));
    }
    if k % group_size != 0 {
        return Err(Error::invalid(
            names[0],
            format_args!("of sizes {:?}", x.sizes()),
            format!("{operator}: the depth is no multiple of the group size {group_size}"),
        ));
    }
    for (name, tensor) in [(names[2], product.scales), (names[3], product.offsets)] {
        let three = [matrices, n, k / group_size];
        let expected = if product.experts.is_some() { &three[..] } else { &three[1..] };
        if tensor.sizes() != expected {
            return Err(shape(name, tensor, &format!("sizes {expected:?} are expected")));
        }
        if tensor.dtype != x.dtype {
            return Err(Error::NotSupported(format!(
                "{operator}: {name} is of {}, {} of {}; one dtype is expected",
                tensor.dtype, names[0], x.dtype
            )));
        }
    }
    if let Some(experts) = product.experts {
        if experts.sizes() != [m] {
            return Err(shape("experts", experts, &format!("sizes [{m}] are expected")));
        }
        if experts.dtype != DType::I32 {
            return Err(Error::NotSupported(format!(
                "{operator}: experts is of {}; int32 is supported",
                experts.dtype
            )));
        }
    }
    Ok([matrices, n, m, k])
}
