group! {
    linear,
    quickbooks,
}
