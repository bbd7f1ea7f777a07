//! The race: all configurations are timed once a round, each round in a fresh random order, and those too far behind
//! drop out. Whoever is compared has been visited equally often.

use super::candidates::shuffle;
use super::lab::{Halt, Lab, Visit};
use crate::stats::{Rng, median};
use memra_kernels::{space::Config, testdata::Hash};
use std::collections::HashSet;
use std::time::Duration;

/// How far behind the best a configuration may be after each round, noise apart; the last one holds from then on.
const BEHIND: [f64; 5] = [1.5, 1.15, 1.10, 1.07, 1.05];
/// Rounds after which a race ends, however many are left.
const MAX_ROUNDS: u32 = 8;

/// A configuration that is still in, with its median launch time of each round in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Runner {
    pub(super) config: Config,
    pub(super) rounds: Vec<f64>,
}

impl Runner {
    /// Median over rounds.
    pub(super) fn score(&self) -> f64 {
        median(&self.rounds).unwrap_or(f64::INFINITY)
    }
}

/// How a race is run.
pub(super) struct Rules<'a> {
    /// Name of the stage, as trials carry it.
    pub(super) stage: &'a str,
    /// Seed of the orders.
    pub(super) seed: u64,
    /// These cannot drop out for being slow.
    pub(super) protected: &'a HashSet<Config>,
    /// So many left are few enough.
    pub(super) enough: usize,
    /// The key's time spent after which no round is begun.
    pub(super) until: Duration,
}

/// How a race ended.
pub(super) struct Finish {
    /// Who is left, best first.
    pub(super) ranked: Vec<Runner>,
    /// Configurations that were never reached in the time.
    pub(super) untried: Vec<Config>,
}

/// Races `configs`; the first round visits them in the order given, so what comes first is measured in any case.
pub(super) fn race(lab: &mut Lab<'_, '_>, configs: Vec<Config>, rules: &Rules<'_>) -> Result<Finish, Halt> {
    lab.journal.events.stage_started(rules.stage, configs.len());
    let start = lab.spent();
    let mut field = Vec::new();
    let mut untried = Vec::new();
    let mut best = f64::INFINITY;
    let visits = configs.len();
    for config in configs {
        let protected = rules.protected.contains(&config);
        if lab.spent() >= rules.until && !protected {
            untried.push(config);
            continue;
        }
        let bar = Some(best).filter(|best| best.is_finite() && !protected);
        if let Visit::Timed(ns) = lab.visit(rules.stage, 0, &config, bar)? {
            best = best.min(ns);
            field.push(Runner { config, rounds: vec![ns] });
        }
    }
    let mut visit_cost = (lab.spent() - start) / (visits - untried.len()).max(1) as u32;
    drop_slow(&mut field, rules);
    for round in 1..MAX_ROUNDS {
        let affordable = lab.spent() + visit_cost * field.len() as u32 <= rules.until;
        if field.len() <= rules.enough || !affordable {
            break;
        }
        let before = lab.spent();
        let order = order(rules.seed, round, field.len());
        run_round(lab, rules.stage, round, &mut field, &order)?;
        visit_cost = (lab.spent() - before) / field.len().max(1) as u32;
        drop_slow(&mut field, rules);
    }
    Ok(Finish { ranked: field, untried })
}

/// Visits each of `field` once, in the order of indices given; those that fail are taken out.
pub(super) fn run_round(
    lab: &mut Lab<'_, '_>,
    stage: &str,
    round: u32,
    field: &mut Vec<Runner>,
    order: &[usize],
) -> Result<(), Halt> {
    for &i in order {
        if let Visit::Timed(ns) = lab.visit(stage, round, &field[i].config, None)? {
            field[i].rounds.push(ns);
        }
    }
    let whole = round as usize + 1;
    field.retain(|runner| runner.rounds.len() == whole);
    Ok(())
}

/// A random order of `n` for a round; rounds `2i` and `2i + 1` of a [`mirrored`] series undo each other's drift.
pub(super) fn order(seed: u64, round: u32, n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    shuffle(&mut order, &mut Rng::new(mix(seed, &round.to_string())));
    order
}

/// The order of a round of a series in which every second round reverses the one before.
pub(super) fn mirrored(seed: u64, round: u32, n: usize) -> Vec<usize> {
    let mut order = order(seed, round / 2, n);
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

/// A seed for a purpose.
pub(super) fn mix(seed: u64, purpose: &str) -> u64 {
    let mut hash = Hash::default();
    hash.bytes(&seed.to_le_bytes());
    hash.bytes(purpose.as_bytes());
    hash.finish()
}

/// Sorts `field`, best first, and drops who is further behind than the round's bound and the noise explain, as long as
/// more than enough are left: one lucky visit must not end a race.
fn drop_slow(field: &mut Vec<Runner>, rules: &Rules<'_>) {
    field.sort_by(|a, b| a.score().total_cmp(&b.score()).then_with(|| a.config.cmp(&b.config)));
    let Some(best) = field.first() else { return };
    let rounds = best.rounds.len();
    let bound = BEHIND[rounds.min(BEHIND.len()) - 1] + 3.0 * noise(field, rounds);
    let limit = best.score() * bound;
    let mut rank = 0;
    field.retain(|runner| {
        rank += 1;
        rank <= rules.enough || runner.score() <= limit || rules.protected.contains(&runner.config)
    });
}

/// Standard error of the ratio of two scores: from the typical deviation of a visit from its configuration's median.
fn noise(field: &[Runner], rounds: usize) -> f64 {
    if rounds < 2 {
        return 0.0;
    }
    let deviations = field.iter().flat_map(|runner| {
        let score = runner.score();
        runner.rounds.iter().map(move |ns| (ns / score - 1.0).abs())
    });
    // A median's standard error is that of a mean times sqrt(pi / 2); 1.4826 makes a median deviation a standard one.
    let sd = 1.4826 * median(&deviations.collect::<Vec<f64>>()).unwrap_or(0.0);
    sd * (std::f64::consts::PI / rounds as f64).sqrt()
}
