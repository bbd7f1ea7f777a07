//! SentencePiece's merges: not listed, but implied by the vocabulary and its scores.

use crate::bpe::Chars;
use crate::merge::Merge;
use std::collections::{BTreeSet, HashMap};

/// What stands for a space.
const SPACE: char = '▁';
/// Most characters behind which a space may be inside a token before words are no longer told apart.
const MAX_CROSSING: usize = 64;

/// Merges, and what they leave unmerged.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) merges: Vec<(u32, Merge)>,
    /// Tokens, and characters that are none but merge into one.
    pub(crate) units: u32,
    /// Characters that some merge joins with a space behind them.
    crossing: BTreeSet<char>,
}

/// Every way to put one of `texts` together from two others or from characters, ranked by score: the highest first, equals
/// alike. Characters that are no tokens get ids in `chars`.
pub(crate) fn merges(texts: &[(u32, &str)], scores: &[f32], chars: &mut Chars) -> Found {
    let mut order: Vec<f32> = texts.iter().map(|(id, _)| scores[*id as usize]).collect();
    order.sort_unstable_by(|a, b| b.total_cmp(a));
    order.dedup();
    let ids: HashMap<&str, u32> = texts.iter().map(|&(id, text)| (text, id)).collect();
    let mut found = Found { merges: Vec::new(), units: chars.tokens, crossing: BTreeSet::new() };
    for &(merged, text) in texts {
        let score = scores[merged as usize];
        let rank = order.partition_point(|other| *other > score) as u32;
        for (at, _) in text.char_indices().skip(1) {
            let (left, right) = text.split_at(at);
            let Some(left_id) = found.unit(left, &ids, chars) else { continue };
            let Some(right_id) = found.unit(right, &ids, chars) else { continue };
            found.merges.push((left_id, Merge { right: right_id, rank, merged }));
            if right.starts_with(SPACE) {
                found.crossing.extend(left.chars().next_back().filter(|&c| c != SPACE));
            }
        }
    }
    found
}

impl Found {
    /// The id of a part: a token, or a character.
    fn unit(&mut self, part: &str, ids: &HashMap<&str, u32>, chars: &mut Chars) -> Option<u32> {
        if let Some(&id) = ids.get(part) {
            return Some(id);
        }
        let mut all = part.chars();
        let c = all.next().filter(|_| all.next().is_none())?;
        Some(*chars.ids.entry(c).or_insert_with(|| {
            self.units += 1;
            self.units - 1
        }))
    }

    /// A pattern of words that no merge joins with the next, if spaces part them.
    pub(crate) fn word_pattern(&self) -> Option<String> {
        if self.crossing.len() > MAX_CROSSING {
            return None;
        }
        let mut pattern = format!("(?:{SPACE}+[^{SPACE}]*|[^{SPACE}]+)");
        if !self.crossing.is_empty() {
            let crossing: String =
                self.crossing.iter().map(|&c| format!("\\x{{{:X}}}", u32::from(c))).collect();
            pattern += &format!("(?:(?<=[{crossing}]){SPACE}+[^{SPACE}]*)*");
        }
        Some(pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Pattern;

    fn found(texts: &[&str], scores: &[f32]) -> (Found, Chars) {
        let single = |text: &&str| text.chars().count() == 1;
        let ids = texts.iter().zip(0..).filter(|(text, _)| single(text));
        let ids = ids.map(|(text, id)| (text.chars().next().unwrap(), id)).collect();
        let mut chars =
            Chars { ids, tokens: texts.len() as u32, bytes: None, unknown: None, fuse_unknown: false };
        let texts: Vec<(u32, &str)> = (0..).zip(texts.iter().copied()).collect();
        (merges(&texts, scores, &mut chars), chars)
    }

    #[test]
    fn every_split_of_a_token_is_a_merge() {
        let (found, chars) = found(&["a", "b", "ab", "abq", "bq"], &[0.0, 0.0, -1.0, -3.0, -1.0]);
        // `q` is no token.
        assert_eq!((chars.ids[&'q'], found.units), (5, 6));
        let merge = |left, right, rank, merged| (left, Merge { right, rank, merged });
        assert_eq!(
            found.merges,
            [merge(0, 1, 1, 2), merge(0, 4, 2, 3), merge(2, 5, 2, 3), merge(1, 5, 1, 4)]
        );
    }

    #[test]
    fn words_end_where_no_merge_goes_on() {
        let cut = |texts: &[&str], text: &str| {
            let (found, _) = found(texts, &vec![0.0; texts.len()]);
            let mut words = Vec::new();
            let pattern = Pattern::new(&found.word_pattern().unwrap()).unwrap();
            pattern.split(text, |word, _| words.push(word.to_owned()));
            words
        };
        assert_eq!(cut(&["▁", "a", "▁a", "▁▁"], "a▁a▁▁a▁"), ["a", "▁a", "▁▁a", "▁"]);
        assert_eq!(cut(&[">", "▁", "<", ">▁", ">▁<"], "▁>▁▁<▁a>"), ["▁>▁▁<", "▁a>"]);
        assert_eq!(cut(&["a"], ""), [""; 0]);
    }
}
