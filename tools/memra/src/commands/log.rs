//! `memra log`: the records.

use crate::context::{Context, print_json};
use crate::exit::{Exit, Failure};
use crate::output::{say, stdout};
use clap::Subcommand;
use memra_harness::record;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;

/// Arguments of `memra log`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra log check
  memra log check --data tune-data --json")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Read every record, and say which lines are not whole
    #[command(after_help = "\
Examples:
  memra log check
  memra log check --data tune-data --json

Exits 7 when a line other than a torn last one is not a valid record, or when
two records differ under one ID.")]
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Serialize)]
struct Report {
    records: usize,
    kinds: BTreeMap<&'static str, usize>,
    warnings: Vec<String>,
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    let Action::Check { json } = args.action;
    let data = &cx.config().paths.data;
    if !data.is_dir() {
        let data = data.display();
        return Err(Failure::usage(format!(
            "{data}: no such folder; measuring makes it, --data names another"
        )));
    }
    let reading = record::read_dir(data)?;
    let mut kinds = BTreeMap::new();
    for record in &reading.records {
        *kinds.entry(record.body.kind()).or_default() += 1;
    }
    let report = Report { records: reading.records.len(), kinds, warnings: reading.warnings };
    if json {
        print_json(&report)?;
    } else {
        let mut out = stdout();
        writeln!(out, "{} records", report.records)?;
        for (kind, count) in &report.kinds {
            writeln!(out, "{count:>8} {kind}")?;
        }
    }
    for warning in &report.warnings {
        say!("warning: {warning}");
    }
    Ok(Exit::Pass)
}
