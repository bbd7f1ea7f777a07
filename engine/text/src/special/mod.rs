//! Finding special tokens in text.

mod trie;

use crate::unicode::is_word;
use std::ops::Range;
use trie::Trie;

/// Longest name of a special token, in bytes.
pub(crate) const MAX_NAME: usize = 1024;

/// A token to be found by its name.
#[derive(Clone, Debug)]
pub(crate) struct Special {
    pub(crate) name: String,
    pub(crate) id: u32,
    /// Found only on request.
    pub(crate) control: bool,
    /// Takes the white space in front with it.
    pub(crate) strip_left: bool,
    /// Takes the white space behind with it.
    pub(crate) strip_right: bool,
    /// Found only where no word character is next to it.
    pub(crate) single_word: bool,
}

impl Special {
    /// A token without further conditions.
    pub(crate) fn new(name: &str, id: u32, control: bool) -> Special {
        Special { name: name.into(), id, control, strip_left: false, strip_right: false, single_word: false }
    }
}

/// Which of overlapping tokens are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The longest of the whole text first, as in llama.cpp. Control tokens that are not asked for do not count.
    Longest,
    /// From left to right, at each place the longest, as in Hugging Face's tokenizers. Control tokens that are not asked
    /// for cover the text they stand in.
    Leftmost,
}

/// A set of tokens to be found in text by their names.
#[derive(Debug)]
pub(crate) struct Finder {
    /// Ordered by name.
    tokens: Vec<Special>,
    names: Trie,
    /// Whether a name begins with this byte.
    begins: Vec<bool>,
    /// Bytes of the longest name.
    longest: usize,
    order: Order,
}

/// Where names of control tokens in a text are those tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Controls<'r> {
    Nowhere,
    Everywhere,
    /// Inside one of these ranges of bytes, which are in order and apart.
    Inside(&'r [Range<usize>]),
}

impl Controls<'_> {
    /// Whether a control token may stand from byte to byte.
    fn allow(self, start: usize, end: usize) -> bool {
        match self {
            Controls::Nowhere => false,
            Controls::Everywhere => true,
            Controls::Inside(ranges) => {
                let around = ranges.get(ranges.partition_point(|range| range.end < end));
                around.is_some_and(|range| range.start <= start)
            }
        }
    }

    /// The same for the part of the text from byte to byte alone, after it may have been changed.
    pub(crate) fn of_part(self, start: usize, end: usize) -> Controls<'static> {
        if self.allow(start, end) { Controls::Everywhere } else { Controls::Nowhere }
    }
}

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part<'t> {
    /// Ordinary text, not empty, and the byte at which it begins.
    Text(&'t str, usize),
    /// A special token.
    Token(u32),
}

/// A token found in a text: from byte to byte, and its index in the finder.
type Found = (usize, usize, usize);

