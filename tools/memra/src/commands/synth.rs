//! `memra synth`: a made-up model.

use crate::context::{Context, print_json};
use crate::exit::{Exit, Failure};
use crate::output::stdout;
use crate::{interrupt, models};
use anyhow::Context as _;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use memra_engine::synth::{PRESETS, Preset, Quant, Request, Synth};
use memra_harness::doctor::free_bytes;
use serde::Serialize;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Room to leave on a file system.
const SPARE: u64 = 64 << 20;

/// Arguments of `memra synth`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra synth                        tiny, into the models cache
  memra synth small small.gguf --seed 7
  memra synth qwen3-8b --quant Q8_0

Weights are random, so the text is nonsense; speed depends on shapes and types
alone. The same preset, types and seed give the same file.")]
pub(crate) struct Args {
    /// Shape of the model
    #[arg(default_value = "tiny", value_parser = preset_parser(), hide_possible_values = false)]
    preset: &'static Preset,

    /// File to write [default: memra-PRESET.gguf or memra-PRESET-QUANT.gguf in
    /// the models cache]
    out: Option<PathBuf>,

    /// Mix of types, for real shapes [default: Q4_K_M]
    #[arg(long, value_parser = quant_parser())]
    quant: Option<Quant>,

    /// Seed of the weights
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Keep so many layers of a real shape
    #[arg(long, value_name = "N", hide = true)]
    layers: Option<usize>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn preset_parser() -> impl TypedValueParser<Value = &'static Preset> {
    let values = PRESETS.iter().map(|preset| PossibleValue::new(preset.name).help(preset.about));
    PossibleValuesParser::new(values)
        .try_map(|name| Preset::find(&name).ok_or_else(|| format!("no preset `{name}`")))
}

fn quant_parser() -> impl TypedValueParser<Value = Quant> {
    PossibleValuesParser::new(Quant::ALL.map(Quant::name)).try_map(|name| name.parse::<Quant>())
}

#[derive(Serialize)]
struct Report {
    path: String,
    preset: &'static str,
    quant: Option<&'static str>,
    seed: u64,
    n_params: u64,
    bytes: u64,
    seconds: f64,
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    let &Args { preset, seed, layers, .. } = args;
    let quant = args.quant.or(preset.is_real().then(Quant::default));
    let synth = Synth::new(&Request { preset, quant, seed, layers })?;
    let out = match &args.out {
        Some(out) => out.clone(),
        None => models::make_cache(cx)?.join(file_name(preset, quant)),
    };
    let (n_params, bytes) = (synth.n_params(), synth.file_bytes()?);
    check_room(&out, bytes)?;

    let stop = interrupt::watch(interrupt::Hard::Second)?;
    let bar = cx.bytes_progress(bytes, preset.name);
    let begun = Instant::now();
    let flow = synth.write(&out, &mut |written| {
        bar.set_position(written);
        if stop.requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    bar.finish_and_clear();
    if flow.with_context(|| out.display().to_string())?.is_break() {
        return Ok(Exit::Interrupted);
    }
    let path = out.display().to_string();
    if args.json {
        let (quant, seconds) = (quant.map(Quant::name), begun.elapsed().as_secs_f64());
        print_json(&Report { path, preset: preset.name, quant, seed, n_params, bytes, seconds })?;
    } else {
        writeln!(stdout(), "{path}")?;
    }
    Ok(Exit::Pass)
}

fn file_name(preset: &Preset, quant: Option<Quant>) -> String {
    let quant = quant.map(|quant| format!("-{quant}")).unwrap_or_default();
    format!("memra-{}{quant}.gguf", preset.name)
}

/// Refuses a file that its file system has no room for, before a byte is written.
fn check_room(out: &Path, bytes: u64) -> anyhow::Result<()> {
    match free_bytes(out) {
        Some(free) if free < bytes.saturating_add(SPARE) => {
            let mib = |bytes: u64| bytes >> 20;
            Err(Failure::error(
                Exit::Unfit,
                format!(
                    "{}: the file takes {} MiB and {} MiB are free; make room, or name a file elsewhere",
                    out.display(),
                    mib(bytes),
                    mib(free)
                ),
            ))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_is_begun_that_does_not_fit() {
        let folder = tempfile::tempdir().unwrap();
        check_room(&folder.path().join("m.gguf"), 1).unwrap();
        let error = check_room(&folder.path().join("m.gguf"), u64::MAX).unwrap_err();
        assert_eq!(crate::exit::classify(&error), Exit::Unfit);
        assert!(error.to_string().contains("are free"), "{error}");
    }
}
