//! The tokenizer: special tokens, then changes to the text, then words, then merges.

use crate::bpe::{Bpe, Memory};
use crate::normalize::{Normalizer, normalize};
use crate::special::{Controls, Finder, Part};
use crate::split::{Step, split};
use crate::vocab::Vocab;
use crate::{Detokenizer, Specials, TokenizerError, TokenizerFiles, TokenizerSpec, gguf, json};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// How to encode a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Put the model's bos and eos around the text, where the model wants them.
    pub add_special: bool,
    /// Read the names of control tokens in the text (`<|im_end|>`) as those tokens. Leave it off for anything that a
    /// user wrote.
    pub parse_special: bool,
}

/// Most sets of working memory that are kept for later texts.
const MAX_MEMORIES: usize = 16;

/// A BPE or SentencePiece tokenizer. Cloning is cheap.
#[derive(Clone)]
pub struct Tokenizer {
    inner: Arc<Inner>,
}

/// What a tokenizer is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) vocab: Arc<Vocab>,
    /// Tokens found in the text as it stands.
    pub(crate) specials: Finder,
    pub(crate) normalizers: Vec<Normalizer>,
    /// Tokens found in the changed text.
    pub(crate) normalized_specials: Option<Finder>,
    pub(crate) steps: Vec<Step>,
    pub(crate) bpe: Bpe,
    /// What is put in front of a text, and behind it.
    pub(crate) prefix: Vec<u32>,
    pub(crate) suffix: Vec<u32>,
    pub(crate) bos: Option<u32>,
    pub(crate) eos: Option<u32>,
    pub(crate) pad: Option<u32>,
    /// Tokens that end a generation, in any order.
    pub(crate) ends: Vec<u32>,
}

struct Inner {
    parts: Parts,
    /// Working memory that no text uses at the moment.
    memories: Mutex<Vec<Memory>>,
}

impl Tokenizer {
    /// Builds the tokenizer that `spec` describes.
    ///
    /// # Errors
    /// The first value that makes no sense, see [`TokenizerError`].
    pub fn from_spec(spec: TokenizerSpec) -> Result<Tokenizer, TokenizerError> {
        gguf::build(spec).map(Tokenizer::from_parts)
    }

    /// Builds the tokenizer that Hugging Face's files describe.
    ///
    /// # Errors
    /// A file that is not understood, or the first value that makes no sense, see [`TokenizerError`].
    pub fn from_json(files: &TokenizerFiles<'_>) -> Result<Tokenizer, TokenizerError> {
        json::build(files).map(Tokenizer::from_parts)
    }

    pub(crate) fn from_parts(mut parts: Parts) -> Tokenizer {
        parts.ends.sort_unstable();
        parts.ends.dedup();
        Tokenizer { inner: Arc::new(Inner { parts, memories: Mutex::default() }) }
    }

    /// Token ids of `text`. User-defined tokens are found in any text, control tokens only with `parse_special`.
    ///
    /// What the vocabulary has no token for (as rare control characters in some vocabularies) becomes the unknown token,
    /// or yields no id where there is none.
    pub fn encode(&self, text: &str, options: EncodeOptions) -> Vec<u32> {
        let controls = if options.parse_special { Controls::Everywhere } else { Controls::Nowhere };
        self.inner.encode(text, options.add_special, controls)
    }

    /// Token ids of a text of which only the ranges of bytes `trusted`, which are in order and apart, may name control
    /// tokens. Words and merges run across their ends.
    pub(crate) fn encode_trusted(&self, text: &str, trusted: &[Range<usize>]) -> Vec<u32> {
        self.inner.encode(text, false, Controls::Inside(trusted))
    }

    /// Text of `ids`, which are a text by themselves. Lossy: bytes that are not UTF-8 become U+FFFD, ids outside the
    /// vocabulary nothing.
    pub fn decode(&self, ids: &[u32], specials: Specials) -> String {
        let mut text = String::new();
        let mut detokenizer = self.detokenizer(specials).at_start();
        for &id in ids {
            text.push_str(detokenizer.push(id));
        }
        text.push_str(detokenizer.finish());
        text
    }

