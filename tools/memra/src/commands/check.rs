//! `memra check`: do the kernels, and a model as a whole, compute what they should?

use crate::context::{Context, print_json, print_table};
use crate::exit::{Exit, Failure};
use crate::output::say;
use crate::{engine, models};
use memra_engine::model::{Model, ModelFile};
use memra_engine::selfcheck::{SelfCheck, selfcheck};
use memra_harness::gate::{CheckReport, judge_check};
use memra_harness::sweep;
use memra_kernels::check::CheckRow;
use memra_kernels::cpu::Pool;
use memra_kernels::{check, family};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Arguments of `memra check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra check
  memra check --kernel 'matmul/Q4_1/*'
  memra check --model SmolLM2 --json

Exits 4 when anything is wrong. With a model: the same bits however the prompt
is grouped, and a bounded distance to class f32.")]
pub(crate) struct Args {
    /// Only kernels that match this glob: a family, or a whole key
    #[arg(long, value_name = "GLOB", default_value = "*")]
    kernel: String,

    /// Check this model too
    #[arg(short, long)]
    model: Option<String>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    kernels: Vec<CheckRow>,
    model: Option<ModelReport>,
}

#[derive(Serialize)]
struct ModelReport {
    #[serde(flatten)]
    check: SelfCheck,
    /// Reduction orders of the kernels that the model runs: while these stay the same, so must the bits.
    order_keys: BTreeSet<String>,
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    known_fault(cx)?;
    let pool = Pool::new(engine::threads(cx));
    let kernels =
        check::run(&|key| sweep::matches(&args.kernel, key), engine::fault(cx).wrong.as_deref(), &pool);
    if kernels.is_empty() {
        return Err(Failure::usage(format!(
            "--kernel {}: no kernel matches it; memra check lists all",
            args.kernel
        )));
    }
    let model = args.model.as_deref().map(|model| model_report(model, cx)).transpose()?;
    let report = Report { kernels, model };
    let json = serde_json::to_vec(&report)?;
    // Judged by what the gate judges it by, read back from what the gate reads.
    let wrong = CheckReport::parse(&json).map(|report| judge_check(&report)).map_err(Failure::usage)?;
    if args.json {
        print_json(&report)?
    } else {
        print(&report)?
    }
    for problem in &wrong {
        say!("wrong: {problem}");
    }
    Ok(if wrong.is_empty() { Exit::Pass } else { Exit::Incorrect })
}

/// Refuses a planted fault in a kernel family that there is not.
pub(super) fn known_fault(cx: &Context) -> anyhow::Result<()> {
    let Some(wrong) = engine::fault(cx).wrong else { return Ok(()) };
    let names: Vec<_> = family::families().iter().map(|family| family.name()).collect();
    if names.contains(&wrong.as_str()) {
        return Ok(());
    }
    let names = names.join(", ");
    Err(Failure::usage(format!("fault.wrong is {wrong}; there is no such kernel family, but: {names}")))
}

fn model_report(model: &str, cx: &Context) -> anyhow::Result<ModelReport> {
    let path = models::resolve(model, cx)?;
    let model: Arc<Model> = engine::load(&path, cx)?;
    let options = engine::session_options(cx)?;
    Ok(ModelReport { check: selfcheck(&model, &options)?, order_keys: order_keys(model.file(), cx)? })
}

fn order_keys(file: &ModelFile, cx: &Context) -> anyhow::Result<BTreeSet<String>> {
    let dispatcher = engine::dispatcher(cx)?;
    let mut keys = BTreeSet::new();
    for item in super::plan::programs(file, 1, cx)?.iter().flat_map(|program| program.work_list()) {
        let Some(family) = family::family(&item.key.family) else { continue };
        let choice = dispatcher.choose(family, &item.key);
        keys.insert(format!("{}: {}", item.key, family.order_key(&item.key, &choice.config)));
    }
    Ok(keys)
}

fn print(report: &Report) -> anyhow::Result<()> {
    let row = |row: &CheckRow| {
        let status = format!("{:?}", row.status).to_lowercase();
        vec![
            row.key.clone(),
            row.configs.to_string(),
            format!("{:.3}", row.max_err),
            status,
            row.reason.clone().unwrap_or_default(),
        ]
    };
    let mut rows: Vec<_> = report.kernels.iter().map(row).collect();
    if let Some(ModelReport { check, .. }) = &report.model {
        let status = if check.identical { "same bits" } else { "DIFFERENT BITS" };
        rows.push(vec![
            format!("model, {} tokens", check.tokens),
            check.groupings.len().to_string(),
            format!("{:.4}", check.mean_abs_dlogprob),
            status.to_owned(),
            check.first_difference.clone().unwrap_or_default(),
        ]);
    }
    print_table(&["what", "configs", "max err", "status", "reason"], &[1, 2], &rows)
}
