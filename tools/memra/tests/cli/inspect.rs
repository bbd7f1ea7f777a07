//! `memra inspect`: what it says of models whole, split and in folders, and of damaged ones.

use super::{Place, Ran, tiny};
use memra_engine::model::ModelFile;
use memra_engine::program::Bucket;
use memra_formats::{GgufWriter, split_file_name};
use memra_kernels::{DType, NumericClass, NumericPath};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A model of two layers, one of them with a window, and four experts.
fn mixture(name: &str) -> GgufWriter {
    let mut writer = GgufWriter::new();
    writer.metadata("general.architecture", "gpt-oss").unwrap();
    writer.metadata("general.name", name).unwrap();
    for (key, value) in [
        ("block_count", 2u32),
        ("context_length", 512),
        ("embedding_length", 64),
        ("feed_forward_length", 64),
        ("attention.head_count", 4),
        ("attention.head_count_kv", 2),
        ("attention.sliding_window", 16),
        ("expert_count", 4),
        ("expert_used_count", 1),
    ] {
        writer.metadata(&format!("gpt-oss.{key}"), &value).unwrap();
    }
    writer.metadata("tokenizer.ggml.model", "gpt2").unwrap();
    writer.metadata("tokenizer.ggml.tokens", &["a", "b", "c"][..]).unwrap();
    for (tensor, dims) in TENSORS {
        writer.tensor(tensor, dims, DType::F16).unwrap();
    }
    writer
}

const TENSORS: [(&str, &[usize]); 8] = [
    ("token_embd.weight", &[64, 3]),
    ("blk.0.attn_k.weight", &[64, 32]),
    ("blk.0.attn_v.weight", &[64, 32]),
    ("blk.0.ffn_up_exps.weight", &[64, 64, 4]),
    ("blk.1.attn_k.weight", &[64, 32]),
    ("blk.1.attn_v.weight", &[64, 32]),
    ("blk.1.ffn_up_exps.weight", &[64, 64, 4]),
    ("output.weight", &[64, 3]),
];

/// Bytes of all tensors, and of those that a token reads.
const ALL_BYTES: u64 = 2 * (2 * (64 * 3 + 2 * 64 * 32) + 2 * 64 * 64 * 4);
const READ_BYTES: u64 = 2 * (64 + 64 * 3 + 4 * 64 * 32 + 2 * 64 * 64);

fn write(path: &Path, writer: GgufWriter) {
    let mut body = writer.begin(File::create(path).unwrap()).unwrap();
    for (_, dims) in TENSORS {
        body.append(&vec![0; 2 * dims.iter().product::<usize>()]).unwrap();
    }
    body.finish().unwrap();
}

#[test]
fn figures_are_those_the_engine_runs_with() {
    let place = Place::new();
    let ran = place.memra(&["inspect", tiny(), "--context", "256", "--kv", "f32"]);
    let report = ran.expect_page();
    assert!(report.contains("runs here     yes"), "{report}");
    let report = place.memra(&["inspect", tiny(), "--context", "256", "--kv", "f32", "--json"]).json();
    let program = ModelFile::open(Path::new(tiny())).unwrap().program(bucket(DType::F32, 256)).unwrap();
    let number = |name: &str| report[name].as_u64().unwrap();
    assert_eq!(number("decode_weight_bytes"), program.weight_bytes_read());
    assert_eq!(number("kv_bytes_per_token"), program.state_bytes_per_token());
    assert_eq!(number("kv_bytes"), 256 * program.state_bytes_per_token());
    assert_eq!(number("tensor_bytes"), program.weight_bytes());
    let parts = ["tensor_bytes", "kv_bytes", "state_bytes", "buffer_bytes"].map(number);
    assert_eq!(number("memory_bytes"), parts.iter().sum::<u64>());
    assert!(number("buffer_bytes") >= program.buffer_bytes());
    assert_eq!(report["runnable"], true);
}

