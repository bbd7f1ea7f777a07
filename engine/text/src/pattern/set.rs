//! Sets of characters.

use crate::unicode::Ranges;

const LAST: u32 = 0x10_FFFF;

/// A set of characters as runs, in increasing order and apart from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CharSet {
    ranges: Ranges,
}

impl CharSet {
    /// The characters of these runs, which may be in any order and overlap.
    pub(super) fn new(mut ranges: Ranges) -> CharSet {
        ranges.sort_unstable();
        let mut apart: Ranges = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match apart.last_mut() {
                Some(run) if first <= run.1.saturating_add(1) => run.1 = run.1.max(last),
                _ => apart.push((first, last)),
            }
        }
        CharSet { ranges: apart }
    }

    /// One character.
    pub(super) fn one(c: char) -> CharSet {
        CharSet { ranges: vec![(c.into(), c.into())] }
    }

    /// Every character but those of the set.
    pub(super) fn negate(&self) -> CharSet {
        let mut ranges = Vec::with_capacity(self.ranges.len() + 1);
        let mut from = 0;
        for &(first, last) in &self.ranges {
            if from < first {
                ranges.push((from, first - 1));
            }
            from = last + 1;
        }
        if from <= LAST {
            ranges.push((from, LAST));
        }
        CharSet { ranges }
    }

    /// Its runs.
    pub(super) fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// What is in either set.
    pub(super) fn union(mut self, other: &CharSet) -> CharSet {
        self.ranges.extend_from_slice(&other.ranges);
        CharSet::new(self.ranges)
    }

    /// What is in both sets.
    pub(super) fn intersect(&self, other: &CharSet) -> CharSet {
        self.negate().union(&other.negate()).negate()
    }

    /// With the other case of every character that has one, as far as it is a single character.
    pub(super) fn ignoring_case(self) -> CharSet {
        let mut cased = Vec::new();
        // A run this long is a class such as `\p{L}`, which has both cases already.
        for &(first, last) in self.ranges.iter().filter(|(first, last)| last - first < 256) {
            for c in (first..=last).filter_map(char::from_u32) {
                cased.extend(c.to_lowercase().chain(c.to_uppercase()).map(|c| (u32::from(c), u32::from(c))));
                // Two letters beyond ASCII fold to ASCII ones.
                match c {
                    's' | 'S' => cased.push((0x17F, 0x17F)),
                    'k' | 'K' => cased.push((0x212A, 0x212A)),
                    _ => {}
                }
            }
        }
        CharSet::new([self.ranges, cased].concat())
    }

    pub(super) fn contains(&self, c: char) -> bool {
        let c = u32::from(c);
        let after = self.ranges.partition_point(|&(first, _)| first <= c);
        after > 0 && c <= self.ranges[after - 1].1
    }

    /// Whether it has characters beyond ASCII.
    pub(super) fn is_beyond_ascii(&self) -> bool {
        self.ranges.last().is_some_and(|&(_, last)| last >= 0x80)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ranges: &[(char, char)]) -> CharSet {
        CharSet::new(ranges.iter().map(|&(first, last)| (first.into(), last.into())).collect())
    }

    #[test]
    fn algebra() {
        let a = set(&[('m', 'p'), ('a', 'f'), ('c', 'h'), ('i', 'i')]);
        assert_eq!(a, set(&[('a', 'i'), ('m', 'p')]));
        assert_eq!(a.negate().negate(), a);
        assert_eq!(a.intersect(&set(&[('h', 'n')])), set(&[('h', 'i'), ('m', 'n')]));
        assert_eq!(CharSet::default().negate(), set(&[('\0', char::MAX)]));
        for (c, inside) in [('a', true), ('i', true), ('j', false), ('\0', false), ('é', false)] {
            assert_eq!((a.contains(c), a.negate().contains(c)), (inside, !inside), "{c}");
        }
        assert!(a.negate().is_beyond_ascii() && !a.is_beyond_ascii());
    }

    #[test]
    fn case() {
        let set = set(&[('s', 's'), ('É', 'É')]).ignoring_case();
        assert!(['s', 'S', 'ſ', 'é', 'É'].iter().all(|&c| set.contains(c)) && !set.contains('e'));
    }
}
