use super::test_server::{Reply, Request, Server};
use super::*;
use crate::exit::{classify, describe};
use std::fs;

/// Content whose every part is different.
fn content(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * i / 7 + i / 251) as u8).collect()
}

fn sha256(bytes: &[u8]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(bytes);
    hex(hasher)
}

/// A folder to fetch into, and little patience.
struct Bench {
    folder: tempfile::TempDir,
    patience: Patience,
}

static NEVER: Stop = Stop::new();

impl Bench {
    fn new() -> Bench {
        let patience = Patience {
            connect: Duration::from_secs(5),
            read: Duration::from_millis(400),
            slow: (Duration::from_millis(500), 100),
            tries: 3,
            progress: 1000,
            wait: Duration::from_millis(1),
        };
        Bench { folder: tempfile::tempdir().unwrap(), patience }
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join("m.bin")
    }

    fn job(&self, url: String) -> Job {
        Job { url, target: self.target(), size: None, sha256: None }
    }

    /// Fetches; returns the outcome and the reasons for further attempts.
    fn fetch(&self, job: &Job) -> (anyhow::Result<Outcome>, Vec<String>) {
        self.fetch_from(job, "http://hub.invalid", None)
    }

    fn fetch_from(
        &self,
        job: &Job,
        endpoint: &str,
        token: Option<&str>,
    ) -> (anyhow::Result<Outcome>, Vec<String>) {
        let (endpoint, token) = (endpoint.to_owned(), token.map(str::to_owned));
        let client = Client::new(&Network { endpoint, token, ca_file: None }, &self.patience);
        let downloader = Downloader { client, patience: self.patience, stop: &NEVER };
        let mut reasons = Vec::new();
        let outcome = downloader.fetch(job, &mut |event| {
            if let Event::Again(why) = event {
                reasons.push(why.to_owned());
            }
        });
        (outcome, reasons)
    }

    #[track_caller]
    fn fetched(&self, job: &Job, expected: &[u8]) -> Vec<String> {
        let (outcome, reasons) = self.fetch(job);
        assert_eq!(outcome.map_err(|e| describe(&e)).unwrap(), Outcome::Fetched, "{reasons:?}");
        assert!(fs::read(self.target()).unwrap() == expected, "other bytes");
        assert_eq!(self.files(), ["m.bin"]);
        reasons
    }

    #[track_caller]
    fn fails(&self, job: &Job, exit: Exit, why: &str) {
        let (outcome, _) = self.fetch(job);
        let error = outcome.unwrap_err();
        let said = describe(&error);
        assert!(classify(&error) == exit && said.contains(why), "{:?}: {said}", classify(&error));
    }

    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).unwrap().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

#[test]
fn a_file_arrives_whole_and_is_not_fetched_twice() {
    let (bench, bytes) = (Bench::new(), content(300_000));
    let served = bytes.clone();
    let server = Server::start(move |request, _| Reply::file(request, &served, "\"a\""));
    let job = bench.job(server.url("/f"));
    bench.fetched(&job, &bytes);
    // By its size, and by its checksum without asking.
    assert_eq!(bench.fetch(&job).0.unwrap(), Outcome::AlreadyThere);
    let checked = Job { sha256: Some(sha256(&bytes)), ..job };
    assert_eq!(bench.fetch(&checked).0.unwrap(), Outcome::AlreadyThere);
    assert_eq!(server.requests().len(), 2);
    // Another file of the same name is replaced.
    fs::write(bench.target(), "old").unwrap();
    bench.fetched(&checked, &bytes);
}

