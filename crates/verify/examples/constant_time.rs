//! Whether the time to refuse a forged signature tells how much of it was right.
//!
//! `cargo run --release -p oncebox-verify --example constant_time`
//!
//! Forgeries with the first byte wrong and forgeries with only the last byte wrong are verified in
//! random order. Welch's t says whether their times differ: beyond 4.5 they do, whatever the
//! noise. Two more are measured beside it: a comparison that stops at the first wrong byte, to show
//! that a difference would be seen, and two forgeries that are equal, to show that none is made up.

use std::hint::black_box;
use std::time::Instant;

use http::HeaderValue;
use oncebox_verify::{Draft, Keyring, SampleEvent, Secret, catalogue, sample, sign, verify};

const EVENTS: usize = 64;
const SAMPLES: usize = 1_000_000;
const HEADER: &str = "x-hub-signature-256";

/// A signed event and two forgeries of its signature: nothing right at the front, and all but
/// the end.
struct Case {
    event: Draft,
    genuine: Vec<u8>,
    forged: [Vec<u8>; 2],
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let now = "2026-01-02T03:04:05Z".parse()?;
    let github = catalogue::find("github").ok_or("no such provider")?;
    let secret = || Secret::new("a secret of some length");
    let keyring = Keyring::new(github, vec![secret()])?;
    let mut cases = Vec::new();
    for number in 0..EVENTS {
        let id = format!("00000000-0000-0000-0000-{number:012}");
        let event = SampleEvent { id: &id, event_type: "push", at: now, object: None };
        let event = sign(github, &secret(), sample(github, &event), now)?;
        let genuine = event.headers.get(HEADER).ok_or("no signature")?.as_bytes().to_vec();
        let forged = [forge(&genuine, "sha256=".len()), forge(&genuine, genuine.len() - 1)];
        cases.push(Case { event, genuine, forged });
    }
    let refuse = |case: &Case| {
        let request = case.event.request();
        black_box(verify(github, &keyring, black_box(&request), now)).expect_err("it is forged");
    };
    let careless = |case: &Case| {
        refuse(case);
        let given = case.event.headers[HEADER].as_bytes();
        let mut pairs = case.genuine.iter().zip(given);
        black_box(pairs.all(|(left, right)| black_box(left) == right));
    };
    println!("|t| of our verification:             {:.2}", welch_t(&mut cases, refuse).abs());
    println!("|t| with a comparison that stops:    {:.2}", welch_t(&mut cases, careless).abs());
    for case in &mut cases {
        case.forged[1] = case.forged[0].clone();
    }
    println!("|t| of two forgeries that are equal: {:.2}", welch_t(&mut cases, refuse).abs());
    Ok(())
}

/// The signature with another hexadecimal digit at one place, of the same kind as before.
fn forge(genuine: &[u8], at: usize) -> Vec<u8> {
    let mut signature = genuine.to_vec();
    signature[at] = match signature[at] {
        digit @ b'0'..=b'9' => digit ^ 1,
        letter => ((letter - b'a') ^ 1) + b'a',
    };
    signature
}

/// Times `work` on both classes in random order and compares their means.
fn welch_t(cases: &mut [Case], work: impl Fn(&Case)) -> f64 {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut times = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let number = (random >> 8) as usize % cases.len();
        let class = (random >> 40) as usize % 2;
        let case = &mut cases[number];
        // Both classes go through the same memory: its place alone would make a difference.
        lay_out(case, class);
        let start = Instant::now();
        work(case);
        times.push((class, start.elapsed().as_nanos() as f64));
    }
    // The slowest tenth are interrupts and other programs.
    let mut sorted: Vec<f64> = times.iter().map(|(_, time)| *time).collect();
    sorted.sort_by(f64::total_cmp);
    let most = sorted[SAMPLES / 10 * 9];
    let of = |class: usize| {
        let kept = times.iter().filter(|(of, time)| *of == class && *time <= most);
        Moments::of(kept.map(|(_, time)| *time))
    };
    let (first, last) = (of(0), of(1));
    (first.mean - last.mean) / (first.squared_error() + last.squared_error()).sqrt()
}

/// Writes a forgery into the header of its event. Both are read, in the same order, so that
/// neither is nearer afterwards.
fn lay_out(case: &mut Case, class: usize) {
    let [first, last] = &case.forged;
    let mask = 0_u8.wrapping_sub(u8::from(class == 1));
    let mixed = first.iter().zip(last).map(|(first, last)| first ^ ((first ^ last) & mask));
    let mixed: Vec<u8> = mixed.collect();
    let value = HeaderValue::from_bytes(&mixed).expect("hexadecimal digits are text");
    case.event.headers.insert(HEADER, value);
}

/// The mean of some numbers, and how far they are from it.
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    fn of(numbers: impl Iterator<Item = f64>) -> Self {
        let mut moments = Self { count: 0.0, mean: 0.0, squares: 0.0 };
        for number in numbers {
            moments.count += 1.0;
            let off = number - moments.mean;
            moments.mean += off / moments.count;
            moments.squares += off * (number - moments.mean);
        }
        moments
    }

    fn squared_error(&self) -> f64 {
        self.squares / (self.count - 1.0) / self.count
    }
}
