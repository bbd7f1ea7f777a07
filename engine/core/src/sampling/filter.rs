//! Which candidates may be drawn. Each filter leaves the candidates likeliest first, and at least one of them.

use super::{Candidate, likelier_first, weight};

/// Keeps the `k` likeliest (0 keeps all) and sorts.
pub(super) fn top_k(candidates: &mut Vec<Candidate>, k: usize) {
    if (1..candidates.len()).contains(&k) {
        candidates.select_nth_unstable_by(k - 1, likelier_first);
        candidates.truncate(k);
    }
    candidates.sort_unstable_by(likelier_first);
}

/// Truncates after the candidate with which the probabilities reach `p`.
pub(super) fn top_p(candidates: &mut Vec<Candidate>, p: f32) {
    let (weights, total) = weights(candidates);
    let mut sum = 0.0;
    let last = weights.iter().position(|weight| {
        sum += weight;
        sum >= f64::from(p) * total
    });
    candidates.truncate(last.map_or(candidates.len(), |at| at + 1));
}

/// Keeps candidates at least `p` times as likely as the likeliest.
pub(super) fn min_p(candidates: &mut Vec<Candidate>, p: f32) {
    let floor = candidates.first().map_or(0.0, |c| c.1) + p.ln();
    let kept = candidates.partition_point(|c| c.1 >= floor);
    candidates.truncate(kept.max(1));
}

/// Takes candidates in order of how far their information content lies from its mean, the entropy, until their
/// probabilities exceed `p`.
pub(super) fn typical(candidates: &mut Vec<Candidate>, p: f32) {
    let (weights, total) = weights(candidates);
    let probabilities = weights.iter().map(|weight| weight / total);
    // A probability of zero tells nothing: its share of the entropy is zero.
    let information = |p: f64| if p > 0.0 { -p.ln() } else { f64::INFINITY };
    let entropy: f64 = probabilities.clone().filter(|p| *p > 0.0).map(|p| p * information(p)).sum();
    let distance = |p: f64| (information(p) - entropy).abs();
    let mut ranked: Vec<(f64, f64, Candidate)> =
        probabilities.zip(candidates.iter()).map(|(p, c)| (distance(p), p, *c)).collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then(likelier_first(&a.2, &b.2)));
    let mut sum = 0.0;
    let last = ranked.iter().position(|(_, probability, _)| {
        sum += probability;
        sum > f64::from(p)
    });
    ranked.truncate(last.map_or(ranked.len(), |at| at + 1));
    candidates.clear();
    candidates.extend(ranked.into_iter().map(|(_, _, candidate)| candidate));
    candidates.sort_unstable_by(likelier_first);
}

/// Probabilities at temperature 1 relative to the first candidate's, and their sum.
fn weights(candidates: &[Candidate]) -> (Vec<f64>, f64) {
    let max = candidates.first().map_or(0.0, |c| c.1);
    let weights: Vec<f64> = candidates.iter().map(|c| weight(c.1 - max)).collect();
    let total = weights.iter().sum();
    (weights, total)
}