#[test]
fn a_cut_connection_is_taken_up_where_it_broke() {
    let (bench, bytes) = (Bench::new(), content(100_000));
    let served = bytes.clone();
    let server = Server::start(move |request, n| Reply {
        cut: (n < 4).then_some(20_000),
        ..Reply::file(request, &served, "\"a\"")
    });
    let reasons = bench.fetched(&bench.job(server.url("/f")), &bytes);
    assert_eq!(reasons.len(), 4, "{reasons:?}");
    let ranges: Vec<Option<usize>> = server.requests().iter().map(Request::range).collect();
    assert_eq!(ranges, [None, Some(20_000), Some(40_000), Some(60_000), Some(80_000)]);
    assert_eq!(server.requests()[1].header("if-range"), Some("\"a\""));
}

#[test]
fn a_later_process_goes_on() {
    let (bench, bytes) = (Bench::new(), content(50_000));
    let served = bytes.clone();
    let server = Server::start(move |request, n| match n {
        0 => Reply { cut: Some(30_000), ..Reply::file(request, &served, "\"a\"") },
        1..3 => Reply::new(503),
        _ => Reply::file(request, &served, "\"a\""),
    });
    let job = bench.job(server.url("/f"));
    let impatient = Bench { patience: Patience { tries: 2, ..bench.patience }, ..bench };
    impatient.fails(&job, Exit::Unfit, "503; 30000 bytes are kept");
    assert_eq!(impatient.files(), ["m.bin.partial", "m.bin.partial.json"]);
    impatient.fetched(&job, &bytes);
    assert_eq!(server.requests().last().unwrap().range(), Some(30_000));
}

#[test]
fn a_server_without_ranges_sends_the_whole_file_again() {
    let (bench, bytes) = (Bench::new(), content(50_000));
    let served = bytes.clone();
    let server = Server::start(move |_, n| {
        let whole = Reply::file(&Request::default(), &served, "\"a\"");
        Reply { cut: (n == 0).then_some(30_000), ..whole }
    });
    bench.fetched(&bench.job(server.url("/f")), &bytes);
    assert_eq!(server.requests()[1].range(), Some(30_000));
}

#[test]
fn a_file_that_changed_is_fetched_anew() {
    let (bench, old, new) = (Bench::new(), content(50_000), content(60_000)[10_000..].to_vec());
    let served = new.clone();
    let server = Server::start(move |request, n| match n {
        0 => Reply { cut: Some(30_000), ..Reply::file(request, &old, "\"a\"") },
        _ => Reply::file(request, &served, "\"b\""),
    });
    bench.fetched(&bench.job(server.url("/f")), &new);
    // Without a name for the version nothing is taken up at all.
    let (bench, bytes) = (Bench::new(), content(50_000));
    let served = bytes.clone();
    let server = Server::start(move |request, n| Reply {
        cut: (n == 0).then_some(30_000),
        headers: Vec::new(),
        ..Reply::file(request, &served, "")
    });
    bench.fetched(&bench.job(server.url("/f")), &bytes);
    assert_eq!(server.requests()[1].range(), None);
}

