//! Quantised block formats: byte layout, decode and encode, one file a format.
//!
//! Every block format is seen through [`Codes`]: 32 consecutive values as small integers with their scales. Decoding,
//! the matrix product's reference and the repacking for SIMD are all written once, over that view.
//!
//! Decoding gives the bits of the PyPI package `gguf` 0.19 (NaN payloads apart; for F8_E4M3 those of `ml_dtypes`):
//! every product before the last is exact, so it does not matter that the two associate them differently.
//!
//! Encoding gives that package's bits for F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 and MXFP4, and those of `ml_dtypes`
//! for F8_E4M3. The package does not encode the others: Q2_K to Q6_K, IQ4_NL and IQ4_XS choose their scales by a short
//! least-squares search, NVFP4 by its largest magnitudes. IQ2 and IQ3 are read, not written. What each type loses on
//! normal values is in `tests`; `ggml_quantize_chunk` of llama.cpp b11434, without an importance matrix, loses as much
//! within 0.1 % (Q4_K, NVFP4) or up to 8 % more (Q2_K).

mod codes;
mod e2m1;
pub(crate) mod e4m3;
mod fit;
mod float;
pub(crate) mod grid;
mod iq2_s;
mod iq2_xs;
mod iq2_xxs;
mod iq3_s;
mod iq3_xxs;
mod iq4_nl;
mod iq4_xs;
mod mxfp4;
mod nvfp4;
mod q2_k;
mod q3_k;
mod q4_0;
mod q4_1;
mod q4_k;
mod q5_0;
mod q5_1;
mod q5_k;
mod q6_k;
mod q8_0;

pub use codes::{Codes, GROUP};
pub(crate) use codes::{Rule, Scales, rule_factor, u16_at};
pub(crate) use e2m1::DOUBLED as E2M1_DOUBLED;
pub(crate) use float::load;
pub(crate) use iq4_nl::LEVELS as IQ4_LEVELS;

use crate::{DType, RowError};

/// A type, row or buffer that cannot be decoded or encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantError {
    /// The values do not fill whole blocks.
    #[error(transparent)]
    Row(#[from] RowError),
    /// The stored bytes are not as many as the values need.
    #[error(
        "{values} values of {dtype} take {want} bytes, but {got} were given; the tensor is cut short or of another type"
    )]
    Length {
        /// The storage type.
        dtype: DType,
        /// How many values were asked for.
        values: usize,
        /// The bytes they take.
        want: usize,
        /// The bytes given.
        got: usize,
    },
    /// A type that is read but not written.
    #[error("{dtype} is read but not written: it has no encoder here; use a type such as IQ4_XS or Q3_K")]
    NoEncoder {
        /// The storage type.
        dtype: DType,
    },
}

/// Decodes whole rows: `data` holds `out.len()` values of `dtype`. Bit for bit what the PyPI `gguf` package gives
/// (NaN payloads apart).
///
/// # Errors
/// When `out` does not fill whole blocks, or `data` is not exactly as long as that takes. `out` is then untouched.
pub fn decode(dtype: DType, data: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
    let want = dtype.row_bytes(out.len())?;
    if data.len() != want {
        return Err(QuantError::Length { dtype, values: out.len(), want, got: data.len() });
    }
    if !dtype.is_quantised() {
        float::decode(dtype, data, out);
        return Ok(());
    }
    let blocks = data.chunks_exact(dtype.block_bytes());
    for (block, values) in blocks.zip(out.chunks_exact_mut(dtype.block_len())) {
        for (part, values) in values.chunks_exact_mut(GROUP).enumerate() {
            values.copy_from_slice(&codes(dtype, block, part).decode());
        }
    }
    Ok(())
}

