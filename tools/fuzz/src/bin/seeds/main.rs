//! Writes the inputs that fuzzing starts from: `seeds FOLDER` makes `FOLDER/TARGET/*`, and `FOLDER/TARGET.dict` with
//! words of the format.

mod formats;
mod text;
mod words;

use std::error::Error;
use std::{fs, path::Path};
use words::{GGUF_WORDS, JSON_WORDS, TEMPLATE_WORDS, TEXT_WORDS, TOKENIZER_WORDS};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).ok_or("usage: seeds FOLDER")?;
    let folder = Path::new(&folder);
    let save = |target: &str, words: &[&str], seeds: &[Vec<u8>]| -> Result<()> {
        fs::create_dir_all(folder.join(target))?;
        for (i, seed) in seeds.iter().enumerate() {
            fs::write(folder.join(target).join(format!("seed-{i}")), seed)?;
        }
        let words: Vec<_> = words.iter().map(|word| format!("\"{}\"\n", quoted(word))).collect();
        Ok(fs::write(folder.join(target).with_extension("dict"), words.concat())?)
    };
    save("gguf", &GGUF_WORDS, &formats::gguf()?)?;
    save("gguf_split", &GGUF_WORDS, &formats::gguf_split()?)?;
    save("safetensors", &JSON_WORDS, &formats::safetensors())?;
    save("folder", &JSON_WORDS, &formats::folders())?;
    save("safetensors_header", &JSON_WORDS, &formats::headers())?;
    save("quant", &[], &formats::blocks()?)?;
    save("tokenizer", &TEXT_WORDS, &text::tokenizers())?;
    save("tokenizer_gguf", &GGUF_WORDS, &text::tokenizers_in_gguf()?)?;
    save("tokenizer_json", &TOKENIZER_WORDS, &text::tokenizers_in_json()?)?;
    save("template", &TEMPLATE_WORDS, &text::templates()?)
}

/// A word as dictionaries are written: ASCII, other bytes as `\xAB`.
fn quoted(word: &str) -> String {
    let byte = |byte: u8| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02X}"),
    };
    word.bytes().map(byte).collect()
}
