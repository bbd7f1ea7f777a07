//! Models split over several files.
//!
//! Each part is a GGUF file with tensors of its own; the first holds the model's metadata. Keys say which part a file
//! is, and names say where the others are.

use super::{GgufError, Metadata, reader};
use crate::SharedBytes;
use std::path::{Path, PathBuf};

/// Index of the part, from 0.
pub(super) const NO_KEY: &str = "split.no";
/// Number of parts.
pub(super) const COUNT_KEY: &str = "split.count";
/// Number of tensors in all parts.
pub(super) const TENSORS_KEY: &str = "split.tensors.count";

/// The name of a part's file: `model-00002-of-00003.gguf` is `split_file_name("model", 1, 3)`.
pub fn split_file_name(stem: &str, part: u16, count: u16) -> String {
    format!("{stem}-{:05}-of-{count:05}.gguf", u32::from(part) + 1)
}

/// Stem and number of parts, when a file is named as a part.
fn parse_file_name(name: &str) -> Option<(&str, u16)> {
    let numbered = name.strip_suffix(".gguf")?;
    let (rest, count) = numbered.rsplit_once("-of-")?;
    let (stem, no) = rest.rsplit_once('-')?;
    let five = |digits: &str| digits.len() == 5 && digits.bytes().all(|b| b.is_ascii_digit());
    let number = |digits: &str| digits.parse::<u16>().ok().filter(|_| five(digits));
    let (no, count) = (number(no)?, number(count)?);
    (1..=count).contains(&no).then_some((stem, count))
}

/// The files of a split model, when the keys and the name of this file say that it is a part of one.
pub(super) fn parts_of(path: &Path, bytes: &SharedBytes) -> Result<Option<Vec<PathBuf>>, GgufError> {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some((stem, named)) = name.and_then(parse_file_name) else { return Ok(None) };
    let metadata = reader::Head::read(bytes)?.metadata;
    let count = metadata.find::<u16>(COUNT_KEY)?.unwrap_or(1);
    if count <= 1 {
        return Ok(None);
    }
    expect(COUNT_KEY, count.into(), named.into())?;
    Ok(Some((0..count).map(|part| path.with_file_name(split_file_name(stem, part, count))).collect()))
}

/// Maps the parts.
pub(super) fn open_parts(paths: &[PathBuf]) -> Result<Vec<SharedBytes>, GgufError> {
    let count = paths.len();
    let open = |(part, path): (usize, &PathBuf)| {
        reader::map(path).map_err(|source| GgufError::MissingPart {
            part: part + 1,
            count,
            source: source.into(),
        })
    };
    paths.iter().enumerate().map(open).collect()
}

/// Checks that a file is the part it should be of so many.
pub(super) fn check(metadata: &Metadata, part: usize, count: usize) -> Result<(), GgufError> {
    let found = metadata.find::<u16>(COUNT_KEY)?.unwrap_or(1);
    if count == 1 && found <= 1 {
        return Ok(());
    }
    if count == 1 {
        let part = u32::from(metadata.get::<u16>(NO_KEY)?) + 1;
        return Err(GgufError::OnePart { part, count: found });
    }
    expect(COUNT_KEY, found.into(), count as u64)?;
    expect(NO_KEY, metadata.get::<u16>(NO_KEY)?.into(), part as u64)
}

/// Checks that the parts hold as many tensors together as the first part, or any other, says.
pub(super) fn check_tensors(first: Option<&Metadata>, count: usize, found: u64) -> Result<(), GgufError> {
    match first {
        Some(metadata) if count > 1 => expect(TENSORS_KEY, metadata.get(TENSORS_KEY)?, found),
        _ => Ok(()),
    }
}

fn expect(key: &'static str, found: u64, expected: u64) -> Result<(), GgufError> {
    if found == expected { Ok(()) } else { Err(GgufError::SplitMismatch { key, found, expected }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parts() {
        assert_eq!(split_file_name("model.Q4_K_M", 0, 12), "model.Q4_K_M-00001-of-00012.gguf");
        assert_eq!(parse_file_name("model.Q4_K_M-00001-of-00012.gguf"), Some(("model.Q4_K_M", 12)));
        assert_eq!(parse_file_name("a-00001-of-00001-00002-of-00002.gguf"), Some(("a-00001-of-00001", 2)));
        for other in [
            "m.gguf",
            "m-1-of-2.gguf",
            "m-00003-of-00002.gguf",
            "m-00000-of-00002.gguf",
            "m-0000a-of-00002.gguf",
        ] {
            assert_eq!(parse_file_name(other), None, "{other}");
        }
        assert_eq!(parse_file_name("m-00001-of-70000.gguf"), None);
        assert_eq!(parse_file_name("m-+0001-of-00002.gguf"), None);
    }
}
