group! {
    brex,
    lithic,
}
