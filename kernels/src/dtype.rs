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
    /// FP8 with four bits of exponent, without infinities: safetensors' `F8_E4M3`. Files keep scales in tensors of their
    /// own, which are the model's to apply.
    F8_E4M3,
    /// 32 values: f16 scale, 4-bit signed values.
    Q4_0,
    /// 32 values: f16 scale, f16 minimum, 4-bit unsigned values.
    Q4_1,
    /// 32 values: f16 scale, 5-bit signed values.
    Q5_0,
    /// 32 values: f16 scale, f16 minimum, 5-bit unsigned values.
    Q5_1,
    /// 32 values: f16 scale, 8-bit signed values.
    Q8_0,
    /// 256 values: f16 scale and minimum scale, sixteen 4-bit scale and minimum pairs, 2-bit unsigned values.
    Q2_K,
    /// 256 values: f16 scale, sixteen 6-bit signed scales, 3-bit signed values.
    Q3_K,
    /// 256 values: f16 scale and minimum scale, eight 6-bit scale and minimum pairs, 4-bit unsigned values.
    Q4_K,
    /// 256 values: as Q4_K, 5-bit unsigned values.
    Q5_K,
    /// 256 values: f16 scale, sixteen 8-bit scales, 6-bit signed values.
    Q6_K,
    /// 32 values: f16 scale, 4-bit indices into sixteen uneven levels.
    IQ4_NL,
    /// 256 values: f16 scale, eight 6-bit signed scales, levels as IQ4_NL.
    IQ4_XS,
    /// 256 values: f16 scale, eight 4-bit scales, signs, 9-bit indices into a grid of four odd values.
    IQ3_S,
    /// 256 values: f16 scale, eight 4-bit scales, 7 bits of signs for eight values, 8-bit indices into a grid of four.
    IQ3_XXS,
    /// 256 values: f16 scale, sixteen 4-bit scales, signs, 10-bit indices into a grid of eight values.
    IQ2_S,
    /// 256 values: f16 scale, sixteen 4-bit scales, 7 bits of signs and 9-bit indices into a grid for eight values.
    IQ2_XS,
    /// 256 values: f16 scale, eight 4-bit scales, 7 bits of signs and 8-bit indices into a grid for eight values.
    IQ2_XXS,
    /// 32 values: a power of two, E2M1 values (OCP microscaling).
    MXFP4,
    /// 64 values: four E4M3 scales, E2M1 values. A factor for the whole tensor lies beside it.
    NVFP4,
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
const TABLE: [(DType, Option<u32>, &str, usize, usize); 23] = [
    (DType::F32, Some(0), "F32", 1, 4),
    (DType::F16, Some(1), "F16", 1, 2),
    (DType::BF16, Some(30), "BF16", 1, 2),
    (DType::F8_E4M3, None, "F8_E4M3", 1, 1),
    (DType::Q4_0, Some(2), "Q4_0", 32, 18),
    (DType::Q4_1, Some(3), "Q4_1", 32, 20),
    (DType::Q5_0, Some(6), "Q5_0", 32, 22),
    (DType::Q5_1, Some(7), "Q5_1", 32, 24),
    (DType::Q8_0, Some(8), "Q8_0", 32, 34),
    (DType::Q2_K, Some(10), "Q2_K", 256, 84),
    (DType::Q3_K, Some(11), "Q3_K", 256, 110),
    (DType::Q4_K, Some(12), "Q4_K", 256, 144),
    (DType::Q5_K, Some(13), "Q5_K", 256, 176),
    (DType::Q6_K, Some(14), "Q6_K", 256, 210),
    (DType::IQ4_NL, Some(20), "IQ4_NL", 32, 18),
    (DType::IQ4_XS, Some(23), "IQ4_XS", 256, 136),
    (DType::IQ3_S, Some(21), "IQ3_S", 256, 110),
    (DType::IQ3_XXS, Some(18), "IQ3_XXS", 256, 98),
    (DType::IQ2_S, Some(22), "IQ2_S", 256, 82),
    (DType::IQ2_XS, Some(17), "IQ2_XS", 256, 74),
    (DType::IQ2_XXS, Some(16), "IQ2_XXS", 256, 66),
    (DType::MXFP4, Some(39), "MXFP4", 32, 17),
    (DType::NVFP4, Some(40), "NVFP4", 64, 36),
];

/// (GGUF id, name) of the types left out.
const UNSUPPORTED: [(u32, &str); 20] = [
    (4, "Q4_2"),
    (5, "Q4_3"),
    (9, "Q8_1"),
    (15, "Q8_K"),
    (19, "IQ1_S"),
    (24, "I8"),
    (25, "I16"),
    (26, "I32"),
    (27, "I64"),
    (28, "F64"),
    (29, "IQ1_M"),
    (31, "Q4_0_4_4"),
    (32, "Q4_0_4_8"),
    (33, "Q4_0_8_8"),
    (34, "TQ1_0"),
    (35, "TQ2_0"),
    (36, "IQ4_NL_4_4"),
    (37, "IQ4_NL_4_8"),
    (38, "IQ4_NL_8_8"),
    (41, "Q1_0"),
];

impl DType {
    /// Every type, in the order of this file.
    pub const ALL: [DType; TABLE.len()] = {
        let mut all = [DType::F32; TABLE.len()];
        let mut i = 0;
        while i < all.len() {
            all[i] = TABLE[i].0;
            i += 1;
        }
        all
    };

    /// Every type, in the order of this file.
    pub fn all() -> impl Iterator<Item = DType> {
        DType::ALL.into_iter()
    }

    fn row(self) -> &'static (DType, Option<u32>, &'static str, usize, usize) {
        &TABLE[self as usize]
    }

    /// The number GGUF gives this type; none for types that only safetensors files hold.
    pub fn gguf_id(self) -> Option<u32> {
        self.row().1
    }

    /// The type with this GGUF number, if memra reads it.
    pub fn from_gguf_id(id: u32) -> Option<DType> {
        TABLE.iter().find(|row| row.1 == Some(id)).map(|row| row.0)
    }

    /// The name of a GGUF type that memra does not read, for messages: plain integers and doubles, ternary and
    /// one-bit types, those of activations (Q8_1, Q8_K), those repacked for one processor (Q4_0_4_4 and its kin), and
    /// the removed Q4_2 and Q4_3.
    pub fn unsupported_gguf_name(id: u32) -> Option<&'static str> {
        UNSUPPORTED.iter().find(|row| row.0 == id).map(|row| row.1)
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
            assert_eq!(dtype.gguf_id().map_or(Some(dtype), DType::from_gguf_id), Some(dtype));
            assert_eq!(dtype.gguf_id().is_none(), dtype == DType::F8_E4M3);
            assert_eq!(DType::from_name(&dtype.to_string()), Some(dtype));
        }
    }

    #[test]
    fn every_number_up_to_the_last_is_read_or_named() {
        for id in 0..=41 {
            let name = DType::unsupported_gguf_name(id);
            assert_ne!(name.is_some(), DType::from_gguf_id(id).is_some(), "{id}");
            assert!(name.is_none_or(|name| DType::from_name(name).is_none()), "{id}");
        }
        assert_eq!(DType::unsupported_gguf_name(42), None);
    }

    #[test]
    fn rows_must_fill_blocks() {
        assert_eq!(DType::Q4_K.row_bytes(512), Ok(288));
        assert_eq!(DType::Q4_K.row_bytes(576), Err(RowError { dtype: DType::Q4_K, k: 576 }));
        assert!(DType::F32.row_bytes(usize::MAX).is_err());
    }
}
