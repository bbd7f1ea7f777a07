//! From an expression to the nodes that a search walks.

use super::parse::{Assert, Ast, Greed};
use super::set::CharSet;

/// Most nodes of a program; real ones have dozens.
const MAX_NODES: usize = 4096;
/// Most different sets of a program: they are numbered by bits.
const MAX_SETS: usize = 64;

/// Index of a node.
pub(super) type NodeId = u16;
/// Index of a set.
pub(super) type SetId = u8;

/// No limit of a repetition.
pub(super) const MANY: u32 = u32::MAX;

/// A step of a match: what it asks for, and where it goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Node {
    /// One character of a set.
    One { set: SetId, next: NodeId },
    /// From `min` to `max` characters of a set. Without a limit, `min` is 0 or 1.
    Run { set: SetId, min: u32, max: u32, greed: Greed, next: NodeId },
    /// `first` where that leads to a match, else `second`.
    Choice { first: NodeId, second: NodeId },
    /// Whether `body` leads to an `Accept` from here.
    Ahead { body: NodeId, negative: bool, next: NodeId },
    /// Whether the character before is of a set.
    Behind { set: SetId, negative: bool, next: NodeId },
    /// A condition on the position.
    Check { assert: Assert, next: NodeId },
    /// The match, or the look-ahead, ends here.
    Accept,
}

/// A compiled expression.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) nodes: Vec<Node>,
    pub(super) sets: Vec<CharSet>,
    /// Where each alternative of the whole expression begins, in order of preference.
    pub(super) alternatives: Vec<NodeId>,
    /// For each first byte of a character, the alternatives that may begin with it, by bits; those from the 32nd on share
    /// the last bit.
    pub(super) by_byte: Vec<u32>,
    /// For each ASCII character, the sets that have it, by bits.
    pub(super) ascii: Vec<u64>,
    /// Nodes in an order in which each comes behind those that it goes on to without taking a character.
    pub(super) order: Vec<NodeId>,
}

impl Program {
    /// Compiles an expression.
    ///
    /// # Errors
    /// It is too large, or repeats what may be empty.
    pub(super) fn new(ast: &Ast) -> Result<Program, String> {
        let mut program = Program {
            nodes: vec![Node::Accept],
            sets: Vec::new(),
            alternatives: Vec::new(),
            by_byte: vec![0; 256],
            ascii: vec![0; 128],
            order: Vec::new(),
        };
        let whole = std::slice::from_ref(ast);
        let alternatives = if let Ast::Alternatives(all) = ast { all.as_slice() } else { whole };
        for (i, alternative) in alternatives.iter().enumerate() {
            let start = program.compile(alternative, 0)?;
            program.alternatives.push(start);
            program.index(1 << i.min(31), &first(alternative));
        }
        for (i, set) in program.sets.iter().enumerate() {
            for c in (0..128_u8).filter(|c| set.contains(char::from(*c))) {
                program.ascii[usize::from(c)] |= 1 << i;
            }
        }
        program.order = program.order();
        Ok(program)
    }

    /// Notes that an alternative begins with a character of `first`, or with anything.
    fn index(&mut self, bit: u32, first: &First) {
        for byte in 0..=255_u8 {
            let may = match first {
                First::Anything => true,
                First::Of(set) if byte.is_ascii() => set.contains(char::from(byte)),
                First::Of(set) => set.is_beyond_ascii(),
            };
            self.by_byte[usize::from(byte)] |= if may { bit } else { 0 };
        }
    }

    fn push(&mut self, node: Node) -> Result<NodeId, String> {
        if self.nodes.len() == MAX_NODES {
            return Err(format!("it needs more than {MAX_NODES} steps"));
        }
        self.nodes.push(node);
        Ok((self.nodes.len() - 1) as NodeId)
    }

