//! `memra config`: the configuration in force.

use crate::config::{Entry, plain};
use crate::context::{Context, print_json, print_table};
use crate::exit::Exit;

/// Arguments of `memra config`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra config
  memra config --set engine.threads=2 --json

Sources, later wins: defaults, the configuration file (--config, else
MEMRA_CONFIG, else memra/config.toml in the user's configuration folder),
--set, flags.")]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    let entries = cx.loaded.entries();
    if args.json {
        print_json(&entries)?;
    } else {
        let row = |entry: &Entry| vec![entry.key.clone(), plain(&entry.value), entry.source.clone()];
        let rows: Vec<_> = entries.iter().map(row).collect();
        print_table(&["key", "value", "source"], &[], &rows)?;
    }
    Ok(Exit::Pass)
}
