//! Rotary position embedding.

use crate::error::{ShapeError, same};
use serde::Serialize;
use std::f64::consts::PI;

/// Which two values of a head make a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// `2i` and `2i + 1`: the order of llama weights in GGUF files.
    Interleaved,
    /// `i` and `i + n_rot / 2`: GPT-NeoX and Hugging Face order.
    Halves,
}

/// How frequencies are changed, so that a model reads further than it was trained to.
///
/// A frequency turns by `f` radians a position; before any change pair `i` of `n_rot / 2` has `f = base^(-2i / n_rot)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Scaling {
    /// As they are.
    #[default]
    None,
    /// Position interpolation (Chen et al., arXiv:2306.15595): every frequency is divided by `factor`.
    Linear {
        /// How much further.
        factor: f32,
    },
    /// Llama 3.1: frequencies of wavelengths above `original / low` are divided by `factor`, those below `original / high`
    /// stay, and between them the two are mixed, linearly in `original / wavelength`.
    Llama3 {
        /// How much further.
        factor: f32,
        /// `low_freq_factor`.
        low: f32,
        /// `high_freq_factor`, above `low`.
        high: f32,
        /// Positions of training.
        original: f32,
    },
    /// YaRN (Peng et al., arXiv:2309.00071): pairs that turn `fast` times or more over `original` positions stay, those that
    /// turn at most `slow` times are divided by `factor`, and between them the two are mixed, linearly in the pair's
    /// index. Cosines and sines are multiplied by `magnitude`.
    Yarn {
        /// How much further.
        factor: f32,
        /// `beta_fast`, usually 32.
        fast: f32,
        /// `beta_slow`, usually 1.
        slow: f32,
        /// Positions of training.
        original: f32,
        /// Whether the two bounds are rounded outwards to whole pairs.
        truncate: bool,
        /// `attention_factor`, usually `0.1 ln(factor) + 1`.
        magnitude: f32,
    },
}

impl Scaling {
    /// Radians a position of each of the `n_rot / 2` pairs.
    fn frequencies(&self, n_rot: usize, base: f64) -> Vec<f64> {
        let plain = |i: usize| base.powf(-2.0 * i as f64 / n_rot as f64);
        let pairs = 0..n_rot / 2;
        match *self {
            Scaling::None => pairs.map(plain).collect(),
            Scaling::Linear { factor } => pairs.map(|i| plain(i) / f64::from(factor)).collect(),
            Scaling::Llama3 { factor, low, high, original } => {
                let [factor, low, high, original] = [factor, low, high, original].map(f64::from);
                let mixed = |f: f64| {
                    let turns = original * f / (2.0 * PI);
                    let kept = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                    f * kept + f / factor * (1.0 - kept)
                };
                pairs.map(plain).map(mixed).collect()
            }
            Scaling::Yarn { factor, fast, slow, original, truncate, .. } => {
                let [factor, fast, slow, original] = [factor, fast, slow, original].map(f64::from);
                // The pair, as a real number, that turns so many times over the positions of training.
                let pair =
                    |turns: f64| n_rot as f64 * (original / (turns * 2.0 * PI)).ln() / (2.0 * base.ln());
                let (mut first, mut last) = (pair(fast), pair(slow));
                if truncate {
                    (first, last) = (first.floor(), last.ceil());
                }
                first = first.max(0.0);
                last = last.min(n_rot as f64 - 1.0);
                let width = if last == first { 1e-3 } else { last - first };
                let mixed = |i: usize| {
                    let scaled = ((i as f64 - first) / width).clamp(0.0, 1.0);
                    plain(i) / factor * scaled + plain(i) * (1.0 - scaled)
                };
                pairs.map(mixed).collect()
            }
        }
    }

    /// What cosines and sines are multiplied by.
    fn magnitude(&self) -> f64 {
        match *self {
            Scaling::Yarn { magnitude, .. } => magnitude.into(),
            _ => 1.0,
        }
    }
}

