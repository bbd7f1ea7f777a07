//! `memra sweep`: tune this machine's kernels for a model.

use crate::context::{Context, print_json, print_table};
use crate::exit::{Exit, Failure};
use crate::output::say;
use crate::{engine, interrupt, lab, models};
use anyhow::Context as _;
use indicatif::ProgressBar;
use memra_engine::program::Program;
use memra_harness::provenance;
use memra_harness::record::{Log, Record, Trial, TrialStatus};
use memra_harness::sweep::{self, CpuDevice, KeyReport, Outcome, Strategy, Survey, SweepPlan, WorkList};
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `memra sweep`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra sweep SmolLM2 --budget 10m
  memra sweep SmolLM2 --only-missing
  memra sweep --work plan.json --kernel 'matmul/Q4_1/*' --dry-run

Each configuration is checked before it is timed; a winner enters the table
DATA/dispatch/<device-class>.toml only if it beats what rules now beyond noise,
and none while others take more of the machine than harness.max_foreign_cpu.
Ctrl-C ends it cleanly; --resume goes on where it was.")]
pub(crate) struct Args {
    /// Model file, or the name of a fetched model; --model MODEL does too
    #[arg(required_unless_present_any = ["model_flag", "work"])]
    model: Option<String>,

    #[arg(short, long = "model", hide = true, conflicts_with = "model", value_name = "MODEL")]
    model_flag: Option<String>,

    /// Take the work list from this file: what memra plan --json printed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "model_flag"])]
    work: Option<PathBuf>,

    /// Only kernels that match this glob
    #[arg(long, value_name = "GLOB")]
    kernel: Option<String>,

    /// How spaces are searched: auto, exhaustive, random
    #[arg(long, value_name = "NAME", default_value = "auto")]
    strategy: Strategy,

    /// Time for all kernels together, such as 90s, 20m or 1h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    budget: Option<Duration>,

    /// Leave kernels alone that have a valid entry
    #[arg(long)]
    only_missing: bool,

    /// Go on with the newest sweep that had the same settings
    #[arg(long)]
    resume: bool,

    /// Plant a wrong configuration in each space; it must be rejected
    #[arg(long)]
    plant_wrong: bool,

    /// Print what would be tried, and run nothing
    #[arg(long)]
    dry_run: bool,

    /// Threads [default: every physical core]
    #[arg(short, long, value_name = "N")]
    pub(super) threads: Option<usize>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn duration(text: &str) -> Result<Duration, String> {
    let fail = |_| format!("`{text}` is not a time; write it like 90s, 20m or 1h");
    let signed: jiff::SignedDuration = text.parse().map_err(fail)?;
    Duration::try_from(signed).map_err(fail)
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    let plan = SweepPlan {
        work: args.work_list(cx)?,
        kernel: args.kernel.clone(),
        strategy: args.strategy,
        budget: args.budget,
        seed: cx.config().harness.seed,
        only_missing: args.only_missing,
        plant_wrong: args.plant_wrong,
        max_foreign_cpu: cx.config().harness.max_foreign_cpu.fraction(),
        data_dir: cx.config().paths.data.clone(),
    };
    let mut device = CpuDevice::new(engine::threads(cx));
    if args.dry_run {
        return dry_run(&sweep::survey(&plan, &device)?, args.json);
    }
    // There is no child to end, so the second Ctrl-C ends this process.
    let stop = interrupt::watch(interrupt::Hard::Second)?;
    let (mut log, prior) = open_log(args, &plan, &device, cx)?;
    let mut talk = Talk { bar: cx.progress(0, "") };
    let report = sweep::run(&plan, &mut device, &mut log, &prior, &mut talk, stop);
    talk.bar.finish_and_clear();
    let report = report?;
    if args.json {
        print_json(&report)?
    } else {
        print(&report.keys)?
    }
    say!("{} trials ({} reused); table {}", report.trials, report.reused, report.table.display());
    Ok(report.code())
}

impl Args {
    fn work_list(&self, cx: &Context) -> anyhow::Result<WorkList> {
        if let Some(file) = &self.work {
            let name = file.display().to_string();
            let text = std::fs::read_to_string(file).with_context(|| name.clone())?;
            return WorkList::parse(&name, &text).map_err(|e| Failure::usage(e.to_string()));
        }
        let model = self.model.as_ref().or(self.model_flag.as_ref()).map_or("", String::as_str);
        let path = models::resolve(model, cx)?;
        let programs = super::plan::programs(&engine::open(&path)?, 1, cx)?;
        // The same JSON that `memra plan` prints is the interface, so that a sweep elsewhere gets the same list.
        let items: Vec<_> = programs.iter().flat_map(Program::work_list).collect();
        Ok(WorkList::parse(model, &serde_json::to_string(&items)?)?)
    }
}

/// The session's log, and what an interrupted sweep left in it.
fn open_log(
    args: &Args,
    plan: &SweepPlan,
    device: &CpuDevice,
    cx: &Context,
) -> anyhow::Result<(Log, Vec<Record>)> {
    let finder = lab::finder(cx)?;
    let session =
        provenance::session("sweep", &finder, None, Vec::new()).context("the provenance of this sweep")?;
    let (log, prior) = sweep::open_log(plan, device, session, args.resume)?;
    match (args.resume, prior.len()) {
        (false, _) => {}
        (true, 0) => say!("no interrupted sweep with these settings; starting a new one"),
        (true, n) => say!("going on with session {} ({n} records)", log.session_id()),
    }
    Ok((log, prior))
}

/// Tells on stderr what happens.
struct Talk {
    bar: ProgressBar,
}

impl sweep::Events for Talk {
    fn key_started(&mut self, index: usize, total: usize, survey: &Survey) {
        self.bar.set_length(total as u64);
        self.bar.set_position(index as u64);
        self.bar.set_message(survey.item.key.to_string());
    }

