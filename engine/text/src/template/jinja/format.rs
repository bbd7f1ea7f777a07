//! `"…" % values` and `"…".format(values)`.

use super::args::Args;
use super::meter::{Fault, Meter, Result, invalid};
use super::text::{Origin, Text, TextBuilder};
use super::value::{Number, Value};
use super::{python, show};
use std::rc::Rc;

/// Most digits after the point.
const MAX_PRECISION: usize = 400;

/// How a value is laid out.
#[derive(Debug, Default)]
struct Spec {
    fill: Option<char>,
    /// `<`, `>`, `^`, or `=`: fill between sign and digits.
    align: Option<char>,
    /// `+`, ` `, or `-` where nothing is said.
    sign: Option<char>,
    alternate: bool,
    zero: bool,
    width: usize,
    comma: bool,
    precision: Option<usize>,
    kind: Option<char>,
    /// Who wrote the format.
    origin: Origin,
}

/// Takes digits off the front of `rest`.
fn digits(rest: &mut &str) -> Result<Option<usize>> {
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (number, after) = rest.split_at(end);
    *rest = after;
    if number.is_empty() {
        return Ok(None);
    }
    let parsed = number.parse().ok().filter(|&n| n <= 1 << 30);
    parsed.map(Some).ok_or_else(|| Fault::Invalid(format!("the width {number} is too large")))
}

/// Takes one of `chars` off the front of `rest`.
fn one_of(rest: &mut &str, chars: &str) -> Option<char> {
    let c = rest.chars().next().filter(|c| chars.contains(*c))?;
    *rest = &rest[c.len_utf8()..];
    Some(c)
}

/// Takes `.N` off the front of `rest`.
fn precision(rest: &mut &str) -> Result<Option<usize>> {
    if one_of(rest, ".").is_none() {
        return Ok(None);
    }
    let precision = digits(rest)?.unwrap_or(0);
    if precision > MAX_PRECISION {
        invalid(format!("the precision {precision} is too large"))
    } else {
        Ok(Some(precision))
    }
}

impl Spec {
    /// Parses a specification of `str.format`: `[[fill]align][sign][#][0][width][,][.precision][kind]`.
    fn parse(mut rest: &str, origin: Origin) -> Result<Spec> {
        let mut spec = Spec { origin, ..Spec::default() };
        let mut chars = rest.chars();
        if let (Some(fill), Some('<' | '>' | '^' | '=')) = (chars.next(), chars.next()) {
            spec.fill = Some(fill);
            rest = &rest[fill.len_utf8()..];
        }
        spec.align = one_of(&mut rest, "<>^=");
        spec.sign = one_of(&mut rest, "+- ");
        spec.alternate = one_of(&mut rest, "#").is_some();
        spec.zero = one_of(&mut rest, "0").is_some();
        spec.width = digits(&mut rest)?.unwrap_or(0);
        spec.comma = one_of(&mut rest, ",").is_some();
        spec.precision = precision(&mut rest)?;
        spec.kind = rest.chars().next();
        if rest.chars().count() > 1 {
            return invalid(format!("the format ends with `{rest}`, which is not supported"));
        }
        Ok(spec)
    }

    /// Appends a value.
    fn write(&self, value: &Value, out: &mut TextBuilder) -> Result<()> {
        match (value.number(), self.kind) {
            (Some(_), None) if matches!(value, Value::Bool(_)) => {}
            (Some(number), kind) if kind != Some('s') => {
                let (sign, digits) = self.number(number)?;
                // A number that becomes any character at all is not the template's word.
                let origin = if kind == Some('c') { Origin::Input } else { self.origin };
                let zero = self.zero && self.align.is_none();
                if zero || self.align == Some('=') {
                    let fill = self.fill(if zero { '0' } else { ' ' }, out.meter())?;
                    out.push(sign, origin)?;
                    out.repeat(&fill, self.width.saturating_sub(sign.len() + digits.chars().count()))?;
                    return out.push(&digits, origin);
                }
                let text = Text::new(out.meter(), &format!("{sign}{digits}"), origin)?;
                return self.aligned(&text, '>', out);
            }
            (None, Some(kind)) if kind != 's' => {
                return invalid(format!("`{kind}` needs a number, not {}", value.type_name()));
            }
            _ => {}
        }
        let text = show::text(value, out.meter())?;
        let end = text.as_str().char_indices().nth(self.precision.unwrap_or(usize::MAX));
        let text = text.slice(0..end.map_or(text.len(), |(at, _)| at))?;
        self.aligned(&text, '<', out)
    }

