//! The benchmark's texts and tokenizers.

use memra_formats::Gguf;
use std::path::{Path, PathBuf};
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;

/// Folder of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// A file in the checkout's `models` folder, if it is there.
pub fn model(file: &str) -> Option<PathBuf> {
    let path = root().join("models").join(file);
    if !path.exists() {
        eprintln!("NOT RUN: {} is absent; fetch it with tools/fetch-models", path.display());
        return None;
    }
    Some(path)
}

/// English prose: the checkout's pages, without code and tables, each line once.
pub fn prose() -> String {
    let mut pages = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && !["target", "models", "boards"].contains(&name.as_str()) {
                folders.push(path);
            } else if name.ends_with(".md") || name.ends_with(".rs") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    let mut text = String::new();
    for page in pages {
        let content = std::fs::read_to_string(&page).unwrap_or_default();
        let is_code = page.extension().is_some_and(|extension| extension == "rs");
        for line in content.lines().map(str::trim) {
            // Of code, what is written for people.
            let line = if is_code { line.strip_prefix("/// ").or(line.strip_prefix("//! ")) } else { Some(line) };
            let is_prose = |line: &&str| line.len() > 40 && !line.starts_with(['|', '`', '#']);
            if let Some(line) = line.filter(is_prose) {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text
}

/// The tokenizer of a GGUF file with the `smollm` pre-tokenizer, as Hugging Face's library.
pub fn hugging_face(path: &Path) -> tokenizers::Tokenizer {
    let gguf = Gguf::open(path).expect("the model opens");
    let strings = |key: &str| gguf.metadata().get::<Vec<&str>>(key).expect("the tokenizer is there");
    let vocab: Vocab = strings("tokenizer.ggml.tokens").into_iter().zip(0..).map(|(t, id)| (t.to_owned(), id)).collect();
    let pair = |merge: &str| merge.split_once(' ').map(|(a, b)| (a.to_owned(), b.to_owned()));
    let merges = strings("tokenizer.ggml.merges").into_iter().filter_map(pair).collect();
    let bpe = BPE::builder().vocab_and_merges(vocab, merges).build().expect("the merges fit");
    let mut tokenizer = tokenizers::Tokenizer::new(bpe);
    let steps = vec![Digits::new(true).into(), ByteLevel::new(false, false, true).into()];
    tokenizer.with_pre_tokenizer(Some(Sequence::new(steps)));
    tokenizer
}
