//! The short causal convolution: each channel mixed with its own last few values.

#![allow(unsafe_code, reason = "threads share rows and states by blocks of channels")]

use super::disjoint::Disjoint;
use super::{SlotStep, check_slots};
use crate::cpu::{Pool, multiversion};
use crate::error::{ShapeError, same};
use crate::math::exp;

/// Channels in one unit of work.
const BLOCK: usize = 256;

/// Weights of a short convolution, one filter a channel.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvWeights {
    channels: usize,
    taps: usize,
    /// `[taps][channels]`, so that SIMD lanes are channels.
    values: Vec<f32>,
}

impl ConvWeights {
    /// From `weight`, `[channels][taps]` as files store it: the last tap multiplies the newest value.
    ///
    /// # Errors
    /// When there are no taps, or `weight` is of another size.
    pub fn new(weight: &[f32], channels: usize, taps: usize) -> Result<Self, ShapeError> {
        if taps == 0 {
            return Err(ShapeError { op: "short_conv", what: "number of taps", want: 1, got: 0 });
        }
        same("short_conv", "number of weights", channels.saturating_mul(taps), weight.len())?;
        let values = (0..taps).flat_map(|j| (0..channels).map(move |c| weight[c * taps + j])).collect();
        Ok(ConvWeights { channels, taps, values })
    }

    /// Channels.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// Values a state holds: the last `taps - 1` inputs of each channel, `[taps - 1][channels]`, oldest first.
    pub fn state_len(&self) -> usize {
        (self.taps - 1) * self.channels
    }
}

/// `out[t][c] = silu(Σ_j w[c][j] * x[t - (taps - 1) + j][c])`, with inputs before the rows of this launch taken from the
/// state, and `silu(x) = x / (1 + exp(-x))`. The sum is by fused multiply-add in increasing `j` from zero.
///
/// `x` and `out` are `[rows][channels]`, `steps` has one entry a row, `states` is a store of slots of
/// [`ConvWeights::state_len`] values.
///
/// # Errors
/// When a size does not fit the others, or a slot lies beyond the store; nothing has then been written.
pub fn short_conv(
    pool: &Pool,
    weights: &ConvWeights,
    steps: &[SlotStep],
    x: &[f32],
    states: &mut [f32],
    out: &mut [f32],
) -> Result<(), ShapeError> {
    const OP: &str = "short_conv";
    same(OP, "number of inputs", steps.len().saturating_mul(weights.channels), x.len())?;
    same(OP, "number of outputs", x.len(), out.len())?;
    if weights.state_len() > 0 {
        check_slots(OP, steps, weights.state_len(), states.len())?;
    }
    let job = Job { weights, steps, x, states: Disjoint::new(states), out: Disjoint::new(out) };
    pool.run(pool.threads(), weights.channels.div_ceil(BLOCK), &|block, _| channels_of(&job, block));
    Ok(())
}

struct Job<'a> {
    weights: &'a ConvWeights,
    steps: &'a [SlotStep],
    x: &'a [f32],
    states: Disjoint<'a>,
    out: Disjoint<'a>,
}

multiversion! {
    /// All rows of one block of channels.
    fn channels_of(job: &Job<'_>, block: usize) {
        let ConvWeights { channels, taps, ref values } = *job.weights;
        let past = taps - 1;
        let first = block * BLOCK;
        let len = BLOCK.min(channels - first);
        let state = |slot: u32, j: usize| (slot as usize * past + j) * channels + first;
        for (t, step) in job.steps.iter().enumerate() {
            let x = &job.x[t * channels + first..][..len];
            // SAFETY: this task alone has these channels of any row.
            let out = unsafe { job.out.part(t * channels + first, len) };
            out.fill(0.0);
            if let Some(from) = step.from {
                for j in 0..past {
                    // SAFETY: this task alone has these channels of any slot, and writes none while this lives.
                    let old = unsafe { job.states.read(state(from, j), len) };
                    multiply_add(out, &values[j * channels + first..][..len], old);
                }
            }
            multiply_add(out, &values[past * channels + first..][..len], x);
            for out in out.iter_mut() {
                *out /= 1.0 + exp(-*out);
            }
            for j in 0..past {
                // SAFETY: as above; value `j` of a slot and value `j + 1` of any slot are different memory.
                let new = unsafe { job.states.part(state(step.to, j), len) };
                match step.from {
                    _ if j + 1 == past => new.copy_from_slice(x),
                    // SAFETY: as above.
                    Some(from) => new.copy_from_slice(unsafe { job.states.read(state(from, j + 1), len) }),
                    None => new.fill(0.0),
                }
            }
        }
    }
}

