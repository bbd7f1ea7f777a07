//! Model files and quantised blocks.

use super::Result;
use memra_formats::{GgufWriter, SharedBytes, ToValue};
use memra_fuzz::pack;
use memra_kernels::{DType, quant};
use std::{cell::RefCell, io, rc::Rc};

/// A file with metadata of this type and a tensor of this one.
fn gguf_of<T: ToValue>(value: &T, dtype: DType, alignment: u32) -> Result<Vec<u8>> {
    let mut writer = GgufWriter::with_alignment(alignment)?;
    writer.metadata("general.architecture", "llama")?;
    writer.metadata("k", value)?;
    writer.tensor("token_embd.weight", &[dtype.block_len(), 2], dtype)?;
    writer.tensor("b", &[0, 1, 3, 1], dtype)?;
    let mut body = writer.begin(Vec::new())?;
    body.append(&vec![7; dtype.block_bytes() * 2])?;
    Ok(body.finish()?)
}

pub(super) fn gguf() -> Result<Vec<Vec<u8>>> {
    let mut seeds = vec![
        gguf_of(&7u8, DType::F32, 32)?,
        gguf_of(&-7i64, DType::F16, 1)?,
        gguf_of(&1.5f64, DType::Q8_0, 64)?,
        gguf_of(&true, DType::Q4_K, 8)?,
        gguf_of(&vec!["", "a", "Ġthe"], DType::Q6_K, 32)?,
        gguf_of(&vec![vec![1u16], vec![]], DType::BF16, 32)?,
        gguf_of(&vec![0.5f32; 9], DType::Q4_1, 32)?,
        GgufWriter::new().begin(Vec::new())?.finish()?,
    ];
    // The same as version 2.
    let mut second = seeds[0].clone();
    second[4] = 2;
    seeds.push(second);
    Ok(seeds)
}

/// A sink whose bytes can be read after it was written.
#[derive(Clone, Default)]
struct Sink(Rc<RefCell<Vec<u8>>>);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn gguf_split() -> Result<Vec<Vec<u8>>> {
    let mut seeds = Vec::new();
    for max_bytes in [0, 64, 1000] {
        let mut writer = GgufWriter::new();
        writer.metadata("general.architecture", "llama")?;
        for name in ["a", "b", "c"] {
            writer.tensor(name, &[8], DType::F32)?;
        }
        let sinks = RefCell::new(Vec::new());
        let mut body = writer.begin_split(max_bytes, |_, _| {
            let sink = Sink::default();
            sinks.borrow_mut().push(sink.clone());
            Ok(sink)
        })?;
        (0..3).try_for_each(|_| body.append(&[1; 32]))?;
        body.finish()?;
        let parts: Vec<SharedBytes> = sinks.take().iter().map(|sink| sink.0.take().into()).collect();
        seeds.push(pack(&parts.iter().map(|part| &**part).collect::<Vec<_>>()));
    }
    Ok(seeds)
}

/// A file of this header and these many bytes of data.
fn safetensors_of(header: &str, data: usize) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &vec![5; data]].concat()
}

const ONE: &str = r#"{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;

pub(super) fn safetensors() -> Vec<Vec<u8>> {
    let three = r#"{"__metadata__":{"format":"pt"},"a.weight":{"dtype":"U8","shape":[2,2],"data_offsets":[8,12]},
        "b":{"dtype":"BF16","shape":[4],"data_offsets":[0,8]},"s":{"dtype":"F8_E8M0","shape":[],"data_offsets":[12,13]}} "#;
    let bits = r#"{"w":{"shape":[2,0],"dtype":"I64","data_offsets":[0,0]},"\u0062":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}}"#;
    vec![safetensors_of("{}", 0), safetensors_of(ONE, 8), safetensors_of(three, 13), safetensors_of(bits, 2)]
}

/// Headers behind the number of bytes of data.
pub(super) fn headers() -> Vec<Vec<u8>> {
    let of = |file: &Vec<u8>| {
        let length = usize::from(file[0]) + (usize::from(file[1]) << 8);
        [&[(file.len() - 8 - length) as u8], &file[8..8 + length]].concat()
    };
    safetensors().iter().map(of).collect()
}

/// Two blocks of every type behind its number.
pub(super) fn blocks() -> Result<Vec<Vec<u8>>> {
    let seed = |(i, dtype): (usize, DType)| {
        let values: Vec<f32> = (0..2 * dtype.block_len()).map(|k| (k as f32 * 0.7).sin()).collect();
        let bytes = quant::encode(dtype, &values).unwrap_or_else(|_| vec![0x3C; 2 * dtype.block_bytes()]);
        Ok([&[i as u8], &bytes[..]].concat())
    };
    DType::all().enumerate().map(seed).collect()
}

pub(super) fn folders() -> Vec<Vec<u8>> {
    let second = safetensors_of(r#"{"v":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}}"#, 3);
    let index = r#"{"metadata":{},"weight_map":{"w":"a.safetensors","v":"b.safetensors"}}"#;
    let config = r#"{"model_type":"llama","text_config":{"max_position_embeddings":64},"quantization_config":{"bits":4}}"#;
    let templates = r#"{"chat_template":[{"name":"default","template":"{{ x }}\n"}]}"#;
    let documents: [&[u8]; 3] =
        [templates.as_bytes(), br#"{"eos_token_id":[1,2]}"#, br#"{"model":{"type":"BPE"}}"#];
    let [templates, generation, tokenizer] = documents;
    let one = safetensors_of(ONE, 8);
    vec![
        pack(&[config.as_bytes(), index.as_bytes(), &one, &second, templates, generation, tokenizer]),
        pack(&[config.as_bytes(), br#"{"weight_map":{"w":"../a.safetensors"}}"#, &one]),
        pack(&[b"{}", br#"{"weight_map":{"w":"a.safetensors"}}"#, &one, b"", br#"{"chat_template":"t"}"#]),
    ]
}
