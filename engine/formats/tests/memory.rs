//! Memory that reading takes: never more than the file has bytes, however it is made.
//!
//! One test, since the allocator counts for the whole process.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

mod common;

use common::{entry, header, safetensors};
use memra_formats::{Checkpoint, Gguf, Json, Safetensors, SharedBytes};
use peak_alloc::PeakAlloc;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Peak of what a summary and the figures of a footprint take beside the model.
fn figures(what: &str, model: &Checkpoint) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let start = Instant::now();
    let reasons = (model.summary(), model.footprint());
    let took = start.elapsed();
    let peak = ALLOCATOR.peak_usage() - before;
    drop(reasons);
    eprintln!("{what}: {} bytes, peak {peak}, {took:?}", model.file_bytes());
    assert!(peak <= 2 << 20, "{what}: {peak} bytes were allocated for its figures");
}

/// What an error, or the handles of a file, may take whatever its size.
const CONSTANT: usize = 64 << 10;

/// Peak of the memory that `read` allocates for a file, and the time it took.
fn measure<T>(file: Vec<u8>, read: impl Fn(SharedBytes) -> T) -> (usize, usize, Duration) {
    let (len, bytes) = (file.len(), SharedBytes::from(file));
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let start = Instant::now();
    let result = read(bytes);
    let took = start.elapsed();
    let peak = ALLOCATOR.peak_usage() - before;
    drop(result);
    (len, peak, took)
}

/// A file that is refused, with no more memory than an error takes, and no more than its own size.
fn refused<T, E: std::fmt::Debug>(what: &str, file: Vec<u8>, read: impl Fn(SharedBytes) -> Result<T, E>) {
    check(what, file, |bytes| assert!(read(bytes).is_err(), "{what} was accepted"));
}

fn check<T>(what: &str, file: Vec<u8>, read: impl Fn(SharedBytes) -> T) {
    let (len, peak, took) = measure(file, read);
    eprintln!("{what}: {len} bytes, peak {peak}, {took:?}");
    assert!(peak <= len + CONSTANT, "{what}: {peak} bytes were allocated for a file of {len}");
}

fn gguf_header(n_tensors: u64, n_keys: u64) -> Vec<u8> {
    let counts = [n_tensors, n_keys].map(u64::to_le_bytes);
    [b"GGUF".as_slice(), &3u32.to_le_bytes(), &counts[0], &counts[1]].concat()
}

fn gguf_string(file: &mut Vec<u8>, text: &str) {
    file.extend((text.len() as u64).to_le_bytes());
    file.extend(text.as_bytes());
}

/// A file of nothing but tensors of these dimensions, named by `name`.
fn gguf_tensors(n: u64, dims: &[u64], bytes: u64, name: impl Fn(u64) -> String) -> Vec<u8> {
    let mut file = gguf_header(n, 1);
    gguf_string(&mut file, "general.alignment");
    file.extend([4u32, 1].map(u32::to_le_bytes).concat());
    for i in 0..n {
        gguf_string(&mut file, &name(i));
        file.extend((dims.len() as u32).to_le_bytes());
        file.extend(dims.iter().flat_map(|dim| dim.to_le_bytes()));
        file.extend(0u32.to_le_bytes());
        file.extend((i * bytes).to_le_bytes());
    }
    file.resize(file.len() + (n * bytes) as usize, 0);
    file
}

/// A file of nothing but keys with values of type `id` and these bytes.
fn gguf_keys(n: u64, id: u32, value: &[u8]) -> Vec<u8> {
    let mut file = gguf_header(0, n);
    for i in 0..n {
        gguf_string(&mut file, &format!("{i:x}"));
        file.extend(id.to_le_bytes());
        file.extend(value);
    }
    file
}

fn safetensors_of(n: u64, shape: &str, name: impl Fn(u64) -> String) -> Vec<u8> {
    let entries: Vec<_> = (0..n).map(|i| entry(&name(i), "U8", shape, 0, 0)).collect();
    safetensors(&header(&entries), 0)
}

