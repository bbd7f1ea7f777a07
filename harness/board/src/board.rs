//! What the board says, before it is drawn or written: devices, comparisons, rates, tuned kernels.

use crate::{
    Error,
    files::log_hash,
    frames::{Frames, device_id},
    rows::{Interval, LONGEST_NAME, MEMRA, MEMRA_SELF, arm_identity, arm_name, test_order, without_folders},
    store::Store,
    tuned::{self, Tuned},
    wall::Walls,
};
use memra_harness::{
    one_line,
    record::{Arm, Body, Reading, Record, Verdict},
};
use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    path::Path,
};

/// Everything that is shown.
#[derive(Debug, Default)]
pub(crate) struct Board {
    /// Machines with cells, by name.
    pub(crate) devices: Vec<Device>,
    /// Tuned kernels, by device class.
    pub(crate) tuned: Vec<Tuned>,
    /// What the captions say.
    pub(crate) facts: Facts,
    /// What the user should know.
    pub(crate) warnings: Vec<String>,
}

/// Where the figures come from.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Day of the earliest and of the latest record behind a cell.
    pub(crate) days: Option<(String, String)>,
    /// Runs in the logs, and how many of them do not count.
    pub(crate) runs: (usize, usize),
    /// Builds of memra that measured, such as `0.1.0 (abcdef0)`.
    pub(crate) builds: Vec<String>,
    /// See [`log_hash`].
    pub(crate) log_hash: String,
}

/// One machine.
#[derive(Debug)]
pub(crate) struct Device {
    /// CPU, cores and device class.
    pub(crate) name: String,
    /// Comparisons of performance, in order of model and test.
    pub(crate) comparisons: Vec<Comparison>,
    /// Comparisons that test the harness: planted faults, and a binary with itself.
    pub(crate) checks: Vec<Comparison>,
    /// Published rates, in order of test, model and engine.
    pub(crate) rates: Vec<Rate>,
}

/// A model and a test.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Cell {
    pub(crate) model: String,
    pub(crate) test: String,
}

/// Two engines in one cell.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub(crate) cell: Cell,
    /// The side the judgement speaks of.
    pub(crate) ours: Side,
    /// Rival or baseline.
    pub(crate) other: Side,
    /// Ours over other, or why there is none: `n/m`, `inv: …`.
    pub(crate) ratio: Result<Interval, String>,
    /// What was concluded, in words.
    pub(crate) judgement: String,
    /// The record; `None` where nothing was measured.
    pub(crate) evidence: Option<Evidence>,
}

/// The verdict behind a comparison.
#[derive(Clone, Debug)]
pub(crate) struct Evidence {
    pub(crate) id: String,
    pub(crate) session_id: String,
    pub(crate) command: String,
    pub(crate) at: String,
    pub(crate) verdict: Verdict,
}

/// One engine in a comparison.
#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    /// How the board calls it.
    pub(crate) name: String,
    /// What stays the same when it is measured again.
    pub(crate) identity: String,
    pub(crate) arm: Arm,
    /// The published median, tokens per second.
    pub(crate) tps: Option<f64>,
    /// What was launched, without folders.
    pub(crate) launch: String,
    /// Raw samples, tokens per second.
    pub(crate) samples: Vec<f64>,
}

/// What one engine does in one cell.
#[derive(Clone, Debug)]
pub(crate) struct Rate {
    pub(crate) cell: Cell,
    pub(crate) name: String,
    pub(crate) identity: String,
    /// Median, tokens per second.
    pub(crate) tps: f64,
    pub(crate) samples: Vec<f64>,
    /// The runs behind it, where no verdict lists them.
    pub(crate) run_ids: Vec<String>,
    /// Its share of the read wall, in decode cells where both are known.
    pub(crate) wall: Option<WallShare>,
}

/// Memory traffic of a decode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WallShare {
    pub(crate) gbps: f64,
    pub(crate) percent: f64,
}

impl Cell {
    /// The cell of a `cell_id`: what follows the last slash is the test.
    pub(crate) fn parse(cell_id: &str) -> Cell {
        let (model, test) = cell_id.rsplit_once('/').unwrap_or((cell_id, ""));
        Cell { model: without_folders(model).to_owned(), test: test.to_owned() }
    }
}

impl Comparison {
    /// Whether it is against someone else's engine.
    pub(crate) fn is_rival(&self) -> bool {
        self.ours.arm.engine != self.other.arm.engine
    }

