//! Made-up models: valid GGUF files with random weights, for tests, for measuring shapes whose weights are not at hand,
//! and for machines without a real model.
//!
//! A file is the same for the same preset, types and seed. Weights are scaled so that activations stay of order one.
//! Speed depends on shapes and types alone, so a made-up model of a real shape measures as the real one does; what it
//! says is nonsense.

mod compose;
mod file;
mod metadata;
mod preset;
mod recipe;
mod shape;
mod tensors;
mod toy;
mod vocab;

pub use preset::{PRESETS, Preset};
pub use recipe::{Quant, Role};

use crate::Error;
use compose::Composer;
use memra_formats::{GgufBody, GgufWriter};
use memra_kernels::{DType, quant};
use rand_core::SeedableRng;
use rand_pcg::Pcg64;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::Path;

/// Bytes made and written at a time.
const CHUNK: usize = 1 << 20;

/// What model to make up.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Its shape.
    pub preset: &'static Preset,
    /// Its mix of types; `None` takes Q4_K_M, or the one mix that tiny and small have.
    pub quant: Option<Quant>,
    /// Seed of the weights.
    pub seed: u64,
    /// Keeps so many of the layers; `None` keeps all.
    pub layers: Option<usize>,
}

/// A tensor to write: random values in `mean ± spread`. Dimensions are fastest first.
#[derive(Clone, Debug, PartialEq)]
struct Plan {
    name: String,
    dims: Vec<usize>,
    dtype: DType,
    mean: f32,
    spread: f32,
}

/// Where the values of the tensors come from.
#[derive(Clone, Debug)]
enum Values {
    /// Uniform draws, encoded row by row: as good as the encoders are, for files of a few megabytes.
    Encoded(Pcg64),
    /// Blocks of random codes under sane scales, at the speed of memory.
    Composed { seed: u64 },
}

/// A model that is ready to be written.
#[derive(Debug)]
pub struct Synth {
    header: GgufWriter,
    plans: Vec<Plan>,
    values: Values,
}

impl Synth {
    /// Plans a model: its metadata, vocabulary and tensors, but no weights yet.
    ///
    /// # Errors
    /// Types for a preset that has one mix of them, or layers that it does not have.
    pub fn new(request: &Request) -> Result<Synth, Error> {
        let &Request { preset, quant, seed, layers } = request;
        let name = preset.name;
        match &preset.shape {
            preset::Shape::Toy(_) if quant.is_some() || layers.is_some() => Err(Error::Argument(format!(
                "{name} has one mix of types and one number of layers; choose a preset of a real shape, such as qwen3-0.6b"
            ))),
            preset::Shape::Toy(shape) => {
                let (header, plans) = shape.plan()?;
                Synth::declare(header, plans, Values::Encoded(Pcg64::seed_from_u64(seed)))
            }
            preset::Shape::Real(shape) => {
                let n_layers = layers.unwrap_or(shape.n_layers);
                if !(1..=shape.n_layers).contains(&n_layers) {
                    let all = shape.n_layers;
                    return Err(Error::Argument(format!(
                        "{name} has {all} layers, of which 1 to {all} can be kept"
                    )));
                }
                Synth::real(name, &shape::Shape { n_layers, ..*shape }, quant.unwrap_or_default(), seed)
            }
        }
    }

    fn real(name: &str, shape: &shape::Shape, quant: Quant, seed: u64) -> Result<Synth, Error> {
        let header = metadata::header(name, shape, quant)?;
        Synth::declare(header, tensors::plans(shape, quant), Values::Composed { seed })
    }

    fn declare(mut header: GgufWriter, plans: Vec<Plan>, values: Values) -> Result<Synth, Error> {
        for plan in &plans {
            header.tensor(&plan.name, &plan.dims, plan.dtype)?;
        }
        Ok(Synth { header, plans, values })
    }

    /// Size of the file in bytes.
    ///
    /// # Errors
    /// None that [`Synth::new`] has not found.
    pub fn file_bytes(&self) -> Result<u64, Error> {
        let mut count = Count(0);
        self.header.clone().begin(&mut count)?;
        // Tensors are padded to 32 bytes.
        Ok(count.0 + self.plans.iter().map(|plan| plan.bytes().next_multiple_of(32)).sum::<u64>())
    }

