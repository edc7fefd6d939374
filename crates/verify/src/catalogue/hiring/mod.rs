group! {
    ashby,
    greenhouse,
    smile_api,
}
