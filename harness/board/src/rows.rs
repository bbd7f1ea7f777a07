//! Values as the board shows them: intervals, rates, names.

use memra_harness::{one_line, record::Arm};
use serde_json::{Map, Value};
use std::fmt;

/// The name of memra's own manifest.
pub(crate) const MEMRA: &str = "memra";

/// Characters of a name that are shown.
pub(crate) const LONGEST_NAME: usize = 120;

/// Identity of the memra that is measured as it is.
pub(crate) const MEMRA_SELF: &str = "memra self";

/// A ratio with the ends of its interval; above 1, ours is faster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    pub(crate) ratio: f64,
    pub(crate) lo: f64,
    pub(crate) hi: f64,
}

/// Where an interval stands to the noise floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Wholly above it.
    Faster,
    /// Wholly below it.
    Slower,
    /// It reaches into the floor.
    Even,
}

impl Interval {
    /// Where it stands to a floor given as a ratio (0.01 = 1 %).
    pub(crate) fn standing(&self, floor: f64) -> Standing {
        if self.lo > 1.0 + floor {
            Standing::Faster
        } else if self.hi < 1.0 / (1.0 + floor) {
            Standing::Slower
        } else {
            Standing::Even
        }
    }
}

impl fmt::Display for Interval {
    /// `1.13x [1.11, 1.15]`, with the digits that the interval's width deserves.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !(1e-4..1e6).contains(&self.ratio) {
            return write!(f, "{:.2e}x [{:.2e}, {:.2e}]", self.ratio, self.lo, self.hi);
        }
        let width = (self.hi - self.lo).max(self.ratio * 4e-3);
        let digits = (1.5 - width.log10()).floor().clamp(0.0, 5.0) as usize;
        let digits = if self.ratio < 10.0 { digits.max(2) } else { digits.min(1) };
        write!(f, "{:.digits$}x [{:.digits$}, {:.digits$}]", self.ratio, self.lo, self.hi)
    }
}

/// `88.1 tok/s`, to three or four digits.
pub(crate) fn tokens_per_second(tps: f64) -> String {
    format!("{} tok/s", rate(tps))
}

/// A rate to three or four digits.
pub(crate) fn rate(value: f64) -> String {
    match value {
        v if v >= 1e9 || (v != 0.0 && v < 1e-3) => format!("{v:.2e}"),
        v if v >= 1000.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.3}"),
    }
}

/// The last eight characters of a ULID: its random part, which tells records of one session apart.
pub(crate) fn short_id(id: &str) -> &str {
    id.len().checked_sub(8).and_then(|at| id.get(at..)).unwrap_or(id)
}

/// `text`, its end left out where it has more than `most` characters.
pub(crate) fn clipped(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

/// The day of an RFC 3339 time.
pub(crate) fn day(at: &str) -> &str {
    at.get(..10).unwrap_or(at)
}

/// A path without its folders: a committed board says nothing about where things lie on a machine.
pub(crate) fn without_folders(text: &str) -> &str {
    let is_path = text.starts_with(['/', '~']) || text.starts_with("./") || text.starts_with("../");
    if is_path { text.rsplit('/').find(|part| !part.is_empty()).unwrap_or(text) } else { text }
}

/// `b11434` where the engine tells its build number, else the first word of its version line that is not its name.
fn short_version(arm: &Arm) -> String {
    if let Some(build) = arm.flags.get("build_number").and_then(Value::as_u64).filter(|build| *build > 0) {
        return format!("b{build}");
    }
    let said =
        |word: &&str| !word.eq_ignore_ascii_case("version:") && !word.eq_ignore_ascii_case(&arm.engine);
    arm.version.split_whitespace().find(said).unwrap_or_default().to_owned()
}

/// How the board calls an arm: `memra`, `memra dispatch=default`, `llama.cpp b11434`.
pub(crate) fn arm_name(arm: &Arm) -> String {
    one_line(&whole_name(arm), LONGEST_NAME)
}

fn whole_name(arm: &Arm) -> String {
    if arm.engine != MEMRA {
        return format!("{} {}", arm.engine, short_version(arm)).trim_end().to_owned();
    }
    match arm.subject.strip_prefix("config:") {
        Some(overlay) => format!("{MEMRA} {}", without_folders(overlay)),
        None if arm.subject == "self" || arm.subject == MEMRA => MEMRA.to_owned(),
        None => format!("{MEMRA} ({})", without_folders(&arm.subject)),
    }
}

/// What stays the same when an arm is measured again: a rival whatever its version, a memra by its subject.
pub(crate) fn arm_identity(arm: &Arm) -> String {
    if arm.engine == MEMRA { format!("{MEMRA} {}", arm.subject) } else { arm.engine.clone() }
}

/// `name=value` pairs, sorted, with folders left out, and what tells of the model: that is in the cell's name.
pub(crate) fn flags(flags: &Map<String, Value>) -> String {
    let mut pairs: Vec<String> = flags
        .iter()
        .filter(|(name, value)| !name.starts_with("model_") && value.as_str() != Some(""))
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name}={}", without_folders(text)),
            other => format!("{name}={other}"),
        })
        .collect();
    pairs.sort();
    pairs.join(" ")
}

