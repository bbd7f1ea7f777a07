//! The pipeline for one key: pilot, race, refinement, final, decision, confirmation.

use super::candidates::Terrain;
use super::decide::{CONFIRM_PAIRS, FINAL_ROUNDS, FINALISTS, Speedup, expected_ns, indifferent, pick};
use super::lab::{Halt, Lab, Visit};
use super::race::{self, Rules, Runner};
use super::{KeyReport, Outcome, Strategy};
use crate::record::Record;
use memra_kernels::dispatch::Entry;
use memra_kernels::space::Config;
use std::collections::HashSet;
use std::time::Duration;

/// Share of a key's budget that is spent by the end of the race, and by the end of the refinement.
const RACE_SHARE: f64 = 0.5;
const REFINE_SHARE: f64 = 0.65;

/// Tunes one key within `budget`. The report is filled in as far as it got; an entry comes with it when the table has
/// to change.
pub(super) fn tune(
    lab: &mut Lab<'_, '_>,
    terrain: &Terrain,
    seed: u64,
    budget: Duration,
    report: &mut KeyReport,
) -> Result<Option<(Entry, Vec<Record>)>, Halt> {
    report.planted.clone_from(&terrain.planted);
    let (drawn, tried) = (HashSet::new(), HashSet::new());
    let mut search = Search { lab, terrain, seed, budget, report, drawn, tried };
    let done = search.run();
    report.rejected = std::mem::take(&mut lab.rejected);
    report.spent_s = lab.spent().as_secs_f64();
    report.foreign_cpu_frac = lab.foreign_cpu();
    done
}

struct Search<'s, 'a, 'j> {
    lab: &'s mut Lab<'a, 'j>,
    terrain: &'s Terrain,
    seed: u64,
    budget: Duration,
    report: &'s mut KeyReport,
    /// Configurations meant to be tried.
    drawn: HashSet<Config>,
    /// Those that were.
    tried: HashSet<Config>,
}

