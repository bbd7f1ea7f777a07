//! The tokenizer: special tokens, then words, then merges.

use crate::{BpeSpec, Detokenizer, TokenizerError};
use crate::{
    bpe::Merges, bpe::Scratch, pretokenize::Pre, special::Finder, special::Part, vocab::Kind, vocab::Vocab,
};
use std::{collections::HashMap, fmt, ops::Range, sync::Arc};

/// How to encode a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Put the model's bos and eos around the text, where the model wants them.
    pub add_special: bool,
    /// Read the names of control tokens in the text (`<|im_end|>`) as those tokens. Leave it off for anything that a
    /// user wrote.
    pub parse_special: bool,
}

/// Whether control tokens appear in decoded text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Specials {
    /// As their names.
    Show,
    /// Not at all.
    Skip,
}

/// A byte-level BPE tokenizer. Cloning is cheap.
#[derive(Clone)]
pub struct Tokenizer {
    inner: Arc<Inner>,
    vocab: Arc<Vocab>,
}

struct Inner {
    pre: Pre,
    merges: Merges,
    /// Tokens found in any text.
    user_defined: Finder,
    /// Those and control tokens.
    all_special: Finder,
    bos: Option<u32>,
    eos: Option<u32>,
    pad: Option<u32>,
    add_bos: bool,
    add_eos: bool,
    /// In increasing order.
    end_of_generation: Vec<u32>,
}

impl Inner {
    /// Appends the tokens of a special token or of the text between two.
    fn part(&self, part: Part<'_>, scratch: &mut Scratch, ids: &mut Vec<u32>) {
        match part {
            Part::Token(id) => ids.push(id),
            Part::Text(text) => {
                self.pre.split(text, |word| self.merges.encode(word.as_bytes(), scratch, ids));
            }
        }
    }
}

impl Tokenizer {
    /// Builds the tokenizer that `spec` describes.
    ///
    /// # Errors
    /// The first value that makes no sense, see [`TokenizerError`].
    pub fn from_spec(spec: BpeSpec) -> Result<Tokenizer, TokenizerError> {
        let pre = check(&spec)?;
        let ids = index(&spec.tokens)?;
        let merges = Merges::new(&spec, &ids)?;
        let vocab = Vocab::new(spec.tokens, &spec.token_types)?;
        let named = |wanted: fn(Kind) -> bool| {
            Finder::new(vocab.iter().filter(|(_, _, kind)| wanted(*kind)).map(|(name, id, _)| (name, id)))
        };
        let mut end_of_generation: Vec<u32> = vocab.ends().chain(spec.eos).collect();
        end_of_generation.sort_unstable();
        end_of_generation.dedup();
        let inner = Inner {
            pre,
            merges,
            user_defined: named(|kind| kind == Kind::UserDefined),
            all_special: named(|kind| matches!(kind, Kind::UserDefined | Kind::Control | Kind::Unknown)),
            bos: spec.bos,
            eos: spec.eos,
            pad: spec.pad,
            add_bos: spec.add_bos,
            add_eos: spec.add_eos,
            end_of_generation,
        };
        Ok(Tokenizer { inner: Arc::new(inner), vocab: Arc::new(vocab) })
    }

    /// Token ids of `text`. User-defined tokens are found in any text, control tokens only with `parse_special`.
    ///
    /// A byte for which the vocabulary has no token (as rare control characters in some vocabularies) yields no id.
    pub fn encode(&self, text: &str, options: EncodeOptions) -> Vec<u32> {
        let inner = &*self.inner;
        let mut ids = Vec::with_capacity(text.len() / 4 + 2);
        let mut scratch = Scratch::default();
        if options.add_special && inner.add_bos {
            ids.extend(inner.bos);
        }
        let finder = if options.parse_special { &inner.all_special } else { &inner.user_defined };
        finder.split(text, |part| inner.part(part, &mut scratch, &mut ids));
        if options.add_special && inner.add_eos {
            ids.extend(inner.eos);
        }
        ids
    }

