//! Regular expressions over pinned Unicode tables, for cutting text into words.
//!
//! Tokens depend on every detail of the expression that cut the text for training, so the classes must not follow a
//! library's Unicode version, and a search must neither fail nor hang on any text. Expressions come from model files.

mod parse;
mod program;
mod search;
mod set;
mod table;

use program::Program;
use search::{Exhausted, Search};
use table::Table;

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    program: Program,
}

/// Looks for matches by trying as long as that is fast, and by the table from where it was not.
enum Finder<'a> {
    Search(Search<'a>),
    Table(Table<'a>),
}

impl Pattern {
    /// Compiles `text`.
    ///
    /// # Errors
    /// What of it is wrong or not supported, and where.
    pub(crate) fn new(text: &str) -> Result<Pattern, String> {
        Ok(Pattern { program: Program::new(&parse::parse(text)?)? })
    }

    /// A pattern that matches `text` as it stands; `None` where that is empty or too long.
    pub(crate) fn literal(text: &str) -> Option<Pattern> {
        let escaped: String = text.chars().map(|c| format!("\\x{{{:X}}}", u32::from(c))).collect();
        Some(escaped).filter(|text| !text.is_empty()).and_then(|text| Pattern::new(&text).ok())
    }

    /// Hands on every match in `text` and what lies between, in order, with whether it matched; together they are the
    /// text. An empty match is not handed on, but cuts what it stands in.
    pub(crate) fn split<'t>(&self, text: &'t str, mut each: impl FnMut(&'t str, bool)) {
        let mut finder = Finder::Search(Search::new(&self.program, text));
        let bytes = text.as_bytes();
        let (mut from, mut at) = (0, 0);
        while at < bytes.len() {
            if self.program.by_byte[usize::from(bytes[at])] == 0 {
                at += 1;
                continue;
            }
            let Some(end) = finder.match_at(&self.program, text, at) else {
                at += char_len(bytes[at]);
                continue;
            };
            if from < at {
                each(&text[from..at], false);
            }
            if at < end {
                each(&text[at..end], true);
            }
            from = end;
            at = if at < end { end } else { at + char_len(bytes[at]) };
        }
        if from < bytes.len() {
            each(&text[from..], false);
        }
    }
}

#[cfg(test)]
impl Pattern {
    /// Steps that splitting `text` takes, or `None` where trying is given up.
    pub(crate) fn steps(&self, text: &str) -> Option<usize> {
        let mut search = Search::new(&self.program, text);
        let (all, mut at) = (search.steps_left(), 0);
        while at < text.len() {
            let len = char_len(text.as_bytes()[at]);
            at = search.match_at(at).ok()?.map_or(at + len, |end| end.max(at + len));
        }
        Some(all - search.steps_left())
    }
}

/// Bytes of the character that begins with this one. In the middle of a character it gives 1, which leads to its end.
fn char_len(first: u8) -> usize {
    match first {
        0..0xC0 => 1,
        0xC0..0xE0 => 2,
        0xE0..0xF0 => 3,
        0xF0.. => 4,
    }
}

impl<'a> Finder<'a> {
    fn match_at(&mut self, program: &'a Program, text: &'a str, at: usize) -> Option<usize> {
        if let Finder::Search(search) = self {
            match search.match_at(at) {
                Ok(found) => return found,
                Err(Exhausted) => *self = Finder::Table(Table::new(program, text, at)),
            }
        }
        match self {
            Finder::Table(table) => table.match_at(at),
            Finder::Search(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
