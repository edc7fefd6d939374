//! Dropbox: HMAC-SHA256 over the body, hex, in `X-Dropbox-Signature`.
//!
//! <https://www.dropbox.com/developers/reference/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "dropbox",
    title: "Dropbox",
    docs: "https://www.dropbox.com/developers/reference/webhooks",
    schemes: items![hmac(in_header("x-dropbox-signature")).scheme()],
    // A notice names accounts, not changes: the next one reads the same.
    identity: items![Identity::Each],
    event_type: items![kind(Field::KeyBeside(list![text("delta")]))],
    handshakes: items![
        asks(GET, Wants::Has(query("challenge")))
            .challenge(query("challenge"))
            .headers(list![(text("X-Content-Type-Options"), Piece::Text(text("nosniff")))])
            .says(ECHO)
    ],
    retry: "With growing pauses for about ten minutes; a high rate of failures disables the \
         webhook.",
    retry_hours: 1,
    find_secret: "App console, your app, Settings, App secret.",
    notes: "A notice names accounts, not changes, and carries no id: read each account with \
         list_folder/continue and its cursor. A retry is an event of its own. Dropbox waits \
         10 s.",
    sample_type: "list_folder",
    sample_body: r#"{"list_folder":{"accounts":["dbid:AAH4f99T0taONIb-OurWxbNQ6ywGRopQngc"]},
        "delta":{"users":[12345678]}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
