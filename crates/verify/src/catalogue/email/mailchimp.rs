//! Mailchimp: no signature; a token of ours in the URL.
//!
//! <https://mailchimp.com/developer/marketing/guides/sync-audience-data-webhooks/>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "mailchimp",
    title: "Mailchimp",
    docs: "https://mailchimp.com/developer/marketing/guides/sync-audience-data-webhooks/",
    schemes: items![token_at(TokenPlace::Query(text("token")), TokenKind::Plain)],
    identity: items![Identity::Digest],
    event_type: items![kind(form("type"))],
    object: items![form("data[id]")],
    // The URL is fetched once when it is saved, token and all.
    handshakes: items![
        asks(GET, Wants::Method).token(query("token"), "token"),
        asks(HEAD, Wants::Method).token(query("token"), "token")
    ],
    answer: Some(Answer::Status(200)),
    retry: "Not documented; expect retries.",
    find_secret: "Choose a long random text and add it to the webhook URL you give to \
         Mailchimp: ?token=....",
    notes: "Nothing is signed: read the member again before acting. Mandrill signs; see \
         mandrill.",
    sample_type: "subscribe",
    sample_body: "fired_at=2009-03-26+21%3A35%3A57&data%5Blist_id%5D=a6b5da1054",
    sample_object: "8a25ff1d98",
    sample_form: true,
    ..BLANK
}
.provider();
