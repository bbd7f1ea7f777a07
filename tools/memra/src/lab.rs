//! From the configuration to comparisons: the finder of subjects, the plan of pairs, and progress in words.

use crate::context::{Context, print_json, print_table};
use crate::engine;
use crate::exit::Failure;
use crate::models::ModelArg;
use crate::output::say;
use anyhow::Context as _;
use indicatif::ProgressBar;
use memra_harness::ab::{self, Event, Outcome, Plan};
use memra_harness::record::{Log, RunStatus, TestShape, Verdict};
use memra_harness::subject::{Finder, Registry, Subject};
use memra_harness::telemetry::Linux;
use memra_harness::{Stop, exit::Code, provenance};
use serde::Serialize;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where engines are installed that memra fetched.
pub(crate) fn engines_dir(cx: &Context) -> PathBuf {
    cx.config().paths.cache.join("engines")
}

/// What finds subjects on this machine.
///
/// # Errors
/// This binary's path is not known, or a manifest is malformed.
pub(crate) fn finder(cx: &Context) -> anyhow::Result<Finder> {
    let mut manifests = Registry::builtin()?;
    for dir in &cx.config().competitors.dirs {
        manifests.add_dir(dir)?;
    }
    Ok(Finder {
        self_exe: std::env::current_exe().context("the path of this binary")?,
        memra_args: cx.loaded.as_engine_arguments(),
        env: cx.env.vars.clone(),
        path: cx.env.path.clone(),
        explicit: cx.config().competitors.paths.clone(),
        install_dirs: vec![engines_dir(cx)],
        manifests,
    })
}

/// What `ab` and `gate` have in common.
#[derive(Debug, clap::Args)]
pub(crate) struct PairArgs {
    #[command(flatten)]
    model: ModelArg,

    /// Tests, such as pp512, tg128, tg128@d4096 (at that depth)
    #[arg(long, value_name = "TEST", value_delimiter = ',', default_values = ["pp512", "tg128"])]
    tests: Vec<TestShape>,

    /// One look at six pairs, and three repetitions a run
    #[arg(long)]
    quick: bool,

    /// Timed repetitions a run [default: 5, 3 with --quick]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    reps: Option<u32>,

