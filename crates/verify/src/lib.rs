#![doc = include_str!("../README.md")]

pub mod catalogue;
pub mod custom;
mod digest;
mod ed25519;
mod explain;
mod fields;
mod handshake;
mod identify;
mod look;
mod mac;
mod malformed;
mod provider;
mod rejection;
mod request;
mod sample;
mod scan;
mod secret;
mod sign;
mod time;
mod twilio;
mod verify;

pub use digest::{content_digest, guard_digest};
pub use explain::{Explanation, Step, explain};
pub use fields::fields;
pub use handshake::handshake;
pub use identify::{Event, Trust, identify};
pub use malformed::Malformed;
pub use provider::{
    Algorithm, Answer, Ed25519, Encoding, Field, Guard, Handshake, Hmac, Identity, KeyEncoding,
    Layout, List, Part, Place, Provider, Sample, Scheme, Stamp, Text, TimeFormat, Token, TokenKind,
    TypeRule, Unit, Version,
};
pub use rejection::Rejection;
pub use request::{Draft, Reply, Request};
pub use sample::{SampleEvent, sample};
pub use secret::{BadSecret, Keyring, Secret};
pub use sign::{CannotSign, sign};
pub use verify::{Verified, verify};
