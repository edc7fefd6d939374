//! The load: signed Stripe events over keep-alive connections, each waiting for its answer.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use hmac::{Hmac, KeyInit, Mac};
use oncebox::clock::{Clock, SystemClock};
use sha2::Sha256;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The secret of the source under load.
pub(crate) const SECRET: &str = "whsec_YmVuY2gtYmVuY2gtYmVuY2gtYmVuY2g=";

/// How the ids of events look. It matters for the index of identities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Ids {
    /// As Stripe makes them: they begin with the time.
    Stripe,
    /// Nothing in common: the worst case.
    Random,
}

/// What to send.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) target: SocketAddr,
    pub(crate) connections: usize,
    /// Bytes of a body.
    pub(crate) size: usize,
    pub(crate) ids: Ids,
    /// Types of events, one after the other: `invoice.000` and so on.
    pub(crate) types: u64,
    /// Events a second of all connections together; as many as go, if zero.
    pub(crate) pace: f64,
    pub(crate) warm_up: Duration,
    pub(crate) measured: Duration,
    /// Sets the ids of one run apart from those of another.
    pub(crate) run: u64,
}

/// What was measured between the end of the warm-up and the end of the run.
pub(crate) struct Measured {
    pub(crate) events: u64,
    pub(crate) took: Duration,
    /// Latencies in microseconds.
    pub(crate) latencies: Histogram<u64>,
    /// Answers other than 202.
    pub(crate) refused: u64,
}

impl Load {
    /// Runs the load. `on_start` and `on_end` are called at the edges of what is measured.
    pub(crate) async fn run(
        self,
        on_start: impl FnOnce() + Send,
        on_end: impl FnOnce() + Send,
    ) -> io::Result<Measured> {
        let serial = Arc::new(AtomicU64::new(0));
        let begin = Instant::now();
        let start = begin + self.warm_up;
        let end = start + self.measured;
        let mut senders = JoinSet::new();
        for _ in 0..self.connections {
            let sender = Sender::connect(&self, serial.clone()).await?;
            senders.spawn(sender.run((begin, self.pace), start, end));
        }
        tokio::time::sleep_until(start.into()).await;
        on_start();
        tokio::time::sleep_until(end.into()).await;
        on_end();
        let mut sum =
            Measured { events: 0, took: self.measured, latencies: latencies(), refused: 0 };
        while let Some(sender) = senders.join_next().await {
            let (latencies, refused) = sender.map_err(io::Error::other)??;
            sum.events += latencies.len();
            sum.refused += refused;
            sum.latencies.add(latencies).map_err(io::Error::other)?;
        }
        Ok(sum)
    }
}

/// Sends one event after the other.
pub(crate) struct Single(Sender);

impl Single {
    pub(crate) async fn connect(load: &Load) -> io::Result<Self> {
        Ok(Self(Sender::connect(load, Arc::new(AtomicU64::new(0))).await?))
    }

    /// Sends the next event; its id, and when it was acknowledged.
    pub(crate) async fn send(&mut self) -> io::Result<(String, Instant)> {
        let number = self.0.serial.fetch_add(1, Ordering::Relaxed);
        match self.0.post(number).await? {
            [b'2', b'0', b'2'] => Ok((self.0.event.id(), Instant::now())),
            status => Err(io::Error::other(String::from_utf8_lossy(&status).into_owned())),
        }
    }
}

pub(crate) fn latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000, 3).expect("valid bounds")
}

/// One connection.
struct Sender {
    stream: TcpStream,
    serial: Arc<AtomicU64>,
    key: Hmac<Sha256>,
    event: Event,
    answer: Vec<u8>,
}

impl Sender {
    async fn connect(load: &Load, serial: Arc<AtomicU64>) -> io::Result<Self> {
        let stream = TcpStream::connect(load.target).await?;
        stream.set_nodelay(true)?;
        let key = Hmac::new_from_slice(SECRET.as_bytes()).expect("any length is a key");
        let event = Event::new(load);
        Ok(Self { stream, serial, key, event, answer: Vec::with_capacity(1024) })
    }

