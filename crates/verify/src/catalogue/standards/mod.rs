group! {
    standard_webhooks,
    svix,
}
