//! Hyperparameters that decide what a model needs, whichever format they were read from.

use super::Unknown;
use serde::Serialize;

/// Most blocks of a model that is looked into; real ones have up to some 200.
pub(super) const MAX_BLOCKS: usize = 1024;

/// A number that is the same in every layer, or one a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum PerLayer {
    /// The same in every layer.
    Same(u64),
    /// Layer by layer.
    Each(Vec<u64>),
}

impl PerLayer {
    /// The number of a layer.
    pub fn get(&self, layer: usize) -> Option<u64> {
        match self {
            PerLayer::Same(value) => Some(*value),
            PerLayer::Each(values) => values.get(layer).copied(),
        }
    }
}

/// Experts of a mixture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Experts {
    /// In a layer.
    pub n_experts: u64,
    /// Of them, those that a token uses.
    pub n_used: u64,
}

/// The shape of a model; what the file does not say is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ModelShape {
    /// Blocks of the model, without those that only draft.
    pub n_layers: Option<u64>,
    /// Width of the residual stream.
    pub n_embd: Option<u64>,
    /// Width of dense feed-forward networks.
    pub n_ff: Option<PerLayer>,
    /// Query heads.
    pub n_heads: Option<PerLayer>,
    /// Key-value heads.
    pub n_kv_heads: Option<PerLayer>,
    /// Values of a key.
    pub head_dim: Option<u64>,
    /// Values of a value.
    pub value_dim: Option<u64>,
    /// Experts of the layers that have any.
    pub experts: Option<Experts>,
}

/// What else the figures depend on.
#[derive(Clone, Debug)]
pub(super) struct Hyper {
    pub(super) shape: ModelShape,
    /// What the layers are, where the file says so.
    pub(super) kinds: Kinds,
    /// Last layers that read the cache of an earlier layer instead of having their own.
    pub(super) n_shared_kv: u64,
    /// Whether logits come from the token embeddings, where the file says so.
    pub(super) tied: Option<bool>,
    /// Gated delta rule of the recurrent layers; GGUF files tell by their tensors.
    pub(super) delta: Option<Delta>,
    /// Why it does not decode text.
    pub(super) no_decoder: Option<&'static str>,
}

/// What a layer does with tokens before its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Attends to all of them.
    Full,
    /// Attends to the last so many.
    Window(u64),
    /// Keeps a state of fixed size.
    Recurrent,
}

/// The kinds of all layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kinds {
    /// No layer has a window; tensors tell which are recurrent.
    NoWindow,
    /// A window of `window` tokens in every layer but those where `(layer + 1) % period == 0`.
    Period {
        /// Tokens.
        window: u64,
        /// Layers from one without a window to the next; 0 where there is none.
        period: u64,
    },
    /// A window of `window` tokens from layer `first` on.
    From {
        /// Tokens.
        window: u64,
        /// First layer with a window.
        first: u64,
    },
    /// Layer by layer.
    Each(Vec<Kind>),
    /// There are windows, and the file does not say where.
    Unknown(Unknown),
}

impl Kinds {
    pub(super) fn of(&self, layer: usize) -> Result<Kind, Unknown> {
        let window = |windowed, window| if windowed { Kind::Window(window) } else { Kind::Full };
        Ok(match self {
            Kinds::NoWindow => Kind::Full,
            Kinds::Period { window: tokens, period } => {
                window(*period == 0 || !(layer as u64 + 1).is_multiple_of(*period), *tokens)
            }
            Kinds::From { window: tokens, first } => window(layer as u64 >= *first, *tokens),
            Kinds::Each(kinds) => match kinds.get(layer) {
                Some(kind) => *kind,
                None => return Err(Unknown::new(format!("the kinds of layers end before layer {layer}"))),
            },
            Kinds::Unknown(reason) => return Err(reason.clone()),
        })
    }
}

/// Sizes of a gated delta rule, or of another linear attention with a state of keys by values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delta {
    /// Width of the convolution.
    pub(super) kernel: u64,
    pub(super) key_heads: u64,
    pub(super) key_dim: u64,
    pub(super) value_heads: u64,
    pub(super) value_dim: u64,
}

impl Delta {
    /// Values of a layer's state: the last inputs of the convolution, and a matrix of keys by values for every head of
    /// values.
    pub(super) fn state_values(&self) -> Option<u64> {
        let keys = self.key_heads.checked_mul(self.key_dim)?;
        let values = self.value_heads.checked_mul(self.value_dim)?;
        let width = keys.checked_mul(2)?.checked_add(values)?;
        let matrix = values.checked_mul(self.key_dim)?;
        self.kernel.saturating_sub(1).checked_mul(width)?.checked_add(matrix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_layers() {
        let windows = |kinds: Kinds| -> Vec<bool> {
            (0..6).map(|layer| kinds.of(layer).unwrap() != Kind::Full).collect()
        };
        assert_eq!(windows(Kinds::NoWindow), [false; 6]);
        let period = |period| windows(Kinds::Period { window: 8, period });
        assert_eq!(period(6), [true, true, true, true, true, false]);
        assert_eq!(period(2), [true, false, true, false, true, false]);
        assert_eq!((period(0), period(1)), (vec![true; 6], vec![false; 6]));
        assert_eq!(windows(Kinds::From { window: 8, first: 4 }), [false, false, false, false, true, true]);
        assert!(Kinds::Each(vec![Kind::Full]).of(1).is_err());
    }

    #[test]
    fn states_do_not_overflow() {
        // Qwen3-Next: 3 x (2 x 16 x 128 + 32 x 128) + 32 x 128 x 128.
        let delta = Delta { kernel: 4, key_heads: 16, key_dim: 128, value_heads: 32, value_dim: 128 };
        assert_eq!(delta.state_values(), Some(3 * 8192 + 524_288));
        assert_eq!(Delta { key_dim: u64::MAX, ..delta }.state_values(), None);
        assert_eq!(Delta { kernel: 0, ..delta }.state_values(), Some(524_288));
    }
}
