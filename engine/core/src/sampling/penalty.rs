//! The last tokens of a text, counted.

use std::collections::{HashMap, VecDeque};

/// A window over the end of a text.
#[derive(Clone, Debug)]
pub(super) struct History {
    last_n: usize,
    tokens: VecDeque<u32>,
    counts: HashMap<u32, u32>,
}

impl History {
    /// A window of `last_n` tokens, empty.
    pub(super) fn new(last_n: usize) -> Self {
        History { last_n, tokens: VecDeque::new(), counts: HashMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    pub(super) fn push(&mut self, token: u32) {
        if self.last_n == 0 {
            return;
        }
        if self.tokens.len() == self.last_n
            && let Some(oldest) = self.tokens.pop_front()
            && let Some(count) = self.counts.get_mut(&oldest)
        {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&oldest);
            }
        }
        self.tokens.push_back(token);
        *self.counts.entry(token).or_default() += 1;
    }

    /// Tokens in the window, in no order, and how often each occurs.
    pub(super) fn counts(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.counts.iter().map(|(&token, &count)| (token, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_window_counts() {
        let mut history = History::new(3);
        [7, 7, 8, 9, 7].into_iter().for_each(|token| history.push(token));
        let mut counts: Vec<_> = history.counts().collect();
        counts.sort_unstable();
        assert_eq!(counts, [(7, 1), (8, 1), (9, 1)]);

        let mut off = History::new(0);
        off.push(1);
        assert!(off.is_empty());
    }
}
