//! Safetensors files: read as they are, refused when they are not what they say.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod common;

use common::{Random, entry, header, safetensors};
use memra_formats::{Safetensors, SafetensorsError, ScalarType, Storage, UnsupportedType};
use memra_kernels::DType;

fn error(file: Vec<u8>) -> SafetensorsError {
    Safetensors::parse(file).expect_err("a broken file was accepted")
}

/// Asserts the variant and that the text holds each of the given parts.
macro_rules! refused {
    ($file:expr, $variant:ident $(, $part:expr)*) => {{
        let error = error($file);
        assert!(matches!(error, SafetensorsError::$variant { .. }), "{error:?}");
        $(assert!(error.to_string().contains($part), "`{}` is not in: {error}", $part);)*
    }};
}

/// A file of one tensor of this entry, with `data` bytes.
fn one(dtype: &str, shape: &str, start: u64, end: u64, data: usize) -> Vec<u8> {
    safetensors(&header(&[entry("model.w", dtype, shape, start, end)]), data)
}

#[test]
fn tensors_are_read_whatever_their_order_in_the_header() {
    let entries = [
        entry("b", "BF16", "2,3", 8, 20),
        entry("scalar", "F32", "", 20, 24),
        entry("none", "I64", "0,7", 8, 8),
        entry("a", "F32", "2", 0, 8),
        r#""packed":{"shape":[3],"data_offsets":[24,27],"dtype":"U8","extra":[{"x":null}]}"#.to_owned(),
        entry("half", "F4", "4", 27, 29),
    ];
    let header = format!(r#"{{"__metadata__":{{"format":"pt"}},{}}}   "#, entries.join(", "));
    let file = Safetensors::parse(safetensors(&header, 29)).unwrap();
    assert_eq!(file.file_bytes(), 8 + header.len() as u64 + 29);
    let names: Vec<_> = file.tensors().map(|tensor| tensor.name()).collect();
    assert_eq!(names, ["b", "scalar", "none", "a", "packed", "half"]);
    let b = file.tensor("b").unwrap();
    assert_eq!((&*b.dims(), &*b.shape(), b.n_values()), (&[3, 2][..], &[2, 3][..], 6));
    assert_eq!((b.storage(), b.dtype()), (Storage::Scalars(ScalarType::BF16), Ok(DType::BF16)));
    assert_eq!(b.data(), (8..20).collect::<Vec<u8>>());
    assert_eq!(Storage::Scalars(ScalarType::F8_E4M3).dtype(), Some(DType::F8_E4M3));
    assert_eq!(file.tensor("scalar").unwrap().data(), [20, 21, 22, 23]);
    assert!(file.tensor("none").unwrap().data().is_empty());
    assert_eq!(file.tensor("half").unwrap().data(), [27, 28]);
    let packed = file.tensor("packed").unwrap();
    assert_eq!(packed.data(), [24, 25, 26]);
    let storage = Storage::Scalars(ScalarType::U8);
    assert_eq!(packed.dtype(), Err(UnsupportedType { tensor: "packed".to_owned(), storage }));
    let text = packed.dtype().unwrap_err().to_string();
    assert!(text.starts_with("tensor `packed` is stored as U8, which memra does not compute with"), "{text}");
    assert!(matches!(file.tensor("absent"), Err(SafetensorsError::MissingTensor { .. })));
    assert_eq!(Safetensors::parse(safetensors("{}", 0)).unwrap().tensors().len(), 0);
    let escaped = safetensors(&format!("{{{}}}", entry("\\u0061\\/\\\"", "U8", "1", 0, 1)), 1);
    assert_eq!(Safetensors::parse(escaped).unwrap().tensors().next().unwrap().name(), "a/\"");
}

#[test]
fn header_lengths() {
    refused!(vec![], Short, "0 bytes");
    refused!(vec![0; 7], Short);
    for length in [u64::MAX, u64::MAX - 7, 1 << 63, 1 << 32, 100_000_001, 3] {
        let mut file = length.to_le_bytes().to_vec();
        file.extend(b"{}");
        refused!(file, HeaderLength, &length.to_string(), "2 left");
    }
    refused!(vec![0; 8], Header);
    for header in ["", " ", "null", "[]", "7", "{", "{} {}", "{\"a", "\u{1}{}", &"[".repeat(100_000)] {
        refused!(safetensors(header, 0), Header);
    }
    let mut not_text = safetensors(r#"{"aa":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}"#, 0);
    not_text[10] = 0xFF;
    refused!(not_text, Header, "utf-8");
    let mut in_metadata = safetensors(r#"{"__metadata__":{"a":"b"}}"#, 0);
    in_metadata[30] = 0xFF;
    refused!(in_metadata, Header, "utf-8");
}

#[test]
fn entries_that_are_not_entries() {
    for entry in [
        "7",
        "null",
        "[]",
        "{}",
        r#"{"dtype":"F32","shape":[1]}"#,
        r#"{"dtype":7,"shape":[1],"data_offsets":[0,4]}"#,
        r#"{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}"#,
        r#"{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}"#,
        r#"{"dtype":"F32","shape":"1","data_offsets":[0,4]}"#,
        r#"{"dtype":"F32","shape":[1],"data_offsets":[0]}"#,
        r#"{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}"#,
        r#"{"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551616]}"#,
        r#"{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}"#,
        r#"{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}"#,
    ] {
        refused!(safetensors(&format!(r#"{{"model.w":{entry}}}"#), 4), Entry, "`model.w`");
    }
    refused!(safetensors(&header(&[entry("a\\nb", "U8", "1", 0, 1)]), 1), Name);
    refused!(safetensors(&header(&[entry(&"n".repeat(70_000), "U8", "1", 0, 1)]), 1), Name);
    let twice = header(&[entry("w", "U8", "1", 0, 1), entry("w", "U8", "1", 1, 2)]);
    refused!(safetensors(&twice, 2), DuplicateTensor, "`w`");
}

#[test]
fn shapes_types_and_offsets_must_agree() {
    assert!(Safetensors::parse(one("F32", "4", 0, 16, 16)).is_ok());
    refused!(one("F32", "4", 0, 15, 16), Span, "`model.w`", "[4] values of type F32 are 16 bytes", "0 to 15");
    refused!(one("F32", "4", 0, 17, 17), Span);
    refused!(one("F32", "4", 16, 0, 16), Span, "16 to 0");
    refused!(one("F32", "4", u64::MAX, 15, 16), Span);
    refused!(one("F32", "", 0, 0, 0), Span);
    refused!(one("F32", "0", 0, 4, 4), Span);
    refused!(one("F32", "4", 1, 17, 16), OutsideFile, "`model.w`", "ends at byte 17", "16 bytes");
    refused!(one("F32", "4", u64::MAX - 16, u64::MAX, 16), OutsideFile);
    refused!(one("F32", "4", 1, 17, 17), Gap, "bytes 0 to 1");
    refused!(one("F32", "4", 0, 16, 20), Gap, "bytes 16 to 20");
    refused!(one("F32", "4611686018427387904", 0, 0, 0), Size, "`model.w`", "overflow");
    refused!(one("U8", "4294967296,4294967296", 0, 0, 0), Size, "`model.w`", "overflow");
    refused!(one("U8", "0,18446744073709551615,2", 0, 0, 0), Size);
    refused!(one("F4", "3", 0, 1, 1), Size, "end inside a byte");
    refused!(one("F6_E2M3", "2", 0, 1, 1), Size, "end inside a byte");
    refused!(one("F128", "4", 0, 16, 16), Type, "`model.w`", "\"F128\"");
    refused!(one("F128", "4", u64::MAX, 0, 16), Type);
    refused!(one("f32", "4", 0, 16, 16), Type);
    let two = |a: (u64, u64), b: (u64, u64)| {
        let shape = |(start, end): (u64, u64)| (end - start).to_string();
        let entries = [entry("a", "U8", &shape(a), a.0, a.1), entry("b", "U8", &shape(b), b.0, b.1)];
        safetensors(&header(&entries), 10)
    };
    assert!(Safetensors::parse(two((4, 10), (0, 4))).is_ok());
    refused!(two((0, 6), (4, 10)), Overlap, "`a` and `b`");
    refused!(two((0, 10), (0, 10)), Overlap);
    refused!(two((0, 10), (3, 3)), Overlap);
    refused!(two((0, 4), (6, 10)), Gap, "bytes 4 to 6");
}

/// A small valid file with a bit of everything.
fn small_file() -> Vec<u8> {
    let entries = [
        entry("model.embed.weight", "F16", "3,4", 0, 24),
        entry("model.norm.weight", "F32", "4", 24, 40),
        entry("model.q.weight", "F8_E4M3", "2,2", 40, 44),
        entry("model.q.weight_scale_inv", "BF16", "1,1", 44, 46),
    ];
    safetensors(&format!(r#"{{"__metadata__":{{"format":"pt"}},{}}}"#, entries.join(",")), 46)
}

/// Reads everything that a file offers.
fn use_all(file: &Safetensors) -> usize {
    let bytes = |data: &[u8]| data.iter().map(|&b| usize::from(b)).sum::<usize>();
    file.tensors()
        .map(|t| bytes(t.data()) + t.n_values().min(1) + format!("{t:?} {:?}", t.dtype()).len())
        .sum()
}

#[test]
fn truncation_at_every_byte() {
    let whole = small_file();
    use_all(&Safetensors::parse(&*whole).unwrap());
    for len in 0..whole.len() {
        let error = Safetensors::parse(&whole[..len]).expect_err("a truncated file was accepted");
        let expected = matches!(
            error,
            SafetensorsError::Short { .. }
                | SafetensorsError::HeaderLength { .. }
                | SafetensorsError::OutsideFile { .. }
        );
        assert!(expected, "{len} bytes: {error:?}");
    }
}

#[test]
fn random_damage() {
    let whole = small_file();
    let mut random = Random(3);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..50_000 {
        match Safetensors::parse(random.damage(&whole)) {
            Ok(file) => accepted += usize::from(use_all(&file) > 0),
            Err(error) => refused += usize::from(!error.to_string().is_empty()),
        }
    }
    assert!(
        accepted > 1000 && refused > 1000,
        "{accepted} accepted, {refused} refused: the damage tests nothing"
    );
}
