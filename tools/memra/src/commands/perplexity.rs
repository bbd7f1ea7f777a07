//! `memra perplexity`: how well a model predicts a text, and how far its predictions are from another's.

mod base;

use crate::context::{Context, print_json};
use crate::exit::{Exit, Failure};
use crate::output::stdout;
use crate::{engine, models};
use anyhow::Context as _;
use base::{BaseHeader, BaseReader, BaseWriter};
use memra_engine::Session;
use memra_engine::perplexity::{Divergence, DivergenceSums, Perplexity, PerplexityOptions, perplexity};
use memra_text::EncodeOptions;
use serde::Serialize;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Arguments of `memra perplexity`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra perplexity SmolLM2 text.txt
  memra perplexity model-f16.gguf text.txt --save-base base.kld
  memra perplexity model-q4.gguf text.txt --kld base.kld

As llama.cpp's llama-perplexity: chunks of --context tokens, the second half of
each scored. Computes in class f32 with an f32 KV cache unless the configuration
says otherwise. A base holds every scored position's logits: a vocabulary of
four-byte numbers each.")]
pub(crate) struct Args {
    /// Model file, or the name of a fetched model
    model: String,

    /// Text to score, UTF-8
    file: PathBuf,

    /// Tokens a chunk
    #[arg(short, long, value_name = "N", default_value_t = 512)]
    context: usize,

    /// Chunks at most [default: all]
    #[arg(long, value_name = "N")]
    chunks: Option<NonZeroUsize>,

    /// Compare with the logits in a file that --save-base wrote
    #[arg(long, value_name = "BASE", conflicts_with = "save_base")]
    kld: Option<PathBuf>,

    /// Write the logits, for --kld of another model or class
    #[arg(long, value_name = "BASE")]
    save_base: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    perplexity: Perplexity,
    #[serde(skip_serializing_if = "Option::is_none")]
    divergence: Option<Divergence>,
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    let path = models::resolve(&args.model, cx)?;
    let text = std::fs::read(&args.file).with_context(|| args.file.display().to_string())?;
    let text = String::from_utf8(text)
        .map_err(|_| Failure::usage(format!("{}: not UTF-8 text", args.file.display())))?;
    let mut session = engine::exact_session(&path, cx)?;
    let tokenizer = session.model().file().tokenizer()?.clone();
    let options = EncodeOptions { add_special: true, parse_special: false };
    let tokens = tokenizer.encode(&text, options);
    let settings = PerplexityOptions {
        context: args.context,
        chunks: args.chunks.map_or(usize::MAX, NonZeroUsize::get),
        bos: tokenizer.bos().filter(|bos| tokenizer.encode("", options).first() == Some(bos)),
    };
    let header = BaseHeader::new(session.model().file().config().n_vocab, &settings, &tokens);
    let mut divergence = DivergenceSums::default();
    let perplexity = if let Some(base) = &args.kld {
        let mut reader = BaseReader::open(base, &header)?;
        score(&mut session, &tokens, &settings, cx, &mut |logits, next| {
            divergence.add(reader.next()?, logits, next);
            Ok(())
        })?
    } else if let Some(base) = &args.save_base {
        let mut writer = BaseWriter::create(base, &[&path, &args.file], &header)
            .with_context(|| base.display().to_string())?;
        let found = score(&mut session, &tokens, &settings, cx, &mut |logits, _| writer.append(logits))?;
        writer.finish()?;
        found
    } else {
        score(&mut session, &tokens, &settings, cx, &mut |_, _| Ok(()))?
    };
    let report = Report { perplexity, divergence: args.kld.is_some().then(|| divergence.finish()) };
    if args.json {
        print_json(&report)?;
    } else {
        print(&report, args.kld.as_deref())?;
    }
    Ok(Exit::Pass)
}

/// Scores the text; `row` sees the logits of each scored position, and the token that follows.
fn score(
    session: &mut Session,
    tokens: &[u32],
    settings: &PerplexityOptions,
    cx: &Context,
    row: &mut dyn FnMut(&[f32], u32) -> anyhow::Result<()>,
) -> anyhow::Result<Perplexity> {
    let bar = cx.progress((tokens.len() / settings.context.max(1)).min(settings.chunks) as u64, "perplexity");
    let mut failed = None;
    let found = perplexity(
        session,
        tokens,
        settings,
        &mut |logits, next| {
            if failed.is_none() {
                failed = row(logits, next).err();
            }
            failed.is_none()
        },
        &mut |done| bar.set_position(done as u64),
    );
    bar.finish_and_clear();
    failed.map_or(Ok(()), Err)?;
    Ok(found?)
}

fn print(report: &Report, base: Option<&Path>) -> anyhow::Result<()> {
    let Perplexity { perplexity, error, chunks, scored } = report.perplexity;
    let mut out = stdout();
    writeln!(
        out,
        "perplexity          {perplexity:.4} ± {error:.4}   {chunks} chunks, {scored} tokens scored"
    )?;
    if let (Some(divergence), Some(base)) = (&report.divergence, base) {
        let Divergence { mean_kld, p99_kld, max_kld, mean_abs_dlogprob, same_top, .. } = divergence;
        writeln!(out, "against {}:", base.display())?;
        writeln!(
            out,
            "KL divergence       mean {mean_kld:.6}, 99 % below {p99_kld:.6}, largest {max_kld:.6}"
        )?;
        writeln!(out, "|Δ logprob|         mean {mean_abs_dlogprob:.6}")?;
        writeln!(out, "same likeliest      {:.2} %", 100.0 * same_top)?;
    }
    Ok(out.flush()?)
}