impl Finder {
    /// A finder of these tokens; names differ, and an empty one is ignored.
    pub(crate) fn new(tokens: impl IntoIterator<Item = Special>, order: Order) -> Finder {
        let mut tokens: Vec<Special> = tokens.into_iter().filter(|token| !token.name.is_empty()).collect();
        tokens.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        let mut begins = vec![false; 256];
        tokens.iter().for_each(|token| begins[usize::from(token.name.as_bytes()[0])] = true);
        let names: Vec<&[u8]> = tokens.iter().map(|token| token.name.as_bytes()).collect();
        let longest = names.iter().map(|name| name.len()).max().unwrap_or_default();
        Finder { names: Trie::new(&names), tokens, begins, longest, order }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The longest token with which `text` begins, of those that are wanted.
    fn beginning(&self, text: &[u8], wanted: impl Fn(&Special) -> bool) -> Option<usize> {
        let mut longest = None;
        if text.first().is_some_and(|byte| self.begins[usize::from(*byte)]) {
            self.names.beginning(text, |token| {
                if wanted(&self.tokens[token]) {
                    longest = Some(token);
                }
            });
        }
        longest
    }

    /// Cuts `text` into special tokens and what lies between them.
    pub(crate) fn split<'t>(&self, text: &'t str, controls: Controls<'_>, mut each: impl FnMut(Part<'t>)) {
        let found = match self.order {
            Order::Longest => self.longest(text.as_bytes(), controls),
            Order::Leftmost => self.leftmost(text, controls),
        };
        let mut from = 0;
        for (i, &(start, end, token)) in found.iter().enumerate() {
            let special = &self.tokens[token];
            let between = &text[from.min(start)..start];
            let between = if special.strip_left { self.trim_end(between) } else { between };
            if !between.is_empty() {
                each(Part::Text(between, from));
            }
            each(Part::Token(special.id));
            from = end;
            if special.strip_right {
                let limit = found.get(i + 1).map_or(text.len(), |next| next.0.max(end));
                from = limit - self.trim_start(&text[end..limit]).len();
            }
        }
        if from < text.len() {
            each(Part::Text(&text[from..], from));
        }
    }

    fn trim_start<'t>(&self, text: &'t str) -> &'t str {
        match self.order {
            Order::Longest => text.trim_start_matches(is_ascii_space),
            Order::Leftmost => text.trim_start(),
        }
    }

    fn trim_end<'t>(&self, text: &'t str) -> &'t str {
        match self.order {
            Order::Longest => text.trim_end_matches(is_ascii_space),
            Order::Leftmost => text.trim_end(),
        }
    }

    fn leftmost(&self, text: &str, controls: Controls<'_>) -> Vec<Found> {
        let bytes = text.as_bytes();
        let (mut found, mut at) = (Vec::new(), 0);
        while at < bytes.len() {
            let allowed = |special: &Special| !special.control || controls.allow(at, at + special.name.len());
            // What covers text without being a token must not reach from untrusted into trusted text.
            let covers = !matches!(controls, Controls::Inside(_));
            let Some(token) = self.beginning(&bytes[at..], |special| covers || allowed(special)) else {
                at += 1;
                continue;
            };
            let special = &self.tokens[token];
            let end = at + special.name.len();
            let alone = || !text[..at].ends_with(is_word) && !text[end..].starts_with(is_word);
            if allowed(special) && (!special.single_word || alone()) {
                found.push((at, end, token));
            }
            at = end;
        }
        found
    }

    fn longest(&self, text: &[u8], controls: Controls<'_>) -> Vec<Found> {
        // The longest token at `at` that is shorter than `limit`.
        let below = |at: usize, limit: usize| {
            self.beginning(&text[at..], |special| {
                let len = special.name.len();
                len < limit && (!special.control || controls.allow(at, at + len))
            })
        };
        // For each length, tokens of it: of every place the longest that may still be taken.
        let mut by_length: Vec<Vec<(usize, usize)>> = Vec::new();
        for at in 0..text.len() {
            if let Some(token) = below(at, usize::MAX) {
                by_length.resize(self.longest + 1, Vec::new());
                by_length[self.tokens[token].name.len()].push((at, token));
            }
        }
        let mut taken = vec![false; if by_length.is_empty() { 0 } else { text.len() }];
        let mut found: Vec<Found> = Vec::new();
        for length in (1..by_length.len()).rev() {
            let mut tokens = std::mem::take(&mut by_length[length]);
            tokens.sort_unstable();
            for (at, token) in tokens {
                // What is taken is no shorter, so that an overlap covers an end.
                if taken[at] {
                    continue;
                }
                if !taken[at + length - 1] {
                    taken[at..at + length].fill(true);
                    found.push((at, at + length, token));
                } else if let Some(token) = below(at, length) {
                    by_length[self.tokens[token].name.len()].push((at, token));
                }
            }
        }
        found.sort_unstable();
        found
    }
}

fn is_ascii_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\u{B}'
}

#[cfg(test)]
mod tests {
    use super::*;
    use Part::Token;

