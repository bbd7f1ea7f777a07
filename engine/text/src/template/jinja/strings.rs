//! Operations on strings that filters and methods share. Each keeps the origin of what it keeps.

use super::meter::{Fault, Result};
use super::python::is_space;
use super::text::{Text, TextBuilder};
use super::value::{ListBuilder, Value};
use std::ops::Range;

/// Which ends of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    Left,
    Right,
    Both,
}

/// `strip`, `lstrip`, `rstrip`: drops white space, or any of `chars`.
pub(crate) fn strip(text: &Text, chars: Option<&Text>, ends: Ends) -> Result<Text> {
    let string = text.as_str();
    text.meter().bytes(string.len())?;
    let set: Option<Vec<char>> = chars.map(|chars| chars.as_str().chars().collect());
    if let Some(set) = &set {
        text.meter().steps(set.len() / 8)?;
    }
    let outside = |c: char| set.as_ref().map_or_else(|| is_space(c), |set| set.contains(&c));
    let mut left = string;
    if ends != Ends::Right {
        left = left.trim_start_matches(outside);
    }
    let from = string.len() - left.len();
    if ends != Ends::Left {
        left = left.trim_end_matches(outside);
    }
    // Every character that was dropped was looked for in the set.
    text.meter().steps(set.map_or(0, |set| set.len() / 64 * (string.len() - left.len())))?;
    text.slice(from..from + left.len())
}

/// `split` at white space or a separator, at most `max` times, from the left or the right.
pub(crate) fn split(
    text: &Text,
    separator: Option<&Text>,
    max: Option<usize>,
    from_right: bool,
) -> Result<Value> {
    let string = text.as_str();
    text.meter().bytes(string.len())?;
    let max = max.unwrap_or(usize::MAX);
    let mut parts: Vec<Range<usize>> = Vec::new();
    let mut charge = text.meter().hold(0)?;
    let mut push = |range: Range<usize>| {
        text.meter().steps(1)?;
        charge.grow(size_of::<Range<usize>>())?;
        parts.push(range);
        Ok::<(), Fault>(())
    };
    match separator {
        Some(separator) if separator.len() == 0 => return Err(Fault::Invalid("empty separator".into())),
        Some(separator) if from_right => {
            let mut end = string.len();
            for (at, found) in string.rmatch_indices(separator.as_str()).take(max) {
                push(at + found.len()..end)?;
                end = at;
            }
            push(0..end)?;
        }
        Some(separator) => {
            let mut start = 0;
            for (at, found) in string.match_indices(separator.as_str()).take(max) {
                push(start..at)?;
                start = at + found.len();
            }
            push(start..string.len())?;
        }
        None => words(string, max, from_right, push)?,
    }
    if from_right {
        parts.reverse();
    }
    let mut list = ListBuilder::new(text.meter())?;
    for part in parts {
        list.push(Value::Str(text.slice(part)?))?;
    }
    Ok(Value::List(list.finish()?))
}

/// Words with white space between; after `max` of them, the rest is one part.
fn words(
    string: &str,
    max: usize,
    from_right: bool,
    mut push: impl FnMut(Range<usize>) -> Result<()>,
) -> Result<()> {
    let (mut from, mut to) = (0, string.len());
    for done in 0.. {
        let rest = &string[from..to];
        let rest =
            if from_right { rest.trim_end_matches(is_space) } else { rest.trim_start_matches(is_space) };
        if from_right {
            to = from + rest.len()
        } else {
            from = to - rest.len()
        }
        if rest.is_empty() {
            break;
        }
        let end = if from_right { rest.rfind(is_space) } else { rest.find(is_space) };
        let Some(end) = end.filter(|_| done < max) else {
            push(from..to)?;
            break;
        };
        if from_right {
            let space = rest[end..].chars().next().map_or(1, char::len_utf8);
            push(from + end + space..to)?;
            to = from + end;
        } else {
            push(from..from + end)?;
            from += end;
        }
    }
    Ok(())
}

/// `splitlines`: the lines without their ends, and where the next begins.
pub(crate) fn lines(string: &str) -> impl Iterator<Item = (Range<usize>, usize)> {
    let ends = |c: char| matches!(c, '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = string.get(start..).filter(|rest| !rest.is_empty())?;
        let from = start;
        let end = from + rest.find(ends).unwrap_or(rest.len());
        let after = &string[end..];
        let width =
            if after.starts_with("\r\n") { 2 } else { after.chars().next().map_or(0, char::len_utf8) };
        start = end + width;
        Some((from..end, start))
    })
}

/// `replace`, at most `max` times.
pub(crate) fn replace(text: &Text, old: &Text, new: &Text, max: Option<usize>) -> Result<Text> {
    let string = text.as_str();
    let mut out = TextBuilder::new(text.meter())?;
    text.meter().bytes(string.len())?;
    let mut from = 0;
    for (at, found) in string.match_indices(old.as_str()).take(max.unwrap_or(usize::MAX)) {
        text.meter().steps(1)?;
        out.push_part(text, from..at)?;
        out.push_text(new)?;
        from = at + found.len();
    }
    out.push_part(text, from..string.len())?;
    Ok(out.finish())
}

/// Values as strings with `separator` between.
pub(crate) fn join(separator: &Text, items: &[Value]) -> Result<Text> {
    let mut out = TextBuilder::new(separator.meter())?;
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push_text(separator)?;
        }
        super::show::write(item, &mut out)?;
    }
    Ok(out.finish())
}

/// `ljust`, `rjust`, `center`: fills up to `width` characters with the character `fill`. `ends` says where.
pub(crate) fn pad(text: &Text, width: i128, fill: &Text, ends: Ends) -> Result<Text> {
    let string = text.as_str();
    text.meter().bytes(string.len())?;
    let length = string.chars().count();
    let missing = usize::try_from(width).unwrap_or(0).saturating_sub(length);
    let left = match ends {
        Ends::Left => missing,
        Ends::Right => 0,
        // The odd character goes to the left where the width is odd, as in Python.
        Ends::Both => missing / 2 + (missing & usize::try_from(width).unwrap_or(0) & 1),
    };
    let mut out = TextBuilder::new(text.meter())?;
    out.repeat(fill, left)?;
    out.push_text(text)?;
    out.repeat(fill, missing - left)?;
    Ok(out.finish())
}

/// The characters in reverse.
pub(crate) fn reverse(text: &Text) -> Result<Text> {
    let mut out = TextBuilder::new(text.meter())?;
    for (at, c) in text.as_str().char_indices().rev() {
        text.meter().steps(1)?;
        out.push_part(text, at..at + c.len_utf8())?;
    }
    Ok(out.finish())
}

/// `indent`: every line but the first, or all, behind `indent`; empty ones only with `blank`.
pub(crate) fn indent(text: &Text, indent: &Text, first: bool, blank: bool) -> Result<Text> {
    let mut out = TextBuilder::new(text.meter())?;
    text.meter().bytes(text.len())?;
    // A text that ends with a newline has an empty line after it.
    let last = text.as_str().is_empty() || text.as_str().ends_with('\n');
    let last = last.then_some(text.len()..text.len());
    for (i, line) in lines(text.as_str()).map(|(line, _)| line).chain(last).enumerate() {
        text.meter().steps(1)?;
        if i > 0 {
            out.made("\n")?;
        }
        if if i == 0 { first } else { blank || !line.is_empty() } {
            out.push_text(indent)?;
        }
        out.push_part(text, line)?;
    }
    Ok(out.finish())
}
