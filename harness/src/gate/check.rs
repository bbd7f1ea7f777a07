//! The report of `memra check --json`, and what it means.

use serde::Deserialize;
use serde_json::{Map, Value};

/// Bound of the mean absolute difference of log-probabilities to f32: twice what class `q8` may have over the golden
/// texts (0.08 over some 2,000 tokens), since a self-check scores one short text.
pub const MAX_DLOGPROB: f64 = 0.16;

/// How much further from f32 than its base a candidate with other bits may be: this factor, and [`SLACK_DLOGPROB`].
const MAX_GROWTH: f64 = 1.1;
const SLACK_DLOGPROB: f64 = 0.002;

/// What a subject says of its own correctness. Unknown keys are ignored: another version may say more.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct CheckReport {
    /// Kernels against their references.
    pub kernels: Vec<KernelRow>,
    /// The model as a whole, where one was given.
    #[serde(default)]
    pub model: Option<ModelCheck>,
    /// The report as it came.
    #[serde(skip)]
    raw: Value,
}

/// One kernel check.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct KernelRow {
    /// Kernel family.
    pub family: String,
    /// What was checked.
    pub key: String,
    /// `pass`, `fail` or `skipped`.
    pub status: String,
    /// Largest error; its unit is the check's business.
    #[serde(default)]
    pub max_err: Option<f64>,
    /// Why it failed.
    #[serde(default)]
    pub reason: Option<String>,
}

/// Properties of the whole model.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ModelCheck {
    /// Whether every way of grouping the prompt gave the same bits.
    pub identical: bool,
    /// Where they first differed.
    #[serde(default)]
    pub first_difference: Option<Value>,
    /// Mean absolute difference of log-probabilities to class f32.
    #[serde(default)]
    pub mean_abs_dlogprob: Option<f64>,
    /// Hash of the logits' bits.
    #[serde(default)]
    pub logits_hash: Option<String>,
    /// Reduction order of each kernel used.
    #[serde(default)]
    pub order_keys: Option<Value>,
}

impl CheckReport {
    /// Reads what the check printed.
    ///
    /// # Errors
    /// It is not such a report, or checks nothing.
    pub fn parse(stdout: &[u8]) -> Result<CheckReport, String> {
        let raw: Value =
            serde_json::from_slice(stdout).map_err(|e| format!("its report is not JSON: {e}"))?;
        let report =
            CheckReport::deserialize(&raw).map_err(|e| format!("its report is not understood: {e}"))?;
        if report.kernels.is_empty() {
            return Err("its report lists no kernel".to_owned());
        }
        Ok(CheckReport { raw, ..report })
    }

    /// For a record: counts and the model's part, and every row that did not pass.
    pub(super) fn to_value(&self) -> Value {
        let bad: Vec<Value> = match self.raw.get("kernels").and_then(Value::as_array) {
            Some(rows) => rows.iter().filter(|row| row["status"] != "pass").cloned().collect(),
            None => Vec::new(),
        };
        let mut map = Map::new();
        map.insert("kernels_checked".into(), self.kernels.len().into());
        map.insert("kernels_not_passed".into(), bad.into());
        map.insert("model".into(), self.raw.get("model").cloned().unwrap_or_default());
        Value::Object(map)
    }
}

/// What is wrong in a report; empty when nothing is.
pub fn judge_check(report: &CheckReport) -> Vec<String> {
    const NAMED: usize = 5;
    let mut wrong = Vec::new();
    let failed: Vec<&KernelRow> =
        report.kernels.iter().filter(|row| row.status != "pass" && row.status != "skipped").collect();
    for row in failed.iter().take(NAMED) {
        let reason = row.reason.as_deref().unwrap_or("no reason given");
        wrong.push(format!("kernel {} ({}): {}: {reason}", row.key, row.family, row.status));
    }
    if failed.len() > NAMED {
        wrong.push(format!("and {} more kernel checks", failed.len() - NAMED));
    }
    if let Some(model) = &report.model {
        if !model.identical {
            let place =
                model.first_difference.as_ref().map_or_else(String::new, |d| format!(", first at {d}"));
            wrong.push(format!("results depend on how the prompt is grouped{place}"));
        }
        match model.mean_abs_dlogprob {
            Some(distance) if distance < MAX_DLOGPROB => {}
            Some(distance) => wrong.push(format!(
                "mean |difference of log-probabilities| to f32 is {distance:.4}; the bound is {MAX_DLOGPROB}"
            )),
            None => wrong.push("the distance to f32 is not a number".to_owned()),
        }
    }
    wrong
}