    fn set(&mut self, set: &CharSet) -> Result<SetId, String> {
        let known = self.sets.iter().position(|known| known == set);
        let id = known.unwrap_or_else(|| {
            self.sets.push(set.clone());
            self.sets.len() - 1
        });
        if id == MAX_SETS {
            return Err(format!("it has more than {MAX_SETS} different sets of characters"));
        }
        Ok(id as SetId)
    }

    /// Nodes for `ast` that go on to `next`.
    fn compile(&mut self, ast: &Ast, next: NodeId) -> Result<NodeId, String> {
        match ast {
            Ast::Set(set) => {
                let set = self.set(set)?;
                self.push(Node::One { set, next })
            }
            Ast::Concat(parts) => parts.iter().rev().try_fold(next, |next, part| self.compile(part, next)),
            Ast::Alternatives(all) => {
                let starts: Vec<NodeId> =
                    all.iter().map(|one| self.compile(one, next)).collect::<Result<_, _>>()?;
                let last = starts.last().copied().unwrap_or(next);
                let others = &starts[..starts.len().saturating_sub(1)];
                others.iter().rev().try_fold(last, |second, &first| self.push(Node::Choice { first, second }))
            }
            Ast::Repeat { inner, min, max, greed } => match &**inner {
                Ast::Set(set) => self.run(set, *min, *max, *greed, next),
                inner => self.repeat(inner, *min, *max, *greed, next),
            },
            Ast::Ahead { inner, negative } => {
                let body = self.compile(inner, 0)?;
                self.push(Node::Ahead { body, negative: *negative, next })
            }
            Ast::Behind { set, negative } => {
                let set = self.set(set)?;
                self.push(Node::Behind { set, negative: *negative, next })
            }
            Ast::Assert(assert) => self.push(Node::Check { assert: *assert, next }),
        }
    }

    /// A repeated set.
    fn run(
        &mut self,
        set: &CharSet,
        min: u32,
        max: Option<u32>,
        greed: Greed,
        next: NodeId,
    ) -> Result<NodeId, String> {
        let set = self.set(set)?;
        match max {
            Some(max) => self.push(Node::Run { set, min, max, greed, next }),
            None => {
                let many = self.push(Node::Run { set, min: min.min(1), max: MANY, greed, next })?;
                if min <= 1 {
                    return Ok(many);
                }
                self.push(Node::Run { set, min: min - 1, max: min - 1, greed, next: many })
            }
        }
    }

    /// A repeated group: copies of it, then a loop or optional copies.
    fn repeat(
        &mut self,
        inner: &Ast,
        min: u32,
        max: Option<u32>,
        greed: Greed,
        next: NodeId,
    ) -> Result<NodeId, String> {
        let choice = |inside, outside| match greed {
            Greed::Lazy => Node::Choice { first: outside, second: inside },
            _ => Node::Choice { first: inside, second: outside },
        };
        let mut start = next;
        // Copies of nothing would not count towards the limit of steps, and a loop over it would not end.
        if max != Some(1) && may_be_empty(inner) {
            return Err("it repeats what may be empty".to_owned());
        }
        match max {
            Some(max) => {
                for _ in min..max {
                    let inside = self.compile(inner, start)?;
                    start = self.push(choice(inside, next))?;
                }
            }
            None => {
                start = self.push(Node::Accept)?;
                let inside = self.compile(inner, start)?;
                self.nodes[usize::from(start)] = choice(inside, next);
            }
        }
        (0..min).try_fold(start, |next, _| self.compile(inner, next))
    }

    /// See [`Program::order`]. There are no circles: loops take characters.
    fn order(&self) -> Vec<NodeId> {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut seen = vec![false; self.nodes.len()];
        for id in 0..self.nodes.len() {
            // Nodes to visit, and nodes whose successors have been.
            let mut stack = vec![(id as NodeId, false)];
            while let Some((id, done)) = stack.pop() {
                if done {
                    order.push(id);
                } else if !std::mem::replace(&mut seen[usize::from(id)], true) {
                    stack.push((id, true));
                    match self.nodes[usize::from(id)] {
                        Node::Choice { first, second } => stack.extend([(first, false), (second, false)]),
                        Node::Ahead { body, next, .. } => stack.extend([(body, false), (next, false)]),
                        Node::Run { next, .. } | Node::Behind { next, .. } | Node::Check { next, .. } => {
                            stack.push((next, false));
                        }
                        Node::One { .. } | Node::Accept => {}
                    }
                }
            }
        }
        order
    }
}

