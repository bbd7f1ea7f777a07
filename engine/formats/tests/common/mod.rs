//! What tests of several files share.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use memra_formats::{Checkpoint, GgufWriter, ScalarType};
use memra_kernels::DType;
use std::collections::BTreeMap;
use std::fs::File;
use tempfile::TempDir;

/// A safetensors file of this header and these many bytes of data.
pub(crate) fn safetensors(header: &str, data: usize) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.extend((0..data).map(|i| i as u8));
    file
}

/// An entry of a header: `"name":{…}`.
pub(crate) fn entry(name: &str, dtype: &str, shape: &str, start: u64, end: u64) -> String {
    format!(r#""{name}":{{"dtype":"{dtype}","shape":[{shape}],"data_offsets":[{start},{end}]}}"#)
}

/// A header of these entries.
pub(crate) fn header(entries: &[String]) -> String {
    format!("{{{}}}", entries.join(","))
}

/// Numbers that differ from run to run only if the code does (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    /// A copy with one to four places damaged.
    pub(crate) fn damage(&mut self, whole: &[u8]) -> Vec<u8> {
        let mut bytes = whole.to_vec();
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len());
            match self.below(4) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = self.below(256) as u8,
                2 => bytes[at] = 0xFF,
                // A whole length or offset becomes huge.
                _ => bytes[at..].iter_mut().take(8).for_each(|byte| *byte = 0xFF),
            }
        }
        bytes
    }
}

/// A model of which there is the header: tensors of F16 in GGUF, or of any type in safetensors.
pub(crate) struct Model {
    architecture: String,
    numbers: BTreeMap<String, u32>,
    flags: BTreeMap<String, Vec<bool>>,
    tensors: Vec<(String, Vec<usize>)>,
    /// `config.json`, of a folder.
    pub(crate) config: String,
    entries: Vec<String>,
    bytes: u64,
}

impl Model {
    pub(crate) fn new(architecture: &str) -> Model {
        Model {
            architecture: architecture.to_owned(),
            numbers: BTreeMap::new(),
            flags: BTreeMap::new(),
            tensors: Vec::new(),
            config: String::new(),
            entries: Vec::new(),
            bytes: 0,
        }
    }

    /// Metadata under the architecture's name.
    pub(crate) fn numbers(&mut self, pairs: &[(&str, u32)]) {
        pairs.iter().for_each(|&(key, value)| self.replace(key, value));
    }

    pub(crate) fn replace(&mut self, key: &str, value: u32) {
        self.numbers.insert(key.to_owned(), value);
    }

    pub(crate) fn flags(&mut self, key: &str, values: &[bool]) {
        self.flags.insert(key.to_owned(), values.to_vec());
    }

    /// A tensor of a GGUF file, dimensions fastest first.
    pub(crate) fn gguf(&mut self, name: &str, dims: &[usize]) {
        self.tensors.push((name.to_owned(), dims.to_vec()));
    }

    /// A tensor of a folder, dimensions slowest first.
    pub(crate) fn folder(&mut self, name: &str, dtype: &str, shape: &[usize]) {
        let size = ScalarType::from_name(dtype).unwrap().bits() as u64 / 8;
        let end = self.bytes + shape.iter().map(|&n| n as u64).product::<u64>() * size;
        let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
        self.entries.push(entry(name, dtype, &shape.join(","), self.bytes, end));
        self.bytes = end;
    }

    pub(crate) fn open_gguf(&self) -> (TempDir, Checkpoint) {
        let mut writer = GgufWriter::new();
        writer.metadata("general.architecture", &self.architecture).unwrap();
        for (key, value) in &self.numbers {
            writer.metadata(&format!("{}.{key}", self.architecture), value).unwrap();
        }
        for (key, value) in &self.flags {
            writer.metadata(&format!("{}.{key}", self.architecture), value).unwrap();
        }
        let mut data = 0;
        for (name, dims) in &self.tensors {
            writer.tensor(name, dims, DType::F16).unwrap();
            data += (2 * dims.iter().product::<usize>() as u64).next_multiple_of(32);
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model.gguf");
        drop(writer.begin(File::create(&path).unwrap()).unwrap());
        let header = std::fs::metadata(&path).unwrap().len();
        File::options().write(true).open(&path).unwrap().set_len(header + data).unwrap();
        let model = Checkpoint::open(&path).unwrap();
        (dir, model)
    }

    pub(crate) fn open_folder(&self) -> (TempDir, Checkpoint) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config.json"), &self.config).unwrap();
        let path = dir.path().join("model.safetensors");
        std::fs::write(&path, safetensors(&header(&self.entries), 0)).unwrap();
        let header = std::fs::metadata(&path).unwrap().len();
        File::options().write(true).open(&path).unwrap().set_len(header + self.bytes).unwrap();
        let model = Checkpoint::open(dir.path()).unwrap();
        (dir, model)
    }
}

/// The experts of a layer of gpt-oss-20b, as its makers store them.
pub(crate) fn experts_of_gpt_oss(mut add: impl FnMut(&str, &str, &[usize])) {
    for (name, n) in [("gate_up_proj", 5760), ("down_proj", 2880)] {
        add(&format!("mlp.experts.{name}_blocks"), "U8", &[32, n, 90, 16]);
        add(&format!("mlp.experts.{name}_scales"), "U8", &[32, n, 90]);
        add(&format!("mlp.experts.{name}_bias"), "BF16", &[32, n]);
    }
}
