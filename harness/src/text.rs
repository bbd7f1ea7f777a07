//! Text that others wrote, for a line of a log, a terminal or a picture.

/// `text` on one line of at most `most` characters, an ellipsis in place of what is too much. Characters that steer a
/// terminal, turn the direction of writing, or have no place in XML are left out.
pub fn one_line(text: &str, most: usize) -> String {
    let spaced = text.chars().map(|c| if c.is_whitespace() && c != '\u{a0}' { ' ' } else { c });
    let mut line: Vec<char> = spaced.filter(|c| is_shown(*c)).take(most + 1).collect();
    if line.len() > most {
        line.truncate(most.saturating_sub(1));
        line.push('…');
    }
    line.into_iter().collect()
}

fn is_shown(c: char) -> bool {
    let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !c.is_control() && !turns && u32::from(c) & 0xfffe != 0xfffe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_left_out_and_what_is_long_is_clipped() {
        assert_eq!(one_line("v\u{1b}[31m\u{7}\0 b\tc\nd\u{9b}\u{202e}\u{ffff}é", 80), "v[31m b c dé");
        assert_eq!(one_line("äöü", 3), "äöü");
        assert_eq!(one_line("äöüx", 3), "äö…");
        assert_eq!(one_line(&"v".repeat(60_000), 200).chars().count(), 200);
    }
}
