//! HTTP message signatures (RFC 9421) over the digest of the body (RFC 9530), of any sender.
//!
//! <https://www.rfc-editor.org/rfc/rfc9421>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "http-message-signatures",
    title: "HTTP message signatures (RFC 9421)",
    docs: "https://www.rfc-editor.org/rfc/rfc9421",
    schemes: items![Scheme::Special(Special::HttpMessage)],
    settings: items![
        optional(
            "covered",
            "What the signature must cover beside content-digest, separated by spaces, such as \
             \"@method @target-uri idempotency-key\"."
        ),
        optional("keyid", "The keyid that requests must name, for keys that have no name."),
        optional("label", "The label of the signature, where requests carry several."),
        optional("tolerance", "How many seconds the time of a signature may be off; 300 unless set."),
        optional("event_id", "Where the identity is: /pointer, header:NAME, form:NAME or digest."),
        optional("event_type", "Where the type is: /pointer, header:NAME or form:NAME."),
        optional("object_id", "Where the id of the business object is."),
        optional("version", "Where the ordering value of the object is."),
    ],
    payload: Payload::Any,
    identity: items![id(json("/id")), Identity::Digest],
    event_type: items![kind(json("/type"))],
    retry: "As the sender pleases.",
    find_secret: "The sender's public key, as PEM, a JWK or a key set; or a shared secret.",
    notes: "The signature must cover content-digest and name the time it was created; a request \
         with parameters of parts (`sf`, `key`, `bs`, `req`, `tr`) or with `@query-param` is refused. \
         List keys as JWK with their `kid`, so that `keyid` finds them. Where the URL is covered, \
         `public_url` must be the one that the sender calls.",
    sample_type: "sample.created",
    sample_body: r#"{"data":{"message":"hello"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
