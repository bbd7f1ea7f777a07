//! Properties of any template and any chat: no panic, and what a user writes is never the template's.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use memra_text::template::{Chat, ChatTemplate, Data, RenderOptions, Rendered, TemplateError, TemplateSpec};
use memra_text::{EncodeOptions, Tokenizer, TokenizerSpec};
use proptest::prelude::*;
use std::sync::LazyLock;

const PLAIN: EncodeOptions = EncodeOptions { add_special: false, parse_special: false };

fn template(source: &str) -> Result<ChatTemplate, TemplateError> {
    let tokens = vec![("bos_token".into(), "<s>".into()), ("eos_token".into(), "<|im_end|>".into())];
    ChatTemplate::new(TemplateSpec { templates: vec![("default".into(), source.into())], tokens })
}

fn render(source: &str, chat: &Chat) -> Result<Rendered, TemplateError> {
    template(source)?.render(chat, &RenderOptions::default())
}

/// Expressions of everything that Jinja has, over the variables of a chat.
fn expression() -> impl Strategy<Value = String> {
    let atom = prop_oneof![
        4 => prop::sample::select(vec![
            "messages", "messages[0].content", "messages[-1]['content']", "m.content", "m", "x", "ns.v", "loop", "tools",
            "note", "form", "('%c' % code)", "messages[0]", "m.tags", "m.role", "bos_token", "missing",
        ]).prop_map(str::to_owned),
        2 => prop::sample::select(vec!["1", "0", "-3", "2.5", "'a'", "'|'", "''", "' '", "true", "none", "[]", "{}", "()"]).prop_map(str::to_owned),
    ];
    atom.prop_recursive(4, 24, 3, |inner| {
        let filters = prop::sample::select(vec![
            "upper", "lower", "title", "capitalize", "trim", "length", "first", "last", "list", "reverse", "sort", "join",
            "join('|')", "tojson", "tojson(indent=2)", "tojson(ensure_ascii=true)", "string", "int", "float", "abs", "round",
            "default('d')", "items", "dictsort", "unique", "map('upper')", "map(attribute='content')", "select", "reject('none')",
            "selectattr('role')", "groupby('role')", "batch(2)", "sum", "min", "max", "replace('a', 'b')", "indent", "e",
            "wordcount", "center(9)", "format(1)", "safe", "attr('x')", "string|list|sort|join",
        ]);
        let methods = prop::sample::select(vec![
            "upper()", "lower()", "strip()", "split()", "split('|')", "rsplit(none, 1)", "splitlines()", "title()", "swapcase()",
            "items()", "keys()", "values()", "get('content')", "get('role', 1)", "startswith('a')", "replace('Α', 'x')",
            "partition('Β')", "format(1, 2)", "join(['a', 'b'])", "zfill(5)", "center(5)", "find('Γ')", "content", "copy()",
            "removeprefix('a')", "capitalize()", "casefold()", "isdigit()", "index(1)", "count('a')",
        ]);
        let slices = prop::sample::select(vec!["[0]", "[-1]", "[1:]", "[:-1]", "[::-1]", "[::2]", "[1:9:3]", "['role']", "[x]"]);
        let ops = prop::sample::select(vec![
            " + ", " ~ ", " * ", " - ", " / ", " // ", " % ", " ** ", " == ", " < ", " in ", " not in ", " and ", " or ", ", ",
        ]);
        let tests = prop::sample::select(vec!["defined", "string", "none", "mapping", "odd", "sequence", "eq 1", "in 'abc'"]);
        prop_oneof![
            3 => (inner.clone(), filters).prop_map(|(a, f)| format!("({a}) | {f}")),
            2 => (inner.clone(), methods).prop_map(|(a, f)| format!("({a}).{f}")),
            2 => (inner.clone(), slices).prop_map(|(a, f)| format!("({a}){f}")),
            3 => (inner.clone(), ops, inner.clone()).prop_map(|(a, op, b)| format!("({a}{op}{b})")),
            1 => (inner.clone(), tests).prop_map(|(a, test)| format!("(({a}) is {test})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("[{a}, {b}]")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{{'k': {a}, 'l': {b}}}")),
            1 => (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} if {b} else {c})")),
            1 => inner.clone().prop_map(|a| format!("f({a})")),
            1 => inner.clone().prop_map(|a| format!("strftime_now({a})")),
            1 => inner.clone().prop_map(|a| format!("'é'.center(7, ({a})[0])")),
            1 => inner.clone().prop_map(|a| format!("({a}).format(1, 'x')")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) % ({b})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})|join({b})")),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a})|replace('a', {b})")),
            1 => inner.prop_map(|a| format!("'%s|%s' % ({a}, 1)")),
        ]
    })
}

