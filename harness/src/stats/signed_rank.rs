//! The Hodges–Lehmann estimate of a median and its exact interval, by inverting Wilcoxon's signed-rank test.
//!
//! The Walsh averages of n values are the n(n + 1)/2 means of all pairs, each value with itself included. Sorted, their
//! median estimates the centre, and `[w_k, w_(m-1-k)]` holds it with a probability that depends on n and k only, for any
//! continuous symmetric distribution: one minus twice the chance that the signed-rank sum is at most k.

use super::median;

/// A centre and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The Hodges–Lehmann estimate.
    pub centre: f64,
    /// Lower end.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
    /// Exact confidence of the interval.
    pub conf: f64,
}

/// Estimates the centre of `values` with an interval of at least confidence `conf`, the narrowest that exists.
/// `None` when there are too few values for that confidence, or one is not finite.
pub fn estimate(values: &[f64], conf: f64) -> Option<Estimate> {
    if values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let k = rank_for(values.len(), conf)?;
    let walsh = walsh_averages(values);
    Some(Estimate {
        centre: median(&walsh)?,
        lo: walsh[k],
        hi: walsh[walsh.len() - 1 - k],
        conf: coverage(values.len(), k),
    })
}

/// Walsh averages in increasing order.
pub(super) fn walsh_averages(values: &[f64]) -> Vec<f64> {
    let mut walsh = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (i, a) in values.iter().enumerate() {
        walsh.extend(values[i..].iter().map(|b| (a + b) / 2.0));
    }
    walsh.sort_by(f64::total_cmp);
    walsh
}

/// Coverage of the interval that leaves out `k` Walsh averages at each end, for `n` values.
pub fn coverage(n: usize, k: usize) -> f64 {
    1.0 - 2.0 * lower_tail(n, k)
}

/// The largest `k` whose interval still covers at least `conf`; `None` when even the widest does not.
pub fn rank_for(n: usize, conf: f64) -> Option<usize> {
    let distribution = rank_sum_distribution(n);
    let mut tail = 0.0;
    let mut found = None;
    for (k, p) in distribution.iter().enumerate() {
        tail += p;
        if n == 0 || 1.0 - 2.0 * tail < conf {
            break;
        }
        found = Some(k);
    }
    found
}

fn lower_tail(n: usize, k: usize) -> f64 {
    rank_sum_distribution(n).iter().take(k + 1).sum()
}

/// Probability of each value of the signed-rank sum: each rank 1..=n counts or not, evenly.
fn rank_sum_distribution(n: usize) -> Vec<f64> {
    let mut p = vec![1.0];
    for rank in 1..=n {
        let mut next = vec![0.0; p.len() + rank];
        for (sum, q) in p.iter().enumerate() {
            next[sum] += q / 2.0;
            next[sum + rank] += q / 2.0;
        }
        p = next;
    }
    p
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_and_coverages_are_those_of_the_published_tables() {
        for (n, k, percent) in [
            (5, 0, 93.75),
            (6, 0, 96.9),
            (7, 2, 95.3),
            (8, 3, 96.1),
            (10, 8, 95.1),
            (12, 13, 95.8),
            (15, 25, 95.2),
            (20, 52, 95.2),
        ] {
            let exact = 100.0 * coverage(n, k);
            assert!((exact - percent).abs() < 0.06, "n={n} k={k}: {exact}");
            if n > 5 {
                assert_eq!(rank_for(n, 0.95), Some(k), "n={n}");
            }
        }
        assert_eq!(rank_for(5, 0.95), None, "five pairs cannot reach 95 %");
        assert_eq!(rank_for(5, 0.93), Some(0));
        assert_eq!((rank_for(0, 0.5), rank_for(1, 0.5)), (None, None));
    }

    #[test]
    fn five_values_give_their_range() {
        let got = estimate(&[0.3, -0.1, 0.2, 0.0, 0.1], 0.9).unwrap();
        assert_eq!((got.lo, got.hi, got.conf), (-0.1, 0.3, 0.9375));
        assert!((got.centre - 0.1).abs() < 1e-12);
    }

    #[test]
    fn the_estimate_is_equivariant_and_shrugs_off_one_outlier() {
        let values = [0.01, 0.012, 0.009, 0.011, 0.0105, 0.0095, 0.0102, 0.9];
        let got = estimate(&values, 0.95).unwrap();
        assert!((got.centre - 0.0105).abs() < 0.001, "{got:?}");
        let mirrored: Vec<f64> = values.iter().map(|v| -v).collect();
        let back = estimate(&mirrored, 0.95).unwrap();
        assert_eq!((back.centre, back.lo, back.hi), (-got.centre, -got.hi, -got.lo));
    }

    #[test]
    fn what_cannot_be_estimated_is_none() {
        assert_eq!(estimate(&[], 0.5), None);
        assert_eq!(estimate(&[1.0; 5], 0.95), None);
        assert_eq!(estimate(&[1.0, 1.0, f64::NAN, 1.0, 1.0, 1.0], 0.5), None);
        let tied = estimate(&[1.0; 6], 0.95).unwrap();
        assert_eq!((tied.lo, tied.centre, tied.hi), (1.0, 1.0, 1.0));
    }
}
