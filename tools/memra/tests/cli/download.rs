//! `memra pull` from a hub and from addresses, against a server on this machine.

use super::test_server::{Reply, Request, Server};
use super::{Place, Ran, tiny};
use std::sync::OnceLock;

/// The bytes of a small model.
fn model() -> &'static [u8] {
    static MODEL: OnceLock<Vec<u8>> = OnceLock::new();
    MODEL.get_or_init(|| std::fs::read(tiny()).unwrap())
}

/// SHA-256 of the small model, by the system's own tool.
fn digest() -> String {
    let ran = Ran::from(std::process::Command::new("sha256sum").arg(tiny()).output().unwrap());
    ran.stdout.split_whitespace().next().unwrap().to_owned()
}

/// A hub with one repository of these files; those named `.gguf` are the small model.
fn hub(paths: &'static [&'static str]) -> Server {
    let digest = digest();
    Server::start(move |request, _| {
        let path = request.path.as_str();
        if path == "/api/models/own/repo/revision/main?blobs=true" {
            let siblings: Vec<serde_json::Value> = paths
                .iter()
                .map(|path| match path.ends_with(".gguf") {
                    true => serde_json::json!({
                        "rfilename": path, "lfs": { "sha256": digest, "size": model().len() }
                    }),
                    false => serde_json::json!({ "rfilename": path, "size": 2 }),
                })
                .collect();
            let body = serde_json::json!({ "sha": "c0ffee", "siblings": siblings }).to_string();
            return Reply { body: body.into_bytes(), ..Reply::new(200) };
        }
        match path.strip_prefix("/own/repo/resolve/c0ffee/") {
            Some(file) if file.ends_with(".gguf") => {
                Reply::new(302).with("location", "/blob").with("x-linked-etag", format!("\"{digest}\""))
            }
            Some(_) => Reply { body: b"{}".to_vec(), ..Reply::new(200) },
            None if path == "/blob" => Reply::file(request, model(), "\"v1\""),
            None => Reply::new(401).with("x-error-code", "RepoNotFound"),
        }
    })
}

fn pull(place: &Place, server: &Server, source: &str) -> Ran {
    place.memra(&["pull", source, "--set", &format!("hub.endpoint={}", server.url("/"))])
}

#[test]
fn a_model_of_a_hub_is_found_by_its_types_and_used_by_its_name() {
    let place = Place::new();
    let server = hub(&["README.md", "m-Q8_0.gguf", "m-Q4_K_M.gguf"]);
    let ran = pull(&place, &server, "hf:own/repo");
    ran.expect(0, "");
    assert!(ran.stdout.trim().ends_with("models/own/repo/m-Q4_K_M.gguf"), "{}", ran.stdout);
    assert_eq!(place.cached(), ["own/repo/m-Q4_K_M.gguf"]);
    assert_eq!(place.memra(&["inspect", "m-Q4", "--json"]).json()["architecture"], "llama");
    let blobs = || server.requests().iter().filter(|request| request.path == "/blob").count();
    assert_eq!(blobs(), 1);
    pull(&place, &server, "hf:own/repo:q4_k_m").expect(0, "there already");
    assert_eq!(blobs(), 1, "it was fetched again");
    pull(&place, &server, "hf:own/repo:Q3_K").expect(2, "m-Q8_0.gguf");
    pull(&place, &server, "hf:own/none").expect(2, "HF_TOKEN");
}

#[test]
fn split_models_and_folders_come_whole() {
    let place = Place::new();
    let parts = hub(&["Q8_0/m-00002-of-00002.gguf", "Q8_0/m-00001-of-00002.gguf"]);
    let ran = pull(&place, &parts, "hf:own/repo:Q8_0");
    assert!(ran.stdout.trim().ends_with("own/repo/Q8_0/m-00001-of-00002.gguf"), "{}", ran.stderr);
    assert_eq!(place.cached().len(), 2);

    let place = Place::new();
    let folder = hub(&["config.json", "tokenizer.json", "model.safetensors", "notes.txt"]);
    let ran = pull(&place, &folder, "hf:own/repo");
    assert!(ran.stdout.trim().ends_with("models/own/repo"), "{}", ran.stderr);
    let expected = ["own/repo/config.json", "own/repo/model.safetensors", "own/repo/tokenizer.json"];
    assert_eq!(place.cached(), expected);
}

#[test]
fn names_of_a_hub_do_not_lead_out_of_the_cache() {
    for paths in [&["../../../evil-Q8_0.gguf"][..], &["/tmp/evil-Q8_0.gguf"], &["a/../../evil-Q8_0.gguf"]] {
        let place = Place::new();
        pull(&place, &hub(paths), "hf:own/repo").expect(7, "no name of a file");
        assert!(place.cached().is_empty());
    }
}

#[test]
fn who_asks_and_whom_comes_from_the_environment() {
    let place = Place::new();
    let server = hub(&["m.gguf"]);
    let mut command = place.command(&["pull", "hf:own/repo"]);
    command.env("HF_ENDPOINT", server.url("")).env("HF_TOKEN", "secret");
    Ran::from(command.output().unwrap()).expect(0, "");
    assert!(server.requests().iter().all(|request| request.header("authorization") == Some("Bearer secret")));
    let shown = Ran::from(place.command(&["config"]).env("HF_ENDPOINT", "http://mirror").output().unwrap());
    let line = shown.stdout.lines().find(|line| line.starts_with("hub.endpoint")).unwrap();
    assert!(line.contains("http://mirror") && line.ends_with("HF_ENDPOINT"), "{line}");
    place.memra(&["pull", "hf:own/repo", "--set", "hub.endpoint=mirror"]).expect(2, "hub.endpoint");
}

#[test]
fn an_address_is_checked_and_resumed_after_a_full_disk() {
    let place = Place::new();
    let server = Server::start(|request: &Request, _| Reply::file(request, model(), "\"v1\""));
    let url = server.url("/some/m.gguf?download=true");
    let half = (model().len() / 2 / 512) as u32;
    place.memra_on_a_full_disk(half, &["pull", &url, "--sha256", &digest()]).expect(5, "make room");
    assert_eq!(place.cached(), ["m.gguf.partial", "m.gguf.partial.json"]);
    let ran = place.memra(&["pull", &url, "--sha256", &digest()]);
    ran.expect(0, "");
    assert_eq!(place.cached(), ["m.gguf"]);
    assert!(server.requests().last().unwrap().range().is_some_and(|from| from > 0));
    assert!(std::fs::read(ran.stdout.trim()).unwrap() == model());

    let place = Place::new();
    place.memra(&["pull", &url, "--sha256", &"0".repeat(64)]).expect(7, "instead of 0000");
    assert!(place.cached().is_empty());
    place.memra(&["pull", &server.url("/page"), "--name", "x.gguf"]).expect(0, "");
    place.memra(&["pull", &server.url("/page")]).expect(2, "--name");
    place.memra(&["pull", &server.url("/page"), "--name", "../x.gguf"]).expect(2, "not the name");
    place.memra(&["pull", &server.url("/..%2fx.gguf")]).expect(2, "not the name");
    place.memra(&["pull", &url, "--sha256", "12"]).expect(2, "64 hexadecimal digits");
    place.memra(&["pull", "smollm2", "--sha256", &"0".repeat(64)]).expect(2, "for an address");
    place.memra(&["pull", "http://127.0.0.1:1/m.gguf"]).expect(5, "check the network");
}
