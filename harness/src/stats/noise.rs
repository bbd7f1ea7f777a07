//! How much an arm differs from itself.

use super::{median, signed_rank::walsh_averages, standard_deviation};

/// Differences below this are never called.
pub const MIN_FLOOR: f64 = 0.005;

/// Least margin against which a candidate is judged.
pub const MIN_MARGIN: f64 = 0.01;

/// Where noise would ask for a larger margin than this, and the user did not, a cell cannot be judged: a gate that lets
/// everything pass on a noisy machine is worse than none.
pub const MAX_MARGIN: f64 = 0.1;

/// The noise of a cell, from the log-ratios of an arm against itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Standard deviation of the pairs' log-ratios.
    pub pair_sd: f64,
    /// Coefficient of variation of runs within a pair: `pair_sd` / √2. Drift between pairs is not in it, as it is not
    /// in the comparison.
    pub run_cv: f64,
    /// 95 % quantile of the absolute estimate when the arms are the same.
    pub q95: f64,
}

impl Noise {
    /// From the log-ratios of at least two pairs. The quantile is that of the estimate over all ways to swap the two
    /// runs of each pair, which are equally likely when the arms are the same (of more than ten pairs, its normal limit).
    pub fn of(log_ratios: &[f64]) -> Option<Noise> {
        let pair_sd = standard_deviation(log_ratios).filter(|sd| sd.is_finite())?;
        let q95 = if log_ratios.len() <= ENUMERATED {
            let mut estimates: Vec<f64> = (0..1_u32 << log_ratios.len())
                .filter_map(|swaps| median(&walsh_averages(&swap(log_ratios, swaps))).map(f64::abs))
                .collect();
            estimates.sort_by(f64::total_cmp);
            estimates[(0.95 * estimates.len() as f64).ceil() as usize - 1]
        } else {
            // Of many normal values the estimate is normal, with 3/π of the mean's efficiency.
            1.96 * pair_sd * (std::f64::consts::FRAC_PI_3 / log_ratios.len() as f64).sqrt()
        };
        Some(Noise { pair_sd, run_cv: pair_sd / std::f64::consts::SQRT_2, q95 })
    }
}

/// Up to this many pairs, every way to swap their runs is tried.
const ENUMERATED: usize = 10;

fn swap(log_ratios: &[f64], swaps: u32) -> Vec<f64> {
    log_ratios.iter().enumerate().map(|(i, d)| if swaps >> i & 1 == 1 { -d } else { *d }).collect()
}

/// Practical floor of a cell, as a ratio.
pub fn floor(noise: &Noise) -> f64 {
    noise.q95.exp_m1().max(MIN_FLOOR)
}

/// Margin of a cell: the one asked for, one percent, or twice its run-to-run variation, whichever is largest.
pub fn margin(asked: f64, noise: &Noise) -> f64 {
    asked.max(MIN_MARGIN).max(2.0 * noise.run_cv)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Rng;

    #[test]
    fn noise_is_measured_and_bounds_are_kept() {
        let mut rng = Rng::new(7);
        let d: Vec<f64> = (0..400).map(|_| 0.01 * rng.normal()).collect();
        let noise = Noise::of(&d).unwrap();
        assert!((noise.pair_sd / 0.01 - 1.0).abs() < 0.1, "{noise:?}");
        assert!((noise.run_cv * 2.0_f64.sqrt() - noise.pair_sd).abs() < 1e-12);
        assert!(noise.q95 < 0.002, "{noise:?}");
        assert_eq!((floor(&noise), margin(0.0, &noise)), (MIN_FLOOR, 2.0 * noise.run_cv));
        assert_eq!(margin(0.05, &noise), 0.05);
        let still = Noise::of(&[0.0; 6]).unwrap();
        assert_eq!((floor(&still), margin(0.0, &still)), (MIN_FLOOR, MIN_MARGIN));
        let (exact, limit) = (Noise::of(&d[..10]).unwrap(), Noise::of(&d[..11]).unwrap());
        assert!(
            (exact.q95 / exact.pair_sd / (limit.q95 / limit.pair_sd) - 1.0).abs() < 0.2,
            "{exact:?} {limit:?}"
        );
        assert_eq!((Noise::of(&[]), Noise::of(&[0.1]), Noise::of(&[0.1, f64::NAN])), (None, None, None));
    }

    #[test]
    fn the_quantile_does_not_depend_on_which_run_of_a_pair_came_first() {
        let d = [0.01, 0.02, -0.005, 0.03, 0.002, 0.011];
        let mirrored: Vec<f64> =
            d.iter().enumerate().map(|(i, v)| if i % 2 == 0 { -v } else { *v }).collect();
        assert_eq!(Noise::of(&d).unwrap().q95, Noise::of(&mirrored).unwrap().q95);
        // Of 64 patterns the three largest are left out: two are the extremes, all runs falling one way.
        assert!(Noise::of(&d).unwrap().q95 <= 0.0155);
    }
}
