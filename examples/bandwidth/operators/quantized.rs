//! Products with 4-bit weights, of one matrix and of those that rows choose.

use super::noise::Noise;
use super::{Against, Case, Ready, Scale, Sum, Target, Work};
use aoti_wgpu::dtype::DType;
use aoti_wgpu::error::Result;
use aoti_wgpu::runtime::Runtime;
use aoti_wgpu::tensor::{DeviceType, Tensor};

/// One row of activations by a matrix; or rows by those of several matrices.
#[derive(Clone, Copy)]
struct Product {
    dtype: DType,
    depth: i64,
    columns: i64,
    group: i64,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// Matrices that are taken in turn.
    Linear { matrices: i64 },
    /// Each of the rows has an expert of its own.
    Gather { rows: i64, experts: i64 },
}

pub fn cases(scale: Scale) -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in [DType::F32, DType::BF16] {
        // The last one is larger, so that the start of a kernel counts for less.
        for (depth, columns, group) in
            [(4096, 11008, 32), (4096, 11008, 64), (4096, 11008, 128), (8192, 28672, 128)]
        {
            let (depth, columns) = (scale.of(depth), scale.of(columns));
            let matrices = scale.turns(depth * columns / 2);
            let kind = Kind::Linear { matrices };
            cases.push(Product { dtype, depth, columns, group, kind }.case());
        }
        // The first has the sizes of many small experts, the second of a few large ones.
        for (rows, experts, depth, columns) in [(8, 128, 2048, 1536), (2, 8, 4096, 14336)] {
            let kind = Kind::Gather { rows: scale.of(rows), experts: scale.of(experts) };
            let (depth, columns) = (scale.of(depth), scale.of(columns));
            cases.push(Product { dtype, depth, columns, group: 64, kind }.case());
        }
    }
    cases
}

impl Product {
    fn case(self) -> Case {
        let Product { dtype, depth, columns, group, .. } = self;
        let size = dtype.size() as i64;
        let row = depth * size;
        let matrix = columns * (depth / 2 + 2 * (depth / group) * size);
        let dtype = super::short(dtype);
        let (name, bytes) = match self.kind {
            Kind::Linear { .. } => {
                (format!("4-bit {dtype} 1 x {depth} x {columns}, groups of {group}"), row + matrix)
            }
            Kind::Gather { rows, experts } => (
                format!("gather_qmv {dtype} {rows} of {experts} experts, {depth} x {columns}"),
                rows * (row + matrix + 4),
            ),
        };
        Case {
            name,
            work: Work::Bytes(bytes),
            against: Against::Copy,
            target: Target::Ratio(0.6),
            prepare: Box::new(move |rt| self.ready(rt)),
        }
    }

    fn ready(self, rt: &Runtime) -> Result<Ready> {
        let Product { dtype, depth, columns, group, kind } = self;
        let (rows, turns) = match kind {
            Kind::Linear { matrices } => (1, matrices),
            Kind::Gather { rows, experts } => (rows, experts / rows),
        };
        let left = Noise::new(rt, 1, dtype)?;
        let nibbles = Noise::new(rt, 2, DType::U8)?;
        let (scales, offsets) = (Noise::new(rt, 3, dtype)?, Noise::new(rt, 4, dtype)?);
        let x = left.tensor(rt, &[rows, depth])?;
        let weights = |leading: &[i64]| -> Result<[Tensor; 3]> {
            let sizes = |last| [leading, &[columns, last]].concat();
            Ok([
                nibbles.tensor(rt, &sizes(depth / 2))?,
                scales.tensor(rt, &sizes(depth / group))?,
                offsets.tensor(rt, &sizes(depth / group))?,
            ])
        };
        let call: super::Call = match kind {
            Kind::Linear { .. } => {
                let all = (0..turns).map(|_| weights(&[])).collect::<Result<Vec<_>>>()?;
                Box::new(move |rt, turn| {
                    let [w, s, z] = &all[turn % all.len()];
                    rt.linear_4bit(&x, w, group, s, z)
                })
            }
            Kind::Gather { experts, .. } => {
                let [w, s, z] = weights(&[experts])?;
                let chosen = (0..turns)
                    .map(|turn| {
                        let row = |row| expert(turn * rows + row, experts) as i32;
                        let list: Vec<i32> = (0..rows).map(row).collect();
                        rt.from_slice(&list, &[rows], DType::I32, DeviceType::Mps)
                    })
                    .collect::<Result<Vec<_>>>()?;
                Box::new(move |rt, turn| {
                    rt.gather_qmv(&x, &w, &s, &z, &chosen[turn % chosen.len()], group)
                })
            }
        };
        let expected = move |index| {
            let (row, column) = (index / columns, index % columns);
            let matrix = match kind {
                Kind::Linear { .. } => 0,
                Kind::Gather { experts, .. } => expert(row, experts),
            };
            let line = matrix * columns + column;
            Sum::of((0..depth).flat_map(|k| {
                let byte = nibbles.at(line * (depth / 2) + k / 2) as u8;
                let nibble = f64::from(if k % 2 == 0 { byte & 15 } else { byte >> 4 });
                let part = line * (depth / group) + k / group;
                let value = left.at(row * depth + k);
                [value * nibble * scales.at(part), value * offsets.at(part)]
            }))
        };
        Ok(Ready { call, expected: Box::new(expected) })
    }
}

/// The experts in an order that jumps about: each once before one comes again, for powers of
/// two.
fn expert(number: i64, experts: i64) -> i64 {
    number * 37 % experts
}
