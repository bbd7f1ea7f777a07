//! The records that count, and what hangs on a verdict or a run.

use crate::{
    board::{Cell, Comparison, Evidence, Facts, Rate, Side},
    frames::device_id,
    rows::{Interval, clipped, day, without_folders},
    tuned::Tuned,
};
use memra_harness::{
    one_line,
    record::{Arm, ArmId, Body, Judgement, Label, Phase, Record, Run, RunStatus, Session, Verdict},
};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The records that count, by ID.
pub(crate) struct Store<'a> {
    pub(crate) records: BTreeMap<&'a str, &'a Record>,
    sessions: BTreeMap<&'a str, &'a Session>,
}

impl<'a> Store<'a> {
    /// Leaves out what later records withdraw.
    pub(crate) fn new(records: &'a [Record]) -> Store<'a> {
        let mut withdrawn: HashSet<&str> = HashSet::new();
        for record in records {
            if let Body::Supersede(supersede) = &record.body {
                withdrawn.extend(supersede.old_ids.iter().map(String::as_str));
            }
        }
        let count = records.iter().filter(|r| !withdrawn.contains(r.id.as_str()));
        let records: BTreeMap<&str, &Record> = count.map(|r| (r.id.as_str(), r)).collect();
        let sessions = records
            .values()
            .filter_map(|r| match &r.body {
                Body::Session(session) => Some((r.session_id.as_str(), session)),
                _ => None,
            })
            .collect();
        Store { records, sessions }
    }

    /// A warning where records lack the session that says where they were measured: they are not shown.
    pub(crate) fn homeless(&self) -> Vec<String> {
        let sessions: BTreeSet<&str> = self
            .records
            .values()
            .filter(|r| matches!(r.body, Body::Run(_) | Body::Verdict(_)))
            .map(|r| r.session_id.as_str())
            .filter(|id| !self.sessions.contains_key(id))
            .collect();
        let warn = |id: &str| {
            format!("session {id} has no session record in the log; what it measured is not shown")
        };
        sessions.into_iter().map(warn).collect()
    }

    /// The run of this ID.
    pub(crate) fn run(&self, id: &str) -> Option<&'a Run> {
        match &self.records.get(id)?.body {
            Body::Run(run) => Some(run),
            _ => None,
        }
    }

    /// The comparison that the verdict of this ID made, and the device it was made on.
    pub(crate) fn comparison(&self, id: &str) -> Option<(String, Comparison)> {
        let record = *self.records.get(id)?;
        let Body::Verdict(verdict) = &record.body else { return None };
        let (ours, other) = match verdict.candidate {
            ArmId::A => (ArmId::A, ArmId::B),
            ArmId::B => (ArmId::B, ArmId::A),
        };
        let session = self.sessions.get(record.session_id.as_str())?;
        let comparison = Comparison {
            cell: Cell::parse(&verdict.cell_id),
            ours: self.side(verdict, ours),
            other: self.side(verdict, other),
            ratio: ratio(verdict),
            judgement: judgement(verdict),
            evidence: Some(Evidence {
                id: record.id.clone(),
                session_id: record.session_id.clone(),
                command: session.command.clone(),
                at: record.at.clone(),
                verdict: verdict.clone(),
            }),
        };
        Some((device_id(&session.host.host_id_hash, &session.device_class), comparison))
    }

    fn side(&self, verdict: &Verdict, which: ArmId) -> Side {
        let (arm, tps) = match which {
            ArmId::A => (&verdict.a, verdict.median_a_tps),
            ArmId::B => (&verdict.b, verdict.median_b_tps),
        };
        let runs = verdict.run_ids.iter().filter_map(|id| self.run(id));
        let counts = |run: &&Run| run.arm == Some(which) && run.status == RunStatus::Ok;
        let runs: Vec<&Run> = runs.filter(counts).collect();
        Side {
            tps,
            launch: runs.first().map(|run| launch(run)).unwrap_or_default(),
            samples: runs.iter().flat_map(|run| run.samples_tps.iter().copied()).collect(),
            ..Side::of(arm)
        }
    }

