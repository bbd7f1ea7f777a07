//! The header of one file: a length, then a JSON object that lists the tensors.

use super::SafetensorsError as Error;
use crate::json::{self, Each};
use crate::storage::SizeError;
use crate::table::{Place, Table, Tally};
use crate::{Dims, ScalarType, SharedBytes, Storage, Tensor};
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// Largest header read, which is the largest that the format's own implementation reads.
const MAX_HEADER: usize = 100_000_000;

/// Longest name of a tensor in bytes, as in GGUF.
const MAX_NAME: usize = 65_535;

/// The header of one file, read once: what it needs is known, and nothing is allocated yet.
pub(super) struct Header<'a> {
    json: &'a [u8],
    data: SharedBytes,
    pub(super) tally: Tally,
}

impl<'a> Header<'a> {
    /// Reads the header of a whole file and checks all but how tensors lie beside each other.
    pub(super) fn read(bytes: &'a SharedBytes) -> Result<Header<'a>, Error> {
        let Some((length, rest)) = bytes.split_first_chunk::<8>() else {
            return Err(Error::Short { bytes: bytes.len() });
        };
        let claimed = u64::from_le_bytes(*length);
        let too_long = Error::HeaderLength { claimed, left: rest.len(), limit: MAX_HEADER };
        let length = usize::try_from(claimed).ok().filter(|&length| length <= MAX_HEADER);
        let Some((json, _)) = length.and_then(|length| rest.split_at_checked(length)) else {
            return Err(too_long);
        };
        // The decoder does not look into the texts that it passes over.
        if let Err(error) = std::str::from_utf8(json) {
            return Err(Error::Header { source: de::Error::custom(error) });
        }
        let data = bytes.slice(8 + json.len()..bytes.len()).unwrap_or_default();
        let mut tally = Tally::default();
        walk(json, |name, entry| {
            entry.check(name, data.len())?;
            tally.add(name, &entry.shape.0);
            Ok(())
        })?;
        Ok(Header { json, data, tally })
    }

    /// Adds the tensors to the table, as its next part; their bytes must be those of the file, each once.
    pub(super) fn put(self, table: &mut Table) -> Result<(), Error> {
        let first = table.len();
        let part = table.n_parts() as u16;
        walk(self.json, |name, entry| {
            let scalar = entry.check(name, self.data.len())?;
            let place = Place { start: entry.data_offsets.0, part, storage: Storage::Scalars(scalar) };
            table.push(name, &entry.shape.0.reversed(), place);
            Ok(())
        })?;
        let end = self.data.len() as u64;
        table.push_part(self.data);
        let mut before: Option<Tensor<'_>> = None;
        let mut at = 0;
        for tensor in table.by_place(first) {
            if let Some(before) = before.filter(|_| tensor.start() < at) {
                let (first, second) = (before.name().to_owned(), tensor.name().to_owned());
                return Err(Error::Overlap { first, second });
            }
            if tensor.start() > at {
                return Err(Error::Gap { start: at, end: tensor.start() });
            }
            at = tensor.start() + tensor.byte_len() as u64;
            before = Some(tensor);
        }
        if at < end { Err(Error::Gap { start: at, end }) } else { Ok(()) }
    }
}

/// What the header says of a tensor.
#[derive(serde::Deserialize)]
struct Entry<'a> {
    #[serde(borrow)]
    dtype: Cow<'a, str>,
    shape: Shape,
    data_offsets: (u64, u64),
}

impl Entry<'_> {
    /// Checks that type, shape and offsets agree, and that the offsets are inside the data section.
    fn check(&self, name: &str, available: usize) -> Result<ScalarType, Error> {
        let tensor = || name.to_owned();
        if name.len() > MAX_NAME || name.contains(char::is_control) {
            return Err(Error::Name { tensor: name.chars().take(100).collect() });
        }
        let Some(dtype) = ScalarType::from_name(&self.dtype) else {
            return Err(Error::Type { tensor: tensor(), dtype: self.dtype.chars().take(100).collect() });
        };
        let shape = self.shape.0;
        let expected = Storage::Scalars(dtype).byte_len(&shape).map_err(|error| {
            let problem = if error == SizeError::Bits { "end inside a byte" } else { "overflow" };
            Error::Size { tensor: tensor(), shape: shape.to_vec(), dtype, problem }
        })?;
        let (start, end) = self.data_offsets;
        if end.checked_sub(start) != Some(expected as u64) {
            let (tensor, shape) = (tensor(), shape.to_vec());
            return Err(Error::Span { tensor, shape, dtype, expected, start, end });
        }
        if end > available as u64 {
            return Err(Error::OutsideFile { tensor: tensor(), end, available });
        }
        Ok(dtype)
    }
}

/// A shape of at most as many dimensions as a tensor has.
struct Shape(Dims);

impl<'de> de::Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Shape, D::Error> {
        struct Sizes;

        impl<'de> Visitor<'de> for Sizes {
            type Value = Shape;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of dimensions")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Shape, A::Error> {
                let mut dims = Dims::default();
                while let Some(size) = list.next_element()? {
                    let too_many = || de::Error::custom("more dimensions than memra reads");
                    dims = dims.with(size).ok_or_else(too_many)?;
                }
                Ok(Shape(dims))
            }
        }

        deserializer.deserialize_seq(Sizes)
    }
}

/// Calls `each` with every tensor of a header, in its order.
fn walk<'j>(json: &'j [u8], mut each: impl FnMut(&str, Entry<'j>) -> Result<(), Error>) -> Result<(), Error> {
    let each = |tensor: &str, entry: Result<Entry<'j>, String>| match entry {
        Ok(entry) => each(tensor, entry),
        Err(problem) => Err(Error::Entry { tensor: tensor.to_owned(), problem }),
    };
    let mut failure = None;
    // `__metadata__` are texts about the file; nothing here reads them.
    let visitor = Each { skip: Some("__metadata__"), each, failure: &mut failure, value: PhantomData };
    let walked = json::walk(json, visitor).map_err(|source| Error::Header { source });
    failure.map_or(walked, Err)
}
