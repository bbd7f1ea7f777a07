//! `memra plan`: what a model computes, and the tuner's work list.

use crate::context::{Context, print_json};
use crate::exit::{Exit, Failure};
use crate::output::stdout;
use crate::{engine, models};
use memra_engine::CHUNK;
use memra_engine::model::ModelFile;
use memra_engine::program::{Bucket, Program, WorkItem};
use memra_kernels::dispatch::{Choice, Dispatcher};
use memra_kernels::{NumericPath, family};
use serde::Serialize;
use std::io::Write;

/// Arguments of `memra plan`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra plan SmolLM2
  memra plan SmolLM2 --dispatch      which configuration rules each kernel
  memra plan SmolLM2 --json          the work list that memra sweep tunes")]
pub(crate) struct Args {
    /// Model file, or the name of a fetched model
    model: String,

    /// Sequences decoded together
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    batch: u16,

    /// Print which configuration rules each kernel, and why
    #[arg(long)]
    dispatch: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Plan {
    model: String,
    class: String,
    programs: Vec<Summary>,
    work: Vec<Work>,
}

/// One Program in figures.
#[derive(Serialize)]
struct Summary {
    path: NumericPath,
    rows: usize,
    context: usize,
    n_ops: usize,
    bytes: u64,
    flops: u64,
    weight_bytes: u64,
    buffer_bytes: u64,
    state_bytes_per_token: u64,
}

/// A kernel to run, and the configuration that rules it.
#[derive(Serialize)]
struct Work {
    #[serde(flatten)]
    item: WorkItem,
    dispatch: Option<Choice>,
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    super::check::known_fault(cx)?;
    let path = models::resolve(&args.model, cx)?;
    let file = engine::open(&path)?;
    let programs = programs(&file, usize::from(args.batch), cx)?;
    let dispatcher = engine::dispatcher(cx)?;
    let work: Vec<Work> =
        programs.iter().flat_map(Program::work_list).map(|item| Work::new(item, &dispatcher)).collect();
    if args.json {
        let class = cx.config().engine.class.to_string();
        let programs = programs.iter().map(Summary::new).collect();
        print_json(&Plan { model: path.display().to_string(), class, programs, work })?;
    } else if args.dispatch {
        let mut out = stdout();
        for Work { item, dispatch } in &work {
            let Some(choice) = dispatch else { continue };
            writeln!(
                out,
                "{:<48} {:<40} {}",
                item.key.to_string(),
                choice.config.to_string(),
                choice.origin
            )?;
        }
    } else {
        let mut out = stdout();
        for program in &programs {
            writeln!(out, "{program}")?;
        }
    }
    Ok(Exit::Pass)
}

/// The Programs of a decode step and of a whole prompt chunk, at the configured context.
pub(super) fn programs(file: &ModelFile, batch: usize, cx: &Context) -> anyhow::Result<Vec<Program>> {
    let options = engine::session_options(cx)?;
    let trained = file.config().n_ctx_train;
    let context = options.context.unwrap_or(trained.min(4096));
    if context > trained {
        return Err(Failure::usage(format!(
            "engine.context is {context}; the model was trained for {trained}"
        )));
    }
    let bucket =
        |path, rows, logits| Bucket { path, class: options.class, rows, logits, kv: options.kv, context };
    let decode = file.program(bucket(NumericPath::Decode, batch, batch))?;
    let prompt = file.program(bucket(NumericPath::Prompt, CHUNK.min(context), 1))?;
    Ok(vec![decode, prompt])
}

impl Work {
    fn new(item: WorkItem, dispatcher: &Dispatcher) -> Work {
        let dispatch = family::family(&item.key.family).map(|family| dispatcher.choose(family, &item.key));
        Work { item, dispatch }
    }
}

impl Summary {
    fn new(program: &Program) -> Summary {
        let cost = program.cost();
        Summary {
            path: program.bucket.path,
            rows: program.bucket.rows,
            context: program.bucket.context,
            n_ops: program.ops.len(),
            bytes: cost.bytes,
            flops: cost.flops,
            weight_bytes: program.weight_bytes(),
            buffer_bytes: program.buffer_bytes(),
            state_bytes_per_token: program.state_bytes_per_token(),
        }
    }
}