impl Search<'_, '_, '_> {
    fn run(&mut self) -> Result<Option<(Entry, Vec<Record>)>, Halt> {
        let default = self.terrain.survey.default.clone();
        match self.lab.visit("pilot", 0, &default, None)? {
            Visit::Timed(ns) => self.lab.pace(ns),
            _ => return Ok(self.default_is_unusable()),
        }
        let field = self.search()?;
        if self.report.tried == 1 && self.report.untried > 0 {
            // Not even one other configuration was tried, so an entry would claim too much.
            self.report.outcome = Outcome::Skipped { reason: "the budget is spent".to_owned() };
            return Ok(None);
        }
        let ruling = match &self.terrain.survey.incumbent {
            Some(incumbent) if !self.is_rejected(incumbent) => incumbent.clone(),
            _ => default.clone(),
        };
        let finalists = self.finals(field, &ruling)?;
        let equals = indifferent(&finalists);
        self.report.equals = equals.iter().map(|r| r.config.clone()).collect();
        let best = pick(&equals, &ruling, &default, |c| self.terrain.frugality(c)).map(|r| r.config.clone());
        let Some(best) = best else {
            self.report.outcome = Outcome::Unmeasurable { reason: "no finalist ran to the end".to_owned() };
            return Ok(None);
        };
        self.confirm(best, ruling, &finalists)
    }

    fn is_rejected(&self, config: &Config) -> bool {
        self.lab.rejected.iter().any(|r| r.config == *config)
    }

    /// With a wrong default, what the engine computes untuned is wrong: that is not repaired by a table.
    fn default_is_unusable(&mut self) -> Option<(Entry, Vec<Record>)> {
        let reason = self.lab.rejected.last().map_or_else(String::new, |r| r.reason.clone());
        let reason = format!("the default {}: {reason}", self.terrain.survey.default);
        self.report.outcome = Outcome::Incorrect { reason };
        self.report.tried = 1;
        None
    }

    /// Races the first draw, and after a random one the neighbours of its best; the field, best first.
    fn search(&mut self) -> Result<Vec<Runner>, Halt> {
        let survey = &self.terrain.survey;
        let protected: HashSet<Config> =
            [Some(&survey.default), survey.incumbent.as_ref()].into_iter().flatten().cloned().collect();
        let random = survey.strategy == Strategy::Random;
        let start = self.terrain.start(race::mix(self.seed, "draw"));
        let stage = if random { "random" } else { "exhaustive" };
        let field = self.race(stage, start, &protected, RACE_SHARE)?;
        let until = self.budget.mul_f64(REFINE_SHARE);
        if !random || self.lab.spent() >= until {
            return Ok(field);
        }
        let ranked: Vec<Config> = field.iter().map(|r| r.config.clone()).collect();
        let mut again: Vec<Config> = ranked.iter().take(FINALISTS).cloned().collect();
        again.extend(ranked.iter().skip(FINALISTS).filter(|c| protected.contains(c)).cloned());
        again.extend(self.terrain.neighbours(&ranked, &self.tried));
        self.race("refine", again, &protected, REFINE_SHARE)
    }

    fn race(
        &mut self,
        stage: &str,
        configs: Vec<Config>,
        protected: &HashSet<Config>,
        share: f64,
    ) -> Result<Vec<Runner>, Halt> {
        let now: HashSet<Config> = configs.iter().cloned().collect();
        let rules = Rules {
            stage,
            seed: race::mix(self.seed, stage),
            protected,
            enough: FINALISTS,
            until: self.budget.mul_f64(share),
        };
        let finish = race::race(self.lab, configs, &rules)?;
        self.tried.extend(now.iter().filter(|c| !finish.untried.contains(c)).cloned());
        self.drawn.extend(now);
        self.report.tried = self.tried.len();
        self.report.untried = self.drawn.difference(&self.tried).count();
        Ok(finish.ranked)
    }

    /// Times the finalists afresh, all equally often; the default and what rules now are among them.
    fn finals(&mut self, field: Vec<Runner>, ruling: &Config) -> Result<Vec<Runner>, Halt> {
        let default = &self.terrain.survey.default;
        let seeded = |runner: &Runner| runner.config == *default || runner.config == *ruling;
        let n_seeded = field.iter().filter(|r| seeded(r)).count();
        let mut places = self.places().saturating_sub(n_seeded);
        let mut finalists = Vec::new();
        for mut runner in field {
            if !seeded(&runner) {
                if places == 0 {
                    continue;
                }
                places -= 1;
            }
            runner.rounds.clear();
            finalists.push(runner);
        }
        self.lab.journal.events.stage_started("final", finalists.len());
        for round in 0..FINAL_ROUNDS {
            let order = race::mirrored(race::mix(self.seed, "final"), round, finalists.len());
            race::run_round(self.lab, "final", round, &mut finalists, &order)?;
        }
        Ok(finalists)
    }

    /// As many finalists as the rest of the budget affords: at least three, so that there is a choice.
    fn places(&self) -> usize {
        let visit = self.lab.visit_cost().as_secs_f64().max(1e-9);
        let left = self.budget.saturating_sub(self.lab.spent()).as_secs_f64();
        let confirm = 3.0 * f64::from(CONFIRM_PAIRS) * visit;
        let places = (left - confirm) / (visit * f64::from(FINAL_ROUNDS));
        (places as usize).clamp(3, FINALISTS)
    }

    /// Compares the pick with what rules now, on fresh times, and writes down what follows.
    fn confirm(
        &mut self,
        best: Config,
        ruling: Config,
        finalists: &[Runner],
    ) -> Result<Option<(Entry, Vec<Record>)>, Halt> {
        let survey = &self.terrain.survey;
        let has_entry = survey.incumbent.as_ref() == Some(&ruling);
        if best == ruling && has_entry {
            let rounds = |config: &Config| finalists.iter().find(|r| r.config == *config).map(|r| &r.rounds);
            self.report.outcome = Outcome::Kept;
            self.report.expected_ns = rounds(&ruling).map(|rounds| expected_ns(rounds));
            self.report.over_default =
                rounds(&ruling).zip(rounds(&survey.default)).and_then(|(fast, slow)| Speedup::of(fast, slow));
            self.report.winner = Some(ruling);
            return Ok(None);
        }
        // Where the default stays, the fastest of the others shows that it is no better.
        let mut others: Vec<&Runner> = finalists.iter().filter(|r| r.config != ruling).collect();
        others.sort_by(|a, b| a.score().total_cmp(&b.score()));
        let challenger =
            if best == ruling { others.first().map(|r| r.config.clone()) } else { Some(best.clone()) };
        let mut arms = vec![ruling.clone()];
        arms.extend(challenger.clone());
        if !arms.contains(&survey.default) {
            arms.push(survey.default.clone());
        }
        self.lab.journal.events.stage_started(super::lab::CONFIRM, arms.len());
        let seed = race::mix(self.seed, super::lab::CONFIRM);
        let orders: Vec<Vec<usize>> =
            (0..CONFIRM_PAIRS).map(|round| race::mirrored(seed, round, arms.len())).collect();
        let measured = self.lab.compare(&arms, &orders)?;
        let times = |config: &Config| arms.iter().position(|a| a == config).map(|i| measured[i].1.as_slice());
        let against = |fast: &Config, slow: &Config| Speedup::of(times(fast)?, times(slow)?);
        let speedup = challenger.as_ref().and_then(|c| against(c, &ruling));
        self.report.over_ruling = speedup;
        let improved = best != ruling && speedup.is_some_and(|s| s.is_real());
        if improved && let Err(reason) = self.lab.still_right(&best) {
            let reason = format!("{best} was right before it was timed and is wrong after: {reason}");
            self.report.outcome = Outcome::Incorrect { reason };
            return Ok(None);
        }
        let winner = if improved { best } else { ruling };
        self.report.outcome = match (improved, has_entry) {
            (true, _) => Outcome::Improved,
            (false, true) => Outcome::Kept,
            (false, false) => Outcome::Default,
        };
        self.report.over_default = against(&winner, &survey.default);
        self.report.expected_ns = times(&winner).map(expected_ns);
        self.report.winner = Some(winner.clone());
        if self.report.outcome == Outcome::Kept {
            return Ok(None);
        }
        let records: Vec<Record> = measured.into_iter().map(|(record, _)| record).collect();
        let entry = self.entry(winner, &records);
        self.report.evidence.clone_from(&entry.evidence);
        Ok(Some((entry, records)))
    }

    /// The entry that the report's winner gets.
    fn entry(&self, winner: Config, evidence: &[Record]) -> Entry {
        let survey = &self.terrain.survey;
        let is_default = winner == survey.default;
        Entry {
            order: self.lab.order_key(&winner),
            source_hash: self.lab.source_hash().to_owned(),
            expected_ns: self.report.expected_ns.unwrap_or_default(),
            speedup_over_default: match self.report.over_default {
                Some(speedup) if !is_default => speedup.ratio,
                _ => 1.0,
            },
            evidence: evidence.iter().map(|r| r.id.clone()).collect(),
            date: evidence.last().map_or_else(String::new, |r| r.at.chars().take(10).collect()),
            key: survey.item.key.clone(),
            config: winner,
        }
    }
}