/// A test's place in a table: prompt tests before generation, shallow before deep, short before long; others last.
pub(crate) fn test_order(test: &str) -> (u8, u64, u64, String) {
    let (base, depth) = test.split_once("@d").unwrap_or((test, "0"));
    let number = |text: &str| text.parse::<u64>().ok();
    let depth = number(depth).unwrap_or(u64::MAX);
    let (kind, n) = match (base.strip_prefix("pp"), base.strip_prefix("tg")) {
        (Some(n), _) => (0, number(n)),
        (_, Some(n)) => (1, number(n)),
        _ => (2, None),
    };
    (if n.is_some() { kind } else { 2 }, depth, n.unwrap_or(u64::MAX), test.to_owned())
}

/// A test's name with its meaning: `tg128, decode`.
pub(crate) fn test_title(test: &str) -> String {
    match test_order(test).0 {
        0 => format!("{test}, prefill"),
        1 => format!("{test}, decode"),
        _ => test.to_owned(),
    }
}

/// Whether a test measures decoding alone.
pub(crate) fn is_decode(test: &str) -> bool {
    test_order(test).0 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(ratio: f64, lo: f64, hi: f64) -> Interval {
        Interval { ratio, lo, hi }
    }

    #[test]
    fn intervals_read_well_at_any_size() {
        for (value, text) in [
            (interval(1.13, 1.11, 1.15), "1.13x [1.11, 1.15]"),
            (interval(1.0021, 1.0009, 1.0033), "1.002x [1.001, 1.003]"),
            (interval(0.00412, 0.0039, 0.0043), "0.0041x [0.0039, 0.0043]"),
            (interval(251.3, 240.0, 262.0), "251x [240, 262]"),
            (interval(12.34, 12.1, 12.6), "12.3x [12.1, 12.6]"),
            (interval(1.5, 1.5, 1.5), "1.500x [1.500, 1.500]"),
            (interval(1e300, 1e-300, 1e308), "1.00e300x [1.00e-300, 1.00e308]"),
        ] {
            assert_eq!(value.to_string(), text);
        }
    }

    #[test]
    fn long_reasons_are_clipped_between_characters() {
        assert_eq!(clipped("ab ä", 4), "ab ä");
        assert_eq!(clipped("ab ä!", 3), "ab…");
        assert_eq!(clipped("äöü", 2), "äö…");
    }

    #[test]
    fn a_standing_needs_the_whole_interval_beyond_the_floor() {
        assert_eq!(interval(1.02, 1.011, 1.03).standing(0.01), Standing::Faster);
        assert_eq!(interval(1.02, 1.009, 1.03).standing(0.01), Standing::Even);
        assert_eq!(interval(0.97, 0.96, 0.98).standing(0.01), Standing::Slower);
        assert_eq!(interval(0.99, 0.97, 0.995).standing(0.01), Standing::Even);
    }

    #[test]
    fn tests_sort_as_people_read_them() {
        let mut tests = ["tg128@d6144", "pp4096", "serve", "tg128", "pp512", "tg32"];
        tests.sort_by_key(|t| test_order(t));
        assert_eq!(tests, ["pp512", "pp4096", "tg32", "tg128", "tg128@d6144", "serve"]);
        assert!(is_decode("tg128@d6144") && !is_decode("pp512") && !is_decode("tgx"));
    }

    #[test]
    fn names_hold_no_folders() {
        let arm = |engine: &str, subject: &str| Arm {
            engine: engine.into(),
            subject: subject.into(),
            version: "b1".into(),
            ..Arm::default()
        };
        assert_eq!(arm_name(&arm("memra", "self")), "memra");
        assert_eq!(arm_name(&arm("memra", "config:dispatch=default")), "memra dispatch=default");
        assert_eq!(arm_name(&arm("memra", "/home/x/old/memra-0.1")), "memra (memra-0.1)");
        let mut rival =
            Arm { version: "version: 0.6.0-dev (build 11434)".into(), ..arm("llama.cpp", "llama.cpp") };
        assert_eq!(arm_name(&rival), "llama.cpp 0.6.0-dev");
        rival.flags.insert("build_number".into(), 11434.into());
        assert_eq!(arm_name(&rival), "llama.cpp b11434");
        rival = Arm { version: "\u{1b}[31m".to_owned() + &"v".repeat(60_000), ..arm("r", "r") };
        assert!(
            arm_name(&rival).starts_with("r [31mvvv") && arm_name(&rival).chars().count() == LONGEST_NAME
        );
        rival = Arm { version: String::new(), ..arm("vllm", "vllm") };
        assert_eq!(arm_name(&rival), "vllm");
        let map = serde_json::json!({"threads": 2, "lib": "/x/m.so", "model_size": 7, "fa": true});
        assert_eq!(flags(map.as_object().unwrap()), "fa=true lib=m.so threads=2");
    }
}
