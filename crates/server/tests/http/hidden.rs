//! With `hide_unknown_sources` nobody without a secret can tell which sources exist.

use std::sync::Arc;

use http::HeaderMap;
use oncebox::clock::Clock as _;
use oncebox_drill::Event;
use oncebox_verify::{Draft, Field, Handshake, Provider, Wants};
use serde_json::{Map, Value};
use tokio::io::AsyncWriteExt as _;

use crate::bed::{Answer, Bed, configuration, wire};
use crate::every_provider::{Played, played_providers};
use crate::providers::shelf::Shelf;

const HIDDEN: &str = "[server]\nhide_unknown_sources = true\n\
                      [limits]\nfailed_signatures_per_minute = 1000000\n";

/// Which Braintree takes, too.
const CHALLENGE: &str = "4d1b9f4e1f3c4d1b9f4e1f3c";

/// Something that anybody may send.
fn probe(method: &str) -> Draft {
    Draft { method: method.into(), url: String::new(), headers: HeaderMap::new(), body: Vec::new() }
}

/// Puts text where a field is looked for.
fn put(draft: &mut Draft, json: &mut Value, field: &Field, text: &str) {
    match field {
        Field::Query(name) => {
            let mark = if draft.url.is_empty() { '?' } else { '&' };
            draft.url.push_str(&format!("{mark}{name}={text}"));
        }
        Field::Header(name) => {
            let name = http::HeaderName::from_bytes(name.as_bytes()).unwrap();
            draft.headers.insert(name, text.parse().unwrap());
        }
        Field::Form(name) => draft.body.extend_from_slice(format!("{name}={text}&").as_bytes()),
        Field::Json(pointer) => {
            let keys = pointer.split('/').skip(1);
            let place = keys.fold(json, |at, key| {
                let object = if at.is_object() { at } else { at_object(at) };
                object.as_object_mut().unwrap().entry(key).or_insert(Value::Null)
            });
            *place = Value::from(text);
        }
        other => panic!("no handshake reads {other:?}"),
    }
}

fn at_object(at: &mut Value) -> &mut Value {
    *at = Value::Object(Map::new());
    at
}

/// A question as the provider would ask it, with a token that somebody guessed.
fn asked(handshake: &Handshake, method: &str) -> Draft {
    let (mut draft, mut json) = (probe(method), Value::Null);
    match &handshake.wants {
        Wants::Has(field) => put(&mut draft, &mut json, field, CHALLENGE),
        Wants::Is(field, text) | Wants::IsWithout(field, text, _) => {
            put(&mut draft, &mut json, field, text);
        }
        Wants::Method | Wants::EmptyBody => {}
    }
    if let Some((field, _)) = &handshake.token {
        put(&mut draft, &mut json, field, "guessed");
    }
    let same = matches!(&handshake.wants, Wants::Has(field) if handshake.challenge.as_ref() == Some(field));
    if let (Some(field), false) = (&handshake.challenge, same) {
        put(&mut draft, &mut json, field, CHALLENGE);
    }
    if !json.is_null() {
        draft.body = json.to_string().into_bytes();
    }
    draft
}

/// Everything that is worth a try without a secret.
fn probes(provider: &Provider, forged: Draft) -> Vec<Draft> {
    let mut probes: Vec<Draft> = ["HEAD", "GET", "OPTIONS", "POST", "PUT"].map(probe).into();
    for handshake in provider.handshakes.iter() {
        probes.extend(handshake.methods.iter().map(|method| asked(handshake, method)));
    }
    if let Some(pairing) = &provider.pairing {
        let (mut draft, mut json) = (probe("POST"), Value::Null);
        put(&mut draft, &mut json, &pairing.secret, "a-secret-of-my-own");
        if !json.is_null() {
            draft.body = json.to_string().into_bytes();
        }
        probes.push(draft);
    }
    let mut encoded = probe("POST");
    encoded.headers.insert("content-encoding", "gzip".parse().unwrap());
    let unsigned = Draft { headers: HeaderMap::new(), ..forged.clone() };
    probes.extend([encoded, unsigned, Draft { url: String::new(), ..forged }]);
    probes
}

/// The answer, without the date.
async fn answer(bed: &Bed, source: &str, draft: &Draft) -> Answer {
    let request = wire(&format!("/in/{source}{}", draft.url), draft);
    let mut answer = if draft.method == "HEAD" {
        let mut stream = bed.connect().await;
        stream.write_all(&request).await.unwrap();
        Answer::read_head(&mut stream).await
    } else {
        bed.raw(&request).await
    };
    answer.headers.retain(|(name, _)| name != "date");
    answer
}

