//! The folder of a model: weights, and the documents beside them.

use super::{Safetensors, SafetensorsError as Error};
use crate::SharedBytes;
use crate::json::{self, Json, JsonError, Text};
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// A model as hubs keep it: weights in safetensors, and JSON documents that say what they are.
#[derive(Clone, Debug)]
pub struct ModelFolder {
    path: PathBuf,
    config: Json,
    weights: Safetensors,
}

/// Largest `tokenizer.json` that is read; real ones have up to some 40 MB.
const MAX_TOKENIZER_BYTES: usize = 256 << 20;

/// Documents of a model's folder.
const DOCUMENTS: [&str; 6] = [
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "chat_template.jinja",
];

impl ModelFolder {
    /// Opens `config.json` and the weights in the folder at `path`: `model.safetensors`, or else the files that
    /// `model.safetensors.index.json` names.
    ///
    /// # Errors
    /// A folder without them, or with damaged ones.
    pub fn open(path: impl AsRef<Path>) -> Result<ModelFolder, Error> {
        let path = path.as_ref();
        let names = ["model.safetensors", "model.safetensors.index.json"];
        let weights = names.iter().map(|name| path.join(name)).find(|path| path.exists());
        let weights = weights.ok_or_else(|| Error::NoWeights { path: path.to_owned() })?;
        let config = Json::open(path.join("config.json"))?;
        Ok(ModelFolder { path: path.to_owned(), config, weights: Safetensors::open(weights)? })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The documents that are there, of those that models have.
    pub fn documents(&self) -> Vec<&'static str> {
        DOCUMENTS.into_iter().filter(|name| self.path.join(name).exists()).collect()
    }

    /// `config.json`: architecture and hyperparameters.
    pub fn config(&self) -> &Json {
        &self.config
    }

    /// The weights.
    pub fn weights(&self) -> &Safetensors {
        &self.weights
    }

    /// `generation_config.json`: how the model's makers sample from it.
    ///
    /// # Errors
    /// A damaged document.
    pub fn generation_config(&self) -> Result<Option<Json>, JsonError> {
        self.document("generation_config.json")
    }

    /// `tokenizer_config.json`: special tokens, and in most models the chat template.
    ///
    /// # Errors
    /// A damaged document.
    pub fn tokenizer_config(&self) -> Result<Option<Json>, JsonError> {
        self.document("tokenizer_config.json")
    }

    /// The bytes of `tokenizer.json`, unchecked.
    ///
    /// # Errors
    /// A file that cannot be read, or is larger than 256 MiB.
    pub fn tokenizer(&self) -> Result<Option<SharedBytes>, JsonError> {
        Ok(self.file("tokenizer.json", MAX_TOKENIZER_BYTES)?.map(|(_, bytes)| bytes))
    }

    /// The chat template: `chat_template.jinja`, or else the one in `tokenizer_config.json`, of several the one named
    /// `default`.
    ///
    /// # Errors
    /// A file that cannot be read, or a template that is not text.
    pub fn chat_template(&self) -> Result<Option<String>, JsonError> {
        match self.file("chat_template.jinja", json::MAX_SETTINGS_BYTES)? {
            Some((path, bytes)) => {
                let text = std::str::from_utf8(&bytes).map_err(|error| JsonError::NotText { path, error })?;
                Ok(Some(text.to_owned()))
            }
            None => match self.tokenizer_config()? {
                Some(config) => Ok(config.find::<Template>("chat_template")?.and_then(|template| template.0)),
                None => Ok(None),
            },
        }
    }

    /// A document, where there is one.
    fn document(&self, name: &str) -> Result<Option<Json>, JsonError> {
        let file = self.file(name, json::MAX_SETTINGS_BYTES)?;
        file.map(|(path, bytes)| Json::parse(path, bytes)).transpose()
    }

    /// A file of at most `limit` bytes, where there is one.
    fn file(&self, name: &str, limit: usize) -> Result<Option<(PathBuf, SharedBytes)>, JsonError> {
        let path = self.path.join(name);
        match if_there(json::map(&path))? {
            Some(bytes) => json::limit(&path, &bytes, limit).map(|()| Some((path, bytes))),
            None => Ok(None),
        }
    }
}

/// The field `chat_template`: a text, or a list of templates with names.
struct Template(Option<String>);

#[derive(serde::Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    template: Text<'a>,
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Template, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Template;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a text, or a list of `name` and `template`")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Template, E> {
                Ok(Template(Some(text.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Template, A::Error> {
                let mut default = None;
                while let Some(Named { name, template }) = list.next_element::<Named<'de>>()? {
                    if name.0 == "default" {
                        default = Some(template.0.into_owned());
                    }
                }
                Ok(Template(default))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// `None` for a file that is not there.
fn if_there<T>(opened: Result<T, JsonError>) -> Result<Option<T>, JsonError> {
    match opened {
        Err(JsonError::Open { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}