/// Cosines and sines for positions `0..positions`, computed in f64 once and rounded to f32.
#[derive(Clone, Debug)]
pub struct RopeTable {
    pairs: usize,
    positions: usize,
    /// `[position][pair]` of (cos, sin).
    angles: Vec<(f32, f32)>,
}

impl RopeTable {
    /// A table for heads whose first `n_rot` values (an even number) are rotated: pair `i` at position `p` turns by
    /// `p * f[i] / factors[i]` radians, where `f` are the frequencies of `base` as `scaling` changes them. `factors` has
    /// `n_rot / 2` values; `None` means all ones.
    ///
    /// # Errors
    /// When `n_rot` is odd or there are not as many factors as pairs.
    pub fn new(
        n_rot: usize,
        base: f32,
        scaling: &Scaling,
        factors: Option<&[f32]>,
        positions: usize,
    ) -> Result<Self, ShapeError> {
        let pairs = n_rot / 2;
        same("rope", "number of rotated values", 2 * pairs, n_rot)?;
        same("rope", "number of frequency factors", pairs, factors.map_or(pairs, <[f32]>::len))?;
        let mut frequencies = scaling.frequencies(n_rot, base.into());
        for (frequency, factor) in frequencies.iter_mut().zip(factors.unwrap_or_default()) {
            *frequency /= f64::from(*factor);
        }
        let magnitude = scaling.magnitude();
        let angles = (0..positions)
            .flat_map(|p| {
                frequencies.iter().map(move |f| {
                    let (sin, cos) = (p as f64 * f).sin_cos();
                    ((cos * magnitude) as f32, (sin * magnitude) as f32)
                })
            })
            .collect();
        Ok(RopeTable { pairs, positions, angles })
    }

    /// Positions the table covers.
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// Rotates every head of one row in place: `x` is `[heads][head_dim]`.
    ///
    /// # Errors
    /// When `position` is beyond the table, heads are shorter than what is rotated, or `x` is no whole number of heads.
    pub fn apply(
        &self,
        pairing: Pairing,
        x: &mut [f32],
        head_dim: usize,
        position: usize,
    ) -> Result<(), ShapeError> {
        let fail = |what, want, got| Err(ShapeError { op: "rope", what, want, got });
        if position >= self.positions {
            return fail("number of positions in the table", position + 1, self.positions);
        }
        if head_dim < 2 * self.pairs {
            return fail("head size", 2 * self.pairs, head_dim);
        }
        same("rope", "number of values", x.len() / head_dim.max(1) * head_dim, x.len())?;
        let angles = &self.angles[position * self.pairs..][..self.pairs];
        for head in x.chunks_exact_mut(head_dim.max(1)) {
            let head = &mut head[..2 * self.pairs];
            match pairing {
                Pairing::Interleaved => {
                    for (pair, angle) in head.as_chunks_mut::<2>().0.iter_mut().zip(angles) {
                        *pair = rotate(*pair, *angle);
                    }
                }
                Pairing::Halves => {
                    let (a, b) = head.split_at_mut(self.pairs);
                    for ((a, b), angle) in a.iter_mut().zip(b).zip(angles) {
                        [*a, *b] = rotate([*a, *b], *angle);
                    }
                }
            }
        }
        Ok(())
    }
}

