//! Which configurations of a key are tried.

use super::device::Device;
use super::work::WorkItem;
use crate::stats::Rng;
use memra_kernels::KernelKey;
use memra_kernels::dispatch::Table;
use memra_kernels::family::Family;
use memra_kernels::space::{Config, Space};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};

/// Up to this many feasible configurations, [`Strategy::Auto`] tries them all.
pub const EXHAUSTIVE_MAX: usize = 300;
/// How many a random search draws before it looks around the best ones.
pub const RANDOM_DRAWS: usize = 128;
/// Around how many of the best it looks.
const CENTRES: usize = 3;

/// How the space is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    /// Exhaustive up to [`EXHAUSTIVE_MAX`] feasible configurations, random above.
    #[default]
    Auto,
    /// Every feasible configuration.
    Exhaustive,
    /// [`RANDOM_DRAWS`] of them, then the neighbours of the best.
    Random,
}

impl std::str::FromStr for Strategy {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "auto" => Ok(Strategy::Auto),
            "exhaustive" => Ok(Strategy::Exhaustive),
            "random" => Ok(Strategy::Random),
            _ => Err(format!("strategy `{s}` is not known; use auto, exhaustive or random")),
        }
    }
}

/// A key's tuning space, looked over before anything runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// The work item.
    pub item: WorkItem,
    /// Points of the cross product.
    pub points: usize,
    /// Feasible ones.
    pub feasible: usize,
    /// Why the others are not, and how many.
    pub pruned: BTreeMap<String, usize>,
    /// What will be used: never `auto`.
    pub strategy: Strategy,
    /// The family's default.
    pub default: Config,
    /// The configuration of a valid entry, which rules now.
    pub incumbent: Option<Config>,
    /// Why there is none, where a table holds an entry that is void.
    pub void_entry: Option<String>,
    /// Why the key cannot be tuned at all.
    pub problem: Option<String>,
}

/// [`Survey`], with what the search itself needs.
pub(super) struct Terrain {
    pub(super) survey: Survey,
    pub(super) family: &'static dyn Family,
    pub(super) space: Space,
    feasible: Vec<Config>,
    /// What the tables hold for other shapes of the family, where it is feasible here.
    transferred: Vec<Config>,
    /// Wrong configurations planted on purpose.
    pub(super) planted: Vec<Config>,
}

impl Survey {
    fn empty(item: &WorkItem, strategy: Strategy) -> Survey {
        Survey {
            item: item.clone(),
            points: 0,
            feasible: 0,
            pruned: BTreeMap::new(),
            strategy,
            default: Config::default(),
            incumbent: None,
            void_entry: None,
            problem: None,
        }
    }
}

impl Terrain {
    /// Looks the space of `item` over. `shipped` rules where `table` has no valid entry.
    ///
    /// # Errors
    /// A survey with its `problem` when the device has no such family or nothing is feasible.
    pub(super) fn survey(
        device: &dyn Device,
        item: &WorkItem,
        strategy: Strategy,
        tables: &[&Table],
        plant_wrong: bool,
    ) -> Result<Terrain, Box<Survey>> {
        let mut survey = Box::new(Survey::empty(item, strategy));
        let (key, threads) = (&item.key, device.threads());
        let Some(family) = device.family(&key.family) else {
            survey.problem = Some(format!("no kernel family `{}` on this device", key.family));
            return Err(survey);
        };
        let space = family.space(key, threads);
        let mut feasible = Vec::new();
        for config in space.points() {
            survey.points += 1;
            match (space.constraint)(&config) {
                Ok(()) => feasible.push(config),
                Err(reason) => *survey.pruned.entry(reason).or_default() += 1,
            }
        }
        survey.feasible = feasible.len();
        survey.default = family.default_config(key, threads);
        if let Err(reason) = space.validate(&survey.default) {
            survey.problem = Some(format!("the default {} is not feasible: {reason}", survey.default));
            return Err(survey);
        }
        if strategy == Strategy::Auto {
            let few = feasible.len() <= EXHAUSTIVE_MAX;
            survey.strategy = if few { Strategy::Exhaustive } else { Strategy::Random };
        }
        (survey.incumbent, survey.void_entry) = incumbent(family, &space, key, tables);
        let mut planted = Vec::new();
        if plant_wrong {
            let known: HashSet<&Config> = feasible.iter().collect();
            planted = planted_configs(&family.space_with_planted(key, threads), &survey.default, &known);
        }
        let entries = tables.iter().flat_map(|table| &table.entries);
        let transferred = entries
            .filter(|e| {
                e.key.family == key.family && e.key.path == key.path && space.validate(&e.config).is_ok()
            })
            .map(|e| e.config.clone())
            .collect();
        Ok(Terrain { survey: *survey, family, space, feasible, transferred, planted })
    }

