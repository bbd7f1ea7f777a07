//! `memra doctor`: is this machine fit to measure?

use crate::context::{Context, print_json, print_table};
use crate::exit::Exit;
use memra_harness::doctor;

/// Arguments of `memra doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra doctor

Takes about a second. Exits 5 when runs would not count.")]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    let findings = doctor::examine(&cx.config().paths.data);
    if args.json {
        print_json(&findings)?;
    } else {
        let state = |finding: &doctor::Finding| format!("{:?}", finding.state).to_lowercase();
        let rows: Vec<_> =
            findings.iter().map(|f| vec![f.name.to_owned(), state(f), f.text.clone()]).collect();
        print_table(&["what", "state", "finding"], &[], &rows)?;
    }
    Ok(doctor::code(&findings))
}
