//! HTTP requests: redirects, headers, and which failures may pass.

use super::name::{joined, origin};
use super::{Patience, Setback, Trouble};
use crate::exit::Exit;
use anyhow::anyhow;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use ureq::http::HeaderMap;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// Redirects followed for one request.
const MAX_REDIRECTS: usize = 10;

/// Where distributions keep the certificates of the authorities they trust.
const CA_FILES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Whom to speak with, and as whom.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    /// The hub's address.
    pub(crate) endpoint: String,
    /// Shown to the endpoint's origin and to nobody else.
    pub(crate) token: Option<String>,
    /// Certificates to trust instead of the system's (PEM).
    pub(crate) ca_file: Option<PathBuf>,
}

/// A client with a connection pool.
#[derive(Debug)]
pub(crate) struct Client {
    agent: ureq::Agent,
    /// A token, and the origin (scheme, host, port) that gets it.
    token: Option<(String, String)>,
}

/// A request for a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Get<'a> {
    pub(super) url: &'a str,
    /// First byte wanted.
    pub(super) from: u64,
    /// The version of which the bytes before are; another one is to be sent whole.
    pub(super) if_range: Option<&'a str>,
}

/// The answer at the end of all redirects; the body is not read yet.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_length: Option<u64>,
    /// First byte sent, and the size of the whole file.
    pub(super) content_range: Option<(u64, Option<u64>)>,
    pub(super) etag: Option<String>,
    /// SHA-256 that a hub gives with the redirect to its storage.
    pub(super) linked_sha256: Option<String>,
    pub(super) body: Box<dyn Read>,
    retry_after: Option<Duration>,
    error_code: Option<String>,
}

impl Client {
    /// A client with this much patience.
    pub(crate) fn new(network: &Network, patience: &Patience) -> Client {
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .root_certs(authorities(network.ca_file.as_deref()))
            .build();
        let config = ureq::Agent::config_builder()
            .user_agent(concat!("memra/", env!("CARGO_PKG_VERSION")))
            .http_status_as_error(false)
            // Followed here: a hub says what a file is in the redirect itself, and no token may travel with one.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_resolve(Some(patience.connect))
            .timeout_connect(Some(patience.connect))
            .timeout_per_read(Some(patience.read))
            .timeout_per_write(Some(patience.read))
            .tls_config(tls)
            .build();
        let token = network.token.clone().map(|token| (token, origin(&network.endpoint).to_owned()));
        Client { agent: ureq::Agent::new_with_config(config), token }
    }

    /// Sends a request and follows redirects.
    pub(super) fn get(&self, get: &Get<'_>) -> Result<Answer, Trouble> {
        let mut url = get.url.to_owned();
        let mut linked_sha256 = None;
        for _ in 0..=MAX_REDIRECTS {
            let mut request = self.agent.get(&url);
            if get.from > 0 {
                request = request.header("range", format!("bytes={}-", get.from));
                if let Some(etag) = get.if_range {
                    request = request.header("if-range", etag);
                }
            }
            if let Some((token, at)) = &self.token
                && origin(&url) == at
            {
                request = request.header("authorization", format!("Bearer {token}"));
            }
            let response = request.call().map_err(|error| trouble(&url, error))?;
            let headers = response.headers();
            linked_sha256 = text(headers, "x-linked-etag").and_then(as_sha256).or(linked_sha256);
            if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Ok(Answer { linked_sha256, ..Answer::from(response) });
            }
            let next = text(headers, "location").and_then(|location| joined(&url, location));
            let next =
                next.ok_or_else(|| Trouble::failure(Exit::Unfit, format!("{url}: redirected to nowhere")))?;
            if url.starts_with("https:") && !next.starts_with("https:") {
                let message =
                    format!("{url}: redirected to an address without encryption, which is not followed");
                return Err(Trouble::failure(Exit::Unfit, message));
            }
            url = next;
        }
        let message = format!("{}: redirected more than {MAX_REDIRECTS} times, perhaps in a circle", get.url);
        Err(Trouble::failure(Exit::Unfit, message))
    }

    /// A document of at most `limit` bytes.
    pub(super) fn document(&self, url: &str, limit: u64) -> Result<Vec<u8>, Trouble> {
        let answer = self.get(&Get { url, from: 0, if_range: None })?;
        if answer.status != 200 {
            return Err(answer.refusal(url));
        }
        let mut bytes = Vec::new();
        answer
            .body
            .take(limit)
            .read_to_end(&mut bytes)
            .map_err(|error| Trouble::passing(format!("the connection broke off: {error}")))?;
        Ok(bytes)
    }
}

impl From<ureq::http::Response<ureq::Body>> for Answer {
    fn from(response: ureq::http::Response<ureq::Body>) -> Answer {
        let headers = response.headers();
        Answer {
            status: response.status().as_u16(),
            content_length: text(headers, "content-length").and_then(|n| n.parse().ok()),
            content_range: text(headers, "content-range").and_then(content_range),
            etag: text(headers, "etag").map(str::to_owned),
            linked_sha256: None,
            retry_after: text(headers, "retry-after").and_then(|n| n.parse().ok()).map(Duration::from_secs),
            error_code: text(headers, "x-error-code").map(str::to_owned),
            body: Box::new(response.into_body().into_reader()),
        }
    }
}

