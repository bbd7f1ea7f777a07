//! Hyperparameters from `config.json`.

use super::Unknown;
use super::hyper::{Delta, Experts, Hyper, Kind, Kinds, MAX_BLOCKS, ModelShape, PerLayer};
use crate::{Json, json::Text};
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use std::fmt;

/// Reads the hyperparameters.
pub(super) fn read(config: &Json) -> Result<Hyper, Unknown> {
    // Models that see or hear keep their language model's numbers one level deeper.
    let nested = config.find::<de::IgnoredAny>("text_config").map_err(Unknown::new)?.is_some();
    let keys = Keys { config, prefix: if nested { "text_config." } else { "" } };
    let n_embd = keys.first(&["hidden_size", "n_embd", "d_model"])?;
    let heads = keys.first(&["num_attention_heads", "n_head", "num_heads"])?;
    let head_dim = keys.first(&["head_dim"])?.or_else(|| n_embd?.checked_div(heads?));
    let same = |value: Option<u64>| value.map(PerLayer::Same);
    let shape = ModelShape {
        n_layers: keys.first(&["num_hidden_layers", "n_layer", "num_layers"])?,
        n_embd,
        n_ff: same(keys.first(&["intermediate_size", "ffn_dim", "n_inner"])?),
        n_heads: same(heads),
        n_kv_heads: same(keys.first(&["num_key_value_heads"])?.or(heads)),
        head_dim,
        value_dim: keys.first(&["v_head_dim"])?.or(head_dim),
        experts: keys.experts()?,
    };
    let model_type = keys.find::<Text<'_>>("model_type")?.map(|text| text.0.into_owned());
    let encodes = config.find::<bool>("is_encoder_decoder").map_err(Unknown::new)?;
    Ok(Hyper {
        shape,
        kinds: keys.kinds(model_type.as_deref().unwrap_or_default())?,
        n_shared_kv: keys.first(&["num_kv_shared_layers"])?.unwrap_or_default(),
        // Beside a nested configuration, either level may say it.
        tied: match keys.find("tie_word_embeddings")? {
            None => config.find("tie_word_embeddings").map_err(Unknown::new)?,
            said => said,
        },
        delta: keys.delta()?,
        no_decoder: (encodes == Some(true)).then_some("the model has an encoder beside its decoder"),
    })
}

/// Typed access to the language model's fields.
struct Keys<'a> {
    config: &'a Json,
    prefix: &'static str,
}

impl<'a> Keys<'a> {
    fn find<T: Deserialize<'a>>(&self, key: &str) -> Result<Option<T>, Unknown> {
        self.config.find(&format!("{}{key}", self.prefix)).map_err(Unknown::new)
    }

    /// The first of these fields that is there; models name the same thing differently.
    fn first(&self, keys: &[&str]) -> Result<Option<u64>, Unknown> {
        for key in keys {
            if let Some(value) = self.find(key)? {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    fn experts(&self) -> Result<Option<Experts>, Unknown> {
        let all = ["num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"];
        let used =
            ["num_experts_per_tok", "num_experts_per_token", "experts_per_token", "top_k_experts", "moe_k"];
        Ok(match (self.first(&all)?, self.first(&used)?) {
            (Some(n_experts), Some(n_used)) if n_experts > 0 => Some(Experts { n_experts, n_used }),
            _ => None,
        })
    }

    fn delta(&self) -> Result<Option<Delta>, Unknown> {
        let number = |key| self.find::<u64>(key);
        let sizes = (
            number("linear_conv_kernel_dim")?,
            number("linear_num_key_heads")?,
            number("linear_key_head_dim")?,
            number("linear_num_value_heads")?,
            number("linear_value_head_dim")?,
        );
        Ok(match sizes {
            (Some(kernel), Some(key_heads), Some(key_dim), Some(value_heads), Some(value_dim)) => {
                Some(Delta { kernel, key_heads, key_dim, value_heads, value_dim })
            }
            _ => None,
        })
    }

    fn kinds(&self, model_type: &str) -> Result<Kinds, Unknown> {
        let window = self.find::<u64>("sliding_window")?.filter(|&window| window > 0);
        let chunk = self.find::<u64>("attention_chunk_size")?;
        if let Some(types) = self.find::<LayerTypes>("layer_types")? {
            return Ok(types.kinds(window, chunk));
        }
        let unsaid = |tokens| {
            Kinds::Unknown(Unknown::new(format!(
                "some layers attend to the last {tokens} tokens alone, and config.json does not say which"
            )))
        };
        let Some(window) = window else { return Ok(chunk.map_or(Kinds::NoWindow, unsaid)) };
        let period = self.first(&["sliding_window_pattern", "_sliding_window_pattern"])?;
        Ok(match model_type {
            "qwen2" | "qwen2_moe" | "qwen3" | "qwen3_moe" => {
                if self.find("use_sliding_window")?.unwrap_or(false) {
                    let first = self.find("max_window_layers")?.unwrap_or_default();
                    Kinds::From { window, first }
                } else {
                    Kinds::NoWindow
                }
            }
            "mistral" | "mixtral" | "phi3" | "starcoder2" => Kinds::From { window, first: 0 },
            "gemma2" | "gpt_oss" => Kinds::Period { window, period: 2 },
            "gemma3" | "gemma3_text" => Kinds::Period { window, period: period.unwrap_or(6) },
            "cohere2" => Kinds::Period { window, period: period.unwrap_or(4) },
            _ => match period {
                Some(period) => Kinds::Period { window, period },
                None => unsaid(window),
            },
        })
    }
}

/// The field `layer_types`, as far as it is understood.
struct LayerTypes {
    types: Vec<LayerType>,
    /// The first type that is not.
    unknown: Option<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum LayerType {
    Full,
    Sliding,
    Chunked,
    Linear,
}

impl LayerTypes {
    fn kinds(self, window: Option<u64>, chunk: Option<u64>) -> Kinds {
        if let Some(name) = self.unknown {
            let reason = format!("config.json has layers of type {name:?}, whose cache is not known here");
            return Kinds::Unknown(Unknown::new(reason));
        }
        let kind = |layer| match layer {
            LayerType::Full => Some(Kind::Full),
            LayerType::Sliding => window.map(Kind::Window),
            LayerType::Chunked => chunk.map(Kind::Window),
            LayerType::Linear => Some(Kind::Recurrent),
        };
        let kinds: Option<Vec<Kind>> = self.types.into_iter().map(kind).collect();
        let unsaid = || Unknown::new("config.json has layers with a window and does not say how large it is");
        kinds.map_or_else(|| Kinds::Unknown(unsaid()), Kinds::Each)
    }
}

impl<'de> Deserialize<'de> for LayerTypes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LayerTypes, D::Error> {
        struct List;

        impl<'de> Visitor<'de> for List {
            type Value = LayerTypes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of layer types")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<LayerTypes, A::Error> {
                let mut found = LayerTypes { types: Vec::new(), unknown: None };
                while let Some(Text(name)) = list.next_element()? {
                    if found.types.len() == MAX_BLOCKS {
                        return Err(de::Error::custom("more layers than any model has"));
                    }
                    found.types.push(match &*name {
                        "full_attention" | "attention" => LayerType::Full,
                        "sliding_attention" => LayerType::Sliding,
                        "chunked_attention" => LayerType::Chunked,
                        "linear_attention" => LayerType::Linear,
                        other => {
                            found.unknown.get_or_insert_with(|| other.chars().take(40).collect());
                            LayerType::Full
                        }
                    });
                }
                Ok(found)
            }
        }

        deserializer.deserialize_seq(List)
    }
}
