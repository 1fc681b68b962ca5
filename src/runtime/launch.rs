//! Dispatches of this crate's own kernels over tensors.

use super::Runtime;
use super::kernels::{BoundBuffer, poison, watch_mirrored, without_panic};
use crate::error::{Error, Result};
use crate::gpu::{Binding, PipelineKey, Shader};
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::sync::Arc;

/// A tensor at a binding. Its elements are bound where they truly lie: the kernel is told
/// the strided layout by whoever makes the parameters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operand<'a> {
    /// The tensor.
    pub tensor: &'a Tensor,
    /// Whether the kernel writes it.
    pub writes: bool,
}

impl<'a> Operand<'a> {
    /// A tensor that is read.
    pub fn read(tensor: &'a Tensor) -> Self {
        Operand { tensor, writes: false }
    }

    /// A tensor that is written.
    pub fn write(tensor: &'a Tensor) -> Self {
        Operand { tensor, writes: true }
    }
}

/// One dispatch of a kernel of this crate. Binding i of group 0 is operand i.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Launch<'a> {
    /// The shader's name; one name, one source.
    pub name: &'static str,
    /// WGSL with one entry point.
    pub wgsl: &'static str,
    /// The values of its `override` constants.
    pub constants: &'a [(&'static str, u32)],
    /// What is bound, in the order of the bindings. Several may lie in one buffer.
    pub operands: &'a [Operand<'a>],
    /// Workgroups.
    pub groups: [u32; 3],
}

impl Runtime {
    /// Records one dispatch. `params` makes the shader's immediates (u32 words, 128 bytes
    /// at most) from the operands' byte offsets in their bindings.
    ///
    /// # Errors
    /// [`Error::NotSupported`] without a GPU and for an operand larger than a binding;
    /// the contents of what should have been written are lost then.
    pub(crate) fn launch(
        &self,
        launch: Launch<'_>,
        params: impl FnOnce(&[u32]) -> SmallVec<[u32; 32]>,
    ) -> Result<()> {
        let result = without_panic(|| self.encode_launch(launch, params));
        if let Err(error) = &result {
            for operand in launch.operands.iter().filter(|operand| operand.writes) {
                poison(&operand.tensor.storage, error);
            }
        }
        result
    }

    fn encode_launch(
        &self,
        launch: Launch<'_>,
        params: impl FnOnce(&[u32]) -> SmallVec<[u32; 32]>,
    ) -> Result<()> {
        let Some(gpu) = self.gpu()? else {
            return Err(Error::NotSupported(format!(
                "{}: the host backend runs copies alone, not kernels",
                launch.name
            )));
        };
        let mut bound: SmallVec<[BoundBuffer; 8]> = SmallVec::new();
        for operand in launch.operands {
            let tensor = operand.tensor;
            if !operand.writes {
                tensor.storage.check()?;
            }
            let size = tensor.dtype.size();
            bound.push(BoundBuffer {
                storage: tensor.storage.clone(),
                mirror: None,
                writes: operand.writes,
                unit: size as u64,
                offset: (tensor.layout.offset() as u64).saturating_mul(size as u64),
                end: tensor.layout.end_bytes(size)?,
            });
        }
        self.attach_mirrors(&mut bound)?;
        let mut offsets: SmallVec<[u32; 8]> = SmallVec::new();
        let mut bindings: SmallVec<[Binding<'_>; 8]> = SmallVec::new();
        let mut aliased = false;
        for argument in &bound {
            let buffer = match argument.buffer() {
                Some(buffer) => buffer,
                None => gpu.empty_buffer()?,
            };
            let window = argument.window(buffer, launch.name, gpu)?;
            let offset = argument.offset.saturating_sub(window.start);
            offsets.push(u32::try_from(offset).map_err(|_| {
                Error::NotSupported(format!(
                    "{}: an operand lies {offset} bytes into a binding, 2^32 are the limit",
                    launch.name
                ))
            })?);
            aliased |= bindings.iter().any(|b| Arc::ptr_eq(b.buffer, buffer));
            bindings.push(Binding {
                buffer,
                offset: window.start,
                size: window.end.saturating_sub(window.start),
                writes: argument.writes,
            });
        }
        let key =
            PipelineKey::Builtin { name: launch.name, constants: launch.constants.into(), aliased };
        let pipeline = gpu.pipeline(&key, || {
            Ok(Shader::Wgsl { text: launch.wgsl, constants: launch.constants, aliased })
        })?;
        let words = params(&offsets);
        {
            let mut stream = self.inner.stream.lock();
            watch_mirrored(&mut stream, &bound);
            let bytes = bytemuck::cast_slice(&words);
            stream.dispatch(gpu, &pipeline, &bindings, bytes, launch.groups)?;
        }
        self.note_writes(&bound);
        Ok(())
    }
}
