group! {
    cloudevents,
    cloudflare_notifications,
    microsoft_graph,
    microsoft_sharepoint,
    nylas,
    tailscale,
}