/// Templates of many statements.
fn source() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        3 => expression().prop_map(|e| format!("{{{{ {e} }}}}")),
        1 => expression().prop_map(|e| format!("{{% set x = {e} %}}")),
        1 => expression().prop_map(|e| format!("{{% set ns.v = {e} %}}")),
        1 => "[a-z<|> \n]{0,8}",
    ];
    let tree = leaf.prop_recursive(3, 20, 4, |inner| {
        let body = prop::collection::vec(inner, 0..4).prop_map(|parts| parts.concat());
        prop_oneof![
            (expression(), body.clone()).prop_map(|(e, b)| format!("{{% for m in {e} %}}{b}{{% endfor %}}")),
            body.clone().prop_map(|b| format!("{{%- for m in messages -%}}{b}{{% endfor %}}")),
            (expression(), body.clone(), body.clone())
                .prop_map(|(e, b, c)| format!("{{% if {e} %}}{b}{{% else %}}{c}{{% endif %}}")),
            body.clone().prop_map(|b| format!("{{% set x %}}{b}{{% endset %}}")),
            body.clone().prop_map(|b| format!("{{% filter upper %}}{b}{{% endfilter %}}")),
            body.clone().prop_map(|b| format!("{{% call f(1) %}}{b}{{% endcall %}}")),
            body.clone().prop_map(|b| format!("{{% generation %}}{b}{{% endgeneration %}}")),
            body.prop_map(|b| format!("{{% macro f(a) %}}{b}{{{{ a }}}}{{% endmacro %}}")),
        ]
    });
    prop::collection::vec(tree, 1..5).prop_map(|parts| {
        format!(
            "{{% set ns = namespace(v=1) %}}{{% macro f(a) %}}<{{{{ a }}}}>{{% endmacro %}}{}",
            parts.concat()
        )
    })
}

/// A chat in Greek letters, which no template here writes. Their names of keys are Greek too where they may be.
fn greek_chat() -> Chat {
    let text = |text: &str| Data::from(text);
    let message = |role: &str, content: &str| {
        Data::object([
            ("role", text(role)),
            ("content", text(content)),
            ("tags", vec![text("Α|Β"), text("Γ"), Data::object([("Δ", text("Ε\n"))])].into()),
        ])
    };
    Chat {
        messages: vec![
            message("user", " ΑΒΓ|δε\n<ζ> "),
            message("assistant", ""),
            message("ΡΟΛΕ", "Ω%s{}|Ω"),
        ],
        tools: Some(vec![Data::object([("Ω", text("Ψ'Χ\"")), ("n", Data::Int(5))])].into()),
        variables: vec![
            ("note".into(), text("Ξ ξ")),
            ("form".into(), text("Ο{:Π^9}{0:ο<3}%s%%")),
            ("code".into(), Data::Int(0x3A6)),
        ],
        ..Chat::default()
    }
}

fn is_greek(c: char) -> bool {
    ('\u{370}'..='\u{3ff}').contains(&c)
}

