//! `memra tokenize`: text to token ids.

use crate::context::{Context, print_json};
use crate::exit::{Exit, Failure};
use crate::models;
use crate::output::stdout;
use anyhow::Context as _;
use memra_engine::tokenizer;
use memra_text::{EncodeOptions, Tokenizer};
use serde::Serialize;
use std::io::{Read, Write};

/// Arguments of `memra tokenize`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra tokenize SmolLM2 'The lighthouse keeper'
  memra tokenize model-folder --json < text.txt
  memra tokenize SmolLM2 -f text.txt | memra detokenize SmolLM2 -

Prints the ids on one line. With --json also the piece of text that each stands
for: a string, or a list of bytes where it is not whole characters.")]
pub(crate) struct Args {
    /// Model file, folder with tokenizer.json, a tokenizer.json, or the name of a
    /// fetched model
    model: String,

    /// Text; - or nothing reads standard input
    #[arg(default_value = "-", allow_hyphen_values = true)]
    text: String,

    /// Read the text from a file
    #[arg(short, long, value_name = "FILE", conflicts_with = "text")]
    file: Option<std::path::PathBuf>,

    /// Put no bos and eos around the text, and take names of control tokens in it,
    /// such as <|im_end|>, as text
    #[arg(long)]
    no_specials: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'t> {
    ids: &'t [u32],
    pieces: Vec<Piece<'t>>,
}

/// What a token stands for.
#[derive(Serialize)]
#[serde(untagged)]
enum Piece<'t> {
    Text(&'t str),
    /// Parts of characters.
    Bytes(&'t [u8]),
}

impl Piece<'_> {
    fn of(tokenizer: &Tokenizer, id: u32) -> Piece<'_> {
        let bytes = tokenizer.token_bytes(id);
        std::str::from_utf8(bytes).map_or(Piece::Bytes(bytes), Piece::Text)
    }
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    let path = models::resolve(&args.model, cx)?;
    let tokenizer = tokenizer::open(&path).with_context(|| path.display().to_string())?;
    let text = match &args.file {
        Some(file) => {
            utf8(std::fs::read(file).with_context(|| file.display().to_string())?, &file.display())?
        }
        None if args.text == "-" => read_stdin()?,
        None => args.text.clone(),
    };
    let specials = !args.no_specials;
    let options = EncodeOptions { add_special: specials, parse_special: specials };
    let ids = tokenizer.encode(&text, options);
    if args.json {
        let pieces = ids.iter().map(|&id| Piece::of(&tokenizer, id)).collect();
        print_json(&Report { ids: &ids, pieces })?;
    } else {
        let line: Vec<String> = ids.iter().map(u32::to_string).collect();
        let mut out = stdout();
        writeln!(out, "{}", line.join(" "))?;
        out.flush()?;
    }
    Ok(Exit::Pass)
}

/// All of standard input.
pub(super) fn read_stdin() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes).context("standard input")?;
    utf8(bytes, &"standard input")
}

fn utf8(bytes: Vec<u8>, source: &dyn std::fmt::Display) -> anyhow::Result<String> {
    String::from_utf8(bytes).map_err(|_| Failure::usage(format!("{source}: not UTF-8 text")))
}
