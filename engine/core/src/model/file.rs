//! A model file: opened, described and checked, with no weight read yet.

use super::{Architecture, ModelConfig};
use crate::Error;
use crate::program::{Bucket, Builder, Program, WeightSpec};
use memra_formats::{Gguf, Tensor, UnsupportedType};
use memra_kernels::{DType, NumericClass, NumericPath};
use memra_text::{BpeSpec, Tokenizer};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A mapped model file whose configuration and tensor shapes have been checked against its architecture.
#[derive(Debug)]
pub struct ModelFile {
    path: PathBuf,
    gguf: Gguf,
    architecture: &'static Architecture,
    config: ModelConfig,
    tensors: HashMap<String, WeightSpec>,
    tokenizer: OnceLock<Result<Tokenizer, String>>,
}

impl ModelFile {
    /// Maps and checks a GGUF file.
    ///
    /// # Errors
    /// An unreadable file, an unsupported architecture, metadata that are missing or unsupported, tensors that are
    /// missing, have the wrong shape, or are not used by the architecture.
    pub fn open(path: &Path) -> Result<ModelFile, Error> {
        let gguf = Gguf::open(path)?;
        let name = gguf.metadata().get::<&str>("general.architecture")?;
        let architecture = Architecture::find(name).ok_or_else(|| Error::Metadata {
            file: path.to_owned(),
            key: "general.architecture".into(),
            problem: format!("`{name}` is not supported; supported: {}", Architecture::names()),
        })?;
        let tensors = gguf.tensors().map(|t| Ok((t.name().to_owned(), spec(&t)?)));
        let tensors = tensors.collect::<Result<HashMap<_, _>, Error>>()?;
        let n_vocab = tensors.get("token_embd.weight").map_or(0, |t| t.n);
        let config = ModelConfig::read(path, &gguf, architecture, n_vocab)?;
        let file = ModelFile {
            path: path.to_owned(),
            gguf,
            architecture,
            config,
            tensors,
            tokenizer: OnceLock::new(),
        };
        file.check_tensors()?;
        Ok(file)
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its hyperparameters.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The file itself, for metadata.
    pub fn gguf(&self) -> &Gguf {
        &self.gguf
    }

    /// Builds the model's Program for a bucket.
    ///
    /// # Errors
    /// A tensor that does not fit; not after [`ModelFile::open`] has checked them.
    pub fn program(&self, bucket: Bucket) -> Result<Program, Error> {
        let mut builder = Builder::new(bucket, &self.tensors);
        let logits = (self.architecture.build)(&self.config, &mut builder)?;
        Ok(builder.finish(logits))
    }

    /// The tokenizer, built on first use: a model whose tokenizer is not supported still computes logits.
    ///
    /// # Errors
    /// The tokenizer's kind is not supported, or its tables are broken.
    pub fn tokenizer(&self) -> Result<&Tokenizer, Error> {
        let built = self.tokenizer.get_or_init(|| {
            let spec = self.bpe_spec().map_err(|e| e.to_string())?;
            Tokenizer::from_spec(spec).map_err(|e| e.to_string())
        });
        built.as_ref().map_err(|problem| Error::Tokenizer(problem.clone()))
    }

    /// Whether this token ends a generation. Without a usable tokenizer only the file's end-of-sequence token does.
    pub fn is_end_of_generation(&self, token: u32) -> bool {
        self.config.eos == Some(token)
            || self.tokenizer().is_ok_and(|t| t.end_of_generation().contains(&token))
    }

    /// A specification of the smallest Program: what a check needs.
    pub(super) fn smallest_bucket() -> Bucket {
        Bucket {
            path: NumericPath::Decode,
            class: NumericClass::F32,
            rows: 1,
            logits: 1,
            kv: DType::F16,
            context: 1,
        }
    }

    /// Every tensor the architecture needs is there, and none is left over: a tensor that nothing reads is a feature
    /// that would silently be missing.
    fn check_tensors(&self) -> Result<(), Error> {
        let program = self.program(Self::smallest_bucket())?;
        let used: HashSet<&str> = program.weights.iter().map(|w| w.name.as_str()).collect();
        let unused = self.tensors.keys().filter(|name| !used.contains(name.as_str())).min();
        unused.map_or(Ok(()), |name| {
            Err(Error::Tensor {
                name: name.clone(),
                problem: format!(
                    "is not used by architecture `{}` in this build, so the result would be wrong; this variant is not supported",
                    self.config.architecture
                ),
            })
        })
    }

    fn bpe_spec(&self) -> Result<BpeSpec, Error> {
        let meta = self.gguf.metadata();
        let key = |name: &str| format!("tokenizer.ggml.{name}");
        let strings = |name: &str| {
            let array = meta.find::<Vec<&str>>(&key(name))?.unwrap_or_default();
            Ok::<_, Error>(array.into_iter().map(str::to_owned).collect())
        };
        let token = |name: &str| meta.find::<u32>(&key(name));
        Ok(BpeSpec {
            model: meta.get::<&str>(&key("model"))?.to_owned(),
            pre: meta.find::<&str>(&key("pre"))?.unwrap_or("default").to_owned(),
            tokens: strings("tokens")?,
            token_types: meta.find::<Vec<i32>>(&key("token_type"))?.unwrap_or_default(),
            merges: strings("merges")?,
            bos: token("bos_token_id")?,
            eos: token("eos_token_id")?,
            unk: token("unknown_token_id")?,
            pad: token("padding_token_id")?,
            add_bos: meta.find::<bool>(&key("add_bos_token"))?.unwrap_or(false),
            add_eos: meta.find::<bool>(&key("add_eos_token"))?.unwrap_or(false),
        })
    }
}

/// A tensor as rows of values: GGUF's first dimension is the row length, a vector is one row.
fn spec(tensor: &Tensor<'_>) -> Result<WeightSpec, Error> {
    let name = tensor.name().to_owned();
    let dtype = tensor.dtype().map_err(|UnsupportedType { tensor: name, storage }| {
        let problem = format!("is stored as {storage}, which this build does not compute with");
        Error::Tensor { name, problem }
    })?;
    match *tensor.dims() {
        [k] => Ok(WeightSpec { name, dtype, n: 1, k }),
        [k, n] => Ok(WeightSpec { name, dtype, n, k }),
        _ => {
            let problem =
                format!("has dimensions {:?}; this build reads vectors and matrices", tensor.dims());
            Err(Error::Tensor { name, problem })
        }
    }
}
