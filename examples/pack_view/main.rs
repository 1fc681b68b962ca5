//! Reads a `.npy` file, takes a strided view of it and writes the packed view as `.npy`.

#[path = "../support/npy.rs"]
mod npy;

use aoti_wgpu::dtype::DType;
use aoti_wgpu::runtime::{Config, Runtime};
use aoti_wgpu::tensor::DeviceType;
use clap::Parser;
use npy::Failure;
use std::path::PathBuf;

/// Pack a strided view of an array on the GPU.
#[derive(Parser)]
struct Options {
    /// The array, in row-major order.
    input: PathBuf,
    /// Where the packed view goes.
    output: PathBuf,
    /// Sizes of the view, like 4,3.
    #[arg(long, value_delimiter = ',')]
    sizes: Vec<i64>,
    /// Strides of the view in elements, one a size.
    #[arg(long, value_delimiter = ',')]
    strides: Vec<i64>,
    /// Elements before the view's first.
    #[arg(long, default_value_t = 0)]
    offset: i64,
}

fn main() {
    if let Err(error) = run(&Options::parse()) {
        eprintln!("pack_view: {error}");
        std::process::exit(1);
    }
}

fn run(options: &Options) -> Result<(), Failure> {
    let array = npy::read(&options.input)?;
    let dtype = dtype_of(&array.kind)?;
    let rt = Runtime::new(Config::from_env()?);
    let base = rt.from_bytes(&array.bytes, &array.shape, dtype, DeviceType::Mps)?;
    let view = rt.view(&base, &options.sizes, &options.strides, options.offset)?;
    let packed = rt.to_vec(&rt.packed(&view)?)?;
    npy::write(&options.output, &array.kind, view.sizes(), &packed)?;
    println!("{} {:?} -> {:?}, {} bytes", dtype, array.shape, view.sizes(), packed.len());
    Ok(())
}

/// numpy's name of a type as ours.
fn dtype_of(kind: &str) -> Result<DType, Failure> {
    Ok(match kind {
        "b1" => DType::Bool,
        "u1" => DType::U8,
        "i1" => DType::I8,
        "u2" => DType::U16,
        "i2" => DType::I16,
        "u4" => DType::U32,
        "i4" => DType::I32,
        "u8" => DType::U64,
        "i8" => DType::I64,
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        other => return Err(format!("elements of type {other} have no tensor type").into()),
    })
}
