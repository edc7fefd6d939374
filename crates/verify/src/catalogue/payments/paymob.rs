//! Paymob: HMAC-SHA512 over twenty values of the transaction, hex, in the query.
//!
//! <https://developers.paymob.com/egypt/manage-callback/hmac/hmac-transaction-callback>

use crate::catalogue::words::*;

const fn signed(pointer: &'static str) -> Part {
    Part::Json(text(pointer))
}

pub(super) static ENTRY: Provider = Entry {
    name: "paymob",
    title: "Paymob",
    docs: "https://developers.paymob.com/egypt/manage-callback/hmac/hmac-transaction-callback",
    schemes: items![
        hmac(Place::Query(text("hmac")))
            .sha512()
            .over(list![
                signed("/obj/amount_cents"),
                signed("/obj/created_at"),
                signed("/obj/currency"),
                signed("/obj/error_occured"),
                signed("/obj/has_parent_transaction"),
                signed("/obj/id"),
                signed("/obj/integration_id"),
                signed("/obj/is_3d_secure"),
                signed("/obj/is_auth"),
                signed("/obj/is_capture"),
                signed("/obj/is_refunded"),
                signed("/obj/is_standalone_payment"),
                signed("/obj/is_voided"),
                signed("/obj/order/id"),
                signed("/obj/owner"),
                signed("/obj/pending"),
                signed("/obj/source_data/pan"),
                signed("/obj/source_data/sub_type"),
                signed("/obj/source_data/type"),
                signed("/obj/success"),
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
         whose signed values came before is a twin of that.",
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
