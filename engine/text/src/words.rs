//! A small memory of words and their tokens: most words of a text come again.

/// Longest word that is kept, in bytes; the last byte of a key is the length.
const MAX_BYTES: usize = 15;
/// Most tokens of a word that is kept.
const MAX_TOKENS: usize = 3;
/// Places; each holds one word.
const PLACES: usize = 1 << 12;

/// Words and their tokens. A new word takes the place of another.
#[derive(Debug)]
pub(crate) struct Words {
    places: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    /// The word, padded with zeros, and its length; 0 where the place is free.
    key: u128,
    tokens: [u32; MAX_TOKENS],
    count: u32,
}

/// A word short enough to be kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key(u128);

impl Key {
    /// The key of a word that is neither empty nor too long.
    pub(crate) fn of(word: &[u8]) -> Option<Key> {
        if word.is_empty() || word.len() > MAX_BYTES {
            return None;
        }
        let mut bytes = [0; 16];
        bytes[..word.len()].copy_from_slice(word);
        bytes[MAX_BYTES] = word.len() as u8;
        Some(Key(u128::from_le_bytes(bytes)))
    }

    fn place(self) -> usize {
        // The golden ratio spreads the sum of both halves over the high bits.
        let sum = (self.0 as u64) ^ ((self.0 >> 64) as u64).rotate_left(29);
        (sum.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - PLACES.trailing_zeros())) as usize
    }
}

impl Default for Words {
    fn default() -> Self {
        Words { places: vec![Place { key: 0, tokens: [0; MAX_TOKENS], count: 0 }; PLACES] }
    }
}

impl Words {
    /// The tokens of a word, if it is kept.
    pub(crate) fn get(&self, key: Key) -> Option<&[u32]> {
        let place = &self.places[key.place()];
        (place.key == key.0).then(|| &place.tokens[..place.count as usize])
    }

    /// Keeps a word, unless it has too many tokens.
    pub(crate) fn put(&mut self, key: Key, tokens: &[u32]) {
        if tokens.len() > MAX_TOKENS {
            return;
        }
        let place = &mut self.places[key.place()];
        place.key = key.0;
        place.tokens[..tokens.len()].copy_from_slice(tokens);
        place.count = tokens.len() as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_apart() {
        let mut words = Words::default();
        let key = |word: &str| Key::of(word.as_bytes()).unwrap();
        words.put(key("a"), &[1]);
        words.put(key("a\0"), &[]);
        words.put(key("fifteen bytes!!"), &[1, 2, 3]);
        words.put(key("b"), &[1, 2, 3, 4]);
        assert_eq!(words.get(key("a")), Some(&[1][..]));
        assert_eq!(words.get(key("a\0")), Some(&[][..]));
        assert_eq!(words.get(key("fifteen bytes!!")), Some(&[1, 2, 3][..]));
        assert_eq!((words.get(key("b")), words.get(key("\0"))), (None, None));
        assert!(Key::of(b"").is_none() && Key::of(b"sixteen bytes!!!").is_none());
    }

    #[test]
    fn the_last_word_of_a_place_stays() {
        let mut words = Words::default();
        let keys: Vec<Key> = (0..20_000_u32).map(|i| Key::of(&i.to_le_bytes()).unwrap()).collect();
        keys.iter().zip(0..).for_each(|(key, i)| words.put(*key, &[i]));
        let kept =
            keys.iter().zip(0..).filter(|(key, i)| words.get(*key.to_owned()) == Some(&[*i][..])).count();
        assert!((PLACES / 2..=PLACES).contains(&kept), "{kept}");
    }
}
