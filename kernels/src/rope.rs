//! Rotary position embedding.

use crate::error::{ShapeError, same};

/// Which two values of a head make a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// `2i` and `2i + 1`: the order of llama weights in GGUF files.
    Interleaved,
    /// `i` and `i + n_rot / 2`: GPT-NeoX and Hugging Face order.
    Halves,
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
    /// `p * base^(-2i / n_rot) / factors[i]` radians. `factors` has `n_rot / 2` values; `None` means all ones.
    ///
    /// # Errors
    /// When `n_rot` is odd or there are not as many factors as pairs.
    pub fn new(
        n_rot: usize,
        base: f32,
        factors: Option<&[f32]>,
        positions: usize,
    ) -> Result<Self, ShapeError> {
        let pairs = n_rot / 2;
        same("rope", "number of rotated values", 2 * pairs, n_rot)?;
        same("rope", "number of frequency factors", pairs, factors.map_or(pairs, <[f32]>::len))?;
        let frequency = |i: usize| {
            let f = f64::from(base).powf(-2.0 * i as f64 / n_rot as f64);
            f / factors.map_or(1.0, |factors| f64::from(factors[i]))
        };
        let frequencies: Vec<f64> = (0..pairs).map(frequency).collect();
        let angles = (0..positions)
            .flat_map(|p| {
                frequencies.iter().map(move |f| {
                    let (sin, cos) = (p as f64 * f).sin_cos();
                    (cos as f32, sin as f32)
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
        let table = RopeTable::new(8, 10_000.0, None, 100).unwrap();
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
        let table = RopeTable::new(4, 100.0, Some(&[1.0, 4.0]), 50).unwrap();
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
    fn refuses_what_does_not_fit() {
        assert!(RopeTable::new(5, 1e4, None, 1).is_err());
        assert!(RopeTable::new(4, 1e4, Some(&[1.0]), 1).is_err());
        let table = RopeTable::new(4, 1e4, None, 2).unwrap();
        assert!(table.apply(Pairing::Halves, &mut [0.0; 4], 4, 2).is_err());
        assert!(table.apply(Pairing::Halves, &mut [0.0; 3], 3, 0).is_err());
        assert!(table.apply(Pairing::Halves, &mut [0.0; 5], 4, 0).is_err());
    }
}
