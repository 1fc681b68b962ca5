//! A model of `program.cpp`: its file, its constants, and what comes out of it.

use super::{Failure, Program, Shims};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

pub const CONSTANTS: usize = 4;
const COUNT: usize = 64;

/// The program under a new name for each model, as the delegate writes it.
pub struct Programs {
    program: PathBuf,
    count: AtomicUsize,
}

impl Programs {
    pub fn new(program: PathBuf) -> Result<Self, Failure> {
        Ok(Programs { program, count: AtomicUsize::new(0) })
    }

    fn another(&self) -> Result<PathBuf, Failure> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let path = self.program.with_extension(format!("{}.{number}.so", std::process::id()));
        std::fs::copy(&self.program, &path)?;
        Ok(path)
    }
}

/// The blob of a model.
pub struct Constants {
    head: [i64; 4],
    values: Vec<f32>,
}

impl Constants {
    /// Small integers, which tell one model from another and whose sums are exact. The container
    /// stays behind where it is `kept`.
    pub fn of(start: f32, kept: bool) -> Self {
        let kernels = std::env::var("AOTI_WGPU_BACKEND").as_deref() != Ok("host");
        let values = (0..CONSTANTS * COUNT).map(|i| start + i as f32).collect();
        Constants { head: [-1, 0, i64::from(kernels), i64::from(kept)], values }
    }

    /// The same, but the constant `at` fails.
    pub fn failing(&self, at: usize, how: usize) -> Self {
        let [_, _, kernels, kept] = self.head;
        Constants { head: [at as i64, how as i64, kernels, kept], values: self.values.clone() }
    }

    fn blob(&self) -> Vec<u8> {
        let head = self.head.iter().flat_map(|n| n.to_ne_bytes());
        head.chain(self.values.iter().flat_map(|v| v.to_ne_bytes())).collect()
    }

    fn constant(&self, n: usize) -> &[f32] {
        &self.values[n * COUNT..(n + 1) * COUNT]
    }

    /// What the program makes of an input.
    fn wanted(&self, input: &[f32]) -> Vec<f32> {
        let (factor, more) = (self.constant(0), self.constant(1));
        let first = (0..COUNT).map(|i| match self.head[2] {
            0 => factor[i],
            _ => input[i] * factor[i] + more[i],
        });
        first.chain(self.constant(3).iter().copied()).collect()
    }
}

pub struct Model<'a> {
    shims: &'a Shims,
    program: Program<'a>,
    path: PathBuf,
    constants: Constants,
}

impl<'a> Model<'a> {
    /// Where the constants fail the model is destroyed, as the delegate does it.
    pub fn load(
        shims: &'a Shims,
        programs: &Programs,
        constants: &Constants,
    ) -> Result<Self, Failure> {
        let path = programs.another()?;
        let constants = Constants { head: constants.head, values: constants.values.clone() };
        let program = Program::load(shims, &path, "mps")?;
        let model = Model { shims, program, path, constants };
        match model.program.update_constants(&model.constants.blob()) {
            Ok(()) => Ok(model),
            Err(error) => {
                model.destroy()?;
                Err(error)
            }
        }
    }

    pub fn run_and_check(&self, start: f32) -> Result<(), Failure> {
        let shims = self.shims;
        let (float, mps) = (shims.dtype("float32")?, shims.device("mps")?);
        let values: Vec<f32> = (0..COUNT).map(|i| start + i as f32).collect();
        let mut bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
        let size = [COUNT as i64];
        let input = shims.empty(&size, &[1], float, mps)?;
        let host = shims.blob(&mut bytes, &size, float)?;
        shims.copy(input, host)?;
        shims.delete(host)?;
        let mut outputs = vec![std::ptr::null_mut(); self.program.outputs()?];
        self.program.run(&mut [input], &mut outputs)?;
        let whole = self.constants.wanted(&values);
        let every_second: Vec<f32> = whole.iter().copied().step_by(2).collect();
        for (output, wanted) in outputs.into_iter().zip([whole, every_second]) {
            let mut bytes = vec![0u8; wanted.len() * size_of::<f32>()];
            let host = shims.blob(&mut bytes, &[wanted.len() as i64], float)?;
            shims.copy(host, output)?;
            shims.delete(host)?;
            shims.delete(output)?;
            let found: Vec<f32> = bytes
                .chunks_exact(size_of::<f32>())
                .map(|c| f32::from_ne_bytes([c[0], c[1], c[2], c[3]]))
                .collect();
            if found != wanted {
                return Err(format!("{found:?} came out, not {wanted:?}").into());
            }
        }
        Ok(())
    }

    /// As the delegate: `dlclose`, the file, `cleanup_memory`.
    pub fn destroy(self) -> Result<(), Failure> {
        drop(self.program);
        std::fs::remove_file(&self.path)?;
        self.shims.cleanup_memory()
    }
}
