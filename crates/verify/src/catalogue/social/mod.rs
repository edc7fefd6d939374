group! {
    linkedin,
    meta,
    tiktok,
    twitch,
    x,
}
