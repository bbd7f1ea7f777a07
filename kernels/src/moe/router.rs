//! The router: from scores to chosen experts and their weights.

use super::Routes;
use crate::error::{ShapeError, same};
use crate::math::{exp, sigmoid};

/// How a row's logits become scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scoring {
    /// `exp(l_e) / Σ exp(l)` over all experts. With [`Router::renormalise`] this is the same as a softmax over the
    /// chosen ones.
    Softmax,
    /// `1 / (1 + exp(-l_e))`, each expert for itself.
    Sigmoid,
}

/// How experts are chosen and weighted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Router {
    /// How logits become scores.
    pub scoring: Scoring,
    /// Whether the weights of the chosen experts are divided by their sum.
    pub renormalise: bool,
    /// What weights are multiplied by in the end.
    pub scale: f32,
}

/// Chooses the [`Routes::used`] best experts of each row, and their weights.
///
/// - Choice: by the logits, which order experts as scores do but are never rounded to equal; with a `bias` (`[experts]`)
///   by `score + bias`. The greatest win; of equals the lower number wins. A NaN displaces nothing, and nothing displaces it.
/// - Weights: the scores (without bias), divided by their sum if the router renormalises (a sum of zero divides by one),
///   then multiplied by the scale. Sums are taken in f64 in increasing order of experts.
///
/// Rows do not depend on each other. `logits` is `[rows][experts]`.
///
/// # Errors
/// When a size does not fit the others, fewer experts exist than each row uses, or the rows exceed the capacity of `routes`,
/// which is then unchanged.
pub fn route(
    router: &Router,
    logits: &[f32],
    bias: Option<&[f32]>,
    routes: &mut Routes,
) -> Result<(), ShapeError> {
    const OP: &str = "route";
    let (used, experts) = (routes.used(), routes.experts());
    let rows = logits.len().checked_div(experts).unwrap_or(0);
    same(OP, "number of logits", rows * experts, logits.len())?;
    same(OP, "number of biases", experts, bias.map_or(experts, <[f32]>::len))?;
    if used == 0 || used > experts {
        return Err(ShapeError { op: OP, what: "number of experts", want: used.max(1), got: experts });
    }
    routes.fill(rows, |row, ids, weights| {
        let logits = &logits[row * experts..][..experts];
        match bias {
            None => best(logits.iter().copied(), ids, weights),
            Some(bias) => {
                let scores = Scores::new(router.scoring, logits);
                best(logits.iter().zip(bias).map(|(l, b)| scores.of(*l) + b), ids, weights);
            }
        }
        ids.sort_unstable();
        weigh(router, logits, ids, weights);
    })
}

/// The numbers of the `ids.len()` greatest values, greatest first; `kept` holds as many, and keeps them.
fn best(values: impl Iterator<Item = f32>, ids: &mut [u32], kept: &mut [f32]) {
    let mut count = 0;
    for (id, value) in values.enumerate() {
        let mut at = count;
        while at > 0 && value > kept[at - 1] {
            at -= 1;
        }
        if at == ids.len() {
            continue;
        }
        count = (count + 1).min(ids.len());
        kept.copy_within(at..count - 1, at + 1);
        ids.copy_within(at..count - 1, at + 1);
        (kept[at], ids[at]) = (value, id as u32);
    }
}

/// The weights of the chosen experts `ids`, which are in ascending order.
fn weigh(router: &Router, logits: &[f32], ids: &[u32], weights: &mut [f32]) {
    let scores = Scores::new(router.scoring, logits);
    for (weight, id) in weights.iter_mut().zip(ids) {
        *weight = scores.of(logits[*id as usize]);
    }
    if router.renormalise {
        let sum = weights.iter().map(|w| f64::from(*w)).sum::<f64>() as f32;
        let divisor = if sum == 0.0 { 1.0 } else { sum };
        weights.iter_mut().for_each(|w| *w /= divisor);
    }
    weights.iter_mut().for_each(|w| *w *= router.scale);
}

/// Turns logits of one row into scores.
struct Scores {
    scoring: Scoring,
    greatest: f32,
    total: f32,
}

impl Scores {
    fn new(scoring: Scoring, logits: &[f32]) -> Scores {
        if scoring == Scoring::Sigmoid {
            return Scores { scoring, greatest: 0.0, total: 1.0 };
        }
        let greatest = logits.iter().fold(f32::NEG_INFINITY, |a, l| if *l > a { *l } else { a });
        let total = logits.iter().map(|l| f64::from(exp(l - greatest))).sum::<f64>() as f32;
        Scores { scoring, greatest, total }
    }

