//! Models split over several GGUF files: written, read from any part, and broken in every way that parts can be.
#![allow(clippy::unwrap_used, reason = "a test stops at what it does not expect")]

use memra_formats::{Gguf, GgufError, GgufWriter, SharedBytes, split_file_name};
use memra_kernels::DType;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;

const NAMES: [&str; 5] = ["token_embd.weight", "blk.0.a", "blk.0.none", "blk.0.b", "output.weight"];

/// The bytes of tensor `i`.
fn data(i: usize) -> Vec<u8> {
    vec![i as u8 + 1; [64, 40, 0, 4, 200][i]]
}

/// A sink whose bytes can be looked at after it was written.
#[derive(Clone, Default)]
struct Sink(Rc<RefCell<Vec<u8>>>);

impl std::io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The parts of a model, of at most `max_bytes` of tensors each.
fn parts(max_bytes: u64) -> Vec<Vec<u8>> {
    let mut writer = GgufWriter::with_alignment(64).unwrap();
    writer.metadata("general.architecture", "llama").unwrap();
    for (i, name) in NAMES.iter().enumerate() {
        writer.tensor(name, &[data(i).len() / 4], DType::F32).unwrap();
    }
    let sinks = RefCell::new(Vec::new());
    let create = |part, count| {
        let sink = Sink::default();
        assert_eq!(usize::from(part), sinks.borrow().len());
        assert!(part < count);
        sinks.borrow_mut().push(sink.clone());
        Ok(sink)
    };
    let mut body = writer.begin_split(max_bytes, create).unwrap();
    for i in 0..NAMES.len() {
        data(i).chunks(7).for_each(|piece| body.append(piece).unwrap());
    }
    assert!(matches!(body.append(&[0]), Err(GgufError::Data { .. })));
    body.finish().unwrap();
    sinks.take().into_iter().map(|sink| sink.0.take()).collect()
}

/// Writes parts into a folder under their proper names.
fn save(dir: &Path, parts: &[Vec<u8>]) -> Vec<PathBuf> {
    let name = |i| dir.join(split_file_name("model", i as u16, parts.len() as u16));
    let paths: Vec<_> = (0..parts.len()).map(name).collect();
    paths.iter().zip(parts).for_each(|(path, part)| std::fs::write(path, part).unwrap());
    paths
}

fn check_whole(gguf: &Gguf) {
    assert_eq!(gguf.metadata().get::<&str>("general.architecture").unwrap(), "llama");
    assert_eq!(gguf.alignment(), 64);
    assert!(gguf.tensors().map(|tensor| tensor.name()).eq(NAMES));
    for (i, name) in NAMES.iter().enumerate() {
        assert_eq!(gguf.tensor(name).unwrap().data(), data(i));
        assert_eq!(*gguf.tensor(name).unwrap().shared_data(), data(i));
    }
}

#[test]
fn parts_are_one_model_from_whichever_is_opened() {
    for (max_bytes, count) in [(0, 5), (64, 4), (128, 3), (u64::MAX, 1)] {
        let dir = tempfile::tempdir().unwrap();
        let parts = parts(max_bytes);
        assert_eq!(parts.len(), count, "{max_bytes}");
        let paths = save(dir.path(), &parts);
        for path in &paths {
            let gguf = Gguf::open(path).unwrap();
            check_whole(&gguf);
            assert_eq!(gguf.paths(), paths);
            assert_eq!(gguf.file_bytes(), parts.iter().map(|part| part.len() as u64).sum::<u64>());
            assert_eq!(gguf.tensor("output.weight").unwrap().part(), count - 1);
        }
        let shared: Vec<SharedBytes> = parts.into_iter().map(SharedBytes::from).collect();
        check_whole(&Gguf::parse_parts(&shared).unwrap());
    }
}

/// The error of opening these parts.
fn refusal(parts: &[Vec<u8>], change: impl Fn(&[PathBuf])) -> String {
    let dir = tempfile::tempdir().unwrap();
    let paths = save(dir.path(), parts);
    change(&paths);
    let error = Gguf::open(paths.iter().find(|path| path.exists()).unwrap()).unwrap_err();
    error.to_string().replace(&dir.path().display().to_string(), "DIR")
}

