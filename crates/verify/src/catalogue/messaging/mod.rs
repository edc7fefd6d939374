group! {
    line,
    plivo,
    pusher,
    ringcentral,
    slack,
    telegram,
    twilio,
    twilio_json,
    twilio_sharedkey,
    viber,
    webex,
    zoom,
}
