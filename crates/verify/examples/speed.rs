//! How long one Stripe event of about 2 KB takes to verify and identify.
//!
//! `cargo run --release -p oncebox-verify --example speed`

use std::hint::black_box;
use std::time::Instant;

use oncebox_verify::{Keyring, SampleEvent, Secret, catalogue, identify, sample, sign, verify};

const BATCHES: u32 = 200;
const ROUNDS: u32 = 500;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let now = "2026-01-02T03:04:05Z".parse()?;
    let stripe = catalogue::find("stripe").ok_or("no such provider")?;
    let secret = Secret::new("whsec_test_secret");
    let event = SampleEvent { id: "evt_1", event_type: "invoice.paid", at: now, object: None };
    let mut draft = sample(stripe, &event);

    // Fill it up to the size of a usual invoice.
    let mut body: serde_json::Value = serde_json::from_slice(&draft.body)?;
    for line in 0..22 {
        let text = format!("line {line} of the invoice, {{as}} \"usual\"");
        body["data"]["object"][format!("line_{line}")] =
            serde_json::json!({ "amount": 2000 + line, "text": text });
    }
    draft.body = body.to_string().into_bytes();
    let draft = sign(stripe, &secret, draft, now)?;
    let keyring = Keyring::new(stripe, vec![secret])?;
    let request = draft.request();

    // The quickest batch is the one that nothing else on the machine disturbed.
    let micros = |work: &dyn Fn()| {
        let batch = |_| {
            let start = Instant::now();
            for _ in 0..ROUNDS {
                work();
            }
            start.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS)
        };
        (0..BATCHES).map(batch).fold(f64::INFINITY, f64::min)
    };
    let verifying = micros(&|| {
        black_box(verify(stripe, &keyring, black_box(&request), now)).expect("it is genuine");
    });
    let identifying = micros(&|| {
        black_box(identify(stripe, black_box(&request))).expect("it has an identity");
    });
    // A yardstick: the least that any look at the body costs.
    let skipping = micros(&|| {
        black_box(serde_json::from_slice::<serde::de::IgnoredAny>(black_box(&draft.body)))
            .expect("it is JSON");
    });
    println!("{} bytes: verify {verifying:.2} µs, identify {identifying:.2} µs", draft.body.len());
    println!("skipping the body with serde_json {skipping:.2} µs");
    Ok(())
}
