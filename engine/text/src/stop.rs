//! Stop strings: text that ends a generation and is not part of it.

/// Looks for stop strings in a stream of text. Text that could still become one is held back until it is decided.
#[derive(Clone, Debug, Default)]
pub struct StopStrings {
    stops: Vec<String>,
    /// Text not yet handed out; apart from what the last call handed out, a beginning of some stop string.
    held: String,
    /// Bytes of `held` that the last call handed out.
    out: usize,
    stopped: bool,
}

impl StopStrings {
    /// Empty strings stop nothing and are left out.
    pub fn new(stops: impl IntoIterator<Item = String>) -> Self {
        let stops = stops.into_iter().filter(|stop| !stop.is_empty()).collect();
        StopStrings { stops, ..StopStrings::default() }
    }

    /// Adds text and returns what can be shown: all that stands before a stop string, or before what may become one.
    pub fn push(&mut self, text: &str) -> &str {
        self.held.drain(..self.out);
        self.out = 0;
        if self.stopped {
            return "";
        }
        self.held.push_str(text);
        let found = self.stops.iter().filter_map(|stop| self.held.find(stop.as_str())).min();
        match found {
            Some(at) => {
                self.held.truncate(at);
                self.stopped = true;
                self.out = at;
            }
            None => self.out = self.held.len() - self.beginning(),
        }
        &self.held[..self.out]
    }

    /// Whether a stop string came.
    pub fn stopped(&self) -> bool {
        self.stopped
    }

    /// Ends the text and returns what was held back.
    pub fn finish(&mut self) -> &str {
        self.held.drain(..self.out);
        self.out = self.held.len();
        &self.held
    }

    /// Bytes at the end of the held text that begin a stop string, the longest such.
    fn beginning(&self) -> usize {
        let longest = self.stops.iter().map(String::len).max().unwrap_or(0);
        let from = self.held.len() - self.held.len().min(longest.saturating_sub(1));
        (from..self.held.len())
            .filter(|&at| self.held.is_char_boundary(at))
            .find(|&at| self.stops.iter().any(|stop| stop.starts_with(&self.held[at..])))
            .map_or(0, |at| self.held.len() - at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What is shown of `parts`, and whether a stop string came.
    fn shown(stops: &[&str], parts: &[&str]) -> (String, bool) {
        let mut matcher = StopStrings::new(stops.iter().map(|stop| (*stop).to_owned()));
        let mut text = String::new();
        parts.iter().for_each(|part| text.push_str(matcher.push(part)));
        text.push_str(matcher.finish());
        (text, matcher.stopped())
    }

    #[test]
    fn text_ends_before_the_first_stop_string() {
        assert_eq!(shown(&["END"], &["abc", "E", "N", "D", "x"]), ("abc".into(), true));
        assert_eq!(shown(&["END"], &["abcENDx"]), ("abc".into(), true));
        assert_eq!(shown(&["END"], &["abcEN"]), ("abcEN".into(), false));
        assert_eq!(shown(&["END", "c"], &["ab", "cEND"]), ("ab".into(), true));
        assert_eq!(shown(&["aab"], &["aa", "ab"]), ("a".into(), true));
        assert_eq!(shown(&["", "é!"], &["é", "é", "!"]), ("é".into(), true));
        assert_eq!(shown(&[], &["a", "b"]), ("ab".into(), false));
    }

    #[test]
    fn only_what_may_become_a_stop_string_is_held_back() {
        let mut matcher = StopStrings::new(["\n\nUser:".to_owned()]);
        assert_eq!(matcher.push("hello\n"), "hello");
        assert_eq!(matcher.push("world"), "\nworld");
        assert_eq!(matcher.push("\n\nUse"), "");
        assert_eq!(matcher.push("d"), "\n\nUsed");
        assert_eq!(matcher.push("\n\nUser: x"), "");
        assert!(matcher.stopped());
        assert_eq!(matcher.push("more"), "");
        assert_eq!(matcher.finish(), "");
    }

    proptest! {
        #[test]
        fn cutting_the_text_changes_nothing(
            text in "[ab\u{e9}]{0,30}", stops in prop::collection::vec("[ab\u{e9}]{1,4}", 0..3), size in 1usize..5,
        ) {
            let characters: Vec<char> = text.chars().collect();
            let parts: Vec<String> = characters.chunks(size).map(|part| part.iter().collect()).collect();
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            let stops: Vec<&str> = stops.iter().map(String::as_str).collect();
            let end = stops.iter().filter_map(|stop| text.find(stop)).min();
            let (seen, stopped) = shown(&stops, &parts);
            prop_assert_eq!(stopped, end.is_some());
            // A stop string that ends earlier is found first, though another begins before it.
            if !stopped {
                prop_assert_eq!(seen, text);
            } else {
                prop_assert!(text.starts_with(&seen));
            }
        }
    }
}
