//! Supabase database webhooks: a token in `Authorization` that you chose.
//!
//! <https://supabase.com/docs/guides/database/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "supabase-db-webhooks",
    title: "Supabase database webhooks",
    docs: "https://supabase.com/docs/guides/database/webhooks",
    schemes: items![token_at(TokenPlace::Header(text("authorization")), TokenKind::Bearer)],
    // Nothing is sent twice, and a row may come back to what it was.
    identity: items![Identity::Each],
    event_type: items![kind_with(json("/table"), json("/type"))],
    object: items![json("/record/id"), json("/old_record/id")],
    version: items![version(json("/record/updated_at"), Unit::Iso8601)],
    retry: "None; the database sends once and waits 5 s unless told otherwise.",
    find_secret: "Choose one, and give the webhook a header Authorization: Bearer and that secret.",
    notes: "Nothing is signed: the token proves who sent a request, not what was sent.",
    sample_type: "orders.INSERT",
    sample_body: r#"{"schema":"public","record":{"total":20},"old_record":null}"#,
    sample_object: "1",
    ..BLANK
}
.provider();
