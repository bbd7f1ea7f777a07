//! Template text to tokens, with Jinja's rules for white space as Hugging Face sets them: `trim_blocks` (the first
//! newline after a block is dropped) and `lstrip_blocks` (white space between the start of a line and a block is).

use super::python::is_space;

/// A piece of a template.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// Text outside of tags.
    Data(String),
    /// `{{`
    OutputBegin,
    /// `}}`
    OutputEnd,
    /// `{%`
    BlockBegin,
    /// `%}`
    BlockEnd,
    Name(String),
    Str(String),
    Int(i128),
    Float(f64),
    /// An operator or bracket.
    Op(&'static str),
}

/// A mistake in a template: line and problem.
pub(crate) type SyntaxError = (u32, String);

/// Operators, none before one that it begins.
const OPERATORS: [&str; 26] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<",
    "=", ".", ":", "|", ",", ";",
];

/// Cuts a template into tokens with their lines, which count from 1.
pub(crate) fn lex(source: &str) -> Result<Vec<(u32, Token)>, SyntaxError> {
    let mut source = source.replace("\r\n", "\n").replace('\r', "\n");
    if source.ends_with('\n') {
        source.pop();
    }
    let mut lexer = Lexer { rest: &source, line: 1, line_start: true, tokens: Vec::new() };
    while !lexer.rest.is_empty() {
        lexer.outside()?;
    }
    Ok(lexer.tokens)
}

struct Lexer<'s> {
    rest: &'s str,
    line: u32,
    /// What was consumed last ended a line.
    line_start: bool,
    tokens: Vec<(u32, Token)>,
}

impl<'s> Lexer<'s> {
    fn fail<T>(&self, problem: impl Into<String>) -> Result<T, SyntaxError> {
        Err((self.line, problem.into()))
    }

    fn token(&mut self, token: Token) {
        self.tokens.push((self.line, token));
    }