    /// Token ids of a text of which only the ranges of bytes `trusted`, which are in order and apart, may name control
    /// tokens. Words and merges run across their ends.
    pub(crate) fn encode_trusted(&self, text: &str, trusted: &[Range<usize>]) -> Vec<u32> {
        let inner = &*self.inner;
        let mut ids = Vec::with_capacity(text.len() / 4 + 2);
        let mut scratch = Scratch::default();
        let allowed = |id: u32, at: Range<usize>| {
            let around = trusted.get(trusted.partition_point(|range| range.end < at.end));
            !self.vocab.is_special(id) || around.is_some_and(|range| range.start <= at.start)
        };
        inner.all_special.split_where(text, allowed, |part| inner.part(part, &mut scratch, &mut ids));
        ids
    }

    /// Text of `ids`. Lossy: bytes that are not UTF-8 become U+FFFD, ids outside the vocabulary nothing.
    pub fn decode(&self, ids: &[u32], specials: Specials) -> String {
        let mut text = String::new();
        let mut detokenizer = self.detokenizer(specials);
        for &id in ids {
            text.push_str(detokenizer.push(id));
        }
        text.push_str(detokenizer.finish());
        text
    }

    /// A decoder for a stream of ids.
    pub fn detokenizer(&self, specials: Specials) -> Detokenizer {
        Detokenizer::new(Arc::clone(&self.vocab), specials)
    }

    /// Bytes of a token as they stand in text (a control token's are its name); empty for an id outside the vocabulary.
    pub fn token_bytes(&self, id: u32) -> &[u8] {
        self.vocab.bytes(id)
    }

    /// The id of a token by its vocabulary entry: `<|im_end|>`, `Ġthe`. Searches the whole vocabulary.
    pub fn token_id(&self, token: &str) -> Option<u32> {
        self.vocab.iter().find(|(name, _, _)| *name == token).map(|(_, id, _)| id)
    }

    /// Number of tokens.
    pub fn vocab_size(&self) -> usize {
        self.vocab.len()
    }

    /// Beginning of sequence.
    pub fn bos(&self) -> Option<u32> {
        self.inner.bos
    }

    /// End of sequence.
    pub fn eos(&self) -> Option<u32> {
        self.inner.eos
    }

    /// Padding.
    pub fn pad(&self) -> Option<u32> {
        self.inner.pad
    }

    /// Whether a token is a control token rather than text.
    pub fn is_special(&self, id: u32) -> bool {
        self.vocab.is_special(id)
    }

    /// Tokens with which a model ends its turn or text, in increasing order: eos, and control tokens whose name is in
    /// common use for it.
    pub fn end_of_generation(&self) -> &[u32] {
        &self.inner.end_of_generation
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokenizer({:?}, {:?})", self.inner.pre, self.vocab)
    }
}

/// Checks all of `spec` but its merges and the values of its token types.
fn check(spec: &BpeSpec) -> Result<Pre, TokenizerError> {
    if spec.model != "gpt2" {
        return Err(TokenizerError::Model { found: spec.model.clone() });
    }
    let pre = Pre::from_name(&spec.pre).ok_or_else(|| TokenizerError::Pre {
        found: spec.pre.clone(),
        supported: Pre::names().collect::<Vec<_>>().join(", "),
    })?;
    let count = spec.tokens.len();
    // The last 32-bit number is kept free, as a mark for no token.
    let tokens = u32::try_from(count).ok().filter(|&n| n != 0 && n != u32::MAX);
    let tokens = tokens.ok_or(TokenizerError::VocabularySize { tokens: count })?;
    if !spec.token_types.is_empty() && spec.token_types.len() != count {
        return Err(TokenizerError::TokenTypes { types: spec.token_types.len(), tokens: count });
    }
    for (which, id) in [("bos", spec.bos), ("eos", spec.eos), ("unk", spec.unk), ("pad", spec.pad)] {
        if let Some(id) = id.filter(|&id| id >= tokens) {
            return Err(TokenizerError::SpecialId { which, id, tokens });
        }
    }
    for (which, add, id) in [("bos", spec.add_bos, spec.bos), ("eos", spec.add_eos, spec.eos)] {
        if add && id.is_none() {
            return Err(TokenizerError::NoSpecial { which });
        }
    }
    Ok(pre)
}

