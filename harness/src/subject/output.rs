//! Reading what an engine printed, and judging whether it can be true.

use super::{Ask, Manifest, OutputKind};
use crate::one_line;
use crate::record::{MAX_TPS, TestShape};
use serde_json::{Map, Value};
use std::time::Duration;

/// How far above the measured wall a rate is still believed. A host's caches and clock differ by a few percent
/// between the probe and the run; a wrong count of bytes or a lying clock is off by more.
const MAX_OVER_WALL: f64 = 1.25;

/// One test as an engine reports it.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchResult {
    /// Shape it says it ran.
    pub test: TestShape,
    /// Times of its repetitions.
    pub samples_ns: Vec<u64>,
    /// Rates it states for them; [`sanity`] checks them against the times.
    pub samples_tps: Vec<f64>,
    /// Untimed repetitions, where it tells them.
    pub warmup_ns: Vec<u64>,
    /// Bytes that a token must read, where it tells.
    pub bytes_per_token: Option<u64>,
    /// Hash of what it computed, where it tells.
    pub output_hash: Option<String>,
    /// Everything else it says of itself: build and resolved flags.
    pub flags: Map<String, Value>,
}

/// Fields of llama-bench that are results or paths, not flags.
const NOT_FLAGS: [&str; 14] = [
    "model_filename",
    "test_time",
    "avg_ns",
    "stddev_ns",
    "avg_ts",
    "stddev_ts",
    "samples_ns",
    "samples_ts",
    "n_prompt",
    "n_gen",
    "n_depth",
    "memra_warmup_ns",
    "memra_output_hash",
    "memra_bytes_per_token",
];

/// Reads the one result that `stdout` must hold.
///
/// # Errors
/// What is missing or malformed, with the line.
pub fn read_output(kind: OutputKind, stdout: &[u8]) -> Result<BenchResult, String> {
    let OutputKind::LlamaBench = kind;
    // llama-bench mangles non-ASCII file names; no field that is read here can hold such bytes.
    let text = String::from_utf8_lossy(stdout);
    let mut lines = text.split('\n').enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (number, line) = lines.next().ok_or("it printed no result")?;
    if let Some((number, line)) = lines.next() {
        return Err(format!(
            "stdout line {}: more than the one result asked for: {}",
            number + 1,
            head(line)
        ));
    }
    let at = |problem: String| format!("stdout line {}: {problem}: {}", number + 1, head(line));
    let mut fields: Map<String, Value> =
        serde_json::from_str(line).map_err(|e| at(format!("not a JSON object ({e})")))?;
    let number_of = |name: &str| {
        let value = fields.get(name).and_then(Value::as_u64).and_then(|v| u32::try_from(v).ok());
        value.ok_or_else(|| at(format!("no whole number in `{name}`")))
    };
    let test = TestShape {
        n_prompt: number_of("n_prompt")?,
        n_gen: number_of("n_gen")?,
        n_depth: number_of("n_depth")?,
    };
    let samples_ns = whole_numbers(&fields, "samples_ns")
        .ok_or_else(|| at("no list of whole numbers in `samples_ns`".into()))?;
    let rates = fields.get("samples_ts").and_then(Value::as_array);
    let rates: Option<Vec<f64>> = rates.and_then(|list| list.iter().map(Value::as_f64).collect());
    let samples_tps = rates.ok_or_else(|| at("no list of numbers in `samples_ts`".into()))?;
    let warmup_ns = whole_numbers(&fields, "memra_warmup_ns").unwrap_or_default();
    let bytes_per_token = fields.get("memra_bytes_per_token").and_then(Value::as_u64);
    let output_hash = fields.get("memra_output_hash").and_then(Value::as_str).map(str::to_owned);
    fields.retain(|name, _| !NOT_FLAGS.contains(&name.as_str()));
    Ok(BenchResult { test, samples_ns, samples_tps, warmup_ns, bytes_per_token, output_hash, flags: fields })
}

fn whole_numbers(fields: &Map<String, Value>, name: &str) -> Option<Vec<u64>> {
    fields.get(name)?.as_array()?.iter().map(Value::as_u64).collect()
}