/// What differs in bits: `(failures, remarks)`. Bits may change with reduction orders, not without.
pub fn compare_bits(
    base: &CheckReport,
    candidate: &CheckReport,
    allow_new_bits: bool,
) -> (Vec<String>, Vec<String>) {
    let (Some(old), Some(new)) = (&base.model, &candidate.model) else { return (Vec::new(), Vec::new()) };
    let (Some(old_hash), Some(new_hash)) = (&old.logits_hash, &new.logits_hash) else {
        return (Vec::new(), vec!["bits were not compared: a report has no hash of the logits".to_owned()]);
    };
    if old_hash == new_hash {
        return (Vec::new(), Vec::new());
    }
    let mut fails = Vec::new();
    if let (Some(was), Some(is)) = (old.mean_abs_dlogprob, new.mean_abs_dlogprob)
        && is > was * MAX_GROWTH + SLACK_DLOGPROB
    {
        fails.push(format!("the distance to f32 grew from the base's {was:.4} to {is:.4}"));
    }
    let mut remarks = Vec::new();
    match (old.order_keys == new.order_keys, allow_new_bits) {
        (false, _) => remarks.push("bits differ from the base's, as reduction orders do"),
        (true, true) => remarks.push("bits differ from the base's under the same reduction orders, as allowed"),
        (true, false) => fails.push(
            "bits differ from the base's although reduction orders do not; if that is meant, say --allow-new-bits"
                .to_owned(),
        ),
    }
    (fails, remarks.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(status: &str, identical: bool, distance: &str, hash: &str, orders: &str) -> CheckReport {
        let text = format!(
            r#"{{"kernels":[{{"family":"matmul","key":"matmul/Q4_1","status":"{status}","max_err":0.5,"reason":null,"new":1}}],
                "model":{{"identical":{identical},"first_difference":null,"mean_abs_dlogprob":{distance},"logits_hash":"{hash}","order_keys":["{orders}"]}}}}"#
        );
        CheckReport::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn each_fault_is_named_and_a_good_report_has_none() {
        let none: Vec<String> = Vec::new();
        assert_eq!(judge_check(&report("pass", true, "0.03", "h", "o")), none);
        for (bad, expect) in [
            (report("fail", true, "0.03", "h", "o"), "matmul/Q4_1"),
            (report("pass", false, "0.03", "h", "o"), "grouped"),
            (report("pass", true, "0.16", "h", "o"), "0.1600"),
            (report("pass", true, "null", "h", "o"), "not a number"),
        ] {
            let wrong = judge_check(&bad);
            assert!(wrong.len() == 1 && wrong[0].contains(expect), "{wrong:?}");
        }
        let kernels_only =
            CheckReport::parse(br#"{"kernels":[{"family":"f","key":"k","status":"pass"}]}"#).unwrap();
        assert_eq!(judge_check(&kernels_only), none);
    }

    #[test]
    fn bits_may_change_with_orders_only() {
        let base = report("pass", true, "0.03", "h1", "o1");
        let cases = [
            ("h1", "o1", "0.03", false, 0, 0),
            ("h1", "o2", "0.03", false, 0, 0),
            ("h2", "o2", "0.03", false, 0, 1),
            ("h2", "o1", "0.03", false, 1, 0),
            ("h2", "o1", "0.03", true, 0, 1),
            ("h2", "o2", "0.04", false, 1, 1),
            ("h2", "o1", "0.04", true, 1, 1),
        ];
        for (hash, orders, distance, allow, fails, remarks) in cases {
            let got = compare_bits(&base, &report("pass", true, distance, hash, orders), allow);
            assert_eq!((got.0.len(), got.1.len()), (fails, remarks), "{hash} {orders} {allow}: {got:?}");
        }
    }

    #[test]
    fn what_is_no_report_is_refused() {
        for text in ["", "Illegal instruction", "{}", r#"{"kernels":[]}"#, r#"{"kernels":[{"family":1}]}"#] {
            assert!(CheckReport::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
