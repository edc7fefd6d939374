group! {
    linear,
}
