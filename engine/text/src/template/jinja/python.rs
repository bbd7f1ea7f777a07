//! How Python writes and classifies characters and numbers.

use std::fmt::Write;

/// `str.isspace` of one character.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// `repr` of a float: the shortest digits that read back as the same number.
pub(crate) fn float(value: f64) -> String {
    if !value.is_finite() {
        let name = if value.is_nan() { "nan" } else { "inf" };
        return if value < 0.0 { format!("-{name}") } else { name.to_owned() };
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = value.to_string();
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// `repr` of a string.
pub(crate) fn repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            _ if c == quote => out.extend(['\\', c]),
            _ if is_printable(c) => out.push(c),
            _ => {
                // Writing to a string cannot fail.
                _ = match u32::from(c) {
                    code @ 0..=0xFF => write!(out, "\\x{code:02x}"),
                    code @ 0x100..=0xFFFF => write!(out, "\\u{code:04x}"),
                    code => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
    out
}

/// `str.isprintable` of one character. Rust's `escape_debug` escapes the same categories; combining marks it
/// escapes only at the start of a text.
fn is_printable(c: char) -> bool {
    match c {
        ' '..='~' => true,
        '\0'..='\u{a0}' => false,
        _ => format!("a{c}").escape_debug().any(|shown| shown == c),
    }
}

/// A JSON string literal as `json.dumps` writes it.
pub(crate) fn json_string(text: &str, ensure_ascii: bool, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            _ if c < ' ' || (ensure_ascii && c > '~') => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    _ = write!(out, "\\u{unit:04x}");
                }
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}

/// `str.title` of one piece: the first letter of every run of letters upper, the others lower.
pub(crate) fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for c in text.chars() {
        let cased = c.is_uppercase() || c.is_lowercase();
        if inside {
            out.extend(c.to_lowercase())
        } else {
            push_title(c, &mut out)
        }
        inside = cased;
    }
    out
}

/// `str.capitalize` of one piece.
pub(crate) fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    let mut out = String::with_capacity(text.len());
    if let Some(first) = chars.next() {
        push_title(first, &mut out);
    }
    out + &chars.as_str().to_lowercase()
}

/// A character in title case: of what upper case writes with more than one, all but the first are lower (ß to Ss).
fn push_title(c: char, out: &mut String) {
    let mut upper = c.to_uppercase();
    out.extend(upper.next());
    upper.for_each(|c| out.extend(c.to_lowercase()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_as_python_writes_them() {
        for (value, expected) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.5e-7, "-2.5e-07"),
            (123456789.125, "123456789.125"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(float(value), expected);
        }
    }

    #[test]
    fn strings_as_python_writes_them() {
        for (text, expected) in [
            ("a", "'a'"),
            ("it's", "\"it's\""),
            ("'\"", "'\\'\"'"),
            ("a\n\t\\", "'a\\n\\t\\\\'"),
            ("\u{7}\u{7f}\u{a0}", "'\\x07\\x7f\\xa0'"),
            ("é日e\u{301}\u{1f600}", "'é日e\u{301}\u{1f600}'"),
            ("\u{200b}\u{e000}\u{10ffff}", "'\\u200b\\ue000\\U0010ffff'"),
        ] {
            assert_eq!(repr(text), expected);
        }
        let json = |text, ascii| {
            let mut out = String::new();
            json_string(text, ascii, &mut out);
            out
        };
        assert_eq!(json("<é\u{1}\n\"/\u{7f}>", false), "\"<é\\u0001\\n\\\"/\u{7f}>\"");
        assert_eq!(json("é\u{1f600}\u{7f}", true), "\"\\u00e9\\ud83d\\ude00\\u007f\"");
        assert_eq!(title("they're bill's ßx"), "They'Re Bill'S Ssx");
        assert_eq!(capitalize("éCOLE"), "École");
    }
}