#[test]
fn missing_and_misnamed_parts() {
    let parts = parts(128);
    let error = refusal(&parts, |paths| std::fs::remove_file(&paths[1]).unwrap());
    assert!(
        error.starts_with("part 2 of 3 is missing: cannot open DIR/model-00002-of-00003.gguf: "),
        "{error}"
    );
    let error = refusal(&parts, |paths| std::fs::remove_file(&paths[0]).unwrap());
    assert!(error.starts_with("part 1 of 3 is missing: "), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("renamed.gguf");
    std::fs::write(&path, &parts[1]).unwrap();
    let error = Gguf::open(&path).unwrap_err().to_string();
    assert!(error.starts_with("the file is part 2 of 3; keep all parts"), "{error}");
    assert!(error.contains("-00002-of-00003.gguf"), "{error}");
    assert!(matches!(Gguf::parse(&*parts[0]), Err(GgufError::OnePart { part: 1, count: 3 })));
    let named_as_of_four = dir.path().join("model-00002-of-00004.gguf");
    std::fs::rename(&path, &named_as_of_four).unwrap();
    let error = Gguf::open(&named_as_of_four).unwrap_err().to_string();
    assert!(error.starts_with("`split.count` is 3 but must be 4"), "{error}");
}

#[test]
fn parts_that_do_not_belong_together() {
    let parts = parts(128);
    let swapped = [parts[0].clone(), parts[2].clone(), parts[1].clone()];
    let error = refusal(&swapped, |_| {});
    assert!(error.starts_with("DIR/model-00002-of-00003.gguf: `split.no` is 2 but must be 1"), "{error}");
    let twice = [parts[0].clone(), parts[0].clone(), parts[2].clone()];
    let error = refusal(&twice, |_| {});
    assert!(error.starts_with("DIR/model-00002-of-00003.gguf: `split.no` is 0 but must be 1"), "{error}");
    let other = self::parts(100_000).swap_remove(0);
    let error = refusal(&[parts[0].clone(), other, parts[2].clone()], |_| {});
    assert!(error.starts_with("DIR/model-00002-of-00003.gguf: `split.count` is 1 but must be 3"), "{error}");
    let damaged = [parts[0].clone(), parts[1].clone(), parts[2][..parts[2].len() - 57].to_vec()];
    let error = refusal(&damaged, |_| {});
    assert!(
        error.starts_with("DIR/model-00003-of-00003.gguf: tensor `output.weight` needs 200 bytes"),
        "{error}"
    );
    let foreign = self::parts(64).swap_remove(3);
    let error = refusal(&[parts[0].clone(), parts[1].clone(), foreign], |_| {});
    assert!(error.contains("`split.count` is 4 but must be 3"), "{error}");
}

/// A part with these keys and tensors, all of 32 bytes.
fn part(no: u16, count: u16, n_tensors: i32, names: &[&str]) -> SharedBytes {
    let mut writer = GgufWriter::new();
    writer.metadata("split.no", &no).unwrap().metadata("split.count", &count).unwrap();
    writer.metadata("split.tensors.count", &n_tensors).unwrap();
    names.iter().for_each(|name| _ = writer.tensor(name, &[8], DType::F32).unwrap());
    let mut body = writer.begin(Vec::new()).unwrap();
    names.iter().for_each(|_| body.append(&[0; 32]).unwrap());
    body.finish().unwrap().into()
}

#[test]
fn counts_and_names_across_parts() {
    let error = |parts: &[SharedBytes]| Gguf::parse_parts(parts).unwrap_err();
    let whole = [part(0, 2, 2, &["a"]), part(1, 2, 2, &["b"])];
    assert_eq!(Gguf::parse_parts(&whole).unwrap().tensors().len(), 2);
    let twice = error(&[part(0, 2, 2, &["a"]), part(1, 2, 2, &["a"])]);
    assert!(matches!(twice, GgufError::DuplicateTensor { .. }), "{twice:?}");
    for wrong in [3, -1] {
        let error = error(&[part(0, 2, wrong, &["a"]), part(1, 2, wrong, &["b"])]).to_string();
        assert!(error.contains("split.tensors.count"), "{error}");
    }
    assert!(matches!(error(&whole[..1]), GgufError::OnePart { .. }));
    assert!(matches!(error(&[]), GgufError::Magic { .. }));
    let many = [whole[0].clone(), whole[1].clone(), part(2, 2, 2, &[])];
    assert!(matches!(error(&many), GgufError::SplitMismatch { key: "split.count", .. }));
}

#[test]
fn the_split_writer_sets_the_keys_itself() {
    let mut writer = GgufWriter::new();
    writer.metadata("split.no", &0u16).unwrap();
    let error = writer.begin_split(1, |_, _| Ok(Vec::new())).unwrap_err();
    assert!(matches!(error, GgufError::DuplicateKey { .. }), "{error:?}");
    let mut writer = GgufWriter::new();
    writer.tensor("t", &[8], DType::F32).unwrap();
    let body = writer.begin_split(1, |_, _| Ok(Vec::new())).unwrap();
    assert!(matches!(body.finish(), Err(GgufError::Data { .. })));
}
