//! Mandrill: HMAC-SHA1 over the URL and the sorted form, base64, in `X-Mandrill-Signature`.
//!
//! <https://mailchimp.com/developer/transactional/guides/track-respond-activity-webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "mandrill",
    title: "Mailchimp Transactional (Mandrill)",
    docs: "https://mailchimp.com/developer/transactional/guides/track-respond-activity-webhooks/",
    schemes: items![Scheme::Special(Special::Mandrill)],
    payload: Payload::FormJson("mandrill_events"),
    batches: items![batch("")],
    // A message has one event per kind and second; changes of the reject list have no id.
    identity: items![
        Identity::Joined(list![item("/_id"), item("/event"), item("/ts")]),
        Identity::Digest,
    ],
    event_type: items![kind(item("/event")), kind_with(item("/type"), item("/action"))],
    object: items![item("/_id")],
    version: items![version(item("/ts"), Unit::Seconds)],
    // The check of a new URL.
    handshakes: items![asks(HEAD, Wants::Method)],
    answer: Some(Answer::Status(200)),
    conflicts_are_news: Some("The identity has a time in seconds: two clicks in a second share it."),
    retry: "Not documented; batches that fail are sent again for some time.",
    find_secret: "Settings, Webhooks, your webhook, Key.",
    notes: "The URL is signed, so Oncebox must know the public URL exactly as set at Mandrill. One \
         request carries many events, each of which becomes one here. The POST that checks a new \
         URL is signed with the key `test-webhook` and refused; the HEAD before it is answered.",
    sample_type: "send",
    sample_body: r#"[{"event":"send","ts":1760000000,"_id":"sample",
            "msg":{"_id":"sample","email":"sample@example.com","sender":"from@example.com",
            "subject":"Sample","state":"sent","tags":["welcome"]}}]"#,
    sample_object: "sample",
    sample_form: true,
    ..BLANK
}
.provider();
