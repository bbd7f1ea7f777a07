//! Byte-pair merging: joins the neighbours whose merge ranks best, leftmost first, until no merge applies.

use std::{cmp::Reverse, collections::BinaryHeap};

/// Where there is no token, or a list ends.
pub(crate) const NONE: u32 = u32::MAX;

/// Longest word that is merged by looking at every pair again after each merge; longer ones keep pairs in a heap.
const SHORT: usize = 24;

/// Merges by token ids.
#[derive(Debug)]
pub(crate) struct Merges {
    /// For each left token, where its merges begin in `merges`; one more entry ends the last.
    starts: Vec<u32>,
    /// Ordered by left token, then right token.
    merges: Vec<Merge>,
}

/// Joining a token on the left with `right`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Merge {
    pub(crate) right: u32,
    /// Lower is better. Of equals the leftmost in the word goes first.
    pub(crate) rank: u32,
    /// What it gives.
    pub(crate) merged: u32,
}

/// A piece of the word being merged; pieces are a doubly linked list.
#[derive(Clone, Copy, Debug)]
struct Piece {
    prev: u32,
    next: u32,
    /// Rank of the merge with the next piece, or `NONE`.
    rank: u32,
    /// What that merge gives.
    merged: u32,
}

/// A token of a word, and where in the word it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) token: u32,
    /// In bytes.
    pub(crate) at: u32,
}

/// Memory reused from word to word.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// The word: first as it is cut, then as it is merged.
    pub(crate) units: Vec<Unit>,
    pieces: Vec<Piece>,
    ranks: Vec<(u32, u32)>,
    /// (rank, piece), best first; entries whose piece has another rank by now are out of date.
    queue: BinaryHeap<Reverse<(u32, u32)>>,
    /// Pairs looked up and heap entries taken, for tests of what work grows with.
    pub(crate) work: u64,
}

impl Merges {
    /// Of merges of the same pair the best stays. Token ids, on the left and as results, are below `tokens`.
    pub(crate) fn new(tokens: usize, mut found: Vec<(u32, Merge)>) -> Merges {
        found.sort_unstable_by_key(|(left, merge)| (*left, *merge));
        found.dedup_by_key(|(left, merge)| (*left, merge.right));
        let mut starts = vec![0; tokens + 1];
        for (left, _) in &found {
            starts[*left as usize + 1] += 1;
        }
        let mut total = 0;
        for start in &mut starts {
            total += *start;
            *start = total;
        }
        Merges { starts, merges: found.into_iter().map(|(_, merge)| merge).collect() }
    }

    /// Rank and result of merging two tokens; `NONE` twice when they do not merge.
    fn find(&self, left: u32, right: u32) -> (u32, u32) {
        let range =
            |left: usize| Some(*self.starts.get(left)? as usize..*self.starts.get(left + 1)? as usize);
        let merges = range(left as usize).map_or(&[][..], |range| &self.merges[range]);
        match merges.binary_search_by_key(&right, |merge| merge.right) {
            Ok(at) => (merges[at].rank, merges[at].merged),
            Err(_) => (NONE, NONE),
        }
    }

    /// Merges `scratch.units`.
    pub(crate) fn apply(&self, scratch: &mut Scratch) {
        if scratch.units.len() <= SHORT { self.apply_short(scratch) } else { self.apply_long(scratch) }
    }

    fn apply_short(&self, scratch: &mut Scratch) {
        let Scratch { units, ranks, work, .. } = scratch;
        ranks.clear();
        ranks.extend(units.windows(2).map(|pair| self.find(pair[0].token, pair[1].token)));
        *work += ranks.len() as u64;
        while let Some((at, &(rank, merged))) = ranks.iter().enumerate().min_by_key(|(_, (rank, _))| *rank)
            && rank != NONE
        {
            units[at].token = merged;
            units.remove(at + 1);
            ranks.remove(at);
            if let Some(right) = units.get(at + 1) {
                ranks[at] = self.find(merged, right.token);
            }
            if at > 0 {
                ranks[at - 1] = self.find(units[at - 1].token, merged);
            }
            *work += 2;
        }
    }

