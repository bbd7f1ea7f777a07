//! `memra ab`: two subjects, interleaved pairs, one verdict a cell.

use crate::context::Context;
use crate::exit::Exit;
use crate::interrupt;
use crate::lab::{self, PairArgs};
use memra_harness::ab;

/// Arguments of `memra ab`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra ab SmolLM2 --a self --b llama.cpp
  memra ab SmolLM2 --a ./memra-old --b self --tests tg128
  memra ab SmolLM2 --a self --b config:slow=3% --quick

A subject is self, the path of a memra binary, config:KEY=VALUE or config:FILE
(this binary with that configuration), or a rival's name. Ctrl-C: the run in
hand ends, and verdicts are given from whole blocks; twice: it is ended.")]
pub(crate) struct Args {
    /// The base
    #[arg(long, value_name = "SUBJECT")]
    a: String,

    /// What is compared with it
    #[arg(long, value_name = "SUBJECT")]
    b: String,

    #[command(flatten)]
    pub(super) pairs: PairArgs,
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    let stop = interrupt::watch(interrupt::Hard::Third)?;
    let finder = lab::finder(cx)?;
    let plan = args.pairs.plan(&args.a, &args.b, &finder, stop, cx)?;
    let outcome = lab::with_log(cx, stop, |log, context| ab::run(&plan, &finder, log, context))?;
    lab::print_verdicts(&lab::verdicts([&outcome]), outcome.code(), args.pairs.json)
}
