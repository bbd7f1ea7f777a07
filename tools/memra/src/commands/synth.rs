//! `memra synth`: a made-up model.

use crate::context::Context;
use crate::exit::Exit;
use crate::models;
use crate::output::stdout;
use anyhow::Context as _;
use memra_engine::synth;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Arguments of `memra synth`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra synth                        tiny, into the models cache
  memra synth small small.gguf --seed 7

Weights are random, so the text is nonsense; speed depends on shapes alone. The
same preset and seed give the same file.")]
pub(crate) struct Args {
    /// Size of the model
    #[arg(default_value = "tiny")]
    preset: Preset,

    /// File to write [default: memra-PRESET.gguf in the models cache]
    out: Option<PathBuf>,

    /// Seed of the weights
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Preset {
    /// About 2 MB: computes in milliseconds
    Tiny,
    /// About 65 MB: more than caches hold
    Small,
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    let (name, write): (_, fn(&Path, u64) -> _) = match args.preset {
        Preset::Tiny => ("memra-tiny.gguf", synth::tiny),
        Preset::Small => ("memra-small.gguf", synth::small),
    };
    let out = match &args.out {
        Some(out) => out.clone(),
        None => models::make_cache(cx)?.join(name),
    };
    write(&out, args.seed).with_context(|| out.display().to_string())?;
    writeln!(stdout(), "{}", out.display())?;
    Ok(Exit::Pass)
}
