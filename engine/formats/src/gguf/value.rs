//! Metadata values: types, borrowed views and conversions.

use super::cursor::Cursor;
use std::fmt;

/// Type of a metadata value, with the number GGUF gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ValueType {
    /// 8-bit unsigned.
    U8 = 0,
    /// 8-bit signed.
    I8 = 1,
    /// 16-bit unsigned.
    U16 = 2,
    /// 16-bit signed.
    I16 = 3,
    /// 32-bit unsigned.
    U32 = 4,
    /// 32-bit signed.
    I32 = 5,
    /// IEEE binary32.
    F32 = 6,
    /// One byte: 0 or 1.
    Bool = 7,
    /// A string.
    Str = 8,
    /// An array of values of one type.
    Array = 9,
    /// 64-bit unsigned.
    U64 = 10,
    /// 64-bit signed.
    I64 = 11,
    /// IEEE binary64.
    F64 = 12,
}

const TYPES: [(ValueType, &str, usize); 13] = [
    (ValueType::U8, "u8", 1),
    (ValueType::I8, "i8", 1),
    (ValueType::U16, "u16", 2),
    (ValueType::I16, "i16", 2),
    (ValueType::U32, "u32", 4),
    (ValueType::I32, "i32", 4),
    (ValueType::F32, "f32", 4),
    (ValueType::Bool, "bool", 1),
    (ValueType::Str, "string", 0),
    (ValueType::Array, "array", 0),
    (ValueType::U64, "u64", 8),
    (ValueType::I64, "i64", 8),
    (ValueType::F64, "f64", 8),
];

impl ValueType {
    pub(super) fn from_id(id: u32) -> Option<ValueType> {
        TYPES.get(usize::try_from(id).ok()?).map(|row| row.0)
    }

    /// Bytes of a value of this type, when all have the same.
    pub(crate) fn fixed_bytes(self) -> Option<usize> {
        Some(TYPES[self as usize].2).filter(|&bytes| bytes > 0)
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(TYPES[*self as usize].1)
    }
}

/// A metadata value, borrowed from the file.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the variants are those of `ValueType`")]
pub enum Value<'a> {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    F32(f32),
    Bool(bool),
    /// Bytes as in the file: UTF-8 by the specification, but not checked until asked for as `&str`.
    Str(&'a [u8]),
    Array(Array<'a>),
    U64(u64),
    I64(i64),
    F64(f64),
}

/// An array of metadata values, borrowed from the file and decoded as it is walked.
#[derive(Clone, Copy, PartialEq)]
pub struct Array<'a> {
    pub(super) items: ValueType,
    pub(super) len: usize,
    pub(super) bytes: &'a [u8],
}

impl<'a> Array<'a> {
    /// Number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Type of the items.
    pub fn item_type(&self) -> ValueType {
        self.items
    }

    /// The items in order.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let mut cursor = Cursor::new(self.bytes, 0);
        let items = self.items;
        // The reader walked the whole array once, so no item can fail to decode here.
        (0..self.len).map_while(move |_| cursor.value("", items).ok())
    }
}

impl Value<'_> {
    /// Its type.
    pub fn value_type(&self) -> ValueType {
        match self {
            Value::U8(_) => ValueType::U8,
            Value::I8(_) => ValueType::I8,
            Value::U16(_) => ValueType::U16,
            Value::I16(_) => ValueType::I16,
            Value::U32(_) => ValueType::U32,
            Value::I32(_) => ValueType::I32,
            Value::F32(_) => ValueType::F32,
            Value::Bool(_) => ValueType::Bool,
            Value::Str(_) => ValueType::Str,
            Value::Array(_) => ValueType::Array,
            Value::U64(_) => ValueType::U64,
            Value::I64(_) => ValueType::I64,
            Value::F64(_) => ValueType::F64,
        }
    }

    fn integer(self) -> Option<i128> {
        Some(match self {
            Value::U8(v) => v.into(),
            Value::I8(v) => v.into(),
            Value::U16(v) => v.into(),
            Value::I16(v) => v.into(),
            Value::U32(v) => v.into(),
            Value::I32(v) => v.into(),
            Value::U64(v) => v.into(),
            Value::I64(v) => v.into(),
            _ => return None,
        })
    }
}

/// Longest text and most items that `Display` shows of a value.
const SHOWN_CHARS: usize = 60;
const SHOWN_ITEMS: usize = 6;

