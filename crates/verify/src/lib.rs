#![doc = include_str!("../README.md")]

mod asymmetric;
mod batch;
pub mod catalogue;
mod certificate;
pub mod custom;
mod digest;
mod ed25519;
mod envelope;
mod explain;
mod fetched;
mod fields;
mod found;
mod generate;
mod handshake;
mod head;
mod identify;
mod jwk;
mod jws;
mod look;
mod mac;
mod made_up;
mod malformed;
mod multipart;
mod payload;
mod pem;
mod provider;
mod rejection;
mod request;
mod sample;
mod scan;
mod secret;
mod sign;
mod special;
mod time;
mod verify;
mod xml;

pub use batch::ITEMS_MAX;
pub use certificate::Roots;
pub use digest::{content_digest, guard_digest};
pub use envelope::{alone, is_bare_list};
pub use explain::{Explanation, Step, explain};
pub use fetched::{BadKey, FETCHED_BYTES_MAX, FetchedKey, WantedForm, WantedKey, wanted_key};
pub use fields::fields;
pub use found::{Defect, Found};
pub use generate::{KeyPair, generate_pair};
pub use handshake::{QUESTION_BYTES_MAX, handshake, paired, pairing_secret, signed_handshake};
pub use head::{Head, head};
pub use identify::{Event, Trust, VALUE_BYTES_MAX, events, identify};
pub use made_up::{MadeUp, made_up, made_up_secret};
pub use malformed::Malformed;
pub use provider::{
    Algorithm, Answer, Batch, CertificateAt, Choice, Claim, Encoding, Field, Guard, Handshake,
    HashForm, Identity, Jws, JwsAlgorithm, JwsKeys, JwsPayload, KeyForm, List, Odd, OddAct,
    OddRule, OddWords, Pairing, Part, Payload, Piece, Place, Provider, Said, Sample, Scheme,
    Setting, Signature, Stamp, Text, TimeFormat, Token, TokenKind, TokenPlace, TypeRule, Unit,
    Unsaid, ValueKind, Version, Wants, Way,
};
pub use rejection::Rejection;
pub use request::{Draft, Reply, Request};
pub use sample::{SampleEvent, sample};
pub use secret::{BadSecret, Keyring, Secret, Settings};
pub use sign::{
    CannotResign, CannotSign, can_resign, query_names, resign, shows_secret, sign, sign_with,
};
pub use special::Special;
pub use special::sns::subscription_url;
pub use verify::{Verified, verify, verify_with};
