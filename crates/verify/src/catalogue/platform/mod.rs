group! {
    cloudevents,
    cloudflare_notifications,
    nylas,
    tailscale,
}
