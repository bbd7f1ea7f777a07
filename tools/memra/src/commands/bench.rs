//! `memra bench`: speed of prompt processing and generation, in the terms of llama-bench.

mod report;

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::{engine, models};
use memra_engine::bench::{BenchOptions, BenchTest, bench};
use memra_engine::{Session, SessionOptions};
use report::{Machine, Row};

/// Arguments of `memra bench`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra bench SmolLM2
  memra bench SmolLM2 -p 512,1024 -n 0 -d 0,4096 -o jsonl

Field names of json and jsonl are llama-bench's; memra's own begin with memra_.")]
pub(crate) struct Args {
    /// Model file, or the name of a fetched model
    model: String,

    /// Prompt lengths to time; 0 times none
    #[arg(short = 'p', long, value_name = "N", value_delimiter = ',', default_value = "512")]
    n_prompt: Vec<usize>,

    /// Numbers of generated tokens to time; 0 times none
    #[arg(short = 'n', long, value_name = "N", value_delimiter = ',', default_value = "128")]
    n_gen: Vec<usize>,

    /// Tokens in the context before the clock starts
    #[arg(short = 'd', long, value_name = "N", value_delimiter = ',', default_value = "0")]
    n_depth: Vec<usize>,

    /// Timed repetitions
    #[arg(short = 'r', long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repetitions: u32,

    /// Threads [default: every physical core]
    #[arg(short, long, value_name = "N")]
    pub(super) threads: Option<usize>,

    /// Skip the untimed run before the first repetition
    #[arg(long)]
    no_warmup: bool,

    /// Form of the output
    #[arg(short, long, value_name = "FORM", default_value = "md")]
    output: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// A Markdown table
    Md,
    /// One JSON array
    Json,
    /// One JSON object a line, as each test ends
    Jsonl,
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    let path = models::resolve(&args.model, cx)?;
    let model = engine::load(&path, cx)?;
    let options = engine::session_options(cx)?;
    let machine = Machine::new(&model, &options);
    let settings = BenchOptions {
        repetitions: args.repetitions as usize,
        warmup: !args.no_warmup,
        ..BenchOptions::default()
    };
    let tests = args.tests()?;
    // Before the first is timed: none is to be lost to a later one that cannot be.
    let trained = model.file().config().n_ctx_train;
    let context = options.context.unwrap_or(trained);
    for test in &tests {
        let needed = test.tokens().unwrap_or(usize::MAX);
        if needed > context {
            return Err(memra_engine::Error::Context { needed, context, trained }.into());
        }
    }
    let bar = cx.progress(tests.len() as u64, "bench");
    let mut rows = Vec::new();
    for test in tests {
        // Without a configured context each test gets exactly what it needs.
        let context = options.context.or(test.tokens());
        let mut session = Session::new(model.clone(), SessionOptions { context, ..options.clone() })?;
        let row = Row::new(&machine, &test, bench(&mut session, &test, &settings)?);
        bar.inc(1);
        if args.output == Form::Jsonl {
            bar.suspend(|| row.print_line())?;
        }
        rows.push(row);
    }
    bar.finish_and_clear();
    match args.output {
        Form::Md => report::print_markdown(&rows, cx)?,
        Form::Json => crate::context::print_json(&rows)?,
        Form::Jsonl => {}
    }
    Ok(Exit::Pass)
}

impl Args {
    /// For each depth the prompts, then the generations, as llama-bench orders them.
    fn tests(&self) -> anyhow::Result<Vec<BenchTest>> {
        let mut tests = Vec::new();
        for &n_depth in &self.n_depth {
            let prompts = self.n_prompt.iter().filter(|&&n| n > 0);
            let gens = self.n_gen.iter().filter(|&&n| n > 0);
            tests.extend(prompts.map(|&n_prompt| BenchTest { n_prompt, n_gen: 0, n_depth }));
            tests.extend(gens.map(|&n_gen| BenchTest { n_prompt: 0, n_gen, n_depth }));
        }
        if tests.is_empty() {
            return Err(Failure::usage("nothing to time: -p and -n are both 0"));
        }
        Ok(tests)
    }
}