impl Answer {
    /// The error that an answer without the wanted bytes means.
    pub(super) fn refusal(&self, url: &str) -> Trouble {
        let status = self.status;
        let why = match (status, self.error_code.as_deref()) {
            (408 | 429 | 500.., _) => {
                let why = format!("{url}: the server answers {status}");
                return Trouble::Passing(Setback { why, wait: self.retry_after, unreachable: false });
            }
            (_, Some("RevisionNotFound")) => "the repository has no such revision".to_owned(),
            (_, Some("EntryNotFound")) | (404 | 410, None) => {
                format!("the server has no such file ({status})")
            }
            (_, Some("GatedRepo")) => {
                "access has to be granted first: accept the terms on the model's page, and set HF_TOKEN"
                    .to_owned()
            }
            (401 | 403, _) => format!(
                "the server refuses ({status}); the name is wrong, or it takes a token: set HF_TOKEN for a private or gated model"
            ),
            (404, _) => format!("the server knows nothing of that name ({status})"),
            _ => {
                return Trouble::failure(
                    Exit::Unfit,
                    format!("{url}: the server answers {status}, which is no file"),
                );
            }
        };
        Trouble::failure(Exit::Usage, format!("{url}: {why}"))
    }
}

/// The authorities to trust; none where the system has no list of them, and then no encrypted connection comes about.
fn authorities(file: Option<&Path>) -> RootCerts {
    let files = file.into_iter().chain(CA_FILES.iter().map(Path::new));
    let pem = files.filter_map(|file| std::fs::read(file).ok()).next().unwrap_or_default();
    let certificates: Vec<Certificate<'static>> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    RootCerts::from(certificates)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// `bytes 5-9/10`: the first byte, and the size of the whole, which may be `*`.
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (start, _) = range.split_once('-')?;
    Some((start.parse().ok()?, if total == "*" { None } else { Some(total.parse().ok()?) }))
}

/// An entity tag that is a SHA-256.
fn as_sha256(etag: &str) -> Option<String> {
    let digits = etag.trim_matches('"');
    let is_hex = digits.len() == 64 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex.then(|| digits.to_ascii_lowercase())
}

/// What a failed request means.
fn trouble(url: &str, error: ureq::Error) -> Trouble {
    let host = origin(url);
    let unreachable = |why: String| Trouble::Passing(Setback { why, wait: None, unreachable: true });
    match error {
        ureq::Error::HostNotFound => unreachable(format!("{host}: no such host, or no network; check both")),
        ureq::Error::ConnectionFailed => unreachable(format!("{host}: no connection; check the network")),
        ureq::Error::Timeout(what) => Trouble::passing(format!("{host}: no answer in time ({what})")),
        ureq::Error::Tls(_) | ureq::Error::Rustls(_) => untrusted(host, &error),
        ureq::Error::Io(error) if error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) => {
            untrusted(host, &error)
        }
        ureq::Error::Io(error) if is_lookup(&error) => {
            unreachable(format!("{host}: no such host, or no network; check both"))
        }
        ureq::Error::Io(error) if is_unreachable(error.kind()) => {
            unreachable(format!("{host}: {error}; check the network"))
        }
        ureq::Error::Io(error) => Trouble::passing(format!("{host}: {error}")),
        error => Trouble::Final(anyhow!(error).context(url.to_owned())),
    }
}

fn untrusted(host: &str, error: &dyn std::fmt::Display) -> Trouble {
    let way_out = "is the clock right, and is the package ca-certificates installed (or SSL_CERT_FILE set)?";
    Trouble::failure(Exit::Unfit, format!("{host}: {error}; {way_out}"))
}

/// Whether a name could not be resolved; the standard library has no kind for that.
fn is_lookup(error: &io::Error) -> bool {
    error.to_string().contains("lookup address")
}

fn is_unreachable(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkDown, NetworkUnreachable};
    matches!(kind, ConnectionRefused | HostUnreachable | NetworkDown | NetworkUnreachable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read() {
        assert_eq!(content_range("bytes 5-9/10"), Some((5, Some(10))));
        assert_eq!(content_range("bytes 5-9/*"), Some((5, None)));
        for bad in ["", "bytes */10", "bytes 5-9", "items 5-9/10", "bytes x-9/10", "bytes 5-9/y"] {
            assert_eq!(content_range(bad), None, "{bad}");
        }
        let digits = "0123456789abcdef".repeat(4);
        assert_eq!(as_sha256(&format!("\"{}\"", digits.to_uppercase())), Some(digits.clone()));
        assert_eq!(as_sha256(&digits[1..]), None);
    }
}
