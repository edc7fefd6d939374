//! What a sender without the secret can make verification hold in memory, for every entry.
#![cfg(target_os = "linux")]

use jiff::Timestamp;
use oncebox_verify::{
    Keyring, Provider, SampleEvent, catalogue, made_up, sample, sign_with, verify,
};

const BODY_BYTES: usize = 512 << 10;

/// A few copies of the body, and far less than a list of its smallest parts.
const GROWTH_MAX: usize = 6 * BODY_BYTES;

const FORM: &str = "application/x-www-form-urlencoded";
const JSON: &str = "application/json";

fn now() -> Timestamp {
    Timestamp::from_second(1_790_000_000).unwrap()
}

/// Bytes under a name such as `VmHWM` in the status of this process.
fn status(name: &str) -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap();
    let kib: usize = line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}

/// The most memory that `work` added to what the process held before.
fn growth(work: impl FnOnce()) -> usize {
    std::fs::write("/proc/self/clear_refs", "5").expect("the peak is counted anew");
    let before = status("VmRSS:");
    work();
    status("VmHWM:").saturating_sub(before)
}

/// Bodies of the smallest parts that there are, which verification may not hold one by one.
fn bodies(provider: &Provider) -> Vec<(&'static str, String)> {
    let small = |part: &str| part.repeat(BODY_BYTES / part.len());
    let numbers = format!("[{}1]", small("1,"));
    let mut bodies = vec![
        (FORM, small("a&")),
        (FORM, format!("bt_payload=a&bt_signature={}", small("a%7Cb%26"))),
        (JSON, numbers.clone()),
        (JSON, format!(r#"{{"a":{numbers}}}"#)),
        (JSON, format!("[{}{{}}]", small("{},"))),
        (JSON, format!("{{{}\"b\":1}}", small("\"a\":1,"))),
    ];
    for batch in provider.batches.iter() {
        if let Some(key) = batch.items.strip_prefix('/') {
            bodies.push((JSON, format!(r#"{{"{key}":[],"a":{numbers}}}"#)));
            bodies.push((JSON, format!(r#"{{"{key}":{numbers}}}"#)));
        }
    }
    bodies
}

/// One test, so that no other one of this process takes memory meanwhile.
#[test]
fn no_entry_holds_many_times_the_body_before_it_is_verified() {
    let mut wrong = Vec::new();
    for provider in catalogue::ALL.iter() {
        let Some(ours) = made_up(provider, &[9; 32]) else { continue };
        let keyring = Keyring::with_settings(provider, vec![ours.secret], ours.settings).unwrap();
        let event = SampleEvent { id: "evt_1", event_type: "", at: now(), object: None };
        let Ok(mut draft) = sign_with(provider, &keyring, sample(provider, &event), now()) else {
            continue;
        };
        for (content_type, body) in bodies(provider) {
            draft.headers.insert("content-type", content_type.parse().unwrap());
            draft.body = body.into_bytes();
            let growth = growth(|| {
                // What proves nothing of the body accepts any.
                let _ = verify(provider, &keyring, &draft.request(), now());
            });
            if growth > GROWTH_MAX {
                let start = String::from_utf8_lossy(&draft.body[..40]);
                wrong.push(format!("{}: {growth} bytes for {start}", provider.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
