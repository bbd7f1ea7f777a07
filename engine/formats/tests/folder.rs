//! Model folders: several files with an index, and the documents beside them.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod common;

use common::{entry, header, safetensors};
use memra_formats::{Checkpoint, JsonError, ModelFolder, Safetensors, SafetensorsError, Summary};
use std::path::Path;
use tempfile::TempDir;

const INDEX: &str = "model.safetensors.index.json";
const CONFIG: &str =
    r#"{"model_type":"llama","max_position_embeddings":null,"text_config":{"max_position_embeddings":4096}}"#;

fn write(dir: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    std::fs::write(dir.join(name), bytes).unwrap();
}

/// An index of `(tensor, file)`.
fn index(map: &[(&str, &str)]) -> String {
    let map: Vec<_> = map.iter().map(|(tensor, file)| format!("{tensor:?}:{file:?}")).collect();
    format!(r#"{{"metadata":{{"total_size":24}},"weight_map":{{{}}}}}"#, map.join(","))
}

/// A model of two files.
fn model() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "config.json", CONFIG);
    let first = [entry("model.a.weight", "F32", "2", 0, 8), entry("model.b.weight", "BF16", "2,2", 8, 16)];
    write(dir.path(), "model-00001-of-00002.safetensors", safetensors(&header(&first), 16));
    let second = header(&[entry("lm_head.weight", "F32", "2", 0, 8)]);
    write(dir.path(), "model-00002-of-00002.safetensors", safetensors(&second, 8));
    let map = [
        ("lm_head.weight", "model-00002-of-00002.safetensors"),
        ("model.a.weight", "model-00001-of-00002.safetensors"),
        ("model.b.weight", "model-00001-of-00002.safetensors"),
    ];
    write(dir.path(), INDEX, index(&map));
    dir
}

#[test]
fn files_are_one_model() {
    let dir = model();
    let folder = ModelFolder::open(dir.path()).unwrap();
    let weights = folder.weights();
    assert!(weights.tensors().map(|t| t.name()).eq(["model.a.weight", "model.b.weight", "lm_head.weight"]));
    let file = |name: &str| dir.path().join(name);
    let paths = [file("model-00001-of-00002.safetensors"), file("model-00002-of-00002.safetensors")];
    assert_eq!(weights.paths(), paths);
    let size = |path| std::fs::metadata(path).unwrap().len();
    assert_eq!(weights.file_bytes(), paths.iter().map(size).sum::<u64>());
    assert_eq!(weights.tensor("model.b.weight").unwrap().data(), [8, 9, 10, 11, 12, 13, 14, 15]);
    assert_eq!(weights.tensor("lm_head.weight").unwrap().part(), 1);
    assert_eq!(folder.config().get::<&str>("model_type").unwrap(), "llama");
    assert!(folder.generation_config().unwrap().is_none() && folder.tokenizer().unwrap().is_none());
    // A file is opened alone when it is given alone; and a single file wins over an index, as in transformers.
    assert_eq!(Safetensors::open(&paths[1]).unwrap().tensors().len(), 1);
    write(dir.path(), "model.safetensors", safetensors("{}", 0));
    assert_eq!(ModelFolder::open(dir.path()).unwrap().weights().tensors().len(), 0);
}