#[inline(always)]
fn rotate([a, b]: [f32; 2], (cos, sin): (f32, f32)) -> [f32; 2] {
    [a * cos - b * sin, a * sin + b * cos]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_zero_changes_nothing_and_lengths_are_kept() {
        let table = RopeTable::new(8, 10_000.0, &Scaling::None, None, 100).unwrap();
        for pairing in [Pairing::Interleaved, Pairing::Halves] {
            let start: Vec<f32> = (0..20).map(|i| i as f32 - 7.5).collect();
            let mut x = start.clone();
            table.apply(pairing, &mut x, 10, 0).unwrap();
            assert_eq!(x, start);
            table.apply(pairing, &mut x, 10, 99).unwrap();
            let norm = |x: &[f32]| x.iter().map(|v| v * v).sum::<f32>();
            for (head, before) in x.chunks(10).zip(start.chunks(10)) {
                assert_ne!(head[..8], before[..8]);
                assert_eq!(head[8..], before[8..], "beyond n_rot");
                assert!((norm(head) - norm(before)).abs() < 1e-3);
            }
        }
    }

    #[test]
    fn scores_depend_on_the_distance_alone_and_pairings_are_a_permutation() {
        let table = RopeTable::new(4, 100.0, &Scaling::None, Some(&[1.0, 4.0]), 50).unwrap();
        let (q, k) = ([1.0f32, 2.0, -0.5, 0.25], [0.3f32, -1.0, 0.7, 2.0]);
        let score = |pairing, pq, pk| {
            let (mut q, mut k) = (q, k);
            table.apply(pairing, &mut q, 4, pq).unwrap();
            table.apply(pairing, &mut k, 4, pk).unwrap();
            q.iter().zip(&k).map(|(a, b)| a * b).sum::<f32>()
        };
        for pairing in [Pairing::Interleaved, Pairing::Halves] {
            assert!((score(pairing, 7, 3) - score(pairing, 44, 40)).abs() < 1e-5);
        }
        let (mut a, mut b) = ([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0]);
        table.apply(Pairing::Interleaved, &mut a, 4, 9).unwrap();
        table.apply(Pairing::Halves, &mut b, 4, 9).unwrap();
        assert_eq!(a, [b[0], b[2], b[1], b[3]]);
    }

    #[test]
    fn scalings_leave_fast_pairs_and_stretch_slow_ones() {
        let plain = Scaling::None.frequencies(64, 1e4);
        let linear = Scaling::Linear { factor: 4.0 }.frequencies(64, 1e4);
        assert!(plain.iter().zip(&linear).all(|(a, b)| *a == 4.0 * b));
        let llama3 = Scaling::Llama3 { factor: 8.0, low: 1.0, high: 4.0, original: 512.0 };
        let yarn = |truncate| Scaling::Yarn {
            factor: 8.0,
            fast: 32.0,
            slow: 1.0,
            original: 512.0,
            truncate,
            magnitude: 1.25,
        };
        for scaling in [llama3, yarn(true), yarn(false)] {
            let ratios: Vec<f64> =
                scaling.frequencies(64, 1e4).iter().zip(&plain).map(|(a, b)| b / a).collect();
            assert!((ratios[0] - 1.0).abs() < 1e-12 && (ratios[31] - 8.0).abs() < 1e-9, "{ratios:?}");
            assert!(ratios.windows(2).all(|w| w[0] <= w[1] + 1e-12), "{ratios:?}");
            assert!(ratios.iter().filter(|r| (1.01..7.99).contains(*r)).count() > 3, "{ratios:?}");
        }
        // 512 positions are 4 wavelengths of 128 and one of 512: there the mixing begins and ends.
        let wavelength = |i: usize| 2.0 * PI / plain[i];
        let changed = llama3.frequencies(64, 1e4);
        for i in 0..32 {
            assert_eq!(wavelength(i) <= 128.0, (changed[i] - plain[i]).abs() < 1e-12, "pair {i}");
        }
        let table = RopeTable::new(64, 1e4, &yarn(true), None, 2).unwrap();
        assert_eq!(table.angles[5], (1.25, 0.0));
    }

    #[test]
    fn refuses_what_does_not_fit() {
        assert!(RopeTable::new(5, 1e4, &Scaling::None, None, 1).is_err());
        assert!(RopeTable::new(4, 1e4, &Scaling::None, Some(&[1.0]), 1).is_err());
        let table = RopeTable::new(4, 1e4, &Scaling::None, None, 2).unwrap();
        assert!(table.apply(Pairing::Halves, &mut [0.0; 4], 4, 2).is_err());
        assert!(table.apply(Pairing::Halves, &mut [0.0; 3], 3, 0).is_err());
        assert!(table.apply(Pairing::Halves, &mut [0.0; 5], 4, 0).is_err());
    }
}
