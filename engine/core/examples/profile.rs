//! Measures prefill and decode of a model and prints where the time goes: `profile MODEL [THREADS]`.
#![allow(clippy::unwrap_used, reason = "a developer's tool")]

use memra_engine::bench::{BenchOptions, BenchTest, bench};
use memra_engine::model::{LoadOptions, Model};
use memra_engine::{OpTime, Session, SessionOptions};
use memra_kernels::dispatch::Dispatcher;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().unwrap();
    let threads: usize = args.next().map_or(2, |t| t.parse().unwrap());
    let start = Instant::now();
    let model = Model::load(path.as_ref(), &LoadOptions { threads, ..LoadOptions::default() }).unwrap();
    println!(
        "load {:.0} ms, {:.1} MB resident",
        start.elapsed().as_secs_f64() * 1e3,
        model.resident_bytes() as f64 / 1e6
    );
    let start = Instant::now();
    let dispatcher = Arc::new(Dispatcher::defaults(threads));
    let mut session =
        Session::new(model, SessionOptions { threads, dispatcher, ..SessionOptions::default() }).unwrap();
    println!("session {:.0} ms", start.elapsed().as_secs_f64() * 1e3);
    let options = BenchOptions { repetitions: 3, ..BenchOptions::default() };
    for test in
        [BenchTest { n_prompt: 512, n_gen: 0, n_depth: 0 }, BenchTest { n_prompt: 0, n_gen: 128, n_depth: 0 }]
    {
        let result = bench(&mut session, &test, &options).unwrap();
        let rates: Vec<String> = result
            .samples_ns
            .iter()
            .map(|ns| format!("{:.1}", (test.n_prompt + test.n_gen) as f64 * 1e9 / *ns as f64))
            .collect();
        println!("{test:?}: {} tok/s", rates.join(" "));
    }
    session.profile(true);
    let once = BenchOptions { repetitions: 1, warmup: false, ..options };
    for test in
        [BenchTest { n_prompt: 512, n_gen: 0, n_depth: 0 }, BenchTest { n_prompt: 0, n_gen: 128, n_depth: 0 }]
    {
        session.profile(true);
        bench(&mut session, &test, &once).unwrap();
        print_times(&session.op_times());
    }
    println!("memory {:.1} MB", session.memory_bytes() as f64 / 1e6);
}

/// Sums by op name without its layer.
fn print_times(times: &[OpTime]) {
    let mut sums: BTreeMap<(&str, &str), Duration> = BTreeMap::new();
    let mut total = Duration::ZERO;
    for time in times.iter().filter(|t| t.calls > 0) {
        let name = time.name.rsplit_once('.').map_or(time.name.as_str(), |(_, last)| last);
        let name = if name == "q8" { "quantise" } else { name };
        *sums.entry((time.family, name)).or_default() += time.total;
        total += time.total;
    }
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.1));
    println!("{:.1} ms in ops", total.as_secs_f64() * 1e3);
    for ((family, name), time) in rows {
        let share = 100.0 * time.as_secs_f64() / total.as_secs_f64();
        println!("{share:6.2} % {:9.2} ms  {family} {name}", time.as_secs_f64() * 1e3);
    }
}
