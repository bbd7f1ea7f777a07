//! `memra logits`: what a model says, in numbers, for comparison with other engines.

use crate::context::Context;
use crate::exit::{Exit, Failure};
use crate::output::{OutFile, stdout};
use crate::{engine, models};
use anyhow::Context as _;
use memra_engine::logits::each_logits;
use std::io::{self, Write};
use std::path::PathBuf;

/// Arguments of `memra logits`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra logits SmolLM2 --ids 1,2,3 -o last.npy
  memra logits model.gguf --ids 1,2,3 --all -o all.npy --set engine.class=q8

Computes in class f32 with an f32 KV cache unless the configuration says
otherwise. The file is a NumPy array of f32: positions by vocabulary.")]
pub(crate) struct Args {
    /// Model file, or the name of a fetched model
    model: String,

    /// Token ids, separated by commas
    #[arg(long, value_name = "IDS", value_delimiter = ',', required = true)]
    ids: Vec<u32>,

    /// Logits after every token, not only after the last
    #[arg(long)]
    all: bool,

    /// File to write
    #[arg(short, long, value_name = "FILE.npy")]
    out: PathBuf,
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    let path = models::resolve(&args.model, cx)?;
    let mut session = engine::exact_session(&path, cx)?;
    if args.ids.is_empty() {
        return Err(Failure::usage("--ids: no token ids"));
    }
    let n_vocab = session.model().file().config().n_vocab;
    let first = if args.all { 0 } else { args.ids.len() - 1 };
    let out = || args.out.display().to_string();
    let mut file = OutFile::create(&args.out, &[&path])?;
    write_header(&mut file, args.ids.len() - first, n_vocab).with_context(out)?;
    let mut written = Ok(());
    each_logits(&mut session, &args.ids, &mut |position, row| {
        if position >= first && written.is_ok() {
            written = row.iter().try_for_each(|value| file.write_all(&value.to_le_bytes()));
        }
    })?;
    written.with_context(out)?;
    file.finish()?;
    writeln!(stdout(), "{}", args.out.display())?;
    Ok(Exit::Pass)
}

/// Header of a NumPy file, format 1.0: magic, version, length, a Python dictionary padded so that data begin at a
/// multiple of 64 bytes.
fn write_header(out: &mut impl Write, rows: usize, columns: usize) -> io::Result<()> {
    let mut text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
    text.extend(std::iter::repeat_n(' ', length - 1 - text.len()));
    text.push('\n');
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&(length as u16).to_le_bytes())?;
    out.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_begin_at_a_multiple_of_64_whatever_the_shape() {
        for columns in [1, 384, 49152, 1_000_000_000] {
            let mut header = Vec::new();
            write_header(&mut header, 123, columns).unwrap();
            assert_eq!(header.len() % 64, 0);
            assert_eq!(usize::from(u16::from_le_bytes([header[8], header[9]])), header.len() - 10);
            assert_eq!(header.last(), Some(&b'\n'));
        }
    }
}
