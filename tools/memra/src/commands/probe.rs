//! `memra probe`: this machine's walls.

use crate::context::{Context, print_json, print_table};
use crate::engine;
use crate::exit::{Exit, Failure};
use crate::output::say;
use anyhow::Context as _;
use memra_probe::{Ledger, Options};

/// Arguments of `memra probe`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra probe
  memra probe --max-mib 512 --json

The figures go to DATA/devices/<device-class>.json, with every sample. Run it
on an idle machine: best and median far apart mean that it was not.")]
pub(crate) struct Args {
    /// Largest working set, in MiB [default: 2048, at most a quarter of the
    /// free memory]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    max_mib: Option<u64>,

    /// Samples a point
    #[arg(short = 'r', long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: u32,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Largest working set where none is asked for.
const DEFAULT_MAX_BYTES: u64 = 2 << 30;

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    let threads = engine::threads(cx);
    let free = memory_available();
    let max_bytes = match (args.max_mib.map(|mib| mib << 20), free) {
        (Some(asked), Some(free)) if asked > free => {
            let message = format!("--max-mib {}: only {} MiB of memory are free", asked >> 20, free >> 20);
            return Err(Failure::error(Exit::Unfit, message));
        }
        (Some(asked), _) => asked,
        (None, free) => free.map_or(DEFAULT_MAX_BYTES, |free| DEFAULT_MAX_BYTES.min(free / 4)),
    };
    let ledger = measure(Options { max_bytes, samples: args.repetitions as usize, threads }, cx);
    let path = ledger.save(&cx.config().paths.data)?;
    if args.json {
        print_json(&ledger)?;
    } else {
        print(&ledger)?;
    }
    say!("written to {}", path.display());
    Ok(Exit::Pass)
}

/// Measures with a progress bar.
pub(crate) fn measure(options: Options, cx: &Context) -> Ledger {
    let bar = cx.progress(0, "probing");
    let today = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    let ledger = memra_probe::measure(options, &today, &mut |done, total| {
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    ledger
}

fn print(ledger: &Ledger) -> anyhow::Result<()> {
    say!("{} ({}, {} cores, {})", ledger.device_class, ledger.cpu, ledger.cores, ledger.isa);
    let points =
        ledger.read.iter().map(|point| ("read", point)).chain(ledger.copy.iter().map(|p| ("copy", p)));
    let mut rows: Vec<_> = points
        .map(|(what, point)| {
            vec![
                what.to_owned(),
                format!("{} MiB", point.bytes >> 20),
                point.threads.to_string(),
                format!("{:.1} GB/s", point.best_gbps),
                format!("{:.1} GB/s", point.median_gbps),
            ]
        })
        .collect();
    for point in &ledger.handoff {
        let best =
            point.samples_ns.iter().min().copied().unwrap_or(0) as f64 / point.regions_per_sample as f64;
        let micros = |ns: f64| format!("{:.2} µs", ns / 1e3);
        rows.push(vec![
            "hand-off".to_owned(),
            String::new(),
            point.threads.to_string(),
            micros(best),
            micros(point.median_ns),
        ]);
    }
    print_table(&["what", "working set", "threads", "best", "median"], &[1, 2, 3, 4], &rows)
        .context("printing the probe's figures")
}

/// Memory that can be used without swapping, in bytes, where the system says.
pub(crate) fn memory_available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}
