//! What the fuzz targets share: inputs of several files, memory that is watched, and reading all that a file offers.

use memra_formats::{Checkpoint, Gguf, Safetensors, SafetensorsError as Error, SharedBytes, Tensor};
use memra_kernels::DType;
use memra_text::{EncodeOptions, Specials, Tokenizer};
use peak_alloc::PeakAlloc;
use safetensors::SafeTensorError as Theirs;
use std::hint::black_box;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// What an error, or the handles of a file, may take whatever its size.
const CONSTANT: usize = 64 << 10;

/// Runs `read` and panics when it allocates more than a file of `len` bytes may cost.
pub fn bounded<T>(len: usize, read: impl FnOnce() -> T) -> T {
    bounded_by(len + CONSTANT, read)
}

/// Runs `work` and panics when it holds more than `most` bytes at one time.
pub fn bounded_by<T>(most: usize, work: impl FnOnce() -> T) -> T {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = work();
    let peak = ALLOCATOR.peak_usage().saturating_sub(before);
    assert!(peak <= most, "{peak} bytes were allocated where {most} would do");
    result
}

/// The parts of an input that end in the byte FF, which no UTF-8 has; what is not there is empty.
pub fn parts<const N: usize>(input: &[u8]) -> [&[u8]; N] {
    let mut split = input.splitn(N, |&byte| byte == 0xFF);
    std::array::from_fn(|_| split.next().unwrap_or_default())
}

/// Sends a text through a tokenizer in every way; with `is_lossless` its tokens must say the text again.
pub fn use_tokenizer(tokenizer: &Tokenizer, text: &str, is_lossless: bool) {
    for parse_special in [false, true] {
        let ids = tokenizer.encode(text, EncodeOptions { add_special: false, parse_special });
        assert!(ids.iter().all(|&id| (id as usize) < tokenizer.vocab_size()));
        let mut detokenizer = tokenizer.detokenizer(Specials::Show).at_start();
        let mut streamed = String::new();
        ids.iter().for_each(|&id| streamed.push_str(detokenizer.push(id)));
        streamed.push_str(detokenizer.finish());
        assert_eq!(streamed, tokenizer.decode(&ids, Specials::Show));
        if is_lossless {
            assert_eq!(streamed, text, "the text is not what its tokens say");
        }
    }
    black_box(tokenizer.encode(text, EncodeOptions { add_special: true, parse_special: true }));
    black_box(tokenizer.decode(&[0, u32::MAX, tokenizer.vocab_size() as u32], Specials::Skip));
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

/// Sums a model up and reckons what it needs.
pub fn use_figures(model: &Checkpoint) {
    black_box(model.summary());
    let footprint = model.footprint();
    black_box(footprint.decode.map_err(|reason| reason.to_string())).ok();
    if let Ok(cache) = footprint.cache {
        for (context, k, v) in [(1, DType::F32, DType::Q8_0), (u64::MAX, DType::F16, DType::F16)] {
            black_box(cache.bytes(context, k, v).map_err(|reason| reason.to_string())).ok();
        }
    }
}

/// Reads a safetensors file with our reader and with the format's own: both read the same, or both refuse it.
pub fn compare_safetensors(file: &[u8]) {
    let bytes = SharedBytes::from(file);
    let ours = bounded(file.len(), || Safetensors::parse(bytes));
    let theirs = safetensors::SafeTensors::deserialize(file);
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => {
            assert_eq!(ours.tensors().len(), theirs.len());
            for tensor in ours.tensors() {
                let view = theirs.tensor(tensor.name()).expect("both have it");
                assert_eq!((tensor.data(), &*tensor.shape()), (view.data(), view.shape()));
                assert_eq!(tensor.storage().to_string(), view.dtype().to_string());
                use_tensor(tensor);
            }
        }
        // We do not look into `__metadata__`, which must be texts, nor into fields that we do not know.
        (Ok(ours), Err(Theirs::InvalidHeaderDeserialization(error))) => {
            let text = String::from_utf8_lossy(file);
            let unread = text.contains("__metadata__")
                || text.contains("\\u")
                || error.to_string().contains("recursion");
            assert!(unread, "refused by them alone: {error}");
            ours.tensors().for_each(use_tensor);
        }
        // They take the last of two tensors of one name, any name, any number of dimensions, and sizes that overflow
        // behind a zero.
        (
            Err(
                Error::DuplicateTensor { .. } | Error::Name { .. } | Error::Entry { .. } | Error::Size { .. },
            ),
            Ok(_),
        ) => {}
        (Err(ours), Ok(_)) => panic!("refused by us alone: {ours}"),
        (Err(ours), Err(_)) => drop(ours.to_string()),
        (Ok(_), Err(theirs)) => panic!("refused by them alone: {theirs}"),
    }
}

/// A token for each byte, in GPT-2's alphabet: printable Latin-1 stands for itself, the rest for U+0100 and up.
pub fn byte_alphabet() -> Vec<String> {
    let mut shifted = 0xFF;
    let mut token = |byte: u8| match byte {
        b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => char::from(byte).to_string(),
        _ => {
            shifted += 1;
            char::from_u32(shifted).map(String::from).unwrap_or_default()
        }
    };
    (0..=u8::MAX).map(&mut token).collect()
}
