//! Names from servers, which never lead out of the folder they are meant for.

use std::path::{Path, PathBuf};

/// The place of `name`, a relative path with slashes, below `folder`; `None` where a part of it is empty, hidden, leads
/// up, or holds what is no part of a name.
pub(crate) fn below(folder: &Path, name: &str) -> Option<PathBuf> {
    let is_plain = |part: &str| {
        (1..=200).contains(&part.len())
            && !part.starts_with('.')
            && !part.contains(|c: char| c.is_control() || c == '\\' || c == '/')
    };
    let mut path = folder.to_owned();
    for part in name.split('/') {
        if !is_plain(part) {
            return None;
        }
        path.push(part);
    }
    Some(path)
}

/// Text with `%41` read as `A`; `None` where that gives no text.
pub(crate) fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let digit = |at: usize| tail.get(at).and_then(|&b| char::from(b).to_digit(16));
        bytes.push((digit(0)? * 16 + digit(1)?) as u8);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).ok()
}

/// A path as it stands in a URL: slashes stay, whatever is not unreserved is written `%41`.
pub(super) fn percent_encoded(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(char::from(byte))
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// The URL that `location` means in an answer from `base`.
pub(super) fn joined(base: &str, location: &str) -> Option<String> {
    let location = location.split('#').next().unwrap_or_default();
    if location.starts_with("http://") || location.starts_with("https://") {
        return Some(location.to_owned());
    }
    let (scheme, rest) = base.split_once("://")?;
    if location.starts_with("//") {
        return Some(format!("{scheme}:{location}"));
    }
    let rest = rest.split(['?', '#']).next()?;
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if location.starts_with('/') {
        return Some(format!("{scheme}://{host}{location}"));
    }
    // Another scheme, such as `file:`.
    if location.split(['/', '?']).next().is_some_and(|first| first.contains(':')) {
        return None;
    }
    let folder = path.rfind('/').map_or("", |at| &path[..at]);
    Some(format!("{scheme}://{host}{folder}/{location}"))
}

/// Scheme, host and port of a URL.
pub(super) fn origin(url: &str) -> &str {
    let after_scheme = url.find("://").map_or(0, |at| at + 3);
    let end = url[after_scheme..].find(['/', '?', '#']).map_or(url.len(), |at| after_scheme + at);
    &url[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_below_their_folder() {
        let place = |name| below(Path::new("/c"), name);
        assert_eq!(place("a b.gguf"), Some("/c/a b.gguf".into()));
        assert_eq!(place("Q4_K_M/m-00001-of-00002.gguf"), Some("/c/Q4_K_M/m-00001-of-00002.gguf".into()));
        for bad in
            ["", ".", "..", "../x", "a/../x", "/etc/x", "a//b", "a/", ".hidden", "a\\b", "a\0b", "a\nb"]
        {
            assert_eq!(place(bad), None, "{bad:?}");
        }
        assert_eq!(place(&"x".repeat(300)), None);
    }

    #[test]
    fn percent_signs_are_read_and_written() {
        assert_eq!(percent_decoded("a%20b%2fc").as_deref(), Some("a b/c"));
        assert_eq!(percent_decoded("%C3%A9").as_deref(), Some("é"));
        for bad in ["%", "%4", "%zz", "%FF"] {
            assert_eq!(percent_decoded(bad), None, "{bad}");
        }
        assert_eq!(percent_encoded("a b/é?.gguf"), "a%20b/%C3%A9%3F.gguf");
    }

    #[test]
    fn redirects_are_relative_to_where_they_come_from() {
        let join = |location| joined("https://h:1/a/b?q=/x", location);
        assert_eq!(join("http://other/c#f").as_deref(), Some("http://other/c"));
        assert_eq!(join("//cdn/c").as_deref(), Some("https://cdn/c"));
        assert_eq!(join("/c?d").as_deref(), Some("https://h:1/c?d"));
        assert_eq!(join("c").as_deref(), Some("https://h:1/a/c"));
        assert_eq!(join("file:///etc/passwd"), None);
        assert_eq!(joined("https://h", "c").as_deref(), Some("https://h/c"));
        assert_eq!(
            (origin("https://h:1/a"), origin("http://h?x"), origin("https://h")),
            ("https://h:1", "http://h", "https://h")
        );
    }
}
