//! Changes to text before it is cut into words.

use crate::alphabet;
use crate::pattern::Pattern;
use crate::unicode::is_mark;
use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;

/// A change.
#[derive(Clone, Debug)]
pub(crate) enum Normalizer {
    Nfc,
    Nfd,
    Nfkc,
    Nfkd,
    Lowercase,
    StripAccents,
    /// White space at the ends.
    Strip {
        left: bool,
        right: bool,
    },
    /// Text in front of any text but an empty one.
    Prepend(String),
    Replace {
        what: Found,
        with: String,
    },
    /// Bytes in GPT-2's alphabet.
    Alphabet,
}

/// What is replaced.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// This text, which is not empty.
    Text(String),
    Pattern(Box<Pattern>),
}

impl Normalizer {
    /// The changed text.
    pub(crate) fn apply<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        match self {
            // Form C of ASCII is itself, and so are the others.
            Normalizer::Nfc | Normalizer::Nfd | Normalizer::Nfkc | Normalizer::Nfkd if text.is_ascii() => {
                text
            }
            Normalizer::Nfc => text.nfc().collect(),
            Normalizer::Nfd => text.nfd().collect(),
            Normalizer::Nfkc => text.nfkc().collect(),
            Normalizer::Nfkd => text.nfkd().collect(),
            Normalizer::Lowercase => text.chars().flat_map(char::to_lowercase).collect(),
            Normalizer::StripAccents => text.chars().filter(|c| !is_mark(*c)).collect(),
            Normalizer::Strip { left, right } => {
                let start = if *left { text.trim_start() } else { &text };
                let both = if *right { start.trim_end() } else { start };
                Cow::Owned(both.to_owned())
            }
            Normalizer::Prepend(_) if text.is_empty() => text,
            Normalizer::Prepend(prefix) => Cow::Owned([prefix.as_str(), &text].concat()),
            Normalizer::Replace { what: Found::Text(what), with } if text.contains(what) => {
                Cow::Owned(text.replace(what, with))
            }
            Normalizer::Replace { what: Found::Text(_), .. } => text,
            Normalizer::Replace { what: Found::Pattern(pattern), with } => {
                let mut replaced = String::with_capacity(text.len());
                pattern.split(&text, |part, is_match| replaced.push_str(if is_match { with } else { part }));
                Cow::Owned(replaced)
            }
            Normalizer::Alphabet => text.bytes().map(alphabet::char_of).collect(),
        }
    }
}

/// The text after all changes, in order.
pub(crate) fn normalize<'t>(all: &[Normalizer], text: &'t str) -> Cow<'t, str> {
    all.iter().fold(Cow::Borrowed(text), |text, one| one.apply(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes() {
        let replace = |what: &str, with: &str| Normalizer::Replace {
            what: Found::Text(what.into()),
            with: with.into(),
        };
        let pattern = Found::Pattern(Box::new(Pattern::new(" {2,}").unwrap()));
        let cases = [
            (Normalizer::Nfc, "e\u{301}ﬁ", "éﬁ"),
            (Normalizer::Nfd, "é", "e\u{301}"),
            (Normalizer::Nfkc, "ﬁ①", "fi1"),
            (Normalizer::Nfkd, "é①", "e\u{301}1"),
            (Normalizer::Lowercase, "ÀB", "àb"),
            (Normalizer::StripAccents, "e\u{301}a", "ea"),
            (Normalizer::Strip { left: true, right: false }, " a ", "a "),
            (Normalizer::Strip { left: false, right: true }, " a ", " a"),
            (Normalizer::Prepend("▁".into()), "a", "▁a"),
            (Normalizer::Prepend("▁".into()), "", ""),
            (replace(" ", "▁"), "a b  c", "a▁b▁▁c"),
            (Normalizer::Replace { what: pattern, with: " ".into() }, "a b   c", "a b c"),
            (Normalizer::Alphabet, "é ", "Ã©Ġ"),
        ];
        for (change, text, expected) in cases {
            assert_eq!(change.apply(Cow::Borrowed(text)), expected, "{change:?}");
        }
        assert_eq!(normalize(&[Normalizer::Prepend(" ".into()), replace(" ", "▁")], "a b"), "▁a▁b");
    }
}
