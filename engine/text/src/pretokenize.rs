//! Pre-tokenizers: cutting text into words, inside which BPE merges. Each is one linear scan.

use crate::classes::{is_letter, is_number};

/// A pre-tokenizer, by the names of `tokenizer.ggml.pre`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pre {
    /// GPT-2's pattern alone.
    Gpt2,
    /// Every number character a word of its own, GPT-2's pattern on what lies between.
    SmolLm,
}

const NAMES: [(&str, Pre); 2] = [("gpt-2", Pre::Gpt2), ("smollm", Pre::SmolLm)];

/// What the patterns tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// `\p{L}`
    Letter,
    /// `\p{N}`
    Number,
    /// `\s`
    Space,
    /// Anything else.
    Other,
}

fn class(c: char) -> Class {
    match c {
        'a'..='z' | 'A'..='Z' => Class::Letter,
        '0'..='9' => Class::Number,
        ' ' | '\t'..='\r' => Class::Space,
        '\0'..='\x7F' => Class::Other,
        _ if c.is_whitespace() => Class::Space,
        _ if is_letter(c) => Class::Letter,
        _ if is_number(c) => Class::Number,
        _ => Class::Other,
    }
}

/// Bytes of the run of `wanted` characters that `text` begins with.
fn run(text: &str, wanted: Class) -> usize {
    text.find(|c| class(c) != wanted).unwrap_or(text.len())
}

impl Pre {
    /// The pre-tokenizer of this name.
    pub(crate) fn from_name(name: &str) -> Option<Pre> {
        NAMES.iter().find(|row| row.0 == name).map(|row| row.1)
    }

    /// Names that are known.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|row| row.0)
    }

    /// Hands every word of `text` to `each`, in order; together they are the text.
    pub(crate) fn split<'t>(self, text: &'t str, mut each: impl FnMut(&'t str)) {
        match self {
            Pre::Gpt2 => gpt2(text, &mut each),
            Pre::SmolLm => {
                let mut rest = text;
                while let Some((at, number)) = rest.char_indices().find(|&(_, c)| class(c) == Class::Number) {
                    gpt2(&rest[..at], &mut each);
                    let (word, after) = rest[at..].split_at(number.len_utf8());
                    each(word);
                    rest = after;
                }
                gpt2(rest, &mut each);
            }
        }
    }
}

/// GPT-2's pattern, at every position the first of these that matches:
/// `'s|'t|'re|'ve|'m|'ll|'d`, ` ?\p{L}+`, ` ?\p{N}+`, ` ?[^\s\p{L}\p{N}]+`, `\s+(?!\S)`, `\s+`.
fn gpt2<'t>(mut text: &'t str, each: &mut impl FnMut(&'t str)) {
    while !text.is_empty() {
        let (word, rest) = text.split_at(gpt2_word(text));
        each(word);
        text = rest;
    }
}

/// Bytes of the word that the non-empty `text` begins with.
fn gpt2_word(text: &str) -> usize {
    const CONTRACTIONS: [&str; 7] = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"];
    if text.starts_with('\'')
        && let Some(found) = CONTRACTIONS.iter().find(|c| text.starts_with(**c))
    {
        return found.len();
    }
    let space = usize::from(text.starts_with(' '));
    match text[space..].chars().next().map(class) {
        None | Some(Class::Space) => {}
        Some(other) => return space + run(&text[space..], other),
    }
    // White space: all of it at the end of the text; else its last character is left for the word that follows,
    // unless it has no other.
    let spaces = run(text, Class::Space);
    let last = text[..spaces].chars().next_back().map_or(0, char::len_utf8);
    if spaces == text.len() || spaces == last { spaces } else { spaces - last }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(pre: Pre, text: &str) -> Vec<&str> {
        let mut words = Vec::new();
        pre.split(text, |word| words.push(word));
        words
    }

    #[test]
    fn gpt2_pattern() {
        let cases: [(&str, &[&str]); 12] = [
            ("", &[]),
            ("Hello world", &["Hello", " world"]),
            ("don't we'll 'd'sx", &["don", "'t", " we", "'ll", " '", "d", "'s", "x"]),
            ("a  b", &["a", " ", " b"]),
            ("a \n b\n\nc", &["a", " \n", " b", "\n", "\n", "c"]),
            ("end   ", &["end", "   "]),
            (" ", &[" "]),
            ("x1234 5,6", &["x", "1234", " 5", ",", "6"]),
            ("...?! (a)", &["...?!", " (", "a", ")"]),
            ("日本 語。", &["日本", " 語", "。"]),
            ("a\u{a0}b \u{3000}c", &["a", "\u{a0}", "b", " ", "\u{3000}", "c"]),
            ("e\u{301}½²x", &["e", "\u{301}", "½²", "x"]),
        ];
        for (text, expected) in cases {
            assert_eq!(words(Pre::Gpt2, text), expected, "{text:?}");
        }
    }

    #[test]
    fn smollm_isolates_numbers_and_ends_pieces_there() {
        let cases: [(&str, &[&str]); 5] = [
            ("x12 3", &["x", "1", "2", " ", "3"]),
            ("a   1", &["a", "   ", "1"]),
            ("½٣ Ⅷ!", &["½", "٣", " ", "Ⅷ", "!"]),
            ("1's", &["1", "'s"]),
            ("0", &["0"]),
        ];
        for (text, expected) in cases {
            assert_eq!(words(Pre::SmolLm, text), expected, "{text:?}");
        }
    }
}
