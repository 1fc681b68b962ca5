//! Matrix products, and those of one row, which are bound by reading the matrix.

use super::noise::Noise;
use super::{Against, Case, Ready, Scale, Sum, Target, Work};
use aoti_wgpu::dtype::DType;
use aoti_wgpu::error::Result;
use aoti_wgpu::layout::Layout;
use aoti_wgpu::runtime::Runtime;
use aoti_wgpu::tensor::DeviceType;

/// (rows, depth) by (depth, columns).
#[derive(Clone, Copy)]
struct Product {
    dtype: DType,
    rows: i64,
    depth: i64,
    columns: i64,
    /// Whether the second matrix is the transposed view of a (columns, depth) one, as a
    /// linear layer's weight is.
    transposed: bool,
    /// Second matrices that are taken in turn.
    matrices: i64,
}

pub fn cases(scale: Scale) -> Vec<Case> {
    use DType::{BF16, F16, F32};
    let mut cases = Vec::new();
    // 60% of what PyTorch reaches with cuBLAS on the device that the targets are for; of
    // f16, 10% of its tensor cores' rate, with cooperative matrices.
    for (side, f32_target, f16_target) in
        [(4096, 30.6, Target::Rate(68.0)), (1024, 18.6, Target::Ratio(1.0))]
    {
        let n = scale.of(side);
        let of = |dtype| Product {
            dtype,
            rows: n,
            depth: n,
            columns: n,
            transposed: false,
            matrices: 1,
        };
        let f32_name = of(F32).name();
        cases.push(of(F32).case(Against::Nothing, Target::Rate(f32_target)));
        cases.push(of(BF16).case(Against::Case(f32_name.clone()), Target::Ratio(1.0)));
        cases.push(of(F16).case(Against::Case(f32_name), f16_target));
    }
    for dtype in [F32, BF16] {
        for transposed in [false, true] {
            let (depth, columns) = (scale.of(4096), scale.of(11008));
            let matrices = scale.turns(depth * columns * dtype.size() as i64);
            let of = Product { dtype, rows: 1, depth, columns, transposed, matrices };
            cases.push(of.case(Against::Copy, Target::Ratio(0.75)));
        }
    }
    cases
}

impl Product {
    fn name(self) -> String {
        let Product { dtype, rows, depth, columns, .. } = self;
        let layout = if self.transposed { ", weight of (N, K)" } else { "" };
        format!("mm {} {rows} x {depth} x {columns}{layout}", super::short(dtype))
    }

    fn case(self, against: Against, target: Target) -> Case {
        let Product { dtype, rows, depth, columns, .. } = self;
        let work = match rows {
            1 => Work::Bytes((depth * columns + depth) * dtype.size() as i64),
            _ => Work::Operations(2 * rows * depth * columns),
        };
        let prepare = Box::new(move |rt: &Runtime| self.ready(rt));
        Case { name: self.name(), work, against, target, prepare }
    }

    fn ready(self, rt: &Runtime) -> Result<Ready> {
        let Product { dtype, rows, depth, columns, .. } = self;
        let (left, right) = (Noise::new(rt, 1, dtype)?, Noise::new(rt, 2, dtype)?);
        let a = left.tensor(rt, &[rows, depth])?;
        let strides = if self.transposed { [1, depth] } else { [columns, 1] };
        let matrices = (0..self.matrices)
            .map(|_| right.strided(rt, &[depth, columns], &strides))
            .collect::<Result<Vec<_>>>()?;
        let out = rt.empty(Layout::contiguous(&[rows, columns])?, dtype, DeviceType::Mps)?;
        Ok(Ready {
            call: Box::new(move |rt, turn| {
                rt.mm_out(&out, &a, &matrices[turn % matrices.len()])?;
                Ok(out.clone())
            }),
            expected: Box::new(move |index| {
                let (row, column) = (index / columns, index % columns);
                Sum::of((0..depth).map(|k| {
                    left.at(row * depth + k) * right.at(k * strides[0] + column * strides[1])
                }))
            }),
        })
    }
}
