//! What `memra inspect` says, as data.

use super::{Args, KvTypes};
use crate::config::KvType;
use crate::context::Context;
use crate::engine;
use crate::exit::describe;
use memra_engine::CHUNK;
use memra_engine::program::Bucket;
use memra_formats::{CacheBytes, Checkpoint, Footprint, LayerCache, ModelShape, Summary, TensorRow, Unknown};
use memra_kernels::{DType, NumericPath};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Context where neither arguments nor configuration name one, unless the model was trained for less.
const USUAL_CONTEXT: u64 = 4096;

/// A model in figures; bytes unless a name says otherwise. What is not known is `null`, and why is in `unknown`.
#[derive(Serialize)]
pub(super) struct Report<'a> {
    pub(super) path: String,
    #[serde(flatten)]
    pub(super) summary: Summary,
    #[serde(flatten)]
    pub(super) shape: ModelShape,
    pub(super) n_vocab: Option<u64>,
    /// Parameters that a token is computed with.
    pub(super) n_params_active: Option<u64>,
    /// Whether logits come from the token embeddings.
    pub(super) tied_embeddings: Option<bool>,
    /// Weights that one decoded token reads.
    pub(super) decode_weight_bytes: Option<u64>,
    /// Context of the figures below, in tokens.
    pub(super) context: u64,
    /// Types of cached keys and values.
    pub(super) kv_types: [DType; 2],
    /// Keys and values that a token adds, while windows are not full.
    pub(super) kv_bytes_per_token: Option<u64>,
    /// Keys and values of the context.
    pub(super) kv_bytes: Option<u64>,
    /// Keys and values that one decoded token reads at that context.
    pub(super) decode_kv_bytes: Option<u64>,
    /// Recurrent states.
    pub(super) state_bytes: Option<u64>,
    /// Working buffers, where this build can run the model.
    pub(super) buffer_bytes: Option<u64>,
    /// Keys and values of the context as this build keeps them, where that is more: it may not cut windows.
    pub(super) kv_bytes_here: Option<u64>,
    /// Weights, cache and what is known of buffers.
    pub(super) memory_bytes: Option<u64>,
    /// Figure, and why it is not known.
    pub(super) unknown: BTreeMap<&'static str, String>,
    /// Whether this build can run it, and what it lacks.
    pub(super) runnable: bool,
    pub(super) not_runnable: Option<String>,
    /// Why this build cannot turn text into its tokens.
    pub(super) no_tokenizer: Option<String>,
    #[serde(skip)]
    pub(super) layers: Vec<LayerCache>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tensors: Option<Vec<TensorRow<'a>>>,
}

impl<'a> Report<'a> {
    pub(super) fn new(
        path: &Path,
        model: &'a Checkpoint,
        args: &Args,
        cx: &Context,
    ) -> anyhow::Result<Report<'a>> {
        let summary = model.summary();
        let configured = Some(cx.config().engine.context as u64).filter(|&context| context > 0);
        let usual = summary.context_length.map_or(USUAL_CONTEXT, |trained| trained.min(USUAL_CONTEXT));
        let context = args.context.or(configured).unwrap_or(usual);
        let kv = args.kv.unwrap_or_else(|| {
            let dtype = match cx.config().engine.kv {
                KvType::F16 => DType::F16,
                KvType::F32 => DType::F32,
            };
            KvTypes { k: dtype, v: dtype }
        });
        let Footprint { shape, n_vocab, decode, cache } = model.footprint();
        let (here, not_runnable) = match here(path, context, kv, cx) {
            Ok(here) => (Some(here), None),
            Err(error) => (None, Some(describe(&error))),
        };
        let mut unknown = BTreeMap::new();
        let sizes = cache.as_ref().map_err(Clone::clone).and_then(|cache| cache.bytes(context, kv.k, kv.v));
        let (weights, sizes) = (decode.as_ref().ok(), note(&mut unknown, "kv_bytes", &sizes));
        note(&mut unknown, "decode_weight_bytes", &decode);
        let buffer_bytes = here.as_ref().map(|here| here.buffer_bytes);
        let kv_bytes = sizes.map(|sizes| sizes.kept);
        let kv_bytes_here =
            here.as_ref().and_then(|here| here.kv_bytes).filter(|&kept| Some(kept) > kv_bytes);
        let all = |sizes: &CacheBytes| {
            let kept = summary.tensor_bytes.checked_add(kv_bytes_here.unwrap_or(sizes.kept))?;
            kept.checked_add(sizes.state)?.checked_add(buffer_bytes.unwrap_or_default())
        };
        Ok(Report {
            path: path.display().to_string(),
            n_params_active: weights.map(|weights| weights.active_params),
            tied_embeddings: weights.map(|weights| weights.is_tied),
            decode_weight_bytes: weights.map(|weights| weights.bytes),
            context,
            kv_types: [kv.k, kv.v],
            kv_bytes_per_token: sizes.map(|sizes| sizes.per_token),
            kv_bytes,
            kv_bytes_here,
            decode_kv_bytes: sizes.map(|sizes| sizes.read),
            state_bytes: sizes.map(|sizes| sizes.state),
            memory_bytes: sizes.and_then(all),
            buffer_bytes,
            unknown,
            runnable: not_runnable.is_none(),
            not_runnable,
            no_tokenizer: here.and_then(|here| here.no_tokenizer),
            layers: cache.map(|cache| cache.layers().to_vec()).unwrap_or_default(),
            tensors: args.tensors.then(|| model.tensors().map(TensorRow::from).collect()),
            summary,
            shape,
            n_vocab,
        })
    }
}

/// The figure, or nothing and the reason among the unknown ones.
fn note<'f, T>(
    unknown: &mut BTreeMap<&'static str, String>,
    name: &'static str,
    figure: &'f Result<T, Unknown>,
) -> Option<&'f T> {
    figure.as_ref().map_err(|reason| unknown.insert(name, reason.to_string())).ok()
}

/// What this build makes of a model that it can run.
struct Here {
    buffer_bytes: u64,
    kv_bytes: Option<u64>,
    no_tokenizer: Option<String>,
}

fn here(path: &Path, context: u64, kv: KvTypes, cx: &Context) -> anyhow::Result<Here> {
    let file = engine::open(path)?;
    let rows = usize::try_from(context)?.min(file.config().n_ctx_train);
    let class = engine::session_options(cx)?.class;
    let bucket = |path, n, kv| Bucket { path, class, rows: n, logits: 1, kv, context: rows };
    let decode = file.program(bucket(NumericPath::Decode, 1, kv.k))?;
    let prompt = file.program(bucket(NumericPath::Prompt, CHUNK.min(rows), kv.k))?;
    let kv_bytes = decode.state_bytes_per_token().checked_mul(context).filter(|_| kv.k == kv.v);
    let no_tokenizer = file.tokenizer().err().map(|error| error.to_string());
    Ok(Here { buffer_bytes: decode.buffer_bytes() + prompt.buffer_bytes(), kv_bytes, no_tokenizer })
}