#[inline(always)]
fn multiply_add(out: &mut [f32], a: &[f32], b: &[f32]) {
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = a.mul_add(*b, *out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::Random;

    fn values(random: &mut Random, n: usize) -> Vec<f32> {
        (0..n).map(|_| random.uniform()).collect()
    }

    const fn step(from: Option<u32>, to: u32) -> SlotStep {
        SlotStep { from, to }
    }

    #[test]
    fn matches_the_definition_in_f64() {
        let mut random = Random::new(4);
        let pool = Pool::new(3);
        for (channels, taps, rows) in [(1, 1, 3), (7, 2, 5), (600, 4, 9), (256, 3, 1)] {
            let (w, x) = (values(&mut random, channels * taps), values(&mut random, rows * channels));
            let weights = ConvWeights::new(&w, channels, taps).unwrap();
            let steps: Vec<SlotStep> = (0..rows).map(|t| step((t > 0).then_some(0), 0)).collect();
            let mut state = vec![f32::NAN; weights.state_len()];
            let mut out = vec![f32::NAN; x.len()];
            short_conv(&pool, &weights, &steps, &x, &mut state, &mut out).unwrap();
            for (i, out) in out.iter().enumerate() {
                let (t, c) = (i / channels, i % channels);
                let term = |j: usize| {
                    let from = (t + j + 1).checked_sub(taps)?;
                    Some(f64::from(w[c * taps + j]) * f64::from(x[from * channels + c]))
                };
                let sum: f64 = (0..taps).filter_map(term).sum();
                let want = sum / (1.0 + (-sum).exp());
                assert!((f64::from(*out) - want).abs() < 2e-6, "{channels} {taps} row {t}: {out} {want}");
            }
        }
    }

    #[test]
    fn steps_rows_and_threads_give_the_same_bits_and_old_slots_survive() {
        let (channels, taps, rows) = (300, 4, 12);
        let mut random = Random::new(8);
        let weights = ConvWeights::new(&values(&mut random, channels * taps), channels, taps).unwrap();
        let x = values(&mut random, rows * channels);
        let each = weights.state_len();
        let whole = {
            let (mut state, mut out) = (vec![0.0; each], vec![0.0; x.len()]);
            let steps: Vec<SlotStep> = (0..rows).map(|t| step((t > 0).then_some(0), 0)).collect();
            short_conv(&Pool::new(1), &weights, &steps, &x, &mut state, &mut out).unwrap();
            (state, out)
        };
        // Row `t` continues slot `t - 1` and leaves slot `t`; a stranger's row stands between.
        let mut states = vec![f32::NAN; (rows + 1) * each];
        let mut out = vec![0.0; x.len()];
        for t in 0..rows {
            let from = t.checked_sub(1).map(|slot| slot as u32);
            let before = states[..t * each].to_vec();
            let (mine, other) = (step(from, t as u32), step(None, rows as u32));
            let row = &x[t * channels..][..channels];
            let both = [row, &x[..channels]].concat();
            let mut results = vec![0.0; 2 * channels];
            let pool = Pool::new(1 + t % 4);
            short_conv(&pool, &weights, &[mine, other], &both, &mut states, &mut results).unwrap();
            out[t * channels..][..channels].copy_from_slice(&results[..channels]);
            assert_eq!(states[..t * each], before, "an earlier state changed");
        }
        assert_eq!(out, whole.1);
        assert_eq!(states[(rows - 1) * each..rows * each], whole.0);
    }

    #[test]
    fn sizes_that_do_not_fit_are_errors() {
        assert!(ConvWeights::new(&[], 4, 0).is_err());
        assert!(ConvWeights::new(&[0.0; 7], 4, 2).is_err());
        let weights = ConvWeights::new(&[0.0; 8], 4, 2).unwrap();
        let pool = Pool::new(1);
        let run = |steps: &[SlotStep], x: usize, states: usize, out: usize| {
            short_conv(&pool, &weights, steps, &vec![0.0; x], &mut vec![0.0; states], &mut vec![0.0; out])
        };
        assert!(run(&[step(None, 0)], 4, 4, 4).is_ok());
        assert!(run(&[step(None, 1)], 4, 4, 4).is_err());
        assert!(run(&[step(Some(1), 0)], 4, 4, 4).is_err());
        assert!(run(&[step(None, 0)], 3, 4, 3).is_err());
        assert!(run(&[step(None, 0)], 4, 4, 3).is_err());
    }
}
