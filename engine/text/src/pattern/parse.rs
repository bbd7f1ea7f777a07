//! Reading regular expressions: what tokenizers use of the common dialect (Oniguruma's, Rust's).
//!
//! There are no captures, backreferences and atomic groups, and look-behind sees one character.

use super::set::CharSet;
use crate::unicode::{self, WHITE_SPACE};

/// A regular expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ast {
    /// One character of a set.
    Set(CharSet),
    /// One after another.
    Concat(Vec<Ast>),
    /// The first that leads to a match.
    Alternatives(Vec<Ast>),
    Repeat {
        inner: Box<Ast>,
        min: u32,
        max: Option<u32>,
        greed: Greed,
    },
    /// Whether `inner` matches here.
    Ahead {
        inner: Box<Ast>,
        negative: bool,
    },
    /// Whether the character before is of a set.
    Behind {
        set: CharSet,
        negative: bool,
    },
    Assert(Assert),
}

/// How a repetition chooses its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Greed {
    /// The longest that leads to a match.
    Greedy,
    /// The shortest that leads to a match.
    Lazy,
    /// The longest, come what may.
    Possessive,
}

/// A condition on a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assert {
    TextStart,
    TextEnd,
    LineStart,
    LineEnd,
    WordBoundary,
    NoWordBoundary,
}

/// Deepest nesting of groups and classes.
const MAX_DEPTH: usize = 64;
/// Most times that `{n,m}` repeats.
const MAX_REPEAT: u32 = 1024;
/// Longest expression, in characters; real ones have hundreds.
const MAX_CHARS: usize = 1 << 14;

