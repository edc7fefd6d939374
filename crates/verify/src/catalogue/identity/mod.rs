group! {
    aiprise,
    auth0,
    clerk,
    fusionauth,
    okta,
    onfido,
    persona,
    sumsub,
    veriff,
    workos,
}
