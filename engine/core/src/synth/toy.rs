//! Small shapes of no real model: every kernel of this build in a file that computes in milliseconds.

use super::Plan;
use super::vocab::{CONTROL, NORMAL, Vocabulary, byte_letters};
use crate::Error;
use memra_formats::GgufWriter;
use memra_kernels::DType;
use rand_core::Rng;
use rand_pcg::Pcg64;

/// Sizes of a made-up model.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) name: &'static str,
    pub(super) n_layers: usize,
    pub(super) n_embd: usize,
    pub(super) n_heads: usize,
    pub(super) n_kv_heads: usize,
    pub(super) n_ff: usize,
    pub(super) n_ctx: u32,
}

/// Words whose prefixes become tokens, so that the tokenizer has merges to apply.
const WORDS: &str = "the and of to in is that it was for on are with as his they be at one have this from or had by hot \
but some what there we can out other were all your when up use word how said an each she which do their time if will";

const TEMPLATE: &str = "\
{% for message in messages %}<|begin|>{{ message.role }}: {{ message.content }}<|end|>{% endfor %}\
{% if add_generation_prompt %}<|begin|>assistant: {% endif %}";

/// Uniform in -1..1, from the top 24 bits of a draw.
pub(super) fn uniform(random: &mut Pcg64) -> f32 {
    (random.next_u64() >> 40) as f32 / (1u32 << 23) as f32 - 1.0
}

impl Shape {
    /// The file's metadata, and its tensors.
    pub(super) fn plan(&self) -> Result<(GgufWriter, Vec<Plan>), Error> {
        let vocabulary = vocabulary();
        let plans = self.tensors(vocabulary.tokens.len());
        let mut header = GgufWriter::new();
        self.metadata(&mut header, &vocabulary)?;
        Ok((header, plans))
    }

    fn tensors(&self, n_vocab: usize) -> Vec<Plan> {
        let &Shape { n_layers, n_embd, n_heads, n_kv_heads, n_ff, .. } = self;
        let n_kv = n_embd / n_heads * n_kv_heads;
        let matrix = |name: String, k: usize, n: usize, dtype| Plan::matrix(name, &[k, n], dtype);
        let norm = |name: String| Plan::norm(name, n_embd);
        let unit = 3f32.sqrt();
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

    fn metadata(&self, header: &mut GgufWriter, vocabulary: &Vocabulary) -> Result<(), Error> {
        let count = |v: usize| u32::try_from(v).unwrap_or(u32::MAX);
        header.metadata("general.architecture", "llama")?;
        header.metadata("general.name", self.name)?;
        header.metadata("llama.block_count", &count(self.n_layers))?;
        header.metadata("llama.context_length", &self.n_ctx)?;
        header.metadata("llama.embedding_length", &count(self.n_embd))?;
        header.metadata("llama.feed_forward_length", &count(self.n_ff))?;
        header.metadata("llama.attention.head_count", &count(self.n_heads))?;
        header.metadata("llama.attention.head_count_kv", &count(self.n_kv_heads))?;
        header.metadata("llama.attention.layer_norm_rms_epsilon", &1e-5f32)?;
        header.metadata("llama.rope.freq_base", &10_000f32)?;
        header.metadata("llama.rope.dimension_count", &count(self.n_embd / self.n_heads))?;
        header.metadata("llama.vocab_size", &count(vocabulary.tokens.len()))?;
        vocabulary.write(header)
    }
}

/// A byte-level BPE vocabulary: every byte, the prefixes of some words, two control tokens.
fn vocabulary() -> Vocabulary {
    let mut tokens: Vec<String> = byte_letters().map(String::from).collect();
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
    let mut types = vec![NORMAL; tokens.len()];
    let bos = tokens.len() as u32;
    tokens.extend(["<|begin|>".to_owned(), "<|end|>".to_owned()]);
    types.extend([CONTROL; 2]);
    Vocabulary {
        model: "gpt2",
        pre: "smollm",
        tokens,
        types,
        merges,
        bos,
        eos: bos + 1,
        chat_template: TEMPLATE,
        ..Vocabulary::default()
    }
}
