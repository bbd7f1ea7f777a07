//! Reading the primitives of a GGUF header, never past its end.

use super::{Array, GgufError, Value, ValueType};

/// Deepest nesting of arrays that is read; no known file nests at all.
const MAX_NESTING: usize = 4;

/// Longest name of a key or tensor in bytes, by the specification.
const MAX_NAME: usize = 65_535;

/// Whether a key or tensor may be called so.
pub(super) fn is_name(text: &str) -> bool {
    text.len() <= MAX_NAME && !text.contains(char::is_control)
}

/// Most items of arrays that are walked one by one, texts above all; the largest vocabularies have, with their merges,
/// some 800,000. It bounds the time that a file with a hole of any size can take, and the memory to decode its texts.
const MAX_ITEMS: u64 = 1 << 22;

/// A position in a run of bytes.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    pos: usize,
    /// Items that may yet be walked.
    items_left: u64,
}

impl<'a> Cursor<'a> {
    /// A cursor at `pos` of `bytes`.
    pub(super) fn new(bytes: &'a [u8], pos: usize) -> Self {
        Cursor { bytes, pos: pos.min(bytes.len()), items_left: MAX_ITEMS }
    }

    pub(super) fn pos(&self) -> usize {
        self.pos
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.pos
    }

    /// The next `count` items of `size` bytes each.
    fn take(&mut self, count: u64, size: usize, what: &'static str) -> Result<&'a [u8], GgufError> {
        let need = u128::from(count) * size as u128;
        let left = self.left();
        match usize::try_from(need) {
            Ok(len) if len <= left => {
                let start = self.pos;
                self.pos += len;
                Ok(&self.bytes[start..self.pos])
            }
            _ => Err(GgufError::Truncated { what: what.into(), offset: self.pos, need, left }),
        }
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], GgufError> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(1, N, what)?);
        Ok(out)
    }

    pub(super) fn u32(&mut self, what: &'static str) -> Result<u32, GgufError> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, what: &'static str) -> Result<u64, GgufError> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// A string: its length, then its bytes.
    pub(super) fn string(&mut self, what: &'static str) -> Result<&'a [u8], GgufError> {
        let len = self.u64(what)?;
        self.take(len, 1, what)
    }

    /// The name of a key or tensor. Names are printed, so one that could drive a terminal is refused.
    pub(super) fn name(&mut self, what: &'static str) -> Result<&'a str, GgufError> {
        let bytes = self.string(what)?;
        let offset = self.pos - bytes.len();
        let text = std::str::from_utf8(bytes).ok();
        text.filter(|text| is_name(text)).ok_or(GgufError::Name { what, offset })
    }

    /// A value type; `key` is named in errors.
    pub(super) fn value_type(&mut self, key: &str) -> Result<ValueType, GgufError> {
        let id = self.u32("the type")?;
        ValueType::from_id(id).ok_or_else(|| GgufError::ValueType { key: key.to_owned(), id })
    }

    /// A value of this type; `key` is named in errors.
    pub(super) fn value(&mut self, key: &str, value_type: ValueType) -> Result<Value<'a>, GgufError> {
        const WHAT: &str = "the value";
        Ok(match value_type {
            ValueType::U8 => Value::U8(u8::from_le_bytes(self.array(WHAT)?)),
            ValueType::I8 => Value::I8(i8::from_le_bytes(self.array(WHAT)?)),
            ValueType::U16 => Value::U16(u16::from_le_bytes(self.array(WHAT)?)),
            ValueType::I16 => Value::I16(i16::from_le_bytes(self.array(WHAT)?)),
            ValueType::U32 => Value::U32(self.u32(WHAT)?),
            ValueType::I32 => Value::I32(i32::from_le_bytes(self.array(WHAT)?)),
            ValueType::F32 => Value::F32(f32::from_le_bytes(self.array(WHAT)?)),
            ValueType::Bool => Value::Bool(self.array::<1>(WHAT)? != [0]),
            ValueType::Str => Value::Str(self.string("the text")?),
            ValueType::Array => Value::Array(self.array_value(key, 1)?),
            ValueType::U64 => Value::U64(self.u64(WHAT)?),
            ValueType::I64 => Value::I64(i64::from_le_bytes(self.array(WHAT)?)),
            ValueType::F64 => Value::F64(f64::from_le_bytes(self.array(WHAT)?)),
        })
    }

    /// An array at nesting `depth`, walked to its end.
    fn array_value(&mut self, key: &str, depth: usize) -> Result<Array<'a>, GgufError> {
        const WHAT: &str = "the array";
        if depth > MAX_NESTING {
            return Err(GgufError::Nested { key: key.to_owned(), limit: MAX_NESTING });
        }
        let items = self.value_type(key)?;
        let count = self.u64(WHAT)?;
        let start = self.pos;
        if let Some(size) = items.fixed_bytes() {
            self.take(count, size, WHAT)?;
        } else {
            // Every item begins with a length of eight bytes, so a count that cannot be true is refused before walking.
            let (need, left) = (u128::from(count) * 8, self.left());
            if need > left as u128 {
                return Err(GgufError::Truncated { what: WHAT.into(), offset: start, need, left });
            }
            let too_many = GgufError::TooMany { what: "array items".into(), count, limit: MAX_ITEMS };
            self.items_left = self.items_left.checked_sub(count).ok_or(too_many)?;
            for _ in 0..count {
                match items {
                    ValueType::Array => drop(self.array_value(key, depth + 1)?),
                    _ => drop(self.string("a text in the array")?),
                }
            }
        }
        let len = usize::try_from(count).unwrap_or(usize::MAX);
        Ok(Array { items, len, bytes: &self.bytes[start..self.pos] })
    }
}
