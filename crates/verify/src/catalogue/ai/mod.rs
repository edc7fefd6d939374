group! {
    anthropic,
    openai,
    replicate,
}
