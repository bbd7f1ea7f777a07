//! Pre-tokenizers of `tokenizer.json` as steps.

use super::pattern;
use super::schema::{Behavior, PreTokenizer, PrependScheme, Text};
use crate::TokenizerError;
use crate::pattern::Pattern;
use crate::split::{Behaviour, Prefix, Step};

/// What the byte-level pre-tokenizer cuts with.
const BYTE_LEVEL: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// Words and what is none, as the pre-tokenizer `Whitespace` has them. Its word characters are those of another library
/// than `\w` elsewhere: with joiners, without superscripts and fractions.
const WHITESPACE: &str = concat!(
    r"[[\w&&[^\xB2\xB3\xB9\xBC-\xBE]]\u200C\u200D]+",
    r"|[^[\w&&[^\xB2\xB3\xB9\xBC-\xBE]]\u200C\u200D\s]+"
);

/// The steps of a pre-tokenizer.
pub(super) fn steps(given: Option<PreTokenizer>) -> Result<Vec<Step>, TokenizerError> {
    Ok(match given {
        None => Vec::new(),
        Some(PreTokenizer::Sequence { pretokenizers }) => {
            let all = pretokenizers.into_iter().map(|one| steps(Some(one)));
            all.collect::<Result<Vec<_>, _>>()?.concat()
        }
        Some(PreTokenizer::ByteLevel { add_prefix_space, use_regex }) => {
            let front = add_prefix_space.then_some(Step::SpaceInFront);
            let words = if use_regex { Some(cut(BYTE_LEVEL, Behaviour::Isolated)?) } else { None };
            front.into_iter().chain(words).chain([Step::Alphabet]).collect()
        }
        Some(PreTokenizer::Split { pattern: text, behavior, invert }) => {
            let pattern = Box::new(pattern(&text)?);
            vec![Step::Cut { pattern, behaviour: behavior.into(), inverted: invert }]
        }
        Some(PreTokenizer::Digits { individual_digits: true }) => vec![cut(r"\p{N}", Behaviour::Isolated)?],
        Some(PreTokenizer::Digits { .. }) => vec![cut(r"\p{N}+", Behaviour::Isolated)?],
        Some(PreTokenizer::Punctuation { behavior }) => vec![cut(r"[!-/:-@\[-`{-~\p{P}]", behavior.into())?],
        Some(PreTokenizer::Metaspace { replacement, prepend_scheme, add_prefix_space, split }) => {
            let prefix = match prepend_scheme {
                Some(PrependScheme::Always) => Prefix::Always,
                Some(PrependScheme::First) => Prefix::First,
                Some(PrependScheme::Never) => Prefix::Never,
                None if add_prefix_space => Prefix::Always,
                None => Prefix::Never,
            };
            let mut steps = vec![Step::Replace { space: replacement, prefix }];
            if split {
                let pattern = Box::new(pattern(&Text::String(replacement.into()))?);
                steps.push(Step::Cut { pattern, behaviour: Behaviour::MergedWithNext, inverted: false });
            }
            steps
        }
        Some(PreTokenizer::Whitespace) => vec![cut(WHITESPACE, Behaviour::Kept)?],
        Some(PreTokenizer::WhitespaceSplit) => vec![cut(r"\s", Behaviour::Removed)?],
        Some(PreTokenizer::CharDelimiterSplit { delimiter }) => {
            let pattern = Box::new(pattern(&Text::String(delimiter.into()))?);
            vec![Step::Cut { pattern, behaviour: Behaviour::Removed, inverted: false }]
        }
    })
}

fn cut(pattern: &str, behaviour: Behaviour) -> Result<Step, TokenizerError> {
    let compiled = Pattern::new(pattern)
        .map_err(|problem| TokenizerError::Pattern { pattern: pattern.into(), problem })?;
    Ok(Step::Cut { pattern: Box::new(compiled), behaviour, inverted: false })
}

impl From<Behavior> for Behaviour {
    fn from(given: Behavior) -> Behaviour {
        match given {
            Behavior::Removed => Behaviour::Removed,
            Behavior::Isolated => Behaviour::Isolated,
            Behavior::MergedWithPrevious => Behaviour::MergedWithPrevious,
            Behavior::MergedWithNext => Behaviour::MergedWithNext,
            Behavior::Contiguous => Behaviour::Contiguous,
        }
    }
}