    fn fill(&self, default: char, meter: &Rc<Meter>) -> Result<Text> {
        Text::new(meter, self.fill.unwrap_or(default).encode_utf8(&mut [0; 4]), self.origin)
    }

    fn aligned(&self, text: &Text, default: char, out: &mut TextBuilder) -> Result<()> {
        let fill = self.fill(' ', out.meter())?;
        out.meter().bytes(text.len())?;
        let missing = self.width.saturating_sub(text.as_str().chars().count());
        let left = match self.align.unwrap_or(default) {
            '<' => 0,
            '^' => missing / 2,
            _ => missing,
        };
        out.repeat(&fill, left)?;
        out.push_text(text)?;
        out.repeat(&fill, missing - left)
    }

    /// Sign and digits of a number.
    fn number(&self, number: Number) -> Result<(&'static str, String)> {
        let negative = match number {
            Number::Int(n) => n < 0,
            Number::Float(n) => n.is_sign_negative() && !n.is_nan(),
        };
        let sign = match self.sign {
            _ if negative => "-",
            Some('+') => "+",
            Some(' ') => " ",
            _ => "",
        };
        let float = number.float().abs();
        let precision = self.precision.unwrap_or(6);
        let digits = match (self.kind, number) {
            (None | Some('d' | 'i' | 'u' | 'n'), Number::Int(n)) => n.unsigned_abs().to_string(),
            (Some('x'), Number::Int(n)) => format!("{}{:x}", self.prefix("0x"), n.unsigned_abs()),
            (Some('X'), Number::Int(n)) => format!("{}{:X}", self.prefix("0X"), n.unsigned_abs()),
            (Some('o'), Number::Int(n)) => format!("{}{:o}", self.prefix("0o"), n.unsigned_abs()),
            (Some('b'), Number::Int(n)) => format!("{}{:b}", self.prefix("0b"), n.unsigned_abs()),
            (Some('c'), Number::Int(n)) => {
                let c = u32::try_from(n).ok().and_then(char::from_u32);
                c.ok_or_else(|| Fault::Invalid(format!("{n} is not a character")))?.to_string()
            }
            (None, Number::Float(_)) if self.precision.is_none() => python::float(float),
            (Some('f' | 'F'), _) => format!("{float:.precision$}"),
            (Some('%'), _) => format!("{:.precision$}%", float * 100.0),
            (Some('e' | 'E'), _) => {
                let text = format!("{float:.precision$e}");
                let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
                let exponent: i32 = exponent.parse().unwrap_or(0);
                let sign = if exponent < 0 { '-' } else { '+' };
                let e = self.kind.unwrap_or('e');
                format!("{digits}{e}{sign}{:02}", exponent.unsigned_abs())
            }
            (Some('d' | 'i' | 'u'), Number::Float(n)) => format!("{:.0}", n.abs().trunc()),
            (kind, _) => {
                let kind = kind.map_or("a precision without `f`".to_owned(), |kind| format!("`{kind}`"));
                return invalid(format!("{kind} is not supported in the format of a number"));
            }
        };
        Ok((sign, if self.comma { grouped(&digits) } else { digits }))
    }

