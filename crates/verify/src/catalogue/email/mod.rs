group! {
    aws_ses,
    emailit,
    mailchimp,
    mailerlite,
    mailersend,
    mailgun,
    mandrill,
    postmark,
    resend,
    sendgrid,
}
