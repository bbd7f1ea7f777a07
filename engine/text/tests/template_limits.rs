//! Templates that loop, recurse or grow without end: each ends with an error, soon and in little memory.
//!
//! One test, since the allocator counts for the whole process.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use memra_text::template::{Chat, ChatTemplate, RenderOptions, TemplateError, TemplateSpec};
use peak_alloc::PeakAlloc;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// What a rendering may take at its peak: its limit of 4 MiB, twice for buffers that grow, and some for bookkeeping.
const MOST: usize = 12 << 20;

/// Bodies of a loop of a hundred million turns, and a word of the error that must come.
const LOOPS: [(&str, &str); 6] = [
    ("", "steps"),
    ("{{ a }}", "stopped"),
    ("{% set x = a ~ b %}", "steps"),
    ("{% macro m() %}{% endmacro %}", "stopped"),
    ("{% set n = namespace() %}", "stopped"),
    ("{% set x = messages|tojson %}", "steps"),
];

/// Values, what they become again and again, and a word of the error.
const GROWTH: [(&str, &str, &str); 16] = [
    ("'aaaaaaaa'", "n.x ~ n.x", "bytes"),
    ("'aaaaaaaa'", "n.x + n.x", "bytes"),
    ("'aaaaaaaa'", "n.x|replace('a', n.x)", "bytes"),
    ("'aaaaaaaa'", "n.x|replace('', 'bb')", "bytes"),
    ("'aaaaaaaa'", "n.x|list|join(n.x)", "bytes"),
    ("'aaaaaaaa'", "n.x|tojson|tojson", "bytes"),
    ("'aaaaaaaa'", "n.x|e ~ '<'", "stopped"),
    ("'a'", "'%s%s' % (n.x, n.x)", "bytes"),
    ("'a'", "'{0}{0}'.format(n.x)", "bytes"),
    ("[1]", "n.x + n.x", "bytes"),
    ("[1]", "[n.x, n.x]", "nested too deep"),
    ("[1]", "(n.x,)|map('list')", "nested too deep"),
    ("[1]", "{'a': n.x}", "nested too deep"),
    ("[]", "n.x + [i]", "stopped"),
    ("''", "n.x ~ 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'", "stopped"),
    ("1", "n.x * 3", "128 bits"),
];

/// Whole templates, and a word of the error.
const TEMPLATES: [(&str, &str); 34] = [
    ("{{ 'a' * 10**30 }}", "bytes"),
    ("{{ [0] * 10**30 }}", "bytes"),
    ("{{ 'a'.center(10**18) }}", "bytes"),
    ("{{ 'a'.zfill(10**18) }}", "bytes"),
    ("{{ 'a'|center(10**18) }}", "bytes"),
    ("{{ 'a\nb'|indent(10**18) }}", "bytes"),
    ("{{ [[1]]|tojson(indent=10**18) }}", "bytes"),
    ("{{ '%1000000000d' % 1 }}", "bytes"),
    ("{{ '%.1000000000f' % 1 }}", "precision"),
    ("{{ '{:>1000000000}'.format(1) }}", "bytes"),
    ("{{ [1]|batch(10**18, 0)|list }}", "bytes"),
    ("{{ range(10**12) }}", "range"),
    ("{{ range(99999)|map('string')|map('upper')|list|join|list|join|list }}", "stopped"),
    ("{% set x = range(9999)|list %}{{ x|unique|list }}", "steps"),
    ("{% set x = range(9999)|list %}{{ x|select('in', x)|list }}", "steps"),
    ("{% set x = range(9999)|list %}{% for i in x %}{% set y = x|sort %}{% endfor %}", "steps"),
    (
        "{% set s = 'ab' * 500000 %}{% for i in range(9999) %}{{ 'ba' * 400000 in s and '' }}{% endfor %}",
        "steps",
    ),
    ("{% set s = 'ab' * 500000 %}{% for i in range(9999) %}{{ '' if s == s ~ '' }}{% endfor %}", "steps"),
    ("{% set s = '日' * 300000 %}{% for i in range(9999) %}{{ s[::-1]|length and '' }}{% endfor %}", "steps"),
    ("{% set s = '日' * 300000 %}{% for i in range(9999) %}{{ s[-1] and '' }}{% endfor %}", "steps"),
    ("{{ strftime_now('%c' * 500000) }}", "steps"),
    ("{{ (',' * 1500000).split(',') }}", "bytes"),
    ("{{ ('\n' * 1500000).splitlines() }}", "bytes"),
    ("{{ ('\n' * 1500000)|indent }}", "stopped"),
    ("{{ ('a ' * 700000).split() }}", "bytes"),
    ("{{ ('\\x07' * 1000000)|list }}", "bytes"),
    ("{{ ['\\x07' * 1500000] }}", "bytes"),
    ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nested too deep"),
    (
        "{% macro a() %}{{ [b()] }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
        "nested too deep",
    ),
    ("{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}", "nested too deep"),
    ("{% for x in [1] recursive %}{{ loop([x]) }}{% endfor %}", "nested too deep"),
    ("{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}", "nested too deep"),
    ("{% macro m(n) %}{% if n %}{{ m(n-1) }}{{ m(n-1) }}{% endif %}{% endmacro %}{{ m(25) }}", "steps"),
    (
        "{% set ns = namespace(f=0) %}{% macro m() %}{{ ns.f() }}{% endmacro %}{% set ns.f = m %}{{ m() }}",
        "nested too deep",
    ),
];

