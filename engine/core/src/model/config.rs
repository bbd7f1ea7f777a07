//! A model's hyperparameters, read from its file and checked.

use super::Architecture;
use crate::Error;
use memra_formats::{FromValue, Gguf};
use serde::Serialize;
use std::path::Path;

/// Hyperparameters that a Program is built from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelConfig {
    /// Architecture, as `general.architecture` names it.
    pub architecture: &'static str,
    /// The model's name, or nothing.
    pub name: Option<String>,
    /// Transformer blocks.
    pub n_layers: usize,
    /// Width of the residual stream.
    pub n_embd: usize,
    /// Query heads.
    pub n_heads: usize,
    /// Key-value heads; each serves `n_heads / n_kv_heads` query heads.
    pub n_kv_heads: usize,
    /// Values a head.
    pub head_dim: usize,
    /// Width of the feed-forward network.
    pub n_ff: usize,
    /// Tokens of the vocabulary.
    pub n_vocab: usize,
    /// Positions the model was trained for.
    pub n_ctx_train: usize,
    /// Added to the mean square in RMS norms.
    pub rms_eps: f32,
    /// Base of the rotary frequencies.
    pub rope_base: f32,
    /// Leading values of each head that are rotated.
    pub rope_dims: usize,
    /// Whether value `i` rotates with `i + rope_dims / 2`, instead of with its neighbour.
    pub rope_neox: bool,
    /// Token that begins a text.
    pub bos: Option<u32>,
    /// Token that ends a text.
    pub eos: Option<u32>,
}

/// Keys whose presence with another value than this changes the computation in ways no architecture here has.
const NEUTRAL: [(&str, f64); 8] = [
    ("expert_count", 0.0),
    ("attention.sliding_window", 0.0),
    ("attention.max_alibi_bias", 0.0),
    ("attention.clamp_kqv", 0.0),
    ("rope.scale_linear", 1.0),
    ("rope.scaling.factor", 1.0),
    ("logit_scale", 1.0),
    ("residual_scale", 1.0),
];

impl ModelConfig {
    /// Reads the configuration of a file of this architecture.
    ///
    /// # Errors
    /// A key that is missing or out of range, or asks for what this build lacks.
    pub(super) fn read(
        file: &Path,
        gguf: &Gguf,
        architecture: &Architecture,
        n_vocab: usize,
    ) -> Result<Self, Error> {
        let keys = Keys { file, gguf, architecture: architecture.name };
        keys.refuse_unsupported()?;
        let n_embd = keys.count("embedding_length")?;
        let n_heads = keys.count("attention.head_count")?;
        let n_kv_heads = keys.optional("attention.head_count_kv")?.unwrap_or(n_heads);
        if n_kv_heads == 0 || !n_heads.is_multiple_of(n_kv_heads) {
            let problem = format!("is {n_kv_heads}; it must divide the {n_heads} query heads");
            return Err(keys.fail("attention.head_count_kv", problem));
        }
        let head_dim = keys.optional("attention.key_length")?.unwrap_or(n_embd / n_heads);
        if head_dim == 0 || !head_dim.is_multiple_of(2) {
            return Err(
                keys.fail("attention.key_length", format!("is {head_dim}; heads must have an even size"))
            );
        }
        let value_dim = keys.optional("attention.value_length")?.unwrap_or(head_dim);
        if value_dim != head_dim {
            let problem = format!("is {value_dim}; values must be as long as keys ({head_dim})");
            return Err(keys.fail("attention.value_length", problem));
        }
        let rope_dims = keys.optional("rope.dimension_count")?.unwrap_or(head_dim);
        if rope_dims > head_dim || !rope_dims.is_multiple_of(2) {
            let problem = format!("is {rope_dims}; it must be even and at most the head size, {head_dim}");
            return Err(keys.fail("rope.dimension_count", problem));
        }
        Ok(ModelConfig {
            architecture: architecture.name,
            name: gguf.metadata().find::<&str>("general.name")?.map(str::to_owned),
            n_layers: keys.count("block_count")?,
            n_embd,
            n_heads,
            n_kv_heads,
            head_dim,
            n_ff: keys.count("feed_forward_length")?,
            n_vocab,
            n_ctx_train: keys.count("context_length")?,
            rms_eps: keys.positive("attention.layer_norm_rms_epsilon", None)?,
            rope_base: keys.positive("rope.freq_base", Some(10_000.0))?,
            rope_dims,
            rope_neox: architecture.rope_neox,
            bos: keys.token("tokenizer.ggml.bos_token_id", n_vocab)?,
            eos: keys.token("tokenizer.ggml.eos_token_id", n_vocab)?,
        })
    }
}

/// Typed access to `{architecture}.{key}`.
struct Keys<'a> {
    file: &'a Path,
    gguf: &'a Gguf,
    architecture: &'static str,
}

impl Keys<'_> {
    fn get<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<Option<T>, Error> {
        Ok(self.gguf.metadata().find(&format!("{}.{key}", self.architecture))?)
    }

    fn fail(&self, key: &str, problem: String) -> Error {
        let key = format!("{}.{key}", self.architecture);
        Error::Metadata { file: self.file.to_owned(), key, problem }
    }

    fn optional(&self, key: &str) -> Result<Option<usize>, Error> {
        Ok(self.get::<u32>(key)?.map(|v| v as usize))
    }

    fn count(&self, key: &str) -> Result<usize, Error> {
        match self.optional(key)? {
            Some(value) if value > 0 => Ok(value),
            Some(_) => Err(self.fail(key, "is 0; it must be at least 1".into())),
            None => Err(self.fail(key, "is missing; the file is incomplete".into())),
        }
    }

    fn positive(&self, key: &str, default: Option<f32>) -> Result<f32, Error> {
        let value = self.get::<f32>(key)?.or(default);
        let value = value.ok_or_else(|| self.fail(key, "is missing; the file is incomplete".into()))?;
        if value > 0.0 && value.is_finite() {
            return Ok(value);
        }
        Err(self.fail(key, format!("is {value}; it must be positive")))
    }

    fn token(&self, key: &str, n_vocab: usize) -> Result<Option<u32>, Error> {
        let token = self.gguf.metadata().find::<u32>(key)?;
        match token {
            Some(id) if id as usize >= n_vocab => Err(Error::Metadata {
                file: self.file.to_owned(),
                key: key.to_owned(),
                problem: format!("is {id}; the vocabulary has {n_vocab} tokens"),
            }),
            _ => Ok(token),
        }
    }

    fn refuse_unsupported(&self) -> Result<(), Error> {
        if let Some(kind) = self.get::<&str>("rope.scaling.type")?.filter(|kind| *kind != "none") {
            return Err(self.fail("rope.scaling.type", format!("`{kind}` is not supported; supported: none")));
        }
        for (key, neutral) in NEUTRAL {
            let value = match self.get::<f32>(key) {
                Ok(value) => value.map(f64::from),
                // An integer key.
                Err(_) => self.get::<u32>(key)?.map(f64::from),
            };
            if let Some(value) = value.filter(|&value| value != neutral) {
                return Err(self.fail(key, format!("is {value}, which this build does not support")));
            }
        }
        Ok(())
    }
}
