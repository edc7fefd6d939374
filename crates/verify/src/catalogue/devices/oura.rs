//! Oura: HMAC-SHA256 over `{timestamp}{body}`, upper-case hex, in `x-oura-signature`.
//!
//! <https://cloud.ouraring.com/v2/docs>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "oura",
    title: "Oura",
    docs: "https://cloud.ouraring.com/v2/docs",
    // How the time is written, and whether a retry is signed anew, is not known.
    schemes: items![
        hmac(in_header("x-oura-signature"))
            .encoding(Encoding::HexUpper)
            .undated(in_header("x-oura-timestamp"), TimeFormat::Nonce)
            .over(list![TIME, BODY])
            .scheme()
    ],
    settings: items![optional(
        "verification_token",
        "The verification_token you name when you make the subscription."
    )],
    identity: items![Identity::Digest],
    event_type: items![kind_with(json("/data_type"), json("/event_type"))],
    object: items![json("/object_id")],
    version: items![version(json("/event_time"), Unit::Iso8601)],
    handshakes: items![
        asks(GET, Wants::Has(query("challenge")))
            .token(query("verification_token"), "verification_token")
            .challenge(query("challenge"))
            .says(Said::Json(list![(text("challenge"), list![Piece::Challenge])]))
    ],
    answer: Some(Answer::Status(200)),
    retry: "Not confirmed: ten times.",
    find_secret: "Oura Cloud, your API application: the client secret.",
    notes: "Oura waits 10 s.",
    sample_type: "daily_sleep.create",
    sample_body: r#"{"user_id":"sample"}"#,
    sample_object: "43c2b8d8-0f4a-4f1a-9f6c-1d1f2a3b4c5d",
    ..BLANK
}
.provider();