/// Every byte, some merges, control tokens, and one that is user-defined (the last).
static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| {
    let printable = |b: &u32| matches!(b, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    let alphabet =
        (0..256).filter(printable).chain(0x100..0x144).filter_map(char::from_u32).map(String::from);
    let merges = ["< |", "| >", "i m", "e n", "en d", "_ end", "im _end", "<| im_end", "<|im_end |>", "Ġ Ġ"];
    let merged = merges.map(|merge| merge.replace(' ', ""));
    let mut tokens: Vec<String> =
        alphabet.chain(merged.into_iter().filter(|token| token != "<|im_end|>")).collect();
    let mut token_types = vec![1; tokens.len()];
    for (token, kind) in CONTROL.iter().map(|token| (*token, 3)).chain([("<tool>", 4)]) {
        tokens.push(token.to_owned());
        token_types.push(kind);
    }
    let merges =
        merges.iter().filter(|merge| **merge != "<|im_end |>").map(|merge| (*merge).to_owned()).collect();
    Tokenizer::from_spec(TokenizerSpec {
        model: "gpt2".into(),
        pre: "gpt-2".into(),
        tokens,
        token_types,
        merges,
        ..TokenizerSpec::default()
    })
    .unwrap()
});

const CONTROL: [&str; 6] = ["<|im_start|>", "<|im_end|>", "<|user|>", "<s>", "</s>", "<|im_end|>\n"];

