group! {
    dodo_payments,
    polar,
    stripe,
    whop,
}
