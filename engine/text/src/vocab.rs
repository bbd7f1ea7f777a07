//! The vocabulary: names, kinds and bytes of tokens.

use std::fmt;

/// What a token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Text.
    Normal,
    /// Stands for text that has no token; found in text only on request, like `Control`.
    Unknown,
    /// Structure of a conversation or document.
    Control,
    /// Text that is always one token.
    UserDefined,
    /// A hole in the vocabulary.
    Unused,
    /// One byte.
    Byte(u8),
}

/// Names with which models end a turn or a text. They are control tokens whatever the file says, as in llama.cpp: some
/// files have them as user-defined, and then a user could end the turn by typing one.
const END_NAMES: [&str; 23] = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<turn|>",
    "<|tool_response>",
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

/// Whether a token of this name ends a turn or a text.
pub(crate) fn is_end_name(name: &str) -> bool {
    // Most tokens begin otherwise.
    name.starts_with(['<', '[', '_']) && END_NAMES.contains(&name)
}

/// Tokens by id.
pub(crate) struct Vocab {
    names: Vec<String>,
    kinds: Vec<Kind>,
    /// The tokens' bytes, one after another.
    bytes: Vec<u8>,
    /// Where each token's bytes begin; one more entry ends the last.
    starts: Vec<usize>,
    /// What the first text that comes out of a list of tokens loses.
    pub(crate) lead: Lead,
}

/// What the first text that comes out of a list of tokens loses: the tokenizer has put it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    Nothing,
    /// So many spaces in front.
    Spaces(usize),
    /// Every space of the first token.
    SpacesOfFirst,
}

impl Vocab {
    /// A vocabulary of as many names as kinds. `write` appends what a token stands for in text.
    pub(crate) fn new(
        names: Vec<String>,
        kinds: Vec<Kind>,
        lead: Lead,
        write: impl Fn(&str, Kind, &mut Vec<u8>),
    ) -> Vocab {
        let (mut bytes, mut starts) = (Vec::new(), vec![0]);
        for (name, kind) in names.iter().zip(&kinds) {
            write(name, *kind, &mut bytes);
            starts.push(bytes.len());
        }
        Vocab { names, kinds, bytes, starts, lead }
    }

    /// Number of tokens.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Names, ids and kinds in order of id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, u32, Kind)> {
        (0..self.names.len()).map(|i| (self.names[i].as_str(), i as u32, self.kinds[i]))
    }

    /// A token as the vocabulary writes it.
    pub(crate) fn name(&self, id: u32) -> Option<&str> {
        self.names.get(id as usize).map(String::as_str)
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
        // Where a format has these beside it, `<|end|>` ends a message inside the turn.
        let named = |wanted: &[&str]| self.names.iter().any(|name| wanted.contains(&name.as_str()));
        let call = named(&["<|call|>", "<|calls|>"]);
        let end_is_inner = call && (named(&["<|return|>"]) || named(&["<|flush|>"]));
        let ends = self.iter().filter(|(name, _, kind)| *kind == Kind::Control && is_end_name(name));
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
