//! Hyperparameters under GGUF's keys, from the metadata of GGUF files or from `config.json`.

use super::Source;
use crate::Error;
use memra_formats::{FromValue, Metadata};
use serde::de::{DeserializeOwned, IgnoredAny};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// A hyperparameter's key in GGUF files, less the architecture in front, and the fields of `config.json` that may hold
/// it, best first; dots lead into objects.
pub(in crate::model) type Field = (&'static str, &'static [&'static str]);

/// What every architecture has, unless its own fields come before.
const COMMON: &[Field] = &[
    ("block_count", &["num_hidden_layers"]),
    ("context_length", &["max_position_embeddings"]),
    ("embedding_length", &["hidden_size"]),
    ("feed_forward_length", &["intermediate_size"]),
    ("attention.head_count", &["num_attention_heads"]),
    ("attention.head_count_kv", &["num_key_value_heads"]),
    ("attention.key_length", &["head_dim"]),
    ("attention.layer_norm_rms_epsilon", &["rms_norm_eps"]),
    ("attention.sliding_window", &["sliding_window"]),
];

/// GGUF keys that change nothing here.
const GGUF_IGNORED: &[&str] =
    &["vocab_size", "tensor_data_layout", "rope.scaling.finetuned", "rope.scaling.original_context_length"];

/// GGUF keys that may be there with this value, which means that the feature is not used.
const GGUF_NEUTRAL: &[(&str, f64)] = &[
    ("expert_count", 0.0),
    ("expert_used_count", 0.0),
    ("attention.max_alibi_bias", 0.0),
    ("attention.clamp_kqv", 0.0),
    ("attention.causal", 1.0),
    ("logit_scale", 1.0),
    ("residual_scale", 1.0),
    ("embedding_scale", 1.0),
];

/// Fields of `config.json` that say nothing of what is computed for a text.
const JSON_IGNORED: &[&str] = &[
    "_attn_implementation_autoset",
    "_name_or_path",
    "architectures",
    "attention_dropout",
    "auto_map",
    "cache_implementation",
    "dtype",
    "hidden_dropout",
    "initializer_range",
    "is_llama_config",
    "model_type",
    "output_router_logits",
    "pad_token_id",
    "pretraining_tp",
    "router_aux_loss_coef",
    "torch_dtype",
    "transformers.js_config",
    "transformers_version",
    "unsloth_fixed",
    "unsloth_version",
    "use_cache",
];

/// A type that hyperparameters are read as.
pub(in crate::model) trait Hyper: for<'a> FromValue<'a> + DeserializeOwned {}
impl<T: for<'a> FromValue<'a> + DeserializeOwned> Hyper for T {}

/// Typed access to a model's hyperparameters, which notes what was asked for: what nothing asked for is a feature that
/// would silently be missing.
pub(in crate::model) struct Keys<'a> {
    source: &'a Source,
    /// GGUF keys, or fields of `config.json` at its top level.
    asked: RefCell<BTreeSet<String>>,
}

impl<'a> Keys<'a> {
    pub(in crate::model) fn new(source: &'a Source) -> Self {
        Keys { source, asked: RefCell::default() }
    }

    /// The model they are of.
    pub(in crate::model) fn source(&self) -> &'a Source {
        self.source
    }

    /// A hyperparameter, where there is one.
    pub(in crate::model) fn find<T: Hyper>(&self, key: &str) -> Result<Option<T>, Error> {
        if self.source.folder().is_none() {
            return self.gguf(key);
        }
        let mut found = None;
        // All of them are asked for, so that none is taken for an unknown one.
        for field in self.fields(key) {
            found = found.or(self.json(field)?);
        }
        Ok(found)
    }

    /// A hyperparameter of a GGUF file alone.
    pub(in crate::model) fn gguf<T: for<'v> FromValue<'v>>(&self, key: &str) -> Result<Option<T>, Error> {
        let Some(metadata) = self.metadata() else { return Ok(None) };
        self.asked.borrow_mut().insert(key.to_owned());
        Ok(metadata.find(&self.gguf_key(key))?)
    }

    /// A text of a GGUF file alone.
    pub(in crate::model) fn gguf_text(&self, key: &str) -> Result<Option<&'a str>, Error> {
        let Some(metadata) = self.metadata() else { return Ok(None) };
        self.asked.borrow_mut().insert(key.to_owned());
        Ok(metadata.find(&self.gguf_key(key))?)
    }

    /// A text of a GGUF file that is not the architecture's, such as `general.name`.
    pub(in crate::model) fn metadata_text(&self, key: &str) -> Result<Option<&'a str>, Error> {
        Ok(self.metadata().map(|metadata| metadata.find(key)).transpose()?.flatten())
    }

    /// A number of a GGUF file that is not the architecture's.
    pub(in crate::model) fn metadata_number(&self, key: &str) -> Result<Option<u32>, Error> {
        Ok(self.metadata().map(|metadata| metadata.find(key)).transpose()?.flatten())
    }

    /// A field of a folder's `config.json` alone.
    pub(in crate::model) fn json<T: DeserializeOwned>(&self, field: &str) -> Result<Option<T>, Error> {
        let Some(folder) = self.source.folder() else { return Ok(None) };
        let top = field.split('.').next().unwrap_or(field);
        self.asked.borrow_mut().insert(top.to_owned());
        Ok(folder.config().find(field)?)
    }

    /// A number of something, where the model says.
    pub(in crate::model) fn optional(&self, key: &str) -> Result<Option<usize>, Error> {
        Ok(self.find::<u32>(key)?.map(|v| v as usize))
    }

    /// A number of something, at least one.
    pub(in crate::model) fn count(&self, key: &str) -> Result<usize, Error> {
        match self.optional(key)? {
            Some(value) if value > 0 => Ok(value),
            Some(_) => Err(self.fail(key, "is 0; it must be at least 1".into())),
            None => Err(self.missing(key)),
        }
    }

    /// A positive number; a missing one is the default, or an error where there is none.
    pub(in crate::model) fn positive(&self, key: &str, default: Option<f32>) -> Result<f32, Error> {
        let value = self.find::<f32>(key)?.or(default).ok_or_else(|| self.missing(key))?;
        if value > 0.0 && value.is_finite() {
            return Ok(value);
        }
        Err(self.fail(key, format!("is {value}; it must be positive")))
    }

    /// A text of `config.json` that can only be `expected`, in the first of `fields` that there is.
    pub(in crate::model) fn expect(&self, fields: &[&str], expected: &str) -> Result<(), Error> {
        for field in fields {
            if let Some(value) = self.json::<String>(field)? {
                let problem = format!("`{value}` is not supported; supported: {expected}");
                return if value == expected { Ok(()) } else { Err(self.fail_at(field, problem)) };
            }
        }
        Ok(())
    }

    /// An error about a hyperparameter.
    pub(in crate::model) fn fail(&self, key: &str, problem: String) -> Error {
        let name = match self.source.folder() {
            Some(_) => self.fields(key).first().map_or(key, |field| *field).to_owned(),
            None => self.gguf_key(key),
        };
        self.fail_at(&name, problem)
    }

    /// An error about a key or field, named as in the file.
    pub(in crate::model) fn fail_at(&self, name: &str, problem: String) -> Error {
        let file = self.source.folder().map_or(self.source.path(), |folder| folder.config().path());
        Error::Metadata { file: file.to_owned(), key: name.to_owned(), problem }
    }

    /// Refuses what nothing asked for and may matter.
    pub(in crate::model) fn refuse_unknown(&self) -> Result<(), Error> {
        match self.metadata() {
            Some(metadata) => self.refuse_unknown_keys(metadata),
            None => self.refuse_unknown_fields(),
        }
    }

    fn refuse_unknown_keys(&self, metadata: &Metadata) -> Result<(), Error> {
        let prefix = self.gguf_key("");
        for (full, value) in metadata.iter() {
            let Some(key) = full.strip_prefix(&prefix) else { continue };
            if self.asked.borrow().contains(key) || GGUF_IGNORED.contains(&key) {
                continue;
            }
            let number = metadata.find::<f32>(full).ok().flatten().map(f64::from);
            let number = number.or_else(|| metadata.find::<i64>(full).ok().flatten().map(|v| v as f64));
            let number = number.or_else(|| metadata.find::<bool>(full).ok().flatten().map(f64::from));
            if !GGUF_NEUTRAL.iter().any(|(name, neutral)| *name == key && number == Some(*neutral)) {
                return Err(self.fail_at(full, format!("is {value}, which this build does not support")));
            }
        }
        Ok(())
    }

    fn refuse_unknown_fields(&self) -> Result<(), Error> {
        let Some(folder) = self.source.folder() else { return Ok(()) };
        let config = folder.config();
        for field in config.decode::<BTreeMap<String, IgnoredAny>>()?.keys() {
            if self.asked.borrow().contains(field) || JSON_IGNORED.contains(&field.as_str()) {
                continue;
            }
            // A switch that is off asks for nothing. A name with a dot cannot be looked up, and no switch has one.
            let off = !field.contains('.') && matches!(config.find::<bool>(field), Ok(None | Some(false)));
            if !off {
                let problem = "is not known to this build, which would leave out what it asks for".to_owned();
                return Err(self.fail_at(field, problem));
            }
        }
        Ok(())
    }

    fn metadata(&self) -> Option<&'a Metadata> {
        match self.source.checkpoint() {
            memra_formats::Checkpoint::Gguf(gguf) => Some(gguf.metadata()),
            _ => None,
        }
    }

    fn missing(&self, key: &str) -> Error {
        self.fail(key, "is missing; the file is incomplete".into())
    }

    fn gguf_key(&self, key: &str) -> String {
        format!("{}.{key}", self.source.architecture().name)
    }

    fn fields(&self, key: &str) -> &'static [&'static str] {
        let all = self.source.architecture().fields.iter().chain(COMMON);
        all.into_iter().find(|(name, _)| *name == key).map_or(&[], |(_, fields)| fields)
    }
}
