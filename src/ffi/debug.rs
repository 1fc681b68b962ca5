//! Warnings, checks, and what helps to look into a running program.

use super::boundary::{self, guard, guard_void};
use super::described::with_tensor;
use super::number::Number;
use super::{AOTITorchError, AtenTensorHandle};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::runtime::Runtime;
use crate::tensor::Tensor;
use std::ffi::c_char;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// A warning that reaches somebody: the log, or standard error where there is none.
pub(super) fn warn(text: &str) {
    if log::max_level() == log::LevelFilter::Off {
        // Nobody to tell where standard error is closed.
        let _ = writeln!(std::io::stderr(), "aoti-wgpu: warning: {text}");
    } else {
        log::warn!("{text}");
    }
}

/// A warning of the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_warn(
    func: *const c_char,
    file: *const c_char,
    line: u32,
    msg: *const c_char,
) {
    guard_void("aoti_torch_warn", || {
        // SAFETY: the header's contract.
        let (func, file, msg) =
            unsafe { (boundary::text(func), boundary::text(file), boundary::text(msg)) };
        warn(&format!("{msg} ({func} at {file}:{line})"));
        Ok(())
    });
}

#[cfg(not(aoti_wgpu_no_cpp))]
unsafe extern "C-unwind" {
    fn aoti_wgpu_cpp_check(
        cond: bool,
        func: *const c_char,
        file: *const c_char,
        line: u32,
        msg: *const c_char,
    );
}

/// A check of the program: a false condition throws `std::runtime_error`.
///
/// It is a jump to C++, so that the exception passes no frame of this language.
#[cfg(all(not(aoti_wgpu_no_cpp), any(target_arch = "x86_64", target_arch = "aarch64")))]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn aoti_torch_check(
    cond: bool,
    func: *const c_char,
    file: *const c_char,
    line: u32,
    msg: *const c_char,
) {
    #[cfg(target_arch = "x86_64")]
    std::arch::naked_asm!("jmp {}", sym aoti_wgpu_cpp_check);
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!("b {}", sym aoti_wgpu_cpp_check);
}

/// A check of the program: a false condition throws `std::runtime_error`.
#[cfg(all(not(aoti_wgpu_no_cpp), not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn aoti_torch_check(
    cond: bool,
    func: *const c_char,
    file: *const c_char,
    line: u32,
    msg: *const c_char,
) {
    // SAFETY: the header's contract, which is the same; nothing here needs unwinding.
    unsafe { aoti_wgpu_cpp_check(cond, func, file, line, msg) }
}

/// Fails where an element is NaN or infinite.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_check_inf_and_nan(
    tensor_name: *const c_char,
    tensor: AtenTensorHandle,
) -> AOTITorchError {
    // SAFETY: the header's contract; the elements are copied out.
    guard(|| unsafe {
        let name = boundary::text(tensor_name);
        with_tensor("tensor", tensor, |tensor| {
            let Summary { nan, infinite, .. } = summarise(tensor)?;
            if nan + infinite == 0 {
                return Ok(());
            }
            Err(Error::invalid(
                "tensor",
                format_args!("{name:?} of {} elements", tensor.layout().numel()),
                format!("{nan} of them are NaN, {infinite} are infinite"),
            ))
        })
    })
}

/// What is printed of a tensor's elements.
#[derive(Default)]
struct Summary {
    nan: u64,
    infinite: u64,
    /// Of the finite elements; of complex ones there is none.
    range: Option<(f64, f64)>,
    first: Vec<Number>,
}

/// Elements shown by [`aoti_torch_print_tensor_handle`].
const SHOWN: usize = 16;

fn summarise(tensor: &Tensor) -> Result<Summary> {
    let dtype = tensor.dtype();
    let bytes = Runtime::global().to_vec(tensor)?;
    let mut summary = Summary::default();
    for element in bytes.chunks_exact(dtype.size()) {
        let number = Number::read(element, dtype)?;
        let (nan, infinite) = number.nan_or_infinite();
        summary.nan += u64::from(nan);
        summary.infinite += u64::from(infinite);
        if let (false, false, Ok(value)) = (nan, infinite, number.to_float(f64::MAX, "float64")) {
            let (low, high) = summary.range.unwrap_or((value, value));
            summary.range = Some((low.min(value), high.max(value)));
        }
        if summary.first.len() < SHOWN {
            summary.first.push(number);
        }
    }
    Ok(summary)
}

/// Prints a tensor to standard output.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_print_tensor_handle(
    self_: AtenTensorHandle,
    msg: *const c_char,
) {
    // SAFETY: the header's contract; the elements are copied out.
    guard_void("aoti_torch_print_tensor_handle", || unsafe {
        let msg = boundary::text(msg);
        let text = with_tensor("self", self_, |tensor| printed(&msg, tensor))?;
        std::io::stdout()
            .write_all(text.as_bytes())
            .map_err(|error| Error::Internal(format!("standard output: {error}")))
    });
}