    /// Threads [default: every physical core]
    #[arg(short, long, value_name = "N")]
    pub(crate) threads: Option<usize>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl PairArgs {
    /// The comparison of subjects `a` and `b`.
    ///
    /// # Errors
    /// A subject or the model is not found.
    pub(crate) fn plan(
        &self,
        a: &str,
        b: &str,
        finder: &Finder,
        stop: &Stop,
        cx: &Context,
    ) -> anyhow::Result<Plan> {
        let model = self.model.resolve(cx)?;
        let bytes = provenance::model_bytes(&model).with_context(|| model.display().to_string())?;
        let harness = &cx.config().harness;
        let threads = u32::try_from(engine::threads(cx)).unwrap_or(u32::MAX);
        let plan = Plan::new(finder.resolve(a, stop)?, finder.resolve(b, stop)?, model, threads);
        let tests = distinct(&self.tests);
        preflight([&plan.a, &plan.b], &plan.model, &tests, stop, cx)?;
        let plan = if self.quick { plan.quick() } else { plan };
        Ok(Plan {
            tests,
            reps: self.reps.unwrap_or(plan.reps),
            margin: harness.margin.fraction(),
            seed: harness.seed,
            max_foreign_cpu: harness.max_foreign_cpu.fraction(),
            run_limit: Duration::from_secs(harness.run_limit_s),
            wall_gbps: engine::wall_gbps(bytes, cx),
            ..plan
        })
    }
}

/// `tests` without repetitions.
fn distinct(tests: &[TestShape]) -> Vec<TestShape> {
    let mut seen = HashSet::new();
    tests.iter().copied().filter(|test| seen.insert(*test)).collect()
}

/// Refuses, before anything is logged, what no comparison could measure.
fn preflight(
    subjects: [&Subject; 2],
    model: &Path,
    tests: &[TestShape],
    stop: &Stop,
    cx: &Context,
) -> anyhow::Result<()> {
    let tokens = |test: &TestShape| [test.n_prompt, test.n_gen, test.n_depth].map(u64::from).iter().sum();
    let needed: u64 = tests.iter().map(tokens).max().unwrap_or(0);
    let configured = cx.config().engine.context as u64;
    if configured > 0 && configured < needed {
        return Err(Failure::usage(format!(
            "the longest test needs {needed} tokens of context; engine.context is {configured}"
        )));
    }
    for subject in subjects {
        subject.preflight(model, needed, stop)?;
    }
    Ok(())
}

/// Runs `work` on a new session's log with progress shown.
///
/// # Errors
/// The log cannot be made, or `work` fails.
pub(crate) fn with_log<T>(
    cx: &Context,
    stop: &Stop,
    work: impl FnOnce(&mut Log, &mut ab::Context<'_>) -> Result<T, ab::AbError>,
) -> anyhow::Result<T> {
    let mut log = Log::create(&cx.config().paths.data)?;
    let mut talk = Talk { bar: cx.progress(0, "") };
    let done = work(&mut log, &mut ab::Context { telemetry: &mut Linux, events: &mut talk, stop });
    talk.bar.finish_and_clear();
    Ok(done?)
}

/// Tells on stderr what happens: a bar on a terminal, and a line for what stays worth reading.
struct Talk {
    bar: ProgressBar,
}

impl Talk {
    fn say(&self, text: &str) {
        self.bar.suspend(|| say!("{text}"));
    }
}

impl ab::Events for Talk {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::Planned { plan, cells, launches: (fewest, most), log } => {
                let (a, b) = (&plan.a, &plan.b);
                self.say(&format!("A: {} ({})\nB: {} ({})", a.spec, a.version, b.spec, b.version));
                let runs = span(fewest.to_string(), &most.to_string());
                self.say(&format!("{}: {runs} runs, log {}", cells.join(", "), log.display()));
                self.bar.set_length(u64::from(*most));
            }
            Event::Launching { cell, subject, phase, pair } => {
                let phase = format!("{phase:?}").to_lowercase();
                self.bar.set_message(format!("{cell} {phase} {pair}: {subject}"));
            }
            Event::Ran(run) => {
                self.bar.inc(1);
                if let (true, Some(reason)) = (run.status != RunStatus::Ok, &run.invalid_reason) {
                    self.say(&format!("{} {}: run does not count: {reason}", run.cell_id, run.subject));
                }
            }
            Event::Estimate { shortest, longest } => {
                let minutes = |time: &Duration| format!("{:.0}", (time.as_secs_f64() / 60.0).max(1.0));
                self.say(&format!("about {} min to go", span(minutes(shortest), &minutes(longest))));
            }
            Event::Floor { cell, margin, floor, mde, .. } => {
                let percent = |ratio: f64| format!("{:.2} %", 100.0 * ratio);
                let mde = mde.map_or_else(|| "unknown".to_owned(), percent);
                self.say(&format!(
                    "{cell}: noise floor {}, margin {}, smallest difference seen {mde}",
                    percent(*floor),
                    percent(*margin)
                ));
            }
            Event::Verdict(verdict) => {
                let reasons = verdict.reasons.join("; ");
                self.say(&format!("{}: {} {reasons}", verdict.cell_id, judgement(verdict)));
            }
            _ => {}
        }
    }
}

/// `6 to 20`, or one number where both are the same.
fn span(least: String, most: &str) -> String {
    if least == most { least } else { format!("{least} to {most}") }
}

fn judgement(verdict: &Verdict) -> String {
    match verdict.label {
        Some(label) => format!("{} ({})", verdict.verdict.words(), label.words()),
        None => verdict.verdict.words().to_owned(),
    }
}

/// Verdicts and the exit code, as JSON.
#[derive(Serialize)]
struct Report<'a> {
    code: Code,
    verdicts: Vec<&'a Verdict>,
}

/// Prints verdicts as a table or as JSON, and gives back the exit code.
///
/// # Errors
/// stdout is closed.
pub(crate) fn print_verdicts(verdicts: &[&Verdict], code: Code, json: bool) -> anyhow::Result<Code> {
    if json {
        print_json(&Report { code, verdicts: verdicts.to_vec() })?;
        return Ok(code);
    }
    let tps = |rate: Option<f64>| rate.map_or_else(|| "n/m".to_owned(), |rate| format!("{rate:.1}"));
    let row = |verdict: &&Verdict| {
        let ratio = verdict
            .candidate_ratio()
            .map_or_else(|| "n/m".to_owned(), |(ratio, lo, hi)| format!("{ratio:.3}x [{lo:.3}, {hi:.3}]"));
        let (a, b) = (&verdict.a.subject, &verdict.b.subject);
        vec![
            verdict.cell_id.clone(),
            format!("{a}: {}", tps(verdict.median_a_tps)),
            format!("{b}: {}", tps(verdict.median_b_tps)),
            ratio,
            verdict.n_pairs.to_string(),
            judgement(verdict),
        ]
    };
    let rows: Vec<_> = verdicts.iter().map(row).collect();
    print_table(&["cell", "A tok/s", "B tok/s", "candidate ratio", "pairs", "verdict"], &[4], &rows)?;
    Ok(code)
}

/// The verdicts of comparisons, in order.
pub(crate) fn verdicts<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Vec<&'a Verdict> {
    outcomes.into_iter().flat_map(|outcome| &outcome.verdicts).collect()
}
