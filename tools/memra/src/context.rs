//! What every command gets: the configuration, the surroundings, and where to talk.

use crate::cli::Cli;
use crate::config::{self, Config, Loaded, Request};
use crate::env::Env;
use crate::output::stdout;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{IsTerminal, Write};

/// One invocation.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) env: Env,
    pub(crate) loaded: Loaded,
}

impl Context {
    /// Reads the configuration.
    pub(crate) fn new(env: Env, cli: &Cli) -> anyhow::Result<Context> {
        let mut flags = Vec::new();
        if let Some(data) = &cli.data {
            flags.push(("--data", "paths.data", data.display().to_string()));
        }
        flags.extend(cli.command.settings());
        let request = Request { file: cli.config.clone(), set: cli.set.clone(), flags };
        let loaded = config::load(&env, &request)?;
        Ok(Context { env, loaded })
    }

    /// The configuration in force.
    pub(crate) fn config(&self) -> &Config {
        &self.loaded.config
    }

    /// A progress bar on stderr; silent unless stderr is a terminal.
    pub(crate) fn progress(&self, total: u64, what: &'static str) -> ProgressBar {
        progress_bar(total, what, "{msg} {wide_bar} {pos}/{len} {eta}")
    }

    /// A progress bar of bytes, likewise.
    pub(crate) fn bytes_progress(&self, total: u64, what: impl Into<Cow<'static, str>>) -> ProgressBar {
        progress_bar(total, what, "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
    }
}

fn progress_bar(total: u64, what: impl Into<Cow<'static, str>>, template: &str) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(total), target).with_message(what);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Prints `value` as indented JSON.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut out = stdout();
    serde_json::to_writer_pretty(&mut out, value).map_err(std::io::Error::from)?;
    writeln!(out)?;
    Ok(out.flush()?)
}

/// Prints rows under a header, in aligned columns; `right` lists the columns of numbers.
pub(crate) fn print_table(header: &[&str], right: &[usize], rows: &[Vec<String>]) -> anyhow::Result<()> {
    let mut out = stdout();
    write_table(&mut out, header, right, rows)?;
    Ok(out.flush()?)
}

fn write_table(
    out: &mut impl Write,
    header: &[&str],
    right: &[usize],
    rows: &[Vec<String>],
) -> std::io::Result<()> {
    let header: Vec<String> = header.iter().map(|title| (*title).to_owned()).collect();
    let lines = || std::iter::once(&header).chain(rows);
    let width =
        |i: usize| lines().filter_map(|line| line.get(i)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    for line in lines() {
        let mut text = String::new();
        for (i, (cell, &width)) in line.iter().zip(&widths).enumerate() {
            let cell =
                if right.contains(&i) { format!("{cell:>width$}  ") } else { format!("{cell:<width$}  ") };
            text.push_str(&cell);
        }
        writeln!(out, "{}", text.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_nothing_trails() {
        let rows = [vec!["µs".to_owned(), "1".to_owned()], vec!["x".to_owned(), "10".to_owned()]];
        let mut out = Vec::new();
        write_table(&mut out, &["what", "n"], &[1], &rows).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "what   n\nµs     1\nx     10\n");
    }
}