/// What a match of an expression can begin with.
enum First {
    Of(CharSet),
    /// It may be empty, or begins with a condition.
    Anything,
}

fn first(ast: &Ast) -> First {
    match ast {
        Ast::Set(set) => First::Of(set.clone()),
        Ast::Concat(parts) => {
            let mut all = CharSet::default();
            for part in parts {
                let First::Of(set) = first(inside(part)) else { return First::Anything };
                all = all.union(&set);
                if !may_be_empty(part) {
                    return First::Of(all);
                }
            }
            First::Anything
        }
        Ast::Alternatives(several) => {
            several.iter().fold(First::Of(CharSet::default()), |all, one| match (all, first(one)) {
                (First::Of(all), First::Of(set)) => First::Of(all.union(&set)),
                _ => First::Anything,
            })
        }
        Ast::Repeat { inner, min, .. } if *min > 0 => first(inner),
        _ => First::Anything,
    }
}

/// What is repeated, for an optional part of a sequence.
fn inside(ast: &Ast) -> &Ast {
    match ast {
        Ast::Repeat { inner, .. } => inner,
        ast => ast,
    }
}

fn may_be_empty(ast: &Ast) -> bool {
    match ast {
        Ast::Set(_) => false,
        Ast::Concat(parts) => parts.iter().all(may_be_empty),
        Ast::Alternatives(all) => all.iter().any(may_be_empty),
        Ast::Repeat { inner, min, .. } => *min == 0 || may_be_empty(inner),
        Ast::Ahead { .. } | Ast::Behind { .. } | Ast::Assert(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;

    fn program(text: &str) -> Result<Program, String> {
        Program::new(&parse(text).unwrap())
    }

    #[test]
    fn alternatives_are_found_by_their_first_byte() {
        let program = program(r" ?[a-c]+|\p{N}|(?=x)y").unwrap();
        let bits = |c: char| program.by_byte[usize::from(c.to_string().as_bytes()[0])];
        assert_eq!([' ', 'b', '1', '½', 'x', 'é'].map(bits), [0b101, 0b101, 0b110, 0b110, 0b100, 0b110]);
    }

    #[test]
    fn nodes_stand_in_the_order_in_which_they_can_be_decided() {
        let program = program(r"(?:a|(?:bc?)+)*d?(?!e*f)\b|g").unwrap();
        let place = |id: NodeId| program.order.iter().position(|&other| other == id).unwrap();
        assert_eq!(program.order.len(), program.nodes.len());
        for (id, node) in program.nodes.iter().enumerate() {
            let before: &[NodeId] = match node {
                Node::Choice { first, second } => &[*first, *second],
                Node::Ahead { body, next, .. } => &[*body, *next],
                Node::Run { next, .. } | Node::Behind { next, .. } | Node::Check { next, .. } => &[*next],
                Node::One { .. } | Node::Accept => &[],
            };
            assert!(before.iter().all(|&other| place(other) < place(id as NodeId)), "{id}: {node:?}");
        }
    }

    #[test]
    fn what_is_too_large_or_circular_is_refused() {
        for text in ["(?:a?)*", "(?:a*|b)+", "(?:(?=a)|b)*", "(?:)*", "(?:(?:(?:){1024}){1024}){1024}"] {
            assert!(program(text).unwrap_err().contains("what may be empty"), "{text}");
        }
        assert!(program("(?:(?:ab){100}){100}").unwrap_err().contains("more than 4096 steps"));
        let sets: String = ('a'..='z').chain('A'..='Z').chain('α'..='ω').collect();
        assert!(program(&sets).unwrap_err().contains("more than 64 different sets"));
    }
}
