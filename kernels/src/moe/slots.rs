//! Rows to slots, and slots back to rows.

use super::Routes;
use crate::cpu::{Pool, multiversion};
use crate::error::{ShapeError, same};

/// Values from which a copy is worth handing to other threads.
const PART: usize = 32 * 1024;

/// Copies each slot's row: `out[slot] = x[row of slot]`. `x` is `[rows][width]`, `out` is `[slots][width]`.
///
/// # Errors
/// When a size does not fit the others.
pub fn gather_slots(pool: &Pool, routes: &Routes, x: &[f32], out: &mut [f32]) -> Result<(), ShapeError> {
    const OP: &str = "gather_slots";
    let width = x.len().checked_div(routes.rows()).unwrap_or(0);
    same(OP, "number of inputs", width * routes.rows(), x.len())?;
    same(OP, "number of outputs", width * routes.slots(), out.len())?;
    let rows = PART.div_ceil(width.max(1));
    pool.chunks_mut(pool.threads(), out, rows * width, &|part, out| {
        let sources = &routes.sources()[part * rows..];
        for (out, source) in out.chunks_exact_mut(width.max(1)).zip(sources) {
            out.copy_from_slice(&x[*source as usize * width..][..width]);
        }
    });
    Ok(())
}

/// Adds up each row's slots: `out[row] = Σ_j weight[row][j] * x[slot of (row, j)]`, by fused multiply-add from zero in
/// increasing order of experts. `x` is `[slots][width]`, `out` is `[rows][width]`.
///
/// # Errors
/// When a size does not fit the others.
pub fn combine(pool: &Pool, routes: &Routes, x: &[f32], out: &mut [f32]) -> Result<(), ShapeError> {
    const OP: &str = "combine";
    let width = out.len().checked_div(routes.rows()).unwrap_or(0);
    same(OP, "number of outputs", width * routes.rows(), out.len())?;
    same(OP, "number of inputs", width * routes.slots(), x.len())?;
    let rows = PART.div_ceil(width.max(1) * routes.used().max(1));
    pool.chunks_mut(pool.threads(), out, rows * width, &|part, out| {
        for (i, out) in out.chunks_exact_mut(width.max(1)).enumerate() {
            out.fill(0.0);
            for (place, weight) in routes.places(part * rows + i) {
                add_scaled(out, weight, &x[place * width..][..width]);
            }
        }
    });
    Ok(())
}

multiversion! {
    fn add_scaled(out: &mut [f32], factor: f32, x: &[f32]) {
        for (out, x) in out.iter_mut().zip(x) {
            *out = factor.mul_add(*x, *out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moe::{Router, Scoring, route};
    use crate::testdata::Random;

    const ROUTER: Router = Router { scoring: Scoring::Softmax, renormalise: true, scale: 1.0 };

    fn routes(random: &mut Random, rows: usize, used: usize, experts: usize) -> Routes {
        let logits: Vec<f32> = (0..rows * experts).map(|_| random.uniform()).collect();
        let mut routes = Routes::with_capacity(rows, used, experts);
        route(&ROUTER, &logits, None, &mut routes).unwrap();
        routes
    }

    #[test]
    fn what_is_gathered_and_combined_is_the_row_times_the_sum_of_its_weights() {
        let mut random = Random::new(2);
        for (rows, width, threads) in [(1, 7, 1), (40, 3000, 3), (5, 1, 8)] {
            let routes = routes(&mut random, rows, 3, 10);
            let pool = Pool::new(threads);
            let x: Vec<f32> = (0..rows * width).map(|_| random.uniform()).collect();
            let mut slots = vec![f32::NAN; 3 * rows * width];
            gather_slots(&pool, &routes, &x, &mut slots).unwrap();
            for (slot, source) in slots.chunks(width).zip(routes.sources()) {
                assert_eq!(slot, &x[*source as usize * width..][..width]);
            }
            let mut out = vec![f32::NAN; rows * width];
            combine(&pool, &routes, &slots, &mut out).unwrap();
            for (i, (out, x)) in out.iter().zip(&x).enumerate() {
                let want = routes.row(i / width).fold(0f32, |sum, (_, w)| w.mul_add(*x, sum));
                assert_eq!(*out, want);
                assert!((want - x).abs() < 1e-6, "weights of a row add up to one");
            }
        }
    }

    #[test]
    fn sizes_that_do_not_fit_are_errors() {
        let routes = routes(&mut Random::new(1), 2, 2, 4);
        let pool = Pool::new(1);
        assert!(gather_slots(&pool, &routes, &[0.0; 6], &mut [0.0; 12]).is_ok());
        assert!(gather_slots(&pool, &routes, &[0.0; 5], &mut [0.0; 12]).is_err());
        assert!(gather_slots(&pool, &routes, &[0.0; 6], &mut [0.0; 11]).is_err());
        assert!(combine(&pool, &routes, &[0.0; 12], &mut [0.0; 6]).is_ok());
        assert!(combine(&pool, &routes, &[0.0; 12], &mut [0.0; 5]).is_err());
        assert!(combine(&pool, &routes, &[0.0; 10], &mut [0.0; 6]).is_err());
    }
}