fn head(line: &str) -> String {
    one_line(line, 120)
}

impl BenchResult {
    /// Tokens per second of each repetition, from the times: the figure that is used.
    pub fn rates(&self) -> Vec<f64> {
        let tokens = f64::from(self.test.n_prompt) + f64::from(self.test.n_gen);
        self.samples_ns.iter().map(|ns| tokens * 1e9 / *ns as f64).collect()
    }
}

/// What a result is judged against.
#[derive(Clone, Copy, Debug)]
pub struct SanityContext<'a> {
    /// The engine's rules.
    pub manifest: &'a Manifest,
    /// What was asked.
    pub ask: &'a Ask,
    /// Read bandwidth of this machine at the model's size, if measured.
    pub wall_gbps: Option<f64>,
    /// Bytes that a token must read, if either arm told.
    pub bytes_per_token: Option<u64>,
    /// How long the whole process ran.
    pub duration: Duration,
}

/// Why a result cannot be used, if it cannot.
///
/// # Errors
/// The first rule it breaks, with the values.
pub fn sanity(result: &BenchResult, context: &SanityContext<'_>) -> Result<(), String> {
    let SanityContext { manifest, ask, .. } = *context;
    if result.test != ask.test {
        return Err(format!("it ran {:?}, asked for {:?}", result.test, ask.test));
    }
    if result.samples_ns.len() != ask.reps as usize || result.samples_tps.len() != result.samples_ns.len() {
        let (times, rates) = (result.samples_ns.len(), result.samples_tps.len());
        return Err(format!("{times} times and {rates} rates for {} repetitions", ask.reps));
    }
    if result.samples_ns.contains(&0) {
        return Err("a repetition that took no time".into());
    }
    let rates = result.rates();
    let agree = |(stated, computed): (&f64, &f64)| (stated / computed - 1.0).abs() <= 0.01;
    if !result.samples_tps.iter().zip(&rates).all(agree) {
        return Err(format!(
            "stated rates {:?} do not follow from its times ({rates:?})",
            result.samples_tps
        ));
    }
    for (field, template) in manifest.sanity.equals.iter().chain(&manifest.bench.best(ask.test).equals) {
        let expected = ask.expand(template).to_string_lossy().into_owned();
        let actual = match result.flags.get(field) {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => return Err(format!("it does not state `{field}`, which must be {expected}")),
        };
        if actual != expected {
            return Err(format!("`{field}` is {}, must be {expected}", one_line(&actual, 120)));
        }
    }
    if let Some(rate) = rates.iter().find(|rate| **rate > MAX_TPS) {
        return Err(format!("{rate:.1e} tok/s is more than any engine does"));
    }
    physical(result, context)
}

/// No more time than the process had, and no faster than memory lets the weights be read: once a generated token, and
/// once a prompt at least.
fn physical(result: &BenchResult, context: &SanityContext<'_>) -> Result<(), String> {
    let timed: u128 = result.samples_ns.iter().chain(&result.warmup_ns).map(|ns| u128::from(*ns)).sum();
    if timed > context.duration.as_nanos() {
        let (timed, ran) = (timed as f64 / 1e9, context.duration.as_secs_f64());
        return Err(format!("its times add up to {timed:.3} s, but its process ran for {ran:.3} s"));
    }
    let (Some(wall), Some(bytes), Some(fastest)) =
        (context.wall_gbps, context.bytes_per_token, result.samples_ns.iter().min())
    else {
        return Ok(());
    };
    let passes = f64::from(result.test.n_gen) + if result.test.n_prompt > 0 { 1.0 } else { 0.0 };
    let needed = passes * bytes as f64 / *fastest as f64;
    if needed > MAX_OVER_WALL * wall {
        let (test, ms) = (result.test, *fastest as f64 / 1e6);
        return Err(format!("{test} in {ms:.3} ms would read {needed:.1} GB/s, above the wall of {wall:.1}"));
    }
    Ok(())
}
