//! What may depend on what: the directions between our crates, and the licences of everyone else's.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crate, and our crates that it may depend on. ARCHITECTURE.md explains the directions; a new crate or edge is a
/// decision that changes this table and that page together.
const ALLOWED: [(&str, &[&str]); 8] = [
    ("memra-kernels", &[]),
    ("memra-formats", &["memra-kernels"]),
    ("memra-text", &[]),
    ("memra-engine", &["memra-formats", "memra-kernels", "memra-text"]),
    ("memra-probe", &["memra-kernels"]),
    ("memra-harness", &["memra-kernels"]),
    ("memra-board", &["memra-harness"]),
    (
        "memra",
        &[
            "memra-board",
            "memra-engine",
            "memra-formats",
            "memra-harness",
            "memra-kernels",
            "memra-probe",
            "memra-text",
        ],
    ),
];

/// Edges that tests and examples alone may have.
const ALLOWED_IN_TESTS: [(&str, &str); 1] = [("memra-text", "memra-formats")];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}

/// What cargo knows of the workspace and of what it needs on this platform: what a build has fetched, so that no
/// network is needed here.
fn metadata() -> Value {
    let rustc = Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(rustc.stdout).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked", "--offline", "--filter-platform", host])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn is_member(metadata: &Value, package: &Value) -> bool {
    metadata["workspace_members"].as_array().unwrap().contains(&package["id"])
}

#[test]
fn our_crates_depend_on_each_other_as_the_architecture_says() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let ours: Vec<&Value> = packages.iter().filter(|package| is_member(&metadata, package)).collect();
    let names: BTreeSet<&str> = ours.iter().map(|package| text(package, "name")).collect();
    let known: BTreeSet<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, known, "crates of the workspace and of the table in this test");
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.into_iter().collect();
    for package in ours {
        let from = text(package, "name");
        for dependency in package["dependencies"].as_array().unwrap() {
            let to = text(dependency, "name");
            if !names.contains(to) {
                continue;
            }
            let fine = allowed[from].contains(&to)
                || (text(dependency, "kind") == "dev" && ALLOWED_IN_TESTS.contains(&(from, to)));
            assert!(fine, "{from} depends on {to}, which ARCHITECTURE.md does not allow");
        }
    }
}

/// The licences that deny.toml allows.
fn allowed_licences() -> BTreeSet<String> {
    let deny: toml::Table = std::fs::read_to_string(root().join("deny.toml")).unwrap().parse().unwrap();
    let list = deny["licenses"]["allow"].as_array().unwrap();
    list.iter().map(|licence| licence.as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_dependency_has_a_licence_that_deny_toml_allows() {
    let metadata = metadata();
    let allowed = allowed_licences();
    assert!(!allowed.iter().any(|licence| licence.contains("GPL")), "deny.toml must not allow any GPL");
    for package in metadata["packages"].as_array().unwrap() {
        let (name, expression) = (text(package, "name"), text(package, "license"));
        assert!(
            satisfied(expression, &allowed),
            "{name}: licence `{expression}` is not allowed by deny.toml"
        );
    }
}

/// Whether the terms of an SPDX expression can be met with allowed licences: every part of an AND, one of an OR.
fn satisfied(expression: &str, allowed: &BTreeSet<String>) -> bool {
    // The old form of crates.io: a slash for OR.
    let expression = expression.replace('/', " OR ");
    let split = |text: &str, operator: &str| {
        let (mut parts, mut depth, mut part) = (Vec::new(), 0, Vec::new());
        for word in text.split_whitespace() {
            if depth == 0 && word == operator {
                parts.push(part.join(" "));
                part.clear();
                continue;
            }
            depth += word.matches('(').count();
            depth -= word.matches(')').count();
            part.push(word.to_owned());
        }
        parts.push(part.join(" "));
        parts
    };
    let inner = |part: &str| part.strip_prefix('(').and_then(|p| p.strip_suffix(')')).map(str::to_owned);
    // AND binds tighter than OR.
    split(&expression, "OR").iter().any(|either| {
        split(either, "AND").iter().all(|part| match inner(part) {
            Some(group) => satisfied(&group, allowed),
            None => allowed.contains(part.as_str()),
        })
    })
}

#[test]
fn licence_expressions_are_read_as_spdx_means_them() {
    let allowed = BTreeSet::from(["MIT".to_owned(), "Zlib".to_owned()]);
    for yes in ["MIT", "GPL-3.0 OR MIT", "MIT/Apache-2.0", "MIT AND Zlib", "(GPL-3.0 OR MIT) AND Zlib"] {
        assert!(satisfied(yes, &allowed), "{yes}");
    }
    for no in
        ["", "GPL-3.0", "MIT AND GPL-3.0", "GPL-3.0 OR MIT AND LGPL-3.0", "(MIT) AND (GPL-3.0 OR LGPL-3.0)"]
    {
        assert!(!satisfied(no, &allowed), "{no}");
    }
}

/// Our Rust sources.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && name != "target" && !name.to_string_lossy().starts_with('.') {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn only_main_reads_the_environment() {
    let mut files = Vec::new();
    for crate_folder in ["kernels", "engine", "probe", "harness", "tools"] {
        sources(&root().join(crate_folder), &mut files);
    }
    assert!(files.len() > 50, "found only {} sources", files.len());
    for file in files {
        let inside = |folder: &str| file.components().any(|part| part.as_os_str() == folder);
        let build_script = file.file_name().is_some_and(|name| name == "build.rs");
        if file.ends_with("tools/memra/src/main.rs") || build_script || inside("tests") || inside("examples")
        {
            continue;
        }
        let code = std::fs::read_to_string(&file).unwrap();
        // The tests of a module stand at its end.
        let code = code.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        for call in ["env::var", "env::vars", "env::var_os", "env::home_dir"] {
            assert!(!code.contains(call), "{} reads the environment with {call}", file.display());
        }
    }
}

#[test]
fn files_stay_short() {
    let mut files = Vec::new();
    for crate_folder in ["kernels", "engine", "probe", "harness", "tools"] {
        sources(&root().join(crate_folder), &mut files);
    }
    for file in files {
        let lines = std::fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines < 600, "{} has {lines} lines; split it by ideas", file.display());
    }
}
