group! {
    generic_ts_body,
    standard_webhooks,
    svix,
}
