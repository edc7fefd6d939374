group! {
    line,
    pusher,
    ringcentral,
    slack,
    twilio,
    viber,
    webex,
    zoom,
}
