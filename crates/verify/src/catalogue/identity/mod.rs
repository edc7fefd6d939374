group! {
    clerk,
}
