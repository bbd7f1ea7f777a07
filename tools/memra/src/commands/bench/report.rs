//! What a benchmark prints.

use crate::context::Context;
use crate::engine;
use crate::output::stdout;
use memra_engine::bench::{BenchResult, BenchTest};
use memra_engine::model::Model;
use memra_engine::{CHUNK, SessionOptions};
use memra_kernels::NumericClass;
use memra_kernels::cpu::{Isa, cpu_name};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// What is the same for every test.
#[derive(Clone, Serialize)]
pub(super) struct Machine {
    build_commit: &'static str,
    build_number: u32,
    cpu_info: String,
    gpu_info: &'static str,
    backends: &'static str,
    model_filename: String,
    model_type: String,
    model_size: u64,
    model_n_params: u64,
    n_batch: usize,
    n_ubatch: usize,
    n_threads: usize,
    type_k: String,
    type_v: String,
    n_gpu_layers: u32,
    flash_attn: bool,
    memra_version: &'static str,
    memra_class: NumericClass,
    memra_isa: Isa,
}

/// One test, with llama-bench's names.
#[derive(Serialize)]
pub(super) struct Row {
    #[serde(flatten)]
    machine: Machine,
    n_prompt: usize,
    n_gen: usize,
    n_depth: usize,
    test_time: String,
    avg_ns: u64,
    stddev_ns: u64,
    avg_ts: f64,
    stddev_ts: f64,
    samples_ns: Vec<u64>,
    samples_ts: Vec<f64>,
    memra_bytes_per_token: u64,
    memra_output_hash: String,
}

impl Machine {
    pub(super) fn new(model: &Model, options: &SessionOptions) -> Machine {
        let file = model.file();
        let files = file.checkpoint();
        let model_n_params = files.tensors().map(|tensor| tensor.n_values() as u64).sum();
        let mut bytes: BTreeMap<String, u64> = BTreeMap::new();
        for tensor in files.tensors() {
            *bytes.entry(tensor.storage().to_string()).or_default() += tensor.data().len() as u64;
        }
        // The type of most bytes: what people call the file.
        let main = bytes.iter().max_by_key(|(_, bytes)| **bytes).map(|(dtype, _)| dtype.clone());
        let architecture = file.config().architecture;
        let kv = options.kv.to_string().to_lowercase();
        Machine {
            build_commit: env!("CARGO_PKG_VERSION"),
            build_number: 0,
            cpu_info: cpu_name(),
            gpu_info: "",
            backends: "CPU",
            model_filename: file.path().display().to_string(),
            model_type: format!(
                "{architecture} {} {}",
                short_count(model_n_params),
                main.unwrap_or_default()
            ),
            model_size: bytes.values().sum(),
            model_n_params,
            n_batch: CHUNK,
            n_ubatch: CHUNK,
            n_threads: options.threads,
            type_k: kv.clone(),
            type_v: kv,
            n_gpu_layers: 0,
            flash_attn: true,
            memra_version: env!("CARGO_PKG_VERSION"),
            memra_class: options.class,
            memra_isa: Isa::detect(),
        }
    }
}

/// `135M`, `8.0B`.
fn short_count(n: u64) -> String {
    let n = n as f64;
    if n >= 1e9 { format!("{:.1}B", n / 1e9) } else { format!("{:.0}M", n / 1e6) }
}

impl Row {
    pub(super) fn new(machine: &Machine, test: &BenchTest, result: BenchResult) -> Row {
        let &BenchTest { n_prompt, n_gen, n_depth } = test;
        let tokens = (n_prompt + n_gen) as f64;
        let samples_ts: Vec<f64> =
            result.samples_ns.iter().map(|&ns| tokens * 1e9 / ns.max(1) as f64).collect();
        let times: Vec<f64> = result.samples_ns.iter().map(|&ns| ns as f64).collect();
        let (avg_ns, stddev_ns) = mean_and_deviation(&times);
        let (avg_ts, stddev_ts) = mean_and_deviation(&samples_ts);
        Row {
            machine: machine.clone(),
            n_prompt,
            n_gen,
            n_depth,
            test_time: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            avg_ns: avg_ns as u64,
            stddev_ns: stddev_ns as u64,
            avg_ts,
            stddev_ts,
            samples_ns: result.samples_ns,
            samples_ts,
            memra_bytes_per_token: result.bytes_per_token,
            memra_output_hash: result.logits_hash,
        }
    }

