//! Byte-pair merging: joins the neighbours whose merge ranks best, leftmost first, until no merge applies.

use crate::{BpeSpec, TokenizerError, alphabet};
use std::{cmp::Reverse, collections::BinaryHeap, collections::HashMap};

/// Where a byte has no token, or a list ends.
const NONE: u32 = u32::MAX;

/// The merges of a vocabulary, by token ids.
pub(crate) struct Merges {
    /// Token of each byte, or `NONE`.
    bytes: [u32; 256],
    /// For each left token, where its merges begin in `merges`; one more entry ends the last.
    starts: Vec<u32>,
    /// Ordered by left token, then right token.
    merges: Vec<Merge>,
}

#[derive(Clone, Copy)]
struct Merge {
    right: u32,
    rank: u32,
    merged: u32,
}

/// A piece of the word being merged; pieces are a doubly linked list.
#[derive(Clone, Copy)]
struct Piece {
    token: u32,
    prev: u32,
    next: u32,
    /// Rank of the merge with the next piece, or `NONE`.
    rank: u32,
    /// What that merge gives.
    merged: u32,
}

/// Memory reused from word to word.
#[derive(Default)]
pub(crate) struct Scratch {
    pieces: Vec<Piece>,
    /// (rank, piece), best first; entries whose piece has another rank by now are out of date.
    queue: BinaryHeap<Reverse<(u32, u32)>>,
}

impl Merges {
    /// Looks the merges of `spec` up in `ids`, its tokens' ids.
    pub(crate) fn new(spec: &BpeSpec, ids: &HashMap<&str, u32>) -> Result<Merges, TokenizerError> {
        let mut found = Vec::with_capacity(spec.merges.len());
        let mut joined = String::new();
        for (index, merge) in spec.merges.iter().enumerate() {
            let id = |token: &str| {
                ids.get(token).copied().ok_or_else(|| TokenizerError::MergeToken {
                    index,
                    merge: merge.clone(),
                    token: token.to_owned(),
                })
            };
            let (left, right) = merge
                .split_once(' ')
                .filter(|(left, right)| !left.is_empty() && !right.is_empty() && !right.contains(' '))
                .ok_or_else(|| TokenizerError::MergeForm { index, merge: merge.clone() })?;
            joined.clear();
            joined.extend([left, right]);
            found.push((id(left)?, Merge { right: id(right)?, rank: index as u32, merged: id(&joined)? }));
        }
        // Of equal pairs the better rank stays: the sort is by rank last, `dedup` keeps the first.
        found.sort_unstable_by_key(|(left, merge)| (*left, merge.right, merge.rank));
        found.dedup_by_key(|(left, merge)| (*left, merge.right));
        let mut starts = vec![0; spec.tokens.len() + 1];
        for (left, _) in &found {
            starts[*left as usize + 1] += 1;
        }
        let mut total = 0;
        for start in &mut starts {
            total += *start;
            *start = total;
        }
        let bytes = std::array::from_fn(|byte| {
            let mut utf8 = [0; 4];
            ids.get(&*alphabet::char_of(byte as u8).encode_utf8(&mut utf8)).copied().unwrap_or(NONE)
        });
        Ok(Merges { bytes, starts, merges: found.into_iter().map(|(_, merge)| merge).collect() })
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

    /// Appends the tokens of `word`. A byte without a token yields nothing.
    pub(crate) fn encode(&self, word: &[u8], scratch: &mut Scratch, out: &mut Vec<u32>) {
        // Pieces are numbered in 32 bits; a longer word is cut, which no real text notices.
        for word in word.chunks(NONE as usize - 1) {
            let Scratch { pieces, queue } = scratch;
            pieces.clear();
            queue.clear();
            for (i, &byte) in word.iter().enumerate() {
                let i = i as u32;
                let token = self.bytes[usize::from(byte)];
                let next = if i as usize + 1 == word.len() { NONE } else { i + 1 };
                pieces.push(Piece { token, prev: i.wrapping_sub(1), next, rank: NONE, merged: NONE });
            }
            for i in 0..pieces.len() as u32 {
                self.rate(pieces, i, queue);
            }
            while let Some(Reverse((rank, i))) = queue.pop() {
                if pieces[i as usize].rank == rank {
                    self.merge(pieces, i, queue);
                }
            }
            let mut at = 0;
            while let Some(piece) = pieces.get(at as usize) {
                if piece.token != NONE {
                    out.push(piece.token);
                }
                at = piece.next;
            }
        }
    }

    /// Finds the merge of piece `i` with the next one and queues it.
    fn rate(&self, pieces: &mut [Piece], i: u32, queue: &mut BinaryHeap<Reverse<(u32, u32)>>) {
        let Piece { token, next, .. } = pieces[i as usize];
        let (rank, merged) = match pieces.get(next as usize) {
            Some(right) => self.find(token, right.token),
            None => (NONE, NONE),
        };
        let piece = &mut pieces[i as usize];
        (piece.rank, piece.merged) = (rank, merged);
        if rank != NONE {
            queue.push(Reverse((rank, i)));
        }
    }

    /// Joins piece `i` with the next one, as rated.
    fn merge(&self, pieces: &mut [Piece], i: u32, queue: &mut BinaryHeap<Reverse<(u32, u32)>>) {
        let Piece { merged, prev, next: absorbed, .. } = pieces[i as usize];
        let after = pieces[absorbed as usize].next;
        pieces[absorbed as usize].rank = NONE;
        let piece = &mut pieces[i as usize];
        (piece.token, piece.next) = (merged, after);
        if let Some(after) = pieces.get_mut(after as usize) {
            after.prev = i;
        }
        self.rate(pieces, i, queue);
        if prev != NONE {
            self.rate(pieces, prev, queue);
        }
    }
}
