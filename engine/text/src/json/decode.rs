//! Decoders of `tokenizer.json`: what each token stands for in text.

use super::found;
use super::schema::{Decoder, PrependScheme};
use crate::gguf::byte_of;
use crate::normalize::{Found, Normalizer};
use crate::vocab::{Kind, Lead};
use crate::{TokenizerError, alphabet};
use std::borrow::Cow;

/// How tokens become text: each by itself, in some steps, and then what the text loses at its start.
#[derive(Debug)]
pub(super) struct Decode {
    steps: Vec<Step>,
    /// Tokens have been put together: steps would see the text.
    fused: bool,
    lead: Lead,
}

#[derive(Debug)]
enum Step {
    Change(Normalizer),
    /// `<0x0A>` is a byte.
    Bytes,
    /// GPT-2's alphabet; a token with any other character is written as it stands.
    Alphabet,
}

/// The decoding that `given` describes.
pub(super) fn of(given: Option<Decoder>) -> Result<Decode, TokenizerError> {
    let mut decode = Decode { steps: Vec::new(), fused: false, lead: Lead::Nothing };
    match given {
        Some(decoder) => decode.add(decoder)?,
        None => return unsupported("decoder: null (tokens with a space between)"),
    }
    Ok(decode)
}

fn unsupported<T>(what: &str) -> Result<T, TokenizerError> {
    Err(TokenizerError::Unsupported { what: what.to_owned() })
}

impl Decode {
    fn add(&mut self, decoder: Decoder) -> Result<(), TokenizerError> {
        let ended = matches!(self.steps.last(), Some(Step::Bytes | Step::Alphabet));
        match decoder {
            Decoder::Sequence { decoders } => {
                return decoders.into_iter().try_for_each(|decoder| self.add(decoder));
            }
            Decoder::Fuse => self.fused = true,
            Decoder::Strip { content: ' ', start, stop: 0 } if self.fused => self.lead = Lead::Spaces(start),
            Decoder::Strip { .. } => {
                return unsupported("decoder `Strip` other than of spaces in front, behind `Fuse`");
            }
            _ if self.fused || ended => return unsupported("decoders in this order"),
            Decoder::ByteLevel => self.steps.push(Step::Alphabet),
            Decoder::ByteFallback => self.steps.push(Step::Bytes),
            Decoder::Replace { pattern, content: with } => {
                self.steps.push(Step::Change(Normalizer::Replace { what: found(pattern)?, with }));
            }
            Decoder::Metaspace { replacement, prepend_scheme, add_prefix_space } => {
                let what = Found::Text(replacement.into());
                self.steps.push(Step::Change(Normalizer::Replace { what, with: " ".into() }));
                let never = matches!(prepend_scheme, Some(PrependScheme::Never));
                if !never && (prepend_scheme.is_some() || add_prefix_space) {
                    self.lead = Lead::SpacesOfFirst;
                }
            }
        }
        Ok(())
    }

    pub(super) fn lead(&self) -> Lead {
        self.lead
    }

    /// Appends what a token stands for.
    pub(super) fn write(&self, name: &str, kind: Kind, out: &mut Vec<u8>) {
        if kind == Kind::Unused {
            return;
        }
        let mut text = Cow::Borrowed(name);
        for step in &self.steps {
            match step {
                Step::Change(change) => text = change.apply(text),
                Step::Bytes => {
                    if let Some(byte) = byte_of(&text) {
                        return out.push(byte);
                    }
                }
                Step::Alphabet => {
                    if alphabet::is_written(&text) {
                        return alphabet::push_bytes(&text, out);
                    }
                }
            }
        }
        out.extend_from_slice(text.as_bytes());
    }
}