    /// A decoder for a stream of ids that goes on where a text ended.
    pub fn detokenizer(&self, specials: Specials) -> Detokenizer {
        Detokenizer::new(Arc::clone(&self.inner.parts.vocab), specials)
    }

    /// Bytes of a token as they stand in text (a control token's are its name); empty for an id outside the vocabulary.
    pub fn token_bytes(&self, id: u32) -> &[u8] {
        self.inner.parts.vocab.bytes(id)
    }

    /// A token as the vocabulary writes it: `<|im_end|>`, `Ġthe`, `▁the`.
    pub fn token_name(&self, id: u32) -> Option<&str> {
        self.inner.parts.vocab.name(id)
    }

    /// The id of a token by its vocabulary entry: `<|im_end|>`, `Ġthe`. Searches the whole vocabulary.
    pub fn token_id(&self, token: &str) -> Option<u32> {
        self.inner.parts.vocab.iter().find(|(name, _, _)| *name == token).map(|(_, id, _)| id)
    }

    /// Number of tokens.
    pub fn vocab_size(&self) -> usize {
        self.inner.parts.vocab.len()
    }

    /// Beginning of sequence.
    pub fn bos(&self) -> Option<u32> {
        self.inner.parts.bos
    }

    /// End of sequence.
    pub fn eos(&self) -> Option<u32> {
        self.inner.parts.eos
    }

    /// Padding.
    pub fn pad(&self) -> Option<u32> {
        self.inner.parts.pad
    }

    /// Whether a token is a control token rather than text.
    pub fn is_special(&self, id: u32) -> bool {
        self.inner.parts.vocab.is_special(id)
    }

    /// Tokens with which a model ends its turn or text, in increasing order: eos, and control tokens whose name is in
    /// common use for it.
    pub fn end_of_generation(&self) -> &[u32] {
        &self.inner.parts.ends
    }
}

impl Inner {
    /// The working memories; nothing that panicked can have left them half-written.
    fn memories(&self) -> std::sync::MutexGuard<'_, Vec<Memory>> {
        self.memories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn encode(&self, text: &str, add_special: bool, controls: Controls<'_>) -> Vec<u32> {
        let mut ids = Vec::with_capacity(text.len() / 4 + 2);
        let mut memory = self.memories().pop().unwrap_or_default();
        if add_special {
            ids.extend_from_slice(&self.parts.prefix);
        }
        let mut is_start = true;
        self.parts.specials.split(text, controls, |part| {
            match part {
                Part::Token(id) => ids.push(id),
                Part::Text(text, at) => {
                    let controls = controls.of_part(at, at + text.len());
                    self.encode_text(text, is_start, controls, &mut memory, &mut ids);
                }
            }
            is_start = false;
        });
        if add_special {
            ids.extend_from_slice(&self.parts.suffix);
        }
        let mut memories = self.memories();
        if memories.len() < MAX_MEMORIES {
            memories.push(memory);
        }
        ids
    }

    /// Appends the tokens of text that has no special tokens in it, before it is changed.
    fn encode_text(
        &self,
        text: &str,
        mut is_start: bool,
        controls: Controls<'_>,
        memory: &mut Memory,
        ids: &mut Vec<u32>,
    ) {
        let parts = &self.parts;
        let text = normalize(&parts.normalizers, text);
        let mut words = |text: &str, is_start: bool, ids: &mut Vec<u32>| {
            split(&parts.steps, text, is_start, &mut |word| parts.bpe.encode(word, memory, ids));
        };
        let Some(finder) = &parts.normalized_specials else { return words(&text, is_start, ids) };
        finder.split(&text, controls, |part| {
            match part {
                Part::Token(id) => ids.push(id),
                Part::Text(text, _) => words(text, is_start, ids),
            }
            is_start = false;
        });
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokenizer({:?})", self.inner.parts.vocab)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> TokenizerSpec {
        TokenizerSpec {
            model: "gpt2".into(),
            pre: "smollm".into(),
            tokens: ["a", "b", "ab", "<s>", "</s>", "tool"].map(str::to_owned).to_vec(),
            token_types: vec![1, 1, 1, 3, 3, 4],
            merges: vec!["a b".into()],
            bos: Some(3),
            eos: Some(4),
            ..TokenizerSpec::default()
        }
    }