/// Whether anybody gets an answer out of it.
fn is_open(handshake: &Handshake) -> bool {
    !handshake.signed && handshake.token.is_none()
}

/// Every provider of the catalogue: what its source says is what no source says.
#[tokio::test]
async fn no_answer_tells_whether_a_source_exists() {
    let shelf = Arc::new(Shelf::default());
    shelf.fail();
    let bed = Bed::with_keys(HIDDEN, shelf.options()).await;
    let store = format!("[store]\nmaster_secret = \"{}\"\n", "m".repeat(40));
    let mut answered = 0;
    for Played { provider, simulator, source, .. } in played_providers() {
        let name = &*provider.name;
        // Without it eBay's question has no answer.
        let more = match name {
            "ebay" => "public_url = \"https://hooks.example.com/in/ebay\"\n",
            _ => "",
        };
        let config = configuration(&format!("{HIDDEN}{store}{source}\n{more}"));
        bed.server.reload(config).await.unwrap();
        let url = format!("https://hooks.example.com/in/{name}");
        let now = bed.clock.now();
        let forged = simulator.draft(&url, &Event::new("evt_0001"), now).unwrap();
        let forged = simulator.tamper(forged, now);
        let mut heard = 0;
        for draft in probes(provider, forged) {
            let real = answer(&bed, name, &draft).await;
            let none = answer(&bed, "nobody", &draft).await;
            assert_eq!(none, real, "{name}: {} {}", draft.method, draft.url);
            heard += usize::from((200..300).contains(&real.status));
        }
        let open = provider.handshakes.iter().filter(|handshake| is_open(handshake)).count();
        assert!(heard >= open, "{name}: {heard} of {open} questions were answered");
        answered += heard;
    }
    assert!(answered >= 30, "{answered} questions were answered");
    bed.assert_untouched("a probe").await;
}

const SOURCES: &str = r#"
[sources.stripe]
provider = "stripe"
secrets = ["whsec_canary_stripe_secret"]

[sources.dropbox]
provider = "dropbox"
secrets = ["canary-dropbox"]

[sources.trello]
provider = "trello"
secrets = ["canary-trello"]
public_url = "https://hooks.example.com/in/trello"
"#;

/// What each of many names answers, in a word.
async fn allowed(bed: &Bed) -> Vec<String> {
    let mut allowed = Vec::new();
    for number in 0..40 {
        let put = answer(bed, &format!("name-{number}"), &probe("PUT")).await;
        allowed.push(put.header("allow").unwrap().to_owned());
    }
    allowed
}

/// A source always says the same, and so does what is none; and both say all that sources say.
#[tokio::test]
async fn a_name_keeps_its_answers() {
    let bed = Bed::configured(&format!("{HIDDEN}{SOURCES}")).await;
    let before = allowed(&bed).await;
    for said in ["POST", "POST, GET", "POST, HEAD"] {
        assert!(before.iter().any(|allowed| allowed == said), "{said} in {before:?}");
    }
    let bed = bed.restarted_after(1).await;
    assert_eq!(allowed(&bed).await, before);
}

/// What stands in for a source takes nothing, not even from whoever has the secret.
#[tokio::test]
async fn a_genuine_event_to_no_source_is_refused() {
    let one = &SOURCES[..SOURCES.find("[sources.dropbox]").unwrap()];
    let bed = Bed::configured(&format!("{HIDDEN}{one}")).await;
    for name in ["nobody", "stripe-live", "Not%20a%20name"] {
        bed.post(name, &bed.event("evt_1")).await.assert_rejected(name);
    }
    bed.assert_untouched("an event to no source").await;
    let rejected = r#"oncebox_rejections_total{source="unknown",reason="unknown_source"}"#;
    assert_eq!(bed.metric(rejected).await, 3.0);
    assert_eq!(bed.post("stripe", &bed.event("evt_1")).await.status, 202);
}

/// Where nothing is verified nothing can be pretended, and nobody is told anything either.
#[tokio::test]
async fn without_sources_all_are_refused() {
    let bed = Bed::configured(HIDDEN).await;
    bed.post("nobody", &bed.event("evt_1")).await.assert_rejected("no source at all");
}
