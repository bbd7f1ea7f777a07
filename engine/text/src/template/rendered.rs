//! A rendered chat, ready to become tokens.

use crate::Tokenizer;
use std::ops::Range;

/// A chat as its template writes it.
///
/// It knows which bytes the template wrote and which came from messages, tools, documents and variables. Only what the
/// template wrote can name control tokens: [`Rendered::encode`] finds such a name only where every byte of it is the
/// template's. The origin of each byte is tracked through everything that a template can do, so that neither trimming,
/// splitting, joining nor changing case turns what a user typed into a control token, be it in one message or in pieces
/// that the template puts together. Nothing else differs from encoding the text as a whole: words and merges run across
/// the seams.
///
/// Three kinds of input count as the template's: names of roles, as long as they are of the usual ones (templates build
/// `<|user|>` from them), numbers, and bools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    text: String,
    template: Vec<Range<usize>>,
}

impl Rendered {
    pub(super) fn new(text: String, template: Vec<Range<usize>>) -> Rendered {
        Rendered { text, template }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Ranges of bytes that the template wrote: in order, apart, on character boundaries.
    pub fn template_ranges(&self) -> &[Range<usize>] {
        &self.template
    }

    /// Token ids of the chat. No bos or eos is added: templates write their own.
    pub fn encode(&self, tokenizer: &Tokenizer) -> Vec<u32> {
        tokenizer.encode_trusted(&self.text, &self.template)
    }
}
