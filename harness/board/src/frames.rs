//! Records as polars data frames, and the questions the board asks of them.
//!
//! Frames hold what is grouped, joined and ordered; what hangs on a record otherwise (flags, reasons, samples) is looked
//! up by its ID afterwards. Every answer is sorted, so that two renders give the same bytes.

use crate::rows::arm_identity;
use memra_harness::record::{Arm, ArmId, Body, Judgement, Phase, Record, RunStatus, TrialStatus};
use polars::prelude::*;

/// Columns of what the board reads.
pub(crate) struct Frames {
    /// session, device
    sessions: DataFrame,
    /// verdict, session, at, cell, candidate, other, decided (not cut short without a single pair)
    verdicts: DataFrame,
    /// run, session, at, cell, single (outside a comparison), engine, ok, tps, bytes, wall
    runs: DataFrame,
    /// trial, session, at, key, config, pilot, ns: those of the search, without the comparisons at its end
    trials: DataFrame,
}

/// Runs of one engine in one cell that no comparison judged.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Benched {
    pub(crate) device: String,
    pub(crate) cell: String,
    /// Median of the run medians, tokens per second.
    pub(crate) tps: f64,
    /// One of the runs, for its names and flags.
    pub(crate) run: String,
    /// The session they were measured in.
    pub(crate) session: String,
}

/// What a cell's tokens cost.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CellCost {
    pub(crate) device: String,
    pub(crate) cell: String,
    /// Bytes that one token must read.
    pub(crate) bytes_per_token: f64,
    /// Measured read bandwidth that the runs were told, in GB/s.
    pub(crate) wall_gbps: Option<f64>,
}

/// One configuration of one kernel in that kernel's latest sweep.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tried {
    pub(crate) device: String,
    pub(crate) key: String,
    /// Whether it is the default: every search begins with it.
    pub(crate) default: bool,
    /// Median over visits of a visit's median, in nanoseconds.
    pub(crate) ns: f64,
}

/// Which device a session measured: two machines of one class stay apart.
pub(crate) fn device_id(host: &str, class: &str) -> String {
    format!("{class}@{host}")
}

/// Median; `None` of nothing.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some((lower + upper) / 2.0)
}

impl Frames {
    /// Frames of `records`.
    ///
    /// # Errors
    /// Polars' own, which would be a fault of this module.
    pub(crate) fn new(records: &[&Record]) -> PolarsResult<Frames> {
        Ok(Frames {
            sessions: sessions(records)?,
            verdicts: verdicts(records)?,
            runs: runs(records)?,
            trials: trials(records)?,
        })
    }

    fn with_device(&self, frame: &DataFrame) -> LazyFrame {
        let on = || [col("session")];
        frame.clone().lazy().join(self.sessions.clone().lazy(), on(), on(), JoinArgs::new(JoinType::Inner))
    }

    /// IDs of the latest verdict of each device, cell and pair of arms; one that was cut short counts where it is alone.
    ///
    /// # Errors
    /// As [`Frames::new`].
    pub(crate) fn latest_verdicts(&self) -> PolarsResult<Vec<String>> {
        let latest = self
            .with_device(&self.verdicts)
            .sort(["decided", "at", "verdict"], ordered())
            .group_by_stable([col("device"), col("cell"), col("candidate"), col("other")])
            .agg([col("verdict").last()])
            .sort(["verdict"], ordered())
            .collect()?;
        strings(&latest, "verdict")
    }

    /// The latest runs outside comparisons, for each device, cell and engine.
    ///
    /// # Errors
    /// As [`Frames::new`].
    pub(crate) fn benched(&self) -> PolarsResult<Vec<Benched>> {
        let groups = || [col("device"), col("cell"), col("engine")];
        let alone =
            self.with_device(&self.runs).filter(col("ok").and(col("single"))).sort(["at", "run"], ordered());
        let newest = alone.clone().group_by_stable(groups()).agg([col("session").last()]);
        let on = || [col("device"), col("cell"), col("engine"), col("session")];
        let frame = alone
            .join(newest, on(), on(), JoinArgs::new(JoinType::Inner))
            .group_by_stable(on())
            .agg([col("tps").median(), col("run").min()])
            .sort(["device", "cell", "engine"], ordered())
            .collect()?;
        let (devices, cells) = (strings(&frame, "device")?, strings(&frame, "cell")?);
        let (runs, sessions) = (strings(&frame, "run")?, strings(&frame, "session")?);
        let tps = frame.column("tps")?.f64()?;
        let rows = devices.into_iter().zip(cells).zip(runs).zip(sessions).zip(tps.iter());
        Ok(rows
            .filter_map(|((((device, cell), run), session), tps)| {
                Some(Benched { device, cell, tps: tps?, run, session })
            })
            .collect())
    }

    /// Bytes a token of each cell, where any engine told them, and the wall its runs were held against.
    ///
    /// # Errors
    /// As [`Frames::new`].
    pub(crate) fn cell_costs(&self) -> PolarsResult<Vec<CellCost>> {
        let frame = self
            .with_device(&self.runs)
            .filter(col("bytes").is_not_null())
            .sort(["at", "run"], ordered())
            .group_by_stable([col("device"), col("cell")])
            .agg([col("bytes").last(), col("wall").drop_nulls().last()])
            .sort(["device", "cell"], ordered())
            .collect()?;
        let names = strings(&frame, "device")?.into_iter().zip(strings(&frame, "cell")?);
        let (bytes, walls) = (frame.column("bytes")?.f64()?, frame.column("wall")?.f64()?);
        Ok(names
            .zip(bytes.iter().zip(walls.iter()))
            .filter_map(|((device, cell), (bytes, wall_gbps))| {
                Some(CellCost { device, cell, bytes_per_token: bytes?, wall_gbps })
            })
            .collect())
    }

