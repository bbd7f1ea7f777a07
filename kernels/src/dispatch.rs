//! The dispatch table: which configuration runs for which kernel key, and the evidence for it.

use crate::family::Family;
use crate::{KernelKey, space::Config};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Version of the file format.
pub const FORMAT: u32 = 1;

/// One device class's tuned configurations, as kept in `dispatch/<device-class>.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// File format version, [`FORMAT`].
    pub format: u32,
    /// The device class it was measured on.
    pub device_class: String,
    /// Entries, sorted by key.
    #[serde(default, rename = "entry")]
    pub entries: Vec<Entry>,
}

/// One tuned configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Order key of the winner: equal keys promise equal bits.
    pub order: String,
    /// Hash of the family's sources when it was measured; a differing hash voids the entry.
    pub source_hash: String,
    /// Median time of one launch when it was measured.
    pub expected_ns: u64,
    /// Ratio of the default configuration's time to the winner's in the final comparison (above 1 is faster).
    pub speedup_over_default: f64,
    /// IDs of the records behind it.
    pub evidence: Vec<String>,
    /// Day of the measurement, `YYYY-MM-DD`.
    pub date: String,
    /// What it is for.
    pub key: KernelKey,
    /// The winner.
    pub config: Config,
}

/// Where a chosen configuration came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "origin", rename_all = "kebab-case")]
pub enum Origin {
    /// An entry of the named table.
    Table {
        /// Name of the table: a file path or `embedded`.
        table: String,
    },
    /// The family's default, and why no entry ruled.
    Default {
        /// `no entry`, `source changed`, `not feasible: …`, or `asked for`.
        reason: String,
    },
}

/// A chosen configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// What to launch with.
    pub config: Config,
    /// Where it came from.
    #[serde(flatten)]
    pub origin: Origin,
}

/// A dispatch file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("dispatch table {name}: {problem}")]
pub struct TableError {
    /// File or table name.
    pub name: String,
    /// What is wrong, and where.
    pub problem: String,
}

impl Table {
    /// An empty table for a device class.
    pub fn empty(device_class: &str) -> Self {
        Table { format: FORMAT, device_class: device_class.to_owned(), entries: Vec::new() }
    }

    /// Parses the TOML text of a table; `name` is used in errors.
    ///
    /// # Errors
    /// Malformed TOML, unknown keys, another format version, or two entries for one key.
    pub fn parse(name: &str, text: &str) -> Result<Self, TableError> {
        let fail = |problem: String| TableError { name: name.to_owned(), problem };
        let mut table: Table = toml::from_str(text).map_err(|e| fail(e.to_string()))?;
        if table.format != FORMAT {
            return Err(fail(format!(
                "format {} is not readable by this build (it reads {FORMAT}); re-run `memra sweep`",
                table.format
            )));
        }
        table.entries.sort_by(|a, b| a.key.cmp(&b.key));
        if let Some(pair) = table.entries.windows(2).find(|w| w[0].key == w[1].key) {
            return Err(fail(format!("two entries for {}", pair[0].key)));
        }
        Ok(table)
    }

    /// The TOML text: entries sorted by key, so diffs are small.
    pub fn to_text(&self) -> String {
        let mut sorted = self.clone();
        sorted.entries.sort_by(|a, b| a.key.cmp(&b.key));
        let body = toml::to_string(&sorted).unwrap_or_default();
        format!(
            "# Written by `memra sweep`; do not edit. Winners for one device class, with their evidence.\n{body}"
        )
    }

    /// Puts `entry` in place of the one with the same key, if any.
    pub fn insert(&mut self, entry: Entry) {
        self.entries.retain(|old| old.key != entry.key);
        self.entries.push(entry);
        self.entries.sort_by(|a, b| a.key.cmp(&b.key));
    }

    /// The entry that rules `key`: same in all but `m`, with the smallest `m` bucket that holds `key.m`.
    pub fn find(&self, key: &KernelKey) -> Option<&Entry> {
        self.entries
            .iter()
            .filter(|e| e.key.m >= key.m && KernelKey { m: key.m, ..e.key.clone() } == *key)
            .min_by_key(|e| e.key.m)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Table { table } => write!(f, "{table}"),
            Origin::Default { reason } => write!(f, "default ({reason})"),
        }
    }
}

/// Chooses configurations: the first table with a usable entry rules, else the family's default.
#[derive(Clone, Debug)]
pub struct Dispatcher {
    /// (name, table) in order of priority.
    tables: Vec<(String, Table)>,
    threads: usize,
}

impl Dispatcher {
    /// A dispatcher for a pool of `threads` threads that asks `tables`, given with their names in order of priority.
    pub fn new(tables: Vec<(String, Table)>, threads: usize) -> Self {
        Dispatcher { tables, threads: threads.max(1) }
    }

    /// A dispatcher that asks the user's table, if any, then the tables embedded in this binary for `device_class`.
    ///
    /// # Errors
    /// When an embedded table cannot be read.
    pub fn with_embedded(
        user: Option<(String, Table)>,
        device_class: &str,
        threads: usize,
    ) -> Result<Self, TableError> {
        let mut tables: Vec<_> = user.into_iter().collect();
        for (name, table) in embedded()? {
            if table.device_class == device_class {
                tables.push((format!("embedded:{name}"), table));
            }
        }
        Ok(Dispatcher::new(tables, threads))
    }

