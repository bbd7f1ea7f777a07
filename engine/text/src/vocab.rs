//! The vocabulary: names, kinds and bytes of tokens.

use crate::{TokenizerError, alphabet};
use std::fmt;

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text, written in the byte alphabet.
    Normal,
    /// Stands for text that has no token; found in text only on request, like `Control`.
    Unknown,
    /// Structure of a conversation or document.
    Control,
    /// Text that is always one token.
    UserDefined,
    /// A hole in the vocabulary.
    Unused,
}

impl Kind {
    fn from_gguf(id: u32, token: &str, found: i32) -> Result<Kind, TokenizerError> {
        Ok(match found {
            1 => Kind::Normal,
            2 => Kind::Unknown,
            3 => Kind::Control,
            4 => Kind::UserDefined,
            // Undefined, unused, and single bytes, which byte-level vocabularies write as normal tokens.
            0 | 5 | 6 => Kind::Unused,
            _ => return Err(TokenizerError::TokenType { id, token: token.to_owned(), found }),
        })
    }
}

/// Names with which models end a turn or a text. They are control tokens whatever the file says, as in llama.cpp: some
/// files have them as user-defined, and then a user could end the turn by typing one.
const END_NAMES: [&str; 22] = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<turn|>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
    "[EOS]",
    "[EOT]",
    "<|eot|>",
];

/// Tokens by id.
pub(crate) struct Vocab {
    tokens: Vec<String>,
    kinds: Vec<Kind>,
    /// The tokens' bytes, one after another.
    bytes: Vec<u8>,
    /// Where each token's bytes begin; one more entry ends the last.
    starts: Vec<usize>,
}

impl Vocab {
    pub(crate) fn new(tokens: Vec<String>, types: &[i32]) -> Result<Vocab, TokenizerError> {
        let mut kinds = Vec::with_capacity(tokens.len());
        let (mut bytes, mut starts) = (Vec::new(), vec![0]);
        for ((id, token), kind) in
            (0..).zip(&tokens).zip(types.iter().map(Some).chain(std::iter::repeat(None)))
        {
            let given = kind.map_or(Ok(Kind::Normal), |&found| Kind::from_gguf(id, token, found))?;
            let kind = if END_NAMES.contains(&token.as_str()) { Kind::Control } else { given };
            match kind {
                Kind::Normal => alphabet::push_bytes(token, &mut bytes),
                Kind::Unknown | Kind::Control | Kind::UserDefined => {
                    bytes.extend_from_slice(token.as_bytes())
                }
                Kind::Unused => {}
            }
            kinds.push(kind);
            starts.push(bytes.len());
        }
        Ok(Vocab { tokens, kinds, bytes, starts })
    }

    /// Number of tokens.
    pub(crate) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Names, ids and kinds in order of id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, u32, Kind)> {
        (0..self.tokens.len()).map(|i| (self.tokens[i].as_str(), i as u32, self.kinds[i]))
    }

    /// Bytes of a token as they stand in text; empty outside the vocabulary.
    pub(crate) fn bytes(&self, id: u32) -> &[u8] {
        let id = id as usize;
        match (self.starts.get(id), self.starts.get(id + 1)) {
            (Some(&from), Some(&to)) => &self.bytes[from..to],
            _ => &[],
        }
    }

    /// Tokens that end a turn or a text by their names, in increasing order.
    pub(crate) fn ends(&self) -> impl Iterator<Item = u32> {
        // Where a format has both of these, `<|end|>` ends a message inside the turn.
        let named = |wanted: &str| self.tokens.iter().any(|token| token == wanted);
        let end_is_inner = named("<|return|>") && named("<|call|>");
        let ends = self.iter().filter(|(name, _, kind)| *kind == Kind::Control && END_NAMES.contains(name));
        ends.filter(move |(name, _, _)| *name != "<|end|>" || !end_is_inner).map(|(_, id, _)| id)
    }

    /// Whether a token is not text.
    pub(crate) fn is_special(&self, id: u32) -> bool {
        matches!(self.kinds.get(id as usize), Some(Kind::Control | Kind::Unknown))
    }
}

impl fmt::Debug for Vocab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vocab({} tokens)", self.len())
    }
}
