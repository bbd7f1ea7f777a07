//! Cutting text into the words inside which tokens are merged: a few steps, each cutting what those before it left.

use crate::alphabet;
use crate::pattern::Pattern;

/// Most steps; real tokenizers have up to six.
pub(crate) const MAX_STEPS: usize = 32;

/// What becomes of the matches of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behaviour {
    /// Each is a word.
    Isolated,
    /// They are dropped.
    Removed,
    /// What lies between is dropped.
    Kept,
    /// Each ends the word in front of it.
    MergedWithPrevious,
    /// Each begins the word behind it.
    MergedWithNext,
    /// Those without anything between are one word.
    Contiguous,
}

/// When a word gets a space in front that the text does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefix {
    Always,
    /// At the start of the text only.
    First,
    Never,
}

/// A step.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Cut at the matches of a pattern. `inverted` takes what lies between for the matches.
    Cut { pattern: Box<Pattern>, behaviour: Behaviour, inverted: bool },
    /// Put a space in front where there is none.
    SpaceInFront,
    /// Write spaces as this character, with one in front.
    Replace { space: char, prefix: Prefix },
    /// Write bytes in GPT-2's alphabet, for steps that look at them so.
    Alphabet,
}

/// Hands every word of `text` to `each`, in order. `is_start` tells whether the text begins here.
pub(crate) fn split(steps: &[Step], text: &str, is_start: bool, each: &mut dyn FnMut(&str)) {
    if text.is_empty() {
        return;
    }
    let Some((step, rest)) = steps.split_first() else { return each(text) };
    match step {
        Step::Cut { pattern, behaviour: Behaviour::Isolated, .. } => {
            let mut is_start = is_start;
            pattern.split(text, |part, _| {
                if rest.is_empty() {
                    each(part)
                } else {
                    split(rest, part, is_start, each)
                }
                is_start = false;
            });
        }
        Step::Cut { pattern, behaviour, inverted } => {
            for (from, to) in pieces(pattern, text, *behaviour, *inverted) {
                split(rest, &text[from..to], is_start && from == 0, each);
            }
        }
        Step::SpaceInFront if !text.starts_with(' ') => split(rest, &format!(" {text}"), is_start, each),
        Step::SpaceInFront => split(rest, text, is_start, each),
        Step::Replace { space, prefix } => {
            let mut replaced = String::with_capacity(text.len() + text.len() / 4 + space.len_utf8());
            let wanted = *prefix == Prefix::Always || (*prefix == Prefix::First && is_start);
            if wanted && !text.starts_with([' ', *space]) {
                replaced.push(*space);
            }
            replaced.extend(text.chars().map(|c| if c == ' ' { *space } else { c }));
            split(rest, &replaced, is_start, each);
        }
        Step::Alphabet => {
            let written: String = text.bytes().map(alphabet::char_of).collect();
            split(rest, &written, is_start, each);
        }
    }
}