    /// Configurations that ran in the latest sweep of each kernel, in the order first tried.
    ///
    /// # Errors
    /// As [`Frames::new`].
    pub(crate) fn tried(&self) -> PolarsResult<Vec<Tried>> {
        let trials = self.with_device(&self.trials).sort(["at", "trial"], ordered());
        let newest = trials.clone().group_by_stable([col("device"), col("key")]).agg([col("session").last()]);
        let on = || [col("device"), col("key"), col("session")];
        let frame = trials
            .join(newest, on(), on(), JoinArgs::new(JoinType::Inner))
            .group_by_stable([col("device"), col("key"), col("config")])
            .agg([col("ns").median(), col("pilot").any(true), col("at").min(), col("trial").min()])
            .sort(["device", "key", "at", "trial"], ordered())
            .collect()?;
        let names = strings(&frame, "device")?.into_iter().zip(strings(&frame, "key")?);
        let (pilots, times) = (frame.column("pilot")?.bool()?, frame.column("ns")?.f64()?);
        Ok(names
            .zip(pilots.iter().zip(times.iter()))
            .filter_map(|((device, key), (pilot, ns))| Some(Tried { device, key, default: pilot?, ns: ns? }))
            .collect())
    }
}

fn ordered() -> SortMultipleOptions {
    SortMultipleOptions::default().with_maintain_order(true)
}

fn strings(frame: &DataFrame, name: &str) -> PolarsResult<Vec<String>> {
    Ok(frame.column(name)?.str()?.iter().map(|text| text.unwrap_or_default().to_owned()).collect())
}

fn sessions(records: &[&Record]) -> PolarsResult<DataFrame> {
    let (mut ids, mut devices) = (Vec::new(), Vec::new());
    for record in records {
        if let Body::Session(session) = &record.body {
            ids.push(record.session_id.as_str());
            devices.push(device_id(&session.host.host_id_hash, &session.device_class));
        }
    }
    // A session that was resumed may say twice where it ran.
    df!("session" => ids, "device" => devices)?
        .lazy()
        .group_by_stable([col("session")])
        .agg([col("device").first()])
        .collect()
}

fn verdicts(records: &[&Record]) -> PolarsResult<DataFrame> {
    let (mut ids, mut sessions, mut times) = (Vec::new(), Vec::new(), Vec::new());
    let (mut cells, mut candidates, mut others) = (Vec::new(), Vec::new(), Vec::new());
    let mut decided = Vec::new();
    for record in records {
        if let Body::Verdict(verdict) = &record.body {
            ids.push(record.id.as_str());
            sessions.push(record.session_id.as_str());
            times.push(record.at.as_str());
            cells.push(verdict.cell_id.as_str());
            let (candidate, other) = match verdict.candidate {
                ArmId::A => (&verdict.a, &verdict.b),
                ArmId::B => (&verdict.b, &verdict.a),
            };
            candidates.push(arm_identity(candidate));
            others.push(arm_identity(other));
            decided.push(verdict.verdict != Judgement::Inconclusive || verdict.n_pairs > 0);
        }
    }
    df!("verdict" => ids, "session" => sessions, "at" => times, "cell" => cells,
        "candidate" => candidates, "other" => others, "decided" => decided)
}

fn runs(records: &[&Record]) -> PolarsResult<DataFrame> {
    let (mut ids, mut sessions, mut times) = (Vec::new(), Vec::new(), Vec::new());
    let (mut cells, mut singles, mut engines, mut oks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut tps, mut bytes, mut walls) = (Vec::new(), Vec::new(), Vec::new());
    for record in records {
        if let Body::Run(run) = &record.body {
            ids.push(record.id.as_str());
            sessions.push(record.session_id.as_str());
            times.push(record.at.as_str());
            cells.push(run.cell_id.as_str());
            singles.push(run.phase == Phase::Single);
            let (subject, engine) = (run.subject.clone(), run.engine.clone());
            engines.push(arm_identity(&Arm { subject, engine, ..Arm::default() }));
            oks.push(run.status == RunStatus::Ok);
            tps.push(run.median_tps);
            bytes.push(run.bytes_per_token.map(|b| b as f64));
            walls.push(run.wall_gbps);
        }
    }
    df!("run" => ids, "session" => sessions, "at" => times, "cell" => cells, "single" => singles,
        "engine" => engines, "ok" => oks, "tps" => tps, "bytes" => bytes, "wall" => walls)
}

fn trials(records: &[&Record]) -> PolarsResult<DataFrame> {
    let (mut ids, mut sessions, mut times) = (Vec::new(), Vec::new(), Vec::new());
    let (mut keys, mut configs, mut pilots, mut ns) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for record in records {
        if let Body::Trial(trial) = &record.body {
            let samples = trial.samples_ns.iter().map(|ns| *ns as f64).collect();
            let (TrialStatus::Ok | TrialStatus::Dominated, Some(visit)) = (trial.status, median(samples))
            else {
                continue;
            };
            if trial.strategy == "confirm" || visit <= 0.0 {
                continue;
            }
            ids.push(record.id.as_str());
            sessions.push(record.session_id.as_str());
            times.push(record.at.as_str());
            keys.push(trial.key.to_string());
            configs.push(trial.config_id.as_str());
            pilots.push(trial.strategy == "pilot");
            ns.push(visit);
        }
    }
    df!("trial" => ids, "session" => sessions, "at" => times, "key" => keys, "config" => configs,
        "pilot" => pilots, "ns" => ns)
}
