//! Tokens to statements. Expressions are parsed in `expressions`.

use super::ast::{Expr, For, If, Macro, NameId, Program, Stmt, StmtKind, StrId, Target};
use super::lexer::{SyntaxError, Token, lex};
use std::collections::HashMap;

/// Longest template that is read; real ones have at most some 100 KB.
const MAX_SOURCE_BYTES: usize = 1 << 20;
/// Deepest nesting of blocks and expressions.
pub(super) const MAX_DEPTH: u32 = 80;

/// Tags of Jinja that make no sense in a template that is one file.
const UNSUPPORTED: [&str; 6] = ["block", "extends", "include", "import", "from", "autoescape"];

/// Parses a template.
///
/// # Errors
/// The first mistake, with its line.
pub(crate) fn parse(source: &str) -> Result<Program, SyntaxError> {
    if source.len() > MAX_SOURCE_BYTES {
        return Err((
            1,
            format!("the template has {} bytes; at most {MAX_SOURCE_BYTES} are read", source.len()),
        ));
    }
    let mut parser = Parser {
        tokens: lex(source)?,
        at: 0,
        depth: 0,
        loops: 0,
        names: Table::default(),
        strings: Table::default(),
    };
    let body = parser.body(&[])?;
    Ok(Program { names: parser.names.list, strings: parser.strings.list, body })
}

/// Strings by number, each once.
#[derive(Default)]
struct Table {
    list: Vec<Box<str>>,
    ids: HashMap<Box<str>, u32>,
}

impl Table {
    fn id(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = self.list.len() as u32;
        self.list.push(text.into());
        self.ids.insert(text.into(), id);
        id
    }
}

pub(super) type Parsed<T> = Result<T, SyntaxError>;

pub(super) struct Parser {
    tokens: Vec<(u32, Token)>,
    at: usize,
    depth: u32,
    /// Loops around this place, inside of the same macro.
    loops: u32,
    names: Table,
    strings: Table,
}

impl Parser {
    pub(super) fn name_id(&mut self, name: &str) -> NameId {
        NameId(self.names.id(name))
    }

    pub(super) fn str_id(&mut self, text: &str) -> StrId {
        StrId(self.strings.id(text))
    }

    pub(super) fn line(&self) -> u32 {
        let last = self.tokens.len().saturating_sub(1);
        self.tokens.get(self.at.min(last)).map_or(1, |(line, _)| *line)
    }

    pub(super) fn fail<T>(&self, problem: impl Into<String>) -> Parsed<T> {
        Err((self.line(), problem.into()))
    }

