//! Handlers in Rust: business code that shares one transaction with the store.
