//! Quantised block formats: byte layout, decode and encode, one file a format.
//!
//! Every block format is seen through [`Codes`]: 32 consecutive values as small integers with their scales. Decoding,
//! the matrix product's reference and the repacking for SIMD are all written once, over that view.

mod float;
mod q4_1;
pub(crate) mod q4_k;
mod q6_k;
mod q8_0;

pub(crate) use float::load;

use crate::{DType, RowError};

/// Values in a [`Codes`]: the unit in which activations are quantised and sums are folded.
pub const GROUP: usize = 32;

/// 32 consecutive values of a block format: `value[i] = scale[i / 16] * q[i] + min`.
///
/// The product and the sum are rounded to f32 once each; without a minimum there is no sum (so that the sign of a
/// zero is kept). Scales are exact in f32: each is an f16, or an f16 times an integer of at most 8 bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Codes {
    /// The stored integers, their offset already taken off.
    pub q: [i8; GROUP],
    /// Scale of each half. The halves are equal in formats whose scales cover 32 values.
    pub scale: [f32; 2],
    /// The value of a zero code, in formats that have one.
    pub min: Option<f32>,
}

impl Codes {
    /// The 32 values.
    pub fn decode(&self) -> [f32; GROUP] {
        let Codes { q, scale, min } = self;
        std::array::from_fn(|i| {
            let product = scale[i / 16] * f32::from(q[i]);
            min.map_or(product, |min| product + min)
        })
    }
}

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

/// Encodes whole rows.
///
/// Q8_0, Q4_1, F16 and BF16 give the bits the PyPI `gguf` package gives; Q4_K and Q6_K choose scales by a short
/// least-squares search.
///
/// # Errors
/// When `values` does not fill whole blocks.
pub fn encode(dtype: DType, values: &[f32]) -> Result<Vec<u8>, QuantError> {
    let mut data = vec![0u8; dtype.row_bytes(values.len())?];
    if !dtype.is_quantised() {
        float::encode(dtype, values, &mut data);
        return Ok(data);
    }
    let blocks = data.chunks_exact_mut(dtype.block_bytes());
    for (block, values) in blocks.zip(values.chunks_exact(dtype.block_len())) {
        match dtype {
            DType::Q8_0 => q8_0::encode_block(values, block),
            DType::Q4_1 => q4_1::encode_block(values, block),
            DType::Q4_K => q4_k::encode_block(values, block),
            DType::Q6_K => q6_k::encode_block(values, block),
            DType::F32 | DType::F16 | DType::BF16 => {}
        }
    }
    Ok(data)
}

/// Values `32 * part ..` of one block of a quantised type, as integers and scales.
///
/// # Panics
/// When `block` is shorter than a block or `part` is not below `block_len / 32`: callers index whole blocks.
pub(crate) fn codes(dtype: DType, block: &[u8], part: usize) -> Codes {
    match dtype {
        DType::Q8_0 => q8_0::codes(block),
        DType::Q4_1 => q4_1::codes(block),
        DType::Q4_K => q4_k::codes(block, part),
        DType::Q6_K => q6_k::codes(block, part),
        DType::F32 | DType::F16 | DType::BF16 => unreachable!("{dtype} is not stored in blocks"),
    }
}

/// The f16 at `at`, exact in f32.
pub(crate) fn f16_at(block: &[u8], at: usize) -> f32 {
    half::f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// Stores `value`, rounded to f16, at `at`, and returns the stored value.
fn put_f16(block: &mut [u8], at: usize, value: f32) -> f32 {
    let rounded = half::f16::from_f32(value);
    block[at..at + 2].copy_from_slice(&rounded.to_le_bytes());
    rounded.to_f32()
}

/// `1 / x`, or zero for zero.
fn inverse(x: f32) -> f32 {
    if x == 0.0 { 0.0 } else { 1.0 / x }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::Random;

    /// Roughly normal values.
    fn values(random: &mut Random, n: usize) -> Vec<f32> {
        (0..n).map(|_| (0..6).map(|_| random.uniform()).sum::<f32>()).collect()
    }

    #[test]
    fn encoding_keeps_normal_values_within_each_types_error() {
        let x = values(&mut Random::new(11), 64 * 256);
        let size: f32 = x.iter().map(|v| v * v).sum();
        // Relative root-mean-square error: what the type's step allows.
        let bounds = [0.0, 3e-4, 3e-3, 6e-3, 0.085, 0.075, 0.02];
        for (dtype, bound) in DType::all().zip(bounds) {
            let data = encode(dtype, &x).unwrap();
            let mut back = vec![0f32; x.len()];
            decode(dtype, &data, &mut back).unwrap();
            let error: f32 = x.iter().zip(&back).map(|(a, b)| (a - b) * (a - b)).sum();
            let error = (error / size).sqrt();
            assert!(error <= bound, "{dtype}: {error}");
            assert!(error >= 0.5 * bound, "{dtype}: the bound {bound} is loose, the error is {error}");
        }
    }

    #[test]
    fn constants_zeros_and_one_sided_rows_survive() {
        for dtype in DType::all() {
            for f in [|_| 0.0, |_| 0.75, |_| -2.0, |i| i as f32 / 64.0 + 1.0, |i| -1.0 - i as f32 / 64.0] {
                let x: Vec<f32> = (0..256).map(f).collect();
                let mut back = vec![f32::NAN; 256];
                decode(dtype, &encode(dtype, &x).unwrap(), &mut back).unwrap();
                let range = x.iter().fold(0f32, |a, v| a.max(v.abs()));
                for (a, b) in x.iter().zip(&back) {
                    assert!((a - b).abs() <= range * 0.05, "{dtype}: {a} became {b}");
                }
            }
        }
    }

    #[test]
    fn hostile_values_never_panic() {
        let mut x = values(&mut Random::new(3), 256);
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 1e-45] {
            x[40] = bad;
            for dtype in DType::all() {
                let data = encode(dtype, &x).unwrap();
                decode(dtype, &data, &mut [0f32; 256]).unwrap();
            }
        }
    }

    #[test]
    fn lengths_that_do_not_fit_are_errors() {
        let mut out = [0f32; 32];
        assert!(matches!(decode(DType::Q4_1, &[0; 19], &mut out), Err(QuantError::Length { want: 20, .. })));
        assert!(matches!(decode(DType::Q4_1, &[0; 40], &mut out), Err(QuantError::Length { want: 20, .. })));
        assert!(matches!(decode(DType::Q4_K, &[0; 144], &mut out), Err(QuantError::Row(_))));
        assert!(matches!(encode(DType::Q8_0, &[0.0; 33]), Err(QuantError::Row(_))));
        decode(DType::Q6_K, &[], &mut []).unwrap();
    }
}
