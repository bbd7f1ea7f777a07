//! Finding special tokens in text: at each place the longest one that begins there, from left to right.

use std::ops::Range;

/// A set of tokens to be found in text by their names.
pub(crate) struct Finder {
    /// Names and ids, ordered by name.
    tokens: Vec<(String, u32)>,
    /// Whether a name begins with this byte.
    begins: Vec<bool>,
}

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'t> {
    /// Ordinary text, not empty.
    Text(&'t str),
    /// A special token.
    Token(u32),
}

impl Finder {
    /// A finder of these tokens; names differ, and an empty one is ignored.
    pub(crate) fn new<'a>(tokens: impl Iterator<Item = (&'a str, u32)>) -> Finder {
        let mut tokens: Vec<_> =
            tokens.filter(|(name, _)| !name.is_empty()).map(|(n, id)| (n.to_owned(), id)).collect();
        tokens.sort_unstable();
        let mut begins = vec![false; 256];
        tokens.iter().for_each(|(name, _)| begins[usize::from(name.as_bytes()[0])] = true);
        Finder { tokens, begins }
    }

    /// The longest token that `text` begins with, of those that are `allowed`.
    fn longest(&self, text: &[u8], allowed: impl Fn(&(String, u32)) -> bool) -> Option<&(String, u32)> {
        let mut best = None;
        let mut candidates = self.tokens.as_slice();
        // After `depth` rounds the candidates are the names that agree with the text in so many bytes, shortest first.
        for (depth, byte) in text.iter().enumerate() {
            let at = |(name, _): &(String, u32)| name.as_bytes().get(depth).copied();
            let from = candidates.partition_point(|token| at(token) < Some(*byte));
            let len = candidates[from..].partition_point(|token| at(token) == Some(*byte));
            candidates = &candidates[from..from + len];
            match candidates.first() {
                None => break,
                Some(token) if token.0.len() == depth + 1 && allowed(token) => best = Some(token),
                Some(_) => {}
            }
        }
        best
    }

    /// Cuts `text` into special tokens and what lies between them.
    pub(crate) fn split<'t>(&self, text: &'t str, each: impl FnMut(Part<'t>)) {
        self.split_where(text, |_, _| true, each);
    }

    /// As [`Finder::split`], with those tokens only that are allowed where they stand.
    pub(crate) fn split_where<'t>(
        &self,
        text: &'t str,
        allowed: impl Fn(u32, Range<usize>) -> bool,
        mut each: impl FnMut(Part<'t>),
    ) {
        let bytes = text.as_bytes();
        let (mut from, mut at) = (0, 0);
        while at < bytes.len() {
            let here = |(name, id): &(String, u32)| allowed(*id, at..at + name.len());
            let begins = self.begins[usize::from(bytes[at])];
            let Some((name, id)) = begins.then(|| self.longest(&bytes[at..], here)).flatten() else {
                at += 1;
                continue;
            };
            if from < at {
                each(Part::Text(&text[from..at]));
            }
            each(Part::Token(*id));
            at += name.len();
            from = at;
        }
        if from < text.len() {
            each(Part::Text(&text[from..]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_match_from_left_to_right() {
        let names = ["<a>", "<a>b", "<ab>", "é", ""];
        let finder = Finder::new(names.iter().zip(0..).map(|(name, id)| (*name, id)));
        let split = |text: &'static str| {
            let mut parts = Vec::new();
            finder.split(text, |part| parts.push(part));
            parts
        };
        use Part::{Text, Token};
        assert_eq!(split("x<a>y"), [Text("x"), Token(0), Text("y")]);
        assert_eq!(split("<a>b<a><a"), [Token(1), Token(0), Text("<a")]);
        assert_eq!(split("<ab<ab>"), [Text("<ab"), Token(2)]);
        assert_eq!(split("日é語"), [Text("日"), Token(3), Text("語")]);
        assert_eq!(split(""), []);
    }
}
