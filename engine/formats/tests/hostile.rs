//! Files that are broken, by accident or on purpose: each gives a typed error, at once, and nothing panics.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod common;

use common::Random;
use memra_formats::{Gguf, GgufError, GgufWriter};
use memra_kernels::DType;

/// A file put together by hand, so that it can be wrong.
struct Raw(Vec<u8>);

const STR: u32 = 8;
const ARRAY: u32 = 9;

impl Raw {
    fn new(n_tensors: u64, n_keys: u64) -> Raw {
        Raw(b"GGUF".to_vec()).u32(3).u64(n_tensors).u64(n_keys)
    }

    fn u32(mut self, value: u32) -> Raw {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u64(mut self, value: u64) -> Raw {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn byte(mut self, value: u8) -> Raw {
        self.0.push(value);
        self
    }

    fn string(mut self, text: &str) -> Raw {
        self = self.u64(text.len() as u64);
        self.0.extend(text.as_bytes());
        self
    }

    fn key(self, key: &str, value_type: u32) -> Raw {
        self.string(key).u32(value_type)
    }

    fn tensor(mut self, name: &str, dims: &[u64], dtype: u32, offset: u64) -> Raw {
        self = self.string(name).u32(dims.len() as u32);
        for &dim in dims {
            self = self.u64(dim);
        }
        self.u32(dtype).u64(offset)
    }

    /// Pads to the data section and adds `len` bytes to it.
    fn data(mut self, len: usize) -> Raw {
        let start = self.0.len().next_multiple_of(32);
        self.0.resize(start + len, 0xAA);
        self
    }

    fn error(self) -> GgufError {
        Gguf::parse(self.0).expect_err("a broken file was accepted")
    }
}

/// Asserts the variant and that the text holds each of the given parts.
macro_rules! refused {
    ($raw:expr, $variant:ident $(, $part:expr)*) => {{
        let error = $raw.error();
        assert!(matches!(error, GgufError::$variant { .. }), "{error:?}");
        $(assert!(error.to_string().contains($part), "`{}` is not in: {error}", $part);)*
    }};
}

#[test]
fn not_a_gguf_file() {
    refused!(Raw(vec![]), Magic);
    refused!(Raw(b"\x89PNG\r\n".to_vec()), Magic, "`\\x89PNG`");
    refused!(Raw(b"GGUF".to_vec()), Truncated, "byte 4", "the version");
    refused!(Raw(b"GGUF".to_vec()).u32(1), Version, "version 1", "early format");
    refused!(Raw(b"GGUF".to_vec()).u32(4), Version, "version 4");
    refused!(Raw(b"GGUF".to_vec()).u32(3u32.swap_bytes()), Version, "big-endian");
}

#[test]
fn counts_beyond_the_file() {
    refused!(Raw::new(u64::MAX, 0), Truncated, "the tensor table");
    refused!(Raw::new(1 << 60, 0), Truncated, "the tensor table");
    refused!(Raw::new(0, u64::MAX), TooMany, "metadata keys");
    refused!(Raw::new(0, 1 << 16), Truncated, "byte 24", "the metadata");
    refused!(Raw::new(0, 2).key("kk", 4).u32(1).u64(100), Truncated, "byte 50", "a metadata key");
    refused!(Raw::new((1 << 19) + 1, 0).data(1 << 24), TooMany, "tensors");
    // A million keys that are all there.
    let many = (0..1_000_000).fold(Raw::new(0, 1_000_000), |raw, i| raw.key(&format!("{i}"), 0).byte(0));
    refused!(many, TooMany, "1000000 metadata keys", "65536");
}

#[test]
fn lengths_beyond_the_file() {
    for len in [u64::MAX, 1 << 63, 1 << 62, 1 << 32, 100] {
        let key = (0..11).fold(Raw::new(0, 1).u64(len), |raw, _| raw.byte(b'k'));
        assert_eq!(key.0.len(), 43);
        refused!(key, Truncated, "byte 32", "a metadata key", &len.to_string(), "11 are left");
        let string = Raw::new(0, 1).key("k", STR).u64(len);
        assert_eq!(string.0.len(), 45);
        refused!(string, Truncated, "byte 45", "the text of key `k`");
        for items in [0, 1, 4, 5, 6, 7, 10, STR, ARRAY] {
            refused!(Raw::new(0, 1).key("k", ARRAY).u32(items).u64(len), Truncated, "the array of key `k`");
        }
        refused!(
            Raw::new(0, 1).key("k", ARRAY).u32(STR).u64(1).u64(len),
            Truncated,
            "a text in the array of key `k`"
        );
        refused!(Raw::new(1, 0).u64(len).data(64), Truncated, "a tensor name");
    }
}

#[test]
fn every_cut_names_the_key_or_tensor_it_is_in() {
    let key = |raw: Raw, what: &str| refused!(raw, Truncated, what, "of key `some.key`");
    key(Raw::new(0, 1).string("some.key").byte(4).byte(0), "the type");
    key(Raw::new(0, 1).key("some.key", 4).byte(0), "the value");
    key(Raw::new(0, 1).key("some.key", ARRAY).u32(4), "the array");
    let tensor = |cut: usize, what: &str| {
        let mut raw = Raw::new(1, 0).tensor("blk.0.attn_q.weight", &[1, 1], 0, 0);
        raw.0.truncate(raw.0.len() - cut);
        refused!(raw, Truncated, what, "of tensor `blk.0.attn_q.weight`");
    };
    tensor(1, "the offset");
    tensor(9, "the type");
    tensor(13, "the dimensions");
    tensor(29, "the number of dimensions");
}

#[test]
fn value_types_and_nesting() {
    refused!(Raw::new(0, 1).key("k", 13).u64(0), ValueType, "`k`", "13");
    refused!(Raw::new(0, 1).key("k", ARRAY).u32(99).u64(0), ValueType, "`k`", "99");
    let nested = |depth: usize| {
        let outer = (1..depth).fold(Raw::new(0, 1).key("k", ARRAY), |raw, _| raw.u32(ARRAY).u64(1));
        outer.u32(0).u64(0)
    };
    assert!(Gguf::parse(nested(4).0).is_ok());
    refused!(nested(5), Nested, "`k`", "4");
    refused!(nested(10_000), Nested);
    refused!(nested(1_000_000), Nested);
}

#[test]
fn names() {
    refused!(Raw::new(0, 2).key("k", 4).u32(1).key("k", 4).u32(1), DuplicateKey, "`k`");
    let twice = Raw::new(2, 0).tensor("t", &[4], 0, 0).tensor("t", &[4], 0, 32);
    refused!(twice.data(64), DuplicateTensor, "`t`");
    refused!(Raw::new(0, 1).key("\x1b[2J", 4).u32(1), Name, "a metadata key");
    refused!(Raw::new(0, 1).key(&"k".repeat(70_000), 4).u32(1), Name);
    let mut raw = Raw::new(1, 0).tensor("t", &[4], 0, 0).data(16);
    raw.0[32] = 0xFF;
    refused!(raw, Name, "byte 32", "a tensor name");
}

#[test]
fn alignment() {
    for wrong in [0, 13, 1 << 31] {
        let raw = Raw::new(0, 1).key("general.alignment", 4).u32(wrong);
        refused!(raw, Alignment, &format!("u32 {wrong}"));
    }
    refused!(Raw::new(0, 1).key("general.alignment", 10).u64(32), Alignment, "u64 32");
    refused!(Raw::new(0, 1).key("general.alignment", STR).string("32"), Alignment, "string \"32\"");
}

#[test]
fn tensor_shapes_and_types() {
    let tensor = |dims: &[u64], dtype| Raw::new(1, 0).tensor("blk.0.w", dims, dtype, 0).data(64);
    refused!(tensor(&[1; 5], 0), Dimensions, "`blk.0.w`", "5 dimensions");
    refused!(Raw::new(1, 0).string("t").u32(u32::MAX).data(64), Dimensions, "4294967295");
    for dims in
        [&[1u64 << 32, 1 << 32][..], &[1 << 63, 2], &[1 << 62], &[u64::MAX; 4], &[0, u64::MAX, u64::MAX]]
    {
        refused!(tensor(dims, 0), Size, "`blk.0.w`");
    }
    refused!(tensor(&[1 << 63, 4, 1 << 32], DType::Q4_K.gguf_id().unwrap()), Size);
    refused!(tensor(&[31], DType::Q4_1.gguf_id().unwrap()), Row, "`blk.0.w`", "31", "32");
    refused!(
        tensor(&[32], 99),
        TensorType,
        "`blk.0.w`",
        "type 99 (unknown to this build)",
        "F32, F16, BF16, Q4_0"
    );
    refused!(tensor(&[32], 31), TensorType, "type 31 (Q4_0_4_4)");
    refused!(tensor(&[32], u32::MAX), TensorType, "4294967295");
    refused!(tensor(&[256], 19), TensorType, "type 19 (IQ1_S)");
    refused!(tensor(&[256], 34), TensorType, "type 34 (TQ1_0)");
}

#[test]
fn plain_numbers_are_listed_and_not_computed_with() {
    for (id, name, bytes) in
        [(24, "I8", 4), (25, "I16", 8), (26, "I32", 16), (27, "I64", 32), (28, "F64", 32)]
    {
        let gguf = Gguf::parse(Raw::new(1, 0).tensor("ids", &[4], id, 0).data(bytes).0).unwrap();
        let tensor = gguf.tensor("ids").unwrap();
        assert_eq!((tensor.storage().to_string().as_str(), tensor.data().len()), (name, bytes));
        assert!(tensor.dtype().unwrap_err().to_string().contains(name));
        refused!(Raw::new(1, 0).tensor("ids", &[4], id, 0).data(bytes - 1), OutsideFile);
        refused!(Raw::new(1, 0).tensor("ids", &[1 << 62, 4], id, 0).data(64), Size, "`ids`", name);
    }
}

#[test]
fn tensor_places() {
    let at = |offset| Raw::new(1, 0).tensor("t", &[16], 0, offset);
    assert!(Gguf::parse(at(0).data(64).0).is_ok());
    refused!(at(0).data(63), OutsideFile, "`t`", "64 bytes", "63");
    refused!(at(0), OutsideFile);
    refused!(at(32).data(64), OutsideFile);
    refused!(at(u64::MAX - 31).data(64), OutsideFile);
    refused!(at(1 << 63).data(64), OutsideFile);
    refused!(at(16).data(128), Misaligned, "`t`", "16", "32");
    let overlapping = Raw::new(2, 0).tensor("b", &[16], 0, 32).tensor("a", &[16], 0, 0);
    refused!(overlapping.data(96), Overlap, "`a` and `b`");
    let same = Raw::new(2, 0).tensor("a", &[16], 0, 0).tensor("b", &[16], 0, 0);
    refused!(same.data(64), Overlap);
    let empty_inside = Raw::new(2, 0).tensor("a", &[16], 0, 0).tensor("none", &[0], 0, 32);
    assert!(Gguf::parse(empty_inside.data(64).0).is_ok());
}

#[test]
fn tokenizer_arrays_of_the_wrong_type() {
    let mut writer = GgufWriter::new();
    writer.metadata("tokenizer.ggml.scores", &vec![1u8, 2]).unwrap();
    writer.metadata("tokenizer.ggml.token_type", &vec![1f32]).unwrap();
    writer.metadata("tokenizer.ggml.tokens", &vec![1i32]).unwrap();
    writer.metadata("tokenizer.ggml.merges", "a b").unwrap();
    writer.metadata("tokenizer.ggml.eos_token_id", &-1i32).unwrap();
    writer.metadata("tokenizer.ggml.add_bos_token", &1u32).unwrap();
    let raw = Raw(writer.begin(Vec::new()).unwrap().finish().unwrap());
    let gguf = Gguf::parse(raw.0).unwrap();
    let meta = gguf.metadata();
    let refused = |result: Result<(), GgufError>, parts: [&str; 3]| {
        let error = result.unwrap_err();
        assert!(matches!(error, GgufError::WrongType { .. }), "{error:?}");
        for part in parts {
            assert!(error.to_string().contains(part), "`{part}` is not in: {error}");
        }
    };
    let (scores, types) = ("tokenizer.ggml.scores", "tokenizer.ggml.token_type");
    refused(meta.get::<Vec<f32>>(scores).map(drop), [scores, "floating-point", "array of u8: [1, 2]"]);
    refused(meta.get::<Vec<i32>>(types).map(drop), [types, "an integer", "array of f32: [1]"]);
    let (tokens, merges) = ("tokenizer.ggml.tokens", "tokenizer.ggml.merges");
    refused(meta.get::<Vec<&str>>(tokens).map(drop), [tokens, "UTF-8 string", "array of i32: [1]"]);
    refused(meta.get::<Vec<&str>>(merges).map(drop), [merges, "an array", "string \"a b\""]);
    let (eos, bos) = ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.add_bos_token");
    refused(meta.find::<u32>(eos).map(drop), [eos, "an integer from 0", "i32 -1"]);
    refused(meta.find::<bool>(bos).map(drop), [bos, "a bool", "u32 1"]);
}

/// A small valid file with a bit of everything.
fn small_file() -> Vec<u8> {
    let mut writer = GgufWriter::with_alignment(32).unwrap();
    writer.metadata("general.architecture", "llama").unwrap();
    writer.metadata("llama.block_count", &2u32).unwrap();
    writer.metadata("tokenizer.ggml.tokens", &["a", "b", "ab"][..]).unwrap();
    writer.metadata("tokenizer.ggml.scores", &vec![0f32, -1.0, -2.0]).unwrap();
    writer.metadata("nested", &vec![vec![1u8], vec![2, 3]]).unwrap();
    writer.tensor("token_embd.weight", &[32, 3], DType::Q8_0).unwrap();
    writer.tensor("output_norm.weight", &[32], DType::F32).unwrap();
    let mut body = writer.begin(Vec::new()).unwrap();
    body.append(&[1; 102]).unwrap();
    body.append(&[2; 128]).unwrap();
    body.finish().unwrap()
}

/// Reads everything that a file offers.
fn use_all(gguf: &Gguf) -> usize {
    let meta = gguf.metadata();
    let shown: usize = meta.iter().map(|(key, value)| key.len() + value.to_string().len()).sum();
    let _ = meta.get::<Vec<&str>>("tokenizer.ggml.tokens");
    let _ = meta.get::<Vec<f32>>("tokenizer.ggml.scores");
    let _ = meta.get::<u32>("llama.block_count");
    let bytes =
        |tensor: &memra_formats::Tensor<'_>| tensor.data().iter().map(|&b| usize::from(b)).sum::<usize>();
    shown + gguf.tensors().map(|t| bytes(&t) + t.n_values().min(1)).sum::<usize>()
}

#[test]
fn truncation_at_every_byte() {
    let whole = small_file();
    use_all(&Gguf::parse(&*whole).unwrap());
    for len in 0..whole.len() {
        let error = Gguf::parse(&whole[..len]).expect_err("a truncated file was accepted");
        let expected = matches!(
            error,
            GgufError::Magic { .. } | GgufError::Truncated { .. } | GgufError::OutsideFile { .. }
        );
        assert!(expected, "{len} bytes: {error:?}");
    }
}

#[test]
fn random_damage() {
    let whole = small_file();
    let mut random = Random(1);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..50_000 {
        let bytes = random.damage(&whole);
        match Gguf::parse(bytes) {
            Ok(gguf) => accepted += usize::from(use_all(&gguf) > 0),
            Err(error) => refused += usize::from(!error.to_string().is_empty()),
        }
    }
    assert!(
        accepted > 1000 && refused > 1000,
        "{accepted} accepted, {refused} refused: the damage tests nothing"
    );
}

#[test]
fn random_bytes_behind_a_valid_head() {
    let mut random = Random(2);
    for _ in 0..20_000 {
        let mut raw = Raw::new(random.below(4) as u64, random.below(4) as u64);
        for _ in 0..random.below(200) {
            // Mostly small numbers, which look like lengths and types.
            raw.0.push(if random.below(4) == 0 { random.below(256) as u8 } else { 0 });
        }
        if let Ok(gguf) = Gguf::parse(raw.0) {
            use_all(&gguf);
        }
    }
}
