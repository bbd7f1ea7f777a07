//! `memra inspect`: what a model file holds.

use crate::context::{Context, print_json, print_table};
use crate::exit::{Exit, describe};
use crate::output::stdout;
use crate::{engine, models};
use anyhow::Context as _;
use memra_formats::Gguf;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// Arguments of `memra inspect`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  memra inspect SmolLM2
  memra inspect model.gguf --tensors --json")]
pub(crate) struct Args {
    /// Model file, or the name of a fetched model
    model: String,

    /// List every tensor
    #[arg(long)]
    tensors: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    path: String,
    gguf_version: u32,
    file_bytes: u64,
    architecture: String,
    name: Option<String>,
    n_params: u64,
    /// Data type, tensors, bytes.
    types: Vec<TypeShare>,
    tokenizer: Option<String>,
    /// What the engine makes of it; absent where `unsupported` says why.
    engine: Option<EngineView>,
    unsupported: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tensors: Option<Vec<TensorRow>>,
}

#[derive(Serialize)]
struct TypeShare {
    dtype: String,
    n_tensors: usize,
    bytes: usize,
}

#[derive(Serialize)]
struct EngineView {
    n_layers: usize,
    n_embd: usize,
    n_heads: usize,
    n_kv_heads: usize,
    head_dim: usize,
    n_ff: usize,
    n_vocab: usize,
    n_ctx_train: usize,
    /// Bytes of weights that one decoded token reads.
    weight_bytes_per_token: u64,
    /// Bytes of KV cache a token of context.
    kv_bytes_per_token: u64,
    /// Context of the figure below: the configured one.
    context: usize,
    /// Weights, KV cache and buffers at that context.
    memory_bytes: u64,
}

#[derive(Serialize)]
struct TensorRow {
    name: String,
    dtype: String,
    dims: Vec<usize>,
    bytes: usize,
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    let path = models::resolve(&args.model, cx)?;
    let report = report(&path, args.tensors, cx)?;
    if args.json {
        print_json(&report)?
    } else {
        print(&report)?
    }
    Ok(Exit::Pass)
}

fn report(path: &Path, tensors: bool, cx: &Context) -> anyhow::Result<Report> {
    let gguf = Gguf::open(path).with_context(|| path.display().to_string())?;
    let meta = gguf.metadata();
    let text = |key: &str| meta.find::<&str>(key).map(|value| value.map(str::to_owned));
    let mut types: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for tensor in gguf.tensors() {
        let share = types.entry(tensor.storage().to_string()).or_default();
        *share = (share.0 + 1, share.1 + tensor.data().len());
    }
    let tokenizer = text("tokenizer.ggml.model")?
        .map(|model| anyhow::Ok(format!("{model}/{}", text("tokenizer.ggml.pre")?.unwrap_or_default())))
        .transpose()?;
    let (engine, unsupported) = match engine_view(path, cx) {
        Ok(view) => (Some(view), None),
        Err(error) => (None, Some(describe(&error))),
    };
    let rows = || {
        let row = |t: memra_formats::Tensor<'_>| TensorRow {
            name: t.name().to_owned(),
            dtype: t.storage().to_string(),
            dims: t.dims().to_vec(),
            bytes: t.data().len(),
        };
        gguf.tensors().map(row).collect()
    };
    Ok(Report {
        path: path.display().to_string(),
        gguf_version: gguf.version(),
        file_bytes: gguf.file_bytes(),
        architecture: text("general.architecture")?.unwrap_or_default(),
        name: text("general.name")?,
        n_params: gguf.tensors().map(|tensor| tensor.n_values() as u64).sum(),
        types: types
            .into_iter()
            .map(|(dtype, (n_tensors, bytes))| TypeShare { dtype, n_tensors, bytes })
            .collect(),
        tokenizer,
        engine,
        unsupported,
        tensors: tensors.then(rows),
    })
}

fn engine_view(path: &Path, cx: &Context) -> anyhow::Result<EngineView> {
    let file = engine::open(path)?;
    let config = file.config();
    let programs = super::plan::programs(&file, 1, cx)?;
    let [decode, prompt] = &programs[..] else {
        anyhow::bail!("the model has no decode and prompt Programs")
    };
    let context = decode.bucket.context;
    let kv = decode.state_bytes_per_token();
    let buffers = decode.buffer_bytes() + prompt.buffer_bytes();
    Ok(EngineView {
        n_layers: config.n_layers,
        n_embd: config.n_embd,
        n_heads: config.n_heads,
        n_kv_heads: config.n_kv_heads,
        head_dim: config.head_dim,
        n_ff: config.n_ff,
        n_vocab: config.n_vocab,
        n_ctx_train: config.n_ctx_train,
        weight_bytes_per_token: decode.weight_bytes_read(),
        kv_bytes_per_token: kv,
        context,
        memory_bytes: decode.weight_bytes() + kv * context as u64 + buffers,
    })
}

fn print(report: &Report) -> anyhow::Result<()> {
    let mut out = stdout();
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let mut line = |what: &str, value: String| writeln!(out, "{what:<14}{value}");
    line("file", format!("{} (GGUF v{}, {})", report.path, report.gguf_version, mib(report.file_bytes)))?;
    line("name", report.name.clone().unwrap_or_default())?;
    line("architecture", report.architecture.clone())?;
    line("parameters", format!("{:.1} M", report.n_params as f64 / 1e6))?;
    for share in &report.types {
        line(
            "type",
            format!("{:<6}{:>4} tensors {:>12}", share.dtype, share.n_tensors, mib(share.bytes as u64)),
        )?;
    }
    line("tokenizer", report.tokenizer.clone().unwrap_or_else(|| "none".to_owned()))?;
    if let Some(engine) = &report.engine {
        line(
            "layers",
            format!("{} of width {}, feed-forward {}", engine.n_layers, engine.n_embd, engine.n_ff),
        )?;
        line("heads", format!("{} of {}, {} for KV", engine.n_heads, engine.head_dim, engine.n_kv_heads))?;
        line("vocabulary", engine.n_vocab.to_string())?;
        line("context", format!("{} (as trained)", engine.n_ctx_train))?;
        line("decode reads", format!("{} of weights a token", mib(engine.weight_bytes_per_token)))?;
        line("KV cache", format!("{} bytes a token", engine.kv_bytes_per_token))?;
        line("memory", format!("{} at context {}", mib(engine.memory_bytes), engine.context))?;
    }
    if let Some(reason) = &report.unsupported {
        line("not runnable", reason.clone())?;
    }
    if let Some(tensors) = &report.tensors {
        let rows: Vec<_> = tensors
            .iter()
            .map(|t| vec![t.name.clone(), t.dtype.clone(), format!("{:?}", t.dims), t.bytes.to_string()])
            .collect();
        print_table(&["tensor", "type", "dims", "bytes"], &[3], &rows)?;
    }
    Ok(())
}