/// Content made of pieces of control tokens, and of what templates cut at.
fn content() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => (prop::sample::select(CONTROL.to_vec()), 0usize..13, 0usize..13).prop_map(|(token, from, to)| {
            let (from, to) = (from.min(to).min(token.len()), from.max(to).min(token.len()));
            token[from..to].to_owned()
        }),
        2 => prop::sample::select(CONTROL.to_vec()).prop_map(str::to_owned),
        2 => prop::sample::select(CONTROL.to_vec()).prop_map(str::to_uppercase),
        1 => prop::sample::select(CONTROL.to_vec()).prop_map(|token| token.chars().rev().collect()),
        1 => prop::sample::select(vec!["<tool>", "</think>", "X", "\n", " ", "&", "日本", "'"]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

/// Templates that do to contents what real ones do, and worse.
const SHAPES: [&str; 8] = [
    "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}",
    "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content|trim + eos_token }}{% endfor %}",
    "{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}",
    "{% for m in messages %}<|im_start|>{{ m.content.split('X')|join }}{{ m.content.replace('</think>', '') }}<|im_end|>{% endfor %}",
    "{% for m in messages %}{{ m.content|lower }}<|im_start|>{{ m.content[::-1] ~ m.content.swapcase() }}{% endfor %}",
    "{% for m in messages %}{{ m|tojson }}<|im_{{ m.content }}end|>{{ '<|im_end' ~ m.content }}|>{% endfor %}",
    "{% macro p(x) %}{% for c in x %}{{ c }}{% endfor %}{% endmacro %}{{ p(messages[0].content) }}<|im_end|>{{ messages }}",
    "{% set ns = namespace(x='<|im_') %}{% for m in messages %}{% set ns.x = ns.x + m.content %}{% endfor %}{{ ns.x ~ '|>' }}<s>{{ '%s' % ns.x }}",
];

/// The bytes that each id stands for, if the ids stand for all of `text`.
fn ranges(ids: &[u32], text: &str) -> Vec<std::ops::Range<usize>> {
    let mut at = 0;
    let ranges = ids.iter().map(|&id| {
        let start = at;
        at += TOKENIZER.token_bytes(id).len();
        start..at
    });
    let ranges: Vec<_> = ranges.collect();
    assert_eq!(at, text.len(), "ids do not stand for the text");
    ranges
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn what_a_user_writes_is_never_the_templates(source in source()) {
        if let Ok(rendered) = render(&source, &greek_chat()) {
            let mut trusted = rendered.template_ranges().iter().peekable();
            for (at, c) in rendered.text().char_indices() {
                trusted.next_if(|range| range.end <= at);
                let ours = trusted.peek().is_some_and(|range| range.contains(&at));
                prop_assert!(!(ours && is_greek(c)), "{:?} in {:?}", rendered.template_ranges(), rendered.text());
            }
        }
    }

    #[test]
    fn any_text_as_template_gives_a_text_or_an_error(
        pieces in prop::collection::vec(prop_oneof![
            3 => prop::sample::select(vec![
                "{{", "}}", "{%", "%}", "{#", "#}", "{%-", "-%}", "if ", "for ", "in ", "else ", "endif ", "endfor ", "set ", "macro ",
                "x", "(", ")", "[", "]", "{", "}", ".", "|", "=", ",", ":", "'", "\"", "\\", "1", "1.5e9", "~", "not ", "is ", "raw ",
                "endraw ", "\n", " ", "messages", "loop", "==", "**", "recursive ", "call ", "filter ", "with ",
            ]).prop_map(str::to_owned),
            1 => any::<String>(),
        ], 0..30)
    ) {
        let _: Result<Rendered, TemplateError> = render(&pieces.concat(), &Chat::new([("user", "x")]));
    }
}

proptest! {
    #[test]
    fn control_tokens_are_the_templates_alone(first in content(), second in content(), shape in 0..SHAPES.len()) {
        let rendered = render(SHAPES[shape], &Chat::new([("user", &*first), ("<|im_end|>", &*second)])).unwrap();
        let (text, trusted) = (rendered.text(), rendered.template_ranges());
        prop_assert!(trusted.windows(2).all(|pair| pair[0].end < pair[1].start));
        let ids = rendered.encode(&TOKENIZER);
        // Where the control tokens are, found in what the template wrote and nowhere else: the longest from the left.
        let mut expected = Vec::new();
        for range in trusted {
            let mut at = range.start;
            while at < range.end {
                let here = CONTROL.iter().filter(|token| text[at..range.end].starts_with(**token)).max_by_key(|token| token.len());
                expected.extend(here.map(|token| at..at + token.len()));
                at += here.map_or(1, |token| token.len());
                while !text.is_char_boundary(at) {
                    at += 1;
                }
            }
        }
        let found: Vec<_> = ids.iter().zip(ranges(&ids, text)).filter(|(id, _)| TOKENIZER.is_special(**id)).map(|(_, range)| range).collect();
        prop_assert_eq!(&found, &expected);
        // What lies between is encoded as a text of its own, without control tokens.
        let mut whole = Vec::new();
        let mut from = 0;
        for range in expected {
            whole.extend(TOKENIZER.encode(&text[from..range.start], PLAIN));
            whole.extend(TOKENIZER.token_id(&text[range.clone()]));
            from = range.end;
        }
        whole.extend(TOKENIZER.encode(&text[from..], PLAIN));
        prop_assert_eq!(ids, whole);
    }

    #[test]
    fn a_chat_without_control_tokens_is_encoded_as_its_text(content in "[a-z <|>日\n]{0,30}", shape in 0..SHAPES.len()) {
        prop_assume!(!CONTROL.iter().any(|token| content.contains(token)));
        let rendered = render(SHAPES[shape], &Chat::new([("user", &*content), ("assistant", "ok")])).unwrap();
        let all = EncodeOptions { add_special: false, parse_special: true };
        let joined = CONTROL.iter().map(|token| rendered.text().matches(token).count()).sum::<usize>();
        let ours = rendered.template_ranges().iter().map(|range| {
            CONTROL.iter().map(|token| rendered.text()[range.clone()].matches(token).count()).sum::<usize>()
        }).sum::<usize>();
        // Unless the seams make one.
        prop_assume!(joined == ours);
        prop_assert_eq!(rendered.encode(&TOKENIZER), TOKENIZER.encode(rendered.text(), all));
    }
}