#[test]
fn documents() {
    let dir = model();
    let folder = ModelFolder::open(dir.path()).unwrap();
    let write = |name: &str, text: &str| write(dir.path(), name, text);
    let template = || folder.chat_template();
    assert_eq!(template().unwrap(), None);
    write("tokenizer_config.json", r#"{"chat_template": null, "bos_token": "<s>"}"#);
    assert_eq!(template().unwrap(), None);
    write("tokenizer_config.json", r#"{"chat_template": "{{ a }}\n"}"#);
    assert_eq!(template().unwrap().as_deref(), Some("{{ a }}\n"));
    let named = r#"{"chat_template": [{"name":"rag","template":"r"},{"name":"default","template":"d\""}]}"#;
    write("tokenizer_config.json", named);
    assert_eq!(template().unwrap().as_deref(), Some("d\""));
    write("tokenizer_config.json", r#"{"chat_template": [{"name":"rag","template":"r"}]}"#);
    assert_eq!(template().unwrap(), None);
    write("tokenizer_config.json", r#"{"chat_template": 7}"#);
    let error = template().unwrap_err().to_string();
    assert!(error.contains("tokenizer_config.json: `chat_template`: invalid type: integer `7`"), "{error}");
    write("chat_template.jinja", "from a file");
    assert_eq!(template().unwrap().as_deref(), Some("from a file"));
    write("generation_config.json", r#"{"eos_token_id": [1, 2], "temperature": 0.6}"#);
    let generation = folder.generation_config().unwrap().unwrap();
    assert_eq!(generation.get::<Vec<u32>>("eos_token_id").unwrap(), [1, 2]);
    write("generation_config.json", "{");
    assert!(matches!(folder.generation_config(), Err(JsonError::Document { .. })));
    std::fs::write(dir.path().join("chat_template.jinja"), [0xFF]).unwrap();
    assert!(matches!(template(), Err(JsonError::NotText { .. })));
    std::fs::File::create(dir.path().join("chat_template.jinja")).unwrap().set_len(1 << 40).unwrap();
    assert!(matches!(template(), Err(JsonError::TooLarge { .. })));
}

/// The error of opening the model after a change.
fn refusal(change: impl Fn(&Path)) -> (SafetensorsError, String) {
    let dir = model();
    change(dir.path());
    let error = ModelFolder::open(dir.path()).unwrap_err();
    let text = error.to_string().replace(&dir.path().display().to_string(), "DIR");
    (error, text)
}

#[test]
fn missing_files() {
    let remove = |name: &'static str| move |dir: &Path| std::fs::remove_file(dir.join(name)).unwrap();
    let (_, text) = refusal(remove("config.json"));
    assert!(text.starts_with("cannot open DIR/config.json: "), "{text}");
    let (_, text) = refusal(remove(INDEX));
    assert!(text.starts_with("DIR has neither model.safetensors nor"), "{text}");
    let (error, text) = refusal(remove("model-00002-of-00002.safetensors"));
    assert!(matches!(error, SafetensorsError::MissingShard { .. }), "{error:?}");
    assert!(text.contains("`lm_head.weight`"), "{text}");
    assert!(text.contains("DIR/model-00002-of-00002.safetensors"), "{text}");
    let (_, text) = refusal(|dir| {
        let file = dir.join("model-00001-of-00002.safetensors");
        std::fs::write(&file, &std::fs::read(&file).unwrap()[..100]).unwrap();
    });
    assert!(text.starts_with("DIR/model-00001-of-00002.safetensors: the header claims"), "{text}");
    let (_, text) = refusal(|dir| {
        std::fs::remove_file(dir.join("config.json")).unwrap();
        std::fs::create_dir(dir.join("config.json")).unwrap();
    });
    assert_eq!(text, "DIR/config.json is not a regular file");
}

#[test]
fn an_index_cannot_lead_outside_its_folder() {
    let outside = tempfile::tempdir().unwrap();
    write(outside.path(), "w.safetensors", safetensors(&header(&[entry("w", "U8", "1", 0, 1)]), 1));
    let absolute = outside.path().join("w.safetensors").display().to_string();
    let beside = format!("../{}/w.safetensors", outside.path().file_name().unwrap().display());
    for file in [&*absolute, &*beside, "..", ".", "", "/", "a/../b", "./w.safetensors", "sub/w.safetensors"] {
        let (error, text) = refusal(|dir| write(dir, INDEX, index(&[("w", file)])));
        assert!(matches!(error, SafetensorsError::ShardName { .. }), "{file}: {error:?}");
        assert!(text.starts_with(&format!("DIR/{INDEX}: tensor `w` is said to be in {file:?}")), "{text}");
    }
    for file in ["..\\\\w.safetensors", "C:w.safetensors", "w.safetensors/", "w\\u0000.safetensors"] {
        let text = format!(r#"{{"weight_map":{{"w":"{file}"}}}}"#);
        let (error, _) = refusal(|dir| write(dir, INDEX, &text));
        assert!(matches!(error, SafetensorsError::ShardName { .. }), "{file}: {error:?}");
    }
}

#[test]
fn an_index_that_does_not_fit_its_files() {
    let first = "model-00001-of-00002.safetensors";
    let second = "model-00002-of-00002.safetensors";
    let with = |text: String| refusal(|dir| write(dir, INDEX, &text));
    let (error, text) = with(index(&[("lm_head.weight", first), ("model.a.weight", first)]));
    assert!(matches!(error, SafetensorsError::NotInShard { .. }), "{error:?}");
    assert!(text.starts_with(&format!("tensor `lm_head.weight` is not in DIR/{first}")), "{text}");
    let (error, _) = with(index(&[("lm_head.weight", second), ("absent", second)]));
    assert!(matches!(error, SafetensorsError::NotInShard { .. }), "{error:?}");
    let (error, text) = with(index(&[("a", first), ("b", "copy.safetensors")]));
    assert!(matches!(error, SafetensorsError::MissingShard { .. }), "{error:?} {text}");
    let (error, text) = refusal(|dir| {
        std::fs::copy(dir.join(first), dir.join("copy.safetensors")).unwrap();
        write(dir, INDEX, index(&[("model.a.weight", first), ("model.b.weight", "copy.safetensors")]));
    });
    assert!(matches!(error, SafetensorsError::DuplicateTensor { .. }), "{error:?}");
    assert!(text.starts_with("tensor `model."), "{text}");
    for (text, part) in [
        ("{}", "`weight_map` is missing"),
        (r#"{"weight_map":null}"#, "expected an object of tensors"),
        (r#"{"weight_map":[]}"#, "expected an object of tensors"),
        (r#"{"weight_map":{"w":7}}"#, "the entry of tensor `w` is damaged"),
        (r#"{"weight_map":{},"weight_map":{}}"#, "`weight_map` occurs twice"),
        (r#"{"weight_map":{}"#, "EOF"),
    ] {
        let (error, said) = with(text.to_owned());
        assert!(said.contains(part), "{text}: {error:?}");
    }
}

#[test]
fn summaries_are_alike_for_every_format() {
    let dir = model();
    write(dir.path(), "tokenizer.json", r#"{"version":"1.0","model":{"type":"BPE","vocab":{}}}"#);
    let checkpoint = Checkpoint::open(dir.path()).unwrap();
    assert!(matches!(checkpoint, Checkpoint::Folder(_)));
    let summary = checkpoint.summary();
    assert_eq!(summary.documents, ["config.json", "tokenizer.json"]);
    assert_eq!(summary.architecture.as_deref(), Some("llama"));
    assert_eq!((summary.context_length, summary.tokenizer.as_deref()), (Some(4096), Some("BPE")));
    assert_eq!((summary.n_params, summary.tensor_bytes, summary.n_tensors), (8, 24, 3));
    let share = |summary: &Summary, i: usize| {
        let share = &summary.types[i];
        (share.dtype.clone(), share.n_tensors, share.n_values, share.bytes)
    };
    assert_eq!(share(&summary, 0), ("F32".to_owned(), 2, 4, 16));
    assert_eq!(share(&summary, 1), ("BF16".to_owned(), 1, 4, 8));
    assert_eq!(summary.bits_per_param(), 24.0);
    assert!(matches!(Checkpoint::open(dir.path().join(INDEX)).unwrap(), Checkpoint::Weights(_)));
    write(dir.path(), "config.json", r#"{"model_type":7}"#);
    write(dir.path(), "tokenizer.json", "{");
    write(dir.path(), "tokenizer_config.json", r#"{"chat_template":7}"#);
    let summary = Checkpoint::open(dir.path()).unwrap().summary();
    assert_eq!((summary.architecture, summary.tokenizer, summary.n_params), (None, None, 8));
    let expected =
        ["config.json: `model_type`: invalid type: integer `7`", "tokenizer.json: EOF", "`chat_template`"];
    assert_eq!(summary.problems.len(), 3, "{:?}", summary.problems);
    for (problem, expected) in summary.problems.iter().zip(expected) {
        assert!(problem.contains(expected), "`{expected}` is not in: {problem}");
    }
}

#[test]
fn parameters_of_packed_checkpoints() {
    let params = |config: &str, entries: &[String], data: usize| {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "config.json", config);
        write(dir.path(), "model.safetensors", safetensors(&header(entries), data));
        Checkpoint::open(dir.path()).unwrap().summary().n_params
    };
    let nvfp4 = [
        entry("q.weight", "U8", "4,16", 0, 64),
        entry("q.weight_scale", "F8_E4M3", "4,2", 64, 72),
        entry("q.weight_scale_2", "F32", "", 72, 76),
        entry("q.input_scale", "F32", "", 76, 80),
        entry("norm.weight", "BF16", "32", 80, 144),
    ];
    assert_eq!(params("{}", &nvfp4, 144), 4 * 32 + 32);
    let mxfp4 = [
        entry("e.down_proj_blocks", "U8", "2,4,16", 0, 128),
        entry("e.down_proj_scales", "U8", "2,4", 128, 136),
        entry("router.other_scales", "U8", "8", 136, 144),
    ];
    assert_eq!(params("{}", &mxfp4, 144), 2 * 4 * 32 + 8);
    let gptq = [
        entry("q.qweight", "I32", "4,8", 0, 128),
        entry("q.qzeros", "I32", "1,1", 128, 132),
        entry("q.scales", "F16", "1,8", 132, 148),
        entry("q.g_idx", "I32", "32", 148, 276),
    ];
    assert_eq!(params("{}", &gptq, 276), 8 * 32);
    assert_eq!(params(r#"{"quantization_config":{"bits":8}}"#, &gptq, 276), 4 * 32);
    let groups = r#"{"quantization_config":{"config_groups":{"group_0":{"weights":{"num_bits":2}}}}}"#;
    assert_eq!(params(groups, &gptq, 276), 16 * 32);
    let fp8 = [
        entry("q.weight", "F8_E4M3", "128,128", 0, 16384),
        entry("q.weight_scale_inv", "F32", "1,1", 16384, 16388),
    ];
    assert_eq!(params("{}", &fp8, 16388), 128 * 128);
}
