//! An HTTP server for tests: answers come from a function, and may break off, stall or drip.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// What was asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) path: String,
    headers: Vec<(String, String)>,
}

/// What to answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Closes the connection after so many bytes of the body.
    pub(crate) cut: Option<usize>,
    /// Sends the body in pieces of one byte with this much time between.
    pub(crate) drip: Option<Duration>,
    /// Announces no length; the end of the connection is the end of the body.
    pub(crate) no_length: bool,
}

/// A server that runs until it is dropped.
pub(crate) struct Server {
    address: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// First byte of the range asked for.
    pub(crate) fn range(&self) -> Option<usize> {
        self.header("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }
}

impl Reply {
    pub(crate) fn new(status: u16) -> Reply {
        Reply { status, ..Reply::default() }
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Reply {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// A file of the version `etag`, or the rest of it, as a server does that knows ranges.
    pub(crate) fn file(request: &Request, content: &[u8], etag: &str) -> Reply {
        let same = request.header("if-range").is_none_or(|wanted| wanted == etag);
        match request.range().filter(|_| same) {
            Some(from) if from >= content.len() => {
                Reply::new(416).with("content-range", format!("bytes */{}", content.len()))
            }
            Some(from) => Reply { body: content[from..].to_vec(), ..Reply::new(206) }
                .with("content-range", format!("bytes {from}-{}/{}", content.len() - 1, content.len()))
                .with("etag", etag),
            None => Reply { body: content.to_vec(), ..Reply::new(200) }.with("etag", etag),
        }
    }
}

impl Server {
    /// Starts a server; `answer` gets each request and how many there were before it.
    pub(crate) fn start(answer: impl Fn(&Request, usize) -> Reply + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port to listen on");
        let address = format!("http://{}", listener.local_addr().expect("its address"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&requests), Arc::new(answer));
        // The thread ends with the process: a test's server is not worth a way to stop it.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                thread::spawn(move || serve(stream, &log, &*answer));
            }
        });
        Server { address, requests }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.address)
    }

    /// Everything that was asked so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("no handler panics").clone()
    }
}

/// One request a connection. That the client goes away is no failure here.
fn serve(stream: TcpStream, log: &Mutex<Vec<Request>>, answer: &dyn Fn(&Request, usize) -> Reply) {
    let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let headers = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| {
            line.split_once(':').map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        })
        .collect();
    let request = Request { path, headers };
    let before = {
        let mut log = log.lock().expect("no handler panics");
        log.push(request.clone());
        log.len() - 1
    };
    _ = send(&stream, &answer(&request, before));
}

fn send(mut stream: &TcpStream, reply: &Reply) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {} Some\r\nconnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !reply.no_length {
        head.push_str(&format!("content-length: {}\r\n", reply.body.len()));
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    let body = &reply.body[..reply.cut.unwrap_or(reply.body.len()).min(reply.body.len())];
    match reply.drip {
        None => stream.write_all(body),
        Some(pause) => body.iter().try_for_each(|byte| {
            thread::sleep(pause);
            stream.write_all(&[*byte])
        }),
    }
}