fn printed(msg: &str, tensor: &Tensor) -> Result<String> {
    let layout = tensor.layout();
    let device = boundary::device_code(tensor.device());
    let device = if device == boundary::DEVICE_CPU { "cpu" } else { "mps" };
    let mut text = format!(
        "[ {msg} ]: {} on {device}, sizes {:?}, strides {:?}, storage offset {}\n",
        tensor.dtype(),
        layout.sizes(),
        layout.strides(),
        layout.offset()
    );
    // Writing to a string does not fail.
    match summarise(tensor) {
        Err(Error::NotSupported(reason)) => {
            let _ = writeln!(text, "  elements are not shown: {reason}");
        }
        summary => {
            let Summary { nan, infinite, range, first } = summary?;
            if let Some((low, high)) = range {
                let _ = writeln!(text, "  finite elements from {low} to {high}");
            }
            let _ = writeln!(text, "  {} elements, {nan} NaN, {infinite} infinite", layout.numel());
            let shown: Vec<String> = first.iter().map(Number::to_string).collect();
            let more = if layout.numel() > SHOWN as i64 { ", ..." } else { "" };
            let _ = writeln!(text, "  [{}{more}]", shown.join(", "));
        }
    }
    Ok(text)
}

/// Writes a tensor to `tmp/aoti_torch/` in the working directory, as a `.npy` file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aoti_torch_save_tensor_handle(
    self_: AtenTensorHandle,
    tensor_name: *const c_char,
    launch_prefix: *const c_char,
    kernel_name: *const c_char,
) {
    // SAFETY: the header's contract; the elements are copied out.
    guard_void("aoti_torch_save_tensor_handle", || unsafe {
        let name = [launch_prefix, kernel_name, tensor_name]
            .map(|part| boundary::text(part).replace(['/', '\\'], "_"))
            .join("_");
        with_tensor("self", self_, |tensor| {
            let device = boundary::device_code(tensor.device());
            let device = if device == boundary::DEVICE_CPU { "cpu" } else { "mps" };
            let path = Path::new("tmp").join("aoti_torch").join(format!("{name}_{device}.npy"));
            save(&path, tensor)
        })
    });
}

fn save(path: &Path, tensor: &Tensor) -> Result<()> {
    let mut file = npy_header(tensor.dtype(), tensor.layout().sizes());
    file.extend(Runtime::global().to_vec(tensor)?);
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, file))
        .map_err(|error| Error::Internal(format!("cannot write {}: {error}", path.display())))
}

/// The header of a `.npy` file, version 1.0 (numpy's `lib/format.py`). Types that numpy
/// has not are saved as unsigned integers of their size, bfloat16 as int16.
fn npy_header(dtype: DType, sizes: &[i64]) -> Vec<u8> {
    let kind = match dtype {
        DType::Bool => 'b',
        DType::F16 | DType::F32 | DType::F64 => 'f',
        DType::C64 | DType::C128 => 'c',
        DType::I8 | DType::I16 | DType::I32 | DType::I64 | DType::BF16 => 'i',
        _ => 'u',
    };
    let order = match (dtype.size(), cfg!(target_endian = "big")) {
        (1, _) => '|',
        (_, false) => '<',
        (_, true) => '>',
    };
    let shape: String = sizes.iter().map(|size| format!("{size}, ")).collect();
    let mut text = format!(
        "{{'descr': '{order}{kind}{}', 'fortran_order': False, 'shape': ({}), }}",
        dtype.size(),
        shape.trim_end()
    );
    // Magic, version and length take ten bytes; the data starts at a multiple of 64.
    let unpadded = 10 + text.len() + 1;
    text.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
    text.push('\n');
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    // At most 16 sizes of 20 digits: far below 2^16.
    header.extend((text.len() as u16).to_le_bytes());
    header.extend(text.into_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn npy_headers_are_padded_and_named() {
        let header = npy_header(DType::F32, &[2, 3]);
        assert_eq!(header.len() % 64, 0);
        let text = String::from_utf8_lossy(header.get(10..).unwrap()).into_owned();
        assert_eq!(text.trim_end(), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3,), }");
        let text = |dtype, sizes: &[i64]| {
            String::from_utf8_lossy(npy_header(dtype, sizes).get(10..).unwrap()).into_owned()
        };
        assert!(text(DType::BF16, &[]).contains("'<i2'") && text(DType::BF16, &[]).contains("()"));
        assert!(text(DType::Bool, &[7]).contains("'|b1'"));
        assert!(text(DType::F8E5M2, &[7]).contains("(7,)"));
    }
}
