//! Character classes of Unicode 15.1.
//!
//! The version is fixed because tokens are defined by it: a character that a later version adds stays what it was when the
//! models were trained. llama.cpp has this version too.

mod table;

/// A general category. The numbers are those of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Category {
    Lu,
    Ll,
    Lt,
    Lm,
    Lo,
    Mn,
    Mc,
    Me,
    Nd,
    Nl,
    No,
    Pc,
    Pd,
    Ps,
    Pe,
    Pi,
    Pf,
    Po,
    Sm,
    Sc,
    Sk,
    So,
    Zs,
    Zl,
    Zp,
    Cc,
    Cf,
    Cs,
    Co,
    Cn,
}

use Category::*;

const ALL: [(&str, Category); 30] = [
    ("Lu", Lu),
    ("Ll", Ll),
    ("Lt", Lt),
    ("Lm", Lm),
    ("Lo", Lo),
    ("Mn", Mn),
    ("Mc", Mc),
    ("Me", Me),
    ("Nd", Nd),
    ("Nl", Nl),
    ("No", No),
    ("Pc", Pc),
    ("Pd", Pd),
    ("Ps", Ps),
    ("Pe", Pe),
    ("Pi", Pi),
    ("Pf", Pf),
    ("Po", Po),
    ("Sm", Sm),
    ("Sc", Sc),
    ("Sk", Sk),
    ("So", So),
    ("Zs", Zs),
    ("Zl", Zl),
    ("Zp", Zp),
    ("Cc", Cc),
    ("Cf", Cf),
    ("Cs", Cs),
    ("Co", Co),
    ("Cn", Cn),
];

/// First and last character of runs, in increasing order.
pub(crate) type Ranges = Vec<(u32, u32)>;

/// White space: the Unicode property, which is also what llama.cpp and the regular expressions of tokenizers take `\s` for.
pub(crate) const WHITE_SPACE: &[(u32, u32)] = &[
    (0x09, 0x0D),
    (0x20, 0x20),
    (0x85, 0x85),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
];

/// The characters of the categories for which `wanted` holds.
fn categories(wanted: impl Fn(Category) -> bool) -> Ranges {
    let starts = table::CATEGORIES.iter().map(|packed| packed >> 5);
    let ends = starts.clone().skip(1).chain([0x11_0000]);
    let runs = starts.zip(ends).zip(&table::CATEGORIES);
    runs.filter(|(_, packed)| wanted(ALL[(**packed & 31) as usize].1))
        .map(|((start, end), _)| (start, end - 1))
        .collect()
}

/// The characters of a property as it is written in `\p{…}`: a category (`Lu`), a group of them (`L`), or a script
/// (`Han`, `Script=Han`); `None` where the name is not known.
pub(crate) fn property(name: &str) -> Option<Ranges> {
    let script = name.strip_prefix("Script=").or_else(|| name.strip_prefix("sc="));
    if let Some((_, ranges)) = table::SCRIPTS.iter().find(|(known, _)| *known == script.unwrap_or(name)) {
        return Some(ranges.to_vec());
    }
    let name = match name {
        "Letter" => "L",
        "Mark" => "M",
        "Number" => "N",
        "Punctuation" => "P",
        "Symbol" => "S",
        "Separator" => "Z",
        "LC" | "L&" => return Some(categories(|category| matches!(category, Lu | Ll | Lt))),
        name => name,
    };
    let group = name.len() == 1 && "LMNPSZC".contains(name);
    if !group && !ALL.iter().any(|(known, _)| *known == name) {
        return None;
    }
    Some(categories(|category| ALL[category as usize].0.starts_with(name)))
}

/// Word characters beyond letters, marks, decimal and letter numbers and connectors: superscripts and fractions of Latin-1,
/// and circled and squared letters.
const OTHER_WORD: &[(u32, u32)] = &[
    (0xB2, 0xB3),
    (0xB9, 0xB9),
    (0xBC, 0xBE),
    (0x24B6, 0x24E9),
    (0x1F130, 0x1F149),
    (0x1F150, 0x1F169),
    (0x1F170, 0x1F189),
];

/// Word characters, as Oniguruma has `\w`.
pub(crate) fn word() -> Ranges {
    let mut ranges = categories(is_word_category);
    ranges.extend_from_slice(OTHER_WORD);
    ranges
}

/// Whether a character is one of [`word`].
pub(crate) fn is_word(c: char) -> bool {
    let other = |&(first, last): &(u32, u32)| (first..=last).contains(&u32::from(c));
    is_word_category(category(c)) || OTHER_WORD.iter().any(other)
}

fn is_word_category(category: Category) -> bool {
    matches!(category, Lu | Ll | Lt | Lm | Lo | Mn | Mc | Me | Nd | Nl | Pc)
}

/// The general category of a character.
pub(crate) fn category(c: char) -> Category {
    let after = table::CATEGORIES.partition_point(|packed| packed >> 5 <= u32::from(c));
    ALL[(table::CATEGORIES[after - 1] & 31) as usize].1
}

/// Whether a character is a combining mark.
pub(crate) fn is_mark(c: char) -> bool {
    matches!(category(c), Mn | Mc | Me)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(ranges: &[(u32, u32)]) -> u32 {
        ranges.iter().map(|(first, last)| last - first + 1).sum()
    }

    #[test]
    fn classes_have_their_size() {
        let sizes =
            [("L", 136726), ("N", 1831), ("M", 2450), ("P", 842), ("S", 7775), ("Z", 19), ("Lu", 1831)];
        for (name, expected) in sizes {
            assert_eq!(size(&property(name).unwrap()), expected, "{name}");
        }
        assert_eq!(property("Xx"), None);
        assert_eq!(property("Klingon"), None);
        let all: u32 = ALL.iter().map(|(name, _)| size(&property(name).unwrap())).sum();
        assert_eq!(all, 0x11_0000);
    }

    #[test]
    fn categories_of_characters() {
        for (c, expected) in
            [('a', Ll), ('Ā', Lu), ('ー', Lm), ('五', Lo), ('\u{301}', Mn), ('½', No), ('—', Pd)]
        {
            assert_eq!(category(c), expected, "{c}");
        }
        assert_eq!((category('\0'), category('\u{10FFFF}')), (Cc, Cn));
        assert!(is_mark('\u{20DD}') && !is_mark('^'));
        assert!(
            ['a', '_', '½', '٣', 'Ⓐ'].into_iter().all(is_word)
                && !['①', '\u{200d}', '-'].into_iter().any(is_word)
        );
    }

    #[test]
    fn white_space_is_what_the_language_has() {
        let found: Ranges =
            WHITE_SPACE.iter().flat_map(|&(first, last)| (first..=last).map(|c| (c, c))).collect();
        let expected: Ranges =
            ('\0'..=char::MAX).filter(|c| c.is_whitespace()).map(|c| (c.into(), c.into())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn scripts() {
        let han = property("Han").unwrap();
        let inside = |c: char| han.iter().any(|&(first, last)| (first..=last).contains(&u32::from(c)));
        assert!(inside('五') && inside('々') && !inside('あ') && !inside('a'));
        assert_eq!(property("Script=Han"), Some(han));
    }
}
