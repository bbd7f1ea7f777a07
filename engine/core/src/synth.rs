//! Made-up models: valid llama GGUF files with random weights, for tests and for machines without a real model.
//!
//! A file is the same for the same preset and seed. Weights are scaled so that activations stay of order one.

use crate::Error;
use memra_formats::{GgufError, GgufWriter};
use memra_kernels::{DType, quant};
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

/// Sizes of a made-up model.
struct Shape {
    name: &'static str,
    n_layers: usize,
    n_embd: usize,
    n_heads: usize,
    n_kv_heads: usize,
    n_ff: usize,
    n_ctx: u32,
}

const TINY: Shape =
    Shape { name: "memra tiny", n_layers: 4, n_embd: 256, n_heads: 8, n_kv_heads: 4, n_ff: 512, n_ctx: 1024 };

const SMALL: Shape = Shape {
    name: "memra small",
    n_layers: 16,
    n_embd: 768,
    n_heads: 12,
    n_kv_heads: 4,
    n_ff: 2048,
    n_ctx: 4096,
};

/// Words whose prefixes become tokens, so that the tokenizer has merges to apply.
const WORDS: &str = "the and of to in is that it was for on are with as his they be at one have this from or had by hot \
but some what there we can out other were all your when up use word how said an each she which do their time if will";

/// Writes a model of about 2 MB that computes in milliseconds: 4 layers, 256 wide, every quantised type this build has.
///
/// # Errors
/// The file cannot be written.
pub fn tiny(path: &Path, seed: u64) -> Result<(), Error> {
    write(path, &TINY, seed)
}

/// Writes a model of about 65 MB, more than caches hold, so that decode speed means something: 16 layers, 768 wide.
///
/// # Errors
/// The file cannot be written.
pub fn small(path: &Path, seed: u64) -> Result<(), Error> {
    write(path, &SMALL, seed)
}

/// A tensor to write: name, dimensions (fastest first), type, and the half-width of its uniform values around `mean`.
struct Plan {
    name: String,
    dims: Vec<usize>,
    dtype: DType,
    mean: f32,
    spread: f32,
}

fn write(path: &Path, shape: &Shape, seed: u64) -> Result<(), Error> {
    let vocabulary = Vocabulary::new();
    let plans = plan(shape, vocabulary.tokens.len());
    let mut writer = GgufWriter::new();
    metadata(&mut writer, shape, &vocabulary)?;
    for plan in &plans {
        writer.tensor(&plan.name, &plan.dims, plan.dtype)?;
    }
    // Written beside its place and moved there whole: a reader may have the old file mapped.
    let partial = path.with_extension("partial");
    let file = File::create(&partial).map_err(GgufError::from)?;
    let mut body = writer.begin(BufWriter::new(file))?;
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut values = Vec::new();
    for plan in &plans {
        for _ in 0..plan.dims.get(1).copied().unwrap_or(1) {
            values.clear();
            values.extend((0..plan.dims[0]).map(|_| plan.mean + plan.spread * uniform(&mut rng)));
            let broken =
                |e: quant::QuantError| Error::Tensor { name: plan.name.clone(), problem: e.to_string() };
            body.append(&quant::encode(plan.dtype, &values).map_err(broken)?)?;
        }
    }
    body.finish()?;
    fs::rename(&partial, path).map_err(GgufError::from)?;
    Ok(())
}

/// Uniform in -1..1, from the top 24 bits of a draw.
fn uniform(rng: &mut Pcg64) -> f32 {
    (rng.next_u64() >> 40) as f32 / (1u32 << 23) as f32 - 1.0
}

