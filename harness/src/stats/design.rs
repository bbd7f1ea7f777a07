//! When the data are looked at, and what can be seen then.

use super::rng::Rng;
use super::signed_rank::{rank_for, walsh_averages};
use crate::record::Look;

/// Looks of the standard design. Were each of them at 95 %, one comparison of equal arms in seven would be called
/// different; with these levels it is one in twenty (4.9 %, by simulation: `simulations.rs`). The signed ranks of a
/// sequence do not depend on the distribution of its values, so one simulation holds for all symmetric noise.
pub const LOOKS: [Look; 4] = [
    Look { pairs: 6, conf: 0.968 },
    Look { pairs: 10, conf: 0.99 },
    Look { pairs: 16, conf: 0.994 },
    Look { pairs: 20, conf: 0.984 },
];

/// The single look of the quick design: six pairs, 3.1 % false alarms.
pub const QUICK: [Look; 1] = [Look { pairs: 6, conf: 0.968 }];

/// Smallest relative difference that a design tells from zero in 80 of 100 comparisons, for a cell whose runs have the
/// coefficient of variation `run_cv`. By simulation of normal noise with a fixed seed; `None` where no look can tell.
pub fn minimum_detectable_effect(looks: &[Look], run_cv: f64) -> Option<f64> {
    const COMPARISONS: usize = 1000;
    const POWER: f64 = 0.8;
    let ranks: Vec<(usize, usize)> = looks
        .iter()
        .filter_map(|look| Some((look.pairs as usize, rank_for(look.pairs as usize, look.conf)?)))
        .collect();
    let most = ranks.iter().map(|(pairs, _)| *pairs).max()?;
    let mut rng = Rng::new(1);
    let mut needed: Vec<f64> = (0..COMPARISONS)
        .map(|_| {
            // A pair differs by the noise of two runs.
            let d: Vec<f64> = (0..most).map(|_| rng.normal() * std::f64::consts::SQRT_2).collect();
            // Shifting all values by s moves the interval by s: a look sees the shift if it is above minus its lower end.
            let seen_from = |(pairs, k): &(usize, usize)| -walsh_averages(&d[..*pairs])[*k];
            ranks.iter().map(seen_from).fold(f64::INFINITY, f64::min)
        })
        .collect();
    needed.sort_by(f64::total_cmp);
    Some((run_cv * needed[(POWER * COMPARISONS as f64) as usize]).exp_m1())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effect_seen_agrees_with_the_published_table() {
        for (pairs, conf, cv, percent) in
            [(5, 0.93, 0.01, 2.44), (7, 0.95, 0.003, 0.58), (10, 0.95, 0.01, 1.44), (20, 0.95, 0.005, 0.48)]
        {
            let got = 100.0 * minimum_detectable_effect(&[Look { pairs, conf }], cv).unwrap();
            assert!((got / percent - 1.0).abs() < 0.1, "n={pairs} cv={cv}: {got} against {percent}");
        }
        assert_eq!(minimum_detectable_effect(&[Look { pairs: 5, conf: 0.95 }], 0.01), None);
        let sequential = minimum_detectable_effect(&LOOKS, 0.01).unwrap();
        assert!(sequential < minimum_detectable_effect(&QUICK, 0.01).unwrap() / 1.5, "{sequential}");
    }
}
