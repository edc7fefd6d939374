group! {
    linkedin,
    tiktok,
    twitch,
}
