//! GPT-2's byte alphabet: one printable character for each byte, in which vocabularies and merges are written.
//!
//! Printable Latin-1 bytes stand for themselves; the other 68, in increasing order, are U+0100 and up (so a space is `Ġ`).

/// Whether the byte stands for itself.
const fn is_printable(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// The character of each byte.
const CHARS: [char; 256] = {
    let mut chars = ['\0'; 256];
    let (mut byte, mut shifted) = (0, 0);
    while byte < 256 {
        chars[byte] = if is_printable(byte as u8) {
            byte as u8 as char
        } else {
            shifted += 1;
            match char::from_u32(0xFF + shifted) {
                Some(c) => c,
                None => '\0',
            }
        };
        byte += 1;
    }
    chars
};

/// The byte of each character up to the last that stands for one.
const BYTES: [Option<u8>; 0x100 + 68] = {
    let mut bytes = [None; 0x100 + 68];
    let mut byte = 0;
    while byte < 256 {
        bytes[CHARS[byte] as usize] = Some(byte as u8);
        byte += 1;
    }
    bytes
};

/// The character that stands for `byte`.
pub(crate) fn char_of(byte: u8) -> char {
    CHARS[usize::from(byte)]
}

/// Whether every character of `token` stands for a byte.
pub(crate) fn is_written(token: &str) -> bool {
    token.chars().all(|c| matches!(BYTES.get(c as usize), Some(Some(_))))
}

/// Appends the bytes that `token` stands for; a character outside the alphabet stands for itself.
pub(crate) fn push_bytes(token: &str, out: &mut Vec<u8>) {
    for c in token.chars() {
        match BYTES.get(c as usize) {
            Some(Some(byte)) => out.push(*byte),
            _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_characters_and_round_trip() {
        assert_eq!(
            [b' ', b'\n', b'A', 0, 0x7F, 0xA0, 0xAD, 0xFF].map(char_of),
            ['Ġ', 'Ċ', 'A', 'Ā', 'ġ', 'ł', 'Ń', 'ÿ']
        );
        for byte in 0..=255 {
            let mut bytes = Vec::new();
            push_bytes(&char_of(byte).to_string(), &mut bytes);
            assert_eq!(bytes, [byte]);
        }
    }

    #[test]
    fn characters_outside_the_alphabet_stay() {
        let mut bytes = Vec::new();
        push_bytes("a 北Ġ\u{144}", &mut bytes);
        assert_eq!(bytes, "a 北 \u{144}".as_bytes());
        assert!(is_written("aĠ") && !is_written("a b") && !is_written("a北"));
    }
}
