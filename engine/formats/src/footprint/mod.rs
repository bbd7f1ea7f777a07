//! What a model needs to run: bytes that decoding a token reads, and memory at a context.
//!
//! Figures come from hyperparameters and tensor names and shapes, for every architecture that is built of the parts known
//! here. Where a part is not, or the file does not say enough, a figure is [`Unknown`] with the reason: no guess.

mod blocks;
mod cache;
mod from_config;
mod from_gguf;
mod hyper;
mod role;

pub use cache::{Cache, CacheBytes, LayerCache};
pub use hyper::{Experts, ModelShape, PerLayer};

use crate::Checkpoint;
use crate::params::Packing;
use blocks::{Amount, Block, Blocks};
use hyper::Hyper;
use std::fmt;

/// Why a figure is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    reason: String,
}

impl Unknown {
    pub(crate) fn new(reason: impl ToString) -> Unknown {
        Unknown { reason: reason.to_string() }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Unknown {}

/// What a model needs to run.
#[derive(Clone, Debug)]
pub struct Footprint {
    /// Its hyperparameters, as far as the file has them.
    pub shape: ModelShape,
    /// Tokens of the vocabulary: rows of the embedding.
    pub n_vocab: Option<u64>,
    /// The weights that one decoded token reads.
    pub decode: Result<DecodeWeights, Unknown>,
    /// What is kept of the tokens before.
    pub cache: Result<Cache, Unknown>,
}

/// The weights that one decoded token reads: every matrix once, of the experts those that are used, of the embedding one
/// row and, where logits come from it, all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeWeights {
    /// Bytes.
    pub bytes: u64,
    /// Parameters a token is computed with: those of the blocks, less the experts that are not used, those of the
    /// embedding, and those of the output where they are others.
    pub active_params: u64,
    /// Whether logits come from the embedding.
    pub is_tied: bool,
}

impl Checkpoint {
    /// What the model needs to run.
    pub fn footprint(&self) -> Footprint {
        let hyper = match self {
            Checkpoint::Gguf(gguf) => from_gguf::read(gguf),
            Checkpoint::Folder(folder) => from_config::read(folder.config()),
            Checkpoint::Weights(_) => Err(Unknown::new("there is no config.json beside the weights")),
        };
        let packing = Packing::of(self).map_err(Unknown::new);
        let blocks = packing.and_then(|packing| Blocks::read(self, packing));
        let n_vocab = blocks.as_ref().ok().and_then(|blocks| blocks.n_vocab);
        let (hyper, blocks) = match (hyper, blocks) {
            (Ok(hyper), Ok(blocks)) => (hyper, blocks),
            (Err(reason), _) | (_, Err(reason)) => {
                let shape = ModelShape::default();
                return Footprint { shape, n_vocab, decode: Err(reason.clone()), cache: Err(reason) };
            }
        };
        let n_layers = n_layers(&hyper, &blocks);
        Footprint {
            decode: n_layers.clone().and_then(|n_layers| decode(&hyper, &blocks, n_layers)),
            cache: n_layers.and_then(|n_layers| cache::read(self, &hyper, &blocks, n_layers)),
            n_vocab,
            shape: hyper.shape,
        }
    }
}

/// Number of layers, where metadata and tensors agree on it.
fn n_layers(hyper: &Hyper, blocks: &Blocks) -> Result<usize, Unknown> {
    if let Some(reason) = hyper.no_decoder {
        return Err(Unknown::new(reason));
    }
    let Some(said) = hyper.shape.n_layers else {
        return Err(Unknown::new("the file does not say how many layers it has"));
    };
    let is_there = |layer: u64| u32::try_from(layer).is_ok_and(|layer| blocks.blocks.contains_key(&layer));
    // Every block is looked up, and a file has no more of them than were found.
    let found = (0..said).take_while(|&layer| is_there(layer)).count() as u64;
    if found < said || found == 0 {
        return Err(Unknown::new(format!(
            "the model has {said} layers, but there are no tensors of block {found}"
        )));
    }
    // Blocks that draft may stand behind the last layer, and no others.
    if blocks.blocks.iter().any(|(&index, block)| u64::from(index) >= said && !block.drafts) {
        return Err(Unknown::new(format!(
            "the model has {said} layers, but there are tensors of more blocks"
        )));
    }
    Ok(found as usize)
}

/// Part of the weights, in a hundred, that may have no known role before the figures mean nothing.
const UNKNOWN_PERCENT: u64 = 1;

fn decode(hyper: &Hyper, blocks: &Blocks, n_layers: usize) -> Result<DecodeWeights, Unknown> {
    let mut read = Amount::default();
    for layer in 0..n_layers {
        let Some(block) = blocks.blocks.get(&(layer as u32)) else { continue };
        read.add(block.dense);
        if (n_layers - layer) as u64 > hyper.n_shared_kv {
            read.add(block.kv);
        }
        read.add(used_experts(hyper, block, layer)?);
    }
    read.add(blocks.whole);
    let is_tied = blocks.output.bytes == 0 || hyper.tied == Some(true);
    if blocks.output.bytes == 0 && hyper.tied == Some(false) {
        return Err(Unknown::new("there is no output matrix, and the embeddings are not to be used as one"));
    }
    if blocks.embedding.bytes == 0 {
        return Err(Unknown::new("there are no token embeddings"));
    }
    let row = blocks.embedding.share(1, blocks.n_vocab.unwrap_or(1));
    let output = if is_tied { blocks.embedding } else { blocks.output };
    let active_params = read.params.saturating_add(blocks.embedding.params).saturating_add(if is_tied {
        0
    } else {
        blocks.output.params
    });
    for amount in [row, blocks.lookups, output] {
        read.add(amount);
    }
    match &blocks.largest_unknown {
        Some((_, name)) if blocks.unknown.bytes > read.bytes / 100 * UNKNOWN_PERCENT => {
            Err(Unknown::new(format!("it is not known what tensor `{name}` is for")))
        }
        _ => Ok(DecodeWeights { bytes: read.bytes, active_params, is_tied }),
    }
}

/// The experts of a layer that a token uses.
fn used_experts(hyper: &Hyper, block: &Block, layer: usize) -> Result<Amount, Unknown> {
    if block.n_fused.is_none() && block.n_single.is_none() {
        return Ok(Amount::default());
    }
    let Some(Experts { n_experts, n_used }) = hyper.shape.experts else {
        return Err(Unknown::new(format!(
            "block {layer} has experts, and the file does not say how many of them a token uses"
        )));
    };
    let agree = [block.n_fused, block.n_single].into_iter().flatten().all(|n| n == n_experts);
    if !agree || n_used > n_experts {
        return Err(Unknown::new(format!(
            "a token uses {n_used} of {n_experts} experts, which is not what block {layer} has"
        )));
    }
    Ok(block.experts.share(n_used, n_experts))
}
