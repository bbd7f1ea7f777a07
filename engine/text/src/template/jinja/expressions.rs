//! Tokens to expressions, with Jinja's ranks of operators.

use super::ast::{Call, CallArgs, CompareOp, Expr, Filter, MathOp, Test};
use super::lexer::Token;
use super::parser::{Parsed, Parser};

/// Most filters, tests, attributes and calls on one value: each makes the tree a level deeper.
const MAX_POSTFIX: usize = 48;

impl Parser {
    /// `a`, or `a, b, c` without parentheses; `conditional` allows `a if b` at the top.
    pub(super) fn tuple(&mut self, conditional: bool) -> Parsed<Expr> {
        let item =
            |parser: &mut Self| if conditional { parser.expression() } else { parser.nested(Self::or) };
        let first = item(self)?;
        if !self.at_op(",") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.eat_op(",") {
            if matches!(self.peek(), None | Some(Token::BlockEnd | Token::OutputEnd)) || self.at_op(")") {
                break;
            }
            items.push(item(self)?);
        }
        Ok(Expr::Tuple(items))
    }

    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        self.nested(|parser| {
            let value = parser.or()?;
            if !parser.eat_name("if") {
                return Ok(value);
            }
            let condition = parser.or()?;
            let otherwise = if parser.eat_name("else") { Some(parser.expression()?) } else { None };
            Ok(Expr::If(Box::new((value, condition, otherwise))))
        })
    }

    fn or(&mut self) -> Parsed<Expr> {
        let first = self.and()?;
        if !self.at_name("or") {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.eat_name("or") {
            operands.push(self.and()?);
        }
        Ok(Expr::Or(operands))
    }

    fn and(&mut self) -> Parsed<Expr> {
        let first = self.not()?;
        if !self.at_name("and") {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.eat_name("and") {
            operands.push(self.not()?);
        }
        Ok(Expr::And(operands))
    }

    fn not(&mut self) -> Parsed<Expr> {
        if self.eat_name("not") {
            return Ok(Expr::Not(Box::new(self.nested(Self::not)?)));
        }
        self.compare()
    }

    fn compare_op(&mut self) -> Option<CompareOp> {
        let op = match self.peek()? {
            Token::Op("==") => CompareOp::Eq,
            Token::Op("!=") => CompareOp::Ne,
            Token::Op("<") => CompareOp::Lt,
            Token::Op("<=") => CompareOp::Le,
            Token::Op(">") => CompareOp::Gt,
            Token::Op(">=") => CompareOp::Ge,
            Token::Name(name) if name == "in" => CompareOp::In,
            Token::Name(name) if name == "not" => match self.peek_at(1)? {
                Token::Name(next) if next == "in" => {
                    self.advance();
                    CompareOp::NotIn
                }
                _ => return None,
            },
            _ => return None,
        };
        self.advance();
        Some(op)
    }

    fn compare(&mut self) -> Parsed<Expr> {
        let first = self.sum()?;
        let mut rest = Vec::new();
        while let Some(op) = self.compare_op() {
            rest.push((op, self.sum()?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Compare(Box::new(first), rest) })
    }

    /// Operands joined by operators of one rank.
    fn math(&mut self, ops: &[(&str, MathOp)], operand: impl Fn(&mut Self) -> Parsed<Expr>) -> Parsed<Expr> {
        let first = operand(self)?;
        let mut rest = Vec::new();
        while let Some((_, op)) = ops.iter().find(|(text, _)| self.at_op(text)) {
            self.advance();
            rest.push((*op, operand(self)?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Math(Box::new(first), rest) })
    }

    fn sum(&mut self) -> Parsed<Expr> {
        self.math(&[("+", MathOp::Add), ("-", MathOp::Sub)], Self::concat)
    }

    fn concat(&mut self) -> Parsed<Expr> {
        let first = self.product()?;
        if !self.at_op("~") {
            return Ok(first);
        }
        let mut operands = vec![first];
        while self.eat_op("~") {
            operands.push(self.product()?);
        }
        Ok(Expr::Concat(operands))
    }

    fn product(&mut self) -> Parsed<Expr> {
        let ops = [("*", MathOp::Mul), ("/", MathOp::Div), ("//", MathOp::FloorDiv), ("%", MathOp::Mod)];
        self.math(&ops, |parser| parser.math(&[("**", MathOp::Pow)], |parser| parser.unary(true)))
    }

    fn unary(&mut self, filters: bool) -> Parsed<Expr> {
        let value = if self.eat_op("-") {
            Expr::Neg(Box::new(self.nested(|parser| parser.unary(false))?))
        } else if self.eat_op("+") {
            Expr::Pos(Box::new(self.nested(|parser| parser.unary(false))?))
        } else {
            self.primary()?
        };
        self.postfix(value, filters)
    }

    /// Attributes, items and calls, and then filters and tests if they are wanted here.
    fn postfix(&mut self, mut value: Expr, filters: bool) -> Parsed<Expr> {
        for _ in 0..MAX_POSTFIX {
            value = if self.eat_op(".") {
                self.attribute(value)?
            } else if self.eat_op("[") {
                self.subscript(value)?
            } else if self.at_op("(") {
                let args = self.call_args()?;
                Expr::Call(Box::new(Call { callee: value, args }))
            } else if filters && self.eat_op("|") {
                let filter = self.filter()?;
                Expr::Filter(Box::new((value, filter)))
            } else if filters && self.eat_name("is") {
                self.test(value)?
            } else {
                return Ok(value);
            };
        }
        self.fail(format!("more than {MAX_POSTFIX} attributes, calls and filters in a row"))
    }

    fn attribute(&mut self, value: Expr) -> Parsed<Expr> {
        if let Some(&Token::Int(index)) = self.peek() {
            self.advance();
            return Ok(Expr::Item(Box::new((value, Expr::Int(index)))));
        }
        let name = self.identifier()?;
        Ok(Expr::Attr(Box::new(value), self.str_id(&name)))
    }

    fn subscript(&mut self, value: Expr) -> Parsed<Expr> {
        let mut parts = [None, None, None];
        let mut colons = 0;
        while !self.at_op("]") {
            if self.eat_op(":") {
                colons += 1;
                if colons > 2 {
                    return self.fail("a slice has at most three parts");
                }
            } else if parts[colons].is_none() {
                parts[colons] = Some(if colons == 0 { self.tuple(true)? } else { self.expression()? });
            } else {
                return self.unexpected("`]`");
            }
        }
        self.expect_op("]")?;
        let [first, ..] = &mut parts;
        match first.take() {
            Some(key) if colons == 0 => Ok(Expr::Item(Box::new((value, key)))),
            None if colons == 0 => self.fail("`[]` needs an index"),
            start => {
                parts[0] = start;
                Ok(Expr::Slice(Box::new((value, parts))))
            }
        }
    }

    fn call_args(&mut self) -> Parsed<CallArgs> {
        let mut args = CallArgs::default();
        self.expect_op("(")?;
        let mut first = true;
        while !self.eat_op(")") {
            if !std::mem::take(&mut first) {
                self.expect_op(",")?;
                if self.eat_op(")") {
                    break;
                }
            }
            let keyword = match (self.peek(), self.peek_at(1)) {
                (Some(Token::Name(name)), Some(Token::Op("="))) => Some(name.clone()),
                _ => None,
            };
            if self.eat_op("**") {
                args.splat_named = Some(self.expression()?);
            } else if self.eat_op("*") {
                args.splat = Some(self.expression()?);
            } else if let Some(name) = keyword {
                self.advance();
                self.advance();
                let name = self.str_id(&name);
                args.named.push((name, self.expression()?));
            } else if args.named.is_empty() && args.splat_named.is_none() {
                args.positional.push(self.expression()?);
            } else {
                return self.fail("a positional argument follows a named one");
            }
        }
        Ok(args)
    }

    fn dotted_name(&mut self) -> Parsed<Box<str>> {
        let mut name = self.identifier()?;
        while self.eat_op(".") {
            name.push('.');
            name.push_str(&self.identifier()?);
        }
        Ok(name.into())
    }

    fn filter(&mut self) -> Parsed<Filter> {
        let name = self.dotted_name()?;
        let args = if self.at_op("(") { self.call_args()? } else { CallArgs::default() };
        Ok(Filter { name, args })
    }

    /// `a | b(c) | d`, after what it is applied to.
    pub(super) fn filters(&mut self) -> Parsed<Vec<Filter>> {
        let mut filters = vec![self.filter()?];
        while self.eat_op("|") {
            filters.push(self.filter()?);
        }
        Ok(filters)
    }

    fn test(&mut self, value: Expr) -> Parsed<Expr> {
        let negated = self.eat_name("not");
        let name = self.dotted_name()?;
        let mut args = CallArgs::default();
        if self.at_op("(") {
            args = self.call_args()?;
        } else {
            let operand = match self.peek() {
                Some(Token::Name(word)) => {
                    !matches!(word.as_str(), "else" | "or" | "and" | "if" | "in" | "not")
                }
                Some(Token::Str(_) | Token::Int(_) | Token::Float(_) | Token::Op("[" | "{")) => true,
                _ => false,
            };
            if self.at_name("is") {
                return self.fail("tests cannot be chained: `a is b is c`");
            }
            if operand {
                let primary = self.primary()?;
                args.positional.push(self.postfix(primary, false)?);
            }
        }
        Ok(Expr::Test(Box::new(Test { value, negated, name, args })))
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let Some(token) = self.peek().cloned() else { return self.unexpected("an expression") };
        let begins = match token {
            Token::Name(_) | Token::Str(_) | Token::Int(_) | Token::Float(_) => true,
            Token::Op(op) => matches!(op, "(" | "[" | "{"),
            _ => false,
        };
        if !begins {
            return self.unexpected("an expression");
        }
        self.advance();
        match token {
            Token::Name(name) => Ok(match name.as_str() {
                "true" | "True" => Expr::Bool(true),
                "false" | "False" => Expr::Bool(false),
                "none" | "None" => Expr::None,
                _ => Expr::Name(self.name_id(&name)),
            }),
            Token::Str(mut text) => {
                while let Some(Token::Str(more)) = self.peek() {
                    text.push_str(more);
                    self.advance();
                }
                Ok(Expr::Str(self.str_id(&text)))
            }
            Token::Int(number) => Ok(Expr::Int(number)),
            Token::Float(number) => Ok(Expr::Float(number)),
            Token::Op("[") => {
                let items = self.nested(|parser| parser.items("]", Self::expression))?;
                Ok(Expr::List(items))
            }
            Token::Op("{") => {
                let pair = |parser: &mut Self| {
                    let key = parser.expression()?;
                    parser.expect_op(":")?;
                    Ok((key, parser.expression()?))
                };
                Ok(Expr::Dict(self.nested(|parser| parser.items("}", pair))?))
            }
            _ => self.nested(Self::parenthesised),
        }
    }

    fn parenthesised(&mut self) -> Parsed<Expr> {
        if self.eat_op(")") {
            return Ok(Expr::Tuple(Vec::new()));
        }
        let value = self.tuple(true)?;
        self.expect_op(")")?;
        Ok(value)
    }

    /// Items with commas between, up to the bracket `close`.
    fn items<T>(&mut self, close: &str, item: impl Fn(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        while !self.eat_op(close) {
            if !items.is_empty() {
                self.expect_op(",")?;
                if self.eat_op(close) {
                    break;
                }
            }
            items.push(item(self)?);
        }
        Ok(items)
    }
}
