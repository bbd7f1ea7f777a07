//! The metadata of a file: keys and typed values.

use super::{FromValue, GgufError, Value, ValueType, cursor::Cursor};
use crate::SharedBytes;
use std::ops::Range;

/// The key-value pairs of a GGUF file, in file order; values are decoded when asked for.
#[derive(Clone, Debug)]
pub struct Metadata {
    bytes: SharedBytes,
    entries: Vec<Entry>,
    /// Indices of `entries`, ordered by key.
    by_key: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Entry {
    key: Range<usize>,
    value_type: ValueType,
    value_at: usize,
}

impl Metadata {
    /// Reads `count` pairs at the cursor, which must stand in `bytes`.
    pub(super) fn read(
        bytes: &SharedBytes,
        cursor: &mut Cursor<'_>,
        count: u32,
    ) -> Result<Metadata, GgufError> {
        let mut entries = Vec::new();
        for _ in 0..count {
            let key = cursor.name("a metadata key")?;
            let range = cursor.pos() - key.len()..cursor.pos();
            let value_type = cursor.value_type(key)?;
            entries.push(Entry { key: range, value_type, value_at: cursor.pos() });
            cursor.value(key, value_type)?;
        }
        let mut by_key: Vec<u32> = (0..count).collect();
        by_key.sort_unstable_by_key(|&i| &bytes[entries[i as usize].key.clone()]);
        let metadata = Metadata { bytes: bytes.clone(), entries, by_key };
        let key = |i: u32| metadata.key(&metadata.entries[i as usize]);
        match metadata.by_key.windows(2).find(|w| key(w[0]) == key(w[1])) {
            Some(pair) => Err(GgufError::DuplicateKey { key: key(pair[0]).to_owned() }),
            None => Ok(metadata),
        }
    }

    fn key(&self, entry: &Entry) -> &str {
        // Checked when it was read; a file changed under the mapping gives a key that nothing asks for.
        std::str::from_utf8(&self.bytes[entry.key.clone()]).unwrap_or_default()
    }

    fn value(&self, entry: &Entry) -> Option<Value<'_>> {
        Cursor::new(&self.bytes, entry.value_at).value("", entry.value_type).ok()
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keys and values in file order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Value<'_>)> {
        self.entries.iter().filter_map(|entry| Some((self.key(entry), self.value(entry)?)))
    }

    /// The value of `key` as it stands, if the file has the key.
    pub fn value_of(&self, key: &str) -> Option<Value<'_>> {
        let at = self.by_key.binary_search_by(|&i| self.key(&self.entries[i as usize]).cmp(key)).ok()?;
        self.value(&self.entries[self.by_key[at] as usize])
    }

    /// The value of `key`, or `None` when the file does not have it: `meta.find::<bool>("tokenizer.ggml.add_bos_token")?`.
    ///
    /// # Errors
    /// [`GgufError::WrongType`] when the value is of another type or does not fit.
    pub fn find<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<Option<T>, GgufError> {
        let Some(value) = self.value_of(key) else { return Ok(None) };
        match T::from_value(value) {
            Some(converted) => Ok(Some(converted)),
            None => {
                let found = match value {
                    Value::Array(array) => format!("an array of {}: {value}", array.item_type()),
                    _ => format!("{} {value}", value.value_type()),
                };
                Err(GgufError::WrongType { key: key.to_owned(), expected: T::expected(), found })
            }
        }
    }

    /// The value of a key that must be there: `meta.get::<u32>("llama.block_count")?`,
    /// `meta.get::<Vec<&str>>("tokenizer.ggml.tokens")?`.
    ///
    /// # Errors
    /// [`GgufError::MissingKey`], or as [`Metadata::find`].
    pub fn get<'a, T: FromValue<'a>>(&'a self, key: &str) -> Result<T, GgufError> {
        self.find(key)?.ok_or_else(|| GgufError::MissingKey { key: key.to_owned() })
    }
}
