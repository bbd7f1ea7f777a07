//! How a tensor's values are stored.

use crate::Dims;
use memra_kernels::{DType, RowError};
use std::fmt;

/// Storage of a tensor's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Storage {
    /// Blocks as GGUF stores them.
    Blocks(DType),
    /// Plain values as safetensors stores them. What they mean is sometimes known to the model alone: a `U8` may hold
    /// two 4-bit values.
    Scalars(ScalarType),
}

/// Why a shape has no size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SizeError {
    /// Rows do not fill whole blocks.
    Row(RowError),
    /// Values end inside a byte.
    Bits,
    /// The size does not fit the address space.
    Overflow,
}

impl Storage {
    /// The type that kernels compute with, where there is one.
    pub fn dtype(self) -> Option<DType> {
        match self {
            Storage::Blocks(dtype) => Some(dtype),
            Storage::Scalars(scalar) => DType::from_name(&scalar.to_string()),
        }
    }

    /// Bytes of a tensor of these dimensions, fastest first.
    pub(crate) fn byte_len(self, dims: &Dims) -> Result<usize, SizeError> {
        // The number of values must fit too, and so must any partial product.
        let n_values = dims.product().ok_or(SizeError::Overflow)?;
        match self {
            Storage::Scalars(scalar) => {
                let bits = n_values.checked_mul(scalar.bits()).ok_or(SizeError::Overflow)?;
                if bits.is_multiple_of(8) { Ok(bits / 8) } else { Err(SizeError::Bits) }
            }
            Storage::Blocks(dtype) => {
                let k = dims.first().copied().unwrap_or(1);
                if !k.is_multiple_of(dtype.block_len()) {
                    return Err(SizeError::Row(RowError { dtype, k }));
                }
                (n_values / dtype.block_len()).checked_mul(dtype.block_bytes()).ok_or(SizeError::Overflow)
            }
        }
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Storage::Blocks(dtype) => dtype.fmt(f),
            Storage::Scalars(scalar) => scalar.fmt(f),
        }
    }
}

macro_rules! scalar_types {
    ($($variant:ident $bits:literal $meaning:literal),* $(,)?) => {
        /// The value types of safetensors, under the names its headers use.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(non_camel_case_types, reason = "the format writes these names with underscores")]
        pub enum ScalarType {
            $(#[doc = $meaning] $variant,)*
        }

        impl ScalarType {
            /// The type of this name.
            pub fn from_name(name: &str) -> Option<ScalarType> {
                match name {
                    $(stringify!($variant) => Some(ScalarType::$variant),)*
                    _ => None,
                }
            }

            /// Bits of a value.
            pub fn bits(self) -> usize {
                match self {
                    $(ScalarType::$variant => $bits,)*
                }
            }
        }

        impl fmt::Display for ScalarType {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self {
                    $(ScalarType::$variant => stringify!($variant),)*
                })
            }
        }
    };
}

scalar_types! {
    BOOL 8 "A byte, 0 or 1.",
    F4 4 "E2M1, two a byte.",
    F6_E2M3 6 "Six bits, four values in three bytes.",
    F6_E3M2 6 "Six bits, four values in three bytes.",
    U8 8 "Unsigned byte; in quantised checkpoints often two 4-bit values.",
    I8 8 "Signed byte.",
    F8_E5M2 8 "FP8 with five bits of exponent.",
    F8_E4M3 8 "FP8 with four bits of exponent, without infinities.",
    F8_E8M0 8 "A power of two: the block scales of microscaling formats.",
    F8_E4M3FNUZ 8 "FP8 E4M3 without negative zero.",
    F8_E5M2FNUZ 8 "FP8 E5M2 without negative zero.",
    I16 16 "Signed, 16 bits.",
    U16 16 "Unsigned, 16 bits.",
    F16 16 "IEEE binary16.",
    BF16 16 "bfloat16.",
    I32 32 "Signed, 32 bits; in GPTQ and AWQ checkpoints packed 4-bit values.",
    U32 32 "Unsigned, 32 bits.",
    F32 32 "IEEE binary32.",
    C64 64 "Complex, two binary32.",
    F64 64 "IEEE binary64.",
    I64 64 "Signed, 64 bits.",
    U64 64 "Unsigned, 64 bits.",
}
