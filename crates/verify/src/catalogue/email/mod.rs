group! {
    emailit,
    mailchimp,
    mailerlite,
    mailersend,
    mailgun,
    mandrill,
    postmark,
    resend,
}