    /// A dispatcher with no tables: the defaults alone.
    pub fn defaults(threads: usize) -> Self {
        Dispatcher::new(Vec::new(), threads)
    }

    /// Threads of the pool it chooses for.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The configuration that runs `family` at `key`, and where it came from.
    pub fn choose(&self, family: &dyn Family, key: &KernelKey) -> Choice {
        let mut reason = "no entry".to_owned();
        for (name, table) in &self.tables {
            let Some(entry) = table.find(key) else { continue };
            // In the entry's own space: its bucket may be wider than this step.
            let feasible = family.space(&entry.key, self.threads).validate(&entry.config);
            if entry.source_hash != family.source_hash() {
                reason = format!("{name}: source changed");
            } else if let Err(why) = feasible {
                reason = format!("{name}: not feasible: {why}");
            } else {
                return Choice {
                    config: entry.config.clone(),
                    origin: Origin::Table { table: name.clone() },
                };
            }
        }
        let config = family.default_config(key, self.threads);
        Choice { config, origin: Origin::Default { reason } }
    }
}

/// The tables committed under `tune-data/dispatch/` when this binary was built, with their file names.
///
/// # Errors
/// When one of them cannot be read.
pub fn embedded() -> Result<Vec<(&'static str, Table)>, TableError> {
    const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/embedded_tables.rs"));
    FILES.iter().map(|(name, text)| Ok((*name, Table::parse(name, text)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::family;
    use crate::{DType, NumericClass, NumericPath};

    fn key(m: usize) -> KernelKey {
        KernelKey {
            family: "matmul".into(),
            dtype: DType::Q4_1,
            class: NumericClass::Q8,
            path: NumericPath::Decode,
            n: 576,
            k: 576,
            m,
        }
    }

    fn entry(m: usize, prefetch: i64, source_hash: &str) -> Entry {
        let mut config = family("matmul").unwrap().default_config(&key(m), 1);
        config.0.insert("prefetch".into(), prefetch);
        Entry {
            order: "cpu-Q4_1-q8".into(),
            source_hash: source_hash.into(),
            expected_ns: 1,
            speedup_over_default: 1.1,
            evidence: vec!["a".into()],
            date: "2026-01-31".into(),
            key: key(m),
            config,
        }
    }

    fn table(entries: impl IntoIterator<Item = Entry>) -> Table {
        let mut table = Table::empty("test");
        entries.into_iter().for_each(|e| table.insert(e));
        table
    }

    #[test]
    fn a_table_round_trips_through_its_text() {
        let table = table([entry(4, 2, "x"), entry(1, 4, "x")]);
        let text = table.to_text();
        assert_eq!(Table::parse("t", &text).unwrap(), table);
        assert!(Table::parse("t", &text.replace("format = 1", "format = 2")).is_err());
        assert!(Table::parse("t", &text.replace("order =", "ordre =")).is_err());
        assert!(Table::parse("t", &text.replace("m = 4", "m = 1")).is_err(), "two entries for one key");
    }

    #[test]
    fn the_smallest_bucket_that_holds_the_rows_rules() {
        let table = table([entry(1, 2, "x"), entry(4, 4, "x"), entry(8, 8, "x")]);
        let prefetch = |m| table.find(&key(m)).and_then(|e| e.config.get("prefetch"));
        assert_eq!([1, 2, 4, 5, 8, 9].map(prefetch), [Some(2), Some(4), Some(4), Some(8), Some(8), None]);
        assert_eq!(table.find(&KernelKey { k: 1536, ..key(1) }), None);
    }

    #[test]
    fn the_first_usable_table_rules_and_the_default_says_why_none_did() {
        let family = family("matmul").unwrap();
        let hash = family.source_hash();
        let named = |name: &str, t: Table| (name.to_owned(), t);
        let choose = |tables: Vec<(String, Table)>| Dispatcher::new(tables, 1).choose(family, &key(1));

        let both =
            vec![named("user", table([entry(1, 2, hash)])), named("embedded", table([entry(1, 4, hash)]))];
        let choice = choose(both);
        assert_eq!(choice.origin, Origin::Table { table: "user".into() });
        assert_eq!(choice.config.get("prefetch"), Some(2));

        let stale =
            vec![named("user", table([entry(1, 2, "old")])), named("embedded", table([entry(1, 4, hash)]))];
        assert_eq!(choose(stale).config.get("prefetch"), Some(4));

        for (tables, reason) in [
            (vec![], "no entry"),
            (vec![named("user", table([entry(1, 2, "old")]))], "user: source changed"),
            (
                vec![named("user", table([entry(1, 3, hash)]))],
                "user: not feasible: parameter `prefetch` cannot be 3",
            ),
        ] {
            let choice = choose(tables);
            assert_eq!(choice.config, family.default_config(&key(1), 1));
            assert!(choice.origin.to_string().contains(reason), "{}", choice.origin);
        }
    }

    #[test]
    fn an_entry_for_a_wider_bucket_rules_narrower_steps() {
        let family = family("matmul").unwrap();
        let wide = entry(8, 2, family.source_hash());
        let dispatcher = Dispatcher::new(vec![("user".into(), table([wide.clone()]))], 1);
        assert_eq!(dispatcher.choose(family, &key(1)).config, wide.config);
    }

    #[test]
    fn embedded_tables_parse() {
        embedded().unwrap();
        Dispatcher::with_embedded(None, "no such device", 2).unwrap();
    }
}
