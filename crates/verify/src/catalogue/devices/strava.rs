//! Strava: no signature; a token of ours in the URL.
//!
//! <https://developers.strava.com/docs/webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "strava",
    title: "Strava",
    docs: "https://developers.strava.com/docs/webhooks/",
    schemes: items![token_at(TokenPlace::Query(text("token")), TokenKind::Plain)],
    settings: items![optional(
        "verify_token",
        "The verify_token you name when you make the subscription."
    )],
    // There is no event id.
    identity: items![Identity::Joined(list![
        json("/object_type"),
        json("/object_id"),
        json("/aspect_type"),
        json("/event_time")
    ])],
    event_type: items![kind_with(json("/object_type"), json("/aspect_type"))],
    object: items![json("/object_id")],
    version: items![version(json("/event_time"), Unit::Seconds)],
    handshakes: items![
        asks(GET, Wants::Has(query("hub.challenge")))
            .token(query("hub.verify_token"), "verify_token")
            .challenge(query("hub.challenge"))
            .says(Said::Json(list![(text("hub.challenge"), list![Piece::Challenge])]))
    ],
    answer: Some(Answer::Status(200)),
    conflicts_are_news: Some("The identity has a time in seconds: two changes in a second share it."),
    retry: "Up to three attempts in all.",
    find_secret: "Choose a long random text and add it to the callback URL you give to \
         Strava: ?token=....",
    notes: "Nothing is signed: take it as a hint and fetch the object. Strava waits 2 s.",
    sample_type: "activity.create",
    sample_body: r#"{"owner_id":134815,"subscription_id":120475,"updates":{}}"#,
    sample_object: "1360128428",
    ..BLANK
}
.provider();
