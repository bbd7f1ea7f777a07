//! The work list: which kernels at which shapes a model needs, and how much of its time each takes.

use memra_kernels::{KernelKey, NumericPath};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A kernel at a shape, as `memra plan MODEL --json` lists it. Keys of the JSON that are not read here are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkItem {
    /// Kernel, shape and data types.
    pub key: KernelKey,
    /// Launches a step.
    pub count: u64,
    /// Bytes that one launch moves at least.
    pub bytes: u64,
    /// Operations of one launch, a multiply-add counted as two.
    pub flops: u64,
    /// Estimated share of the end-to-end time, 0 to 1; computed by [`WorkList::new`].
    #[serde(default)]
    pub share: f64,
}

/// What is to be tuned, without duplicates, the largest share first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WorkList {
    /// The items.
    pub items: Vec<WorkItem>,
}

/// A work list that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("work list {name}: {problem}; it is what `memra plan MODEL --json` prints")]
pub struct WorkError {
    /// File, or `-` for standard input.
    pub name: String,
    /// What is wrong with it.
    pub problem: String,
}

impl WorkList {
    /// Merges equal keys (their counts add up, as where several models are tuned at once), estimates shares and sorts
    /// by them.
    ///
    /// Decode steps are bound by memory and prompt steps by arithmetic, so an item's weight is its bytes in the one and
    /// its operations in the other, as a share of its path; where both paths are present, each counts for half.
    pub fn new(items: impl IntoIterator<Item = WorkItem>) -> WorkList {
        let mut merged: BTreeMap<KernelKey, WorkItem> = BTreeMap::new();
        for item in items {
            merged
                .entry(item.key.clone())
                .and_modify(|old| old.count = old.count.saturating_add(item.count))
                .or_insert(item);
        }
        let mut items: Vec<WorkItem> = merged.into_values().collect();
        let weight = |item: &WorkItem| {
            let one = if item.key.path == NumericPath::Decode { item.bytes } else { item.flops };
            one as f64 * item.count as f64
        };
        let mut totals: BTreeMap<NumericPath, f64> = BTreeMap::new();
        for item in &items {
            *totals.entry(item.key.path).or_default() += weight(item);
        }
        let paths = totals.len().max(1) as f64;
        for item in &mut items {
            let total = totals[&item.key.path];
            item.share = if total > 0.0 { weight(item) / total / paths } else { 0.0 };
        }
        items.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.key.cmp(&b.key)));
        WorkList { items }
    }

    /// Reads the JSON of `memra plan`: the items alone, or under `work` among other things. `name` is used in errors.
    ///
    /// # Errors
    /// When it is not JSON, holds no list of items, none at all, or a shape that no machine could run.
    pub fn parse(name: &str, json: &str) -> Result<WorkList, WorkError> {
        let fail = |problem: String| WorkError { name: name.to_owned(), problem };
        let mut value: Value = serde_json::from_str(json).map_err(|e| fail(format!("not JSON: {e}")))?;
        if let Some(work) = value.get_mut("work").map(Value::take) {
            value = work;
        }
        if !value.is_array() {
            return Err(fail("neither a list of items nor an object with one under `work`".to_owned()));
        }
        let items: Vec<WorkItem> = serde_json::from_value(value).map_err(|e| fail(e.to_string()))?;
        if let Some(WorkItem { key, .. }) = items.iter().find(|item| !is_sane(&item.key)) {
            return Err(fail(format!(
                "{key}: n, k and m must be at least 1, and their product at most 2^48"
            )));
        }
        if items.is_empty() { Err(fail("it is empty".to_owned())) } else { Ok(WorkList::new(items)) }
    }

    /// Bytes that a whole step of `path` moves: what passes through the caches between two launches of one kernel.
    pub fn step_bytes(&self, path: NumericPath) -> u64 {
        let items = self.items.iter().filter(|i| i.key.path == path);
        items.fold(0, |sum, i| sum.saturating_add(i.bytes.saturating_mul(i.count)))
    }
}

/// Whether sizes that a family computes from the key cannot overflow, and are not nothing. The largest launch of any known
/// model is a thousand times smaller.
fn is_sane(key: &KernelKey) -> bool {
    let product = key.n.checked_mul(key.k).and_then(|nk| nk.checked_mul(key.m));
    product.is_some_and(|product| (1..=1 << 48).contains(&product))
}

