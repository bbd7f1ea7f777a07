//! `memra gate`: is a candidate correct, and not slower than its base?

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::lab::{self, PairArgs};
use memra_harness::gate::{self, GatePlan};
use std::time::Duration;

/// Arguments of `memra gate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra gate SmolLM2 --base ./memra-main --rival llama.cpp
  memra gate SmolLM2 --candidate config:wrong=matmul      exits 4
  memra gate SmolLM2 --candidate config:slow=50%          exits 1 (quiet machine)

Correctness first: a candidate that computes wrong results is not timed. A
rival's comparison informs; it does not decide.")]
pub(crate) struct Args {
    /// What the candidate is compared with
    #[arg(long, value_name = "SUBJECT", default_value = "self")]
    base: String,

    /// What is judged
    #[arg(long, value_name = "SUBJECT", default_value = "self")]
    candidate: String,

    /// A rival to compare the candidate with too; may be repeated
    #[arg(long, value_name = "NAME")]
    rival: Vec<String>,

    /// Let bits differ from the base's although reduction orders do not
    #[arg(long)]
    allow_new_bits: bool,

    #[command(flatten)]
    pub(super) pairs: PairArgs,
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    let stop = interrupt::watch(interrupt::Hard::Third)?;
    let finder = lab::finder(cx)?;
    let mut plan = GatePlan::new(args.pairs.plan(&args.base, &args.candidate, &finder, stop, cx)?);
    for name in &args.rival {
        let rival = finder.resolve(name, stop)?;
        if !rival.is_rival() {
            let known: Vec<_> =
                finder.manifests.iter().filter(|m| m.rival).map(|m| m.name.as_str()).collect();
            let known = known.join(", ");
            return Err(Failure::usage(format!("--rival {name}: not a rival's name; there are: {known}")));
        }
        plan.rivals.push(rival);
    }
    plan.allow_new_bits = args.allow_new_bits;
    plan.check_limit = Duration::from_secs(cx.config().harness.check_limit_s);
    let outcome = lab::with_log(cx, stop, |log, context| gate::run(&plan, &finder, log, context))?;
    let mut verdicts = vec![&outcome.check];
    verdicts.extend(lab::verdicts(outcome.base.iter().chain(outcome.rivals.iter().map(|(_, rival)| rival))));
    lab::print_verdicts(&verdicts, outcome.code(), args.pairs.json)
}
