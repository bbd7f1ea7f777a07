//! A model's hyperparameters, read from its file and checked: what architectures share.

use super::source::Keys;
use super::{RopeConfig, windows};
use crate::Error;
use serde::{Deserialize, Serialize};

/// Hyperparameters that a Program is built from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelConfig {
    /// Architecture, as `general.architecture` names it.
    pub architecture: &'static str,
    /// The model's name, or nothing.
    pub name: Option<String>,
    /// Transformer blocks, not counting those of heads that predict further tokens.
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
    /// How heads are rotated, in layers that see the whole context where layers differ.
    pub rope: RopeConfig,
    /// Keys that each layer's rows see at most; `None`: all up to their own.
    pub windows: Vec<Option<usize>>,
    /// Whether the embedding table is the output head too, where the file says.
    pub tied: Option<bool>,
    /// Token that begins a text.
    pub bos: Option<u32>,
    /// Token that ends a text.
    pub eos: Option<u32>,
    /// Other tokens that end a generation.
    pub ends: Vec<u32>,
}

impl ModelConfig {
    /// Reads what architectures share.
    ///
    /// # Errors
    /// A hyperparameter that is missing or out of range, or asks for what this build lacks.
    pub(super) fn read(keys: &Keys<'_>) -> Result<Self, Error> {
        let architecture = keys.source().architecture();
        let n_vocab = keys.source().tensors().specs().get("token_embd.weight").map_or(0, |table| table.n);
        let n_layers = n_layers(keys)?;
        let n_embd = keys.count("embedding_length")?;
        let n_heads = keys.count("attention.head_count")?;
        let n_kv_heads = keys.optional("attention.head_count_kv")?.unwrap_or(n_heads);
        if n_kv_heads == 0 || !n_heads.is_multiple_of(n_kv_heads) {
            let problem = format!("is {n_kv_heads}; it must divide the {n_heads} query heads");
            return Err(keys.fail("attention.head_count_kv", problem));
        }
        let head_dim = head_dim(keys, n_embd / n_heads)?;
        let n_ctx_train = keys.count("context_length")?;
        let [bos, eos] = special_tokens(keys, n_vocab)?;
        check_vocabulary(keys, n_vocab)?;
        Ok(ModelConfig {
            architecture: architecture.name,
            name: name(keys)?,
            n_layers,
            n_embd,
            n_heads,
            n_kv_heads,
            head_dim,
            n_ff: keys.count("feed_forward_length")?,
            n_vocab,
            n_ctx_train,
            rms_eps: keys.positive("attention.layer_norm_rms_epsilon", None)?,
            rope: RopeConfig::read(keys, head_dim, n_ctx_train)?,
            windows: windows::read(keys, n_layers, architecture.window_pattern)?,
            tied: keys.json("tie_word_embeddings")?,
            bos: bos.first().copied(),
            eos: eos.first().copied(),
            ends: eos.get(1..).unwrap_or_default().to_vec(),
        })
    }
}

/// Layers of the model proper. GGUF files count the blocks of heads that predict further tokens (MTP) among theirs; they
/// come last. Lists are made of one entry a layer, so there cannot be more layers than tensors.
fn n_layers(keys: &Keys<'_>) -> Result<usize, Error> {
    const KEY: &str = "nextn_predict_layers";
    let (blocks, tensors) = (keys.count("block_count")?, keys.source().tensors().specs().len());
    if blocks > tensors {
        let problem = format!("is {blocks}; there are no more than {tensors} tensors in all");
        return Err(keys.fail("block_count", problem));
    }
    let beside = keys.optional(KEY)?.unwrap_or(0);
    if beside > 1 {
        return Err(keys.fail(KEY, format!("is {beside}; this build supports one")));
    }
    match keys.source().folder() {
        None if beside >= blocks => Err(keys.fail(KEY, format!("is {beside}, of only {blocks} blocks"))),
        None => Ok(blocks - beside),
        Some(_) => Ok(blocks),
    }
}

fn head_dim(keys: &Keys<'_>, default: usize) -> Result<usize, Error> {
    let head_dim = keys.optional("attention.key_length")?.unwrap_or(default);
    if head_dim == 0 || !head_dim.is_multiple_of(2) {
        return Err(keys.fail("attention.key_length", format!("is {head_dim}; heads must have an even size")));
    }
    let value_dim = keys.optional("attention.value_length")?.unwrap_or(head_dim);
    if value_dim != head_dim {
        let problem = format!("is {value_dim}; values must be as long as keys ({head_dim})");
        return Err(keys.fail("attention.value_length", problem));
    }
    Ok(head_dim)
}

/// The file's own name for the model, or the folder's.
fn name(keys: &Keys<'_>) -> Result<Option<String>, Error> {
    if let Some(folder) = keys.source().folder() {
        return Ok(folder.path().file_name().map(|name| name.to_string_lossy().into_owned()));
    }
    Ok(keys.metadata_text("general.name")?.map(str::to_owned))
}

/// One token or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Tokens {
    One(u32),
    Several(Vec<u32>),
}

/// Tokens that begin a text, and those that end one: the first of each is the one that is put there.
fn special_tokens(keys: &Keys<'_>, n_vocab: usize) -> Result<[Vec<u32>; 2], Error> {
    let mut found = [Vec::new(), Vec::new()];
    for (tokens, name) in found.iter_mut().zip(["bos_token_id", "eos_token_id"]) {
        let mut add = |more: Option<Tokens>| match more {
            Some(Tokens::One(token)) => tokens.push(token),
            Some(Tokens::Several(several)) => tokens.extend(several),
            None => {}
        };
        let key = match keys.source().folder() {
            Some(folder) => {
                add(keys.json(name)?);
                if let Some(config) = folder.generation_config()? {
                    add(config.find(name)?);
                }
                name.to_owned()
            }
            None => {
                let key = format!("tokenizer.ggml.{name}");
                add(keys.metadata_number(&key)?.map(Tokens::One));
                key
            }
        };
        if let Some(token) = tokens.iter().find(|&&token| token as usize >= n_vocab) {
            let problem = format!("is {token}; the vocabulary has {n_vocab} tokens");
            return Err(keys.fail_at(&key, problem));
        }
    }
    Ok(found)
}

/// A folder says how many rows its embedding table has.
fn check_vocabulary(keys: &Keys<'_>, n_vocab: usize) -> Result<(), Error> {
    match keys.json::<usize>("vocab_size")? {
        Some(size) if size != n_vocab && n_vocab > 0 => {
            Err(keys.fail_at("vocab_size", format!("is {size}; the embedding table has {n_vocab} rows")))
        }
        _ => Ok(()),
    }
}
