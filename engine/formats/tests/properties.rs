//! Whatever is written is read back, and our reader of safetensors agrees with the format's own.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod common;

use common::{Model, Random};
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

/// Names of which models are made, at random.
const NAMES: [&str; 16] = [
    "token_embd.weight",
    "output.weight",
    "output_norm.weight",
    "strange.weight",
    "blk.0.attn_k.weight",
    "blk.0.attn_v.weight",
    "blk.0.ffn_up_exps.weight",
    "blk.1.attn_qkv.weight",
    "blk.1.ssm_conv1d.weight",
    "blk.1.ffn_up.0.weight",
    "blk.1.ffn_up.4000000000.weight",
    "blk.2.attn_kv_a_mqa.weight",
    "blk.2.shortconv.conv.weight",
    "blk.2.nextn.eh_proj.weight",
    "blk.7.attn_k.weight",
    "blk.4294967295.attn_k.weight",
];

/// Hyperparameters that models say, at random.
const KEYS: [&str; 14] = [
    "block_count",
    "nextn_predict_layers",
    "embedding_length",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.sliding_window",
    "attention.shared_kv_layers",
    "expert_count",
    "expert_used_count",
    "ssm.inner_size",
    "ssm.state_size",
    "ssm.group_count",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn figures_of_any_model_are_bounded_or_unknown(
        architecture in select(vec!["llama", "gemma3", "qwen35moe", "llama4"]),
        numbers in vec(select(vec![0u32, 1, 2, 3, 4, 8, 64, u32::MAX]), KEYS.len()),
        said in vec(any::<bool>(), KEYS.len()),
        tensors in vec((any::<bool>(), vec(select(vec![1usize, 2, 4, 8, 64]), 0..=4)), NAMES.len()),
        flags in vec(any::<bool>(), 0..5),
        context in select(vec![0u64, 1, 100, u64::MAX]),
    ) {
        let mut model = Model::new(architecture);
        for ((key, number), said) in KEYS.iter().zip(numbers).zip(said) {
            if said {
                model.numbers(&[(key, number)]);
            }
        }
        if !flags.is_empty() {
            model.flags("attention.sliding_window_pattern", &flags);
        }
        for (name, (is_there, dims)) in NAMES.iter().zip(tensors) {
            if is_there {
                model.gguf(name, &dims);
            }
        }
        let (_dir, model) = model.open_gguf();
        let (summary, footprint) = (model.summary(), model.footprint());
        prop_assert!(summary.problems.is_empty());
        if let Ok(decode) = footprint.decode {
            // Tied embeddings are read for logits and for a row.
            prop_assert!(decode.bytes <= 2 * summary.tensor_bytes);
            prop_assert!(decode.active_params <= summary.n_params);
        }
        if let Ok(cache) = footprint.cache
            && let Ok(sizes) = cache.bytes(context, DType::F16, DType::F32)
        {
            prop_assert!(sizes.kept <= sizes.read);
            prop_assert!(u128::from(sizes.kept) <= u128::from(sizes.per_token) * u128::from(context));
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
