//! Finding a match by trying: choices in order of preference, back to the last one on failure.
//!
//! Trying is fast on the expressions and texts there are, but takes exponential time on some that can be made up. So steps
//! are counted, and when there are too many, [`super::table`] takes over.

use super::parse::{Assert, Greed};
use super::program::{Node, NodeId, Program, SetId};
use crate::unicode::is_word;

/// Steps for each byte of the text, before trying is given up; real texts take a handful.
const STEPS_PER_BYTE: usize = 64;
/// Steps that every search has.
const MIN_STEPS: usize = 4096;

/// Too many steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

/// A choice to come back to.
enum Retry {
    /// Go on at the node.
    At { node: NodeId, at: usize },
    /// A run took characters from `min` up to `at`; try one less.
    Less { next: NodeId, min: usize, at: usize },
    /// A run took characters up to `at`; try one more, up to `left` more.
    More { set: SetId, next: NodeId, at: usize, left: u32 },
}

/// Searches in one text.
pub(super) struct Search<'a> {
    program: &'a Program,
    text: &'a str,
    retries: Vec<Retry>,
    steps: usize,
}

impl<'a> Search<'a> {
    pub(super) fn new(program: &'a Program, text: &'a str) -> Search<'a> {
        let steps = text.len().saturating_mul(STEPS_PER_BYTE).saturating_add(MIN_STEPS);
        Search { program, text, retries: Vec::new(), steps }
    }

    /// End of the match that begins at byte `at`, which is a character's.
    pub(super) fn match_at(&mut self, at: usize) -> Result<Option<usize>, Exhausted> {
        let program = self.program;
        let mut alternatives = program.by_byte[usize::from(self.text.as_bytes()[at])];
        while alternatives != 0 {
            let first = alternatives.trailing_zeros() as usize;
            alternatives &= alternatives - 1;
            let last = if first == 31 { program.alternatives.len() - 1 } else { first };
            for &start in &program.alternatives[first..=last] {
                if let Some(end) = self.run(start, at)? {
                    return Ok(Some(end));
                }
            }
        }
        Ok(None)
    }

    #[cfg(test)]
    pub(super) fn steps_left(&self) -> usize {
        self.steps
    }

    /// Length of the character at `at` if it is of the set; 0 if not, or at the end.
    #[inline]
    fn one(&self, set: SetId, at: usize) -> usize {
        match self.text.as_bytes().get(at) {
            None => 0,
            Some(byte) if byte.is_ascii() => (self.program.ascii[usize::from(*byte)] >> set & 1) as usize,
            Some(_) => {
                let c = self.text[at..].chars().next();
                c.filter(|c| self.program.sets[usize::from(set)].contains(*c)).map_or(0, char::len_utf8)
            }
        }
    }

    /// From `node` at byte `at` to an `Accept`, and where that is.
    fn run(&mut self, mut node: NodeId, mut at: usize) -> Result<Option<usize>, Exhausted> {
        let program = self.program;
        let bottom = self.retries.len();
        loop {
            self.steps = self.steps.checked_sub(1).ok_or(Exhausted)?;
            let next = match program.nodes[usize::from(node)] {
                Node::Accept => {
                    self.retries.truncate(bottom);
                    return Ok(Some(at));
                }
                Node::One { set, next } => {
                    let len = self.one(set, at);
                    at += len;
                    (len > 0).then_some(next)
                }
                Node::Run { set, min, max, greed, next } => {
                    let end = self.repeat(set, at, min, max, greed, next)?;
                    at = end.unwrap_or(at);
                    end.map(|_| next)
                }
                Node::Choice { first, second } => {
                    self.retries.push(Retry::At { node: second, at });
                    Some(first)
                }
                Node::Ahead { body, negative, next } => {
                    let found = self.run(body, at)?.is_some();
                    (found != negative).then_some(next)
                }
                Node::Behind { set, negative, next } => {
                    let before = self.text[..at].chars().next_back();
                    let found = before.is_some_and(|c| program.sets[usize::from(set)].contains(c));
                    (found != negative).then_some(next)
                }
                Node::Check { assert, next } => holds(assert, self.text, at).then_some(next),
            };
            (node, at) = match next {
                Some(next) => (next, at),
                None => match self.retry(bottom) {
                    Some(again) => again,
                    None => return Ok(None),
                },
            };
        }
    }

    /// Takes a run of characters, and notes what else it could take.
    fn repeat(
        &mut self,
        set: SetId,
        start: usize,
        min: u32,
        max: u32,
        greed: Greed,
        next: NodeId,
    ) -> Result<Option<usize>, Exhausted> {
        let mut at = start;
        let (mut count, mut least) = (0, if min == 0 { Some(start) } else { None });
        let wanted = if greed == Greed::Lazy { min } else { max };
        while count < wanted {
            let len = self.one(set, at);
            if len == 0 {
                break;
            }
            at += len;
            count += 1;
            if count == min {
                least = Some(at);
            }
        }
        self.steps = self.steps.checked_sub(at - start).ok_or(Exhausted)?;
        let Some(min_end) = least else { return Ok(None) };
        match greed {
            Greed::Greedy if at > min_end => self.retries.push(Retry::Less { next, min: min_end, at }),
            Greed::Lazy if max > min => self.retries.push(Retry::More { set, next, at, left: max - min }),
            _ => {}
        }
        Ok(Some(at))
    }

    /// The last choice that is left above `bottom`.
    fn retry(&mut self, bottom: usize) -> Option<(NodeId, usize)> {
        while self.retries.len() > bottom {
            match self.retries.pop()? {
                Retry::At { node, at } => return Some((node, at)),
                Retry::Less { next, min, at } => {
                    let less = at - self.text[..at].chars().next_back().map_or(0, char::len_utf8);
                    if less > min {
                        self.retries.push(Retry::Less { next, min, at: less });
                    }
                    return Some((next, less));
                }
                Retry::More { set, next, at, left } => {
                    let len = self.one(set, at);
                    if len > 0 {
                        if left > 1 {
                            self.retries.push(Retry::More { set, next, at: at + len, left: left - 1 });
                        }
                        return Some((next, at + len));
                    }
                }
            }
        }
        None
    }
}

/// Whether a condition holds at byte `at`.
pub(super) fn holds(assert: Assert, text: &str, at: usize) -> bool {
    let before = text[..at].chars().next_back();
    let after = text[at..].chars().next();
    let boundary = || before.is_some_and(is_word) != after.is_some_and(is_word);
    match assert {
        Assert::TextStart => before.is_none(),
        Assert::TextEnd => after.is_none(),
        Assert::LineStart => before.is_none_or(|c| c == '\n'),
        Assert::LineEnd => after.is_none_or(|c| c == '\n'),
        Assert::WordBoundary => boundary(),
        Assert::NoWordBoundary => !boundary(),
    }
}
