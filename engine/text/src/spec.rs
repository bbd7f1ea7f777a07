//! What a tokenizer is built from.

/// A tokenizer as plain values, named as in GGUF's `tokenizer.ggml.*` keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenizerSpec {
    /// Tokenizer family (`model`): `gpt2` is byte-level BPE, `llama` SentencePiece by scores, `gemma4` BPE over characters.
    pub model: String,
    /// Pre-tokenizer (`pre`): how text is cut into words before merging. Only `gpt2` has one, and must.
    pub pre: String,
    /// The vocabulary (`tokens`); normal tokens are written in GPT-2's byte alphabet (`gpt2`) or with `▁` for a space.
    /// No two are equal.
    pub tokens: Vec<String>,
    /// Score of each token (`scores`; `llama` only): of two that overlap the higher is merged first.
    pub scores: Vec<f32>,
    /// Kind of each token (`token_type`): 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
    /// Empty: all normal.
    pub token_types: Vec<i32>,
    /// Merges (`merges`), best first: two tokens with one space between.
    pub merges: Vec<String>,
    /// Beginning of sequence (`bos_token_id`).
    pub bos: Option<u32>,
    /// End of sequence (`eos_token_id`).
    pub eos: Option<u32>,
    /// Unknown token (`unknown_token_id`).
    pub unk: Option<u32>,
    /// Padding (`padding_token_id`).
    pub pad: Option<u32>,
    /// Other tokens that end a generation (`eot_token_id`, `eom_token_id`, …).
    pub ends: Vec<u32>,
    /// Whether bos is put in front of a text (`add_bos_token`); where absent, the family or pre-tokenizer decides.
    pub add_bos: Option<bool>,
    /// Whether eos is put behind a text (`add_eos_token`); false where absent.
    pub add_eos: Option<bool>,
    /// Whether a space is put in front of text at the start and behind special tokens (`add_space_prefix`; `llama` only;
    /// true where absent).
    pub add_space_prefix: Option<bool>,
    /// Name of the model (`general.name`). Special tokens of Phi-3 take white space behind them with them, which its files
    /// do not say.
    pub name: String,
}

/// The bytes of the files that describe a tokenizer in a model's folder.
#[derive(Clone, Copy, Debug)]
pub struct TokenizerFiles<'a> {
    /// `tokenizer.json`: everything that encoding needs.
    pub tokenizer: &'a [u8],
    /// `tokenizer_config.json`: which tokens are bos, eos and padding.
    pub tokenizer_config: Option<&'a [u8]>,
    /// `generation_config.json`: further tokens that end a generation.
    pub generation_config: Option<&'a [u8]>,
}
