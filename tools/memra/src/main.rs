//! `memra`: benchmarking and autotuning of LLM inference on one machine, with an engine of its own.
//!
//! Thin over the crates: this binary reads arguments and configuration, calls them, and prints. It is also the one
//! place that reads environment variables; nothing below `main` does.

mod cli;
mod commands;
mod config;
mod context;
mod download;
mod engine;
mod env;
mod exit;
mod interrupt;
mod lab;
mod models;
mod output;

use crate::env::Env;
use crate::exit::Exit;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let env = read_env();
    let exit = match cli::parse(&env) {
        Ok(invocation) => run(env, &invocation),
        Err(error) => {
            // Help and version go to stdout and are no error; clap tells which is which.
            _ = error.print();
            if error.use_stderr() { Exit::Usage } else { Exit::Pass }
        }
    };
    ExitCode::from(exit.number())
}

fn read_env() -> Env {
    let path = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let text = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    Env {
        home: path("HOME"),
        xdg_data: path("XDG_DATA_HOME"),
        xdg_cache: path("XDG_CACHE_HOME"),
        xdg_config: path("XDG_CONFIG_HOME"),
        memra_config: path("MEMRA_CONFIG"),
        hf_endpoint: text("HF_ENDPOINT"),
        hf_token: text("HF_TOKEN"),
        ca_file: path("SSL_CERT_FILE"),
        no_color: path("NO_COLOR").is_some(),
        vars: std::env::vars_os().collect(),
        path: std::env::var_os("PATH").map(|dirs| std::env::split_paths(&dirs).collect()).unwrap_or_default(),
        checkout: std::env::current_dir().ok().and_then(|folder| env::checkout(&folder)),
    }
}

fn run(env: Env, invocation: &cli::Cli) -> Exit {
    let result =
        context::Context::new(env, invocation).and_then(|cx| commands::run(&invocation.command, &cx));
    match result {
        Ok(exit) => exit,
        Err(error) => {
            output::say!("memra: {}", exit::describe(&error));
            exit::classify(&error)
        }
    }
}
