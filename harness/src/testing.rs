//! What several modules' tests need.

use std::path::Path;
use std::process::Command;

/// Writes an executable shell script. Another process writes it: were it this one, a fork of another test could hold it
/// open while it is executed ("text file busy").
pub(crate) fn script(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$2\" && chmod 755 \"$2\"";
    let status = Command::new("/bin/sh").args(["-c", write, "sh", text]).arg(path).status().unwrap();
    assert!(status.success());
}
