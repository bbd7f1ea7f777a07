//! The verdict on a candidate, from the slowdowns of its pairs.

use super::signed_rank::{Estimate, estimate};
use crate::record::{Judgement, Label};

/// `ln(other / candidate)` of two rates: above zero, the candidate is slower. `None` unless both are positive.
pub fn slowdown(candidate_rate: f64, other_rate: f64) -> Option<f64> {
    (candidate_rate > 0.0 && other_rate > 0.0)
        .then(|| (other_rate / candidate_rate).ln())
        .filter(|d| d.is_finite())
}

/// What the pairs say at one look.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Slowdown of the candidate.
    pub estimate: Estimate,
    /// Pass, regressed, or inconclusive.
    pub judgement: Judgement,
    /// How it passed.
    pub label: Option<Label>,
    /// Why, in words.
    pub reason: String,
}

/// Judges a candidate by the slowdowns of its pairs, in order of measurement, against a margin and a floor (ratios:
/// 0.01 is 1 %). `None` when there are too few pairs for the confidence.
///
/// In this order: the interval below the margin is a pass; the interval above zero with the estimate above the floor is
/// a regression; anything else is not decided.
pub fn judge(slowdowns: &[f64], conf: f64, margin: f64, floor: f64) -> Option<Decision> {
    let estimate = estimate(slowdowns, conf)?;
    let Estimate { centre, lo, hi, .. } = estimate;
    let (m, f) = (margin.ln_1p(), floor.ln_1p());
    let percent = |ratio: f64| format!("{:.1} %", 100.0 * ratio);
    let decision = |judgement, label, reason| Some(Decision { estimate, judgement, label, reason });
    if hi < m {
        let (label, reason) = if hi < 0.0 && centre < -f && blocks_agree(slowdowns, centre) {
            (
                Label::Improved,
                format!("faster beyond the floor of {}, and every block agrees", percent(floor)),
            )
        } else if lo > 0.0 {
            (Label::SlowerWithinMargin, format!("slower, by less than the margin of {}", percent(margin)))
        } else if lo > -m {
            (Label::Equivalent, format!("no difference of {} either way", percent(margin)))
        } else {
            (Label::NotSlower, format!("not slower by the margin of {}", percent(margin)))
        };
        return decision(Judgement::Pass, Some(label), reason);
    }
    if lo > 0.0 && centre > f {
        return decision(
            Judgement::Regressed,
            None,
            format!("slower beyond the floor of {}", percent(floor)),
        );
    }
    let why = format!("the interval neither clears the margin of {} nor zero", percent(margin));
    decision(Judgement::Inconclusive, None, why)
}

/// Whether the mean of every whole ABBA block (two pairs) has the sign of `centre`.
pub fn blocks_agree(slowdowns: &[f64], centre: f64) -> bool {
    slowdowns.chunks_exact(2).all(|block| (block[0] + block[1]) * centre > 0.0)
}

/// Number of pairs with the sign of `centre`.
pub fn agreeing(slowdowns: &[f64], centre: f64) -> usize {
    slowdowns.iter().filter(|d| **d * centre > 0.0).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six pairs around a slowdown, with a little symmetric noise.
    fn around(centre: f64) -> Vec<f64> {
        [-0.002, 0.002, 0.001, -0.001, 0.0015, -0.0015].iter().map(|e| centre + e).collect()
    }

    fn verdict(centre: f64) -> (Judgement, Option<Label>) {
        let decision = judge(&around(centre), 0.968, 0.01, 0.005).unwrap();
        (decision.judgement, decision.label)
    }

    #[test]
    fn each_branch_in_order() {
        assert_eq!(verdict(-0.05), (Judgement::Pass, Some(Label::Improved)));
        assert_eq!(verdict(-0.009), (Judgement::Pass, Some(Label::Improved)));
        assert_eq!(verdict(0.0), (Judgement::Pass, Some(Label::Equivalent)));
        assert_eq!(verdict(0.004), (Judgement::Pass, Some(Label::SlowerWithinMargin)));
        assert_eq!(verdict(0.0095), (Judgement::Regressed, None));
        assert_eq!(verdict(0.03), (Judgement::Regressed, None));
        let wide: Vec<f64> = around(0.0).iter().map(|d| d * 20.0).collect();
        assert_eq!(judge(&wide, 0.968, 0.01, 0.005).unwrap().judgement, Judgement::Inconclusive);
        let lopsided: Vec<f64> = around(0.0).iter().map(|d| d * 11.0 - 0.005).collect();
        assert_eq!(judge(&lopsided, 0.968, 0.02, 0.005).unwrap().label, Some(Label::NotSlower));
        assert_eq!(judge(&around(0.0)[..5], 0.968, 0.01, 0.005), None);
    }

    #[test]
    fn one_block_against_the_others_is_no_improvement() {
        let mut d = around(-0.02);
        (d[2], d[3]) = (0.004, -0.003);
        let decision = judge(&d, 0.968, 0.01, 0.005).unwrap();
        assert_ne!(decision.label, Some(Label::Improved), "{decision:?}");
        assert_eq!(agreeing(&d, decision.estimate.centre), 5);
    }

    #[test]
    fn a_difference_below_the_floor_is_not_a_regression() {
        let d: Vec<f64> = around(0.0).iter().map(|e| 0.004 + e * 0.1).collect();
        assert_eq!(judge(&d, 0.968, 0.003, 0.005).unwrap().judgement, Judgement::Inconclusive);
        assert_eq!(judge(&d, 0.968, 0.003, 0.003).unwrap().judgement, Judgement::Regressed);
    }

    #[test]
    fn more_tokens_a_second_is_never_a_regression() {
        for rate in [100.5, 101.0, 110.0, 200.0] {
            let d = slowdown(rate, 100.0).unwrap();
            assert!(d < 0.0);
            assert_eq!(judge(&around(d), 0.968, 0.01, 0.005).unwrap().judgement, Judgement::Pass);
        }
        assert!(slowdown(90.0, 100.0).unwrap() > 0.0);
        assert_eq!(
            (slowdown(0.0, 1.0), slowdown(1.0, f64::INFINITY), slowdown(f64::NAN, 1.0)),
            (None, None, None)
        );
    }
}