    /// Sends until `end`; what was answered between `start` and `end` counts.
    async fn run(
        mut self,
        (begin, pace): (Instant, f64),
        start: Instant,
        end: Instant,
    ) -> io::Result<(Histogram<u64>, u64)> {
        let mut latencies = latencies();
        let mut refused = 0;
        loop {
            let number = self.serial.fetch_add(1, Ordering::Relaxed);
            if pace > 0.0 {
                let turn = begin + Duration::from_secs_f64(number as f64 / pace);
                tokio::time::sleep_until(turn.min(end).into()).await;
            }
            let began = Instant::now();
            if began >= end {
                return Ok((latencies, refused));
            }
            let status = self.post(number).await?;
            let now = Instant::now();
            if status != *b"202" {
                refused += 1;
            } else if now >= start && now < end {
                let micros = u64::try_from((now - began).as_micros()).unwrap_or(u64::MAX);
                latencies.saturating_record(micros.max(1));
            }
        }
    }

    async fn post(&mut self, number: u64) -> io::Result<[u8; 3]> {
        let request = self.event.sign(number, &self.key);
        self.stream.write_all(request).await?;
        self.read_answer().await
    }

    /// Reads one answer to its end and returns its status.
    async fn read_answer(&mut self) -> io::Result<[u8; 3]> {
        self.answer.clear();
        loop {
            if self.stream.read_buf(&mut self.answer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if whole_length(&self.answer).is_some_and(|length| self.answer.len() >= length) {
                let status = self.answer.get(9..12).and_then(|code| code.try_into().ok());
                return status.ok_or_else(|| io::ErrorKind::InvalidData.into());
            }
        }
    }
}

/// The length of the answer at the front of `bytes`, once its headers are there.
pub(crate) fn whole_length(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&bytes[..head]).ok()?;
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    Some(head + length.unwrap_or(0))
}

/// A request that is written anew in place for each event.
struct Event {
    ids: Ids,
    types: u64,
    run: u64,
    bytes: Vec<u8>,
    timestamp_at: usize,
    signature_at: usize,
    body_at: usize,
    id_at: usize,
    type_at: usize,
    time: (u64, Instant),
}

/// Twenty-eight characters, as Stripe's ids have.
const ID_LENGTH: usize = 28;
const FILLER: &str = r#","lines":{"object":"list","data":[{"id":"il_1MtHbELkdIwHu7ixl4OzzPMv","object":"line_item","amount":1299,"currency":"usd","description":"1 × Plan (at $12.99 / month)","discountable":true,"livemode":true,"metadata":{"order":"6735","cart":"b1c9"},"period":{"end":1682521600,"start":1679843200},"plan":{"id":"price_1MowQULkdIwHu7ixraBm864M","active":true,"interval":"month","product":"prod_NZKdYqrwEYx6iK"},"proration":false,"quantity":1,"type":"subscription","unit_amount_excluding_tax":"1299"}]}"#;

