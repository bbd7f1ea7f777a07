//! Growing a vocabulary by merges, so that every token can be reached.
//!
//! A word is split by the merges there are, and what is left is joined from left to right by new ones. These rank
//! behind all others, so the word is one token from then on.

use std::collections::HashMap;

/// A vocabulary with the merges that lead to it.
pub(super) struct Growth {
    pub(super) tokens: Vec<String>,
    /// Two tokens with a space between, best first.
    pub(super) merges: Vec<String>,
    ids: HashMap<String, u32>,
    /// Rank and result of merging two tokens.
    pairs: HashMap<(u32, u32), (u32, u32)>,
    limit: usize,
}

impl Growth {
    /// Starts from single letters, and ends at `limit` tokens.
    pub(super) fn new(letters: impl Iterator<Item = char>, limit: usize) -> Growth {
        let tokens: Vec<String> = letters.map(String::from).collect();
        let ids = tokens.iter().cloned().zip(0..).collect();
        Growth { tokens, merges: Vec::new(), ids, pairs: HashMap::new(), limit }
    }

    /// Adds words until the limit is reached.
    pub(super) fn fill(mut self, words: impl Iterator<Item = String>) -> Growth {
        for word in words {
            if self.tokens.len() >= self.limit {
                break;
            }
            self.add(&word);
        }
        self
    }

    fn add(&mut self, word: &str) {
        let mut pieces = self.split(word).into_iter();
        let Some(mut left) = pieces.next() else { return };
        for right in pieces {
            let text = format!("{}{}", self.tokens[left as usize], self.tokens[right as usize]);
            let merged = match self.ids.get(&text) {
                Some(&id) => id,
                None if self.tokens.len() >= self.limit => return,
                None => {
                    let id = self.tokens.len() as u32;
                    self.tokens.push(text.clone());
                    self.ids.insert(text, id);
                    id
                }
            };
            self.pairs.insert((left, right), (self.merges.len() as u32, merged));
            self.merges.push(format!("{} {}", self.tokens[left as usize], self.tokens[right as usize]));
            left = merged;
        }
    }

    /// Tokens of a word by the merges so far. Letters that are no token are left out.
    pub(super) fn split(&self, word: &str) -> Vec<u32> {
        let mut letter = [0; 4];
        let id = |c: char| self.ids.get(&*c.encode_utf8(&mut letter)).copied();
        let mut pieces: Vec<u32> = word.chars().filter_map(id).collect();
        loop {
            let pair = |at: usize| self.pairs.get(&(pieces[at - 1], pieces[at])).copied();
            let best = (1..pieces.len()).filter_map(|at| pair(at).map(|(rank, id)| (rank, at, id))).min();
            let Some((_, at, id)) = best else { return pieces };
            pieces[at - 1] = id;
            pieces.remove(at);
        }
    }
}
