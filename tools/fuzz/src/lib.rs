//! What the fuzz targets share: inputs of several files, memory that is watched, and reading all that a file offers.

use memra_formats::{Gguf, Tensor};
use peak_alloc::PeakAlloc;
use std::hint::black_box;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// What an error, or the handles of a file, may take whatever its size.
const CONSTANT: usize = 64 << 10;

/// Runs `read` and panics when it allocates more than a file of `len` bytes may cost.
pub fn bounded<T>(len: usize, read: impl FnOnce() -> T) -> T {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = read();
    let peak = ALLOCATOR.peak_usage().saturating_sub(before);
    assert!(peak <= len + CONSTANT, "{peak} bytes were allocated for {len} bytes of input");
    result
}

/// Files packed into one input: each is its length in four bytes, then its bytes. The last may be cut short.
pub fn pack(files: &[&[u8]]) -> Vec<u8> {
    files.iter().flat_map(|file| [&(file.len() as u32).to_le_bytes(), *file].concat()).collect()
}

/// The files of a packed input, at most `most`.
pub fn unpack(mut input: &[u8], most: usize) -> Vec<&[u8]> {
    let mut files = Vec::new();
    while let Some((len, rest)) = input.split_first_chunk::<4>().filter(|_| files.len() < most) {
        let (file, rest) = rest.split_at(rest.len().min(u32::from_le_bytes(*len) as usize));
        files.push(file);
        input = rest;
    }
    files
}

/// Reads a tensor in every way; it must be as large as its shape says.
pub fn use_tensor(tensor: Tensor<'_>) {
    black_box(format!("{tensor:?} {:?}", tensor.dtype()));
    black_box(tensor.data().iter().fold(0, |sum: u8, &byte| sum.wrapping_add(byte)));
    assert_eq!(*tensor.shared_data(), *tensor.data());
}

/// Reads everything that a file offers.
pub fn use_gguf(gguf: &Gguf) {
    let meta = gguf.metadata();
    for (key, value) in meta.iter() {
        black_box(value.to_string());
        assert_eq!(meta.value_of(key).map(|found| found.value_type()), Some(value.value_type()));
        black_box(meta.find::<u32>(key).map_err(|error| error.to_string())).ok();
        black_box(meta.find::<f32>(key).map_err(|error| error.to_string())).ok();
        black_box(meta.find::<&str>(key).map_err(|error| error.to_string())).ok();
        black_box(meta.find::<Vec<&str>>(key).map_err(|error| error.to_string())).ok();
        black_box(meta.find::<Vec<i32>>(key).map_err(|error| error.to_string())).ok();
    }
    for tensor in gguf.tensors() {
        use_tensor(tensor);
        let found = gguf.tensor(tensor.name()).expect("a tensor that is listed is found");
        assert_eq!(found.data().as_ptr(), tensor.data().as_ptr());
    }
}