/// From where to where each piece goes that a pattern cuts `text` into.
fn pieces(pattern: &Pattern, text: &str, behaviour: Behaviour, inverted: bool) -> Vec<(usize, usize)> {
    let mut parts = Vec::new();
    let mut at = 0;
    pattern.split(text, |part, is_match| {
        parts.push((at, at + part.len(), is_match != inverted));
        at += part.len();
    });
    let mut pieces: Vec<(usize, usize)> = Vec::with_capacity(parts.len());
    let mut after_match = false;
    let mut add = |(from, to, _): (usize, usize, bool), joins: bool| match pieces.last_mut() {
        Some(last) if joins && last.1 == from => last.1 = to,
        Some(last) if joins && last.0 == to => last.0 = from,
        _ => pieces.push((from, to)),
    };
    match behaviour {
        Behaviour::Isolated => parts.into_iter().for_each(|part| add(part, false)),
        Behaviour::Removed => parts.into_iter().filter(|part| !part.2).for_each(|part| add(part, false)),
        Behaviour::Kept => parts.into_iter().filter(|part| part.2).for_each(|part| add(part, false)),
        Behaviour::Contiguous => {
            for part in parts {
                add(part, part.2 == after_match);
                after_match = part.2;
            }
        }
        Behaviour::MergedWithPrevious => {
            for part in parts {
                add(part, part.2 && !after_match);
                after_match = part.2;
            }
        }
        Behaviour::MergedWithNext => {
            for part in parts.into_iter().rev() {
                add(part, part.2 && !after_match);
                after_match = part.2;
            }
            pieces.reverse();
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::Preset;

    fn words(steps: &[Step], text: &str) -> Vec<String> {
        let mut words = Vec::new();
        split(steps, text, true, &mut |word| words.push(word.to_owned()));
        words
    }

    fn cut(pattern: &str, behaviour: Behaviour, inverted: bool) -> Step {
        Step::Cut { pattern: Box::new(Pattern::new(pattern).unwrap()), behaviour, inverted }
    }

    fn preset(name: &str, text: &str) -> Vec<String> {
        let splits = Preset::find(name).unwrap().splits;
        let steps: Vec<Step> = splits.iter().map(|split| cut(split, Behaviour::Isolated, false)).collect();
        words(&steps, text)
    }

    #[test]
    fn gpt2() {
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
            assert_eq!(preset("gpt-2", text), expected, "{text:?}");
        }
    }

    #[test]
    fn other_presets() {
        let cases: [(&str, &str, &[&str]); 14] = [
            ("smollm", "x12 3", &["x", "1", "2", " ", "3"]),
            ("smollm", "a   1's", &["a", "   ", "1", "'s"]),
            ("llama-bpe", "It'S 1234 a\n\n b!\n", &["It", "'S", " ", "123", "4", " a", "\n\n", " b", "!\n"]),
            ("llama-bpe", "$x (y", &["$x", " (", "y"]),
            ("qwen2", "a12", &["a", "1", "2"]),
            ("qwen35", "e\u{301}a", &["e\u{301}a"]),
            ("gpt-4o", "camelCase ABCdef don't/\n", &["camel", "Case", " ABCdef", " don't", "/\n"]),
            ("tekken", "don't ÀÉa", &["don", "'t", " ÀÉa"]),
            ("deepseek-v3", "a1234.xyz 漢字kana", &["a", "123", "4", ".xyz", " ", "漢字", "kana"]),
            ("superbpe", "a b1234567", &["a b", "1", "234", "567"]),
            ("tiny_aya", "ab12345 x", &["ab", "12", "345", " x"]),
            ("kimi-k2", "ab漢字cd's", &["ab", "漢字", "cd's"]),
            ("bloom", "a b, c.", &["a", " b", ",", " c", "."]),
            ("gemma4", "a b\n\nc", &["a b", "\n\n", "c"]),
        ];
        for (name, text, expected) in cases {
            assert_eq!(preset(name, text), expected, "{name}: {text:?}");
        }
    }

    #[test]
    fn every_preset_compiles_and_keeps_the_text() {
        assert_eq!(
            Preset::names().filter(|name| Preset::find(name).is_some()).count(),
            Preset::names().count()
        );
        let text = "Ab'S 12345é\u{301} 漢字\r\n\t\u{3000}{}/…x\u{10FFFF}\u{200d}  ";
        for name in Preset::names() {
            assert_eq!(preset(name, text).concat(), text, "{name}");
        }
    }

    #[test]
    fn patterns_take_few_steps() {
        let words = "The keeper's 1234 lamps, at 5 o'CLOCK: lit (again)!\n\n    北京是中华人民共和国 héllo "
            .repeat(40);
        let runs =
            [("x", 36_000), ("Z", 131_072), (" ", 36_000), ("\u{200d}", 20_000), ("é", 9_000), ("!", 9_000)];
        // The table decides long runs of blanks for `jais-2`: it looks for a line break behind each 512 of them.
        for name in Preset::names().filter(|name| *name != "jais-2") {
            for split in Preset::find(name).unwrap().splits {
                let pattern = Pattern::new(split).unwrap();
                let texts = runs.iter().map(|(unit, count)| unit.repeat(*count)).chain([words.clone()]);
                for text in texts {
                    let steps = pattern.steps(&text).map(|steps| steps as f64 / text.len() as f64);
                    let shown: String = text.chars().take(8).collect();
                    assert!(
                        steps.is_some_and(|steps| steps < 12.0),
                        "{name}: {steps:?} a byte of {shown:?}: {split}"
                    );
                }
            }
        }
    }

    #[test]
    fn behaviours() {
        use Behaviour::*;
        let cases: [(Behaviour, bool, &[&str]); 8] = [
            (Isolated, false, &["the", "-", "final", "-", "-", "countdown"]),
            (Removed, false, &["the", "final", "countdown"]),
            (Kept, false, &["-", "-", "-"]),
            (Removed, true, &["-", "-", "-"]),
            (MergedWithPrevious, false, &["the-", "final-", "-", "countdown"]),
            (MergedWithNext, false, &["the", "-final", "-", "-countdown"]),
            (Contiguous, false, &["the", "-", "final", "--", "countdown"]),
            (MergedWithNext, true, &["the-", "final-", "-", "countdown"]),
        ];
        for (behaviour, inverted, expected) in cases {
            let found = words(&[cut("-", behaviour, inverted)], "the-final--countdown");
            assert_eq!(found, expected, "{behaviour:?} {inverted}");
        }
    }

    #[test]
    fn spaces_in_front() {
        let metaspace =
            |prefix| [Step::Replace { space: '▁', prefix }, cut("▁", Behaviour::MergedWithNext, false)];
        assert_eq!(words(&metaspace(Prefix::Always), "a b"), ["▁a", "▁b"]);
        assert_eq!(words(&metaspace(Prefix::Never), "a  b"), ["a", "▁", "▁b"]);
        assert_eq!(words(&metaspace(Prefix::Always), " a"), ["▁a"]);
        let mut later = Vec::new();
        split(&metaspace(Prefix::First), "a", false, &mut |word| later.push(word.to_owned()));
        assert_eq!(later, ["a"]);
        assert_eq!(words(&[Step::SpaceInFront], "a"), [" a"]);
        assert_eq!(words(&[Step::SpaceInFront, Step::Alphabet], "é"), ["ĠÃ©"]);
    }
}