    /// A SentencePiece vocabulary without tokens for `c` and `!`.
    fn scored() -> TokenizerSpec {
        let tokens = ["<unk>", "<s>", "</s>", "▁", "a", "b", "▁a", "ab", "cab", "<0xC3>", "<0xA9>", "<0x21>"];
        TokenizerSpec {
            model: "llama".into(),
            tokens: tokens.map(str::to_owned).to_vec(),
            scores: vec![0.0, 0.0, 0.0, -1.0, -2.0, -3.0, -4.0, -5.0, -4.5, 0.0, 0.0, 0.0],
            token_types: vec![2, 3, 3, 1, 1, 1, 1, 1, 1, 6, 6, 6],
            bos: Some(1),
            eos: Some(2),
            unk: Some(0),
            ..TokenizerSpec::default()
        }
    }

    fn refused(mut spec: TokenizerSpec, change: impl FnOnce(&mut TokenizerSpec)) -> String {
        change(&mut spec);
        Tokenizer::from_spec(spec).expect_err("a broken specification was accepted").to_string()
    }

    #[test]
    fn broken_specifications_are_named() {
        let refused = |change: fn(&mut TokenizerSpec)| refused(spec(), change);
        assert!(
            refused(|s| s.model = "bert".into()).starts_with(
                "tokenizer model `bert` is not supported; supported: gpt2 (byte-level BPE), llama"
            )
        );
        let unknown = refused(|s| s.pre = "qwen9".into());
        assert!(
            unknown.contains("`qwen9` is not known") && unknown.contains("supported: gpt-2, "),
            "{unknown}"
        );
        assert!(refused(|s| s.pre.clear()).contains("pre-tokenizer `` is not known"));
        assert!(refused(|s| s.tokens.clear()).contains("a vocabulary of 0 tokens"));
        assert!(refused(|s| s.tokens[2] = "a".into()).contains("tokens 0 and 2 are both `a`"));
        assert!(refused(|s| s.token_types.truncate(3)).contains("3 token types for 6 tokens"));
        assert!(refused(|s| s.token_types[1] = 7).contains("token 1 (`b`) has type 7"));
        assert!(refused(|s| s.token_types[1] = -1).contains("type -1"));
        assert!(refused(|s| s.token_types[1] = 6).contains("token 1 (`b`) is of type 6, a byte, but"));
        for merge in ["ab", "", " ", "a ", " b", "a b b", "a  b"] {
            let mut broken = spec();
            broken.merges[0] = merge.into();
            let expected = format!("merge 0 (`{merge}`) is not two tokens separated by one space");
            assert_eq!(Tokenizer::from_spec(broken).unwrap_err().to_string(), expected);
        }
        assert!(refused(|s| s.merges.push("a x".into())).contains("merge 1 (`a x`) needs the token `x`"));
        assert!(refused(|s| s.merges.push("b a".into())).contains("merge 1 (`b a`) needs the token `ba`"));
        assert_eq!(refused(|s| s.bos = Some(6)), "the bos token is 6, but the vocabulary ends at 5");
        assert!(refused(|s| s.eos = Some(u32::MAX)).contains("the eos token is 4294967295"));
        assert!(refused(|s| s.unk = Some(6)).contains("the unk token"));
        assert!(refused(|s| s.pad = Some(6)).contains("the pad token"));
        assert!(refused(|s| s.ends = vec![1, 6]).contains("the end-of-generation token is 6"));
        assert!(refused(|s| (s.add_bos, s.bos) = (Some(true), None)).contains("add_bos is set, but no bos"));
        assert!(refused(|s| (s.add_eos, s.eos) = (Some(true), None)).contains("add_eos is set, but no eos"));
        let long = refused(|s| s.tokens[3] = "<".repeat(2000));
        assert!(long.contains("special token 3 (`<<<<<<<<<<<<<<<<<<<<…`) is 2000 bytes long"), "{long}");
    }

