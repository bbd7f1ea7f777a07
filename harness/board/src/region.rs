//! The README's region between two markers, each on a line of its own.

use std::ops::Range;

/// Opens the region.
pub(crate) const START: &str = "<!-- BOARD:main:START -->";
/// Closes it.
pub(crate) const END: &str = "<!-- BOARD:main:END -->";

/// `text` with `content` (lines joined by `\n`) between the markers, in the line ending of the opening marker's line.
///
/// # Errors
/// Markers that are missing, doubled or reversed, with their line numbers. Those in fenced code are not counted.
pub(crate) fn replace(text: &str, content: &str) -> Result<String, String> {
    let starts = lines_that_are(text, START);
    let ends = lines_that_are(text, END);
    let (start, end) = match (starts.as_slice(), ends.as_slice()) {
        ([start], [end]) if start.number < end.number => (start, end),
        ([start], [end]) => {
            return Err(format!(
                "`{END}` on line {} comes before `{START}` on line {}",
                end.number, start.number
            ));
        }
        _ => return Err(format!("{}, {}", count(START, &starts), count(END, &ends))),
    };
    let newline = if text[start.span.clone()].ends_with("\r\n") { "\r\n" } else { "\n" };
    let content: Vec<&str> = content.lines().collect();
    Ok([&text[..start.span.end], &content.join(newline), newline, &text[end.span.start..]].concat())
}

fn count(marker: &str, found: &[Line]) -> String {
    let lines: Vec<String> = found.iter().map(|line| line.number.to_string()).collect();
    match lines.len() {
        0 => format!("no line is `{marker}`"),
        1 => format!("`{marker}` on line {}", lines[0]),
        _ => format!("`{marker}` on lines {}", lines.join(", ")),
    }
}

#[derive(Debug)]
struct Line {
    /// From 1.
    number: usize,
    /// Bytes, its newline included.
    span: Range<usize>,
}

/// Lines outside fenced code that hold `marker` and nothing else but blanks.
fn lines_that_are(text: &str, marker: &str) -> Vec<Line> {
    let mut found = Vec::new();
    let mut fence: Option<(char, usize)> = None;
    let mut at = 0;
    for (i, line) in text.split_inclusive('\n').enumerate() {
        let span = at..at + line.len();
        at = span.end;
        match (fence, fence_of(line)) {
            (None, Some((mark, length, _))) => fence = Some((mark, length)),
            (Some((open, least)), Some((mark, length, true))) if mark == open && length >= least => {
                fence = None
            }
            (None, None) if line.trim() == marker => found.push(Line { number: i + 1, span }),
            _ => {}
        }
    }
    found
}

/// The fence that a line is: its character, its length, and whether nothing follows it (as a closing one demands).
fn fence_of(line: &str) -> Option<(char, usize, bool)> {
    let line = line.trim_end();
    let inner = line.trim_start_matches(' ');
    let mark = inner.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = inner.chars().take_while(|c| *c == mark).count();
    let rest = &inner[length..];
    // Four blanks make indented code; a backtick in the info string makes inline code.
    let is_fence = line.len() - inner.len() < 4 && length >= 3 && !(mark == '`' && rest.contains('`'));
    is_fence.then_some((mark, length, rest.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = "# x\n\n<!-- BOARD:main:START -->\nold\n<!-- BOARD:main:END -->\ntail";

    #[test]
    fn the_region_is_replaced_and_again_gives_the_same() {
        let once = replace(README, "new\n\nlines").unwrap();
        assert_eq!(once, "# x\n\n<!-- BOARD:main:START -->\nnew\n\nlines\n<!-- BOARD:main:END -->\ntail");
        assert_eq!(replace(&once, "new\n\nlines").unwrap(), once);
        let empty = README.replace("old\n", "");
        assert_eq!(replace(&empty, "new\n\nlines").unwrap(), once);
    }

    #[test]
    fn line_endings_stay_as_they_were() {
        let dos = README.replace('\n', "\r\n");
        let once = replace(&dos, "new\nlines").unwrap();
        assert_eq!(
            once,
            "# x\r\n\r\n<!-- BOARD:main:START -->\r\nnew\r\nlines\r\n<!-- BOARD:main:END -->\r\ntail"
        );
        assert_eq!(replace(&once, "new\nlines").unwrap(), once);
    }

    #[test]
    fn markers_in_fenced_code_do_not_count() {
        for (open, close) in [("```", "```"), ("~~~~ html", "~~~~~"), ("  ```md", "   ````")] {
            let text = format!("{open}\n{START}\n{END}\n{close}\n{README}");
            assert!(
                replace(&text, "new").unwrap().ends_with("START -->\nnew\n<!-- BOARD:main:END -->\ntail"),
                "{open}"
            );
        }
        // A shorter or other fence, or one with text behind it, does not close.
        for inside in ["``", "~~~", "``` x"] {
            let text = format!("```\n{inside}\n{START}\n{END}\n```\n{README}");
            assert!(replace(&text, "new").is_ok(), "{inside}");
        }
        assert!(replace(&format!("```\n{README}"), "new").is_err(), "a fence that never closes hides all");
        assert!(replace(&format!("```a```\n{README}"), "new").is_ok(), "inline code is no fence");
    }

    #[test]
    fn anything_but_one_ordered_pair_is_an_error_with_lines() {
        let cases = [
            ("", "no line is `<!-- BOARD:main:START -->`, no line is `<!-- BOARD:main:END -->`"),
            ("<!-- BOARD:main:START -->\n", "`<!-- BOARD:main:START -->` on line 1, no line is"),
            ("<!-- BOARD:main:END -->\n<!-- BOARD:main:START -->\n", "on line 1 comes before"),
            (&format!("{START}\n{START}\n{END}\n"), "on lines 1, 2"),
            (&format!("{START}\n{END}\n{END}\n"), "on lines 2, 3"),
            (&format!("{START}\n{END}\n{START}\n{END}\n"), "on lines 1, 3"),
            (&format!("x {START}\n{END}\n"), "no line is"),
        ];
        for (text, expected) in cases {
            let error = replace(text, "new").unwrap_err();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
