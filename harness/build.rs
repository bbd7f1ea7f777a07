//! Tells the crate which compiler builds it, for the provenance of records.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version =
        Command::new(rustc).arg("-V").output().ok().and_then(|out| String::from_utf8(out.stdout).ok());
    println!("cargo::rustc-env=MEMRA_RUSTC={}", version.as_deref().unwrap_or("unknown").trim());
}