    #[test]
    fn broken_scores_are_named() {
        let refused = |change: fn(&mut TokenizerSpec)| refused(scored(), change);
        assert!(refused(|s| s.scores.clear()).contains("0 scores for 12 tokens"));
        assert!(refused(|s| s.scores.push(0.0)).contains("13 scores for 12 tokens"));
        assert!(refused(|s| s.scores[4] = f32::NAN).contains("token 4 (`a`) has no number for a score"));
        assert!(refused(|s| s.tokens[9] = "<0xG3>".into()).contains("token 9 (`<0xG3>`) is of type 6"));
    }

    #[test]
    fn specials_are_added_parsed_and_hidden_as_asked() {
        let spec = TokenizerSpec { add_bos: Some(true), add_eos: Some(true), ..spec() };
        let tokenizer = Tokenizer::from_spec(spec).unwrap();
        let encode = |text, add_special, parse_special| {
            tokenizer.encode(text, EncodeOptions { add_special, parse_special })
        };
        assert_eq!(encode("ab<s>toolb", true, true), [3, 2, 3, 5, 1, 4]);
        // The vocabulary has no token for `<`, `s` and `>`: they yield nothing.
        assert_eq!(encode("ab<s>toolb", false, false), [2, 5, 1]);
        assert_eq!(encode("", true, true), [3, 4]);
        let ids = [3, 2, 5, 77, 4];
        assert_eq!(tokenizer.decode(&ids, Specials::Show), "<s>abtool</s>");
        assert_eq!(tokenizer.decode(&ids, Specials::Skip), "abtool");
        assert_eq!(tokenizer.end_of_generation(), [4]);
        assert_eq!((tokenizer.token_id("tool"), tokenizer.token_id("x")), (Some(5), None));
        assert_eq!((tokenizer.token_name(5), tokenizer.token_name(6)), (Some("tool"), None));
    }

    #[test]
    fn without_token_types_every_token_is_text() {
        let tokenizer = Tokenizer::from_spec(TokenizerSpec { token_types: vec![], ..spec() }).unwrap();
        let options = EncodeOptions { add_special: true, parse_special: true };
        assert_eq!(tokenizer.encode("ab<s>", options), [2]);
        // Except one that ends a text by its name.
        assert_eq!(tokenizer.encode("a</s>", options), [0, 4]);
    }

    #[test]
    fn bos_is_added_where_the_file_or_else_the_preset_says() {
        let starts = |pre: &str, add_bos, bos| {
            let spec = TokenizerSpec { pre: pre.into(), add_bos, bos, ..spec() };
            let options = EncodeOptions { add_special: true, parse_special: false };
            Tokenizer::from_spec(spec).unwrap().encode("a", options).len() == 2
        };
        assert!(!starts("gpt-2", None, Some(3)) && starts("gpt-2", Some(true), Some(3)));
        assert!(starts("llama-bpe", None, Some(3)) && !starts("llama-bpe", Some(false), Some(3)));
        assert!(!starts("llama-bpe", None, None));
    }

    #[test]
    fn a_word_that_is_a_token_is_taken_whole_where_merges_are_ignored() {
        let encode = |pre: &str| {
            let spec = TokenizerSpec { pre: pre.into(), merges: vec![], ..spec() };
            let options = EncodeOptions { add_special: false, parse_special: false };
            Tokenizer::from_spec(spec).unwrap().encode("ab", options)
        };
        assert_eq!((encode("llama-bpe"), encode("gpt-2")), (vec![2], vec![0, 1]));
    }

