//! One request, many events: every one of them kept, or the provider is told to come back.

use oncebox::receipt::Oddity;
use oncebox::store::ReceiptSummary;
use oncebox_verify::{Draft, Secret, catalogue, sign};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::bed::{Answer, Bed, Place};

const SECRET: &str = "canary-gocardless-secret";

pub(crate) const SOURCES: &str = "[sources.debits]\nprovider = \"gocardless\"\n\
                       secrets = [\"canary-gocardless-secret\"]\n";

/// Runs a story on each store.
macro_rules! on_each_store {
    ($($story:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $story() {
                super::$story(super::Place::sqlite()).await;
            })*
        }

        mod postgres {
            $(#[tokio::test]
            async fn $story() {
                super::$story(super::Place::postgres().await).await;
            })*
        }
    };
}

on_each_store!(
    each_event_gets_a_receipt_of_its_own,
    known_and_new_events_are_told_apart_in_one_request,
    events_are_taken_one_by_one,
    one_bad_event_keeps_no_other_out,
    a_hundred_xero_events_survive_a_bad_one,
    odd_events_are_told_apart_one_by_one,
);

pub(crate) fn event(id: &str, action: &str) -> Value {
    json!({"id": id, "resource_type": "payments", "action": action, "links": {"payment": "PM1"}})
}

/// These events in one request, signed.
pub(crate) fn batch(events: &[Value]) -> Draft {
    signed(json!({"events": events, "meta": {"webhook_id": "WB1"}}).to_string())
}

fn signed(body: String) -> Draft {
    signed_for("gocardless", body)
}

fn signed_for(provider: &str, body: String) -> Draft {
    let headers = http::HeaderMap::new();
    let body = body.into_bytes();
    let draft = Draft { method: "POST".into(), url: "/in/debits".into(), headers, body };
    let provider = catalogue::find(provider).unwrap();
    let at = jiff::Timestamp::from_second(1_790_000_000).unwrap();
    sign(provider, &Secret::new(SECRET), draft, at).unwrap()
}

/// The status, the word and the receipts of an answer.
fn told(answer: &Answer) -> (u16, String, Vec<String>) {
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    let receipts = body["receipts"].as_array().expect("a list of receipts").iter();
    let receipts = receipts.map(|receipt| receipt.as_str().unwrap().to_owned()).collect();
    (answer.status, body["status"].as_str().unwrap().to_owned(), receipts)
}

fn metric(outcome: &str) -> String {
    format!(r#"oncebox_received_total{{source="debits",outcome="{outcome}"}}"#)
}

async fn each_event_gets_a_receipt_of_its_own(place: Place) {
    let routes = "[routes.paid]\nsources = [\"debits\"]\nevents = [\"*.paid_out\"]\npull = true\n";
    let bed = Bed::on_place(place, &format!("{SOURCES}{routes}")).await;
    let events = [event("EV1", "confirmed"), event("EV2", "paid_out"), event("EV3", "failed")];
    let draft = batch(&events);
    let (status, word, receipts) = told(&bed.post("debits", &draft).await);
    assert_eq!((status, word.as_str(), receipts.len()), (202, "accepted", 3));
    for (number, (id, given)) in receipts.iter().zip(&events).enumerate() {
        let kept = bed.server.inbox.store.receipt(id.parse().unwrap()).await.unwrap().unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&kept.body).unwrap(), *given);
        assert_eq!(kept.signed_body(), draft.body, "it can be verified again");
        let part = kept.part.unwrap();
        assert_eq!((part.position, part.count), (u32::try_from(number).unwrap(), 3));
        assert_eq!(kept.summary.event_id, given["id"].as_str().unwrap());
        let routes = kept.summary.deliveries.len();
        assert_eq!(routes, usize::from(given["action"] == "paid_out"));
    }
    assert_eq!(bed.metric(&metric("accepted")).await, 3.0);
}

