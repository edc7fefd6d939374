//! Zendesk: HMAC-SHA256 over `{timestamp}{body}`, base64, in `X-Zendesk-Webhook-Signature`.
//!
//! <https://developer.zendesk.com/documentation/webhooks/verifying/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "zendesk",
    title: "Zendesk",
    docs: "https://developer.zendesk.com/documentation/webhooks/verifying/",
    // The secret looks like base64 and is not decoded. Retries end within minutes.
    schemes: items![
        hmac(in_header("x-zendesk-webhook-signature"))
            .base64()
            .stamp(in_header("x-zendesk-webhook-signature-timestamp"), ISO, 300)
            .over(list![TIME, BODY])
            .scheme()
    ],
    // The body of a trigger or an automation is written by its author, in any format, and its
    // `/type` and `/id` may be those of a ticket. Only events tell the version of their schema.
    payload: Payload::Any,
    identity: items![
        Identity::Joined(list![json("/type"), json("/id"), json("/zendesk_event_version")]),
        id(header("x-zendesk-webhook-invocation-id"))
    ],
    event_type: items![kind(json("/type"))],
    object: items![json("/detail/id")],
    version: items![
        version(json("/detail/updated_at"), Unit::Iso8601),
        version(json("/time"), Unit::Iso8601)
    ],
    retry: "After 409 up to three times, after a time-out up to five; 429 and 503 with a short \
         Retry-After. Many errors break the circuit.",
    recovery: "GET /api/v2/webhooks/{id}/invocations lists seven days.",
    find_secret: "Admin center, Apps and integrations, Webhooks, your webhook, Signing secret.",
    notes: "Bodies of triggers and automations may be anything; they are known by their \
         invocation. Tests from the form are signed with a public secret and refused here. \
         Zendesk waits 12 s.",
    sample_type: "zen:event-type:ticket.created",
    sample_body: r#"{"account_id":22129848,"zendesk_event_version":"2022-11-06",
        "subject":"zen:ticket:5158","event":{},"detail":{"subject":"A sample",
        "status":"OPEN","priority":"HIGH"}}"#,
    sample_object: "5158",
    ..BLANK
}
.provider();