impl fmt::Display for Value<'_> {
    /// One line: long text and arrays are cut short.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Str(bytes) => {
                // Four bytes a character at most, so that a huge string is not converted whole.
                let head = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * SHOWN_CHARS)]);
                let shown: String = head.chars().take(SHOWN_CHARS).collect();
                write!(f, "{shown:?}{}", if shown.len() < bytes.len() { "…" } else { "" })
            }
            Value::Array(array) => {
                write!(f, "[")?;
                for (i, item) in array.iter().take(SHOWN_ITEMS).enumerate() {
                    write!(f, "{}{item}", if i == 0 { "" } else { ", " })?;
                }
                match array.len() {
                    n if n > SHOWN_ITEMS => write!(f, ", … {n} in all]"),
                    _ => write!(f, "]"),
                }
            }
            Value::F32(v) => write!(f, "{v}"),
            Value::F64(v) => write!(f, "{v}"),
            Value::Bool(v) => write!(f, "{v}"),
            other => write!(f, "{}", other.integer().unwrap_or_default()),
        }
    }
}

impl fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.items, Value::Array(*self))
    }
}

/// A Rust type that metadata values convert to. Integers convert between widths when the value fits.
pub trait FromValue<'a>: Sized {
    /// What is accepted, for error texts: `an integer from 0 to 255`.
    fn expected() -> String;

    /// The value as this type, if it is one and fits.
    fn from_value(value: Value<'a>) -> Option<Self>;
}

/// A Rust type that can be written as a metadata value.
pub trait ToValue {
    /// Type that is written.
    const TYPE: ValueType;

    /// Appends the value's encoding, without its type.
    fn encode(&self, out: &mut Vec<u8>);
}

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl FromValue<'_> for $t {
            fn expected() -> String {
                format!("an integer from {} to {}", <$t>::MIN, <$t>::MAX)
            }

            fn from_value(value: Value<'_>) -> Option<Self> {
                value.integer().and_then(|v| v.try_into().ok())
            }
        }
    )*};
}
integers!(u8, i8, u16, i16, u32, i32, u64, i64, usize);

macro_rules! encodings {
    ($($t:ty => $kind:ident),*) => {$(
        impl ToValue for $t {
            const TYPE: ValueType = ValueType::$kind;

            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}
encodings!(u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, f32 => F32, u64 => U64, i64 => I64, f64 => F64);

impl FromValue<'_> for f32 {
    fn expected() -> String {
        "a floating-point number".to_owned()
    }

    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::F32(v) => Some(v),
            Value::F64(v) => Some(v as f32),
            _ => None,
        }
    }
}

impl FromValue<'_> for bool {
    fn expected() -> String {
        "a bool".to_owned()
    }

    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Bool(v) => Some(v),
            _ => None,
        }
    }
}

impl<'a> FromValue<'a> for &'a str {
    fn expected() -> String {
        "a UTF-8 string".to_owned()
    }

    fn from_value(value: Value<'a>) -> Option<Self> {
        match value {
            Value::Str(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }
}

impl<'a> FromValue<'a> for Array<'a> {
    fn expected() -> String {
        "an array".to_owned()
    }

    fn from_value(value: Value<'a>) -> Option<Self> {
        match value {
            Value::Array(array) => Some(array),
            _ => None,
        }
    }
}

impl<'a, T: FromValue<'a>> FromValue<'a> for Vec<T> {
    fn expected() -> String {
        format!("an array with each item {}", T::expected())
    }

    fn from_value(value: Value<'a>) -> Option<Self> {
        let array = Array::from_value(value)?;
        let mut items = Vec::new();
        for item in array.iter() {
            let item = T::from_value(item)?;
            if items.is_empty() {
                // Room for all, and no more, once the first is known to be of this type.
                items.reserve_exact(array.len());
            }
            items.push(item);
        }
        Some(items)
    }
}

impl ToValue for bool {
    const TYPE: ValueType = ValueType::Bool;

    fn encode(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
}

impl ToValue for str {
    const TYPE: ValueType = ValueType::Str;

    fn encode(&self, out: &mut Vec<u8>) {
        (self.len() as u64).encode(out);
        out.extend_from_slice(self.as_bytes());
    }
}

impl ToValue for String {
    const TYPE: ValueType = ValueType::Str;

    fn encode(&self, out: &mut Vec<u8>) {
        self.as_str().encode(out);
    }
}

impl<T: ToValue> ToValue for [T] {
    const TYPE: ValueType = ValueType::Array;

    fn encode(&self, out: &mut Vec<u8>) {
        (T::TYPE as u32).encode(out);
        (self.len() as u64).encode(out);
        self.iter().for_each(|item| item.encode(out));
    }
}

impl<T: ToValue> ToValue for Vec<T> {
    const TYPE: ValueType = ValueType::Array;

    fn encode(&self, out: &mut Vec<u8>) {
        self.as_slice().encode(out);
    }
}

impl<T: ToValue + ?Sized> ToValue for &T {
    const TYPE: ValueType = T::TYPE;

    fn encode(&self, out: &mut Vec<u8>) {
        (**self).encode(out);
    }
}