    fn apply_long(&self, scratch: &mut Scratch) {
        let Scratch { units, pieces, queue, work, .. } = scratch;
        pieces.clear();
        queue.clear();
        let last = units.len() as u32 - 1;
        pieces.extend((0..=last).map(|i| {
            let next = if i == last { NONE } else { i + 1 };
            Piece { prev: i.wrapping_sub(1), next, rank: NONE, merged: NONE }
        }));
        for i in 0..last {
            self.rate(units, pieces, i, queue);
        }
        *work += u64::from(last);
        while let Some(Reverse((rank, i))) = queue.pop() {
            *work += 1;
            if pieces[i as usize].rank == rank {
                self.merge(units, pieces, i, queue);
                *work += 2;
            }
        }
        let (mut read, mut write) = (0, 0);
        while let Some(piece) = pieces.get(read as usize) {
            units[write] = units[read as usize];
            write += 1;
            read = piece.next;
        }
        units.truncate(write);
    }

    /// Finds the merge of piece `i` with the next one and queues it.
    fn rate(
        &self,
        units: &[Unit],
        pieces: &mut [Piece],
        i: u32,
        queue: &mut BinaryHeap<Reverse<(u32, u32)>>,
    ) {
        let next = pieces[i as usize].next;
        let (rank, merged) = match units.get(next as usize) {
            Some(right) => self.find(units[i as usize].token, right.token),
            None => (NONE, NONE),
        };
        let piece = &mut pieces[i as usize];
        (piece.rank, piece.merged) = (rank, merged);
        if rank != NONE {
            queue.push(Reverse((rank, i)));
        }
    }

    /// Joins piece `i` with the next one, as rated.
    fn merge(
        &self,
        units: &mut [Unit],
        pieces: &mut [Piece],
        i: u32,
        queue: &mut BinaryHeap<Reverse<(u32, u32)>>,
    ) {
        let Piece { merged, prev, next: absorbed, .. } = pieces[i as usize];
        let after = pieces[absorbed as usize].next;
        pieces[absorbed as usize].rank = NONE;
        pieces[i as usize].next = after;
        units[i as usize].token = merged;
        if let Some(after) = pieces.get_mut(after as usize) {
            after.prev = i;
        }
        self.rate(units, pieces, i, queue);
        if prev != NONE {
            self.rate(units, pieces, prev, queue);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `a a`, `aa aa`, `b a`, `c b` and `cb aa`, the middle two of one rank.
    fn merges() -> Merges {
        let list = [(0, 0, 0, 3), (3, 3, 1, 4), (1, 0, 2, 5), (2, 1, 2, 6), (6, 3, 3, 7)];
        let merge = |(left, right, rank, merged)| (left, Merge { right, rank, merged });
        Merges::new(8, list.map(merge).to_vec())
    }

    fn units(tokens: &[u32]) -> Vec<Unit> {
        tokens.iter().zip(0..).map(|(&token, at)| Unit { token, at }).collect()
    }

    fn slowly(merges: &Merges, units: &mut Vec<Unit>) {
        loop {
            let rank = |i: usize| merges.find(units[i].token, units[i + 1].token).0;
            let best =
                (0..units.len().saturating_sub(1)).min_by_key(|&i| rank(i)).filter(|&i| rank(i) != NONE);
            let Some(at) = best else { return };
            units[at].token = merges.find(units[at].token, units[at + 1].token).1;
            units.remove(at + 1);
        }
    }

    proptest! {
        #[test]
        fn both_ways_agree_with_the_slow_one(tokens in prop::collection::vec(0_u32..4, 1..40)) {
            let merges = merges();
            let mut expected = units(&tokens);
            slowly(&merges, &mut expected);
            for way in [Merges::apply_short, Merges::apply_long] {
                let mut scratch = Scratch { units: units(&tokens), ..Scratch::default() };
                way(&merges, &mut scratch);
                prop_assert_eq!(&scratch.units, &expected);
            }
        }
    }

    #[test]
    fn work_grows_with_the_word() {
        let work = |n: usize| {
            let mut scratch = Scratch { units: units(&vec![0; n]), ..Scratch::default() };
            merges().apply(&mut scratch);
            scratch.work
        };
        assert!(work(80_000) < 5 * work(20_000));
    }
}