/// What is repeated, and stands between.
fn nested(open: &str, inner: &str, close: &str, times: usize) -> String {
    format!("{}{inner}{}", open.repeat(times), close.repeat(times))
}

fn hostile() -> Vec<(String, &'static str)> {
    let again = |(body, problem): (&str, &'static str)| {
        let source = format!(
            "{{% for a in range(9999) %}}{{% for b in range(9999) %}}{body}{{% endfor %}}{{% endfor %}}"
        );
        (source, problem)
    };
    let grow = |(start, step, problem): (&str, &str, &'static str)| {
        let source = format!(
            "{{% set n = namespace(x={start}) %}}{{% for i in range(90000) %}}{{% set n.x = {step} %}}{{% endfor %}}"
        );
        (source, problem)
    };
    let whole = |(source, problem): (&str, &'static str)| (source.to_owned(), problem);
    let expression = |inner: String| format!("{{{{ {inner} }}}}");
    let parsed = [
        (expression(nested("(", "1", ")", 100_000)), "levels deep"),
        (expression(nested("[", "1", "]", 100_000)), "levels deep"),
        (expression(nested("{1:", "1", "}", 100_000)), "levels deep"),
        (expression(nested("m(", "1", ")", 100_000)), "levels deep"),
        (expression(nested("not ", "1", "", 100_000)), "levels deep"),
        (expression(nested("- ", "1", "", 100_000)), "levels deep"),
        (expression(nested("1 if 1 else ", "1", "", 50_000)), "levels deep"),
        (expression(nested("", "x", ".x", 100_000)), "in a row"),
        (expression(nested("", "x", "|list", 100_000)), "in a row"),
        (nested("{% if 1 %}", "1", "{% endif %}", 40_000), "levels deep"),
        (nested("{% for x in y %}", "1", "{% endfor %}", 25_000), "levels deep"),
        (format!("{{% set {} = 1 %}}", nested("(", "x", ")", 100_000)), "levels deep"),
        (" ".repeat((1 << 20) + 1), "at most"),
    ];
    let rendered = LOOPS.into_iter().map(again).chain(GROWTH.into_iter().map(grow));
    rendered.chain(TEMPLATES.into_iter().map(whole)).chain(parsed).collect()
}

/// Templates that are large, deep or long, but fine.
fn harmless() -> Vec<(String, usize)> {
    vec![
        (format!("{{{{ {}1 }}}}", "1 + ".repeat(50_000)), 5),
        (format!("{{{{ {}1 }}}}", "'a' ~ ".repeat(50_000)), 50_001),
        (format!("{{{{ {}1 }}}}", "0 or ".repeat(50_000)), 1),
        (format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}x".repeat(20_000)), 0),
        // A namespace that holds itself is no cycle of values.
        ("{% set n = namespace() %}{% set n.x = [n] %}{{ n.x }}".to_owned(), 13),
        ("{{ 1 }}{# x #}".repeat(50_000), 50_000),
        ("x".repeat(1 << 20), 1 << 20),
        (
            format!("{}x{}", "{% if 1 %}{% for x in [1] %}".repeat(35), "{% endfor %}{% endif %}".repeat(35)),
            1,
        ),
        ("{% macro m(n) %}x{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(40) }}".to_owned(), 41),
    ]
}

fn render(source: String) -> Result<usize, TemplateError> {
    let spec = TemplateSpec { templates: vec![("default".into(), source)], ..TemplateSpec::default() };
    let rendered =
        ChatTemplate::new(spec)?.render(&Chat::new([("user", "Hi")]), &RenderOptions::default())?;
    Ok(rendered.text().len())
}

/// Renders on a stack no larger than that of a small thread.
fn measure(source: &str) -> Result<usize, TemplateError> {
    let name: String = source.chars().take(90).collect();
    let (source, len) = (source.to_owned(), source.len());
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    let start = Instant::now();
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(move || render(source)).unwrap();
    let result = thread.join().unwrap();
    let peak = ALLOCATOR.peak_usage() - before;
    let kept = ALLOCATOR.current_usage().saturating_sub(before);
    eprintln!("{name:?}: peak {peak}, {:?}", start.elapsed());
    // Tokens and tree of a template take a multiple of its length.
    assert!(peak < MOST + 150 * len, "{name:?} took {peak} bytes");
    assert!(kept < 64 << 10, "{name:?} kept {kept} bytes");
    result
}

#[test]
fn hostile_templates_end_soon_in_little_memory() {
    for (source, problem) in hostile() {
        let error = measure(&source).expect_err("a hostile template was rendered").to_string();
        assert!(error.contains(problem), "expected `{problem}`: {error}");
    }
    for (source, expected) in harmless() {
        assert_eq!(measure(&source), Ok(expected));
    }
}
