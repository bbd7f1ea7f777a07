//! Root-mean-square normalisation.

use crate::cpu::multiversion;
use crate::error::{ShapeError, same};

/// Partial sums of a row: value `i` goes to sum `i % LANES`.
const LANES: usize = 16;

/// `out[i] = x[i] / sqrt(mean(x²) + eps) * weight[i]` for each row of `weight.len()` values; `x` and `out` hold the same
/// number of rows. A norm of each head by one weight is the same on `[rows * heads][head_dim]`.
///
/// Squares are added in sixteen interleaved f32 sums, these in f64 in order; so a row's bits depend on nothing else.
///
/// # Errors
/// When `x` is no whole number of rows or `out` is of another length.
pub fn rms_norm(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) -> Result<(), ShapeError> {
    same("rms_norm", "number of outputs", x.len(), out.len())?;
    let rows = x.len().checked_div(weight.len()).unwrap_or(0);
    same("rms_norm", "number of inputs", rows * weight.len(), x.len())?;
    rows_of(x, weight, eps, out);
    Ok(())
}

multiversion! {
    fn rows_of(x: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
        let k = weight.len().max(1);
        for (x, out) in x.chunks_exact(k).zip(out.chunks_exact_mut(k)) {
            let mut sums = [0f32; LANES];
            let (blocks, tail) = x.as_chunks::<LANES>();
            for block in blocks {
                for (sum, v) in sums.iter_mut().zip(block) {
                    *sum += v * v;
                }
            }
            for (sum, v) in sums.iter_mut().zip(tail) {
                *sum += v * v;
            }
            let total: f64 = sums.iter().map(|s| f64::from(*s)).sum();
            let mean = total / k as f64;
            let scale = (1.0 / (mean + f64::from(eps)).sqrt()) as f32;
            for ((out, x), w) in out.iter_mut().zip(x).zip(weight) {
                *out = x * scale * w;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::Random;

    #[test]
    fn matches_f64_for_any_length() {
        let mut random = Random::new(3);
        for k in [1, 7, 16, 33, 576] {
            let x: Vec<f32> = (0..2 * k).map(|_| random.uniform() * 5.0).collect();
            let weight: Vec<f32> = (0..k).map(|_| random.uniform()).collect();
            let mut out = vec![f32::NAN; 2 * k];
            rms_norm(&x, &weight, 1e-5, &mut out).unwrap();
            for (row, out) in x.chunks(k).zip(out.chunks(k)) {
                let mean = row.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / k as f64;
                for ((x, w), out) in row.iter().zip(&weight).zip(out) {
                    let want = f64::from(*x) / (mean + 1e-5).sqrt() * f64::from(*w);
                    assert!((f64::from(*out) - want).abs() <= 1e-6 * want.abs(), "k={k}: {out} {want}");
                }
            }
        }
    }

    #[test]
    fn refuses_partial_rows() {
        assert!(rms_norm(&[0.0; 5], &[1.0; 4], 1e-5, &mut [0.0; 5]).is_err());
        assert!(rms_norm(&[0.0; 8], &[1.0; 4], 1e-5, &mut [0.0; 4]).is_err());
    }
}
