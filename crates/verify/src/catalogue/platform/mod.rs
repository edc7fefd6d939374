group! {
    aws_sns,
    azure_event_grid,
    cloudevents,
    cloudflare_notifications,
    google_pubsub,
    microsoft_graph,
    microsoft_sharepoint,
    nylas,
    qstash,
    tailscale,
}
