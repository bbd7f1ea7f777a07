//! Finding matches without trying: first, for every position from the last to the first and every node, whether it leads
//! to a match; then each choice is right at once. Time and memory are proportional to text times nodes, whatever both are.

use super::parse::Greed;
use super::program::{MANY, Node, NodeId, Program};
use super::search::holds;

/// For each position of a text, which nodes lead to an `Accept` from there.
pub(super) struct Table<'a> {
    program: &'a Program,
    text: &'a str,
    /// Byte at which each character begins, and the end.
    starts: Vec<usize>,
    /// The nodes that lead to an `Accept`, by bits: `words` numbers for each position.
    leads: Vec<u64>,
    words: usize,
}

/// What is known of the positions behind the current one.
struct Behind {
    /// For each set, how many characters of it follow.
    runs: Vec<usize>,
    /// For each node that is an endless run, the nearest position from the next one on at which its successor leads to an
    /// `Accept`.
    nearest: Vec<Option<usize>>,
}

impl<'a> Table<'a> {
    /// Decides every position of `text` from byte `from` on.
    pub(super) fn new(program: &'a Program, text: &'a str, from: usize) -> Table<'a> {
        let starts: Vec<usize> =
            text[from..].char_indices().map(|(at, _)| from + at).chain([text.len()]).collect();
        let words = program.nodes.len().div_ceil(64);
        let leads = vec![0; words * starts.len()];
        let mut table = Table { program, text, starts, leads, words };
        let mut behind =
            Behind { runs: vec![0; program.sets.len()], nearest: vec![None; program.nodes.len()] };
        for position in (0..table.starts.len()).rev() {
            table.fill(position, &mut behind);
        }
        table
    }

    fn leads(&self, node: NodeId, position: usize) -> bool {
        let node = usize::from(node);
        self.leads[position * self.words + node / 64] >> (node % 64) & 1 == 1
    }

    fn char_at(&self, position: usize) -> Option<char> {
        self.text[self.starts[position]..].chars().next()
    }

    fn fill(&mut self, position: usize, behind: &mut Behind) {
        let program = self.program;
        let c = self.char_at(position);
        for (set, run) in program.sets.iter().zip(&mut behind.runs) {
            *run = if c.is_some_and(|c| set.contains(c)) { *run + 1 } else { 0 };
        }
        for &id in &program.order {
            let leads = match program.nodes[usize::from(id)] {
                Node::Accept => true,
                Node::One { set, next } => {
                    behind.runs[usize::from(set)] > 0 && self.leads(next, position + 1)
                }
                Node::Run { .. } => self.run_end(id, position, behind).is_some(),
                Node::Choice { first, second } => self.leads(first, position) || self.leads(second, position),
                Node::Ahead { body, negative, next } => {
                    self.leads(body, position) != negative && self.leads(next, position)
                }
                Node::Behind { set, negative, next } => {
                    let before = self.text[..self.starts[position]].chars().next_back();
                    let found = before.is_some_and(|c| program.sets[usize::from(set)].contains(c));
                    found != negative && self.leads(next, position)
                }
                Node::Check { assert, next } => {
                    holds(assert, self.text, self.starts[position]) && self.leads(next, position)
                }
            };
            if leads {
                let node = usize::from(id);
                self.leads[position * self.words + node / 64] |= 1 << (node % 64);
            }
        }
        for (id, node) in program.nodes.iter().enumerate() {
            if let Node::Run { next, max: MANY, .. } = *node
                && self.leads(next, position)
            {
                behind.nearest[id] = Some(position);
            }
        }
    }

    /// A position at which the run that begins at `position` may end.
    fn run_end(&self, id: NodeId, position: usize, behind: &Behind) -> Option<usize> {
        let Node::Run { set, min, max, greed, next } = self.program.nodes[usize::from(id)] else {
            return None;
        };
        let run = behind.runs[usize::from(set)];
        let (least, most) = (position + min as usize, position + run.min(max as usize));
        if most < least {
            return None;
        }
        if greed == Greed::Possessive {
            return Some(most).filter(|&end| self.leads(next, end));
        }
        if max == MANY {
            let here = Some(position).filter(|_| min == 0 && self.leads(next, position));
            return here.or(behind.nearest[usize::from(id)]).filter(|&end| end <= most);
        }
        (least..=most).find(|&end| self.leads(next, end))
    }

    /// End of the match that begins at byte `at`, which is a character's.
    pub(super) fn match_at(&self, at: usize) -> Option<usize> {
        let start = self.starts.partition_point(|&start| start < at);
        let node = self.program.alternatives.iter().find(|&&node| self.leads(node, start))?;
        let (mut node, mut position) = (*node, start);
        loop {
            match self.program.nodes[usize::from(node)] {
                Node::Accept => return Some(self.starts[position]),
                Node::One { next, .. } => (node, position) = (next, position + 1),
                Node::Run { next, .. } => (node, position) = (next, self.preferred(node, position)),
                Node::Choice { first, second } => {
                    node = if self.leads(first, position) { first } else { second };
                }
                Node::Ahead { next, .. } | Node::Behind { next, .. } | Node::Check { next, .. } => {
                    node = next
                }
            }
        }
    }

    /// Where a run that leads to a match ends.
    fn preferred(&self, node: NodeId, position: usize) -> usize {
        let Node::Run { set, min, max, greed, next } = self.program.nodes[usize::from(node)] else {
            return position;
        };
        let set = &self.program.sets[usize::from(set)];
        let mut best = position;
        for (end, count) in (position..).zip(0..=max) {
            if count >= min && (greed == Greed::Possessive || self.leads(next, end)) {
                best = end;
                if greed == Greed::Lazy {
                    break;
                }
            }
            if !self.char_at(end).is_some_and(|c| set.contains(c)) {
                break;
            }
        }
        best
    }
}