#[test]
fn a_range_that_was_not_asked_for_is_not_mixed_in() {
    let (bench, bytes) = (Bench::new(), content(50_000));
    let served = bytes.clone();
    let server = Server::start(move |request, n| match n {
        0 => Reply { cut: Some(30_000), ..Reply::file(request, &served, "\"a\"") },
        1 => Reply { body: served[10..].to_vec(), ..Reply::new(206) }
            .with("content-range", "bytes 10-49999/50000"),
        2 => Reply::file(request, &served, "\"a\""),
        _ => Reply::new(500),
    });
    bench.fetched(&bench.job(server.url("/f")), &bytes);

    // 416: what is there is longer than the file.
    let (bench, bytes) = (Bench::new(), content(50_000));
    let served = bytes.clone();
    let server = Server::start(move |request, n| match n {
        0 => Reply { cut: Some(30_000), no_length: true, ..Reply::file(request, &served, "\"a\"") },
        _ => Reply::file(request, &served, "\"a\""),
    });
    let checked = Job { sha256: Some(sha256(&bytes)), ..bench.job(server.url("/f")) };
    fs::write(bench.folder.path().join("m.bin.partial"), content(60_000)).unwrap();
    let note = format!(r#"{{"url":"","etag":"\"a\"","size":null,"sha256":"{}"}}"#, sha256(&bytes));
    fs::write(bench.folder.path().join("m.bin.partial.json"), note).unwrap();
    let reasons = bench.fetched(&checked, &bytes);
    assert!(reasons[0].contains("shorter"), "{reasons:?}");
}

#[test]
fn a_wrong_checksum_leaves_nothing() {
    let (bench, bytes) = (Bench::new(), content(50_000));
    let served = bytes.clone();
    let server = Server::start(move |request, _| Reply::file(request, &served, "\"a\""));
    let job = Job { sha256: Some("0".repeat(64)), ..bench.job(server.url("/f")) };
    bench.fails(&job, Exit::Corrupt, "instead of 0000");
    assert!(bench.files().is_empty());
    // What an earlier process left was rubbish: one more attempt from the beginning.
    let job = Job { sha256: Some(sha256(&bytes)), ..job };
    fs::write(bench.folder.path().join("m.bin.partial"), vec![7; 20_000]).unwrap();
    let note = format!(r#"{{"url":"","etag":"\"a\"","size":50000,"sha256":"{}"}}"#, sha256(&bytes));
    fs::write(bench.folder.path().join("m.bin.partial.json"), note).unwrap();
    bench.fetched(&job, &bytes);
    assert_eq!(server.requests()[1].range(), Some(20_000));
    // A size or a checksum that the server contradicts beforehand.
    let other = Bench::new();
    other.fails(&Job { size: Some(1), ..other.job(server.url("/f")) }, Exit::Corrupt, "50000 bytes, not 1");
    // An error page in the place of a model.
    let page = Job { target: other.folder.path().join("m.gguf"), ..other.job(server.url("/f")) };
    other.fails(&page, Exit::Corrupt, "not a GGUF file");
    assert!(other.files().is_empty());
}

#[test]
fn redirects_are_followed_and_tell_the_checksum() {
    let (bench, bytes) = (Bench::new(), content(5_000));
    let (served, digest) = (bytes.clone(), sha256(&bytes));
    let storage = Server::start(move |request, _| Reply::file(request, &served, "\"a\""));
    let place = storage.url("/blob");
    let hub = Server::start(move |request, _| match request.path.as_str() {
        "/old" => Reply::new(307).with("location", "/new"),
        "/loop" => Reply::new(302).with("location", "/loop"),
        "/nowhere" => Reply::new(302),
        _ => Reply::new(302).with("location", &place).with("x-linked-etag", format!("\"{digest}\"")),
    });
    let job = bench.job(hub.url("/old"));
    let (outcome, _) = bench.fetch_from(&job, &hub.url(""), Some("secret"));
    assert_eq!(outcome.unwrap(), Outcome::Fetched);
    assert!(hub.requests().iter().all(|r| r.header("authorization") == Some("Bearer secret")));
    assert_eq!(storage.requests()[0].header("authorization"), None, "the token went to another host");
    bench.fails(&bench.job(hub.url("/loop")), Exit::Unfit, "redirected more than 10 times");
    bench.fails(&bench.job(hub.url("/nowhere")), Exit::Unfit, "redirected to nowhere");
    let wrong = Job { sha256: Some("0".repeat(64)), ..bench.job(hub.url("/new")) };
    bench.fails(&wrong, Exit::Corrupt, "nothing was fetched");
    assert!(fs::read(bench.target()).unwrap() == bytes, "the file that was there is gone");
}

#[test]
fn refusals_say_whose_turn_it_is() {
    let bench = Bench::new();
    let server = Server::start(|request, _| match request.path.as_str() {
        "/gated" => Reply::new(403).with("x-error-code", "GatedRepo"),
        path => Reply::new(path[1..].parse().unwrap()),
    });
    let job = |path| bench.job(server.url(path));
    bench.fails(&job("/404"), Exit::Usage, "no such file");
    bench.fails(&job("/401"), Exit::Usage, "HF_TOKEN");
    bench.fails(&job("/gated"), Exit::Usage, "accept the terms");
    bench.fails(&job("/416"), Exit::Unfit, "416");
    bench.fails(&job("/500"), Exit::Unfit, "500");
    let asked = |path| server.requests().iter().filter(|request| request.path == path).count();
    assert_eq!((asked("/404"), asked("/500")), (1, 3), "attempts");
    assert!(bench.files().is_empty());
}

#[test]
fn servers_that_stall_or_drip_are_left() {
    let bench = Bench::new();
    let server = Server::start(|request, _| {
        let pause = if request.path == "/stall" { 2000 } else { 20 };
        Reply { drip: Some(Duration::from_millis(pause)), body: vec![0; 1000], ..Reply::new(200) }
    });
    bench.fails(&bench.job(server.url("/stall")), Exit::Unfit, "timeout");
    bench.fails(&bench.job(server.url("/drip")), Exit::Unfit, "bytes came in");
}

#[test]
fn without_a_network_it_says_so_soon() {
    let bench = Bench::new();
    // A port that nobody listens on, since its listener is gone.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (outcome, reasons) = bench.fetch(&bench.job(format!("http://127.0.0.1:{port}/f")));
    let said = describe(&outcome.unwrap_err());
    assert!(said.contains("check the network") && reasons.len() == 1, "{said}; {reasons:?}");
    bench.fails(&bench.job("http://no-such-host.invalid/f".into()), Exit::Unfit, "no such host");
    bench.fails(&bench.job("no address".into()), Exit::Unfit, "no address");
    assert!(bench.files().is_empty());
}

#[test]
fn one_process_at_a_time() {
    let bench = Bench::new();
    let busy = Partial::open(&bench.target()).unwrap();
    bench.fails(&bench.job("http://127.0.0.1:1/f".into()), Exit::Unfit, "another process");
    drop(busy);
    std::os::unix::fs::symlink("/dev/full", bench.folder.path().join("m.bin.partial")).unwrap();
    bench.fails(&bench.job("http://127.0.0.1:1/f".into()), Exit::Usage, "not a regular file");
}

#[test]
fn documents_are_asked_for_again_too() {
    let bench = Bench::new();
    let server = Server::start(|request, n| match (request.path.as_str(), n) {
        ("/404", _) => Reply::new(404),
        (_, 0) => Reply::new(503).with("retry-after", "0"),
        _ => Reply { body: b"abcdef".to_vec(), ..Reply::new(200) },
    });
    let client = Client::new(&Network::default(), &bench.patience);
    let downloader = Downloader { client, patience: bench.patience, stop: &NEVER };
    assert_eq!(downloader.document(&server.url("/d"), 4).unwrap().as_deref(), Some(&b"abcd"[..]));
    let absent = downloader.document(&server.url("/404"), 4).unwrap_err();
    assert_eq!(classify(&absent), Exit::Usage);
}

#[test]
fn a_stop_keeps_what_there_is() {
    static STOP: Stop = Stop::new();
    let (bench, bytes) = (Bench::new(), content(500_000));
    let server = Server::start(move |request, _| Reply::file(request, &bytes, "\"a\""));
    let client = Client::new(&Network::default(), &bench.patience);
    let downloader = Downloader { client, patience: bench.patience, stop: &STOP };
    let outcome = downloader.fetch(&bench.job(server.url("/f")), &mut |event| {
        if matches!(event, Event::At(1.., _)) {
            STOP.request();
        }
    });
    assert_eq!(outcome.unwrap(), Outcome::Stopped);
    assert_eq!(bench.files(), ["m.bin.partial", "m.bin.partial.json"]);
}
