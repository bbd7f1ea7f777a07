//! What the verdict rule does over thousands of simulated comparisons. Seeds are fixed, so the results are too; the
//! bounds are three standard errors of the simulation wide.

use super::*;
use crate::record::{Judgement, Label, Look};

/// One comparison by a sequential design: `noise(i)` gives the run noise of launch `i` (two a pair, in order of time).
/// Returns the judgement and whether any look's interval left zero.
fn compare(
    looks: &[Look],
    slowdown: f64,
    margin: f64,
    mut noise: impl FnMut(usize) -> f64,
) -> (Decision, bool) {
    let mut d = Vec::new();
    let mut left_zero = false;
    for look in looks {
        while d.len() < look.pairs as usize {
            let i = 2 * d.len();
            // Pairs run AB, BA, AB, …: in every second one the candidate comes first.
            let (first, second) = (noise(i), noise(i + 1));
            let (candidate, other) = if d.len() % 2 == 0 { (second, first) } else { (first, second) };
            d.push(slowdown + candidate - other);
        }
        let decision = judge(&d, look.conf, margin, MIN_FLOOR).unwrap();
        left_zero |= decision.estimate.lo > 0.0 || decision.estimate.hi < 0.0;
        if decision.judgement != Judgement::Inconclusive || look.pairs == looks[looks.len() - 1].pairs {
            return (decision, left_zero);
        }
    }
    unreachable!("the last look decides")
}

/// Share of `comparisons` for which `what` holds.
fn rate(
    comparisons: u32,
    looks: &[Look],
    slowdown: f64,
    margin: f64,
    sigma: f64,
    what: impl Fn(&Decision) -> bool,
) -> f64 {
    let mut rng = Rng::new(20_261_130);
    let hits = (0..comparisons)
        .filter(|_| what(&compare(looks, slowdown, margin, |_| sigma * rng.normal()).0))
        .count();
    hits as f64 / f64::from(comparisons)
}

/// Signed-rank sum of the negative values: the interval lies above zero exactly when this is at most its rank.
fn negative_rank_sum(d: &[f64]) -> usize {
    let mut sorted = d.to_vec();
    sorted.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    sorted.iter().enumerate().filter(|(_, v)| **v < 0.0).map(|(i, _)| i + 1).sum()
}

/// Share of sequences of equal arms whose interval leaves zero at any look, nothing stopping early.
fn false_alarms(comparisons: u32, looks: &[Look], mut draw: impl FnMut(&mut Rng) -> f64) -> f64 {
    let looks: Vec<(usize, usize)> =
        looks.iter().map(|l| (l.pairs as usize, rank_for(l.pairs as usize, l.conf).unwrap())).collect();
    let mut rng = Rng::new(5);
    let most = looks[looks.len() - 1].0;
    let mut hits = 0;
    for _ in 0..comparisons {
        let d: Vec<f64> = (0..most).map(|_| draw(&mut rng)).collect();
        let leaves = |(n, k): &(usize, usize)| {
            let below = negative_rank_sum(&d[..*n]);
            below.min(n * (n + 1) / 2 - below) <= *k
        };
        hits += u32::from(looks.iter().any(leaves));
    }
    f64::from(hits) / f64::from(comparisons)
}

#[test]
fn an_interval_leaves_zero_exactly_when_the_rank_sum_says_so() {
    let mut rng = Rng::new(11);
    let mut left = 0;
    for _ in 0..500 {
        for look in LOOKS {
            let d: Vec<f64> = (0..look.pairs).map(|_| rng.normal() + 0.5).collect();
            let e = estimate(&d, look.conf).unwrap();
            let k = rank_for(d.len(), look.conf).unwrap();
            assert_eq!(e.lo > 0.0, negative_rank_sum(&d) <= k, "{d:?}");
            left += u32::from(e.lo > 0.0);
        }
    }
    assert!((200..1800).contains(&left), "{left}");
}

#[test]
fn all_looks_together_raise_at_most_one_false_alarm_in_twenty() {
    // Standard error of 200,000 comparisons at 5 %: 0.05 %.
    let normal = false_alarms(200_000, &LOOKS, Rng::normal);
    assert!((0.047..=0.05).contains(&normal), "{normal}");
    // Heavy tails change nothing: ranks do not know the distribution.
    let heavy = false_alarms(50_000, &LOOKS, |rng| rng.normal() / rng.unit());
    assert!((heavy - normal).abs() < 3.0 * 0.0011, "{heavy} against {normal}");
    let naive = LOOKS.map(|look| Look { conf: 0.95, ..look });
    assert!(false_alarms(20_000, &naive, Rng::normal) > 0.1, "peeking at 95 % would be worse");
    let quick = false_alarms(50_000, &QUICK, Rng::normal);
    assert!((quick - 0.03125).abs() < 3.0 * 0.0008, "{quick}");
}

#[test]
fn equal_arms_pass_and_hardly_ever_regress() {
    for (sigma, margin, least_pass) in [(0.003, 0.01, 0.99), (0.005, 0.01, 0.93), (0.01, 0.02, 0.93)] {
        let pass = rate(1_000, &LOOKS, 0.0, margin, sigma, |d| d.judgement == Judgement::Pass);
        let regressed = rate(1_000, &LOOKS, 0.0, margin, sigma, |d| d.judgement == Judgement::Regressed);
        assert!(pass >= least_pass, "sigma {sigma}: {pass} pass");
        assert!(regressed <= 0.025 + 3.0 * 0.005, "sigma {sigma}: {regressed} regressed");
    }
}

#[test]
fn a_slowdown_of_the_margin_hardly_ever_passes() {
    for (sigma, margin) in [(0.003, 0.01), (0.005, 0.01), (0.01, 0.02)] {
        let wrong =
            rate(1_000, &LOOKS, f64::ln_1p(margin), margin, sigma, |d| d.judgement == Judgement::Pass);
        assert!(wrong <= 0.025 + 3.0 * 0.005, "sigma {sigma}: {wrong}");
    }
}

#[test]
fn a_slowdown_of_three_times_the_variation_is_found() {
    for (looks, least) in [(&LOOKS[..], 0.97), (&QUICK[..], 0.9)] {
        let found = rate(1_000, looks, 0.03, 0.02, 0.01, |d| d.judgement == Judgement::Regressed);
        assert!(found >= least, "{} looks: {found}", looks.len());
    }
}

#[test]
fn an_improvement_is_called_one_and_never_a_regression() {
    let improved = rate(1_000, &LOOKS, -0.03, 0.01, 0.003, |d| d.label == Some(Label::Improved));
    assert!(improved > 0.95, "{improved}");
    let backwards = rate(1_000, &LOOKS, -0.03, 0.01, 0.01, |d| d.judgement == Judgement::Regressed);
    assert_eq!(backwards, 0.0);
}

#[test]
fn a_machine_that_heats_up_does_not_bias_the_blocks() {
    let mut rng = Rng::new(3);
    let mut alarms = 0;
    for _ in 0..1_000 {
        // 2 % slower over the first twenty launches, then steady.
        let ramp = |i: usize| 0.02 * (i.min(20) as f64 / 20.0);
        alarms += u32::from(compare(&QUICK, 0.0, 0.01, |i| ramp(i) + 0.003 * rng.normal()).1);
    }
    let share = f64::from(alarms) / 1_000.0;
    assert!(share <= 0.05, "{share}");
}
