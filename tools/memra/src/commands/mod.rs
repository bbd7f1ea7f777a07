//! One file a command.

mod ab;
mod bench;
mod board;
mod check;
mod config;
mod detokenize;
mod doctor;
mod gate;
mod inspect;
mod log;
mod logits;
mod nightly;
mod perplexity;
mod plan;
mod probe;
mod pull;
mod run;
mod sweep;
mod synth;
mod template;
mod tokenize;

use crate::context::Context;
use crate::exit::Exit;
use clap::Subcommand;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Do the whole loop: tune, check, compare, draw the board
    Nightly(nightly::Args),
    /// Fetch a model into the models cache
    Pull(pull::Args),
    /// Show what a model file holds
    Inspect(inspect::Args),
    /// Generate text
    Run(run::Args),
    /// Show a chat as the model reads it
    Template(template::Args),
    /// Time prompt processing and generation
    Bench(bench::Args),
    /// Compare two subjects in interleaved pairs
    Ab(ab::Args),
    /// Judge a candidate: correct, and not slower than its base?
    Gate(gate::Args),
    /// Tune this machine's kernels for a model
    Sweep(sweep::Args),
    /// Check kernels, and a model, for correct results
    Check(check::Args),
    /// Draw the board from the logs
    Board(board::Args),
    /// Show what a model computes, and which configuration rules each kernel
    Plan(plan::Args),
    /// Score a text: perplexity, and the distance to another model
    Perplexity(perplexity::Args),
    /// Write logits to a NumPy file
    Logits(logits::Args),
    /// Turn text into token ids
    Tokenize(tokenize::Args),
    /// Turn token ids into text
    Detokenize(detokenize::Args),
    /// Make up a model with random weights
    Synth(synth::Args),
    /// Measure this machine's memory bandwidth and thread hand-off
    Probe(probe::Args),
    /// Say whether this machine is fit to measure
    Doctor(doctor::Args),
    /// Check the logs
    Log(log::Args),
    /// Print every configuration value and where it came from
    Config(config::Args),
}

/// Flag, configuration key, value.
type Setting = (&'static str, &'static str, String);

impl Command {
    /// Flags that are short forms of configuration keys.
    pub(crate) fn settings(&self) -> Vec<Setting> {
        let threads = match self {
            Command::Run(args) => args.threads,
            Command::Bench(args) => args.threads,
            Command::Sweep(args) => args.threads,
            Command::Ab(args) => args.pairs.threads,
            Command::Gate(args) => args.pairs.threads,
            _ => None,
        };
        threads.map(|n| ("--threads", "engine.threads", n.to_string())).into_iter().collect()
    }
}

/// Runs the command.
pub(crate) fn run(command: &Command, cx: &Context) -> anyhow::Result<Exit> {
    match command {
        Command::Nightly(args) => nightly::run(args, cx),
        Command::Pull(args) => pull::run(args, cx),
        Command::Inspect(args) => inspect::run(args, cx),
        Command::Run(args) => run::run(args, cx),
        Command::Template(args) => template::run(args, cx),
        Command::Bench(args) => bench::run(args, cx),
        Command::Ab(args) => ab::run(args, cx),
        Command::Gate(args) => gate::run(args, cx),
        Command::Sweep(args) => sweep::run(args, cx),
        Command::Check(args) => check::run(args, cx),
        Command::Board(args) => board::run(args, cx),
        Command::Plan(args) => plan::run(args, cx),
        Command::Perplexity(args) => perplexity::run(args, cx),
        Command::Logits(args) => logits::run(args, cx),
        Command::Tokenize(args) => tokenize::run(args, cx),
        Command::Detokenize(args) => detokenize::run(args, cx),
        Command::Synth(args) => synth::run(args, cx),
        Command::Probe(args) => probe::run(args, cx),
        Command::Doctor(args) => doctor::run(args, cx),
        Command::Log(args) => log::run(args, cx),
        Command::Config(args) => config::run(args, cx),
    }
}