/// Encodes whole rows, see the module's documentation.
///
/// # Errors
/// When `values` does not fill whole blocks, or `dtype` is one of the IQ2 and IQ3 types.
pub fn encode(dtype: DType, values: &[f32]) -> Result<Vec<u8>, QuantError> {
    let size = dtype.row_bytes(values.len())?;
    let encode_block = match dtype {
        DType::F32 | DType::F16 | DType::BF16 | DType::F8_E4M3 => {
            let mut data = vec![0u8; size];
            float::encode(dtype, values, &mut data);
            return Ok(data);
        }
        DType::IQ3_S | DType::IQ3_XXS | DType::IQ2_S | DType::IQ2_XS | DType::IQ2_XXS => {
            return Err(QuantError::NoEncoder { dtype });
        }
        DType::Q4_0 => q4_0::encode_block,
        DType::Q4_1 => q4_1::encode_block,
        DType::Q5_0 => q5_0::encode_block,
        DType::Q5_1 => q5_1::encode_block,
        DType::Q8_0 => q8_0::encode_block,
        DType::Q2_K => q2_k::encode_block,
        DType::Q3_K => q3_k::encode_block,
        DType::Q4_K => q4_k::encode_block,
        DType::Q5_K => q5_k::encode_block,
        DType::Q6_K => q6_k::encode_block,
        DType::IQ4_NL => iq4_nl::encode_block,
        DType::IQ4_XS => iq4_xs::encode_block,
        DType::MXFP4 => mxfp4::encode_block,
        DType::NVFP4 => nvfp4::encode_block,
    };
    let mut data = vec![0u8; size];
    let blocks = data.chunks_exact_mut(dtype.block_bytes());
    for (block, values) in blocks.zip(values.chunks_exact(dtype.block_len())) {
        encode_block(values, block);
    }
    Ok(data)
}

/// What scales values `32 * part ..` of one block of a quantised type, and their integers.
///
/// # Panics
/// When `block` is shorter than a block or `part` is not below `block_len / 32`: callers index whole blocks.
pub(crate) fn read(dtype: DType, block: &[u8], part: usize) -> (Scales, [i8; GROUP]) {
    match dtype {
        DType::F32 | DType::F16 | DType::BF16 | DType::F8_E4M3 => {
            unreachable!("{dtype} is not stored in blocks")
        }
        DType::Q4_0 => q4_0::read(block),
        DType::Q4_1 => q4_1::read(block),
        DType::Q5_0 => q5_0::read(block),
        DType::Q5_1 => q5_1::read(block),
        DType::Q8_0 => q8_0::read(block),
        DType::Q2_K => q2_k::read(block, part),
        DType::Q3_K => q3_k::read(block, part),
        DType::Q4_K => q4_k::read(block, part),
        DType::Q5_K => q5_k::read(block, part),
        DType::Q6_K => q6_k::read(block, part),
        DType::IQ4_NL => iq4_nl::read(block),
        DType::IQ4_XS => iq4_xs::read(block, part),
        DType::IQ3_S => iq3_s::read(block, part),
        DType::IQ3_XXS => iq3_xxs::read(block, part),
        DType::IQ2_S => iq2_s::read(block, part),
        DType::IQ2_XS => iq2_xs::read(block, part),
        DType::IQ2_XXS => iq2_xxs::read(block, part),
        DType::MXFP4 => mxfp4::read(block),
        DType::NVFP4 => nvfp4::read(block, part),
    }
}

/// How a quantised type makes its scales of what [`read`] gives; float types have none.
pub(crate) const fn rule(dtype: DType) -> Rule {
    match dtype {
        DType::F32 | DType::F16 | DType::BF16 | DType::F8_E4M3 => Rule::Plain,
        DType::Q4_0 | DType::Q5_0 | DType::Q8_0 | DType::IQ4_NL => Rule::Plain,
        DType::Q4_1 | DType::Q5_1 => Rule::PlainMin,
        DType::Q2_K => Rule::NestedMin { halved: true },
        DType::Q4_K | DType::Q5_K => Rule::NestedMin { halved: false },
        DType::Q3_K | DType::Q6_K => Rule::Nested { halved: true, shift: 0 },
        DType::IQ4_XS | DType::IQ3_S => Rule::Nested { halved: false, shift: 0 },
        DType::IQ3_XXS => Rule::Nested { halved: false, shift: 2 },
        DType::IQ2_XXS => Rule::Nested { halved: false, shift: 3 },
        DType::IQ2_S | DType::IQ2_XS => Rule::Nested { halved: true, shift: 3 },
        DType::MXFP4 => Rule::Bf16 { halved: false },
        DType::NVFP4 => Rule::Bf16 { halved: true },
    }
}

/// Values `32 * part ..` of one block of a quantised type, as integers and scales.
///
/// # Panics
/// As [`read`].
pub(crate) fn codes(dtype: DType, block: &[u8], part: usize) -> Codes {
    let (scales, q) = read(dtype, block, part);
    Codes::new(rule(dtype), &scales, q)
}

#[cfg(test)]
mod tests;