/// Every model of the engine's fixtures that this build runs.
#[test]
fn figures_are_those_of_the_program_for_every_architecture() {
    let place = Place::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../engine/core/tests/fixtures");
    let folders: Vec<PathBuf> =
        std::fs::read_dir(fixtures).unwrap().map(|entry| entry.unwrap().path()).collect();
    let files = folders.iter().filter_map(|dir| std::fs::read_dir(dir).ok()).flatten();
    let files =
        files.map(|file| file.unwrap().path()).filter(|file| file.extension().is_some_and(|e| e == "gguf"));
    let models = folders.iter().filter(|dir| dir.join("config.json").exists()).cloned().chain(files);
    let mut n_compared = 0;
    for model in models {
        let report = place.memra(&["inspect", model.to_str().unwrap(), "--context", "100", "--json"]).json();
        let number = |name: &str| report[name].as_u64().unwrap_or_else(|| panic!("{name}: {report}"));
        assert_eq!(report["runnable"], true, "{report}");
        let file = ModelFile::open(&model).unwrap();
        let program = file.program(bucket(DType::F16, 100)).unwrap();
        let at = model.display();
        // Every layer reads the rotary factors, where there are any; they stay in the processor.
        let factors = file.checkpoint().find_tensor("rope_freqs.weight").map_or(0, |t| t.data().len() as u64);
        let again = program.weight_bytes_read() - number("decode_weight_bytes");
        assert!(again <= factors * 2 * number("n_layers"), "{at}: {again} bytes more are read");
        assert_eq!(number("kv_bytes_per_token"), program.state_bytes_per_token(), "{at}");
        assert_eq!(number("n_layers"), file.config().n_layers as u64, "{at}");
        n_compared += 1;
    }
    assert!(n_compared > 10, "only {n_compared} models");
}

fn bucket(kv: DType, context: usize) -> Bucket {
    Bucket { path: NumericPath::Decode, class: NumericClass::Q8, rows: 1, logits: 1, kv, context }
}

#[test]
fn whole_and_split_files_and_folders_alike() {
    let place = Place::new();
    write(&place.path().join("m.gguf"), mixture("Mixture"));
    let name = |part, count| place.path().join(split_file_name("s", part, count));
    let create = |part, count| File::create(name(part, count));
    let mut body = mixture("Mixture").begin_split(20_000, create).unwrap();
    for (_, dims) in TENSORS {
        body.append(&vec![0; 2 * dims.iter().product::<usize>()]).unwrap();
    }
    body.finish().unwrap();
    folder(&place.path().join("folder"));
    let n_parts = (1..20).find(|&count| name(0, count).exists()).unwrap();
    assert!(n_parts > 2);
    let last = split_file_name("s", n_parts - 1, n_parts);
    for (model, n_files) in [("m.gguf", 1), (&*last, n_parts), ("folder", 1)] {
        let args = ["inspect", model, "--context", "100", "--kv", "q8_0,f16", "--json"];
        let report = place.memra(&args).json();
        let number =
            |name: &str| report[name].as_u64().unwrap_or_else(|| panic!("{model}: {name}: {report}"));
        assert_eq!((number("n_files"), number("tensor_bytes")), (n_files.into(), ALL_BYTES), "{model}");
        assert_eq!(number("decode_weight_bytes"), READ_BYTES, "{model}");
        assert_eq!(number("n_params_active"), READ_BYTES / 2 - 64 + 64 * 3, "{model}");
        assert_eq!(number("kv_bytes"), (34 + 64) * (100 + 16), "{model}");
        assert_eq!(report["kv_types"], serde_json::json!(["Q8_0", "F16"]), "{model}");
        assert_eq!((&report["runnable"], &report["unknown"]), (&false.into(), &serde_json::json!({})));
    }
}

/// The same model in safetensors.
fn folder(path: &Path) {
    std::fs::create_dir(path).unwrap();
    let config = r#"{"model_type":"gpt_oss","num_hidden_layers":2,"hidden_size":64,"num_attention_heads":4,
        "num_key_value_heads":2,"sliding_window":16,"num_local_experts":4,"num_experts_per_tok":1,
        "tie_word_embeddings":false}"#;
    std::fs::write(path.join("config.json"), config).unwrap();
    let names = TENSORS.map(|(name, dims)| {
        let name = name.replace("blk.", "model.layers.").replace("attn_k", "self_attn.k_proj");
        let name = name.replace("attn_v", "self_attn.v_proj").replace("ffn_up_exps.weight", "mlp.experts.up");
        let name = name.replace("token_embd", "model.embed_tokens").replace("output", "lm_head");
        (name, dims)
    });
    let mut end = 0;
    let entries = names.map(|(name, dims)| {
        let shape: Vec<usize> = dims.iter().rev().copied().collect();
        let start = end;
        end += 2 * dims.iter().product::<usize>();
        format!(r#""{name}":{{"dtype":"F16","shape":{shape:?},"data_offsets":[{start},{end}]}}"#)
    });
    let header = format!("{{{}}}", entries.join(","));
    let file = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &vec![0; end]].concat();
    std::fs::write(path.join("model.safetensors"), file).unwrap();
}

impl Ran {
    /// Ended well and printed a page of at most 80 columns.
    #[track_caller]
    fn expect_page(&self) -> &str {
        self.expect(0, "");
        for line in self.stdout.lines().filter(|line| !line.contains('/')) {
            assert!(line.chars().count() <= 80, "longer than 80 columns: {line}");
        }
        &self.stdout
    }
}

