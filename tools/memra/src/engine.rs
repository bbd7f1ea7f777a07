//! From the configuration to a loaded model and a session.

use crate::config::KvType;
use crate::context::Context;
use crate::output::say;
use anyhow::Context as _;
use memra_engine::model::{LoadOptions, Model, ModelFile};
use memra_engine::{Fault, Session, SessionOptions};
use memra_harness::sweep::{load_table, table_path};
use memra_kernels::cpu;
use memra_kernels::dispatch::{Dispatcher, Table};
use memra_kernels::{DType, NumericClass};
use memra_probe::Ledger;
use std::path::Path;
use std::sync::Arc;

/// Threads of the configuration; 0 stands for every physical core.
pub(crate) fn threads(cx: &Context) -> usize {
    match cx.config().engine.threads.get() {
        0 => cpu::physical_cores(),
        given => given,
    }
}

/// What chooses kernel configurations, as `engine.dispatch` says.
pub(crate) fn dispatcher(cx: &Context) -> anyhow::Result<Dispatcher> {
    let threads = threads(cx);
    match cx.config().engine.dispatch.as_str() {
        "default" => Ok(Dispatcher::defaults(threads)),
        "auto" => {
            let (data, class) = (&cx.config().paths.data, cpu::device_class());
            let table = load_table(data, &class)?;
            let name = table_path(data, &class).display().to_string();
            let user = (!table.entries.is_empty()).then_some((name, table));
            Ok(Dispatcher::with_embedded(user, &class, threads)?)
        }
        file => {
            let text = std::fs::read_to_string(file).with_context(|| {
                format!("engine.dispatch = {file} (auto, default, or the file of a table)")
            })?;
            Ok(Dispatcher::new(vec![(file.to_owned(), Table::parse(file, &text)?)], threads))
        }
    }
}

/// Session options of the configuration.
pub(crate) fn session_options(cx: &Context) -> anyhow::Result<SessionOptions> {
    let engine = &cx.config().engine;
    Ok(SessionOptions {
        class: engine.class,
        threads: threads(cx),
        dispatcher: Arc::new(dispatcher(cx)?),
        kv: match engine.kv {
            KvType::F16 => DType::F16,
            KvType::F32 => DType::F32,
        },
        context: Some(engine.context).filter(|&context| context > 0),
        fault: fault(cx),
        ..SessionOptions::default()
    })
}

/// Planted faults of the configuration.
pub(crate) fn fault(cx: &Context) -> Fault {
    let fault = &cx.config().fault;
    Fault {
        slow: fault.slow.fraction(),
        wrong: Some(fault.wrong.clone()).filter(|family| !family.is_empty()),
    }
}

/// Opens and checks a model file, and reads no weights.
pub(crate) fn open(path: &Path) -> anyhow::Result<ModelFile> {
    ModelFile::open(path).with_context(|| path.display().to_string())
}

/// Loads a model as the configuration says.
pub(crate) fn load(path: &Path, cx: &Context) -> anyhow::Result<Arc<Model>> {
    let options = LoadOptions { pack: cx.config().engine.pack, threads: threads(cx) };
    Model::load(path, &options).with_context(|| path.display().to_string())
}

/// Loads a model and makes a session over it.
pub(crate) fn session(path: &Path, cx: &Context) -> anyhow::Result<Session> {
    Ok(Session::new(load(path, cx)?, session_options(cx)?)?)
}

/// As [`session`], in class `f32` with an f32 KV cache where the configuration does not say otherwise: for commands
/// whose numbers are compared with other engines'.
pub(crate) fn exact_session(path: &Path, cx: &Context) -> anyhow::Result<Session> {
    let mut options = session_options(cx)?;
    if cx.loaded.is_default("engine.class") {
        options.class = NumericClass::F32;
    }
    if cx.loaded.is_default("engine.kv") {
        options.kv = DType::F32;
    }
    Ok(Session::new(load(path, cx)?, options)?)
}

/// This machine's measured read wall for a working set of `bytes`, in GB/s; `None` where it was never probed, and with a
/// warning where the ledger cannot be read: what was computed counts without it.
pub(crate) fn wall_gbps(bytes: u64, cx: &Context) -> Option<f64> {
    match Ledger::load(&cx.config().paths.data, &cpu::device_class()) {
        Ok(ledger) => ledger.and_then(|ledger| ledger.wall_gbps(bytes)),
        Err(error) => {
            say!("warning: {error}");
            None
        }
    }
}
