group! {
    aiprise,
    auth0,
    clerk,
    okta,
    onfido,
    persona,
    sumsub,
    veriff,
    workos,
}
