//! `memra detokenize`: token ids to text.

use super::tokenize::read_stdin;
use crate::context::{Context, print_json};
use crate::exit::{Exit, Failure};
use crate::models;
use crate::output::stdout;
use anyhow::Context as _;
use memra_engine::tokenizer;
use memra_text::Specials;
use serde::Serialize;
use std::io::Write;

/// Arguments of `memra detokenize`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra detokenize SmolLM2 504 33059 40061
  memra detokenize SmolLM2 504,33059,40061 --json
  memra tokenize SmolLM2 'Some text' | memra detokenize SmolLM2 -

Control tokens are shown by their names. Bytes that are not UTF-8 become U+FFFD.")]
pub(crate) struct Args {
    /// Model file, folder with tokenizer.json, a tokenizer.json, or the name of a
    /// fetched model
    model: String,

    /// Token ids, with spaces or commas between; - reads standard input
    #[arg(required = true)]
    ids: Vec<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    text: String,
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    let path = models::resolve(&args.model, cx)?;
    let tokenizer = tokenizer::open(&path).with_context(|| path.display().to_string())?;
    let given = if args.ids == ["-"] { read_stdin()? } else { args.ids.join(" ") };
    let ids = parse(&given)?;
    if let Some(id) = ids.iter().find(|&&id| id as usize >= tokenizer.vocab_size()) {
        let last = tokenizer.vocab_size() - 1;
        return Err(Failure::usage(format!("token {id} is outside the vocabulary; the last one is {last}")));
    }
    let text = tokenizer.decode(&ids, Specials::Show);
    if args.json {
        print_json(&Report { text })?;
    } else {
        let mut out = stdout();
        writeln!(out, "{text}")?;
        out.flush()?;
    }
    Ok(Exit::Pass)
}

/// Numbers with white space or commas between; a JSON list too.
fn parse(text: &str) -> anyhow::Result<Vec<u32>> {
    let list = text.trim();
    let list = list.strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or(list);
    let words = list.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty());
    let number = |word: &str| {
        word.parse().map_err(|_| Failure::usage(format!("`{word}` is not a token id; ids are whole numbers")))
    };
    words.map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_people_write_them() {
        for text in ["1 2 3", "1,2,3", " [1, 2,\n3]\n", "1,, 2  3"] {
            assert_eq!(parse(text).unwrap(), [1, 2, 3], "{text}");
        }
        assert_eq!(parse("").unwrap(), [0; 0]);
        for text in ["1 x", "-1", "1.5", "4294967296", "[1"] {
            assert!(parse(text).unwrap_err().to_string().contains("is not a token id"), "{text}");
        }
    }
}
