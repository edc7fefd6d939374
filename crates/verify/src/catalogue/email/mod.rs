group! {
    emailit,
    mailchimp,
    mailerlite,
    mailersend,
    mailgun,
    postmark,
    resend,
}
