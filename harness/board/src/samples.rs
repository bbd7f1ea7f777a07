//! Every figure with few and many rows, long names, wild values: nothing overlaps, nothing leaves the page.

use crate::{
    fig,
    layout::Frame,
    rows::{Interval, test_title},
    scene::{Scene, check},
};

const MODELS: [&str; 5] = [
    "SmolLM2-135M-Instruct.Q4_1",
    "gemma-3-270m-it-Q4_K_M",
    "Qwen3-Coder-480B-A35B-Instruct-1M-UD-Q4_K_XL-00001-of-00006-with-a-name-that-goes-on-and-on-and-on-and-on-and-on",
    "Meta-Llama-3.1-8B-Instruct-Q4_K_M",
    "m",
];
const TESTS: [&str; 5] = ["pp512", "pp4096", "tg128", "tg128@d6144", "tg128@d131072"];
const ENGINES: [&str; 3] =
    ["memra", "llama.cpp b11434", "memra dispatch=a-file-with-a-long-name-of-its-own-indeed.toml"];

fn frame() -> Frame<'static> {
    Frame {
        title: "A title",
        subtitle: "How to read it: one sentence about the direction of better, and another about what the interval \
                   means, so that it takes more than one line.",
        caption: "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz, 2 cores (cpu-avx512vnni-2c) · measured 2026-11-01 \
                  to 2026-11-03 · 24 pairs · 48 runs, 1 of them invalid · memra 0.1.0 (abcdef0) · log 1a2b3c4d5e6f",
    }
}

fn ratios(n: usize, values: &[f64], spread: f64) -> Vec<fig::ratio::Row> {
    let row = |i: usize| {
        let ratio = values[i % values.len()];
        fig::ratio::Row {
            group: MODELS[i / 5 % 5].into(),
            label: format!("{} vs {}", TESTS[i % 5], ENGINES[1 + i % 2]),
            ratio: match i {
                4 => Err("n/m".into()),
                7 => Err(format!("inv: {}", "the rival ended by signal 9 and said much ".repeat(4))),
                _ => Ok(Interval { ratio, lo: ratio / spread, hi: ratio * spread }),
            },
            floor: [0.01, 0.005, 0.02][i % 3],
            n_pairs: 20,
        }
    };
    (0..n).map(row).collect()
}

fn rates(models: usize, tests: usize, scale: f64) -> Vec<fig::throughput::Row> {
    let mut rows = Vec::new();
    for test in &TESTS[..tests] {
        for (m, model) in MODELS[..models].iter().enumerate() {
            for (color, engine) in ENGINES.iter().enumerate() {
                let median = scale.powi(m as i32) * 88.0 / (1.0 + color as f64 / 10.0);
                rows.push(fig::throughput::Row {
                    panel: test_title(test),
                    model: (*model).into(),
                    engine: (*engine).into(),
                    color,
                    median,
                    samples: (0..25).map(|k| median * (0.98 + 0.04 * f64::from(k) / 25.0)).collect(),
                });
            }
        }
    }
    rows
}

fn walls(n: usize) -> Vec<fig::wall::Row> {
    let row = |i: usize| fig::wall::Row {
        group: format!("{}, {}", MODELS[i / 3 % 5], TESTS[2]),
        engine: ENGINES[i % 3].into(),
        color: i % 3,
        gbps: 3.3 * i as f64,
        percent: 13.0 * i as f64,
    };
    (0..n).map(row).collect()
}

fn kernels(n: usize, speedup: f64, tried: usize) -> Vec<fig::sweep::Row> {
    let row = |i: usize| fig::sweep::Row {
        group: ["matmul, q8, decode", "matmul, q8, prompt"][i / 6 % 2].into(),
        key: format!("Q4_1 n={} k=1536 m=1", 576usize << i),
        winner: "chunk=64,prefetch=4,rows=2,threads=64,unroll=4".into(),
        speedup: speedup.powi(i as i32 - 1).min(99.0),
        best_so_far: (0..tried).map(|k| 0.9 + 0.3 * (k as f64 / tried as f64)).collect(),
    };
    (0..n).map(row).collect()
}

#[test]
fn figures_are_legible_at_any_size() {
    let mut scenes: Vec<Scene> = Vec::new();
    for n in [1, 3, 25] {
        scenes.push(fig::ratio::scene(&ratios(n, &[1.134, 1.003, 0.962, 1.021, 0.88, 1.3], 1.01), &frame()));
        scenes.push(fig::ratio::scene(&ratios(n, &[250.0, 0.004, 1.0, 12.5, 0.3], 1.2), &frame()));
        scenes.push(fig::ratio::scene(&ratios(n, &[1.0001, 0.9999], 1.00001), &frame()));
        scenes.push(fig::wall::scene(&walls(n), &frame()));
    }
    for (models, tests, scale) in [(1, 1, 1.0), (1, 3, 1.0), (5, 5, 0.9), (5, 5, 30.0), (5, 5, 0.001)] {
        scenes.push(fig::throughput::scene(&rates(models, tests, scale), &frame()));
    }
    for (n, speedup, tried) in [(1, 1.0, 0), (2, 1.2, 3), (10, 1.05, 300), (10, 3.0, 2)] {
        scenes.push(fig::sweep::scene(&kernels(n, speedup, tried), &frame()));
    }
    scenes.iter().for_each(check::legible);
}
