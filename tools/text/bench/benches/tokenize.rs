//! Bytes a second of encoding and decoding English prose and other text, on one core.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use memra_engine::tokenizer;
use memra_text::{EncodeOptions, Specials};
use memra_text_bench::{hugging_face, model, prose};
use std::hint::black_box;

const PLAIN: EncodeOptions = EncodeOptions { add_special: false, parse_special: false };

fn smollm2(c: &mut Criterion) {
    let Some(path) = model("SmolLM2-135M-Instruct.Q4_1.gguf") else { return };
    let (ours, theirs, text) = (tokenizer::open(&path).expect("it opens"), hugging_face(&path), prose());
    let ids = ours.encode(&text, PLAIN);
    let same = theirs.encode_fast(text.as_str(), false).expect("it encodes");
    assert_eq!(ids, same.get_ids(), "the two do not do the same work");
    let mut group = c.benchmark_group("smollm2");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("encode/memra", |b| b.iter(|| ours.encode(black_box(&text), PLAIN)));
    group.bench_function("encode/tokenizers", |b| b.iter(|| theirs.encode_fast(black_box(text.as_str()), false)));
    group.bench_function("decode/memra", |b| b.iter(|| ours.decode(black_box(&ids), Specials::Show)));
    group.bench_function("decode/tokenizers", |b| b.iter(|| theirs.decode(black_box(&ids), false)));
    group.finish();
}

fn gemma3(c: &mut Criterion) {
    let Some(path) = model("gemma-3-270m-q4_k_m.gguf") else { return };
    let (ours, text) = (tokenizer::open(&path).expect("it opens"), prose());
    let mut group = c.benchmark_group("gemma3");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("encode/memra", |b| b.iter(|| ours.encode(black_box(&text), PLAIN)));
    group.finish();
    c.bench_function("gemma3/open", |b| b.iter(|| tokenizer::open(&path)));
}

/// Texts without words to remember.
fn long_words(c: &mut Criterion) {
    let Some(path) = model("SmolLM2-135M-Instruct.Q4_1.gguf") else { return };
    let ours = tokenizer::open(&path).expect("it opens");
    let mut group = c.benchmark_group("long words");
    for (name, text) in [
        ("x", "x".repeat(36_000)),
        ("Z", "Z".repeat(131_072)),
        ("spaces", " ".repeat(36_000)),
        ("joiners", "\u{200d}".repeat(20_000)),
        ("Chinese", "北京是中华人民共和国的首都它的历史可以追溯到三千多年前".repeat(1000)),
    ] {
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |b| b.iter(|| ours.encode(black_box(&text), PLAIN)));
    }
    group.finish();
}

criterion_group!(benches, smollm2, gemma3, long_words);
criterion_main!(benches);