    fn of(&self, logit: f32) -> f32 {
        match self.scoring {
            Scoring::Softmax => exp(logit - self.greatest) / self.total,
            Scoring::Sigmoid => sigmoid(logit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::Random;

    const SOFTMAX: Router = Router { scoring: Scoring::Softmax, renormalise: true, scale: 1.0 };

    fn chosen(router: &Router, logits: &[f32], bias: Option<&[f32]>, used: usize) -> Vec<(u32, f32)> {
        let mut routes = Routes::with_capacity(1, used, logits.len());
        route(router, logits, bias, &mut routes).unwrap();
        routes.row(0).collect()
    }

    fn ids(router: &Router, logits: &[f32], bias: Option<&[f32]>, used: usize) -> Vec<u32> {
        chosen(router, logits, bias, used).into_iter().map(|(id, _)| id).collect()
    }

    #[test]
    fn the_greatest_win_and_of_equals_the_lower_number() {
        assert_eq!(ids(&SOFTMAX, &[0.0, 3.0, 1.0, 2.0], None, 2), [1, 3]);
        assert_eq!(ids(&SOFTMAX, &[5.0, 1.0, 5.0, 5.0], None, 2), [0, 2]);
        assert_eq!(ids(&SOFTMAX, &[1.0; 4], None, 3), [0, 1, 2]);
        assert_eq!(ids(&SOFTMAX, &[1.0, 2.0, 3.0], None, 3), [0, 1, 2]);
        // Scores of such logits are equal as f32, the logits are not.
        let sigmoid = Router { scoring: Scoring::Sigmoid, ..SOFTMAX };
        assert_eq!(ids(&sigmoid, &[40.0, 41.0, 42.0], None, 1), [2]);
        assert_eq!(ids(&SOFTMAX, &[f32::NAN, f32::NAN, 1.0], None, 2), [0, 1]);
        assert_eq!(ids(&SOFTMAX, &[f32::NEG_INFINITY; 3], None, 2), [0, 1]);
    }

    #[test]
    fn a_bias_moves_the_choice_and_not_the_weights() {
        let router = Router { scoring: Scoring::Sigmoid, renormalise: false, scale: 2.0 };
        let logits = [0.0, 1.0, 2.0];
        let got = chosen(&router, &logits, Some(&[1.0, 0.0, 0.0]), 2);
        assert_eq!(got, [(0, 1.0), (2, 2.0 * sigmoid(2.0))]);
    }

    #[test]
    fn weights_match_f64_for_every_option() {
        let mut random = Random::new(6);
        let logits: Vec<f32> = (0..64).map(|_| random.uniform() * 6.0).collect();
        for scoring in [Scoring::Softmax, Scoring::Sigmoid] {
            for renormalise in [false, true] {
                let router = Router { scoring, renormalise, scale: 1.5 };
                let got = chosen(&router, &logits, None, 8);
                let total: f64 = logits.iter().map(|l| f64::from(*l).exp()).sum();
                let score = |id: &u32| {
                    let l = f64::from(logits[*id as usize]);
                    if scoring == Scoring::Softmax { l.exp() / total } else { 1.0 / (1.0 + (-l).exp()) }
                };
                let sum: f64 = got.iter().map(|(id, _)| score(id)).sum();
                for (id, weight) in &got {
                    let want = 1.5 * score(id) / if renormalise { sum } else { 1.0 };
                    assert!((f64::from(*weight) - want).abs() < 1e-6 * want, "{router:?}: {weight} {want}");
                }
                let worst = got.iter().map(|(id, _)| logits[*id as usize]).fold(f32::INFINITY, f32::min);
                let better = logits.iter().filter(|l| **l > worst).count();
                assert_eq!(better, 7, "not the best eight");
            }
        }
    }

    #[test]
    fn rows_do_not_depend_on_each_other() {
        let mut random = Random::new(7);
        let logits: Vec<f32> = (0..5 * 12).map(|_| random.uniform()).collect();
        let mut routes = Routes::with_capacity(5, 3, 12);
        route(&SOFTMAX, &logits, None, &mut routes).unwrap();
        for (row, logits) in logits.chunks(12).enumerate() {
            assert_eq!(routes.row(row).collect::<Vec<_>>(), chosen(&SOFTMAX, logits, None, 3));
        }
    }

    #[test]
    fn vanishing_scores_give_zero_weights_and_wrong_sizes_are_errors() {
        let router = Router { scoring: Scoring::Sigmoid, ..SOFTMAX };
        assert_eq!(chosen(&router, &[-200.0; 4], None, 1), [(0, 0.0)]);
        let run = |logits: usize, bias: Option<&[f32]>, used: usize| {
            route(&SOFTMAX, &vec![0.0; logits], bias, &mut Routes::with_capacity(2, used, 4))
        };
        assert!(run(8, None, 4).is_ok());
        assert!(run(7, None, 2).is_err());
        assert!(run(12, None, 2).is_err());
        assert!(run(8, Some(&[0.0; 3]), 2).is_err());
        assert!(run(8, None, 5).is_err());
        assert!(run(8, None, 0).is_err());
        assert!(route(&SOFTMAX, &[1.0], None, &mut Routes::with_capacity(1, 0, 0)).is_err());
    }
}
