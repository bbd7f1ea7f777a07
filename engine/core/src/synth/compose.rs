//! Composing weights at the speed of memory: blocks of random codes under scales that give them the wanted width.
//!
//! No value is ever encoded. A piece of a tensor is filled with random bytes, which are its codes, and the few bytes of
//! each block that hold scales are put in place.

use crate::Error;
use half::f16;
use memra_kernels::DType;

/// Standard deviations of `n` equally likely integers in a row: √((n² - 1) / 12).
const STD_16: f32 = 4.609_772;
const STD_32: f32 = 9.233_093;
const STD_64: f32 = 18.472_955;
const STD_255: f32 = 73.611_593;
/// Root mean square of the integers 32..=63, and of 64..=127.
const RMS_SCALE_6: f32 = 48.383_88;
const RMS_SCALE_8: f32 = 97.264_67;

/// Different scales, in 0.75..1.25 of the mean one.
const SCALES: usize = 256;
/// Different values of 16-bit floats.
const FLOATS: usize = 1 << 14;

/// Fills one tensor, from its beginning to its end.
#[derive(Debug)]
pub(super) struct Composer {
    dtype: DType,
    mean: f32,
    spread: f32,
    random: SplitMix,
    /// Scales of blocks, or values of 16-bit floats, as they are stored.
    table: Vec<[u8; 2]>,
    /// Scales of the minima that take the mean off, for each scale.
    minima: Vec<[u8; 2]>,
}

impl Composer {
    /// For the `index`-th tensor of a file; values are uniform in `mean ± spread` (quantised ones in `± spread`).
    pub(super) fn new(
        dtype: DType,
        mean: f32,
        spread: f32,
        seed: u64,
        index: u64,
    ) -> Result<Composer, Error> {
        let random = SplitMix::new(seed, index);
        // Standard deviation of a uniform value.
        let std = spread / 3f32.sqrt();
        let step = match dtype {
            DType::F32 | DType::F16 | DType::BF16 => 0.0,
            DType::Q8_0 => std / STD_255,
            DType::Q4_0 => std / STD_16,
            DType::Q5_0 => std / STD_32,
            DType::Q4_K => std / (STD_16 * RMS_SCALE_6),
            DType::Q6_K => std / (STD_64 * RMS_SCALE_8),
            other => return Err(Error::Argument(format!("{other} blocks cannot be made up at random"))),
        };
        let scales =
            (0..SCALES).map(|i| f16::from_f32(step * (0.75 + 0.5 * (i as f32 + 0.5) / SCALES as f32)));
        let floats = (0..FLOATS).map(|i| mean + spread * (2.0 * (i as f32 + 0.5) / FLOATS as f32 - 1.0));
        let table: Vec<[u8; 2]> = match dtype {
            DType::F32 => Vec::new(),
            DType::F16 => floats.map(|v| f16::from_f32(v).to_le_bytes()).collect(),
            DType::BF16 => floats.map(|v| half::bf16::from_f32(v).to_le_bytes()).collect(),
            _ => scales.clone().map(f16::to_le_bytes).collect(),
        };
        // Codes 0..=15 have the mean 7.5, and a part's minimum has the number of its scale.
        let minimum = |scale: f16| f16::from_f32(7.5 * scale.to_f32()).to_le_bytes();
        let minima = if dtype == DType::Q4_K { scales.map(minimum).collect() } else { Vec::new() };
        Ok(Composer { dtype, mean, spread, random, table, minima })
    }

    /// Fills `out`, which is whole blocks.
    pub(super) fn fill(&mut self, out: &mut [u8]) {
        self.random.fill(out);
        let blocks = out.chunks_exact_mut(self.dtype.block_bytes());
        match self.dtype {
            DType::F32 => blocks.for_each(|value| self.f32(value)),
            DType::F16 | DType::BF16 => blocks.for_each(|value| self.float(value)),
            DType::Q8_0 => blocks.for_each(|block| {
                self.signed_scale(block, 0);
                // -128 has no counterpart, and no encoder gives it.
                block[2..].iter_mut().for_each(|code| *code = (*code as i8).max(-127) as u8);
            }),
            DType::Q4_K => blocks.for_each(|block| self.q4_k(block)),
            DType::Q6_K => blocks.for_each(|block| self.q6_k(block)),
            _ => blocks.for_each(|block| self.signed_scale(block, 0)),
        }
    }

    fn f32(&self, value: &mut [u8]) {
        let bits = value.iter().fold(0u32, |bits, &byte| bits << 8 | u32::from(byte));
        let unit = (bits >> 8) as f32 / (1u32 << 23) as f32 - 1.0;
        value.copy_from_slice(&(self.mean + self.spread * unit).to_le_bytes());
    }

    fn float(&self, value: &mut [u8]) {
        let index = usize::from(value[0]) | usize::from(value[1]) << 8;
        value.copy_from_slice(&self.table[index % FLOATS]);
    }