    /// The configurations to start with: the default, the incumbent, what was planted or won elsewhere, then the drawn
    /// ones in random order.
    pub(super) fn start(&self, seed: u64) -> Vec<Config> {
        let mut drawn = self.feasible.clone();
        shuffle(&mut drawn, &mut Rng::new(seed));
        if self.survey.strategy == Strategy::Random {
            drawn.truncate(RANDOM_DRAWS);
        }
        let mut start = vec![self.survey.default.clone()];
        start.extend(self.survey.incumbent.clone());
        start.extend_from_slice(&self.planted);
        start.extend_from_slice(&self.transferred);
        start.extend(drawn);
        let mut seen = HashSet::new();
        start.retain(|config| seen.insert(config.clone()));
        start
    }

    /// Feasible configurations one step of one parameter away from the first few of `ranked` (best first), but for
    /// those `tried` before.
    pub(super) fn neighbours(&self, ranked: &[Config], tried: &HashSet<Config>) -> Vec<Config> {
        let mut found = Vec::new();
        for centre in ranked.iter().take(CENTRES) {
            for param in &self.space.params {
                let at = centre.get(param.name).and_then(|v| param.values.iter().position(|p| *p == v));
                let Some(at) = at else { continue };
                for step in [at.checked_sub(1), at.checked_add(1)] {
                    let Some(value) = step.and_then(|i| param.values.get(i)) else { continue };
                    let mut config = centre.clone();
                    config.0.insert(param.name.to_owned(), *value);
                    let new = !tried.contains(&config) && !found.contains(&config);
                    if new && (self.space.constraint)(&config).is_ok() {
                        found.push(config);
                    }
                }
            }
        }
        found
    }

    /// Order of preference between configurations that are equally fast: fewer threads, then smaller values in the
    /// order in which the space declares its parameters.
    pub(super) fn frugality(&self, config: &Config) -> Vec<i64> {
        let value = |name: &str| config.get(name).unwrap_or(0);
        let mut order = vec![value("threads")];
        order.extend(self.space.params.iter().map(|p| value(p.name)));
        order
    }
}

/// The configuration that a valid entry holds for exactly this key, or why an entry is void.
fn incumbent(
    family: &dyn Family,
    space: &Space,
    key: &KernelKey,
    tables: &[&Table],
) -> (Option<Config>, Option<String>) {
    let mut void = None;
    for entry in tables.iter().filter_map(|table| table.entries.iter().find(|e| e.key == *key)) {
        let problem = match space.validate(&entry.config) {
            _ if entry.source_hash != family.source_hash() => "the kernel's source changed".to_owned(),
            Ok(()) => return (Some(entry.config.clone()), None),
            Err(reason) => reason,
        };
        void = Some(format!("entry of {} is void: {problem}", entry.date));
    }
    (None, void)
}

/// Of the points that only the space with a fault has, the one most like the default.
fn planted_configs(space: &Space, default: &Config, known: &HashSet<&Config>) -> Vec<Config> {
    let plain = |config: &Config| {
        let mut config = config.clone();
        config.0.retain(|name, _| default.get(name).is_some());
        config
    };
    // With the fault's parameter at the value that switches it off, a point is one of the plain space.
    let faulty = |config: &Config| {
        !known.contains(config) && config.0.iter().any(|(n, v)| default.get(n).is_none() && *v != 0)
    };
    space.feasible().filter(faulty).find(|config| plain(config) == *default).into_iter().collect()
}

/// Fisher–Yates.
pub(super) fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
    for i in (1..items.len()).rev() {
        items.swap(i, ((i + 1) as f64 * rng.unit()) as usize);
    }
}
