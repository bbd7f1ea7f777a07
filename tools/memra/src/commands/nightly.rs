//! `memra nightly`: the whole loop, from the machine's fitness to the board.

use crate::context::{Context, print_json};
use crate::exit::{Exit, describe};
use crate::output::{say, stdout};
use crate::{interrupt, lab, models};
use anyhow::Context as _;
use memra_harness::Stop;
use memra_harness::nightly::{self, ModelSource, NightlyEvents, NightlyPlan, Stage, StageResult};
use memra_harness::subject::Finder;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The model of a night that was not told one, and where it is fetched from.
const MODEL: (&str, &str) = ("SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2");

/// Installs llama.cpp's benchmark below a folder; needs bash, python3 and a C++ compiler.
const INSTALL_LLAMA_CPP: &str = include_str!("../../../install-llama-cpp");

/// Arguments of `memra nightly`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra nightly --quick              minutes, no network
  memra nightly --quick --fetch      fetch a small real model and build llama.cpp
  memra nightly --model model.gguf   hours: every look, a full sweep

Machine, model, kernel check, memory walls, sweep, tuned against untuned, each
rival that is installed, board. With no model it makes a tiny one; with no
rival it says so. The exit code is the worst of the stages that count.")]
pub(crate) struct Args {
    /// Model file, or the name of a fetched model [default: SmolLM2 if it is
    /// there, else a tiny made-up one]
    #[arg(short, long)]
    model: Option<String>,

    /// Minutes instead of hours
    #[arg(long)]
    quick: bool,

    /// Fetch SmolLM2 and build llama.cpp where they are not there
    #[arg(long)]
    fetch: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    let model = model(args, cx)?;
    let finder = lab::finder(cx)?;
    if args.fetch {
        install_missing_rivals(&finder, cx);
    }
    let stop = interrupt::watch(interrupt::Hard::Third)?;
    let (rivals, left_out) = rivals(&finder);
    for reason in &left_out {
        say!("left out: {reason}");
    }
    let plan = NightlyPlan {
        exe: finder.self_exe,
        args: cx.loaded.as_arguments(),
        env: finder.env,
        data_dir: cx.config().paths.data.clone(),
        model,
        rivals,
        left_out,
        quick: args.quick,
    };
    night(&plan, stop, args, cx)
}

fn night(plan: &NightlyPlan, stop: &Stop, args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    let summary = nightly::run(plan, &mut Talk, stop)?;
    if args.json {
        print_json(&summary)?;
    } else {
        stdout().write_all(summary.text().as_bytes())?;
    }
    let board = cx.config().paths.boards.join("README.md");
    if board.is_file() {
        say!("board: {}", board.display());
    }
    Ok(summary.code)
}

/// The night's model: what was asked for, a fetched one, one to fetch, or a made-up one.
fn model(args: &Args, cx: &Context) -> anyhow::Result<ModelSource> {
    if let Some(model) = &args.model {
        return Ok(ModelSource::File(models::resolve(model, cx)?));
    }
    Ok(match models::resolve(MODEL.0, cx) {
        Ok(path) => ModelSource::File(path),
        Err(_) if args.fetch => ModelSource::Pull(MODEL.1.to_owned()),
        Err(_) => {
            say!("no model here; a tiny one is made up (--fetch gets a real one)");
            ModelSource::Synth
        }
    })
}

/// Rivals that are here, and why others are not.
fn rivals(finder: &Finder) -> (Vec<String>, Vec<String>) {
    let (mut here, mut left_out) = (Vec::new(), Vec::new());
    for manifest in finder.manifests.iter().filter(|manifest| manifest.rival) {
        match finder.locate(manifest) {
            Ok(_) => here.push(manifest.name.clone()),
            Err(error) => left_out.push(error.to_string()),
        }
    }
    (here, left_out)
}

/// Builds llama.cpp if it is not here. Failing that, the night goes on without it and says so.
fn install_missing_rivals(finder: &Finder, cx: &Context) {
    let missing = finder.manifests.get("llama.cpp").filter(|manifest| finder.locate(manifest).is_err());
    if missing.is_some()
        && let Err(error) = install_llama_cpp(&lab::engines_dir(cx))
    {
        say!("llama.cpp was not installed: {}", describe(&error));
    }
}

fn install_llama_cpp(engines: &Path) -> anyhow::Result<()> {
    say!("building llama.cpp in {} (about 12 CPU-minutes)", engines.display());
    let mut script = tempfile::NamedTempFile::new()?;
    script.write_all(INSTALL_LLAMA_CPP.as_bytes())?;
    let status = Command::new("bash")
        .arg(script.path())
        .arg(engines)
        .stdin(Stdio::null())
        .stdout(std::io::stderr())
        .status()
        .context("bash")?;
    anyhow::ensure!(status.success(), "the install script failed ({status}), see above");
    Ok(())
}

/// Tells on stderr which stage runs and how each ended.
struct Talk;

impl NightlyEvents for Talk {
    fn started(&mut self, stage: &Stage, _: &[String]) {
        say!("{} ...", stage.name);
    }

    fn finished(&mut self, result: &StageResult) {
        say!("{}: {} ({:.1} s)", result.name, result.outcome, result.seconds);
    }
}
