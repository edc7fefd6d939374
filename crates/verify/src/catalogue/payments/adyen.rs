//! Adyen: HMAC-SHA256 over eight values of each item, base64, in the item.
//!
//! <https://docs.adyen.com/development-resources/webhooks/secure-webhooks/verify-hmac-signatures/>

use crate::catalogue::words::*;

const fn signed(pointer: &'static str) -> Part {
    Part::Item(text(pointer))
}

pub(super) static ENTRY: Provider = Entry {
    name: "adyen",
    title: "Adyen (payments)",
    docs: "https://docs.adyen.com/development-resources/webhooks/secure-webhooks/verify-hmac-signatures/",
    schemes: items![
        hmac(Place::Item(text("/NotificationRequestItem/additionalData/hmacSignature")))
            .base64()
            .key(KeyForm::Hex)
            .over(list![
                signed("/NotificationRequestItem/pspReference"),
                lit(":"),
                signed("/NotificationRequestItem/originalReference"),
                lit(":"),
                signed("/NotificationRequestItem/merchantAccountCode"),
                lit(":"),
                signed("/NotificationRequestItem/merchantReference"),
                lit(":"),
                signed("/NotificationRequestItem/amount/value"),
                lit(":"),
                signed("/NotificationRequestItem/amount/currency"),
                lit(":"),
                signed("/NotificationRequestItem/eventCode"),
                lit(":"),
                signed("/NotificationRequestItem/success"),
            ])
            .scheme()
    ],
    batches: items![batch("/notificationItems")],
    // Adyen's own words for what makes a duplicate.
    identity: items![Identity::Joined(list![
        item("/NotificationRequestItem/pspReference"),
        item("/NotificationRequestItem/eventCode"),
        item("/NotificationRequestItem/success"),
    ])],
    event_type: items![kind(item("/NotificationRequestItem/eventCode"))],
    object: items![
        item("/NotificationRequestItem/originalReference"),
        item("/NotificationRequestItem/pspReference"),
    ],
    version: items![version(item("/NotificationRequestItem/eventDate"), Unit::Iso8601)],
    // Values are joined by a colon that they may hold too, so where one ends is not signed, and
    // the rest of an item is not signed at all.
    guard: Guard::Signed,
    // Older contracts want these words; newer ones take any 2xx.
    answer: Some(Answer::Exactly { status: 200, content_type: "text/plain", body: "[accepted]" }),
    twins: hold(
        "Only references, amount and result are signed: what else a repeat says may be Adyen's \
         later details, or anybody's.",
    ),
    conflicts_are_news: Some(
        "Adyen calls an event by the same reference, code and result a duplicate whose latest \
         details count.",
    ),
    retry: "Three quick tries, then after 2, 5, 10, 15 and 30 minutes, 1, 2, 4 and 8 hours, then \
         every 8 hours for up to 30 days.",
    retry_hours: 720,
    recovery: "The Customer Area sends webhooks again; reports tell what is missing.",
    find_secret: "Customer Area, Developers, Webhooks, your webhook, Security, HMAC key (hex).",
    notes: "Every item must be signed. Only references, account, amount, code and success are: \
         read the rest again from Adyen where it matters. JSON only, not HTTP POST or SOAP. Basic \
         authentication, if set at Adyen, is not looked at.",
    sample_type: "AUTHORISATION",
    sample_body: r#"{"live":"false","notificationItems":[{"NotificationRequestItem":{
            "additionalData":{},"amount":{"currency":"EUR","value":1130},
            "eventCode":"AUTHORISATION","merchantAccountCode":"SampleMerchant",
            "merchantReference":"sample-order","paymentMethod":"visa","pspReference":"",
            "success":"true"}}]}"#,
    sample_object: "7914073381342284",
    ..BLANK
}
.provider();
