//! Bearer tokens as they are written: `oncebox_ID_SECRET`.

use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use oncebox::token::{Scope, Token, TokenId};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// What every token begins with, so that scanners for leaked credentials find it.
const PREFIX: &str = "oncebox_";

/// Random bytes of the public half; written as twice as many hexadecimal digits.
const ID_BYTES: usize = 6;

/// Random bytes of the secret half.
const SECRET_BYTES: usize = 32;

/// What somebody presents as a token. Never printed.
pub(super) struct Presented<'a> {
    pub(super) id: TokenId,
    secret: &'a str,
}

impl<'a> Presented<'a> {
    /// Reads a token; none if it cannot be one of ours.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let is_id = id.len() == 2 * ID_BYTES && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_secret = secret.len() == SECRET_BYTES.div_ceil(3) * 4 - 1;
        (is_id && is_secret).then(|| Self { id: TokenId(id.to_owned()), secret })
    }

    /// Whether it is the token that is kept; takes as long whether it is or not, and whether one
    /// is kept or not.
    pub(super) fn is(&self, kept: Option<&Token>) -> bool {
        let presented: [u8; 32] = Sha256::digest(self.secret).into();
        let hash = kept.map_or([0; 32], |token| token.hash);
        bool::from(presented.ct_eq(&hash)) && kept.is_some()
    }
}

/// The system gave no random bytes.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no random numbers")]
pub struct NoRandomness;

/// A new token: what is kept of it, and what its owner is told once.
pub fn mint(
    name: &str,
    scopes: Vec<Scope>,
    created_at: Timestamp,
    expires_at: Option<Timestamp>,
) -> Result<(Token, String), NoRandomness> {
    let (mut id, mut secret) = ([0; ID_BYTES], [0; SECRET_BYTES]);
    rand::fill(&mut id).map_err(|_| NoRandomness)?;
    rand::fill(&mut secret).map_err(|_| NoRandomness)?;
    let (id, secret) = (hex::encode(id), URL_SAFE_NO_PAD.encode(secret));
    let text = format!("{PREFIX}{id}_{secret}");
    let token = Token {
        id: TokenId(id),
        name: name.to_owned(),
        hash: Sha256::digest(&secret).into(),
        scopes,
        created_at,
        expires_at,
        revoked_at: None,
    };
    Ok((token, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_recognised_and_nothing_like_it() {
        let (token, text) = mint("ci", vec![Scope::View], Timestamp::UNIX_EPOCH, None).unwrap();
        let presented = Presented::parse(&text).unwrap();
        assert_eq!(presented.id, token.id);
        assert!(presented.is(Some(&token)));
        assert!(!presented.is(None));
        let last = if text.ends_with('A') { 'B' } else { 'A' };
        let other = format!("{}{last}", &text[..text.len() - 1]);
        assert!(!Presented::parse(&other).unwrap().is(Some(&token)));
        for garbage in ["", "oncebox_", "oncebox__", &text[1..], &text[..40], &format!("{text}A")] {
            assert!(Presented::parse(garbage).is_none(), "{garbage}");
        }
    }
}
