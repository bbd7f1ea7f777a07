//! JSON documents of a model folder, read in place.

use crate::{SharedBytes, bytes::OpenError};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::{fmt, io, marker::PhantomData};

/// Largest document of settings that is read; real ones are at most about a megabyte.
pub(crate) const MAX_SETTINGS_BYTES: usize = 16 << 20;

/// A JSON document that cannot be read, or does not say what it should.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The file cannot be opened or mapped.
    #[error("cannot open {path}: {source}")]
    Open {
        /// The path.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A directory, pipe or device where a file was expected.
    #[error("{path} is not a regular file")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// A file too large to be what it is named as.
    #[error("{path} has {bytes} bytes; memra reads at most {limit}")]
    TooLarge {
        /// The path.
        path: PathBuf,
        /// Its size.
        bytes: usize,
        /// The largest size read.
        limit: usize,
    },
    /// Text that is not JSON, or not an object of the fields that are read.
    #[error("{path}: {source}; the file is damaged, or not what its name says")]
    Document {
        /// The path.
        path: PathBuf,
        /// What is wrong, with line and column.
        source: serde_json::Error,
    },
    /// A document or text that is not UTF-8.
    #[error("{path} is not text: {error}")]
    NotText {
        /// The path.
        path: PathBuf,
        /// Where it is not.
        error: std::str::Utf8Error,
    },
    /// A field that must be there is not.
    #[error("{path}: `{key}` is missing; the file is incomplete or was made for another purpose")]
    Missing {
        /// The path.
        path: PathBuf,
        /// The field, with those it is inside of: `text_config.hidden_size`.
        key: String,
    },
    /// A field of another type, or beyond the range of the one asked for.
    #[error("{path}: `{key}`: {source}")]
    Field {
        /// The path.
        path: PathBuf,
        /// The field, with those it is inside of.
        key: String,
        /// What was found and what was expected.
        source: serde_json::Error,
    },
}

/// A JSON document such as `config.json`. Fields are decoded when asked for, straight into the type asked for, so that
/// a document costs no memory of its own.
#[derive(Clone, Debug)]
pub struct Json {
    path: PathBuf,
    bytes: SharedBytes,
}

impl Json {
    /// Maps a document and checks that it is one JSON object.
    ///
    /// # Errors
    /// A file that cannot be opened, is larger than 16 MiB, or is not a JSON object.
    pub fn open(path: impl Into<PathBuf>) -> Result<Json, JsonError> {
        Json::open_at_most(path.into(), MAX_SETTINGS_BYTES)
    }

    pub(crate) fn open_at_most(path: PathBuf, limit: usize) -> Result<Json, JsonError> {
        let bytes = map(&path)?;
        self::limit(&path, &bytes, limit)?;
        Json::parse(path, bytes)
    }

    /// Checks a document that is already in memory; `path` names it in errors.
    ///
    /// # Errors
    /// Bytes that are not a JSON object.
    pub fn parse(path: impl Into<PathBuf>, bytes: impl Into<SharedBytes>) -> Result<Json, JsonError> {
        let json = Json { path: path.into(), bytes: bytes.into() };
        if let Err(error) = std::str::from_utf8(&json.bytes) {
            return Err(JsonError::NotText { path: json.path, error });
        }
        json.walk(At { keys: &[], seed: PhantomData::<IgnoredAny> })
            .map_err(|source| json.document_error(source))?;
        Ok(json)
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The whole document as a type that derives `Deserialize`.
    ///
    /// # Errors
    /// [`JsonError::Document`].
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T, JsonError> {
        serde_json::from_slice(&self.bytes).map_err(|source| self.document_error(source))
    }

    /// The field at `key`, where dots lead into objects: `json.find::<usize>("text_config.hidden_size")?`. A field that
    /// is absent or `null`, or inside of one that is, is `None`.
    ///
    /// # Errors
    /// [`JsonError::Field`] when it has another type, does not fit, or occurs twice.
    pub fn find<'a, T: Deserialize<'a>>(&'a self, key: &str) -> Result<Option<T>, JsonError> {
        let keys: Vec<&str> = key.split('.').collect();
        let field = |source| JsonError::Field { path: self.path.clone(), key: key.to_owned(), source };
        let value = self.walk(At { keys: &keys, seed: PhantomData::<Option<T>> }).map_err(field)?;
        Ok(value.flatten())
    }

    /// The field at `key`, which must be there.
    ///
    /// # Errors
    /// [`JsonError::Missing`], or as [`Json::find`].
    pub fn get<'a, T: Deserialize<'a>>(&'a self, key: &str) -> Result<T, JsonError> {
        self.find(key)?.ok_or_else(|| self.missing_error(key))
    }

    /// Runs a visitor over the object that is the document.
    pub(crate) fn walk<'a, V: Visitor<'a>>(&'a self, visitor: V) -> Result<V::Value, serde_json::Error> {
        walk(&self.bytes, visitor)
    }

    pub(crate) fn missing_error(&self, key: &str) -> JsonError {
        JsonError::Missing { path: self.path.clone(), key: key.to_owned() }
    }

    pub(crate) fn document_error(&self, source: serde_json::Error) -> JsonError {
        JsonError::Document { path: self.path.clone(), source }
    }
}

/// Refuses a file of more than `limit` bytes.
pub(crate) fn limit(path: &Path, bytes: &[u8], limit: usize) -> Result<(), JsonError> {
    let too_large = || JsonError::TooLarge { path: path.to_owned(), bytes: bytes.len(), limit };
    if bytes.len() > limit { Err(too_large()) } else { Ok(()) }
}

/// Runs a visitor over the object that a text is.
pub(crate) fn walk<'a, V: Visitor<'a>>(text: &'a [u8], visitor: V) -> Result<V::Value, serde_json::Error> {
    let mut decoder = serde_json::Deserializer::from_slice(text);
    let value = decoder.deserialize_map(visitor)?;
    decoder.end()?;
    Ok(value)
}

/// Maps a file of a folder.
pub(crate) fn map(path: &Path) -> Result<SharedBytes, JsonError> {
    SharedBytes::open(path).map_err(|error| match error {
        OpenError::Io(source) => JsonError::Open { path: path.to_owned(), source },
        OpenError::NotAFile => JsonError::NotAFile { path: path.to_owned() },
    })
}

/// A key or text of a document, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// Decodes the field that a path of keys leads to by a seed, and passes over everything else. Fields that are absent, or
/// inside of `null`, are `None`.
pub(crate) struct At<'k, S> {
    pub(crate) keys: &'k [&'k str],
    pub(crate) seed: S,
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for At<'_, S> {
    type Value = Option<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, S: DeserializeSeed<'de>> Visitor<'de> for At<'_, S> {
    type Value = Option<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.keys.first() {
            Some(key) => write!(f, "an object that may have `{key}`"),
            None => write!(f, "an object"),
        }
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut seed = Some(self.seed);
        let mut found = None;
        while let Some(Text(key)) = map.next_key()? {
            let Some((_, deeper)) = self.keys.split_first().filter(|(first, _)| **first == key) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let Some(seed) = seed.take() else {
                return Err(de::Error::custom(format_args!("`{key}` occurs twice")));
            };
            found = match deeper {
                [] => Some(map.next_value_seed(seed)?),
                _ => map.next_value_seed(At { keys: deeper, seed })?,
            };
        }
        Ok(found)
    }
}

