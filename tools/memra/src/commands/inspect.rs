//! `memra inspect`: what a model holds, and what it needs to run.

mod page;
mod report;

use crate::context::{Context, print_json, print_table};
use crate::exit::Exit;
use crate::models;
use anyhow::Context as _;
use memra_formats::Checkpoint;
use memra_kernels::DType;
use report::Report;

/// Arguments of `memra inspect`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Figures that the file does not tell are `unknown`, with the reason. Exit code 7 when its metadata are damaged.

Examples:
  memra inspect SmolLM2
  memra inspect Qwen3-8B/ --context 32768 --kv q8_0
  memra inspect model-00001-of-00003.gguf --tensors --json")]
pub(crate) struct Args {
    /// GGUF file or any part of a split one, folder with config.json and safetensors, or the name of a fetched model
    model: String,

    /// Tokens of context that memory is reckoned for; engine.context otherwise
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    context: Option<u64>,

    /// Type of keys and values in the cache (f16, q8_0, …), or of each: q8_0,q5_1; engine.kv otherwise
    #[arg(long, value_name = "TYPE", value_parser = kv_types)]
    kv: Option<KvTypes>,

    /// List every tensor
    #[arg(long)]
    tensors: bool,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Types of cached keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KvTypes {
    k: DType,
    v: DType,
}

fn kv_types(text: &str) -> Result<KvTypes, String> {
    let dtype = |name: &str| {
        let known = || DType::all().map(|dtype| dtype.to_string()).collect::<Vec<_>>().join(", ");
        let known_as = if name.eq_ignore_ascii_case("fp8") { "F8_E4M3" } else { name };
        DType::from_name(known_as).ok_or_else(|| format!("`{name}` is not one of {}", known()))
    };
    let (k, v) = text.split_once(',').unwrap_or((text, text));
    Ok(KvTypes { k: dtype(k)?, v: dtype(v)? })
}

pub(crate) fn run(args: &Args, cx: &Context) -> anyhow::Result<Exit> {
    let path = models::resolve(&args.model, cx)?;
    let model = Checkpoint::open(&path).with_context(|| path.display().to_string())?;
    let report = Report::new(&path, &model, args, cx)?;
    if args.json {
        print_json(&report)?;
    } else {
        page::print(&report)?;
        if let Some(tensors) = &report.tensors {
            let row = |t: &memra_formats::TensorRow<'_>| {
                vec![t.name.to_owned(), t.dtype.clone(), format!("{:?}", t.dims), t.bytes.to_string()]
            };
            let rows: Vec<_> = tensors.iter().map(row).collect();
            print_table(&["tensor", "type", "dims", "bytes"], &[3], &rows)?;
        }
    }
    Ok(if report.summary.problems.is_empty() { Exit::Pass } else { Exit::Corrupt })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_keys_and_values() {
        let (f16, q8) = (DType::F16, DType::Q8_0);
        assert_eq!(kv_types("f16"), Ok(KvTypes { k: f16, v: f16 }));
        assert_eq!(kv_types("Q8_0,f16"), Ok(KvTypes { k: q8, v: f16 }));
        assert_eq!(kv_types("fp8").map(|kv| kv.k), Ok(DType::F8_E4M3));
        for wrong in ["", "f17", "f16,", "f16,f16,f16"] {
            assert!(kv_types(wrong).unwrap_err().contains("is not one of F32, F16"), "{wrong}");
        }
    }
}