    /// The comparison told from the side of plain memra, where the judgement speaks of another configuration of it.
    fn ours_first(self) -> Comparison {
        if self.other.identity != MEMRA_SELF || self.is_rival() {
            return self;
        }
        Comparison {
            judgement: format!("{}: {}", self.ours.name, self.judgement),
            ratio: self.ratio.map(|r| Interval { ratio: 1.0 / r.ratio, lo: 1.0 / r.hi, hi: 1.0 / r.lo }),
            ours: self.other,
            other: self.ours,
            ..self
        }
    }

    /// Practical floor of the comparison, as a ratio.
    pub(crate) fn floor(&self) -> f64 {
        self.evidence.as_ref().map_or(0.0, |e| e.verdict.floor_ratio)
    }
}

impl Board {
    /// Reads what `reading` says; `data_dir` holds the logs and dispatch tables.
    ///
    /// # Errors
    /// A log or a dispatch table that cannot be read.
    pub(crate) fn new(reading: &Reading, data_dir: &Path) -> Result<Board, Error> {
        let store = Store::new(&reading.records);
        let all: Vec<&Record> = store.records.values().copied().collect();
        let frames = Frames::new(&all)?;
        let names = device_names(&all);
        let walls = Walls::new(&frames)?;
        let mut devices: BTreeMap<String, Device> = BTreeMap::new();
        for id in frames.latest_verdicts()? {
            let Some((device, comparison)) = store.comparison(&id) else { continue };
            let entry = devices.entry(device.clone()).or_insert_with(|| Device::new(&names, &device));
            if is_check(&comparison) {
                entry.checks.push(comparison);
            } else {
                entry.comparisons.push(comparison.ours_first());
            }
        }
        for benched in frames.benched()? {
            let Some(run) = store.run(&benched.run) else { continue };
            let entry =
                devices.entry(benched.device.clone()).or_insert_with(|| Device::new(&names, &benched.device));
            entry.rates.push(store.benched(run, &benched.session, benched.tps));
        }
        for (id, device) in &mut devices {
            device.finish(&walls, id);
        }
        let mut devices: Vec<Device> = devices.into_values().collect();
        devices.sort_by(|a, b| a.name.cmp(&b.name));
        let classes: BTreeSet<&str> = all.iter().filter_map(|r| device_class(r)).collect();
        let tuned = tuned::read(&frames, &classes, data_dir)?;
        let facts = Facts::new(&all, &tuned, log_hash(data_dir)?);
        Ok(Board { devices, tuned, facts, warnings: store.homeless() })
    }

    /// Whether there is nothing to show.
    pub(crate) fn is_empty(&self) -> bool {
        self.devices.is_empty() && self.tuned.is_empty()
    }

    /// Every engine shown, memra first, then rivals, then other builds and configurations of memra.
    pub(crate) fn engines(&self) -> Vec<&str> {
        let rates = self.devices.iter().flat_map(|device| &device.rates);
        let mut all: Vec<&str> = rates.map(|rate| rate.identity.as_str()).collect();
        all.sort_by_key(|identity| engine_order(identity));
        all.dedup();
        all
    }
}

/// What the gate writes in place of a test when it checks results.
const CHECK: &str = "check";

/// Memra, rivals, other memras.
fn engine_order(identity: &str) -> (u8, &str) {
    let class = if identity == MEMRA_SELF { 0 } else { 1 + u8::from(identity.starts_with("memra ")) };
    (class, identity)
}

fn device_class(record: &Record) -> Option<&str> {
    match &record.body {
        Body::Session(session) => Some(session.device_class.as_str()).filter(|class| !class.is_empty()),
        _ => None,
    }
}

/// Device ID to the name shown; where two machines would read alike, the start of the host's hash tells them apart.
fn device_names(records: &[&Record]) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for record in records {
        if let Body::Session(session) = &record.body {
            let (host, class) = (&session.host, &session.device_class);
            let cores = if host.n_cores == 1 { "core" } else { "cores" };
            let name = format!("{}, {} {cores} ({class})", host.cpu_model, host.n_cores);
            let name = one_line(&name, LONGEST_NAME);
            names.insert(device_id(&host.host_id_hash, class), (name, host.host_id_hash.clone()));
        }
    }
    let count = |name: &str| names.values().filter(|(other, _)| other == name).count();
    let named = |(id, (name, hash)): (&String, &(String, String))| {
        let short = hash.get(..6).unwrap_or(hash);
        let shown = if count(name) > 1 { format!("{name}, host {short}") } else { name.clone() };
        (id.clone(), shown)
    };
    names.iter().map(named).collect()
}

