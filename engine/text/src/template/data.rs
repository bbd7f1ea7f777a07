//! JSON values that keep the order of their keys, which `tojson` shows to the model.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number without fraction or exponent.
    Int(i128),
    /// Any other number.
    Float(f64),
    /// A string.
    Str(String),
    /// An array.
    List(Vec<Data>),
    /// An object, in the order of the document. Of equal keys the last counts.
    Object(Vec<(String, Data)>),
}

impl Data {
    /// The value of a key of an object; `None` for anything else.
    pub fn get(&self, key: &str) -> Option<&Data> {
        match self {
            Data::Object(entries) => entries.iter().rfind(|(found, _)| found == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// As [`Data::get`], to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Data> {
        match self {
            Data::Object(entries) => {
                entries.iter_mut().rfind(|(found, _)| found == key).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// The text of a string; `None` for anything else.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Data::Str(text) => Some(text),
            _ => None,
        }
    }

    /// An object of these keys and values.
    pub fn object<const N: usize>(entries: [(&str, Data); N]) -> Data {
        Data::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }
}

impl From<&str> for Data {
    fn from(text: &str) -> Data {
        Data::Str(text.to_owned())
    }
}

impl From<String> for Data {
    fn from(text: String) -> Data {
        Data::Str(text)
    }
}

impl From<bool> for Data {
    fn from(value: bool) -> Data {
        Data::Bool(value)
    }
}

impl From<Vec<Data>> for Data {
    fn from(items: Vec<Data>) -> Data {
        Data::List(items)
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Data, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Data;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Data, E> {
        Ok(Data::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Data, E> {
        Ok(Data::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Data, E> {
        Ok(Data::Int(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Data, E> {
        Ok(Data::Int(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Data, E> {
        Ok(Data::Float(value))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Data, E> {
        Ok(Data::Str(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Data, E> {
        Ok(Data::Str(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Data, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Data::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Data, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(Data::Object(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_kinds_of_numbers_are_kept() {
        let data: Data =
            serde_json::from_str(r#"{"z":1,"a":[1.0,-3,18446744073709551615,null,true,"é"],"z":{}}"#)
                .unwrap();
        let Data::Object(entries) = &data else { panic!("no object") };
        assert_eq!(entries.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["z", "a", "z"]);
        assert_eq!(data.get("z"), Some(&Data::Object(vec![])));
        let expected = [
            Data::Float(1.0),
            Data::Int(-3),
            Data::Int(u64::MAX.into()),
            Data::Null,
            true.into(),
            "é".into(),
        ];
        assert_eq!(data.get("a"), Some(&Data::List(expected.to_vec())));
        assert_eq!((data.get("b"), Data::Null.get("b")), (None, None));
    }
}
