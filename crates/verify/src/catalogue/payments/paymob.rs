//! Paymob: HMAC-SHA512 over twenty values of the transaction, hex, in the query.
//!
//! <https://developers.paymob.com/egypt/manage-callback/hmac/hmac-transaction-callback>

use crate::catalogue::words::*;

// Values are signed without anything between them, so each must be of its kind: then digits of one
// are not taken for those of the next, other than between two integers.
const fn integer(pointer: &'static str) -> Part {
    Part::JsonAs(text(pointer), ValueKind::Integer)
}

const fn boolean(pointer: &'static str) -> Part {
    Part::JsonAs(text(pointer), ValueKind::Boolean)
}

const fn words(pointer: &'static str) -> Part {
    Part::JsonAs(text(pointer), ValueKind::Text)
}

pub(super) static ENTRY: Provider = Entry {
    name: "paymob",
    title: "Paymob",
    docs: "https://developers.paymob.com/egypt/manage-callback/hmac/hmac-transaction-callback",
    schemes: items![
        hmac(Place::Query(text("hmac")))
            .sha512()
            .over(list![
                integer("/obj/amount_cents"),
                Part::JsonAs(text("/obj/created_at"), ValueKind::Time),
                Part::JsonAs(text("/obj/currency"), ValueKind::Currency),
                boolean("/obj/error_occured"),
                boolean("/obj/has_parent_transaction"),
                integer("/obj/id"),
                integer("/obj/integration_id"),
                boolean("/obj/is_3d_secure"),
                boolean("/obj/is_auth"),
                boolean("/obj/is_capture"),
                boolean("/obj/is_refunded"),
                boolean("/obj/is_standalone_payment"),
                boolean("/obj/is_voided"),
                integer("/obj/order/id"),
                integer("/obj/owner"),
                boolean("/obj/pending"),
                words("/obj/source_data/pan"),
                words("/obj/source_data/sub_type"),
                words("/obj/source_data/type"),
                boolean("/obj/success"),
            ])
            .scheme()
    ],
    identity: items![Identity::Digest],
    event_type: items![kind(json("/type"))],
    object: items![json("/obj/id")],
    // The values are signed without anything between them, and the rest is not signed.
    guard: Guard::Signed,
    retry: "Not documented.",
    find_secret: "Dashboard, Settings, Account info, HMAC.",
    notes: "Only callbacks about transactions are accepted; those about saved cards are signed over \
         other values. There is no id and no time: a callback is known by its content, and one \
         whose signed values came before is a twin of that. The values are signed without \
         anything between them: where the id and the integration, or the order and the owner, \
         meet, the signature does not tell which digit belongs to which.",
    sample_type: "TRANSACTION",
    sample_body: r#"{"obj":{"amount_cents":10000,"created_at":"2026-01-02T03:04:05.000000",
            "currency":"EGP","error_occured":false,"has_parent_transaction":false,"id":1,
            "integration_id":1,"is_3d_secure":true,"is_auth":false,"is_capture":false,
            "is_refunded":false,"is_standalone_payment":true,"is_voided":false,
            "order":{"id":1},"owner":1,"pending":false,
            "source_data":{"pan":"2346","sub_type":"MasterCard","type":"card"},"success":true}}"#,
    sample_object: "192036465",
    ..BLANK
}
.provider();
