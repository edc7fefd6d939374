//! WeChat Pay: RSA with SHA-256 over time, nonce and body, each with a line break, base64, in
//! `Wechatpay-Signature`.
//!
//! <https://pay.weixin.qq.com/doc/v3/merchant/4012365342>

use crate::catalogue::words::*;

pub(super) static ENTRY: Provider = Entry {
    name: "wechat-pay",
    title: "WeChat Pay v3",
    docs: "https://pay.weixin.qq.com/doc/v3/merchant/4012365342",
    schemes: items![
        signed_by(Algorithm::RsaSha256, in_header("wechatpay-signature"))
            .stamp(in_header("wechatpay-timestamp"), SECONDS, 300)
            .over(list![
                TIME,
                lit("\n"),
                Part::Header(text("wechatpay-nonce")),
                lit("\n"),
                BODY,
                lit("\n"),
            ])
            .scheme()
    ],
    identity: items![id(json("/id"))],
    event_type: items![kind(json("/event_type"))],
    version: items![version(json("/create_time"), Unit::Iso8601)],
    answer: Some(Answer::Exactly {
        status: 200,
        content_type: "application/json",
        body: r#"{"code":"SUCCESS","message":""}"#,
    }),
    retry: "After 15 s and at growing intervals of up to 6 hours, for 24 hours.",
    retry_hours: 24,
    find_secret: "Merchant platform, Account, API security: WeChat Pay's public key, or its platform \
         certificate; give all that may be in use.",
    notes: "`/resource` is encrypted with your APIv3 key and is kept as it is. `Wechatpay-Serial` \
         names the key; Oncebox tries those of the source.",
    sample_type: "TRANSACTION.SUCCESS",
    sample_body: r#"{"resource_type":"encrypt-resource","summary":"payment success",
        "resource":{"original_type":"transaction","algorithm":"AEAD_AES_256_GCM",
        "ciphertext":"c2FtcGxl","associated_data":"transaction","nonce":"fdasfjihihihlkja"}}"#,
    sample_object: "",
    ..BLANK
}
.provider();
