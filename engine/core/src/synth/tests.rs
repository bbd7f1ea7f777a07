use super::*;
use crate::model::{LoadOptions, Model};
use crate::{Session, SessionOptions, logits};
use memra_formats::Gguf;
use std::fs;

fn request(name: &str) -> Request {
    Request { preset: Preset::find(name).unwrap(), quant: None, seed: 1, layers: None }
}

/// A real architecture and vocabulary at a size that can be computed with here.
fn reduced(shape: &shape::Shape) -> Synth {
    let shape = shape::Shape {
        n_layers: 3,
        n_embd: 256,
        n_heads: 4,
        n_kv_heads: 2,
        head_dim: 64,
        n_ff: 512,
        moe: shape.moe.map(|_| shape::Moe { n_experts: 4, n_used: 2, n_ff: 256 }),
        ..*shape
    };
    Synth::real("reduced", &shape, Quant::Q4_K_M, 1).unwrap()
}

fn little() -> Synth {
    reduced(&shape::LLAMA_3_8B)
}

/// Parameters and bytes of the weights of a preset.
fn numbers(name: &str, quant: Quant) -> (u64, u64) {
    let preset::Shape::Real(shape) = &Preset::find(name).unwrap().shape else { panic!("{name} is a toy") };
    let plans = tensors::plans(shape, quant);
    (plans.iter().map(|plan| plan.values() as u64).sum(), plans.iter().map(Plan::bytes).sum())
}

fn go_on(_: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn real_shapes_have_the_published_numbers_of_parameters() {
    let expected = [
        ("qwen3-0.6b", 596_049_920),
        ("qwen3-8b", 8_190_735_360),
        ("qwen3-30b-a3b", 30_532_122_624),
        ("llama-3-8b", 8_030_261_248),
        ("gemma-3-270m", 268_098_176),
        ("gemma-3-1b", 999_885_952),
        ("gemma-3-4b", 3_880_099_328),
    ];
    for (name, n_params) in expected {
        assert_eq!(numbers(name, Quant::Q4_K_M).0, n_params, "{name}");
    }
    assert_eq!(expected.len(), PRESETS.iter().filter(|preset| preset.is_real()).count());
}

#[test]
fn a_mix_of_types_has_the_usual_size() {
    // Bits a weight of the files that llama.cpp's quantiser makes of these shapes.
    for (name, quant, low, high) in [
        ("qwen3-8b", Quant::Q4_K_M, 4.85, 4.95),
        ("llama-3-8b", Quant::Q4_K_M, 4.85, 4.95),
        ("qwen3-8b", Quant::Q8_0, 8.5, 8.52),
        ("qwen3-8b", Quant::Q4_0, 4.6, 4.7),
        ("qwen3-30b-a3b", Quant::BF16, 16.0, 16.05),
    ] {
        let (n_params, bytes) = numbers(name, quant);
        let bits = 8.0 * bytes as f64 / n_params as f64;
        assert!((low..high).contains(&bits), "{name} {quant}: {bits} bits a weight");
    }
}

/// A real file, made by llama.cpp's converter and quantiser, against what is made up in its place.
#[test]
fn a_made_up_gemma_has_the_real_ones_tensors_and_hyperparameters() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/gemma-3-270m-q4_k_m.gguf");
    if !path.exists() {
        eprintln!("NOT RUN: {} is absent; fetch it with tools/fetch-models", path.display());
        return;
    }
    let real = Gguf::open(&path).unwrap();
    let mut tensors: Vec<_> =
        real.tensors().map(|t| (t.name().to_owned(), t.dims().to_vec(), t.dtype().unwrap())).collect();
    let synth = Synth::new(&request("gemma-3-270m")).unwrap();
    let mut plans: Vec<_> = synth.plans.iter().map(|p| (p.name.clone(), p.dims.clone(), p.dtype)).collect();
    tensors.sort();
    plans.sort();
    assert_eq!(plans, tensors);

    // The header alone, which is enough for its metadata.
    let mut bytes = Vec::new();
    let header = metadata::header("gemma-3-270m", &shape::GEMMA_3_270M, Quant::Q4_K_M).unwrap();
    header.begin(&mut bytes).unwrap().finish().unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("m.gguf"), bytes).unwrap();
    let made = Gguf::open(folder.path().join("m.gguf")).unwrap();
    for (key, value) in real.metadata().iter() {
        if key.starts_with("gemma3.") || key == "general.file_type" || key.ends_with("_token_id") {
            assert_eq!(made.metadata().iter().find(|(k, _)| *k == key).map(|(_, v)| v), Some(value), "{key}");
        }
    }
}

