//! The tensors of a model, added up block by block.

use super::Unknown;
use super::hyper::MAX_BLOCKS;
use super::role::{self, Part, Role};
use crate::params::Packing;
use crate::{Checkpoint, Tensor};
use std::collections::BTreeMap;

/// Bytes and parameters of some tensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) bytes: u64,
    pub(super) params: u64,
}

impl Amount {
    pub(super) fn add(&mut self, other: Amount) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.params = self.params.saturating_add(other.params);
    }

    /// `part` of `whole` equal shares.
    pub(super) fn share(self, part: u64, whole: u64) -> Amount {
        let of = |amount: u64| (u128::from(amount) * u128::from(part) / u128::from(whole.max(1))) as u64;
        Amount { bytes: of(self.bytes), params: of(self.params) }
    }
}

/// A projection to keys or values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Projection {
    pub(super) is_there: bool,
    /// Values it gives, where its shape tells.
    pub(super) n_out: Option<u64>,
}

/// The tensors of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    /// Read in every step.
    pub(super) dense: Amount,
    /// What projects keys and values: not read where the layer uses the cache of another.
    pub(super) kv: Amount,
    /// All experts.
    pub(super) experts: Amount,
    /// How many experts the tensors hold, by those that hold all and by those that hold one.
    pub(super) n_fused: Option<u64>,
    pub(super) n_single: Option<u64>,
    pub(super) k: Projection,
    pub(super) v: Projection,
    /// Queries, keys and values in one matrix.
    pub(super) qkv: Projection,
    /// Latent keys and values, and the rotated part of the keys.
    pub(super) latent: Projection,
    /// Width and channels of a convolution along the text.
    pub(super) conv: Option<(u64, u64)>,
    /// A convolution whose last inputs are the whole state.
    pub(super) short_conv: Option<(u64, u64)>,
    pub(super) is_recurrent: bool,
    /// Keeps keys of its own to choose what to attend to.
    pub(super) has_indexer: bool,
    /// Drafts tokens.
    pub(super) drafts: bool,
}

/// The tensors of a model.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    pub(super) blocks: BTreeMap<u32, Block>,
    pub(super) embedding: Amount,
    /// Rows of the embedding.
    pub(super) n_vocab: Option<u64>,
    /// A row of each of the other tables.
    pub(super) lookups: Amount,
    pub(super) output: Amount,
    pub(super) whole: Amount,
    /// What has no known role, and the name of its largest tensor.
    pub(super) unknown: Amount,
    pub(super) largest_unknown: Option<(u64, String)>,
}

impl Blocks {
    /// Adds up the tensors of a model.
    pub(super) fn read(model: &Checkpoint, packing: Packing) -> Result<Blocks, Unknown> {
        let is_gguf = matches!(model, Checkpoint::Gguf(_));
        let mut all = Blocks::default();
        for tensor in model.tensors() {
            let amount =
                Amount { bytes: tensor.data().len() as u64, params: packing.n_params(model, &tensor) };
            let name = tensor.name();
            match if is_gguf { role::in_gguf(name) } else { role::in_checkpoint(name) } {
                Role::Embedding => {
                    all.embedding.add(amount);
                    let rows = plain_out(&tensor);
                    all.n_vocab = all.n_vocab.max(rows);
                }
                Role::Lookup => all.lookups.add(amount.share(1, plain_out(&tensor).unwrap_or(1))),
                Role::Output => all.output.add(amount),
                Role::Whole => all.whole.add(amount),
                Role::Beside => {}
                Role::Unknown => {
                    all.unknown.add(amount);
                    if all.largest_unknown.as_ref().is_none_or(|(bytes, _)| amount.bytes > *bytes) {
                        all.largest_unknown = Some((amount.bytes, name.chars().take(80).collect()));
                    }
                }
                Role::Block { index, name } => {
                    let block = all.blocks.entry(index).or_default();
                    block.add(name, &tensor, amount);
                    if all.blocks.len() > MAX_BLOCKS {
                        return Err(Unknown::new(format!("there are more than {MAX_BLOCKS} blocks")));
                    }
                }
            }
        }
        Ok(all)
    }
}

/// Rows of a matrix, where it is stored as one and not packed some other way.
fn plain_out(tensor: &Tensor<'_>) -> Option<u64> {
    match tensor.dims()[..] {
        [k, n] if k > 1 => Some(n as u64),
        _ => None,
    }
}

impl Block {
    fn add(&mut self, name: &str, tensor: &Tensor<'_>, amount: Amount) {
        match role::part(name) {
            // Old checkpoints keep the mask of attention, which has four dimensions.
            Part::Dense if tensor.dims().len() > 3 => {}
            Part::Dense => self.dense.add(amount),
            Part::KeyValue => self.kv.add(amount),
            Part::AllExperts => {
                self.experts.add(amount);
                let n = tensor.dims().last().map_or(0, |&n| n as u64);
                // Where tensors disagree, no number of experts is right.
                let n = if self.n_fused.is_none_or(|before| before == n) { n } else { 0 };
                self.n_fused = Some(n);
            }
            Part::Expert(expert) => {
                self.experts.add(amount);
                self.n_single = self.n_single.max(Some(u64::from(expert) + 1));
            }
        }
        self.drafts |= ["nextn.", "eh_proj.", "enorm.", "hnorm."].iter().any(|start| name.starts_with(start));
        self.has_indexer |= name.contains("indexer");
        const RECURRENT: [&str; 9] = [
            "ssm_",
            "linear_attn.",
            "mamba.",
            "mixer.",
            "conv1d",
            "A_log",
            "time_mix",
            "shortconv",
            "conv.conv",
        ];
        self.is_recurrent |= RECURRENT.iter().any(|part| name.contains(part));
        // What a tensor belongs to, and which of its tensors it is: `attn_k` and `weight`.
        let (owner, last) = name.rsplit_once('.').unwrap_or((name, ""));
        let owner = owner.rsplit('.').next().unwrap_or_default();
        match (owner, &tensor.dims()[..]) {
            ("ssm_conv1d", &[width, channels]) if last == "weight" => {
                self.conv = Some((width as u64, channels as u64));
            }
            ("conv", &[width, channels]) if name == "shortconv.conv.weight" => {
                self.short_conv = Some((width as u64, channels as u64));
            }
            _ => {}
        }
        let projection = match owner {
            "attn_k" | "k_proj" => &mut self.k,
            "attn_v" | "v_proj" => &mut self.v,
            "attn_qkv" | "qkv_proj" | "c_attn" | "query_key_value" | "Wqkv" => &mut self.qkv,
            "attn_kv_a_mqa" | "kv_a_proj_with_mqa" => &mut self.latent,
            _ => return,
        };
        projection.is_there = true;
        // GPT-2 stores this one matrix the other way round.
        if last == "weight" && owner != "c_attn" {
            projection.n_out = plain_out(tensor);
        }
    }
}
