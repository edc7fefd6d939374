group! {
    generic_ts_body,
    http_message_signatures,
    mcp_events,
    standard_webhooks,
    svix,
}
