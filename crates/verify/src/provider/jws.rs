//! JSON Web Signatures: tokens that vouch for a request, and signatures detached from a body.

use super::{List, Part, Text};

/// A JWS in compact form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jws {
    /// The header that carries it; none where the whole body is the token.
    pub header: Option<Text>,
    /// The word in front of it, such as `Bearer`, which may have any case; empty for none.
    pub word: Text,
    /// The algorithms the provider uses. The token's own word is only compared with them.
    pub algorithms: List<JwsAlgorithm>,
    /// Where the key comes from.
    pub keys: JwsKeys,
    /// What is signed.
    pub payload: JwsPayload,
}

/// An algorithm of RFC 7518 or RFC 8037.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JwsAlgorithm {
    /// HMAC with SHA-256.
    Hs256,
    /// HMAC with SHA-384.
    Hs384,
    /// HMAC with SHA-512.
    Hs512,
    /// RSA PKCS#1 v1.5 with SHA-256.
    Rs256,
    /// RSA PKCS#1 v1.5 with SHA-384.
    Rs384,
    /// RSA PKCS#1 v1.5 with SHA-512.
    Rs512,
    /// RSA-PSS with SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// ECDSA on P-521 with SHA-512.
    Es512,
    /// Ed25519.
    EdDsa,
}

impl JwsAlgorithm {
    /// Its name in a token.
    pub fn name(self) -> &'static str {
        match self {
            JwsAlgorithm::Hs256 => "HS256",
            JwsAlgorithm::Hs384 => "HS384",
            JwsAlgorithm::Hs512 => "HS512",
            JwsAlgorithm::Rs256 => "RS256",
            JwsAlgorithm::Rs384 => "RS384",
            JwsAlgorithm::Rs512 => "RS512",
            JwsAlgorithm::Ps512 => "PS512",
            JwsAlgorithm::Es256 => "ES256",
            JwsAlgorithm::Es384 => "ES384",
            JwsAlgorithm::Es512 => "ES512",
            JwsAlgorithm::EdDsa => "EdDSA",
        }
    }

    /// Whether it takes a shared secret rather than a key pair.
    pub fn is_hmac(self) -> bool {
        matches!(self, JwsAlgorithm::Hs256 | JwsAlgorithm::Hs384 | JwsAlgorithm::Hs512)
    }
}

/// Where the key of a JWS comes from. A key in the configuration always wins, and so does a
/// setting `jwks_url`: the operator pinned it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JwsKeys {
    /// The secrets of the source: the text of a shared secret, or a public key in PEM or as JWK.
    Secret,
    /// The key set at the first of these URLs, or at that one of them which the token names as
    /// its `jku`.
    Jwks(List<Text>),
    /// The key set at the URL that the source says under this key.
    JwksSetting(Text),
}

/// What a JWS signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JwsPayload {
    /// Claims, each of which must hold.
    Claims(List<Claim>),
    /// Parts of the request, which the token leaves out.
    Detached(List<Part>),
    /// TrueLayer's: method, path, the headers that `tl_headers` names, and the body.
    TrueLayer,
}

/// One thing that the claims of a token must say. Times that are there (`exp`, `nbf`) are always
/// checked, with a minute's leeway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// A claim has exactly this text.
    Is(Text, Text),
    /// A claim is what the source says under this key. Where it says nothing, no token is
    /// believed.
    IsSetting(Text, Text),
    /// One of these claims is what the source says under this key.
    AnyIsSetting(List<Text>, Text),
    /// A claim is what the source says under this key, if it says anything.
    MayBeSetting(Text, Text),
    /// A claim is the URL as the provider saw it.
    IsUrl(Text),
    /// A claim is true.
    IsTrue(Text),
    /// `exp` must be there.
    Expires,
    /// `iat` must be there and at most so many seconds off.
    IssuedWithin(u32),
    /// A claim is the hash of the raw body. It may be missing only for an empty body.
    BodyHash(Text, HashForm),
    /// A claim is the hash of the URL.
    UrlHash(Text, HashForm),
    /// `qsh` is Atlassian's hash of method, path and sorted query.
    QueryHash,
}

/// How a SHA-256 is written in a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashForm {
    /// Hex digits.
    Hex,
    /// Base64.
    Base64,
    /// Base64 for URLs; padding does not matter.
    Base64Url,
}