impl Event {
    fn new(load: &Load) -> Self {
        let id = "0".repeat(ID_LENGTH);
        let mut body = format!(
            r#"{{"id":"{id}","object":"event","api_version":"2024-06-20","created":1760000000,"type":"invoice.000","livemode":true,"data":{{"object":{{"id":"in_1MtHbELkdIwHu7ixl4OzzPMv","object":"invoice","amount_paid":1299,"customer":"cus_NeZwdNtLEOXuvB","currency":"usd""#
        );
        const END: &str = r#","number":""#;
        while body.len() + FILLER.len() + END.len() + 8 < load.size {
            let again = FILLER.replace("lines", &format!("lines_{}", body.len()));
            body.push_str(&again);
        }
        body.push_str(END);
        let rest = load.size.saturating_sub(body.len() + 4);
        body.extend((0..rest).map(|n| char::from(b'a' + u8::try_from(n % 26).unwrap_or(0))));
        body.push_str(r#""}}}"#);
        let head = format!(
            "POST /in/bench HTTP/1.1\r\nHost: bench\r\nUser-Agent: Stripe/1.0 (+https://stripe.com/docs/webhooks)\r\n\
             Content-Type: application/json; charset=utf-8\r\nAccept: */*\r\nCache-Control: no-cache\r\n\
             Content-Length: {}\r\nStripe-Signature: t=0000000000,v1={}\r\n\r\n",
            body.len(),
            "0".repeat(64),
        );
        let timestamp_at = head.find("t=0000000000").expect("just written") + 2;
        let id_at = body.find(&id).expect("just written");
        let type_at = body.find("invoice.000").expect("just written") + "invoice.".len();
        Self {
            ids: load.ids,
            types: load.types.clamp(1, 1000),
            run: load.run,
            timestamp_at,
            signature_at: timestamp_at + 14,
            body_at: head.len(),
            id_at: head.len() + id_at,
            type_at: head.len() + type_at,
            bytes: [head, body].concat().into_bytes(),
            time: (0, Instant::now()),
        }
    }

    /// The request for event `number`, signed now.
    fn sign(&mut self, number: u64, key: &Hmac<Sha256>) -> &[u8] {
        let now = self.now();
        let id = event_id(self.ids, self.run, now, number);
        self.bytes[self.id_at..self.id_at + ID_LENGTH].copy_from_slice(id.as_bytes());
        let digits = format!("{:03}", number % self.types);
        self.bytes[self.type_at..self.type_at + 3].copy_from_slice(digits.as_bytes());
        let timestamp = now.to_string();
        let stamp_at = self.timestamp_at;
        self.bytes[stamp_at..stamp_at + 10].copy_from_slice(timestamp.as_bytes());
        let mut mac = key.clone();
        mac.update(timestamp.as_bytes());
        mac.update(b".");
        mac.update(&self.bytes[self.body_at..]);
        let signature = &mut self.bytes[self.signature_at..self.signature_at + 64];
        hex::encode_to_slice(mac.finalize().into_bytes(), signature).expect("of that length");
        &self.bytes
    }

    /// The id of the event that was signed last.
    fn id(&self) -> String {
        String::from_utf8_lossy(&self.bytes[self.id_at..self.id_at + ID_LENGTH]).into_owned()
    }

    /// Seconds since 1970, asked of the system once a second.
    fn now(&mut self) -> u64 {
        if self.time.0 == 0 || self.time.1.elapsed() >= Duration::from_secs(1) {
            self.time = (SystemClock.now().as_second().unsigned_abs(), Instant::now());
        }
        self.time.0
    }
}

/// The id of event `number`, twenty-eight characters long.
pub(crate) fn event_id(ids: Ids, run: u64, seconds: u64, number: u64) -> String {
    let noise = scramble(number ^ (run << 40));
    match ids {
        // `evt_1`, the time, and noise.
        Ids::Stripe => format!("evt_1{}L{noise:016x}", base62(seconds)),
        Ids::Random => {
            let more = scramble(noise);
            format!("evt_{noise:016x}{:08x}", more & 0xffff_ffff)
        }
    }
}

/// Six characters that sort as the number does.
fn base62(mut number: u64) -> String {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut digits = [b'0'; 6];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[usize::try_from(number % 62).unwrap_or(0)];
        number /= 62;
    }
    String::from_utf8_lossy(&digits).into_owned()
}

/// A bijection, so that numbers that differ stay different (SplitMix64).
fn scramble(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_the_size_asked_for_and_verifies() {
        let load = Load {
            target: ([127, 0, 0, 1], 1).into(),
            connections: 1,
            size: 2048,
            ids: Ids::Stripe,
            types: 1,
            pace: 0.0,
            warm_up: Duration::ZERO,
            measured: Duration::ZERO,
            run: 1,
        };
        let mut event = Event::new(&load);
        let key = Hmac::new_from_slice(SECRET.as_bytes()).unwrap();
        let bytes = event.sign(7, &key).to_vec();
        let head = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        assert_eq!(bytes.len() - head, 2048);
        let body: serde_json::Value = serde_json::from_slice(&bytes[head..]).unwrap();
        assert_eq!(body["id"].as_str().unwrap().len(), ID_LENGTH);
        let text = std::str::from_utf8(&bytes[..head]).unwrap();
        let signature = text.lines().find_map(|line| line.strip_prefix("Stripe-Signature: "));
        let mut headers = http::HeaderMap::new();
        headers.insert("stripe-signature", signature.unwrap().parse().unwrap());
        let provider = oncebox_verify::catalogue::find("stripe").unwrap();
        let secret = oncebox_verify::Secret::new(SECRET);
        let keyring = oncebox_verify::Keyring::new(provider, vec![secret]).unwrap();
        let request = oncebox_verify::Request {
            method: "POST",
            url: "/in/bench",
            headers: &headers,
            body: &bytes[head..],
        };
        oncebox_verify::verify(provider, &keyring, &request, SystemClock.now()).unwrap();
    }

    #[test]
    fn ids_differ_and_have_their_length() {
        for ids in [Ids::Stripe, Ids::Random] {
            let made: std::collections::HashSet<_> =
                (0..10_000).map(|n| event_id(ids, 3, 1_760_000_000, n)).collect();
            assert_eq!(made.len(), 10_000);
            assert!(made.iter().all(|id| id.len() == ID_LENGTH), "{:?}", made.iter().next());
        }
    }
}