    pub(super) fn peek(&self) -> Option<&Token> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead).map(|(_, token)| token)
    }

    pub(super) fn advance(&mut self) {
        self.at += 1;
    }

    pub(super) fn at_op(&self, op: &str) -> bool {
        matches!(self.peek(), Some(Token::Op(found)) if *found == op)
    }

    pub(super) fn at_name(&self, name: &str) -> bool {
        matches!(self.peek(), Some(Token::Name(found)) if found == name)
    }

    pub(super) fn eat_op(&mut self, op: &str) -> bool {
        let found = self.at_op(op);
        self.at += usize::from(found);
        found
    }

    pub(super) fn eat_name(&mut self, name: &str) -> bool {
        let found = self.at_name(name);
        self.at += usize::from(found);
        found
    }

    pub(super) fn unexpected<T>(&self, expected: &str) -> Parsed<T> {
        self.fail(format!("expected {expected}, found {}", describe(self.peek())))
    }

    pub(super) fn expect_op(&mut self, op: &str) -> Parsed<()> {
        if self.eat_op(op) { Ok(()) } else { self.unexpected(&format!("`{op}`")) }
    }

    /// A name that may be assigned or called.
    pub(super) fn identifier(&mut self) -> Parsed<String> {
        match self.peek() {
            Some(Token::Name(name)) => {
                let name = name.clone();
                self.advance();
                Ok(name)
            }
            _ => self.unexpected("a name"),
        }
    }

    /// Goes one level deeper for the time of `parse`.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            return self.fail(format!("nested more than {MAX_DEPTH} levels deep"));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Statements up to one of the tags `ends`, whose name is consumed but not the rest of the tag, or to the end of
    /// the template if there are none.
    fn body(&mut self, ends: &[&str]) -> Parsed<Vec<Stmt>> {
        self.nested(|parser| parser.statements(ends))
    }

    fn statements(&mut self, ends: &[&str]) -> Parsed<Vec<Stmt>> {
        let mut body = Vec::new();
        loop {
            let line = self.line();
            let token = self.peek().cloned();
            self.advance();
            let kind = match token {
                None if ends.is_empty() => return Ok(body),
                None => return self.fail(format!("the template ends before `{}`", ends.join("` or `"))),
                Some(Token::Data(data)) => StmtKind::Text(self.str_id(&data)),
                Some(Token::OutputBegin) => {
                    let value = self.tuple(true)?;
                    self.expect_end(&Token::OutputEnd)?;
                    StmtKind::Output(value)
                }
                _ => {
                    let tag = self.identifier()?;
                    if ends.contains(&tag.as_str()) {
                        self.at -= 1;
                        return Ok(body);
                    }
                    let kind = self.statement(&tag)?;
                    self.expect_end(&Token::BlockEnd)?;
                    kind
                }
            };
            body.push(Stmt { line, kind });
        }
    }

    fn expect_end(&mut self, end: &Token) -> Parsed<()> {
        if self.peek() == Some(end) {
            self.advance();
            return Ok(());
        }
        self.unexpected(if *end == Token::BlockEnd { "`%}`" } else { "`}}`" })
    }

    /// A body between the end of this tag and the tag `end`, whose name is consumed.
    fn block(&mut self, end: &str) -> Parsed<Vec<Stmt>> {
        self.expect_end(&Token::BlockEnd)?;
        let body = self.body(&[end])?;
        self.advance();
        Ok(body)
    }

    /// What follows the name of a tag, up to the end of the (closing) tag.
    fn statement(&mut self, tag: &str) -> Parsed<StmtKind> {
        match tag {
            "if" => Ok(StmtKind::If(self.if_block()?)),
            "for" => Ok(StmtKind::For(Box::new(self.for_block()?))),
            "set" => self.set(),
            "with" => self.with(),
            "macro" => {
                let name = self.identifier()?;
                let params = self.params()?;
                Ok(StmtKind::Macro(Box::new(self.macro_body(&name, params, "endmacro")?)))
            }
            "call" => self.call_block(),
            "filter" => {
                let filters = self.filters()?;
                Ok(StmtKind::FilterBlock(filters, self.block("endfilter")?))
            }
            "generation" => Ok(StmtKind::Generation(self.block("endgeneration")?)),
            "break" | "continue" if self.loops == 0 => self.fail(format!("`{tag}` outside of a loop")),
            "break" => Ok(StmtKind::Break),
            "continue" => Ok(StmtKind::Continue),
            _ if UNSUPPORTED.contains(&tag) => self.fail(format!(
                "the tag `{tag}` is not supported: a chat template is one self-contained file"
            )),
            _ => self.fail(format!("unknown tag `{tag}`")),
        }
    }

    fn if_block(&mut self) -> Parsed<If> {
        let mut parsed = If { branches: Vec::new(), otherwise: Vec::new() };
        loop {
            let condition = self.tuple(false)?;
            self.expect_end(&Token::BlockEnd)?;
            let body = self.body(&["elif", "else", "endif"])?;
            parsed.branches.push((condition, body));
            if self.eat_name("elif") {
                continue;
            }
            if self.eat_name("else") {
                parsed.otherwise = self.block("endif")?;
            } else {
                self.advance();
            }
            return Ok(parsed);
        }
    }

    fn for_block(&mut self) -> Parsed<For> {
        let target = self.target()?;
        if !self.eat_name("in") {
            return self.unexpected("`in`");
        }
        let items = self.tuple(false)?;
        let filter = if self.eat_name("if") { Some(self.expression()?) } else { None };
        let recursive = self.eat_name("recursive");
        self.expect_end(&Token::BlockEnd)?;
        self.loops += 1;
        let body = self.body(&["else", "endfor"]);
        self.loops -= 1;
        let body = body?;
        let otherwise = if self.eat_name("else") {
            self.block("endfor")?
        } else {
            self.advance();
            Vec::new()
        };
        Ok(For { target, items, filter, body, otherwise, recursive })
    }

    fn set(&mut self) -> Parsed<StmtKind> {
        let target = self.target()?;
        if self.eat_op("=") {
            return Ok(StmtKind::Set(target, self.tuple(true)?));
        }
        let filters = if self.eat_op("|") { self.filters()? } else { Vec::new() };
        Ok(StmtKind::SetBlock(target, filters, self.block("endset")?))
    }

    fn with(&mut self) -> Parsed<StmtKind> {
        let mut bindings = Vec::new();
        while self.peek() != Some(&Token::BlockEnd) {
            if !bindings.is_empty() {
                self.expect_op(",")?;
            }
            let target = self.target()?;
            self.expect_op("=")?;
            bindings.push((target, self.expression()?));
        }
        Ok(StmtKind::With(bindings, self.block("endwith")?))
    }

    fn call_block(&mut self) -> Parsed<StmtKind> {
        let params = if self.at_op("(") { self.params()? } else { Vec::new() };
        match self.expression()? {
            Expr::Call(call) => {
                let body = self.macro_body("caller", params, "endcall")?;
                Ok(StmtKind::CallBlock(Box::new(body), call))
            }
            _ => self.fail("`call` needs a call: `{% call name(…) %}`"),
        }
    }

    /// `(a, b=1)`
    fn params(&mut self) -> Parsed<Vec<(NameId, Option<Expr>)>> {
        let mut params: Vec<(NameId, Option<Expr>)> = Vec::new();
        self.expect_op("(")?;
        while !self.eat_op(")") {
            if !params.is_empty() {
                self.expect_op(",")?;
            }
            let name = self.identifier()?;
            let id = self.name_id(&name);
            let default = if self.eat_op("=") { Some(self.expression()?) } else { None };
            if default.is_none() && params.last().is_some_and(|(_, default)| default.is_some()) {
                return self.fail("a parameter without a default follows one with a default");
            }
            params.push((id, default));
        }
        Ok(params)
    }

    fn macro_body(&mut self, name: &str, params: Vec<(NameId, Option<Expr>)>, end: &str) -> Parsed<Macro> {
        let loops = std::mem::take(&mut self.loops);
        let body = self.block(end);
        self.loops = loops;
        Ok(Macro { name: self.name_id(name), params, body: body? })
    }

    /// `a`, `a.b`, `a, b`, `(a, b)`
    fn target(&mut self) -> Parsed<Target> {
        let first = self.target_part()?;
        if !self.at_op(",") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.eat_op(",") {
            if self.at_op("=") || self.at_name("in") {
                break;
            }
            parts.push(self.target_part()?);
        }
        Ok(Target::Tuple(parts))
    }

    fn target_part(&mut self) -> Parsed<Target> {
        if self.eat_op("(") {
            let target = self.nested(Self::target)?;
            self.expect_op(")")?;
            return Ok(target);
        }
        let name = self.identifier()?;
        if matches!(name.as_str(), "true" | "false" | "none" | "True" | "False" | "None") {
            return self.fail(format!("`{name}` cannot be assigned to"));
        }
        let id = self.name_id(&name);
        if !self.eat_op(".") {
            return Ok(Target::Name(id));
        }
        let attribute = self.identifier()?;
        Ok(Target::Attr(id, self.str_id(&attribute)))
    }
}

/// A token as an error names it.
fn describe(token: Option<&Token>) -> String {
    match token {
        None => "the end of the template".into(),
        Some(Token::Data(_)) => "text".into(),
        Some(Token::OutputBegin) => "`{{`".into(),
        Some(Token::OutputEnd) => "`}}`".into(),
        Some(Token::BlockBegin) => "`{%`".into(),
        Some(Token::BlockEnd) => "`%}`".into(),
        Some(Token::Name(name)) => format!("`{name}`"),
        Some(Token::Str(text)) => format!("the string {text:?}"),
        Some(Token::Int(number)) => format!("`{number}`"),
        Some(Token::Float(number)) => format!("`{number}`"),
        Some(Token::Op(op)) => format!("`{op}`"),
    }
}
