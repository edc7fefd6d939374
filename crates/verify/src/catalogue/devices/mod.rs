group! {
}