async fn known_and_new_events_are_told_apart_in_one_request(place: Place) {
    let bed = Bed::on_place(place, SOURCES).await;
    let [one, two, three] = ["EV1", "EV2", "EV3"].map(|id| event(id, "confirmed"));
    let (_, _, first) = told(&bed.post("debits", &batch(&[one.clone(), two.clone()])).await);
    let (status, word, mixed) = told(&bed.post("debits", &batch(&[three, one.clone()])).await);
    assert_eq!((status, word.as_str()), (202, "accepted"));
    assert_eq!(mixed[1], first[0], "a known event keeps its receipt");
    assert_eq!(told(&bed.post("debits", &batch(&[two, one.clone()])).await), {
        (200, "duplicate".to_owned(), vec![first[1].clone(), first[0].clone()])
    });
    // One event twice in one request is one event.
    let four = event("EV4", "confirmed");
    let (status, _, twice) = told(&bed.post("debits", &batch(&[four.clone(), four])).await);
    assert_eq!((status, &twice[0]), (202, &twice[1]));
    assert_eq!(bed.stored().await.len(), 4);
    assert_eq!(bed.metric(&metric("accepted")).await, 4.0);
    assert_eq!(bed.metric(&metric("duplicate")).await, 4.0);
}

async fn events_are_taken_one_by_one(place: Place) {
    let allowed = format!("{SOURCES}events = [\"payments.confirmed\"]\n");
    let bed = Bed::on_place(place, &allowed).await;
    let events = [event("EV1", "failed"), event("EV2", "confirmed"), event("EV3", "failed")];
    let (status, _, receipts) = told(&bed.post("debits", &batch(&events)).await);
    assert_eq!((status, receipts.len()), (202, 1));
    let stored = bed.stored().await;
    assert_eq!(stored.iter().map(|kept| kept.event_id.as_str()).collect::<Vec<_>>(), ["EV2"]);
    for nothing in [batch(&[event("EV4", "failed")]), batch(&[])] {
        let answer = bed.post("debits", &nothing).await;
        assert_eq!((answer.status, answer.body.as_str()), (200, r#"{"status":"ignored"}"#));
    }
    assert_eq!(bed.metric(&metric("ignored")).await, 4.0);
}

async fn one_bad_event_keeps_no_other_out(place: Place) {
    let bed = Bed::on_place(place, SOURCES).await;
    let bad = [
        ("no id", json!({"resource_type": "payments"}).to_string()),
        ("a number for an event", "7".to_owned()),
        ("a long id", event(&"x".repeat(513), "confirmed").to_string()),
        ("an id that no database takes", event("a\0b", "confirmed").to_string()),
        ("an id twice", r#"{"id":"EV1","id":"EV2","action":"confirmed"}"#.to_owned()),
    ];
    for (number, (what, bad)) in bad.iter().enumerate() {
        let good = event(&format!("EV{number}"), "confirmed");
        let draft = signed(format!(r#"{{"events":[{good},{bad}]}}"#));
        let (status, _, receipts) = told(&bed.post("debits", &draft).await);
        assert_eq!((status, receipts.len()), (202, 2), "{what}");
        let kept = bed.server.inbox.store.receipt(receipts[1].parse().unwrap()).await.unwrap();
        let kept = kept.unwrap();
        let digest = format!("sha256:{}", hex::encode(Sha256::digest(bad)));
        assert_eq!(kept.summary.event_id, digest, "{what}");
        assert_eq!(kept.body, bad.as_bytes(), "{what}");
        let again = told(&bed.post("debits", &draft).await);
        assert_eq!(again, (200, "duplicate".to_owned(), receipts), "{what}");
    }
    assert_eq!(bed.stored().await.len(), 2 * bad.len());
    // All of them bad: the request is as authentic as any.
    let all = signed(r#"{"events":[8,9]}"#.to_owned());
    let (status, _, receipts) = told(&bed.post("debits", &all).await);
    assert_eq!((status, receipts.len()), (202, 2));
    // A request with one event has no other to save.
    let answer = bed.post("debits", &signed(r#"{"events":[7]}"#.to_owned())).await;
    assert_eq!(answer.status, 400, "{answer:?}");
    let many: Vec<_> = (0..10_001).map(|number| event(&format!("E{number}"), "x")).collect();
    let answer = bed.post("debits", &batch(&many)).await;
    assert_eq!((answer.status, answer.body.contains("too_many_events")), (400, true));
    assert_eq!(bed.stored().await.len(), 2 * bad.len() + 2);
}

async fn a_hundred_xero_events_survive_a_bad_one(place: Place) {
    let source = "[sources.debits]\nprovider = \"xero\"\n\
                  secrets = [\"canary-gocardless-secret\"]\n";
    let bed = Bed::on_place(place, source).await;
    let event = |resource: String| {
        json!({"tenantId": "T1", "eventCategory": "INVOICE", "eventType": "UPDATE",
               "resourceId": resource, "eventDateUtc": "2026-01-02T03:04:05.678"})
    };
    let resource = |number: usize| match number {
        41 => "x".repeat(513),
        number => format!("invoice-{number}"),
    };
    let events: Vec<Value> = (0..100).map(|number| event(resource(number))).collect();
    let body = json!({"events": events, "firstEventSequence": 1, "lastEventSequence": 100});
    let draft = signed_for("xero", body.to_string());
    // Xero wants 200 and no body.
    let answer = bed.post("debits", &draft).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    let stored = bed.stored().await;
    assert_eq!(stored.len(), 100);
    let digest = hex::encode(Sha256::digest(events[41].to_string()));
    let is_bad = |kept: &&ReceiptSummary| kept.event_id == format!("sha256:{digest}");
    let bad: Vec<_> = stored.iter().filter(is_bad).collect();
    let [bad] = bad[..] else { panic!("{} receipts under the digest", bad.len()) };
    assert_eq!((bad.event_type.as_str(), bad.object.as_deref()), ("INVOICE.UPDATE", None));
    assert_eq!(bed.metric(&metric("accepted")).await, 100.0);
}

/// A type that cannot be read may be one that the source takes.
#[tokio::test]
async fn an_event_of_unreadable_type_is_kept_by_a_source_that_chooses() {
    let chosen = format!("{SOURCES}events = [\"payments.confirmed\"]\n");
    let bed = Bed::configured(&chosen).await;
    let events = [event("EV1", "confirmed"), event("EV2", &"x".repeat(513))];
    let (status, _, receipts) = told(&bed.post("debits", &batch(&events)).await);
    assert_eq!((status, receipts.len()), (202, 2));
}

async fn odd_events_are_told_apart_one_by_one(place: Place) {
    let bed = Bed::on_place(place, SOURCES).await;
    bed.post("debits", &batch(&[event("EV1", "confirmed")])).await;
    let events = [event("EV1", "failed"), event("EV2", "confirmed")];
    let (status, _, receipts) = told(&bed.post("debits", &batch(&events)).await);
    assert_eq!((status, receipts.len()), (202, 2));
    let odd = bed.server.inbox.store.receipt(receipts[0].parse().unwrap()).await.unwrap();
    let odd = odd.unwrap();
    assert_eq!(odd.summary.mark.unwrap().oddity, Oddity::Conflict);
    assert_eq!(serde_json::from_slice::<Value>(&odd.body).unwrap(), events[0]);
    assert_eq!(bed.metric(&metric("conflict")).await, 1.0);
}

#[tokio::test]
async fn a_batch_of_a_thousand_is_kept_and_known_after_a_restart() {
    let bed = Bed::configured(SOURCES).await;
    let events: Vec<_> =
        (0..1000).map(|number| event(&format!("EV{number}"), "confirmed")).collect();
    let (status, _, receipts) = told(&bed.post("debits", &batch(&events)).await);
    assert_eq!((status, receipts.len()), (202, 1000));
    let bed = bed.restarted_after(60).await;
    assert_eq!(told(&bed.post("debits", &batch(&events)).await), {
        (200, "duplicate".to_owned(), receipts)
    });
}

#[tokio::test]
async fn the_rate_counts_events() {
    let rated = format!("{SOURCES}rate = 1\nburst = 5\n");
    let bed = Bed::configured(&rated).await;
    let events = |from: usize, count: usize| -> Vec<Value> {
        (from..from + count).map(|number| event(&format!("EV{number}"), "confirmed")).collect()
    };
    assert_eq!(bed.post("debits", &batch(&events(0, 4))).await.status, 202);
    bed.post("debits", &batch(&events(4, 4))).await.assert_unavailable("over the rate");
    assert_eq!(bed.stored().await.len(), 4, "nothing of it was kept");
    // A batch that is larger than any burst waits for a full one, and not for ever.
    let other = Bed::configured(&rated).await;
    assert_eq!(other.post("debits", &batch(&events(0, 50))).await.status, 202);
}

#[tokio::test]
async fn a_full_source_takes_what_it_knows() {
    let full = format!("{SOURCES}quota = \"1B\"\n");
    let bed = Bed::configured(&full).await;
    let known = batch(&[event("EV1", "confirmed"), event("EV2", "confirmed")]);
    assert_eq!(bed.post("debits", &known).await.status, 202);
    bed.server.inbox.ingest.flush_counts().await.unwrap();
    assert_eq!(bed.post("debits", &known).await.status, 200);
    let half = batch(&[event("EV1", "confirmed"), event("EV3", "confirmed")]);
    bed.post("debits", &half).await.assert_unavailable("a source that is full");
}
