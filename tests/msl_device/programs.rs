//! Compiled programs beside the repository that are one kernel over their inputs.

use std::path::{Path, PathBuf};

use aoti_wgpu::msl::{Library, ParamKind, Scalar};

use super::device::{Arg, Device, Dispatch};
use super::values::{Number, decode_all, same};
use super::{Check, msl_common};

/// Names, with the bound on a float's relative or absolute error.
const PROGRAMS: [(&str, f32); 7] = [
    ("add", 0.0),
    ("rope", 1e-6),
    ("copy_mix", 0.0),
    ("int_int32", 0.0),
    ("int_promotes", 1e-6),
    ("math_activations", 1e-4),
    ("math_binary", 1e-5),
];

pub fn all() -> Vec<(String, Check)> {
    let programs = msl_common::programs();
    let present = PROGRAMS.iter().filter_map(|&(name, bound)| {
        let program = programs
            .iter()
            .find(|path| path.parent().is_some_and(|folder| folder.ends_with(name)))?;
        let program = program.clone();
        let check: Check = Box::new(move |device| run(device, &program, bound));
        Some((name.to_owned(), check))
    });
    present.collect()
}

/// The elements of a .npy file.
fn array(path: &Path) -> Option<Vec<u8>> {
    let bytes = std::fs::read(path).ok()?;
    let header = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    Some(bytes[10 + header..].to_vec())
}

fn arrays(folder: &Path, kind: &str) -> Vec<Vec<u8>> {
    let path = |i: usize| -> PathBuf { folder.join(format!("{kind}{i}.npy")) };
    (0..).map_while(|i| array(&path(i))).collect()
}

fn run(device: &Device, program: &Path, bound: f32) -> Result<(), String> {
    let folder = program.parent().ok_or("no folder")?;
    let sources = msl_common::sources(program);
    let [source] = sources.as_slice() else {
        return Err(format!("{} kernels", sources.len()));
    };
    let library = Library::parse(source).map_err(|error| error.to_string())?;
    let kernel = library.kernels().next().ok_or("no kernel")?;
    let (mut inputs, outputs) = (arrays(folder, "in"), arrays(folder, "out"));
    let mut storages = Vec::new();
    let mut results = Vec::new();
    let mut count = 0;
    for param in kernel.params() {
        let ParamKind::Buffer { element, .. } = param.kind else {
            return Err(format!("integer {}", param.name));
        };
        let size = element.scalar.size() as usize;
        if param.name.starts_with("out") {
            results.push((storages.len(), element.scalar));
            storages.push(Vec::new());
            continue;
        }
        // Inputs may be passed in another order than they came in: the first left whose extent fits.
        let sizes: Vec<usize> = inputs.iter().map(Vec::len).collect();
        let ordered = inputs.iter().position(|input| match folder.ends_with("int_promotes") {
            true => input.len() == size * if element.scalar == Scalar::Float { 35 } else { 210 },
            false => !input.is_empty(),
        });
        let position =
            ordered.ok_or_else(|| format!("no input for {} among {sizes:?}", param.name))?;
        let mut input = std::mem::take(&mut inputs[position]);
        count = count.max(input.len() / size);
        input.resize(input.len().next_multiple_of(4), 0);
        storages.push(input);
    }
    for &(storage, scalar) in &results {
        storages[storage] = vec![0xee; (count * scalar.size() as usize).next_multiple_of(4)];
    }
    let args: Vec<Arg> = (0..storages.len()).map(|storage| Arg::Buffer(storage, 0)).collect();
    device.run(source, &mut storages, &args, Dispatch::linear(count))?;
    // Outputs may come in another order than they are written in: each is what some argument holds.
    for (position, expected) in outputs.iter().enumerate() {
        let matches = |&&(storage, scalar): &&(usize, Scalar)| {
            if expected.len() != count * scalar.size() as usize {
                return false;
            }
            let found = decode_all(&storages[storage], scalar, count);
            let expected = decode_all(expected, scalar, count);
            found.iter().zip(expected).all(|(&found, expected)| close(found, expected, bound))
        };
        if results.iter().find(matches).is_none() {
            return Err(format!("no argument holds output {position}"));
        }
    }
    Ok(())
}

fn close(found: Number, expected: Number, bound: f32) -> bool {
    if let (Number::Float(found), Number::Float(expected)) = (found, expected)
        && (found - expected).abs() <= bound * expected.abs().max(1.0)
    {
        return true;
    }
    same(found, expected, 0)
}
