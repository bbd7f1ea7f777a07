//! Hyperparameters from the metadata of a GGUF file.

use super::Unknown;
use super::hyper::{Experts, Hyper, Kind, Kinds, MAX_BLOCKS, ModelShape, PerLayer};
use crate::{Array, FromValue, Gguf, Value};

/// Layers from one without a window to the next, in architectures whose files do not say; the published models are the
/// source.
const PERIODS: [(&str, u64); 9] = [
    ("gemma2", 2),
    ("gemma3", 6),
    ("gemma3n", 5),
    ("gpt-oss", 2),
    ("cohere2", 4),
    ("olmo2", 4),
    ("exaone4", 4),
    ("afmoe", 4),
    ("llama4", 4),
];

/// Tokens that the windows of llama4 hold where its files do not say.
const LLAMA4_CHUNK: u64 = 8192;

/// Reads the hyperparameters.
pub(super) fn read(gguf: &Gguf) -> Result<Hyper, Unknown> {
    let architecture = gguf.metadata().find::<&str>("general.architecture").map_err(Unknown::new)?;
    let Some(architecture) = architecture else {
        return Err(Unknown::new("the file does not name its architecture"));
    };
    let keys = Keys { gguf, architecture };
    let n_embd = keys.number("embedding_length")?;
    let n_heads = keys.per_layer("attention.head_count")?;
    // The first layers of some models have no heads at all.
    let heads = match &n_heads {
        Some(PerLayer::Each(each)) => each.iter().copied().max(),
        Some(PerLayer::Same(same)) => Some(*same),
        None => None,
    };
    let even = || n_embd?.checked_div(heads?);
    let head_dim = keys.number("attention.key_length")?.or_else(even);
    let n_blocks = keys.number("block_count")?;
    // Blocks that draft are counted as blocks.
    let n_drafting = keys.number("nextn_predict_layers")?.unwrap_or_default();
    let shape = ModelShape {
        n_layers: n_blocks.map(|n| n.saturating_sub(n_drafting)),
        n_embd,
        n_ff: keys.per_layer("feed_forward_length")?,
        n_kv_heads: keys.per_layer("attention.head_count_kv")?.or_else(|| n_heads.clone()),
        n_heads,
        head_dim,
        value_dim: keys.number("attention.value_length")?.or(head_dim),
        experts: keys.experts()?,
    };
    let causal = keys.find::<bool>("attention.causal")?;
    Ok(Hyper {
        shape,
        kinds: keys.kinds()?,
        n_shared_kv: keys.number("attention.shared_kv_layers")?.unwrap_or_default(),
        tied: None,
        delta: None,
        no_decoder: (causal == Some(false)).then_some("the model reads texts and does not generate any"),
    })
}

/// Typed access to `{architecture}.{key}`.
struct Keys<'a> {
    gguf: &'a Gguf,
    architecture: &'a str,
}

impl<'a> Keys<'a> {
    fn find<T: FromValue<'a>>(&self, key: &str) -> Result<Option<T>, Unknown> {
        self.gguf.metadata().find(&format!("{}.{key}", self.architecture)).map_err(Unknown::new)
    }

    fn value(&self, key: &str) -> Option<Value<'a>> {
        self.gguf.metadata().value_of(&format!("{}.{key}", self.architecture))
    }

    fn number(&self, key: &str) -> Result<Option<u64>, Unknown> {
        self.find(key)
    }

    /// A number, or an array of as many as there are layers.
    fn per_layer(&self, key: &str) -> Result<Option<PerLayer>, Unknown> {
        match self.value(key) {
            Some(Value::Array(array)) => {
                self.bounded(key, array)?;
                Ok(self.find::<Vec<u64>>(key)?.map(PerLayer::Each))
            }
            _ => Ok(self.number(key)?.map(PerLayer::Same)),
        }
    }

    /// Refuses to decode an array that cannot be one item a layer.
    fn bounded(&self, key: &str, array: Array<'_>) -> Result<(), Unknown> {
        if array.len() <= MAX_BLOCKS {
            return Ok(());
        }
        let architecture = self.architecture;
        Err(Unknown::new(format!("`{architecture}.{key}` has {} items, more than layers", array.len())))
    }

    fn experts(&self) -> Result<Option<Experts>, Unknown> {
        let (n_experts, n_used) = (self.number("expert_count")?, self.number("expert_used_count")?);
        Ok(match (n_experts, n_used) {
            (Some(n_experts), Some(n_used)) if n_experts > 0 => Some(Experts { n_experts, n_used }),
            _ => None,
        })
    }

    fn kinds(&self) -> Result<Kinds, Unknown> {
        let mut window = self.number("attention.sliding_window")?;
        if self.architecture == "llama4" {
            window = window.filter(|&window| window == 0).or(Some(LLAMA4_CHUNK));
        }
        let Some(window) = window.filter(|&window| window > 0) else { return Ok(Kinds::NoWindow) };
        const PATTERN: &str = "attention.sliding_window_pattern";
        let kind = |windowed| if windowed { Kind::Window(window) } else { Kind::Full };
        let known = PERIODS.iter().find(|(name, _)| *name == self.architecture);
        match (self.value(PATTERN), known) {
            (Some(Value::Array(array)), _) => {
                self.bounded(PATTERN, array)?;
                let windowed = match array.item_type() {
                    crate::ValueType::Bool => self.find::<Vec<bool>>(PATTERN)?,
                    _ => self.find::<Vec<u8>>(PATTERN)?.map(|list| list.iter().map(|&n| n != 0).collect()),
                };
                Ok(Kinds::Each(windowed.unwrap_or_default().into_iter().map(kind).collect()))
            }
            (Some(_), _) => Ok(Kinds::Period { window, period: self.number(PATTERN)?.unwrap_or_default() }),
            (None, Some(&(_, period))) => Ok(Kinds::Period { window, period }),
            (None, None) => Ok(Kinds::Unknown(Unknown::new(format!(
                "some layers attend to the last {window} tokens alone, and the file does not say which"
            )))),
        }
    }
}