    /// One JSON line.
    pub(super) fn print_line(&self) -> io::Result<()> {
        let mut out = stdout();
        serde_json::to_writer(&mut out, self)?;
        writeln!(out)?;
        out.flush()
    }

    /// `pp512`, `tg128 @ d4096`.
    fn name(&self) -> String {
        let (kind, n) = if self.n_prompt > 0 { ("pp", self.n_prompt) } else { ("tg", self.n_gen) };
        let depth = if self.n_depth > 0 { format!(" @ d{}", self.n_depth) } else { String::new() };
        format!("{kind}{n}{depth}")
    }
}

/// Mean, and the standard deviation of a sample (0 of one value).
fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n.max(1.0);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0).max(1.0)).sqrt())
}

/// llama-bench's Markdown table, with the share of this machine's read wall where it was probed.
pub(super) fn print_markdown(rows: &[Row], cx: &Context) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    for row in rows {
        let Machine { model_type, model_size, model_n_params, backends, n_threads, .. } = &row.machine;
        let wall = match engine::wall_gbps(row.memra_bytes_per_token, cx) {
            Some(wall) if row.n_gen > 0 => {
                format!("{:.0} %", 100.0 * row.avg_ts * row.memra_bytes_per_token as f64 / (wall * 1e9))
            }
            _ => String::new(),
        };
        lines.push([
            model_type.clone(),
            format!("{:.2} MiB", *model_size as f64 / f64::from(1 << 20)),
            format!("{:.2} M", *model_n_params as f64 / 1e6),
            (*backends).to_owned(),
            n_threads.to_string(),
            row.name(),
            format!("{:.2} ± {:.2}", row.avg_ts, row.stddev_ts),
            wall,
        ]);
    }
    let header = ["model", "size", "params", "backend", "threads", "test", "t/s", "read wall"];
    let mut out = stdout();
    write_markdown(&mut out, &header.map(str::to_owned), &lines)?;
    Ok(out.flush()?)
}

fn write_markdown<const N: usize>(
    out: &mut impl Write,
    header: &[String; N],
    lines: &[[String; N]],
) -> io::Result<()> {
    let width =
        |i: usize| lines.iter().chain([header]).map(|line| line[i].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let mut line = |cells: [String; N]| writeln!(out, "| {} |", cells.join(" | "));
    line(std::array::from_fn(|i| format!("{:<1$}", header[i], widths[i])))?;
    // Text to the left, numbers to the right.
    let rule = |i: usize| {
        let dashes = "-".repeat(widths[i].saturating_sub(1));
        if matches!(i, 0 | 3 | 5) { format!(":{dashes}") } else { format!("{dashes}:") }
    };
    line(std::array::from_fn(rule))?;
    for cells in lines {
        let cell = |i: usize| {
            if matches!(i, 0 | 3 | 5) {
                format!("{:<1$}", cells[i], widths[i])
            } else {
                format!("{:>1$}", cells[i], widths[i])
            }
        };
        line(std::array::from_fn(cell))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_llama_benchs() {
        assert_eq!(mean_and_deviation(&[2.0, 4.0, 6.0]), (4.0, 2.0));
        assert_eq!(mean_and_deviation(&[5.0]), (5.0, 0.0));
        assert_eq!((short_count(134_515_008), short_count(8_030_261_248)), ("135M".into(), "8.0B".into()));
    }

    #[test]
    fn markdown_columns_line_up() {
        let mut out = Vec::new();
        let cells = |texts: [&str; 2]| texts.map(str::to_owned);
        write_markdown(&mut out, &cells(["model", "t/s"]), &[cells(["x", "1.00 ± 0.01"])]).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "| model | t/s         |\n| :---- | ----------: |\n| x     | 1.00 ± 0.01 |\n");
    }
}