    fn prefix(&self, prefix: &'static str) -> &'static str {
        if self.alternate { prefix } else { "" }
    }
}

/// Commas between thousands.
fn grouped(digits: &str) -> String {
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let mut out = String::new();
    for (i, c) in digits[..end].chars().enumerate() {
        if i > 0 && (end - i) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    out + &digits[end..]
}

/// `text % values`
pub(crate) fn percent(text: &Text, values: &Value, meter: &Rc<Meter>) -> Result<Text> {
    let string = text.as_str();
    let mut out = TextBuilder::new(meter)?;
    let mut values = Operands { values, next: 0, by_name: false };
    let mut at = 0;
    while let Some(percent) = string[at..].find('%') {
        meter.steps(1)?;
        out.push_part(text, at..at + percent)?;
        let mut rest = &string[at + percent + 1..];
        let mut key = None;
        if let Some(named) = rest.strip_prefix('(') {
            let Some((name, after)) = named.split_once(')') else { return invalid("`%(` is not closed") };
            (key, rest) = (Some(name), after);
        }
        let mut spec = Spec { origin: text.origin(), ..Spec::default() };
        while let Some(flag) = one_of(&mut rest, "-+ #0") {
            match flag {
                '-' => spec.align = Some('<'),
                '#' => spec.alternate = true,
                '0' => spec.zero = true,
                _ => spec.sign = Some(flag),
            }
        }
        spec.width = digits(&mut rest)?.unwrap_or(0);
        spec.precision = precision(&mut rest)?;
        let Some(kind) = rest.chars().next() else { return invalid("the format ends within `%`") };
        at = string.len() - rest.len() + kind.len_utf8();
        match kind {
            '%' => out.push_part(text, at - 1..at)?,
            's' | 'r' | 'a' => {
                let value = values.take(key)?;
                let mut shown = TextBuilder::new(meter)?;
                if kind == 's' {
                    show::write(&value, &mut shown)?
                } else {
                    show::repr(&value, &mut shown)?
                }
                spec.align = spec.align.or(Some('>'));
                spec.write(&Value::Str(shown.finish()), &mut out)?;
            }
            _ => {
                spec.kind = Some(kind);
                spec.write(&values.take(key)?, &mut out)?;
            }
        }
    }
    out.push_part(text, at..string.len())?;
    values.end()?;
    Ok(out.finish())
}

/// What stands right of `%`.
struct Operands<'v> {
    values: &'v Value,
    next: usize,
    by_name: bool,
}

impl Operands<'_> {
    fn take(&mut self, key: Option<&str>) -> Result<Value> {
        if let Some(key) = key {
            self.by_name = true;
            return match self.values {
                Value::Dict(dict) => dict.get_str(key).cloned(),
                _ => None,
            }
            .ok_or_else(|| Fault::Invalid(format!("`%({key})` has no value")));
        }
        self.next += 1;
        match self.values {
            Value::Tuple(list) => list.items().get(self.next - 1).cloned(),
            value if self.next == 1 => Some(value.clone()),
            _ => None,
        }
        .ok_or_else(|| Fault::Invalid("not enough values for the format".into()))
    }

    fn end(&self) -> Result<()> {
        let given = match self.values {
            Value::Tuple(list) => list.items().len(),
            Value::Dict(_) => self.next,
            _ => 1,
        };
        if self.by_name || self.next >= given { Ok(()) } else { invalid("too many values for the format") }
    }
}

