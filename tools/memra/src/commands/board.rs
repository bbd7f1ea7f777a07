//! `memra board`: the logs as pictures and tables.

use crate::context::{Context, print_json};
use crate::exit::Exit;
use crate::output::{say, stdout};
use memra_board::Inputs;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Arguments of `memra board`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra board                        draw it anew
  memra board --check                exit 1 if it differs from what the logs give

In a memra checkout the README's region between the BOARD markers is renewed
too, unless boards go elsewhere.")]
pub(crate) struct Args {
    /// Write nothing; exit 1 when what lies there differs from what the logs give
    #[arg(long)]
    check: bool,

    /// Markdown file whose region between the BOARD markers is renewed
    #[arg(long, value_name = "FILE")]
    readme: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    let paths = &cx.config().paths;
    let inputs = Inputs {
        data_dir: paths.data.clone(),
        boards_dir: paths.boards.clone(),
        readme: args.readme.clone().or_else(|| checkout_readme(cx)),
    };
    if args.check { check(args, &inputs) } else { render(args, &inputs) }
}

/// The checkout's README, where the checkout's own boards are drawn.
fn checkout_readme(cx: &Context) -> Option<PathBuf> {
    let root = cx.env.checkout.as_ref()?;
    let own = cx.config().paths.boards == root.join("boards");
    own.then(|| root.join("README.md")).filter(|readme| readme.is_file())
}

fn render(args: &Args, inputs: &Inputs) -> anyhow::Result<Exit> {
    let report = memra_board::render(inputs)?;
    if args.json {
        let (written, unchanged, removed) = (&report.written, &report.unchanged, &report.removed);
        print_json(&json!({
            "written": written, "unchanged": unchanged, "removed": removed,
            "comparisons": report.comparisons, "warnings": report.warnings,
        }))?;
    } else {
        let mut out = stdout();
        for path in &report.written {
            writeln!(out, "{}", path.display())?;
        }
    }
    for warning in &report.warnings {
        say!("warning: {warning}");
    }
    say!(
        "{} comparisons; {} files written, {} as they were, {} removed",
        report.comparisons,
        report.written.len(),
        report.unchanged.len(),
        report.removed.len()
    );
    Ok(Exit::Pass)
}

fn check(args: &Args, inputs: &Inputs) -> anyhow::Result<Exit> {
    let found = memra_board::check(inputs)?;
    if args.json {
        print_json(&json!({ "differing": found.differing, "warnings": found.warnings }))?;
    } else {
        let mut out = stdout();
        for path in &found.differing {
            writeln!(out, "{}", path.display())?;
        }
    }
    for warning in &found.warnings {
        say!("warning: {warning}");
    }
    Ok(if found.differing.is_empty() { Exit::Pass } else { Exit::Regressed })
}