#[test]
fn memory_is_bounded_by_the_file() {
    let gguf = |bytes| Gguf::parse(bytes).unwrap();
    check("gguf, scalars", gguf_tensors(1 << 15, &[], 4, |i| format!("{i:x}")), gguf);
    check("gguf, empty vectors", gguf_tensors(1 << 15, &[0], 0, |i| format!("{i:x}")), gguf);
    check("gguf, empty tensors", gguf_tensors(1 << 15, &[0, 1, 1, 1], 0, |i| format!("{i:x}")), gguf);
    check("gguf, large and empty", gguf_tensors(1 << 15, &[0, 1 << 54, 1, 1], 0, |i| format!("{i:x}")), gguf);
    check("gguf, long names", gguf_tensors(100, &[], 4, |i| format!("{i:060000}")), gguf);
    check("gguf, one name twice", gguf_tensors(1 << 15, &[], 4, |_| String::new()), Gguf::parse);
    check("gguf, keys", gguf_keys(1 << 16, 0, &[0]), gguf);
    let empty_array = [8u32.to_le_bytes().as_slice(), &0u64.to_le_bytes()].concat();
    check("gguf, empty arrays", gguf_keys(1 << 16, 9, &empty_array), gguf);
    let strings = [8u32.to_le_bytes().as_slice(), &(1u64 << 20).to_le_bytes(), &vec![0; 8 << 20]].concat();
    check("gguf, a long array", gguf_keys(1, 9, &strings), gguf);
    check("gguf, numbers as texts", gguf_keys(1, 9, &[&[0; 4], &strings[4..]].concat()), |bytes| {
        let gguf = Gguf::parse(bytes).unwrap();
        gguf.metadata().get::<Vec<&str>>("0").unwrap_err().to_string()
    });

    let key = |id: u32, value: &[u8]| [gguf_keys(1, id, value), vec![0; 16]].concat();
    for len in [1_u64 << 62, 1 << 63, u64::MAX] {
        let len = len.to_le_bytes();
        refused("gguf, a huge text", key(8, &len), Gguf::parse);
        for items in 0_u32..13 {
            let array = [items.to_le_bytes().as_slice(), &len].concat();
            refused("gguf, a huge array", key(9, &array), Gguf::parse);
        }
        refused("safetensors, a huge header", [&len[..], b"{}"].concat(), Safetensors::parse);
    }
    let nested = [9_u32.to_le_bytes().as_slice(), &1_u64.to_le_bytes()].concat().repeat(10_000);
    refused("gguf, nested arrays", key(9, &nested), Gguf::parse);
    refused("gguf, a million keys", gguf_keys(1_000_000, 0, &[0]), Gguf::parse);
    refused("gguf, huge dims", gguf_tensors(1, &[1 << 63, 2], 0, |_| "w".to_owned()), Gguf::parse);
    let long_name = [gguf_header(1, 0), (1_u64 << 63).to_le_bytes().to_vec(), vec![0; 64]].concat();
    refused("gguf, a huge name", long_name, Gguf::parse);
    let deep = format!("{{\"w\":{}", "[".repeat(1 << 20));
    refused("safetensors, nested lists", safetensors(&deep, 0), Safetensors::parse);

    let read = |bytes| Safetensors::parse(bytes).unwrap();
    check("safetensors, empty", safetensors_of(1 << 14, "0", |i| format!("{i:x}")), read);
    check("safetensors, many dims", safetensors_of(1 << 14, "0,1,1,1,1,1,1,1", |i| format!("{i:x}")), read);
    check("safetensors, long names", safetensors_of(100, "0", |i| format!("{i:060000}")), read);
    check("safetensors, one name twice", safetensors_of(1 << 14, "0", |_| String::new()), Safetensors::parse);
    let metadata = format!("{{\"__metadata__\":{{{}}}}}", vec!["\"\":\"\""; 1 << 18].join(","));
    check("safetensors, metadata", safetensors(&metadata, 0), read);
    let nested = format!("{{\"a\":{}}}", vec!["{\"a\":[0]}"; 1 << 16].join(",\"a\":"));
    check("json", nested.into(), |bytes| Json::parse("config.json", bytes).unwrap().find::<u8>("b").unwrap());

    let blocks = |i| format!("blk.{i}.attn_k.weight");
    figures("a block a tensor", &Checkpoint::Gguf(gguf(gguf_tensors(1 << 15, &[], 4, blocks).into())));
    let strange = |i| format!("{i:060000}");
    figures("long unknown names", &Checkpoint::Gguf(gguf(gguf_tensors(100, &[], 4, strange).into())));
}
