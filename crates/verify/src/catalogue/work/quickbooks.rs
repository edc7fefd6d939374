//! QuickBooks Online: HMAC-SHA256 over the body, base64, in `intuit-signature`.
//!
//! <https://developer.intuit.com/app/developer/qbo/docs/develop/webhooks>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "quickbooks",
    title: "QuickBooks Online",
    docs: "https://developer.intuit.com/app/developer/qbo/docs/develop/webhooks",
    schemes: items![hmac(in_header("intuit-signature")).base64().scheme()],
    // The newer form is an array of CloudEvents; the older one nests companies and their changes.
    batches: items![
        Batch {
            items: text("/eventNotifications"),
            inner: list![text("/dataChangeEvent/entities")],
        },
        batch(""),
    ],
    identity: items![
        Identity::Joined(list![
            outer("/realmId"),
            item("/name"),
            item("/id"),
            item("/operation"),
            item("/lastUpdated"),
        ]),
        id(item("/id")),
    ],
    event_type: items![kind(item("/type")), kind_with(item("/name"), item("/operation"))],
    object: items![item("/intuitentityid"), item("/id")],
    version: items![
        version(item("/time"), Unit::Iso8601),
        version(item("/lastUpdated"), Unit::Iso8601),
    ],
    answer: Some(Answer::Status(200)),
    retry: "After 10, 20 and 30 seconds, 5 and 20 minutes, 2, 4 and 6 hours, then every 6 hours; \
         later events wait behind the one that fails.",
    find_secret: "Intuit Developer, your app, Webhooks, Verifier token.",
    notes: "One request carries many changes, each of which becomes an event. The older form has \
         no id: a change is known by company, entity, operation and time. It must be answered \
         within 3 seconds.",
    sample_type: "qbo.invoice.updated.v1",
    sample_body: r#"[{"specversion":"1.0","source":"intuit.sample",
            "datacontenttype":"application/json","intuitaccountid":"310687","data":{}}]"#,
    sample_object: "1234",
    ..BLANK
}
.provider();
