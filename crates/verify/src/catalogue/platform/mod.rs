group! {
    azure_event_grid,
    cloudevents,
    cloudflare_notifications,
    google_pubsub,
    nylas,
    qstash,
    tailscale,
}