    /// Puts one of the scales at `at`, of either sign: codes of two's complement have a mean of -1/2, which then comes
    /// out even.
    fn signed_scale(&self, block: &mut [u8], at: usize) {
        let sign = block[at + 1] & 0x80;
        let [low, high] = self.table[usize::from(block[at])];
        block[at] = low;
        block[at + 1] = high | sign;
    }

    /// Scales of parts in 32..=63; minima that make the mean of each part zero.
    fn q4_k(&self, block: &mut [u8]) {
        let index = usize::from(block[0]);
        block[..2].copy_from_slice(&self.table[index]);
        block[2..4].copy_from_slice(&self.minima[index]);
        for part in 0..4 {
            let (first, second) = (32 | block[4 + part] & 31, 32 | block[8 + part] & 31);
            // Six bits for each of the first four parts; the others' low four, their high two on top of those.
            let byte = first | (second >> 4) << 6;
            (block[4 + part], block[8 + part]) = (byte, byte);
            block[12 + part] = second & 15 | (second & 15) << 4;
        }
    }

    /// Scales of ±64..=127.
    fn q6_k(&self, block: &mut [u8]) {
        for scale in &mut block[192..208] {
            let size = (64 | *scale & 63) as i8;
            *scale = if *scale & 0x80 == 0 { size } else { -size } as u8;
        }
        let index = usize::from(block[208]);
        block[208..].copy_from_slice(&self.table[index]);
    }
}

/// SplitMix64 (Steele, Lea and Flood, 2014): a counter, scrambled.
#[derive(Debug)]
struct SplitMix(u64);

impl SplitMix {
    /// A stream of its own for each seed and index.
    fn new(seed: u64, index: u64) -> SplitMix {
        let start = SplitMix(seed).next();
        SplitMix(SplitMix(start.wrapping_add(index)).next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn fill(&mut self, out: &mut [u8]) {
        let mut words = out.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&self.next().to_le_bytes());
        }
        let rest = words.into_remainder();
        let last = self.next().to_le_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memra_kernels::quant;

    fn composed(dtype: DType, mean: f32, spread: f32, seed: u64) -> Vec<u8> {
        let mut composer = Composer::new(dtype, mean, spread, seed, 3).unwrap();
        let mut bytes = vec![0; dtype.row_bytes(1 << 18).unwrap()];
        composer.fill(&mut bytes);
        bytes
    }

    #[test]
    fn blocks_have_the_wanted_width_and_no_bias() {
        let types = [
            DType::F32,
            DType::F16,
            DType::BF16,
            DType::Q8_0,
            DType::Q4_0,
            DType::Q5_0,
            DType::Q4_K,
            DType::Q6_K,
        ];
        // Row lengths 576 and 14336 give the widest and narrowest weights of the presets.
        for (dtype, k) in types.into_iter().flat_map(|dtype| [(dtype, 576.0), (dtype, 14336.0)]) {
            let std = 1.0 / f32::sqrt(k);
            let bytes = composed(dtype, 0.0, 3f32.sqrt() * std, 5);
            let mut values = vec![0f32; 1 << 18];
            quant::decode(dtype, &bytes, &mut values).unwrap();
            let n = values.len() as f64;
            let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
            let rms = (values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / n).sqrt();
            let largest = values.iter().fold(0f32, |a, v| a.max(v.abs()));
            assert!((rms / f64::from(std) - 1.0).abs() < 0.03, "{dtype}: {rms} instead of {std}");
            assert!(mean.abs() < 0.01 * rms, "{dtype}: mean {mean}");
            assert!(largest < 5.0 * std, "{dtype}: {largest}");
        }
    }

    #[test]
    fn norms_are_near_one() {
        let bytes = composed(DType::F32, 1.0, 0.2, 5);
        let value = |b: &[u8]| f32::from_le_bytes(b.try_into().unwrap());
        assert!(bytes.chunks_exact(4).map(value).all(|v| (0.79..1.21).contains(&v)));
    }

    #[test]
    fn bytes_depend_on_the_seed_alone_and_do_not_repeat() {
        let bytes = composed(DType::Q4_K, 0.0, 1.0, 5);
        assert_eq!(bytes, composed(DType::Q4_K, 0.0, 1.0, 5));
        assert_ne!(bytes, composed(DType::Q4_K, 0.0, 1.0, 6));
        let blocks: std::collections::HashSet<&[u8]> = bytes.chunks_exact(16).collect();
        assert!(blocks.len() * 100 > bytes.len() / 16 * 99, "only {} different pieces", blocks.len());
        let mut pieces = Composer::new(DType::Q4_K, 0.0, 1.0, 5, 4).unwrap();
        let mut other = vec![0; bytes.len()];
        pieces.fill(&mut other);
        assert_ne!(bytes, other, "two tensors are alike");
    }
}
