//! From a word to its tokens: cut it into the smallest units, merge them, and write what has no token as bytes.

use crate::merge::{Merges, NONE, Scratch, Unit};
use crate::words::{Key, Words};
use std::collections::HashMap;

/// Most bytes of a word that is merged as one: units are numbered in 32 bits. A longer word is cut, which no text notices.
const MAX_WORD: usize = 1 << 30;

/// The model of a BPE tokenizer; a SentencePiece one is the same with ranks by score.
#[derive(Debug)]
pub(crate) struct Bpe {
    pub(crate) units: Units,
    pub(crate) merges: Merges,
    /// Words that are a token whatever their merges give.
    pub(crate) whole: HashMap<Box<[u8]>, u32>,
}

/// The smallest units of a word.
#[derive(Debug)]
pub(crate) enum Units {
    /// Bytes: the token of each, or `NONE`. A byte without a token yields nothing.
    Bytes(Box<[u32; 256]>),
    Chars(Chars),
}

/// Characters, and what stands for those without a token.
#[derive(Debug)]
pub(crate) struct Chars {
    /// Tokens of characters. Ids from `tokens` on are no tokens: they mark characters that merge into one, but are none.
    pub(crate) ids: HashMap<char, u32>,
    /// Size of the vocabulary.
    pub(crate) tokens: u32,
    /// Tokens of bytes, if characters without a token are written as bytes; `NONE` where one is missing.
    pub(crate) bytes: Option<Box<[u32; 256]>>,
    /// What stands for a character that cannot be written otherwise.
    pub(crate) unknown: Option<u32>,
    /// Several of those in a row are one.
    pub(crate) fuse_unknown: bool,
}

/// What encoding needs besides the tokenizer; kept from text to text.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) scratch: Scratch,
    words: Words,
    tokens: Vec<u32>,
}

impl Bpe {
    /// Appends the tokens of a word.
    pub(crate) fn encode(&self, word: &str, memory: &mut Memory, out: &mut Vec<u32>) {
        let key = Key::of(word.as_bytes());
        if let Some(known) = key.and_then(|key| memory.words.get(key)) {
            out.extend_from_slice(known);
            return;
        }
        let before = out.len();
        match self.whole.get(word.as_bytes()) {
            Some(&token) => out.push(token),
            None => self.merge(word, memory, out),
        }
        if let Some(key) = key {
            memory.words.put(key, &out[before..]);
        }
    }

    fn merge(&self, mut word: &str, memory: &mut Memory, out: &mut Vec<u32>) {
        while !word.is_empty() {
            let (part, rest) = word.split_at(word.floor_char_boundary(MAX_WORD));
            let units = &mut memory.scratch.units;
            units.clear();
            match &self.units {
                Units::Bytes(tokens) => {
                    let bytes = part.bytes().zip(0..);
                    units.extend(bytes.map(|(byte, at)| Unit { token: tokens[usize::from(byte)], at }));
                }
                Units::Chars(chars) => {
                    let unit =
                        |(at, c)| Unit { token: chars.ids.get(&c).copied().unwrap_or(NONE), at: at as u32 };
                    units.extend(part.char_indices().map(unit));
                }
            }
            self.merges.apply(&mut memory.scratch);
            let units = &memory.scratch.units;
            match &self.units {
                Units::Bytes(_) => {
                    out.extend(units.iter().map(|unit| unit.token).filter(|&token| token != NONE))
                }
                Units::Chars(chars) => chars.write(part, units, &mut memory.tokens, out),
            }
            word = rest;
        }
    }
}

impl Chars {
    /// Appends the tokens of merged units of `word`.
    fn write(&self, word: &str, units: &[Unit], spelled: &mut Vec<u32>, out: &mut Vec<u32>) {
        let mut after_unknown = false;
        for unit in units {
            if unit.token < self.tokens {
                out.push(unit.token);
                after_unknown = false;
                continue;
            }
            let c = word[unit.at as usize..].chars().next().unwrap_or_default();
            spelled.clear();
            if let Some(bytes) = &self.bytes {
                spelled.extend(c.encode_utf8(&mut [0; 4]).bytes().map(|byte| bytes[usize::from(byte)]));
            }
            if !spelled.is_empty() && !spelled.contains(&NONE) {
                out.extend_from_slice(spelled);
                after_unknown = false;
            } else if let Some(unknown) = self.unknown {
                if !(after_unknown && self.fuse_unknown) {
                    out.push(unknown);
                }
                after_unknown = true;
            } else {
                // llama.cpp writes those bytes that it can.
                out.extend(spelled.iter().filter(|&&token| token != NONE));
            }
        }
    }
}
