//! Statistics of paired runs.
//!
//! The unit is the process launch: a run is the median of its repetitions, a pair is two adjacent runs, one of each
//! arm, and everything is computed from the pairs' log-ratios. Speeds are compared as *slowdowns*: `ln(rate of the other
//! arm / rate of the candidate)`, so that above zero the candidate is slower, whatever the metric's own direction is.

mod decide;
mod design;
mod noise;
mod rng;
mod signed_rank;

pub use decide::{Decision, agreeing, blocks_agree, judge, slowdown};
pub use design::{LOOKS, QUICK, minimum_detectable_effect};
pub use noise::{MAX_MARGIN, MIN_FLOOR, MIN_MARGIN, Noise, floor, margin};
pub use rng::Rng;
pub use signed_rank::{Estimate, coverage, estimate, rank_for};

/// Median; the mean of the two middle values of an even number. `None` of nothing or of a NaN.
pub fn median(values: &[f64]) -> Option<f64> {
    if values.is_empty() || values.iter().any(|v| v.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    Some(if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 })
}

/// Standard deviation of a sample (divisor n − 1). `None` of fewer than two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    Some((values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_deviations() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!((median(&[]), median(&[1.0, f64::NAN])), (None, None));
        assert_eq!(standard_deviation(&[1.0, 3.0]), Some(2.0_f64.sqrt()));
        assert_eq!(standard_deviation(&[1.0]), None);
    }
}

#[cfg(test)]
mod simulations;
