//! Every operator and conversion, type by type, against the CPU on edge values.

use aoti_wgpu::msl::Scalar;

use super::device::{Arg, Device, Dispatch};
use super::values::*;

const OPERATORS: [&str; 16] =
    ["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">=", "==", "!="];

fn applies(op: &str, left: Scalar, right: Scalar) -> bool {
    let integers_only = ["%", "&", "|", "^", "<<", ">>"].contains(&op);
    !(integers_only && (left.is_float() || right.is_float()))
}

/// All operators on all pairs of edge values of two types, as one kernel.
pub fn binary_operators(device: &Device, left: Scalar, right: Scalar) -> Result<(), String> {
    let operators: Vec<&str> =
        OPERATORS.into_iter().filter(|op| applies(op, left, right)).collect();
    let (a, b) = (edges(left), edges(right));
    let pairs: Vec<(Number, Number)> =
        a.iter().flat_map(|&a| b.iter().map(move |&b| (a, b))).collect();
    let result = |op: &str| binary(op, (a[0], left), (b[0], right)).1;
    let mut source = String::from("kernel void f(\n");
    for (position, op) in operators.iter().enumerate() {
        source += &format!("    device {}* out{position},\n", result(op).name());
    }
    source += &format!(
        "    constant {}* a, constant {}* b, uint i [[thread_position_in_grid]]) {{\n\
         auto x = a[i];\nauto y = b[i];\n",
        left.name(),
        right.name()
    );
    for (position, op) in operators.iter().enumerate() {
        source += &format!("out{position}[i] = x {op} y;\n");
    }
    source += "}\n";
    let mut storages: Vec<Vec<u8>> = operators
        .iter()
        .map(|op| vec![0xa5; (pairs.len() * result(op).size() as usize).next_multiple_of(4)])
        .collect();
    let lefts: Vec<Number> = pairs.iter().map(|pair| pair.0).collect();
    let rights: Vec<Number> = pairs.iter().map(|pair| pair.1).collect();
    storages.push(encode_all(&lefts, left));
    storages.push(encode_all(&rights, right));
    let args: Vec<Arg> = (0..storages.len()).map(|storage| Arg::Buffer(storage, 0)).collect();
    device.run(&source, &mut storages, &args, Dispatch::linear(pairs.len()))?;
    for (position, op) in operators.iter().enumerate() {
        let found = decode_all(&storages[position], result(op), pairs.len());
        for (&(a, b), found) in pairs.iter().zip(found) {
            let (expected, ty) = binary(op, (a, left), (b, right));
            // Vulkan's division is right to 2.5 ulp; where it rounds into a narrow type, one step
            // of that.
            let narrow =
                if ty == Scalar::Float { 3 } else { 1 << if ty == Scalar::Half { 13 } else { 16 } };
            let ulps = match (*op, ty.is_float()) {
                ("/", true) => narrow,
                (_, true) => 1,
                _ => 0,
            };
            let exponent_limit = |value: Number| matches!(value, Number::Float(v) if v.abs() > 8.5e37 || (v != 0.0 && v.abs() < f32::MIN_POSITIVE));
            if *op == "/" && ty.is_float() && (exponent_limit(b) || exponent_limit(a)) {
                // Outside of the divisors that Vulkan's bound holds for.
                continue;
            }
            // WGSL lets a device flush denormals, before and after arithmetic.
            let flushed = || {
                let value = binary(op, (flush(a), left), (flush(b), right)).0;
                ty.is_float() && same(flush(found), flush(value), ulps)
            };
            if !same(found, expected, ulps) && !flushed() {
                return Err(format!(
                    "{} {op} {}: {a:?} {op} {b:?} gave {found:?} instead of {expected:?}",
                    left.name(),
                    right.name()
                ));
            }
        }
    }
    Ok(())
}

/// Conversions of a type's edge values to all types, and its unary operators.
pub fn conversions(device: &Device, from: Scalar) -> Result<(), String> {
    let values = edges(from);
    let mut source = String::from("kernel void f(\n");
    for to in ALL {
        source += &format!("    device {0}* to_{0},\n", to.name());
    }
    let promoted = from.promoted();
    source += &format!(
        "    device {}* negated, device bool* not_, device int* chosen,\n",
        promoted.name()
    );
    source += &format!(
        "    constant {}* a, uint i [[thread_position_in_grid]]) {{\nauto x = a[i];\n",
        from.name()
    );
    for to in ALL {
        source += &format!("to_{0}[i] = static_cast<{0}>(x);\n", to.name());
    }
    source += "negated[i] = -x;\nnot_[i] = !x;\nchosen[i] = x ? 3 : 4;\n}\n";
    let size = |ty: Scalar| (values.len() * ty.size() as usize).next_multiple_of(4);
    let mut types = ALL.to_vec();
    types.extend([promoted, Scalar::Bool, Scalar::Int]);
    let mut storages: Vec<Vec<u8>> = types.iter().map(|&ty| vec![0x5a; size(ty)]).collect();
    storages.push(encode_all(&values, from));
    let args: Vec<Arg> = (0..storages.len()).map(|storage| Arg::Buffer(storage, 0)).collect();
    device.run(&source, &mut storages, &args, Dispatch::linear(values.len()))?;
    let zero = (Number::Int(0), Scalar::Int);
    for (position, &ty) in types.iter().enumerate() {
        let found = decode_all(&storages[position], ty, values.len());
        for (&value, found) in values.iter().zip(found) {
            let truth = convert(value, Scalar::Bool) == Number::Int(1);
            let (what, expected) = match position {
                12 => match value {
                    Number::Float(value) => ("negated", Number::Float(-value)),
                    value => ("negated", binary("-", zero, (value, promoted)).0),
                },
                13 => ("!", Number::Int((!truth).into())),
                14 => ("chosen", Number::Int(if truth { 3 } else { 4 })),
                _ => ("converted", convert(value, ty)),
            };
            // Through float to half and bfloat: int to float may round once more.
            let flushed = || ty.is_float() && same(flush(found), flush(expected), 0);
            if !same(found, expected, 0) && !flushed() {
                let to = ty.name();
                return Err(format!(
                    "{value:?} {what} to {to} gave {found:?} instead of {expected:?}"
                ));
            }
        }
    }
    Ok(())
}

/// A denormal float as the zero of its sign.
fn flush(value: Number) -> Number {
    match value {
        Number::Float(v) if v.abs() < f32::MIN_POSITIVE => Number::Float(0f32.copysign(v)),
        other => other,
    }
}
