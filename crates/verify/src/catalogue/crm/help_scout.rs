//! Help Scout: HMAC-SHA1 over the body, base64, in `X-HelpScout-Signature`.
//!
//! <https://developer.helpscout.com/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "help-scout",
    title: "Help Scout",
    docs: "https://developer.helpscout.com/webhooks/",
    schemes: items![hmac(in_header("x-helpscout-signature")).sha1().base64().scheme()],
    // One conversation may come under several types.
    identity: items![
        Identity::JoinedDigest(list![header("x-helpscout-event")]),
        Identity::Digest
    ],
    event_type: items![kind(header("x-helpscout-event"))],
    object: items![json("/id")],
    twins: hold("The same type and body is a duplicate; only a copy without its type is a twin."),
    types_share_body: Some(
        "The type is a header and the body is the bare conversation or customer.",
    ),
    retry: "Not documented; expect the same event more than once.",
    find_secret: "The secret key that was chosen when the webhook was made.",
    notes: "The type is not signed. Two notices with the same body, byte for byte, count as one \
         event: do not choose thin payloads.",
    sample_type: "convo.created",
    sample_body: r#"{"number":1234,"subject":"A sample","status":"active"}"#,
    sample_object: "2391938111",
    ..BLANK
}
.provider();