/// A check of results, a planted fault, or a binary compared with itself: it tells nothing of speed.
fn is_check(comparison: &Comparison) -> bool {
    let planted = |arm: &Arm| {
        let is_fault = |key: &str| key.starts_with("fault.") || key == "slow" || key == "wrong";
        let set = arm.subject.strip_prefix("config:").and_then(|overlay| overlay.split_once('='));
        set.is_some_and(|(key, _)| is_fault(key))
            || arm.flags.keys().any(|key| key.strip_prefix("overlay.").is_some_and(is_fault))
    };
    let same = comparison.evidence.as_ref().is_some_and(|e| e.verdict.identical_binaries);
    same || comparison.cell.test == CHECK || planted(&comparison.ours.arm) || planted(&comparison.other.arm)
}

impl Side {
    /// A side that has only its names yet.
    pub(crate) fn of(arm: &Arm) -> Side {
        Side { name: arm_name(arm), identity: arm_identity(arm), arm: arm.clone(), ..Side::default() }
    }
}

impl Rate {
    /// The rate of a side, without its wall and runs.
    pub(crate) fn of(cell: &Cell, side: &Side) -> Rate {
        Rate {
            cell: cell.clone(),
            name: side.name.clone(),
            identity: side.identity.clone(),
            tps: side.tps.unwrap_or_default(),
            samples: side.samples.clone(),
            run_ids: Vec::new(),
            wall: None,
        }
    }
}

impl Device {
    fn new(names: &BTreeMap<String, String>, id: &str) -> Device {
        let name = names.get(id).cloned().unwrap_or_else(|| id.to_owned());
        Device { name, comparisons: Vec::new(), checks: Vec::new(), rates: Vec::new() }
    }

    /// Adds rates of compared engines and cells not measured, and puts everything in order.
    fn finish(&mut self, walls: &Walls, id: &str) {
        // A rival's own comparison gives memra's published rate, before baselines and before runs outside comparisons.
        let mut valid: Vec<&Comparison> = self.comparisons.iter().filter(|c| c.ratio.is_ok()).collect();
        valid.sort_by_key(|c| (!c.is_rival(), std::cmp::Reverse(c.evidence.as_ref().map(|e| e.at.clone()))));
        let mut rates: Vec<Rate> = Vec::new();
        for comparison in valid {
            for side in [&comparison.ours, &comparison.other] {
                rates.extend(side.tps.is_some().then(|| Rate::of(&comparison.cell, side)));
            }
        }
        rates.append(&mut self.rates);
        let mut seen = HashSet::new();
        rates.retain(|rate| seen.insert((rate.cell.clone(), rate.identity.clone())));
        for rate in &mut rates {
            rate.wall = walls.share(id, &rate.cell, rate.tps);
        }
        rates.sort_by_key(|r| {
            let (class, name) = engine_order(&r.identity);
            (test_order(&r.cell.test), r.cell.model.clone(), class, name.to_owned())
        });
        self.rates = rates;
        self.add_missing();
        let order = |c: &Comparison| {
            (c.cell.model.clone(), test_order(&c.cell.test), !c.is_rival(), c.other.name.clone())
        };
        self.comparisons.sort_by_key(order);
        self.checks.sort_by_key(order);
    }

    /// A row `n/m` for every cell that a rival shown elsewhere on this machine was not measured in.
    fn add_missing(&mut self) {
        let rivals: BTreeMap<String, Side> = self
            .comparisons
            .iter()
            .filter(|c| c.is_rival())
            .map(|c| (c.other.identity.clone(), c.other.clone()))
            .collect();
        let cells: BTreeMap<Cell, Side> = self
            .rates
            .iter()
            .filter(|rate| rate.identity == MEMRA_SELF)
            .map(|rate| {
                let arm = Arm { engine: MEMRA.into(), subject: "self".into(), ..Arm::default() };
                (rate.cell.clone(), Side { tps: Some(rate.tps), ..Side::of(&arm) })
            })
            .collect();
        for (cell, ours) in &cells {
            for (identity, rival) in &rivals {
                let have = |c: &Comparison| c.cell == *cell && c.other.identity == *identity;
                if !self.comparisons.iter().any(have) {
                    let other =
                        Side { tps: None, launch: String::new(), samples: Vec::new(), ..rival.clone() };
                    self.comparisons.push(Comparison {
                        cell: cell.clone(),
                        ours: ours.clone(),
                        other,
                        ratio: Err("n/m".to_owned()),
                        judgement: "not measured".to_owned(),
                        evidence: None,
                    });
                }
            }
        }
    }
}