#[test]
fn the_page_reads_well() {
    let place = Place::new();
    write(&place.path().join("m.gguf"), mixture("Mix\u{1b}[2J\nture"));
    let ran = place.memra(&["inspect", "m.gguf"]);
    let page = ran.expect_page();
    for line in [
        "model         m.gguf\n",
        "name          Mix\u{fffd}[2J\u{fffd}ture\n",
        "architecture  gpt-oss: 2 layers, width 64, feed-forward 64\n",
        "attention     4 heads of 16, 2 for keys and values, a window of 16 tokens in 1",
        "experts       1 of 4 a token\n",
        "context       512 tokens as trained\n",
        "decode reads  32.5 KiB of weights and 66.0 KiB of cache a token, at context 512\n",
        "cache         256 B a token in F16, 66.0 KiB at context 512\n",
        "runs here     no: ",
    ] {
        assert!(page.contains(line), "`{line}` is not in:\n{page}");
    }
    let tensors = place.memra(&["inspect", "m.gguf", "--tensors"]);
    assert!(
        tensors.expect_page().contains("blk.0.ffn_up_exps.weight  F16   [64, 64, 4]"),
        "{}",
        tensors.stdout
    );
}

#[test]
fn what_is_unknown_says_why() {
    let place = Place::new();
    let mut writer = mixture("x");
    writer.tensor("blk.2.attn_k.weight", &[64, 0], DType::F16).unwrap();
    write(&place.path().join("m.gguf"), writer);
    let report = place.memra(&["inspect", "m.gguf", "--json"]).json();
    for figure in ["decode_weight_bytes", "kv_bytes"] {
        assert!(report[figure].is_null());
        let reason = report["unknown"][figure].as_str().unwrap();
        assert_eq!(reason, "the model has 2 layers, but there are tensors of more blocks");
    }
    let page = place.memra(&["inspect", "m.gguf"]);
    assert!(page.expect_page().contains("cache         unknown: the model has 2 layers"), "{}", page.stdout);
    let odd = place.memra(&["inspect", tiny(), "--kv", "q4_k", "--json"]).json();
    assert!(odd["unknown"]["kv_bytes"].as_str().unwrap().contains("whole Q4_K blocks"), "{odd}");
}

#[test]
fn damaged_metadata_are_shown_with_exit_code_7() {
    let place = Place::new();
    let mut writer = mixture("x");
    writer.metadata("tokenizer.ggml.scores", &vec![1u8; 3]).unwrap();
    writer.metadata("tokenizer.ggml.token_type", &vec![1i32; 2]).unwrap();
    writer.metadata("tokenizer.ggml.eos_token_id", &3u32).unwrap();
    write(&place.path().join("m.gguf"), writer);
    let ran = place.memra(&["inspect", "m.gguf"]);
    assert_eq!((ran.code, &*ran.stderr), (Some(7), ""));
    for problem in [
        "`tokenizer.ggml.scores` must be an array of floating-point numbers",
        "token_type` has 2 items for 3",
    ] {
        assert!(ran.stdout.contains(problem), "{}", ran.stdout);
    }
    let ran = place.memra(&["inspect", "m.gguf", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, report["problems"].as_array().unwrap().len()), (Some(7), 3));
}

#[test]
fn what_cannot_be_inspected() {
    let place = Place::new();
    let file = |name: &str, bytes: &[u8]| std::fs::write(place.path().join(name), bytes).unwrap();
    std::fs::create_dir(place.path().join("empty")).unwrap();
    place.memra(&["inspect", "empty"]).expect(2, "neither model.safetensors nor");
    file("empty/model.safetensors", &[0; 4]);
    place.memra(&["inspect", "empty"]).expect(2, "config.json");
    file("empty/config.json", b"{");
    place.memra(&["inspect", "empty"]).expect(7, "config.json");
    file("empty/config.json", b"{}");
    place.memra(&["inspect", "empty"]).expect(7, "4 bytes long");
    place.memra(&["inspect", "empty/model.safetensors"]).expect(7, "4 bytes long");
    place.memra(&["inspect", "/dev/zero"]).expect(2, "not a regular file");
    file("old.gguf", b"GGUF\x01\0\0\0");
    place.memra(&["inspect", "old.gguf"]).expect(2, "convert the model again");
    file("huge.gguf", &[&b"GGUF\x03\0\0\0"[..], &[0; 8], &1u64.to_le_bytes(), &[0xFF; 19]].concat());
    place.memra(&["inspect", "huge.gguf"]).expect(7, "a metadata key needs 18446744073709551615 bytes");
    place.memra(&["inspect", tiny(), "--kv", "f17"]).expect(2, "f17");
    place.memra(&["inspect", tiny(), "--context", "0"]).expect(2, "--context");
}
