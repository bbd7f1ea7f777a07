//! Whatever is written is read back, and our reader of safetensors agrees with the format's own.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod common;

use common::Random;
use memra_formats::{Gguf, GgufWriter, Safetensors, SharedBytes, Value};
use memra_kernels::DType;
use proptest::prelude::*;
use proptest::{collection::vec, sample::select};
use safetensors::tensor::{Dtype, TensorView};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Names with anything printable, short and long.
fn names(n: usize) -> impl Strategy<Value = Vec<String>> {
    vec("[a-z.0-9_é日\"\\\\]{0,12}|[a-z]{100}", n).prop_map(|names| {
        let unique: std::collections::BTreeSet<String> = names.into_iter().collect();
        unique.into_iter().collect()
    })
}

/// A storage type, and dimensions in whole blocks.
fn shapes() -> impl Strategy<Value = (DType, Vec<usize>)> {
    let dtype = select(DType::all().filter(|dtype| dtype.gguf_id().is_some()).collect::<Vec<_>>());
    (dtype, vec(0usize..4, 0..=4)).prop_map(|(dtype, mut dims)| {
        match dims.first_mut() {
            Some(k) => *k *= dtype.block_len(),
            None if dtype.is_quantised() => dims.push(dtype.block_len()),
            None => {}
        }
        (dtype, dims)
    })
}

fn data_of(i: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + i * 7) as u8).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn gguf_round_trips(
        keys in names(6),
        texts in vec(any::<String>(), 6),
        numbers in vec(any::<(u64, i32, f32, bool)>(), 0..4),
        tensors in names(6),
        shapes in vec(shapes(), 6),
        alignment in select(vec![1u32, 8, 32, 4096]),
        max_bytes in 0u64..500,
    ) {
        let mut writer = GgufWriter::with_alignment(alignment).unwrap();
        for (key, text) in keys.iter().zip(&texts) {
            writer.metadata(key, text.as_str()).unwrap();
        }
        let unsigned: Vec<u64> = numbers.iter().map(|n| n.0).collect();
        writer.metadata("split list", &unsigned).unwrap();
        writer.metadata("texts list", &texts).unwrap();
        for (name, (dtype, dims)) in tensors.iter().zip(&shapes) {
            writer.tensor(name, dims, *dtype).unwrap();
        }
        let mut body = writer.clone().begin(Vec::new()).unwrap();
        let sinks = RefCell::new(Vec::new());
        let dir = tempfile::tempdir().unwrap();
        let mut split = writer
            .begin_split(max_bytes, |part, _| {
                let path = dir.path().join(part.to_string());
                sinks.borrow_mut().push(path.clone());
                std::fs::File::create(path)
            })
            .unwrap();
        let bytes = |(dtype, dims): &(DType, Vec<usize>)| {
            dims.iter().product::<usize>() / dtype.block_len() * dtype.block_bytes()
        };
        let datas: Vec<_> =
            tensors.iter().zip(&shapes).enumerate().map(|(i, (_, shape))| data_of(i, bytes(shape))).collect();
        for data in &datas {
            body.append(data).unwrap();
            split.append(data).unwrap();
        }
        split.finish().unwrap();
        let parts: Vec<SharedBytes> =
            sinks.take().iter().map(|path| std::fs::read(path).unwrap().into()).collect();
        for gguf in [Gguf::parse(body.finish().unwrap()).unwrap(), Gguf::parse_parts(&parts).unwrap()] {
            let meta = gguf.metadata();
            for (key, text) in keys.iter().zip(&texts) {
                prop_assert_eq!(meta.value_of(key), Some(Value::Str(text.as_bytes())));
            }
            prop_assert_eq!(meta.get::<Vec<u64>>("split list").unwrap(), unsigned.clone());
            prop_assert_eq!(meta.get::<Vec<&str>>("texts list").unwrap(), texts.iter().collect::<Vec<_>>());
            prop_assert_eq!(gguf.tensors().len(), tensors.len());
            for ((name, (dtype, dims)), data) in tensors.iter().zip(&shapes).zip(&datas) {
                let tensor = gguf.tensor(name).unwrap();
                prop_assert_eq!((tensor.dtype().unwrap(), tensor.dims().to_vec()), (*dtype, dims.clone()));
                prop_assert_eq!(tensor.data(), data.as_slice());
            }
        }
    }

    #[test]
    fn safetensors_agree_with_the_formats_own_crate(
        names in names(8),
        shapes in vec((select(TYPES.to_vec()), vec(0usize..5, 0..=5)), 8),
        seed in any::<u64>(),
    ) {
        let file = serialized(&names, &shapes);
        let ours = Safetensors::parse(file.clone()).unwrap();
        let theirs = safetensors::SafeTensors::deserialize(&file).unwrap();
        prop_assert_eq!(ours.tensors().len(), theirs.len());
        for (name, view) in theirs.iter() {
            let tensor = ours.tensor(name).unwrap();
            prop_assert_eq!(&*tensor.shape(), view.shape());
            prop_assert_eq!(tensor.storage().to_string(), view.dtype().to_string());
            prop_assert_eq!(tensor.data(), view.data());
        }
        // Damaged, it is refused by both, or read alike by both.
        let mut random = Random(seed);
        for _ in 0..20 {
            compare(&random.damage(&file))?;
        }
    }
}

/// Types of whole bytes and of less.
const TYPES: [Dtype; 9] = [
    Dtype::BOOL,
    Dtype::U8,
    Dtype::F8_E4M3,
    Dtype::F8_E8M0,
    Dtype::F16,
    Dtype::BF16,
    Dtype::I32,
    Dtype::F32,
    Dtype::C64,
];

fn serialized(names: &[String], shapes: &[(Dtype, Vec<usize>)]) -> Vec<u8> {
    let bytes = |(dtype, shape): &(Dtype, Vec<usize>)| shape.iter().product::<usize>() * dtype.bitsize() / 8;
    let datas: Vec<_> = shapes.iter().enumerate().map(|(i, shape)| data_of(i, bytes(shape))).collect();
    let views: BTreeMap<_, _> = names
        .iter()
        .zip(shapes.iter().zip(&datas))
        .map(|(name, ((dtype, shape), data))| (name, TensorView::new(*dtype, shape.clone(), data).unwrap()))
        .collect();
    safetensors::serialize(views, None).unwrap()
}

/// Both readers accept a file, or both refuse it; but ours refuses names twice, names that cannot be printed, and sizes
/// that overflow beside a zero too.
fn compare(file: &[u8]) -> Result<(), TestCaseError> {
    use memra_formats::SafetensorsError as Error;
    match (Safetensors::parse(file), safetensors::SafeTensors::deserialize(file)) {
        (Ok(ours), Ok(theirs)) => {
            prop_assert_eq!(ours.tensors().len(), theirs.len());
            for tensor in ours.tensors() {
                prop_assert_eq!(tensor.data(), theirs.tensor(tensor.name()).unwrap().data());
            }
        }
        (Err(Error::DuplicateTensor { .. } | Error::Name { .. } | Error::Size { .. }), Ok(_))
        | (Err(_), Err(_)) => {}
        (ours, theirs) => prop_assert!(false, "ours: {:?}, theirs: {:?}", ours, theirs.map(|t| t.len())),
    }
    Ok(())
}