/// Reads an expression.
///
/// # Errors
/// What is wrong or not supported, and where.
pub(super) fn parse(text: &str) -> Result<Ast, String> {
    let chars: Vec<char> = text.chars().take(MAX_CHARS + 1).collect();
    if chars.len() > MAX_CHARS {
        return Err(format!("it is longer than {MAX_CHARS} characters"));
    }
    let mut parser = Parser { chars, at: 0, depth: 0, ignore_case: false, dot_all: false };
    let ast = parser.alternatives()?;
    match parser.peek() {
        None => Ok(ast),
        Some(c) => Err(parser.error(&format!("`{c}` closes nothing"))),
    }
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    depth: usize,
    ignore_case: bool,
    dot_all: bool,
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Result<char, String> {
        let c = self.peek().ok_or_else(|| self.error("it ends too early"))?;
        self.at += 1;
        Ok(c)
    }

    /// Goes past `text` if it stands here.
    fn eat(&mut self, text: &str) -> bool {
        let found = text.chars().enumerate().all(|(i, c)| self.chars.get(self.at + i) == Some(&c));
        if found {
            self.at += text.chars().count();
        }
        found
    }

    fn error(&self, problem: &str) -> String {
        format!("at character {}: {problem}", self.at + 1)
    }

    fn enter(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(&format!("more than {MAX_DEPTH} levels of groups and classes")));
        }
        Ok(())
    }

    /// Up to the end or the group's closing parenthesis.
    fn alternatives(&mut self) -> Result<Ast, String> {
        self.enter()?;
        let mut all = vec![self.sequence()?];
        while self.eat("|") {
            all.push(self.sequence()?);
        }
        self.depth -= 1;
        Ok(if all.len() == 1 { all.remove(0) } else { Ast::Alternatives(all) })
    }

    fn sequence(&mut self) -> Result<Ast, String> {
        let mut parts = Vec::new();
        while let Some(c) = self.peek() {
            if matches!(c, '|' | ')') {
                break;
            }
            let Some(atom) = self.atom()? else { continue };
            parts.push(self.repetition(atom)?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Ast::Concat(parts) })
    }

    /// An atom, or nothing where only flags are set.
    fn atom(&mut self) -> Result<Option<Ast>, String> {
        Ok(Some(match self.next()? {
            '(' => return self.group(),
            '[' => Ast::Set(self.class()?),
            '.' if self.dot_all => Ast::Set(CharSet::default().negate()),
            '.' => Ast::Set(CharSet::one('\n').negate()),
            '^' => Ast::Assert(Assert::LineStart),
            '$' => Ast::Assert(Assert::LineEnd),
            '\\' => match self.peek() {
                Some('b') => self.assertion(Assert::WordBoundary),
                Some('B') => self.assertion(Assert::NoWordBoundary),
                Some('A') => self.assertion(Assert::TextStart),
                Some('z') => self.assertion(Assert::TextEnd),
                _ => Ast::Set(self.escape()?),
            },
            c @ ('*' | '+' | '?') => return Err(self.error(&format!("`{c}` repeats nothing"))),
            c => Ast::Set(self.cased(CharSet::one(c))),
        }))
    }

    fn assertion(&mut self, assert: Assert) -> Ast {
        self.at += 1;
        Ast::Assert(assert)
    }

    fn cased(&self, set: CharSet) -> CharSet {
        if self.ignore_case { set.ignoring_case() } else { set }
    }

    /// What follows an opening parenthesis.
    fn group(&mut self) -> Result<Option<Ast>, String> {
        let flags = (self.ignore_case, self.dot_all);
        let look = [("?=", false, false), ("?!", false, true), ("?<=", true, false), ("?<!", true, true)];
        let look = look.into_iter().find(|(mark, _, _)| self.eat(mark));
        if look.is_none() && self.eat("?") {
            self.flags()?;
            if self.eat(")") {
                // For the rest of the group around.
                return Ok(None);
            }
            if !self.eat(":") {
                return Err(self.error("this kind of group is not supported"));
            }
        }
        let inner = self.alternatives()?;
        if !self.eat(")") {
            return Err(self.error("a group is not closed"));
        }
        (self.ignore_case, self.dot_all) = flags;
        Ok(Some(match (look, inner) {
            (None, inner) => inner,
            (Some((_, false, negative)), inner) => Ast::Ahead { inner: Box::new(inner), negative },
            (Some((_, true, negative)), Ast::Set(set)) => Ast::Behind { set, negative },
            _ => return Err(self.error("look-behind of more than one character is not supported")),
        }))
    }

    fn flags(&mut self) -> Result<(), String> {
        let mut on = true;
        while let Some(c) = self.peek() {
            match c {
                'i' => self.ignore_case = on,
                's' => self.dot_all = on,
                // Lines and Unicode are as they are here anyway.
                'm' | 'u' => {}
                '-' => on = false,
                _ => break,
            }
            self.at += 1;
        }
        Ok(())
    }

    /// `atom` with the quantifier that follows, if one does.
    fn repetition(&mut self, atom: Ast) -> Result<Ast, String> {
        let (min, max, counted) = match self.peek() {
            Some('*') => (0, None, false),
            Some('+') => (1, None, false),
            Some('?') => (0, Some(1), false),
            Some('{') => match self.counts()? {
                Some((min, max)) => (min, max, true),
                None => return Ok(atom),
            },
            _ => return Ok(atom),
        };
        self.at += usize::from(!counted);
        let greed = match self.peek() {
            Some('?') => Greed::Lazy,
            Some('+') if counted => return Err(self.error("`+` behind `{…}` is not supported")),
            Some('+') => Greed::Possessive,
            Some('*') => return Err(self.error("`*` repeats a repetition")),
            _ => Greed::Greedy,
        };
        self.at += usize::from(greed != Greed::Greedy);
        if matches!(atom, Ast::Assert(_) | Ast::Ahead { .. } | Ast::Behind { .. }) {
            return Err(self.error("a condition cannot be repeated"));
        }
        if greed == Greed::Possessive && !matches!(atom, Ast::Set(_)) {
            return Err(self.error("only a single character can be repeated possessively"));
        }
        Ok(Ast::Repeat { inner: Box::new(atom), min, max, greed })
    }

    /// `{n}`, `{n,}`, `{n,m}`, `{,m}`; nothing where the brace stands for itself.
    fn counts(&mut self) -> Result<Option<(u32, Option<u32>)>, String> {
        let body: String = self.chars[self.at + 1..].iter().take_while(|c| **c != '}').collect();
        let end = self.at + 1 + body.chars().count();
        let (min, max) = body.split_once(',').unwrap_or((&body, &body));
        let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if end >= self.chars.len() || !is_number(min) || !is_number(max) || min.len() + max.len() == 0 {
            return Ok(None);
        }
        let number = |text: &str| match text.parse::<u32>() {
            Ok(n) if n <= MAX_REPEAT => Ok(n),
            _ => Err(self.error(&format!("`{{{body}}}` repeats more than {MAX_REPEAT} times"))),
        };
        let min = if min.is_empty() { 0 } else { number(min)? };
        let max = if max.is_empty() { None } else { Some(number(max)?) };
        if max.is_some_and(|max| max < min) {
            return Err(self.error(&format!("`{{{body}}}` ends before it begins")));
        }
        self.at = end + 1;
        Ok(Some((min, max)))
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Result<CharSet, String> {
        let c = self.next()?;
        let spaces = || CharSet::new(WHITE_SPACE.to_vec());
        let digits = || CharSet::new(unicode::property("Nd").unwrap_or_default());
        let words = || CharSet::new(unicode::word());
        Ok(match c {
            's' => spaces(),
            'S' => spaces().negate(),
            'd' => digits(),
            'D' => digits().negate(),
            'w' => words(),
            'W' => words().negate(),
            'p' => self.property(false)?,
            'P' => self.property(true)?,
            _ => {
                let c = self.character(c)?;
                self.cased(CharSet::one(c))
            }
        })
    }

    /// The character that an escape stands for.
    fn character(&mut self, escaped: char) -> Result<char, String> {
        Ok(match escaped {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'f' => '\u{C}',
            'v' => '\u{B}',
            'a' => '\u{7}',
            'e' => '\u{1B}',
            '0' => '\0',
            'x' => self.hexadecimal(2)?,
            'u' => self.hexadecimal(4)?,
            'U' => self.hexadecimal(8)?,
            c if c.is_ascii_alphanumeric() => return Err(self.error(&format!("`\\{c}` is not supported"))),
            c => c,
        })
    }

    /// Up to the closing brace, which is passed.
    fn braced(&mut self) -> Result<String, String> {
        let mut text = String::new();
        loop {
            match self.next()? {
                '}' => return Ok(text),
                c => text.push(c),
            }
        }
    }

    /// So many digits, or any number in braces.
    fn hexadecimal(&mut self, digits: usize) -> Result<char, String> {
        let text = if self.eat("{") {
            self.braced()?
        } else {
            (0..digits).map(|_| self.next()).collect::<Result<_, _>>()?
        };
        let code = u32::from_str_radix(&text, 16).ok();
        code.and_then(char::from_u32)
            .ok_or_else(|| self.error(&format!("`{text}` is not the number of a character")))
    }

    /// `{Name}`, `{^Name}`, or one letter.
    fn property(&mut self, negated: bool) -> Result<CharSet, String> {
        let name = match self.next()? {
            '{' => self.braced()?,
            c => c.to_string(),
        };
        let (name, inverse) = name.strip_prefix('^').map_or((name.as_str(), false), |name| (name, true));
        let ranges = unicode::property(name)
            .ok_or_else(|| self.error(&format!("the character property `{name}` is not supported")))?;
        let set = CharSet::new(ranges);
        Ok(if negated != inverse { set.negate() } else { set })
    }

    /// What follows an opening bracket.
    fn class(&mut self) -> Result<CharSet, String> {
        self.enter()?;
        let negated = self.eat("^");
        // Both sides of each `&&`: what is done, and the one being read.
        let (mut done, mut side) = (None::<CharSet>, Vec::new());
        let mut is_first = true;
        loop {
            let c = self.next()?;
            let and = c == '&' && self.eat("&");
            if and || (c == ']' && !is_first) {
                let set = CharSet::new(std::mem::take(&mut side));
                done = Some(done.map_or(set.clone(), |done| done.intersect(&set)));
                if !and {
                    break;
                }
            } else {
                side.extend_from_slice(self.class_item(c)?.ranges());
            }
            is_first = false;
        }
        self.depth -= 1;
        let set = done.unwrap_or_default();
        Ok(if negated { set.negate() } else { set })
    }

    /// A class inside, an escape, a character or a range, beginning with `c`.
    fn class_item(&mut self, c: char) -> Result<CharSet, String> {
        let first = match c {
            '[' if self.peek() == Some(':') => return Err(self.error("`[:name:]` is not supported")),
            '[' => return self.class(),
            '\\' => match self.next()? {
                's' | 'S' | 'd' | 'D' | 'w' | 'W' | 'p' | 'P' => {
                    self.at -= 1;
                    return self.escape();
                }
                'b' => '\u{8}',
                escaped => self.character(escaped)?,
            },
            c => c,
        };
        let is_range = self.peek() == Some('-')
            && !matches!(self.chars.get(self.at + 1), None | Some(']' | '['))
            && !(self.chars.get(self.at + 1) == Some(&'\\')
                && matches!(
                    self.chars.get(self.at + 2),
                    Some('s' | 'S' | 'd' | 'D' | 'w' | 'W' | 'p' | 'P')
                ));
        if !is_range {
            return Ok(self.cased(CharSet::one(first)));
        }
        self.at += 1;
        let last = match self.next()? {
            '\\' => {
                let escaped = self.next()?;
                self.character(escaped)?
            }
            c => c,
        };
        if last < first {
            return Err(self.error(&format!("the range `{first}-{last}` ends before it begins")));
        }
        Ok(self.cased(CharSet::new(vec![(first.into(), last.into())])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let cases = [
            ("(a", "at character 3: a group is not closed"),
            ("a)", "at character 2: `)` closes nothing"),
            ("[a", "at character 3: it ends too early"),
            ("[]", "at character 3: it ends too early"),
            ("a\\", "it ends too early"),
            ("+a", "`+` repeats nothing"),
            ("a**", "`*` repeats a repetition"),
            ("(?:ab)++", "only a single character"),
            ("a{2}+", "`+` behind `{…}`"),
            ("a{9999}", "repeats more than 1024 times"),
            ("a{3,2}", "ends before it begins"),
            ("(?>a)", "this kind of group"),
            ("(?P<n>a)", "this kind of group"),
            ("(?<=ab)c", "look-behind of more than one"),
            ("(?=a)*", "a condition cannot be repeated"),
            (r"(a)\1", r"`\1` is not supported"),
            (r"\p{Klingon}", "`Klingon` is not supported"),
            (r"\p{L", "it ends too early"),
            (r"\x{110000}", "`110000` is not the number"),
            (r"\u12", "it ends too early"),
            ("[z-a]", "the range `z-a`"),
            ("[[:alpha:]]", "`[:name:]`"),
        ];
        for (text, expected) in cases {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(parse(&"(".repeat(100)).unwrap_err().contains("more than 64 levels"));
        assert!(parse(&"[".repeat(100)).unwrap_err().contains("more than 64 levels"));
        assert!(parse(&"a".repeat(20_000)).unwrap_err().contains("longer than"));
    }

    #[test]
    fn braces_that_count_nothing_are_characters() {
        for text in ["{", "a{", "a{}", "a{x}", "a{1", "a{,}", "{{a}}"] {
            assert!(parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn classes() {
        let set = |text: &str| match parse(text).unwrap() {
            Ast::Set(set) => set,
            other => panic!("{text} is {other:?}"),
        };
        let cases = [
            (r"[a-c\]-]", "abc]-", "d\\"),
            (r"[^\s\p{L}]", "1!", "a \n"),
            (r"[]x]", "]x", "["),
            (r"[\p{L}&&[^a-z]]", "Aé", "a1"),
            (r"[a[bc]d]", "abcd", "[]"),
            (r"[\d-x]", "1-x", "y"),
            (r"[+-\]]", "+-A]", "a"),
            (r"\P{L}", "1", "a"),
            (r"\p{^L}", "1", "a"),
            (r"\pN", "1½", "a"),
            (r"(?i:k)", "kK\u{212A}", "x"),
            (r"\x41", "A", "B"),
            (r"\u{1F600}", "\u{1F600}", "A"),
            ("[\\!-/:-@]", "!/:@", "0"),
        ];
        for (text, inside, outside) in cases {
            let set = set(text);
            assert!(inside.chars().all(|c| set.contains(c)), "{text} has {inside}");
            assert!(!outside.chars().any(|c| set.contains(c)), "{text} has none of {outside}");
        }
    }
}
