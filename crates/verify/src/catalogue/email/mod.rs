group! {
    mailgun,
    resend,
}
