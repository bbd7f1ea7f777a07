//! What the writer writes, the reader reads.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use memra_formats::{Array, Gguf, GgufError, GgufWriter, Value, ValueType};
use memra_kernels::DType;

/// A file with every kind of value and a few tensors, written in pieces of `chunk` bytes.
fn sample(alignment: u32, chunk: usize) -> Vec<u8> {
    let mut writer = GgufWriter::with_alignment(alignment).unwrap();
    writer.metadata("general.architecture", "llama").unwrap();
    writer.metadata("a.u8", &7u8).unwrap().metadata("a.i8", &-7i8).unwrap();
    writer.metadata("a.u16", &700u16).unwrap().metadata("a.i16", &-700i16).unwrap();
    writer.metadata("a.u32", &70_000u32).unwrap().metadata("a.i32", &-70_000i32).unwrap();
    writer.metadata("a.u64", &u64::MAX).unwrap().metadata("a.i64", &i64::MIN).unwrap();
    writer.metadata("a.f32", &1.5f32).unwrap().metadata("a.f64", &-2.25f64).unwrap();
    writer.metadata("a.bool", &true).unwrap();
    writer.metadata("a.strings", &["", "Ġthe", "日本"][..]).unwrap();
    writer.metadata("a.floats", &vec![0.5f32, f32::INFINITY]).unwrap();
    writer.metadata("a.nested", &vec![vec![1i32, 2], vec![], vec![3]]).unwrap();
    writer.metadata("a.empty", &Vec::<String>::new()).unwrap();
    writer.tensor("w", &[64, 3], DType::Q4_1).unwrap();
    writer.tensor("none", &[0, 5], DType::F32).unwrap();
    writer.tensor("scalar", &[], DType::F32).unwrap();
    writer.tensor("v", &[5, 1, 1, 1], DType::F16).unwrap();
    let mut body = writer.begin(Vec::new()).unwrap();
    for (tag, len) in [(1, 120), (2, 4), (3, 10)] {
        vec![tag; len].chunks(chunk).for_each(|piece| body.append(piece).unwrap());
    }
    body.finish().unwrap()
}

#[test]
fn metadata_round_trips() {
    let gguf = Gguf::parse(sample(32, 1000)).unwrap();
    let meta = gguf.metadata();
    assert_eq!((gguf.version(), gguf.alignment(), meta.len()), (3, 32, 17));
    assert_eq!(meta.get::<&str>("general.architecture").unwrap(), "llama");
    assert_eq!(meta.get::<u32>("a.u8").unwrap(), 7);
    assert_eq!(meta.get::<i64>("a.i8").unwrap(), -7);
    assert_eq!(meta.get::<usize>("a.u16").unwrap(), 700);
    assert_eq!(meta.get::<i16>("a.i16").unwrap(), -700);
    assert_eq!(meta.get::<u64>("a.u32").unwrap(), 70_000);
    assert_eq!(meta.get::<i32>("a.i32").unwrap(), -70_000);
    assert_eq!(meta.get::<u64>("a.u64").unwrap(), u64::MAX);
    assert_eq!(meta.get::<i64>("a.i64").unwrap(), i64::MIN);
    assert_eq!(meta.get::<f32>("a.f32").unwrap(), 1.5);
    assert_eq!(meta.get::<f32>("a.f64").unwrap(), -2.25);
    assert!(meta.get::<bool>("a.bool").unwrap());
    assert_eq!(meta.get::<Vec<&str>>("a.strings").unwrap(), ["", "Ġthe", "日本"]);
    assert_eq!(meta.get::<Vec<f32>>("a.floats").unwrap(), [0.5, f32::INFINITY]);
    assert_eq!(meta.get::<Vec<Vec<u8>>>("a.nested").unwrap(), [vec![1, 2], vec![], vec![3]]);
    assert!(meta.get::<Vec<&str>>("a.empty").unwrap().is_empty());
    let strings = meta.get::<Array<'_>>("a.strings").unwrap();
    assert_eq!((strings.len(), strings.item_type()), (3, ValueType::Str));
    assert_eq!(strings.iter().nth(1), Some(Value::Str("Ġthe".as_bytes())));
    assert_eq!(meta.find::<u32>("absent").unwrap(), None);
    let keys: Vec<&str> = meta.iter().map(|(key, _)| key).collect();
    assert_eq!(keys[..3], ["general.alignment", "general.architecture", "a.u8"]);
}

#[test]
fn values_print_on_one_line_and_cut_short() {
    let mut writer = GgufWriter::new();
    writer.metadata("text", &"line\n".repeat(100)).unwrap();
    writer.metadata("many", &vec![1u32; 1000]).unwrap();
    writer.metadata("few", &["a", "b"][..]).unwrap();
    let gguf = Gguf::parse(writer.begin(Vec::new()).unwrap().finish().unwrap()).unwrap();
    let shown: Vec<String> = gguf.metadata().iter().map(|(_, value)| value.to_string()).collect();
    assert_eq!(shown[0], format!("\"{}\"…", "line\\n".repeat(12)));
    assert_eq!(shown[1], "[1, 1, 1, 1, 1, 1, … 1000 in all]");
    assert_eq!(shown[2], "[\"a\", \"b\"]");
}

