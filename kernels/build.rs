//! Hashes the sources that decide a family's bits and speed, and embeds the committed dispatch tables.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());

    println!("cargo::rerun-if-changed=src");
    let matmul = ["src/matmul", "src/quant", "src/cpu/simd", "src/cpu/pool.rs"];
    let operations = [
        "src/attention",
        "src/delta",
        "src/moe",
        "src/activation.rs",
        "src/elementwise.rs",
        "src/math.rs",
        "src/norm.rs",
        "src/rope.rs",
    ];
    for (name, paths) in [("MATMUL", &matmul[..]), ("OPS", &operations[..])] {
        let mut sources = Vec::new();
        for path in paths {
            sources.extend(
                files_under(&root.join(path), "rs")?.into_iter().filter(|f| !f.ends_with("tests.rs")),
            );
        }
        println!("cargo::rustc-env=MEMRA_{name}_SOURCE_HASH={}", hash_of(&root, &sources)?);
    }

    let tables = root.join("../tune-data/dispatch");
    // Naming a path that does not exist would rebuild every time.
    if tables.is_dir() {
        println!("cargo::rerun-if-changed=../tune-data/dispatch");
    }
    let mut list = String::from("&[\n");
    for path in files_under(&tables, "toml")? {
        let path = path.canonicalize()?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        list += &format!("    ({name:?}, include_str!({:?})),\n", path.display().to_string());
    }
    fs::write(out.join("embedded_tables.rs"), list + "]\n")
}

/// `folder` itself if it is a file, else the files below it with this extension, in order of their paths; none where there is no
/// such folder.
fn files_under(folder: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    if folder.is_file() {
        return Ok(vec![folder.to_owned()]);
    }
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(found),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files_under(&path, extension)?);
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// 128 bits of FNV-1a over the relative paths and the code: told apart, not secured.
fn hash_of(root: &Path, files: &[PathBuf]) -> io::Result<String> {
    let mut hash = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
    let mut take = |bytes: &[u8]| {
        for b in bytes {
            hash = (hash ^ u128::from(*b)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    };
    for file in files {
        let name = file.strip_prefix(root).unwrap_or(file).to_string_lossy().replace('\\', "/");
        take(name.as_bytes());
        take(&[0]);
        for line in code(&fs::read_to_string(file)?) {
            take(line.as_bytes());
            take(b"\n");
        }
    }
    Ok(format!("{hash:032x}"))
}

/// Lines that decide what a file compiles to: no comments, blank lines or indentation, nor its tests, which come last. An edit of
/// a comment must not void what was measured.
fn code(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().take_while(|line| *line != "#[cfg(test)]");
    lines.map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//"))
}