/// Whether `pattern` matches the key's family (`matmul`, `att*`) or its whole text (`matmul/Q4_1/*/decode n=576*`).
/// `*` stands for any characters, `?` for one.
pub fn matches(pattern: &str, key: &KernelKey) -> bool {
    glob(pattern.as_bytes(), key.family.as_bytes()) || glob(pattern.as_bytes(), key.to_string().as_bytes())
}

fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to go on after a mismatch: past the last star, one more character swallowed by it.
    let mut retry = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, t));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match retry {
                Some((star, from)) => {
                    (p, t) = (star, from + 1);
                    retry = Some((star, t));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use memra_kernels::{DType, NumericClass};

    fn item(path: NumericPath, n: usize, count: u64, bytes: u64, flops: u64) -> WorkItem {
        let (family, dtype, class) = ("matmul".to_owned(), DType::Q4_1, NumericClass::Q8);
        let m = if path == NumericPath::Decode { 1 } else { 512 };
        WorkItem {
            key: KernelKey { family, dtype, class, path, n, k: 64, m },
            count,
            bytes,
            flops,
            share: 0.0,
        }
    }

    #[test]
    fn shares_follow_bytes_in_decode_and_operations_in_prompt() {
        use NumericPath::{Decode, Prompt};
        let list = WorkList::new([
            item(Decode, 1, 3, 100, 1),
            item(Decode, 2, 1, 700, 1),
            item(Prompt, 3, 1, 1, 90),
            item(Prompt, 4, 1, 1_000, 10),
            item(Decode, 1, 0, 100, 1),
        ]);
        let shares: Vec<(usize, f64)> = list.items.iter().map(|i| (i.key.n, i.share)).collect();
        assert_eq!(shares, [(3, 0.45), (2, 0.35), (1, 0.15), (4, 0.05)]);
        assert_eq!(list.step_bytes(Decode), 1000);
        let alone = WorkList::new([item(Decode, 1, 1, 5, 5)]);
        assert_eq!(alone.items[0].share, 1.0);
    }

    #[test]
    fn both_forms_of_the_json_are_read_and_errors_say_what_is_wrong() {
        let one = r#"{"key":{"family":"matmul","dtype":"Q4_1","class":"q8","path":"decode","n":64,"k":64,"m":1},
                      "count":2,"bytes":10,"flops":20,"example":"blk.0.q"}"#;
        let bare = WorkList::parse("-", &format!("[{one}]")).unwrap();
        assert_eq!(bare.items[0].count, 2);
        assert_eq!(WorkList::parse("-", &format!(r#"{{"model":"x","work":[{one}]}}"#)).unwrap(), bare);
        let error = |json: &str| WorkList::parse("f.json", json).unwrap_err().to_string();
        assert!(error("[]").contains("f.json: it is empty"));
        assert!(error("{}").contains("`work`"));
        assert!(error("[").contains("not JSON"));
        assert!(error(&format!("[{}]", one.replace("Q4_1", "Q9_9"))).contains("Q9_9"));
        for shape in
            ["\"n\":0", "\"n\":4611686018427387904", "\"n\":18446744073709551615", "\"n\":4398046511105"]
        {
            let problem = error(&format!("[{}]", one.replace("\"n\":64", shape)));
            assert!(problem.contains("at most 2^48"), "{shape}: {problem}");
        }
        let most = one.replace("\"count\":2", &format!("\"count\":{}", u64::MAX));
        let most = WorkList::parse("-", &format!("[{most},{most}]")).unwrap();
        assert_eq!(most.step_bytes(NumericPath::Decode), u64::MAX);
        assert!(error(&format!("[{}]", one.replace("\"count\"", "\"counts\""))).contains("count"));
    }

    #[test]
    fn globs() {
        let key = item(NumericPath::Decode, 576, 1, 1, 1).key;
        for yes in ["matmul", "*", "mat*", "m?tmul", "matmul/Q4_1/*", "*n=576*", "*/decode n=576 k=64 m=1"] {
            assert!(matches(yes, &key), "{yes}");
        }
        for no in ["attention", "matmu", "matmul/Q8_0/*", "", "*n=57 *"] {
            assert!(!matches(no, &key), "{no}");
        }
    }
}