    /// Passes over `len` bytes.
    fn skip(&mut self, len: usize) -> &'s str {
        let (skipped, rest) = self.rest.split_at(len);
        self.rest = rest;
        self.line += skipped.bytes().filter(|&b| b == b'\n').count() as u32;
        self.line_start = skipped.ends_with('\n');
        skipped
    }

    /// Passes over `what` if it comes next.
    fn eat(&mut self, what: &str) -> bool {
        let found = self.rest.starts_with(what);
        if found {
            self.skip(what.len());
        }
        found
    }

    fn skip_space(&mut self) {
        let len = self.rest.find(|c| !is_space(c)).unwrap_or(self.rest.len());
        if len > 0 {
            self.skip(len);
        }
    }

    /// Text up to a tag, and that tag.
    fn outside(&mut self) -> Result<(), SyntaxError> {
        let begins = |rest: &str| ["{%", "{{", "{#"].iter().any(|tag| rest.starts_with(tag));
        let at = self.rest.match_indices('{').map(|(at, _)| at).find(|&at| begins(&self.rest[at..]));
        let Some(at) = at else {
            let data = self.skip(self.rest.len());
            self.token(Token::Data(data.to_owned()));
            return Ok(());
        };
        let tag = &self.rest[at..at + 2];
        let sign = self.rest[at + 2..].chars().next().filter(|c| matches!(c, '-' | '+'));
        self.data(at, sign, tag != "{{");
        self.skip(2 + sign.map_or(0, char::len_utf8));
        match tag {
            "{{" => self.inside(Token::OutputBegin, Token::OutputEnd, "}}"),
            "{#" => self.comment(),
            _ if self.raw()? => Ok(()),
            _ => self.inside(Token::BlockBegin, Token::BlockEnd, "%}"),
        }
    }

    /// Emits `len` bytes of text before a tag, less the white space that the tag takes.
    fn data(&mut self, len: usize, sign: Option<char>, is_block: bool) {
        let line_start = self.line_start;
        let line = self.line;
        let mut data = self.skip(len);
        match sign {
            Some('-') => data = data.trim_end_matches(is_space),
            None if is_block => {
                let at = data.rfind('\n').map_or(0, |at| at + 1);
                if (at > 0 || line_start) && data[at..].chars().all(is_space) {
                    data = &data[..at];
                }
            }
            _ => {}
        }
        if !data.is_empty() {
            self.tokens.push((line, Token::Data(data.to_owned())));
        }
    }

    /// The end of a tag, if it comes next: `-%}` takes all white space, `%}` one newline, `+%}` none.
    fn end(&mut self, end: &str) -> bool {
        let trims = end != "}}";
        if self.rest.strip_prefix('-').is_some_and(|rest| rest.starts_with(end)) {
            self.skip(1 + end.len());
            self.skip_space();
        } else if trims && self.rest.strip_prefix('+').is_some_and(|rest| rest.starts_with(end)) {
            self.skip(1 + end.len());
        } else if self.eat(end) {
            if trims {
                self.eat("\n");
            }
        } else {
            return false;
        }
        true
    }

    fn comment(&mut self) -> Result<(), SyntaxError> {
        let Some(mut at) = self.rest.find("#}") else {
            return self.fail("a comment is not closed; close it with `#}`");
        };
        if self.rest[..at].ends_with(['-', '+']) {
            at -= 1;
        }
        self.skip(at);
        self.end("#}");
        Ok(())
    }

    /// `raw %}…{% endraw %}`, if that is what comes after `{%`.
    fn raw(&mut self) -> Result<bool, SyntaxError> {
        let name = self.rest.trim_start_matches(is_space);
        let Some(after) = name.strip_prefix("raw") else { return Ok(false) };
        let end = after.trim_start_matches(is_space);
        let (end, trim) = end.strip_prefix('-').map_or((end, false), |end| (end, true));
        if !end.starts_with("%}") {
            return Ok(false);
        }
        self.skip(self.rest.len() - end.len() + 2);
        if trim {
            self.skip_space();
        }
        for (at, _) in self.rest.match_indices("{%") {
            let tag = &self.rest[at + 2..];
            let sign = tag.chars().next().filter(|c| matches!(c, '-' | '+'));
            let tag = &tag[sign.map_or(0, char::len_utf8)..];
            let Some(after) = tag.trim_start_matches(is_space).strip_prefix("endraw") else { continue };
            let after = after.trim_start_matches(is_space);
            if ["%}", "-%}", "+%}"].iter().any(|end| after.starts_with(end)) {
                let to_end = self.rest.len() - after.len() - at;
                self.data(at, sign, true);
                self.skip(to_end);
                self.end("%}");
                return Ok(true);
            }
        }
        self.fail("`raw` is not closed; close it with `{% endraw %}`")
    }

    /// What lies inside of a tag, with its two ends.
    fn inside(&mut self, begin: Token, end: Token, close: &str) -> Result<(), SyntaxError> {
        self.token(begin);
        let mut open: Vec<&str> = Vec::new();
        loop {
            self.skip_space();
            let line = self.line;
            if open.is_empty() && self.end(close) {
                self.tokens.push((line, end));
                return Ok(());
            }
            let Some(c) = self.rest.chars().next() else {
                return self.fail(format!("a tag is not closed; close it with `{close}`"));
            };
            match c {
                '0'..='9' => self.number()?,
                '\'' | '"' => self.string(c)?,
                _ if is_word(c) => self.name()?,
                _ => self.operator(c, &mut open)?,
            }
        }
    }

    fn name(&mut self) -> Result<(), SyntaxError> {
        let len = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
        let name = self.skip(len).to_owned();
        self.token(Token::Name(name));
        Ok(())
    }

    fn operator(&mut self, c: char, open: &mut Vec<&'static str>) -> Result<(), SyntaxError> {
        let Some(op) = OPERATORS.iter().find(|op| self.rest.starts_with(**op)) else {
            return self.fail(format!("unexpected character {c:?}"));
        };
        match *op {
            "(" => open.push(")"),
            "[" => open.push("]"),
            "{" => open.push("}"),
            ")" | "]" | "}" => match open.pop() {
                Some(expected) if expected == *op => {}
                Some(expected) => return self.fail(format!("unexpected `{op}`, expected `{expected}`")),
                None => return self.fail(format!("unexpected `{op}`")),
            },
            _ => {}
        }
        self.token(Token::Op(op));
        self.skip(op.len());
        Ok(())
    }

    fn number(&mut self) -> Result<(), SyntaxError> {
        let rest = self.rest.as_bytes();
        let radix = match rest.get(..2) {
            Some(b"0x" | b"0X") => 16,
            Some(b"0o" | b"0O") => 8,
            Some(b"0b" | b"0B") => 2,
            _ => 10,
        };
        let digits = |from: usize, radix: u32| {
            let digit = |b: &u8| char::from(*b).is_digit(radix) || *b == b'_';
            from + rest.get(from..).unwrap_or_default().iter().take_while(|b| digit(b)).count()
        };
        let is_digit = |at: usize| rest.get(at).is_some_and(u8::is_ascii_digit);
        let from = if radix == 10 { 0 } else { 2 };
        let mut end = digits(from, radix);
        let mut float = false;
        // After a dot stands an index (`a.0.1`), not a fraction.
        let after_dot = matches!(self.tokens.last(), Some((_, Token::Op("."))));
        if radix == 10 && !after_dot {
            if rest.get(end) == Some(&b'.') && is_digit(end + 1) {
                (end, float) = (digits(end + 1, 10), true);
            }
            if matches!(rest.get(end), Some(b'e' | b'E')) {
                let sign = usize::from(matches!(rest.get(end + 1), Some(b'+' | b'-')));
                if is_digit(end + 1 + sign) {
                    (end, float) = (digits(end + 1 + sign, 10), true);
                }
            }
        }
        let text = self.rest[from..end].replace('_', "");
        let token = if float {
            text.parse().ok().map(Token::Float)
        } else {
            i128::from_str_radix(&text, radix).ok().map(Token::Int)
        };
        let Some(token) = token else {
            return self.fail(format!("`{}` is not a number that fits 128 bits", &self.rest[..end]));
        };
        self.token(token);
        self.skip(end);
        Ok(())
    }

    fn string(&mut self, quote: char) -> Result<(), SyntaxError> {
        let mut escaped = false;
        let end = self.rest.char_indices().skip(1).find(|&(_, c)| {
            let ends = c == quote && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let Some((end, _)) = end else {
            return self.fail(format!("a string is not closed; close it with `{quote}`"));
        };
        let text = unescape(&self.rest[1..end]).or_else(|problem| self.fail(problem))?;
        self.token(Token::Str(text));
        self.skip(end + 1);
        Ok(())
    }
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Resolves the escapes of a Python string literal. An unknown one stays as it is, as in Python.
fn unescape(literal: &str) -> Result<String, String> {
    let mut text = String::with_capacity(literal.len());
    let mut chars = literal.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        let digits = match chars.next() {
            Some('\n') => continue,
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            Some(first @ '0'..='7') => {
                let rest = chars.as_str();
                let more = rest.bytes().take(2).take_while(|b| (b'0'..=b'7').contains(b)).count();
                let octal = format!("{first}{}", &rest[..more]);
                let code = u32::from_str_radix(&octal, 8).ok().and_then(char::from_u32);
                text.extend(code);
                chars = rest[more..].chars();
                continue;
            }
            Some('N') => return Err("characters by name (`\\N{…}`) are not supported; write `\\u…`".into()),
            Some(simple) => {
                match simple_escape(simple) {
                    Some(c) => text.push(c),
                    None => text.extend(['\\', simple]),
                }
                continue;
            }
            None => return Err("a string ends within an escape".into()),
        };
        let rest = chars.as_str();
        let hex = rest.get(..digits).unwrap_or(rest);
        let code = if hex.len() == digits { u32::from_str_radix(hex, 16).ok() } else { None };
        let code = code.and_then(char::from_u32).ok_or_else(|| format!("`\\{hex}` is not a character"))?;
        text.push(code);
        chars = rest[digits..].chars();
    }
    Ok(text)
}

fn simple_escape(c: char) -> Option<char> {
    Some(match c {
        '\\' | '\'' | '"' => c,
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text that is left when tags are dropped.
    fn data(source: &str) -> String {
        let tokens = lex(source).unwrap();
        tokens.into_iter().filter_map(|(_, t)| if let Token::Data(d) = t { Some(d) } else { None }).collect()
    }

    #[test]
    fn white_space_around_tags() {
        for (source, expected) in [
            ("a\n  {% x %}\nb\n", "a\nb"),
            ("a  {% x %}\n\nb", "a  \nb"),
            ("a \n {%- x -%} \n b", "ab"),
            ("a\n {%+ x +%}\nb", "a\n \nb"),
            ("a {{- x -}} b", "ab"),
            ("a\n  {{ x }}\nb\n\n", "a\n  \nb\n"),
            ("{% x %}\n  {% y %}\r\n  z", "  z"),
            ("a\n  {# note #}\nb{#- note -#} c", "a\nbc"),
            ("{% raw %}\n {{ x }}{% endraw %}\ny", "\n {{ x }}y"),
            ("a {%- raw -%} {% b %} {%- endraw -%} c", "a{% b %}c"),
            ("{ a } {{ '}}' }} { % }", "{ a }  { % }"),
            ("\t{% x %}", ""),
        ] {
            assert_eq!(data(source), expected, "{source:?}");
        }
    }

    #[test]
    fn tokens_of_expressions() {
        let tokens = |source: &str| -> Vec<Token> {
            let tokens = lex(&format!("{{{{{source}}}}}")).unwrap();
            tokens[1..tokens.len() - 1].iter().map(|(_, token)| token.clone()).collect()
        };
        use Token::{Float, Int, Name, Op, Str};
        assert_eq!(tokens("a.0.1"), [Name("a".into()), Op("."), Int(0), Op("."), Int(1)]);
        assert_eq!(
            tokens("1_000 0x1F 1.5e3 2e-1 1.x"),
            [Int(1000), Int(31), Float(1500.0), Float(0.2), Int(1), Op("."), Name("x".into())]
        );
        assert_eq!(tokens("{'a}}': {}}"), [Op("{"), Str("a}}".into()), Op(":"), Op("{"), Op("}"), Op("}")]);
        assert_eq!(tokens(r#"'\n\'\q\x41\u00e9\101' "\\""#), [Str("\n'\\qAéA".into()), Str("\\".into())]);
        assert_eq!(
            tokens("a//b**-c"),
            [Name("a".into()), Op("//"), Name("b".into()), Op("**"), Op("-"), Name("c".into())]
        );
    }

    #[test]
    fn mistakes_are_named_with_their_lines() {
        for (source, line, problem) in [
            ("\n{{ x", 2, "not closed; close it with `}}`"),
            ("{% if", 1, "close it with `%}`"),
            ("a\n\n{# x", 3, "comment"),
            ("{% raw %}", 1, "endraw"),
            ("{{ 'x }}", 1, "string"),
            ("{{ (] }}", 1, "unexpected `]`, expected `)`"),
            ("{{ a) }}", 1, "unexpected `)`"),
            ("{{ ? }}", 1, "'?'"),
            ("{{ '\\ud800' }}", 1, "not a character"),
            ("{{ 999999999999999999999999999999999999999999 }}", 1, "128 bits"),
        ] {
            let (at, found) = lex(source).unwrap_err();
            assert!(at == line && found.contains(problem), "{source:?}: line {at}: {found}");
        }
    }
}
