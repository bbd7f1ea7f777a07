//! A model file or folder: opened, described and checked, with no weight read yet.

use super::source::{Change, Keys, Source};
use super::{Graph, ModelConfig, tokenizer};
use crate::Error;
use crate::program::{Bucket, Builder, Program};
use memra_formats::{Checkpoint, SharedBytes};
use memra_kernels::{DType, NumericClass, NumericPath};
use memra_text::Tokenizer;
use std::collections::HashSet;
use std::path::Path;
use std::sync::OnceLock;

/// A mapped model whose configuration and tensor shapes have been checked against its architecture.
#[derive(Debug)]
pub struct ModelFile {
    source: Source,
    config: ModelConfig,
    graph: Box<dyn Graph>,
    tokenizer: OnceLock<Result<Tokenizer, String>>,
}

/// The output head, where it is not the embedding table.
const HEAD: &str = "output.weight";

impl ModelFile {
    /// Maps and checks a GGUF file, any part of a split one, or a folder with `config.json` and weights in safetensors.
    ///
    /// # Errors
    /// Unreadable files, an unsupported architecture, hyperparameters that are missing, unsupported or unknown, tensors that
    /// are missing, have the wrong shape, or are not used by the architecture.
    pub fn open(path: &Path) -> Result<ModelFile, Error> {
        let mut source = Source::open(path)?;
        let keys = Keys::new(&source);
        let config = ModelConfig::read(&keys)?;
        let graph = (source.architecture().read)(&keys, &config)?;
        keys.refuse_unknown()?;
        match config.tied {
            // Some checkpoints hold the table twice; as in transformers, the embedding counts.
            Some(true) => source.forget(HEAD),
            Some(false) if !source.tensors().specs().contains_key(HEAD) => {
                let problem = "is missing, and the configuration does not tie it to the embedding table";
                return Err(source.explain(Error::Tensor { name: HEAD.into(), problem: problem.into() }));
            }
            _ => {}
        }
        let file = ModelFile { source, config, graph, tokenizer: OnceLock::new() };
        file.check_tensors()?;
        Ok(file)
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        self.source.path()
    }

    /// Its hyperparameters.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The files themselves, for metadata and sizes.
    pub fn checkpoint(&self) -> &Checkpoint {
        self.source.checkpoint()
    }

    /// Builds the model's Program for a bucket.
    ///
    /// # Errors
    /// A tensor that does not fit; not after [`ModelFile::open`] has checked them.
    pub fn program(&self, bucket: Bucket) -> Result<Program, Error> {
        self.build(Builder::new(bucket, self.source.tensors().specs()))
    }

    /// Builds the model's Program and that of its head that predicts the token after the next (MTP), where it has one. The
    /// first keeps the state of every row, which the second starts from; states of both are in one cache, whose list the
    /// second has.
    ///
    /// # Errors
    /// As [`ModelFile::program`].
    pub fn programs_with_mtp(&self, bucket: Bucket) -> Result<Option<[Program; 2]>, Error> {
        let tensors = self.source.tensors().specs();
        let program = self.build(Builder::new(bucket, tensors).with_hidden())?;
        let mut builder = Builder::new(bucket, tensors).with_hidden().with_states(&program.states);
        let logits = self.graph.build_mtp(&self.config, &mut builder).map_err(|e| self.source.explain(e))?;
        Ok(logits.map(|logits| [program, builder.finish(logits)]))
    }

    fn build(&self, mut builder: Builder<'_>) -> Result<Program, Error> {
        let logits = self.graph.build(&self.config, &mut builder).map_err(|e| self.source.explain(e))?;
        Ok(builder.finish(logits))
    }

    /// Every Program that reads the model's tensors, in its smallest form: what a check and a load need.
    pub(super) fn smallest_programs(&self) -> Result<Vec<Program>, Error> {
        let bucket = Self::smallest_bucket();
        match self.programs_with_mtp(bucket)? {
            Some(both) => Ok(both.into()),
            None => Ok(vec![self.program(bucket)?]),
        }
    }

    /// The tokenizer, built on first use: a model whose tokenizer is not supported still computes logits.
    ///
    /// # Errors
    /// The tokenizer's kind is not supported, or its tables are broken.
    pub fn tokenizer(&self) -> Result<&Tokenizer, Error> {
        let built = self.tokenizer.get_or_init(|| tokenizer::build(&self.source));
        built.as_ref().map_err(|problem| Error::Tokenizer(problem.clone()))
    }

    /// Whether this token ends a generation. Without a usable tokenizer only those that the configuration names do.
    pub fn is_end_of_generation(&self, token: u32) -> bool {
        self.config.eos == Some(token)
            || self.config.ends.contains(&token)
            || self.tokenizer().is_ok_and(|t| t.end_of_generation().contains(&token))
    }

    /// A specification of the smallest Program: what a check needs.
    fn smallest_bucket() -> Bucket {
        Bucket {
            path: NumericPath::Decode,
            class: NumericClass::F32,
            rows: 1,
            logits: 1,
            kv: DType::F16,
            context: 1,
        }
    }

    /// The bytes of matrix `index` of a tensor, as they are stored.
    ///
    /// # Errors
    /// There is no such tensor or matrix.
    pub(super) fn matrix(&self, name: &str, index: usize) -> Result<SharedBytes, Error> {
        self.source.matrix(name, index)
    }

    /// What is done to the values of a vector when it is loaded.
    pub(super) fn change(&self, name: &str) -> Change {
        self.source.tensors().change(name)
    }

    /// Every tensor the architecture needs is there, and none is left over: a tensor that nothing reads is a feature
    /// that would silently be missing.
    fn check_tensors(&self) -> Result<(), Error> {
        let programs = self.smallest_programs()?;
        let used: HashSet<&str> =
            programs.iter().flat_map(|program| &program.weights).map(|w| w.name.as_str()).collect();
        let tensors = self.source.tensors().specs();
        let unused = tensors.keys().filter(|name| !used.contains(name.as_str())).min();
        unused.map_or(Ok(()), |name| {
            Err(self.source.explain(Error::Tensor {
                name: name.clone(),
                problem: format!(
                    "is not used by architecture `{}` in this build, so the result would be wrong; this variant is not supported",
                    self.config.architecture
                ),
            }))
        })
    }
}
