//! Storage types of tensors, with the numbers GGUF gives them.

use std::fmt;

/// Storage type of a tensor: how a run of `block_len` values is laid out in `block_bytes` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(non_camel_case_types, reason = "the field writes these names with underscores: Q4_K, not Q4K")]
pub enum DType {
    /// IEEE binary32.
    F32,
    /// IEEE binary16.
    F16,
    /// bfloat16.
    BF16,
    /// 32 values: f16 scale, 8-bit signed values.
    Q8_0,
    /// 32 values: f16 scale, f16 minimum, 4-bit unsigned values.
    Q4_1,
    /// 256 values: f16 scale and minimum scale, eight 6-bit scale and minimum pairs, 4-bit unsigned values.
    Q4_K,
    /// 256 values: f16 scale, sixteen 8-bit scales, 6-bit signed values.
    Q6_K,
}

/// A row length that does not fill whole blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a row of {k} values does not fill whole {dtype} blocks of {block}; this shape cannot be stored as {dtype}", block = dtype.block_len())]
pub struct RowError {
    /// The storage type asked for.
    pub dtype: DType,
    /// The row length, in values.
    pub k: usize,
}

/// (type, GGUF id, name, values a block, bytes a block)
const TABLE: [(DType, u32, &str, usize, usize); 7] = [
    (DType::F32, 0, "F32", 1, 4),
    (DType::F16, 1, "F16", 1, 2),
    (DType::BF16, 30, "BF16", 1, 2),
    (DType::Q8_0, 8, "Q8_0", 32, 34),
    (DType::Q4_1, 3, "Q4_1", 32, 20),
    (DType::Q4_K, 12, "Q4_K", 256, 144),
    (DType::Q6_K, 14, "Q6_K", 256, 210),
];

impl DType {
    /// Every type, in the order of this file.
    pub fn all() -> impl Iterator<Item = DType> {
        TABLE.iter().map(|row| row.0)
    }

    fn row(self) -> &'static (DType, u32, &'static str, usize, usize) {
        &TABLE[self as usize]
    }

    /// The number GGUF gives this type.
    pub fn gguf_id(self) -> u32 {
        self.row().1
    }

    /// The type with this GGUF number, if memra reads it.
    pub fn from_gguf_id(id: u32) -> Option<DType> {
        TABLE.iter().find(|row| row.1 == id).map(|row| row.0)
    }

    /// The type of this name, as `Display` prints it.
    pub fn from_name(name: &str) -> Option<DType> {
        TABLE.iter().find(|row| row.2.eq_ignore_ascii_case(name)).map(|row| row.0)
    }

    /// Values a block.
    pub fn block_len(self) -> usize {
        self.row().3
    }

    /// Bytes a block.
    pub fn block_bytes(self) -> usize {
        self.row().4
    }

    /// Whether values are stored in blocks that share a scale.
    pub fn is_quantised(self) -> bool {
        self.block_len() > 1
    }

    /// Bytes of a row of `k` values.
    ///
    /// # Errors
    /// When `k` is not a whole number of blocks, or the size does not fit in `usize`.
    pub fn row_bytes(self, k: usize) -> Result<usize, RowError> {
        let err = RowError { dtype: self, k };
        if !k.is_multiple_of(self.block_len()) {
            return Err(err);
        }
        (k / self.block_len()).checked_mul(self.block_bytes()).ok_or(err)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.row().2)
    }
}

impl serde::Serialize for DType {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self.row().2)
    }
}

impl<'de> serde::Deserialize<'de> for DType {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let name = String::deserialize(d)?;
        DType::from_name(&name)
            .ok_or_else(|| serde::de::Error::custom(format!("`{name}` is not a tensor type memra knows")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_in_enum_order_and_names_and_ids_round_trip() {
        for (i, dtype) in DType::all().enumerate() {
            assert_eq!(dtype as usize, i);
            assert_eq!(DType::from_gguf_id(dtype.gguf_id()), Some(dtype));
            assert_eq!(DType::from_name(&dtype.to_string()), Some(dtype));
        }
    }

    #[test]
    fn rows_must_fill_blocks() {
        assert_eq!(DType::Q4_K.row_bytes(512), Ok(288));
        assert_eq!(DType::Q4_K.row_bytes(576), Err(RowError { dtype: DType::Q4_K, k: 576 }));
        assert!(DType::F32.row_bytes(usize::MAX).is_err());
    }
}
