//! How long one Stripe event of about 2 KB takes to verify and identify, beside the least that
//! anyone must do for it: one HMAC over the same bytes, and one parse of them into a type.
//!
//! `cargo run --release -p oncebox-verify --example speed`

use std::hint::black_box;
use std::time::Instant;

use hmac::{Hmac, KeyInit as _, Mac as _};
use oncebox_verify::{
    Keyring, SampleEvent, Secret, catalogue, events, identify, sample, sign, verify,
};
use serde::Deserialize;
use sha2::Sha256;

const BATCHES: u32 = 200;
const ROUNDS: u32 = 500;

/// What a handler would declare to read the same values.
#[derive(Deserialize)]
struct Typed<'a> {
    id: &'a str,
    r#type: &'a str,
    created: i64,
    #[serde(borrow)]
    data: Data<'a>,
}

#[derive(Deserialize)]
struct Data<'a> {
    #[serde(borrow)]
    object: Object<'a>,
}

#[derive(Deserialize)]
struct Object<'a> {
    id: &'a str,
}

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
    let reading = micros(&|| {
        black_box(events(stripe, black_box(&request))).expect("it has an identity");
    });
    let both = micros(&|| {
        black_box(verify(stripe, &keyring, black_box(&request), now)).expect("it is genuine");
        black_box(identify(stripe, black_box(&request))).expect("it has an identity");
    });
    let mac = Hmac::<Sha256>::new_from_slice(b"whsec_test_secret")?;
    let hashing = micros(&|| {
        let mac = mac.clone().chain_update(black_box(&draft.body));
        black_box(mac.finalize());
    });
    let parsing = micros(&|| {
        let typed: Typed<'_> = serde_json::from_slice(black_box(&draft.body)).expect("it fits");
        black_box((typed.id, typed.r#type, typed.created, typed.data.object.id));
    });
    // The only step that looks at other entries, once for each source when it is configured.
    let finding = micros(&|| {
        black_box(catalogue::find(black_box("stripe")));
    });
    println!("{} bytes: verify {verifying:.2} µs, identify {identifying:.2} µs", draft.body.len());
    println!("events instead of identify {reading:.2} µs");
    println!("bare HMAC-SHA256 {hashing:.2} µs, typed parse {parsing:.2} µs");
    println!("verify and identify {both:.2} µs: ratio {:.2}", both / (hashing + parsing));
    println!("{} entries; finding one takes {finding:.3} µs", catalogue::ALL.len());
    Ok(())
}
