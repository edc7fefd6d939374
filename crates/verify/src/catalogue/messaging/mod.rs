group! {
    line,
    livekit,
    messagebird,
    pusher,
    ringcentral,
    slack,
    twilio,
    viber,
    vonage,
    webex,
    zoom,
}
