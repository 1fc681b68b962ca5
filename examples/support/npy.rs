//! `.npy` files as bytes with a shape.

use half::f16;
use npyz::{DType as NpyType, NpyFile, TypeChar};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

pub type Failure = Box<dyn std::error::Error>;

/// Elements in row-major order, as they lie in memory.
#[allow(dead_code, reason = "each example reads what it needs")]
pub struct Array {
    /// numpy's name of the type: `f4`, `i8`, `b1`.
    pub kind: String,
    pub shape: Vec<i64>,
    pub bytes: Vec<u8>,
}

/// Reads a file of booleans, integers or floats.
pub fn read(path: &Path) -> Result<Array, Failure> {
    let fail = |why: String| Failure::from(format!("{}: {why}", path.display()));
    let file = File::open(path).map_err(|error| fail(error.to_string()))?;
    let npy = NpyFile::new(BufReader::new(file)).map_err(|error| fail(error.to_string()))?;
    if npy.order() != npyz::Order::C && npy.shape().len() > 1 {
        return Err(fail("it is in Fortran order; row-major is expected".into()));
    }
    let shape = npy.shape().iter().map(|&n| n as i64).collect();
    let NpyType::Plain(plain) = npy.dtype() else {
        return Err(fail(format!("its type {} is not a single number", npy.dtype().descr())));
    };
    let (char, size) = (plain.type_char(), plain.size_field());
    macro_rules! read_as {
        ($t:ty) => {{
            let values = npy.into_vec::<$t>().map_err(|error| fail(error.to_string()))?;
            values.iter().flat_map(|v| v.to_ne_bytes()).collect()
        }};
    }
    let bytes = match (char, size) {
        (TypeChar::Bool, 1) => {
            let values = npy.into_vec::<bool>().map_err(|error| fail(error.to_string()))?;
            values.into_iter().map(u8::from).collect()
        }
        (TypeChar::Int, 1) => read_as!(i8),
        (TypeChar::Int, 2) => read_as!(i16),
        (TypeChar::Int, 4) => read_as!(i32),
        (TypeChar::Int, 8) => read_as!(i64),
        (TypeChar::Uint, 1) => read_as!(u8),
        (TypeChar::Uint, 2) => read_as!(u16),
        (TypeChar::Uint, 4) => read_as!(u32),
        (TypeChar::Uint, 8) => read_as!(u64),
        (TypeChar::Float, 2) => read_as!(f16),
        (TypeChar::Float, 4) => read_as!(f32),
        (TypeChar::Float, 8) => read_as!(f64),
        _ => return Err(fail(format!("elements of type {plain} are not read here"))),
    };
    Ok(Array { kind: kind_of(char, size), shape, bytes })
}

fn kind_of(char: TypeChar, size: u64) -> String {
    let letter = match char {
        TypeChar::Bool => "b",
        TypeChar::Int => "i",
        TypeChar::Uint => "u",
        _ => "f",
    };
    format!("{letter}{size}")
}

/// Writes elements of numpy's type `kind` in row-major order: format version 1.0 of
/// numpy's `lib/format.py`.
#[allow(dead_code, reason = "run_program reads alone")]
pub fn write(path: &Path, kind: &str, shape: &[i64], bytes: &[u8]) -> Result<(), Failure> {
    let order = match (kind.ends_with('1'), cfg!(target_endian = "little")) {
        (true, _) => '|',
        (false, true) => '<',
        (false, false) => '>',
    };
    let sizes: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let mut header = format!(
        "{{'descr': '{order}{kind}', 'fortran_order': False, 'shape': ({}), }}",
        sizes.trim_end_matches(' ')
    );
    // The whole head is a multiple of 64 bytes and ends with a newline.
    let head = 10 + header.len() + 1;
    header.extend(std::iter::repeat_n(' ', head.next_multiple_of(64) - head));
    header.push('\n');
    let mut file = Vec::with_capacity(10 + header.len() + bytes.len());
    file.extend_from_slice(b"\x93NUMPY\x01\x00");
    file.extend_from_slice(&u16::try_from(header.len())?.to_le_bytes());
    file.extend_from_slice(header.as_bytes());
    file.extend_from_slice(bytes);
    std::fs::write(path, file).map_err(|error| format!("{}: {error}", path.display()).into())
}