fn plan(shape: &Shape, n_vocab: usize) -> Vec<Plan> {
    let &Shape { n_layers, n_embd, n_heads, n_kv_heads, n_ff, .. } = shape;
    let n_kv = n_embd / n_heads * n_kv_heads;
    // A uniform value of half-width √3 has variance one; products over `k` terms keep it.
    let unit = 3f32.sqrt();
    let matrix = |name: String, k: usize, n: usize, dtype| Plan {
        name,
        dims: vec![k, n],
        dtype,
        mean: 0.0,
        spread: unit / (k as f32).sqrt(),
    };
    let norm = |name: String| Plan { name, dims: vec![n_embd], dtype: DType::F32, mean: 1.0, spread: 0.2 };
    let mut plans =
        vec![Plan { spread: unit, ..matrix("token_embd.weight".into(), n_embd, n_vocab, DType::Q8_0) }];
    for layer in 0..n_layers {
        let name = |tensor: &str| format!("blk.{layer}.{tensor}.weight");
        plans.extend([
            norm(name("attn_norm")),
            matrix(name("attn_q"), n_embd, n_embd, DType::Q4_1),
            matrix(name("attn_k"), n_embd, n_kv, DType::Q8_0),
            matrix(name("attn_v"), n_embd, n_kv, DType::Q6_K),
            matrix(name("attn_output"), n_embd, n_embd, DType::Q4_K),
            norm(name("ffn_norm")),
            matrix(name("ffn_gate"), n_embd, n_ff, DType::Q4_1),
            matrix(name("ffn_up"), n_embd, n_ff, DType::Q4_1),
            matrix(name("ffn_down"), n_ff, n_embd, DType::Q4_K),
        ]);
    }
    plans.push(norm("output_norm.weight".into()));
    // Wider logits than the rest of the network: the likeliest token should stand out.
    let head = matrix("output.weight".into(), n_embd, n_vocab, DType::Q6_K);
    plans.push(Plan { spread: 4.0 * head.spread, ..head });
    plans
}

fn metadata(writer: &mut GgufWriter, shape: &Shape, vocabulary: &Vocabulary) -> Result<(), Error> {
    let count = |v: usize| u32::try_from(v).unwrap_or(u32::MAX);
    writer.metadata("general.architecture", "llama")?;
    writer.metadata("general.name", shape.name)?;
    writer.metadata("llama.block_count", &count(shape.n_layers))?;
    writer.metadata("llama.context_length", &shape.n_ctx)?;
    writer.metadata("llama.embedding_length", &count(shape.n_embd))?;
    writer.metadata("llama.feed_forward_length", &count(shape.n_ff))?;
    writer.metadata("llama.attention.head_count", &count(shape.n_heads))?;
    writer.metadata("llama.attention.head_count_kv", &count(shape.n_kv_heads))?;
    writer.metadata("llama.attention.layer_norm_rms_epsilon", &1e-5f32)?;
    writer.metadata("llama.rope.freq_base", &10_000f32)?;
    writer.metadata("llama.rope.dimension_count", &count(shape.n_embd / shape.n_heads))?;
    writer.metadata("llama.vocab_size", &count(vocabulary.tokens.len()))?;
    writer.metadata("tokenizer.ggml.model", "gpt2")?;
    writer.metadata("tokenizer.ggml.pre", "smollm")?;
    writer.metadata("tokenizer.ggml.tokens", &vocabulary.tokens)?;
    writer.metadata("tokenizer.ggml.token_type", &vocabulary.types)?;
    writer.metadata("tokenizer.ggml.merges", &vocabulary.merges)?;
    writer.metadata("tokenizer.ggml.bos_token_id", &vocabulary.bos)?;
    writer.metadata("tokenizer.ggml.eos_token_id", &vocabulary.eos)?;
    writer.metadata("tokenizer.ggml.add_bos_token", &false)?;
    Ok(())
}

/// A byte-level BPE vocabulary: every byte, the prefixes of some words, two control tokens.
struct Vocabulary {
    tokens: Vec<String>,
    types: Vec<i32>,
    merges: Vec<String>,
    bos: u32,
    eos: u32,
}

impl Vocabulary {
    fn new() -> Self {
        const CONTROL: i32 = 3;
        let mut tokens: Vec<String> = byte_alphabet().map(String::from).collect();
        let mut merges = Vec::new();
        for word in WORDS.split_whitespace() {
            let mut prefix = String::from('Ġ');
            for letter in word.chars() {
                let longer = format!("{prefix}{letter}");
                if !tokens.contains(&longer) {
                    merges.push(format!("{prefix} {letter}"));
                    tokens.push(longer.clone());
                }
                prefix = longer;
            }
        }
        let mut types = vec![1; tokens.len()];
        let bos = tokens.len() as u32;
        tokens.extend(["<|begin|>".to_owned(), "<|end|>".to_owned()]);
        types.extend([CONTROL; 2]);
        Vocabulary { tokens, types, merges, bos, eos: bos + 1 }
    }
}

/// GPT-2's letter for each byte: printable Latin-1 stands for itself, the rest for the characters from U+0100 on.
fn byte_alphabet() -> impl Iterator<Item = char> {
    let printable = |b: u8| matches!(b, 33..=126 | 161..=172 | 174..=255);
    let mut moved = '\u{100}'..;
    (0..=255u8).filter_map(move |b| if printable(b) { Some(char::from(b)) } else { moved.next() })
}
