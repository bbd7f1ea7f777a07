//! The command line: global options and one subcommand a file of `commands`.

use crate::commands::Command;
use crate::env::Env;
use clap::{ArgAction, ColorChoice, CommandFactory, FromArgMatches, Parser};
use std::path::PathBuf;

/// Benchmark, autotune and gate LLM inference on this machine.
#[derive(Debug, Parser)]
#[command(name = "memra", version, max_term_width = 80, arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// Configuration file (TOML) [default: memra/config.toml in the user's configuration folder]
    #[arg(long, global = true, value_name = "FILE", help_heading = "Global options")]
    pub(crate) config: Option<PathBuf>,

    /// Set one configuration value; may be repeated (`memra config` lists the keys)
    #[arg(long, global = true, value_name = "KEY=VALUE", action = ArgAction::Append, help_heading = "Global options")]
    pub(crate) set: Vec<String>,

    /// Folder of logs, device ledgers and dispatch tables
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options")]
    pub(crate) data: Option<PathBuf>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  memra nightly --quick --fetch      the whole loop once, in minutes
  memra pull smollm2                 fetch a small model
  memra run SmolLM2 -p 'Hello'       generate text
  memra ab SmolLM2 --a self --b llama.cpp

Exit codes: 0 pass, 1 regressed, 2 usage, 3 inconclusive, 4 incorrect,
5 unfit machine, 6 competitor failed, 7 data corrupt, 130 interrupted.";

/// Parses the process's arguments.
///
/// # Errors
/// What clap says, which includes the help and version texts that were asked for.
pub(crate) fn parse(env: &Env) -> Result<Cli, clap::Error> {
    let color = if env.no_color { ColorChoice::Never } else { ColorChoice::Auto };
    let matches = Cli::command().color(color).try_get_matches()?;
    Cli::from_arg_matches(&matches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent_and_help_fits_80_columns() {
        let mut command = Cli::command();
        command.build();
        command.clone().debug_assert();
        let mut pages = vec![command.clone()];
        while let Some(mut page) = pages.pop() {
            pages.extend(page.get_subcommands().cloned());
            let help = page.render_long_help().to_string();
            for line in help.lines() {
                assert!(line.chars().count() <= 80, "{}: {line}", page.get_name());
            }
        }
    }
}