    fn split_in(finder: &Finder, text: &'static str, controls: Controls<'_>) -> Vec<Part<'static>> {
        let (mut parts, mut seen) = (Vec::new(), 0);
        finder.split(text, controls, |part| {
            if let Part::Text(part, at) = part {
                assert!(at >= seen && text[at..].starts_with(part));
                seen = at;
            }
            parts.push(if let Part::Text(part, _) = part { Text(part) } else { part });
        });
        parts
    }

    fn split(finder: &Finder, text: &'static str, controls: bool) -> Vec<Part<'static>> {
        split_in(finder, text, if controls { Controls::Everywhere } else { Controls::Nowhere })
    }

    /// Text, wherever it stands.
    #[allow(non_snake_case, reason = "reads as the variant that it makes")]
    fn Text(text: &str) -> Part<'_> {
        Part::Text(text, 0)
    }

    fn finder(order: Order) -> Finder {
        let names =
            [("<a>", false), ("<a>b", false), ("<ab>", false), ("é", false), ("", false), ("[<a>]", true)];
        Finder::new(
            names.iter().zip(0..).map(|((name, control), id)| Special::new(name, id, *control)),
            order,
        )
    }

    #[test]
    fn without_overlaps_both_orders_are_one() {
        for order in [Order::Longest, Order::Leftmost] {
            let finder = finder(order);
            assert_eq!(split(&finder, "x<a>y", true), [Text("x"), Token(0), Text("y")]);
            assert_eq!(split(&finder, "<a>b<a><a", true), [Token(1), Token(0), Text("<a")]);
            assert_eq!(split(&finder, "<ab<ab>", true), [Text("<ab"), Token(2)]);
            assert_eq!(split(&finder, "日é語", true), [Text("日"), Token(3), Text("語")]);
            assert_eq!(split(&finder, "[<a>]", true), [Token(5)]);
            assert_eq!(split(&finder, "", true), []);
        }
        assert_eq!(split(&finder(Order::Longest), "[<a>]", false), [Text("["), Token(0), Text("]")]);
        assert_eq!(split(&finder(Order::Leftmost), "[<a>]", false), [Text("[<a>]")]);
    }

    #[test]
    fn overlaps() {
        let finder = |order| {
            Finder::new(
                ["ab", "bcd", "aa", "aaa"].iter().zip(0..).map(|(n, id)| Special::new(n, id, false)),
                order,
            )
        };
        assert_eq!(split(&finder(Order::Longest), "abcd", true), [Text("a"), Token(1)]);
        assert_eq!(split(&finder(Order::Leftmost), "abcd", true), [Token(0), Text("cd")]);
        for order in [Order::Longest, Order::Leftmost] {
            assert_eq!(split(&finder(order), "aaaaa", true), [Token(3), Token(2)]);
        }
    }

    const NAMES: [&str; 8] = ["a", "ab", "abc", "bc", "aaa", "aaaa", "cab", "bb"];

    /// The longest token anywhere, the leftmost of equals, until none fits between those that were taken.
    fn longest_slowly(text: &str) -> Vec<(usize, usize)> {
        let mut found: Vec<(usize, usize)> = Vec::new();
        loop {
            let free =
                |&(from, to): &(usize, usize)| found.iter().all(|&(start, end)| to <= start || end <= from);
            let all = NAMES.into_iter().flat_map(|name| {
                let places = (0..text.len()).filter(move |&at| text[at..].starts_with(name));
                places.map(move |at| (at, at + name.len()))
            });
            let best = all.filter(free).max_by_key(|&(from, to)| (to - from, usize::MAX - from));
            let Some(best) = best else { break };
            found.push(best);
        }
        found.sort_unstable();
        found
    }

    proptest::proptest! {
        #[test]
        fn the_longest_go_first(text in "[abc]{0,24}") {
            let tokens = NAMES.iter().zip(0..).map(|(name, id)| Special::new(name, id, false));
            let found = Finder::new(tokens, Order::Longest).longest(text.as_bytes(), Controls::Nowhere);
            let found: Vec<_> = found.into_iter().map(|(from, to, _)| (from, to)).collect();
            proptest::prop_assert_eq!(found, longest_slowly(&text));
        }
    }

    #[test]
    fn conditions() {
        let token = |name, id| Special::new(name, id, false);
        let tokens = [
            Special { strip_left: true, ..token("<l>", 0) },
            Special { strip_right: true, ..token("<r>", 1) },
            Special { single_word: true, ..token("<w>", 2) },
        ];
        let finder = |order| Finder::new(tokens.clone(), order);
        let leftmost = finder(Order::Leftmost);
        assert_eq!(split(&leftmost, "a \u{3000}<l> b", true), [Text("a"), Token(0), Text(" b")]);
        assert_eq!(
            split(&leftmost, "a <r> \n<l>b <r>", true),
            [Text("a "), Token(1), Token(0), Text("b "), Token(1)]
        );
        assert_eq!(split(&leftmost, "a<w> <w>", true), [Text("a<w> "), Token(2)]);
        assert_eq!(split(&finder(Order::Longest), "a\u{3000} <l>", true), [Text("a\u{3000}"), Token(0)]);
    }

    #[test]
    fn control_tokens_stand_inside_ranges() {
        let one = |from, to| Range { start: from, end: to };
        for order in [Order::Longest, Order::Leftmost] {
            let finder = finder(order);
            let found = |ranges: &[Range<usize>]| split_in(&finder, "[<a>][<a>]é", Controls::Inside(ranges));
            let nested = [Text("["), Token(0), Text("]")];
            assert_eq!(found(&[one(0, 10)]), [Token(5), Token(5), Token(3)]);
            assert_eq!(found(&[one(0, 5)]), [&[Token(5)][..], &nested, &[Token(3)]].concat());
            assert_eq!(found(&[one(0, 4), one(4, 10)]), [&nested[..], &[Token(5), Token(3)]].concat());
            assert_eq!(found(&[])[..2], [Text("["), Token(0)]);
        }
        assert_eq!(Controls::Inside(&[one(2, 4)]).of_part(2, 3), Controls::Everywhere);
        assert_eq!(Controls::Inside(&[one(2, 4)]).of_part(1, 3), Controls::Nowhere);
    }
}