#[test]
fn a_composed_file_is_as_large_as_said_and_the_same_for_the_same_seed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    let size = little().file_bytes().unwrap();
    let mut told = 0;
    let flow = little().write(&path, &mut |written| {
        assert!(written > told);
        told = written;
        ControlFlow::Continue(())
    });
    assert_eq!(flow.unwrap(), ControlFlow::Continue(()));
    assert_eq!(fs::metadata(&path).unwrap().len(), size);
    let gguf = Gguf::open(&path).unwrap();
    assert_eq!(gguf.tensors().map(|t| t.data().len() as u64).sum::<u64>(), told);
    assert_eq!(gguf.metadata().get::<Vec<&str>>("tokenizer.ggml.tokens").unwrap().len(), 128_256);

    let again = folder.path().join("again.gguf");
    _ = little().write(&again, &mut go_on).unwrap();
    assert!(fs::read(&path).unwrap() == fs::read(&again).unwrap(), "the same seed gave two files");
}

#[test]
fn composed_models_compute_and_do_not_repeat_their_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    for shape in [shape::LLAMA_3_8B, shape::QWEN3_0_6B, shape::QWEN3_30B_A3B, shape::GEMMA_3_4B] {
        let name = shape.name;
        _ = reduced(&shape).write(&path, &mut go_on).unwrap();
        let model = Model::load(&path, &LoadOptions::default()).unwrap();
        let mut session = Session::new(model, SessionOptions::default()).unwrap();
        let ids: Vec<u32> = (1..9).map(|i| i * 7919).collect();
        let rows = logits::logits(&mut session, &ids).unwrap();
        for (row, &id) in rows.chunks_exact(shape.n_vocab()).zip(&ids) {
            let (low, high) =
                row.iter().fold((f32::MAX, f32::MIN), |(low, high), &v| (low.min(v), high.max(v)));
            assert!(row.iter().all(|v| v.is_finite()), "{name}");
            assert!((20.0..60.0).contains(&(high - low)), "{name}: logits from {low} to {high}");
            assert!(
                row[id as usize] < 0.75 * high,
                "{name}: token {id} has {}, the likeliest {high}",
                row[id as usize]
            );
        }
    }
}

#[test]
fn what_fails_or_is_stopped_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    fs::write(&path, "old").unwrap();
    let files = || fs::read_dir(folder.path()).unwrap().count();

    let stopped = little().write(&path, &mut |written| match written {
        0..2_000_000 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    });
    assert_eq!((stopped.unwrap(), files()), (ControlFlow::Break(()), 1));

    let partial = folder.path().join("m.gguf.partial");
    std::os::unix::fs::symlink("/dev/full", &partial).unwrap();
    let full = little().write(&path, &mut go_on).unwrap_err();
    assert!(full.to_string().contains("No space left"), "{full}");
    assert_eq!((files(), fs::read_to_string(&path).unwrap().as_str()), (1, "old"));

    let busy = file::Partial::create(&path).unwrap();
    let error = little().write(&path, &mut go_on).unwrap_err();
    assert!(error.to_string().contains("another process"), "{error}");
    drop(busy);
    _ = Synth::new(&request("tiny")).unwrap().write(&path, &mut go_on).unwrap();
    assert_eq!(files(), 1);
    Gguf::open(&path).unwrap();

    let device = tiny("/dev/null".as_ref(), 1).unwrap_err();
    assert!(device.to_string().contains("not a regular file"), "{device}");
    let absent = tiny(&folder.path().join("no/such/folder/m.gguf"), 1).unwrap_err();
    assert!(absent.to_string().contains("no such folder"), "{absent}");
}

#[test]
fn requests_that_a_preset_cannot_meet_are_refused() {
    let error = |request| Synth::new(&request).unwrap_err().to_string();
    assert!(error(Request { quant: Some(Quant::Q8_0), ..request("tiny") }).contains("one mix of types"));
    assert!(error(Request { layers: Some(1), ..request("small") }).contains("one number of layers"));
    assert!(error(Request { layers: Some(0), ..request("qwen3-8b") }).contains("36 layers"));
    assert!(error(Request { layers: Some(37), ..request("qwen3-8b") }).contains("36 layers"));
    assert!(Synth::new(&Request { layers: Some(2), ..request("qwen3-30b-a3b") }).is_ok());
    assert!(Preset::find("huge").is_none());
}