    /// Number of parameters.
    pub fn n_params(&self) -> u64 {
        self.plans.iter().map(|plan| plan.values() as u64).sum()
    }

    /// Writes the model. It is made beside its place (`PATH.partial`) and moved there whole, so that a reader may have
    /// an older file of that name mapped; where it fails or is stopped, nothing is left behind.
    ///
    /// `progress` is told the bytes of weights written so far, and may stop it. The result says whether it did.
    ///
    /// # Errors
    /// The file cannot be written, or is being written by another process.
    pub fn write(
        self,
        path: &Path,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Error> {
        let partial = file::Partial::create(path)?;
        let mut body = self.header.begin(partial)?;
        let mut values = self.values;
        let mut written = 0;
        for (index, plan) in self.plans.iter().enumerate() {
            let mut put = |bytes: &[u8], body: &mut GgufBody<file::Partial>| {
                body.append(bytes)?;
                written += bytes.len() as u64;
                Ok::<_, Error>(progress(written))
            };
            let flow = match &mut values {
                Values::Encoded(random) => plan.encode(random, |bytes| put(bytes, &mut body)),
                Values::Composed { seed } => plan.compose(*seed, index, |bytes| put(bytes, &mut body)),
            }?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        body.finish()?.commit()?;
        Ok(ControlFlow::Continue(()))
    }
}

impl Plan {
    fn values(&self) -> usize {
        self.dims.iter().product()
    }

    fn bytes(&self) -> u64 {
        (self.values() / self.dtype.block_len() * self.dtype.block_bytes()) as u64
    }

    /// Draws and encodes row after row.
    fn encode(
        &self,
        random: &mut Pcg64,
        mut put: impl FnMut(&[u8]) -> Result<ControlFlow<()>, Error>,
    ) -> Result<ControlFlow<()>, Error> {
        for _ in 0..self.values() / self.dims[0] {
            let row: Vec<f32> =
                (0..self.dims[0]).map(|_| self.mean + self.spread * toy::uniform(random)).collect();
            let broken =
                |e: quant::QuantError| Error::Tensor { name: self.name.clone(), problem: e.to_string() };
            if put(&quant::encode(self.dtype, &row).map_err(broken)?)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Composes the tensor, the `index`-th of its file, in pieces of whole blocks.
    fn compose(
        &self,
        seed: u64,
        index: usize,
        mut put: impl FnMut(&[u8]) -> Result<ControlFlow<()>, Error>,
    ) -> Result<ControlFlow<()>, Error> {
        let mut composer = Composer::new(self.dtype, self.mean, self.spread, seed, index as u64)?;
        let whole = CHUNK / self.dtype.block_bytes() * self.dtype.block_bytes();
        let mut left = self.bytes() as usize;
        let mut buffer = vec![0; whole.min(left)];
        while left > 0 {
            let piece = &mut buffer[..whole.min(left)];
            composer.fill(piece);
            if put(piece)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            left -= piece.len();
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Counts what is written to it.
struct Count(u64);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a model of about 2 MB that computes in milliseconds: 4 layers, 256 wide, several quantised types.
///
/// # Errors
/// The file cannot be written.
pub fn tiny(path: &Path, seed: u64) -> Result<(), Error> {
    whole("tiny", path, seed)
}

/// Writes a model of about 65 MB, more than caches hold, so that decode speed means something: 16 layers, 768 wide.
///
/// # Errors
/// The file cannot be written.
pub fn small(path: &Path, seed: u64) -> Result<(), Error> {
    whole("small", path, seed)
}

fn whole(preset: &str, path: &Path, seed: u64) -> Result<(), Error> {
    let preset = Preset::find(preset).ok_or_else(|| Error::Argument(format!("no preset `{preset}`")))?;
    let request = Request { preset, quant: None, seed, layers: None };
    Synth::new(&request)?.write(path, &mut |_| ControlFlow::Continue(())).map(|_| ())
}

#[cfg(test)]
mod tests;
