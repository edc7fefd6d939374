group! {
    slack,
    twilio,
}