    /// What the runs of `session` by the engine of `run`, in its cell and outside a comparison, give: `tps`.
    pub(crate) fn benched(&self, run: &Run, session: &str, tps: f64) -> Rate {
        let arm = Arm {
            subject: run.subject.clone(),
            engine: run.engine.clone(),
            version: run.engine_version.clone(),
            flags: run.flags.clone(),
        };
        let mut rate = Rate { tps, ..Rate::of(&Cell::parse(&run.cell_id), &Side::of(&arm)) };
        for record in self.records.values().filter(|r| r.session_id == session) {
            let Body::Run(other) = &record.body else { continue };
            let same =
                (&other.cell_id, &other.engine, &other.subject) == (&run.cell_id, &run.engine, &run.subject);
            if same && other.phase == Phase::Single && other.status == RunStatus::Ok {
                rate.samples.extend(&other.samples_tps);
                rate.run_ids.push(record.id.clone());
            }
        }
        rate
    }
}

fn launch(run: &Run) -> String {
    one_line(&run.argv.iter().map(|arg| without_folders(arg)).collect::<Vec<_>>().join(" "), 2000)
}

fn ratio(verdict: &Verdict) -> Result<Interval, String> {
    let invalid = |what: &str| {
        // The first reason decides, the others are remarks.
        Err(format!("inv: {}", clipped(verdict.reasons.first().map_or(what, String::as_str), 120)))
    };
    match verdict.verdict {
        Judgement::Incorrect => invalid("it computes wrong results"),
        Judgement::Unfit => invalid("the machine could not measure"),
        Judgement::CompetitorFailed => invalid("the rival failed"),
        Judgement::Pass if verdict.ratio.is_none() => Err("–".to_owned()),
        _ => match verdict.candidate_ratio() {
            Some((ratio, lo, hi)) if 0.0 < lo && lo <= ratio && ratio <= hi => Ok(Interval { ratio, lo, hi }),
            _ => invalid("no ratio could be computed"),
        },
    }
}

fn judgement(verdict: &Verdict) -> String {
    let word = match (verdict.verdict, verdict.label) {
        (Judgement::Pass, Some(Label::Improved)) => "faster",
        (Judgement::Pass, Some(Label::Equivalent)) => "equivalent",
        (Judgement::Pass, Some(Label::SlowerWithinMargin)) => "slower, within margin",
        (Judgement::Pass, Some(Label::NotSlower)) => "not slower",
        (Judgement::Pass, None) => "correct",
        (Judgement::Regressed, _) => "slower",
        (Judgement::Inconclusive, _) => "inconclusive",
        (Judgement::Incorrect, _) => "incorrect",
        (Judgement::Unfit, _) => "unfit",
        (Judgement::CompetitorFailed, _) => "rival failed",
    };
    let timed = matches!(verdict.verdict, Judgement::Pass | Judgement::Regressed | Judgement::Inconclusive);
    if timed && verdict.floor_provisional { format!("{word} (provisional floor)") } else { word.to_owned() }
}

impl Facts {
    /// What the records say of themselves. Trials are left out, since a clone has only those that `tuned` cites.
    pub(crate) fn new(records: &[&Record], tuned: &[Tuned], log_hash: String) -> Facts {
        let measured = records.iter().filter(|r| matches!(r.body, Body::Run(_) | Body::Verdict(_)));
        let days: Vec<&str> =
            measured.map(|r| day(&r.at)).chain(tuned.iter().map(|t| t.date.as_str())).collect();
        let runs: Vec<&Run> = records
            .iter()
            .filter_map(|r| if let Body::Run(run) = &r.body { Some(run) } else { None })
            .collect();
        let builds: BTreeSet<String> = records.iter().filter_map(|r| build(r)).collect();
        Facts {
            days: days.iter().min().zip(days.iter().max()).map(|(a, b)| ((*a).to_owned(), (*b).to_owned())),
            runs: (runs.len(), runs.iter().filter(|run| run.status != RunStatus::Ok).count()),
            builds: builds.into_iter().collect(),
            log_hash,
        }
    }
}

/// `0.1.0 (abcdef0, dirty)`
fn build(record: &Record) -> Option<String> {
    let Body::Session(session) = &record.body else { return None };
    let sha = session.tool.git_sha.as_deref().map(|sha| sha.get(..7).unwrap_or(sha));
    let dirty = session.tool.git_dirty.unwrap_or(false).then_some("dirty");
    let revision: Vec<&str> = sha.into_iter().chain(dirty).collect();
    let version = &session.tool.version;
    Some(if revision.is_empty() { version.clone() } else { format!("{version} ({})", revision.join(", ")) })
}