#[test]
fn getters_name_the_key_and_what_was_found() {
    let gguf = Gguf::parse(sample(32, 1000)).unwrap();
    let meta = gguf.metadata();
    let text = |result: Result<(), GgufError>| result.unwrap_err().to_string();
    assert_eq!(
        text(meta.get::<u8>("a.i8").map(drop)),
        "metadata key `a.i8` must be an integer from 0 to 255 but is i8 -7"
    );
    assert_eq!(
        text(meta.get::<Vec<f32>>("a.strings").map(drop)),
        "metadata key `a.strings` must be an array with each item a floating-point number \
         but is an array of string: [\"\", \"Ġthe\", \"日本\"]"
    );
    assert!(text(meta.get::<&str>("absent").map(drop)).starts_with("metadata key `absent` is missing"));
    assert!(text(gguf.tensor("absent").map(drop)).starts_with("tensor `absent` is missing"));
    assert!(meta.find::<bool>("a.u8").is_err());
}

#[test]
fn tensors_round_trip_at_any_alignment_and_piece_size() {
    for alignment in [1, 32, 4096] {
        for chunk in [1, 7, 1000] {
            let bytes = sample(alignment, chunk);
            assert_eq!(bytes.len() % alignment as usize, 0);
            let gguf = Gguf::parse(bytes).unwrap();
            assert_eq!((gguf.alignment(), gguf.tensors().len()), (alignment, 4));
            let w = gguf.tensor("w").unwrap();
            assert_eq!(
                (w.name(), &*w.dims(), w.dtype().unwrap(), w.n_values()),
                ("w", &[64, 3][..], DType::Q4_1, 192)
            );
            assert_eq!(w.data(), [1; 120]);
            assert!(gguf.tensor("none").unwrap().data().is_empty());
            assert_eq!(gguf.tensor("scalar").unwrap().data(), [2; 4]);
            let v = gguf.find_tensor("v").unwrap().shared_data();
            drop(gguf);
            assert_eq!(*v, [3; 10]);
        }
    }
}

#[test]
fn a_mapped_file_outlives_its_handle() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sample.gguf");
    std::fs::write(&path, sample(64, 1000)).unwrap();
    let gguf = Gguf::open(&path).unwrap();
    assert_eq!(gguf.file_bytes(), std::fs::metadata(&path).unwrap().len());
    let data = gguf.tensor("w").unwrap().shared_data();
    drop(gguf);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(*data, [1; 120]);
    assert_eq!(data.as_ptr() as usize % 64, 0);
}

#[test]
fn the_writer_refuses_what_the_reader_would() {
    let mut writer = GgufWriter::new();
    writer.metadata("key", &1u32).unwrap();
    assert!(matches!(writer.metadata("key", "again"), Err(GgufError::DuplicateKey { .. })));
    assert!(matches!(writer.metadata("general.alignment", &8u32), Err(GgufError::DuplicateKey { .. })));
    for name in ["\n", "\u{1b}[2J", &"n".repeat(65_536)] {
        assert!(matches!(writer.metadata(name, &1u32), Err(GgufError::Unprintable { .. })));
        assert!(matches!(writer.tensor(name, &[1], DType::F32), Err(GgufError::Unprintable { .. })));
    }
    writer.tensor("t", &[32], DType::Q8_0).unwrap();
    assert!(matches!(writer.tensor("t", &[32], DType::Q8_0), Err(GgufError::DuplicateTensor { .. })));
    assert!(matches!(writer.tensor("rows", &[33], DType::Q8_0), Err(GgufError::Row { .. })));
    assert!(matches!(writer.tensor("dims", &[1; 5], DType::F32), Err(GgufError::Dimensions { .. })));
    assert!(matches!(writer.tensor("f8", &[32], DType::F8_E4M3), Err(GgufError::NotInGguf { .. })));
    assert!(matches!(writer.tensor("big", &[1 << 40, 1 << 40], DType::F32), Err(GgufError::Size { .. })));
    for alignment in [0, 13, 1 << 31] {
        assert!(matches!(GgufWriter::with_alignment(alignment), Err(GgufError::Alignment { .. })));
    }
    let mut body = writer.begin(Vec::new()).unwrap();
    body.append(&[0; 30]).unwrap();
    assert!(matches!(body.append(&[0; 5]), Err(GgufError::Data { .. })));
    body.append(&[0; 4]).unwrap();
    assert!(matches!(body.append(&[0; 1]), Err(GgufError::Data { .. })));
    body.finish().unwrap();
    let mut writer = GgufWriter::new();
    writer.tensor("t", &[8], DType::F32).unwrap();
    let error = writer.begin(Vec::new()).unwrap().finish().unwrap_err();
    assert_eq!(error.to_string(), "tensor data: `t` ends at 0 of 32 bytes");
}
