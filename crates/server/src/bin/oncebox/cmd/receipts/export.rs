//! `oncebox receipts export`: receipts with their bodies, out of the store.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use oncebox::clock::{Clock, SystemClock};
use oncebox::receipt::decode_headers;
use oncebox::store::{Receipt, Store};
use oncebox_server::capture;
use oncebox_server::fingerprint::is_fingerprint;
use oncebox_verify::Trust;

use super::show::{damaged, has_its_digest, is_message, whole};
use super::{Filter, Pages};
use crate::cmd::deliveries::view::Routes;
use crate::exit::Failure;
use crate::output::{Screen, count, notice};

/// Headers that spoke of the connection, not of the request.
pub(super) const OF_THE_CONNECTION: [&str; 4] =
    ["connection", "content-length", "keep-alive", "transfer-encoding"];

/// Export receipts with their headers and bodies
///
/// As JSON lines to stdout, or with `--out DIR --format http` as one file per receipt that
/// `oncebox verify` reads. Tokens and passwords sent as headers are kept only as fingerprints, so a
/// request that was proved by one no longer verifies.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  oncebox receipts export --since 1d > receipts.jsonl
  oncebox receipts export --event-id evt_123 --out captures --format http")]
pub(super) struct Export {
    #[command(flatten)]
    filter: Filter,

    /// How many at most [default: all]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// All of them, which is the default here
    #[arg(long, conflicts_with = "limit")]
    all: bool,

    /// How to write them
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,

    /// Write into this folder instead of stdout
    #[arg(long, value_name = "DIR", required_if_eq("format", "http"))]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One JSON object per line, the body in base64
    Jsonl,
    /// An HTTP request as on the wire, one file each
    Http,
}

impl Export {
    pub(super) async fn run(self, store: &Arc<dyn Store>, routes: &Routes) -> Result<(), Failure> {
        let filter = self.filter.resolve(store, SystemClock.now()).await?;
        if let Some(dir) = &self.out {
            fs::create_dir_all(dir).map_err(|error| cannot_write(dir, &error))?;
        }
        let mut pages = Pages::new(store, routes, filter, self.limit);
        let mut screen = Screen::stdout();
        let (mut written, mut unprovable, mut broken, mut example) = (0, 0, None, None);
        while let Some(page) = pages.next().await? {
            for summary in page {
                // Retention may have been faster than we are.
                let Some(mut receipt) = store.receipt(summary.receipt).await? else { continue };
                routes.show(&mut receipt.summary.deliveries);
                self.write(&mut screen, &receipt)?;
                written += 1;
                if !has_its_digest(&receipt) {
                    let failure = damaged(&receipt);
                    broken.get_or_insert(failure);
                }
                if lost_its_credential(&receipt) {
                    unprovable += 1;
                } else if !is_message(&receipt) {
                    example.get_or_insert(summary);
                }
            }
            screen.flush()?;
        }
        notice(format!("{} exported", count(written, "receipt")));
        if let (Some(dir), Some(summary), Format::Http) = (&self.out, example, self.format) {
            let who = match summary.trust {
                Trust::Unverified => "--provider NAME --secret env:SECRET".to_owned(),
                _ => format!("--source {}", summary.source),
            };
            notice(format!(
                "check one: oncebox verify {who} --at {} {}",
                summary.received_at.as_second(),
                dir.join(format!("{}.http", summary.receipt)).display()
            ));
        }
        if unprovable > 0 && self.format == Format::Http {
            notice(format!(
                "{} can no longer be verified: the token or password that proved it was not kept",
                count(unprovable, "request")
            ));
        }
        broken.map_or(Ok(()), Err)
    }

    fn write(&self, screen: &mut Screen, receipt: &Receipt) -> Result<(), Failure> {
        let Some(dir) = &self.out else { return Ok(screen.json(&whole(receipt))?) };
        let id = receipt.summary.receipt;
        let (name, bytes) = match self.format {
            Format::Http => (format!("{id}.http"), on_the_wire(receipt)),
            Format::Jsonl => (format!("{id}.json"), format!("{}\n", whole(receipt)).into_bytes()),
        };
        let path = dir.join(name);
        fs::write(&path, bytes).map_err(|error| cannot_write(&path, &error))?;
        screen.line(path.display().to_string())?;
        Ok(())
    }
}

/// Whether what proved the request was kept only as a fingerprint.
pub(super) fn lost_its_credential(receipt: &Receipt) -> bool {
    decode_headers(&receipt.headers).iter().any(|(_, value)| is_fingerprint(value))
}

/// The request as it was sent to us, of a batch the whole of it, as far as that is kept:
/// credentials sent as headers are only fingerprints, so a request that was proved by one no
/// longer is. A message was sent to nobody yet.
fn on_the_wire(receipt: &Receipt) -> Vec<u8> {
    let path = match is_message(receipt) {
        true => "/".to_owned(),
        false => format!("/in/{}", receipt.summary.source),
    };
    let headers = decode_headers(&receipt.headers);
    let captured = capture::request_line(&headers);
    let (method, path) = captured.unwrap_or(("POST", &path));
    let mut bytes = format!("{method} {path} HTTP/1.1\r\n").into_bytes();
    let is_ours = |name: &str| {
        captured.is_some() && [capture::REQUEST_HEADER, capture::TRUST_HEADER].contains(&name)
    };
    for (name, value) in &headers {
        if OF_THE_CONNECTION.contains(&name.to_ascii_lowercase().as_str()) || is_ours(name) {
            continue;
        }
        bytes.extend_from_slice(name.as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value);
        bytes.extend_from_slice(b"\r\n");
    }
    // What the signature is over.
    let body = receipt.signed_body();
    bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot write {}: {error}", path.display()))
}