/// Calls `each` with every key of an object and its value, or what is wrong with the value, without holding any of them.
/// A failure ends the walk; it travels beside the decoder, which carries texts alone.
pub(crate) struct Each<'f, V, F, E> {
    /// A key that is passed over.
    pub(crate) skip: Option<&'static str>,
    pub(crate) each: F,
    pub(crate) failure: &'f mut Option<E>,
    pub(crate) value: PhantomData<V>,
}

impl<'de, V, F, E> DeserializeSeed<'de> for Each<'_, V, F, E>
where
    V: Deserialize<'de>,
    F: FnMut(&str, Result<V, String>) -> Result<(), E>,
{
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, V, F, E> Visitor<'de> for Each<'_, V, F, E>
where
    V: Deserialize<'de>,
    F: FnMut(&str, Result<V, String>) -> Result<(), E>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object of tensors")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(Text(key)) = map.next_key()? {
            if self.skip.is_some_and(|skip| skip == key) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let value = map.next_value();
            let damaged = value.is_err();
            let done = (self.each)(&key, value.map_err(|error: A::Error| error.to_string()));
            *self.failure = done.err();
            if damaged || self.failure.is_some() {
                return Err(de::Error::custom("the value of a key is wrong"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Result<Json, JsonError> {
        Json::parse("config.json", text.as_bytes())
    }

    #[test]
    fn fields_are_found_at_any_depth() {
        let text = r#"{"a": 1, "b": {"c": {"d": [1, 2]}, "e": null}, "é": "\u00e9\n", "n": null, "f": 1e-6}"#;
        let json = json(text).unwrap();
        assert_eq!(json.get::<u32>("a").unwrap(), 1);
        assert_eq!(json.get::<Vec<u8>>("b.c.d").unwrap(), [1, 2]);
        assert_eq!(json.get::<String>("é").unwrap(), "é\n");
        assert_eq!(json.get::<f32>("f").unwrap(), 1e-6);
        for absent in ["x", "n", "n.x", "b.e", "b.e.f", "b.c.x"] {
            assert_eq!(json.find::<u32>(absent).unwrap(), None, "{absent}");
        }
        let error = |result: Result<u8, JsonError>| result.unwrap_err().to_string();
        assert!(error(json.get("x")).starts_with("config.json: `x` is missing"));
        assert!(error(json.get("b.c")).starts_with("config.json: `b.c`: invalid type: map, expected u8"));
        let inside = error(json.get("a.z"));
        assert!(inside.contains("integer `1`, expected an object that may have `z`"), "{inside}");
        assert!(error(json.get("f")).contains("floating point `1e-6`, expected u8"));
    }

    #[test]
    fn broken_documents_are_refused() {
        for text in ["", "[]", "7", "{", "{\"a\":}", "{} {}", "{\"a\":1}x", "\u{feff}{}"] {
            assert!(matches!(json(text), Err(JsonError::Document { .. })), "{text}");
        }
        assert!(json(&format!("{{\"a\":{}", "[".repeat(1 << 20))).is_err());
        let twice = json(r#"{"a": 1, "a": 2}"#).unwrap();
        assert!(twice.get::<u32>("a").unwrap_err().to_string().contains("`a` occurs twice"));
        assert!(json("null").is_err(), "null is no object");
    }
}
