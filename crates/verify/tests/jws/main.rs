//! Tokens: what a forger tries, what a provider may send, and where keys come from.

mod bed;
mod claims;
mod key_sets;
mod keys;
mod random;
mod samples;
mod signer;
mod tokens;
