//! Logits of a base model on disk: a line of JSON that says of what, then a row of little-endian f32 a scored position.

use crate::exit::{Exit, Failure};
use crate::output::OutFile;
use anyhow::Context as _;
use memra_engine::perplexity::PerplexityOptions;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

/// What a base was made of; a comparison needs the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct BaseHeader {
    memra_base: u32,
    n_vocab: usize,
    context: usize,
    chunks: usize,
    /// SHA-256 of the token ids.
    tokens_sha256: String,
}

/// Longest header line that is read.
const LONGEST: u64 = 4096;

impl BaseHeader {
    pub(super) fn new(n_vocab: usize, options: &PerplexityOptions, tokens: &[u32]) -> Self {
        let context = options.context.max(1);
        let chunks = (tokens.len() / context).min(options.chunks);
        let mut hasher = Sha256::new();
        tokens.iter().take(chunks * context).for_each(|token| hasher.update(token.to_le_bytes()));
        let digest = hasher.finalize();
        let tokens_sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        BaseHeader { memra_base: 1, n_vocab, context, chunks, tokens_sha256 }
    }

    /// How `self`, found in a file, differs from what a comparison needs.
    fn differs(&self, wanted: &BaseHeader) -> Option<&'static str> {
        [
            (self.memra_base != wanted.memra_base, "another version of memra's base files"),
            (self.n_vocab != wanted.n_vocab, "a model with another vocabulary"),
            (self.context != wanted.context, "another --context"),
            (self.chunks != wanted.chunks, "another number of chunks"),
            (self.tokens_sha256 != wanted.tokens_sha256, "another text, or another tokenizer"),
        ]
        .into_iter()
        .find_map(|(differs, what)| differs.then_some(what))
    }
}

/// Writes a base; it appears in its place when it is whole.
pub(super) struct BaseWriter(OutFile);

impl BaseWriter {
    /// `inputs` are the files that the command reads.
    pub(super) fn create(path: &Path, inputs: &[&Path], header: &BaseHeader) -> anyhow::Result<BaseWriter> {
        let mut out = OutFile::create(path, inputs)?;
        serde_json::to_writer(&mut out, header).map_err(io::Error::from)?;
        out.write_all(b"\n")?;
        Ok(BaseWriter(out))
    }

    pub(super) fn append(&mut self, logits: &[f32]) -> anyhow::Result<()> {
        Ok(logits.iter().try_for_each(|value| self.0.write_all(&value.to_le_bytes()))?)
    }

    pub(super) fn finish(self) -> anyhow::Result<()> {
        self.0.finish()
    }
}

/// Reads a base row by row.
pub(super) struct BaseReader {
    path: PathBuf,
    input: BufReader<File>,
    bytes: Vec<u8>,
    row: Vec<f32>,
}

impl BaseReader {
    pub(super) fn open(path: &Path, wanted: &BaseHeader) -> anyhow::Result<BaseReader> {
        let name = || path.display().to_string();
        let mut input = BufReader::new(File::open(path).with_context(name)?);
        let mut line = Vec::new();
        input.by_ref().take(LONGEST).read_until(b'\n', &mut line).with_context(name)?;
        let header: BaseHeader = serde_json::from_slice(&line).map_err(|_| {
            Failure::error(Exit::Corrupt, format!("{}: not a base; --save-base writes one", path.display()))
        })?;
        if let Some(what) = header.differs(wanted) {
            let message = format!("{}: the base was made with {what}; make it anew with --save-base", name());
            return Err(Failure::usage(message));
        }
        let n = wanted.n_vocab;
        Ok(BaseReader { path: path.to_owned(), input, bytes: vec![0; 4 * n], row: vec![0.0; n] })
    }

    /// The next position's logits.
    pub(super) fn next(&mut self) -> anyhow::Result<&[f32]> {
        self.input.read_exact(&mut self.bytes).map_err(|e| {
            let message = format!("{}: {e}; the base is cut short, make it anew", self.path.display());
            Failure::error(Exit::Corrupt, message)
        })?;
        for (value, bytes) in self.row.iter_mut().zip(self.bytes.as_chunks::<4>().0) {
            *value = f32::from_le_bytes(*bytes);
        }
        Ok(&self.row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: PerplexityOptions = PerplexityOptions { context: 4, chunks: 9, bos: None };

    #[test]
    fn a_base_comes_back_and_what_does_not_fit_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("base");
        let header = BaseHeader::new(3, &OPTIONS, &[1, 2, 3, 4, 5]);
        let mut writer = BaseWriter::create(&path, &[], &header).unwrap();
        writer.append(&[1.0, 2.0, 3.0]).unwrap();
        assert!(!path.exists(), "an unfinished base is in its place");
        writer.finish().unwrap();

        let mut reader = BaseReader::open(&path, &header).unwrap();
        assert_eq!(reader.next().unwrap(), [1.0, 2.0, 3.0]);
        assert!(reader.next().unwrap_err().to_string().contains("cut short"));

        let refused = |wanted: &BaseHeader| BaseReader::open(&path, wanted).err().unwrap().to_string();
        assert!(refused(&BaseHeader::new(4, &OPTIONS, &[1, 2, 3, 4])).contains("another vocabulary"));
        assert!(refused(&BaseHeader::new(3, &OPTIONS, &[1, 2, 3, 5])).contains("another text"));
        std::fs::write(&path, [b'x'; 10_000]).unwrap();
        assert!(refused(&header).contains("not a base"));
    }
}