    #[test]
    fn scores_spaces_and_bytes() {
        let tokenizer = Tokenizer::from_spec(scored()).unwrap();
        let encode = |text| tokenizer.encode(text, EncodeOptions { add_special: true, parse_special: true });
        // `▁a` scores above `ab`; `c` merges though it is no token; é is two bytes; 五 has none.
        assert_eq!(encode("ab"), [1, 6, 5]);
        assert_eq!(encode("cab"), [1, 3, 8]);
        assert_eq!(encode("é!五"), [1, 3, 9, 10, 11, 0]);
        // A space goes in front of text behind a special token too.
        assert_eq!(encode("a</s>a"), [1, 6, 2, 6]);
        assert_eq!(encode(""), [1]);
        assert_eq!(tokenizer.decode(&encode("ab é"), Specials::Skip), "ab é");
        assert_eq!(tokenizer.decode(&[3, 6], Specials::Skip), " a");
        let mut stream = tokenizer.detokenizer(Specials::Skip);
        assert_eq!([6, 9, 10].map(|id| stream.push(id).to_owned()), [" a", "", "é"]);

        let spec = TokenizerSpec { add_space_prefix: Some(false), ..scored() };
        let tokenizer = Tokenizer::from_spec(spec).unwrap();
        assert_eq!(
            tokenizer.encode("a a", EncodeOptions { add_special: false, parse_special: true }),
            [4, 6]
        );
        assert_eq!(tokenizer.decode(&[6, 6], Specials::Skip), " a a");
    }

    #[test]
    fn text_does_not_become_a_control_token() {
        let mut spec = scored();
        spec.tokens.extend(["</", "s>"].map(str::to_owned));
        spec.scores.extend([-1.0; 2]);
        spec.token_types.extend([1; 2]);
        let tokenizer = Tokenizer::from_spec(spec).unwrap();
        let options = EncodeOptions { add_special: false, parse_special: false };
        assert_eq!(tokenizer.encode("a</s>", options), [6, 12, 13]);

        let mut spec = self::spec();
        spec.tokens.extend(["<", "s", ">", "<s"].map(str::to_owned));
        spec.token_types.extend([1; 4]);
        (spec.merges, spec.pre) = (["< s", "<s >"].map(str::to_owned).to_vec(), "superbpe".into());
        let tokenizer = Tokenizer::from_spec(spec).unwrap();
        assert_eq!(tokenizer.encode("<s>", options), [9, 8]);
    }

    /// Pairs looked up while encoding.
    fn work(tokenizer: &Tokenizer, text: &str) -> u64 {
        tokenizer.inner.memories().clear();
        tokenizer.encode(text, EncodeOptions { add_special: true, parse_special: true });
        tokenizer.inner.memories()[0].scratch.work
    }

    #[test]
    fn work_grows_with_the_text_alone() {
        let bytes: Vec<String> = (0..=255).map(|byte| crate::alphabet::char_of(byte).to_string()).collect();
        let doubles = ["x", "xx", "xxxx", "Z", "Ġ", "ĠĠ", "â", "âĢ"].map(|left| match left {
            "â" => "â Ģ".to_owned(),
            "âĢ" => "âĢ į".to_owned(),
            left => format!("{left} {left}"),
        });
        let tokens = bytes.into_iter().chain(doubles.iter().map(|merge| merge.replace(' ', ""))).collect();
        let ranked = TokenizerSpec {
            tokens,
            token_types: vec![],
            merges: doubles.to_vec(),
            bos: None,
            eos: None,
            ..spec()
        };
        let mut tokenizers: Vec<Tokenizer> = ["gpt-2", "llama-bpe", "gpt-4o", "superbpe"]
            .map(|pre| Tokenizer::from_spec(TokenizerSpec { pre: pre.into(), ..ranked.clone() }).unwrap())
            .into();
        let mut scored = scored();
        let more = ["x", "xx", "xxxx", "Z", "ZZ", "▁▁", "▁▁▁▁", "\u{200d}", "\u{200d}\u{200d}"];
        scored.tokens.extend(more.map(str::to_owned));
        scored.scores.extend([-1.0; 9]);
        scored.token_types.extend([1; 9]);
        tokenizers.push(Tokenizer::from_spec(scored).unwrap());
        for tokenizer in &tokenizers {
            for (unit, count) in [("x", 36_000), ("Z", 131_072), (" ", 36_000), ("\u{200d}", 20_000)] {
                let (whole, eighth) = (unit.repeat(count), unit.repeat(count / 8));
                let ratio = work(tokenizer, &whole) as f64 / work(tokenizer, &eighth) as f64;
                assert!(ratio < 8.5, "{unit:?} eight times as long is {ratio} times the work");
                assert!(work(tokenizer, &whole) < 8 * whole.len() as u64, "{unit:?}");
            }
        }
    }
}
