//! Made-up inputs for checks, tuning and benches: the same from the same seed on every machine.

use crate::DType;
use crate::quant::{self, QuantError};

/// A small generator (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A generator that starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in -1..1, 24 bits.
    pub fn uniform(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    }
}

/// `n` rows of `k` weights, stored as `dtype`: mostly small values, all below one. Types without an encoder get random
/// codes under small scales.
///
/// # Errors
/// When `k` does not fill whole blocks.
pub fn weights(random: &mut Random, dtype: DType, n: usize, k: usize) -> Result<Vec<u8>, QuantError> {
    dtype.row_bytes(k)?;
    let values: Vec<f32> = (0..n * k).map(|_| random.uniform() * random.uniform() * 0.2).collect();
    let Err(QuantError::NoEncoder { .. }) = quant::encode(dtype, &values[..dtype.block_len().min(n * k)])
    else {
        return quant::encode(dtype, &values);
    };
    let mut data = raw_weights(random, dtype, n, k)?;
    for block in data.chunks_exact_mut(dtype.block_bytes()) {
        let scale = half::f16::from_f32(0.0005 * (1.0 + random.uniform() / 2.0));
        block[..2].copy_from_slice(&scale.to_le_bytes());
    }
    Ok(data)
}

/// `rows` rows of `k` activations: mostly small, some large, as after a norm.
pub fn activations(random: &mut Random, rows: usize, k: usize) -> Vec<f32> {
    (0..rows * k)
        .map(|_| {
            let v = random.uniform();
            if random.bits().is_multiple_of(64) { 16.0 * v } else { v }
        })
        .collect()
}

/// A quick hash of inputs and outputs, to tell whether they are the same bits; weights of many megabytes take
/// milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Hash(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    /// Takes in bytes, eight at a time.
    pub fn bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.word(u64::from_le_bytes(*word)));
        rest.iter().for_each(|byte| self.word(u64::from(*byte)));
    }

    /// Takes in values, by their bits.
    pub fn floats(&mut self, values: &[f32]) {
        values.iter().for_each(|v| self.word(u64::from(v.to_bits())));
    }

    /// Both halves of the product: its low half alone moves changes up only, so that changes of top bits cancel out.
    fn word(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    /// The hash of what was taken in.
    pub fn finish(self) -> u64 {
        self.0
    }
}

/// `n` rows of `k` weights whose codes and scales are random bytes: every code occurs, scales of any size and sign, but
/// none infinite or NaN.
///
/// # Errors
/// When `k` does not fill whole blocks.
pub fn raw_weights(random: &mut Random, dtype: DType, n: usize, k: usize) -> Result<Vec<u8>, QuantError> {
    let mut data: Vec<u8> = (0..n * dtype.row_bytes(k)?).map(|_| random.bits() as u8).collect();
    // High bytes of the float fields: without the top exponent bit they are finite.
    let floats: &[usize] = match dtype {
        DType::F32 => &[3],
        DType::F8_E4M3 | DType::MXFP4 => &[0],
        DType::Q4_1 | DType::Q5_1 | DType::Q4_K | DType::Q5_K => &[1, 3],
        DType::Q2_K => &[81, 83],
        DType::Q3_K => &[109],
        DType::Q6_K => &[209],
        DType::NVFP4 => &[],
        _ => &[1],
    };
    for block in data.chunks_exact_mut(dtype.block_bytes()) {
        floats.iter().for_each(|at| block[*at] &= !0x40);
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_one_or_two_flipped_bits_change_the_hash() {
        let data = [7u8; 21];
        let hash = |flips: &[usize]| {
            let mut data = data;
            flips.iter().for_each(|bit| data[bit / 8] ^= 1 << (bit % 8));
            let mut hash = Hash::default();
            hash.bytes(&data);
            hash.finish()
        };
        let mut seen = vec![hash(&[])];
        for a in 0..8 * data.len() {
            seen.push(hash(&[a]));
            seen.extend((0..a).map(|b| hash(&[a, b])));
        }
        let all = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), all);
    }
}
