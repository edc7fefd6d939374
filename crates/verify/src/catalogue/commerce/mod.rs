group! {
    shopify,
}