    fn trial(&mut self, trial: &Trial, _: bool) {
        if matches!(trial.status, TrialStatus::Incorrect | TrialStatus::Nondeterministic) {
            let reason = trial.reason.clone().unwrap_or_default();
            self.warning(&format!("{} with {}: rejected: {reason}", trial.key, trial.config_id));
        }
    }

    fn key_finished(&mut self, report: &KeyReport) {
        let text = line(report).join("  ");
        self.bar.suspend(|| say!("{text}"));
    }

    fn warning(&mut self, text: &str) {
        self.bar.suspend(|| say!("{text}"));
    }
}

fn line(report: &KeyReport) -> Vec<String> {
    let (outcome, reason) = match &report.outcome {
        Outcome::Improved => ("improved", ""),
        Outcome::Kept => ("kept", ""),
        Outcome::Default => ("default", ""),
        Outcome::Skipped { reason } => ("skipped", reason.as_str()),
        Outcome::Incorrect { reason } => ("incorrect", reason.as_str()),
        Outcome::Disturbed { reason } => ("disturbed", reason.as_str()),
        Outcome::Unmeasurable { reason } => ("unmeasurable", reason.as_str()),
    };
    let config = report.winner.as_ref().map(ToString::to_string).unwrap_or_default();
    let micros = report.expected_ns.map(|ns| format!("{:.1} µs", ns as f64 / 1e3)).unwrap_or_default();
    let faster =
        report.over_default.as_ref().map(|speedup| format!("{:.3}x", speedup.ratio)).unwrap_or_default();
    vec![
        report.survey.item.key.to_string(),
        format!("{outcome} {reason}").trim().to_owned(),
        config,
        micros,
        faster,
        report.tried.to_string(),
    ]
}

fn print(keys: &[KeyReport]) -> anyhow::Result<()> {
    let rows: Vec<_> = keys.iter().map(line).collect();
    print_table(&["kernel", "outcome", "configuration", "launch", "over default", "tried"], &[3, 4, 5], &rows)
}

fn dry_run(surveys: &[Survey], json: bool) -> anyhow::Result<Exit> {
    if json {
        print_json(&surveys)?;
        return Ok(Exit::Pass);
    }
    let row = |survey: &Survey| {
        let rules = match (&survey.incumbent, &survey.problem) {
            (_, Some(problem)) => problem.clone(),
            (Some(config), None) => config.to_string(),
            (None, None) => format!("default {}", survey.default),
        };
        let pruned: Vec<String> = survey.pruned.iter().map(|(why, count)| format!("{count} {why}")).collect();
        vec![
            survey.item.key.to_string(),
            format!("{:.1} %", 100.0 * survey.item.share),
            format!("{}/{}", survey.feasible, survey.points),
            rules,
            pruned.join(", "),
        ]
    };
    let rows: Vec<_> = surveys.iter().map(row).collect();
    print_table(&["kernel", "share", "feasible", "rules now", "pruned"], &[1, 2], &rows)?;
    Ok(Exit::Pass)
}