/// Ids of tokens by name.
fn index(tokens: &[String]) -> Result<HashMap<&str, u32>, TokenizerError> {
    let mut ids = HashMap::with_capacity(tokens.len());
    for (token, second) in tokens.iter().zip(0..) {
        if let Some(first) = ids.insert(token.as_str(), second) {
            return Err(TokenizerError::DuplicateToken { token: token.clone(), first, second });
        }
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> BpeSpec {
        BpeSpec {
            model: "gpt2".into(),
            pre: "smollm".into(),
            tokens: ["a", "b", "ab", "<s>", "</s>", "tool"].map(str::to_owned).to_vec(),
            token_types: vec![1, 1, 1, 3, 3, 4],
            merges: vec!["a b".into()],
            bos: Some(3),
            eos: Some(4),
            ..BpeSpec::default()
        }
    }

    fn refused(change: impl FnOnce(&mut BpeSpec)) -> String {
        let mut spec = spec();
        change(&mut spec);
        Tokenizer::from_spec(spec).expect_err("a broken specification was accepted").to_string()
    }

    #[test]
    fn broken_specifications_are_named() {
        assert!(refused(|s| s.model = "llama".into()).contains("`llama` is not supported"));
        assert!(refused(|s| s.pre = "qwen2".into()).ends_with(
            "`qwen2` is not known, and guessing would give wrong tokens; supported: gpt-2, smollm"
        ));
        assert!(refused(|s| s.tokens.clear()).contains("a vocabulary of 0 tokens"));
        assert!(refused(|s| s.tokens[2] = "a".into()).contains("tokens 0 and 2 are both `a`"));
        assert!(refused(|s| s.token_types.truncate(3)).contains("3 token types for 6 tokens"));
        assert!(refused(|s| s.token_types[1] = 7).contains("token 1 (`b`) has type 7"));
        assert!(refused(|s| s.token_types[1] = -1).contains("type -1"));
        for merge in ["ab", "", " ", "a ", " b", "a b b", "a  b"] {
            let expected = format!("merge 0 (`{merge}`) is not two tokens separated by one space");
            assert_eq!(refused(|s| s.merges[0] = merge.into()), expected);
        }
        assert!(refused(|s| s.merges.push("a x".into())).contains("merge 1 (`a x`) needs the token `x`"));
        assert!(refused(|s| s.merges.push("b a".into())).contains("merge 1 (`b a`) needs the token `ba`"));
        assert_eq!(refused(|s| s.bos = Some(6)), "the bos token is 6, but the vocabulary ends at 5");
        assert!(refused(|s| s.eos = Some(u32::MAX)).contains("the eos token is 4294967295"));
        assert!(refused(|s| s.unk = Some(6)).contains("the unk token"));
        assert!(refused(|s| s.pad = Some(6)).contains("the pad token"));
        assert!(refused(|s| (s.add_bos, s.bos) = (true, None)).contains("add_bos is set, but no bos token"));
        assert!(refused(|s| (s.add_eos, s.eos) = (true, None)).contains("add_eos is set, but no eos token"));
    }

    #[test]
    fn specials_are_added_parsed_and_hidden_as_asked() {
        let tokenizer = Tokenizer::from_spec(BpeSpec { add_bos: true, add_eos: true, ..spec() }).unwrap();
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
    }

    #[test]
    fn without_token_types_every_token_is_text() {
        let tokenizer = Tokenizer::from_spec(BpeSpec { token_types: vec![], ..spec() }).unwrap();
        let options = EncodeOptions { add_special: true, parse_special: true };
        assert_eq!(tokenizer.encode("ab<s>", options), [2]);
        // Except one that ends a text by its name.
        assert_eq!(tokenizer.encode("a</s>", options), [0, 4]);
    }
}
