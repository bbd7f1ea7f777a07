use super::*;
use proptest::prelude::*;

fn parts(pattern: &str, text: &str) -> Vec<(String, bool)> {
    let mut parts = Vec::new();
    Pattern::new(pattern).unwrap().split(text, |part, is_match| parts.push((part.to_owned(), is_match)));
    parts
}

/// The matches in brackets.
fn marked(pattern: &str, text: &str) -> String {
    let mark = |(part, is_match)| if is_match { format!("[{part}]") } else { part };
    parts(pattern, text).into_iter().map(mark).collect()
}

#[test]
fn matches_are_those_of_the_dialect() {
    let cases = [
        ("a|ab", "abab", "[a]b[a]b"),
        ("(?:a|ab)(?:c|bcd)", "abcd", "[abcd]"),
        ("a*?b", "aaab", "[aaab]"),
        ("a+?", "aaa", "[a][a][a]"),
        ("a??b", "ab", "[ab]"),
        ("a{2,3}?", "aaaaa", "[aa][aa]a"),
        ("a{2,}", "a aa aaaaa", "a [aa] [aaaaa]"),
        ("a{,2}b", "aaab", "a[aab]"),
        ("(?:ab){2,}", "ababab ab", "[ababab] ab"),
        ("(?:ab){1,2}?c", "ababc", "[ababc]"),
        ("a++a", "aaa", "aaa"),
        ("a?+b", "ab b", "[ab] [b]"),
        ("a(?=b)", "ab ac", "[a]b ac"),
        ("a(?!b)", "ab ac", "ab [a]c"),
        ("(?<=a)b", "ab cb", "a[b] cb"),
        ("(?<![a-c])b", "ab db b", "ab d[b] [b]"),
        (r"\bis\b", "this is", "this [is]"),
        (r"s\B", "is so", "is [s]o"),
        ("^a|b$", "a\na b\nb", "[a]\n[a] [b]\n[b]"),
        (r"\Aa|b\z", "a\na b\nb", "[a]\na b\n[b]"),
        ("(?i)ab|C", "AbaBc", "[Ab][aB][c]"),
        ("(?i:a)b", "Ab aB", "[Ab] aB"),
        ("a.c", "abc a\nc", "[abc] a\nc"),
        ("(?s)a.c", "abc a\nc", "[abc] [a\nc]"),
        (r"\p{Han}+", "a五六b", "a[五六]b"),
        ("é+|ü", "aééüb", "a[éé][ü]b"),
        ("", "ab", "ab"),
        ("x*", "ab", "ab"),
    ];
    for (pattern, text, expected) in cases {
        assert_eq!(marked(pattern, text), expected, "{pattern} in {text:?}");
    }
}

#[test]
fn an_empty_match_cuts() {
    let cuts = |pattern, text| parts(pattern, text).into_iter().map(|part| part.0).collect::<Vec<_>>();
    assert_eq!(cuts(r"(?=(\d{3})+(?!\d))", "x1234567"), ["x1", "234", "567"]);
    assert_eq!(cuts("", "aé五"), ["a", "é", "五"]);
}

#[test]
fn a_literal_has_no_special_characters() {
    let pattern = Pattern::literal("a.[*\\p").unwrap();
    let mut found = Vec::new();
    pattern.split("xa.[*\\py", |part, is_match| found.push((part, is_match)));
    assert_eq!(found, [("x", false), ("a.[*\\p", true), ("y", false)]);
    assert!(Pattern::literal("").is_none());
}

/// Patterns whose trying explodes, on texts that make it explode.
#[test]
fn made_up_patterns_are_decided_by_the_table() {
    let a = "a".repeat(20_000);
    for (pattern, text, matches) in [
        ("(?:a|a)*b", a.clone(), 0),
        ("(?:a+a+)+b", a.clone(), 0),
        ("(?:a|a)*b", a.clone() + "b", 1),
        (r"(?=(?:\d{3})+(?!\d))", "1".repeat(20_000), 0),
        ("(?:aa|a(?=a*c))*?c", a + "c", 1),
    ] {
        let compiled = Pattern::new(pattern).unwrap();
        let mut search = Search::new(&compiled.program, &text);
        let mut at = 0;
        while at < text.len() && search.match_at(at).is_ok() {
            at += 1;
        }
        assert!(at < text.len(), "{pattern} was decided by trying");
        assert_eq!(parts(pattern, &text).iter().filter(|part| part.1).count(), matches, "{pattern}");
    }
}

/// Random patterns over few characters.
fn pattern() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("a".to_owned()),
        Just("b".to_owned()),
        Just("é".to_owned()),
        Just(r"[ab]".to_owned()),
        Just(r"[^a]".to_owned()),
        Just(r"\s".to_owned()),
    ];
    let quantifier =
        prop::sample::select(vec!["", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{2,}", "++"]);
    let run = (leaf, quantifier).prop_map(|(leaf, quantifier)| leaf + quantifier);
    run.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(|parts| parts.concat()),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|all| format!("(?:{})", all.join("|"))),
            (inner.clone(), prop::sample::select(vec!["*", "+", "?", "+?", "{2}", "{1,2}"]))
                .prop_map(|(inner, quantifier)| format!("(?:b{inner}){quantifier}")),
            (prop::sample::select(vec!["?=", "?!"]), inner.clone())
                .prop_map(|(look, inner)| format!("({look}{inner})")),
            inner.prop_map(|inner| format!(r"(?<=b){inner}\b")),
        ]
    })
}

proptest! {
    #[test]
    fn trying_and_the_table_agree(pattern in pattern(), text in "[abé \n]{0,16}") {
        let compiled = Pattern::new(&pattern);
        prop_assume!(compiled.is_ok());
        let program = compiled.unwrap().program;
        let mut search = Search::new(&program, &text);
        let table = Table::new(&program, &text, 0);
        for (at, _) in text.char_indices() {
            prop_assert_eq!(search.match_at(at), Ok(table.match_at(at)), "{} at {} of {:?}", pattern, at, text);
        }
    }

    #[test]
    fn any_pattern_is_compiled_or_refused(pattern in any::<String>(), text in any::<String>()) {
        if let Ok(pattern) = Pattern::new(&pattern) {
            let mut whole = String::new();
            pattern.split(&text, |part, _| whole.push_str(part));
            prop_assert_eq!(whole, text);
        }
    }
}