/// `text.format(values)`
pub(crate) fn braces(text: &Text, args: &mut Args) -> Result<Text> {
    let string = text.as_str();
    let mut out = TextBuilder::new(text.meter())?;
    let (mut at, mut next) = (0, 0);
    while let Some(found) = string[at..].find(['{', '}']) {
        text.meter().steps(1)?;
        let brace = at + found;
        out.push_part(text, at..brace)?;
        let rest = &string[brace + 1..];
        if rest.as_bytes().first() == Some(&string.as_bytes()[brace]) {
            out.push_part(text, brace..brace + 1)?;
            at = brace + 2;
            continue;
        }
        let Some((field, _)) = rest.split_once('}').filter(|_| string[brace..].starts_with('{')) else {
            return invalid("a single brace in a format; write it twice to mean the brace itself");
        };
        at = brace + field.len() + 2;
        let (field, spec) = field.split_once(':').unwrap_or((field, ""));
        let (name, conversion) = field.split_once('!').unwrap_or((field, ""));
        let value = match name.parse::<usize>() {
            Ok(index) => args.positional.get(index),
            Err(_) if name.is_empty() => {
                next += 1;
                args.positional.get(next - 1)
            }
            Err(_) => args.named.iter().find(|(key, _)| key.as_str() == name).map(|(_, value)| value),
        };
        let Some(value) = value else { return invalid(format!("`{{{name}}}` has no value")) };
        let spec = Spec::parse(spec, text.origin())?;
        match conversion {
            "" => spec.write(value, &mut out)?,
            "r" => {
                let mut shown = TextBuilder::new(text.meter())?;
                show::repr(value, &mut shown)?;
                spec.write(&Value::Str(shown.finish()), &mut out)?;
            }
            _ => spec.write(&Value::Str(show::text(value, text.meter())?), &mut out)?,
        }
    }
    out.push_part(text, at..string.len())?;
    args.positional.clear();
    args.named.clear();
    Ok(out.finish())
}

#[cfg(test)]
mod tests {
    use super::super::value::List;
    use super::*;

    fn meter() -> Rc<Meter> {
        Meter::new(1 << 20, 1 << 20)
    }

    #[test]
    fn percent_formats() {
        let meter = meter();
        let format = |text: &str, values: &[Value]| {
            let values = Value::Tuple(List::new(&meter, values.iter().cloned()).unwrap());
            percent(&Text::made(&meter, text).unwrap(), &values, &meter).map(|text| text.as_str().to_owned())
        };
        let text = |text: &str| Value::made(&meter, text).unwrap();
        assert_eq!(format("%s=%d%%", &[text("a"), Value::Int(-5)]).unwrap(), "a=-5%");
        assert_eq!(format("%05d|%-4d|%+d|%x", &[3, 3, 3, 255].map(Value::Int)).unwrap(), "00003|3   |+3|ff");
        assert_eq!(
            format("%.2f %5.1f %e", &[2.675, 3.16159, 1500.0].map(Value::Float)).unwrap(),
            "2.67   3.2 1.500000e+03"
        );
        assert_eq!(
            format("%r %5s|%-5s|%.1s", &["a", "b", "c", "de"].map(text)).unwrap(),
            "'a'     b|c    |d"
        );
        for (wrong, values) in
            [("%s", 0), ("%s", 2), ("%", 1), ("%(a)s", 1), ("%q", 1), ("%d", 1), ("%.999f", 1)]
        {
            assert!(format(wrong, &vec![text("x"); values]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn brace_formats() {
        let meter = meter();
        let format = |text: &str| {
            let named = vec![(Text::made(&meter, "n").unwrap(), Value::Float(1234567.891))];
            let positional = vec![Value::Int(7), Value::made(&meter, "é").unwrap(), Value::Bool(true)];
            let mut args = Args::new(positional, named);
            braces(&Text::made(&meter, text).unwrap(), &mut args).map(|text| text.as_str().to_owned())
        };
        assert_eq!(format("{} {{{}}} {0:03d} {2}").unwrap(), "7 {é} 007 True");
        assert_eq!(
            format("{n:,.1f} {n:.0f} {1:>3}|{1:^3}|{1:*<3}|{1!r}").unwrap(),
            "1,234,567.9 1234568   é| é |é**|'é'"
        );
        for wrong in ["{", "}", "{9}", "{x}", "{1:d}", "{0:q}", "{0:99999999999}", "{0:999999999}"] {
            assert!(format(wrong).is_err(), "{wrong}");
        }
    }
}
