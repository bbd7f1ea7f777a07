//! The metadata of a file: keys and typed values.

use super::{FromValue, GgufError, Value, ValueType, cursor::Cursor};
use crate::SharedBytes;

/// Most metadata keys read; real files have dozens.
const MAX_KEYS: u64 = 1 << 16;
/// Fewest bytes of a pair: key length, type, value.
const MIN_PAIR: u64 = 8 + 4 + 1;

/// The key-value pairs of a GGUF file, in file order; values are decoded when asked for.
#[derive(Clone, Debug)]
pub struct Metadata {
    bytes: SharedBytes,
    entries: Vec<Entry>,
    /// Indices of `entries`, ordered by key.
    by_key: Vec<u32>,
}

/// Where a pair is. It is smaller than the smallest pair, so that metadata of nothing but tiny values cost no more
/// memory than they have bytes.
#[derive(Clone, Debug)]
struct Entry {
    key_at: u32,
    key_len: u16,
    value_type: ValueType,
}

impl Metadata {
    /// Reads `count` pairs at the cursor, which must stand in `bytes`.
    pub(super) fn read(
        bytes: &SharedBytes,
        cursor: &mut Cursor<'_>,
        count: u64,
    ) -> Result<Metadata, GgufError> {
        let (offset, left) = (cursor.pos(), cursor.left());
        let need = u128::from(count) * u128::from(MIN_PAIR);
        if count > MAX_KEYS {
            return Err(GgufError::TooMany { what: "metadata keys".into(), count, limit: MAX_KEYS });
        }
        if need > left as u128 {
            return Err(GgufError::Truncated { what: "the metadata".into(), offset, need, left });
        }
        let mut entries = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let key = cursor.name("a metadata key")?;
            let key_at = cursor.pos() - key.len();
            let too_far = |_| GgufError::TooMany {
                what: "bytes of metadata".into(),
                count: key_at as u64,
                limit: u32::MAX.into(),
            };
            let key_at = u32::try_from(key_at).map_err(too_far)?;
            let of_key = |error: GgufError| error.of(format_args!("key `{key}`"));
            let value_type = cursor.value_type(key).map_err(of_key)?;
            cursor.value(key, value_type).map_err(of_key)?;
            entries.push(Entry { key_at, key_len: key.len() as u16, value_type });
        }
        let mut by_key: Vec<u32> = (0..).take(entries.len()).collect();
        let mut metadata = Metadata { bytes: bytes.clone(), entries, by_key: Vec::new() };
        by_key.sort_unstable_by_key(|&i| metadata.key(i));
        metadata.by_key = by_key;
        match metadata.by_key.windows(2).find(|w| metadata.key(w[0]) == metadata.key(w[1])) {
            Some(pair) => Err(GgufError::DuplicateKey { key: metadata.key(pair[0]).to_owned() }),
            None => Ok(metadata),
        }
    }

    /// The key of an entry. It was checked when it was read; a file changed under the mapping gives a key that nothing
    /// asks for.
    fn key(&self, entry: u32) -> &str {
        let Entry { key_at, key_len, .. } = self.entries[entry as usize];
        let start = key_at as usize;
        std::str::from_utf8(&self.bytes[start..start + usize::from(key_len)]).unwrap_or_default()
    }

    fn value(&self, entry: u32) -> Option<Value<'_>> {
        let Entry { key_at, key_len, value_type } = self.entries[entry as usize];
        // Between a key and its value stands the type.
        let value_at = key_at as usize + usize::from(key_len) + 4;
        Cursor::new(&self.bytes, value_at).value("", value_type).ok()
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
        (0..).take(self.len()).filter_map(|entry| Some((self.key(entry), self.value(entry)?)))
    }

    /// The value of `key` as it stands, if the file has the key.
    pub fn value_of(&self, key: &str) -> Option<Value<'_>> {
        let at = self.by_key.binary_search_by(|&entry| self.key(entry).cmp(key)).ok()?;
        self.value(self.by_key[at])
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
