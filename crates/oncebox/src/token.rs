//! Bearer tokens of the admin interface, kept only as hashes.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

/// The public half of a token: names it in lists and in the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TokenId(pub String);

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is kept of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Its public half.
    pub id: TokenId,
    /// What its owner calls it.
    pub name: String,
    /// SHA-256 of its secret half. The secret is 256 random bits, so a slow hash adds nothing.
    pub hash: [u8; 32],
    /// What it may do.
    pub scopes: Vec<Scope>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it stops working.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// Something a token may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Claim and finish deliveries of a route; `None` is any route.
    Pull(Option<String>),
    /// Look at everything but payloads.
    View,
    /// See payloads.
    Payloads,
    /// Pause, replay, release and discard.
    Operate,
    /// Everything, tokens included.
    Admin,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pull(None) => f.write_str("pull"),
            Self::Pull(Some(route)) => write!(f, "pull:{route}"),
            Self::View => f.write_str("view"),
            Self::Payloads => f.write_str("payloads"),
            Self::Operate => f.write_str("operate"),
            Self::Admin => f.write_str("admin"),
        }
    }
}

/// A word that names no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no scope; there are pull, pull:ROUTE, view, payloads, operate and admin")]
pub struct NoScope(String);

impl FromStr for Scope {
    type Err = NoScope;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "pull" => Ok(Self::Pull(None)),
            "view" => Ok(Self::View),
            "payloads" => Ok(Self::Payloads),
            "operate" => Ok(Self::Operate),
            "admin" => Ok(Self::Admin),
            _ => match word.strip_prefix("pull:").filter(|route| !route.is_empty()) {
                Some(route) => Ok(Self::Pull(Some(route.to_owned()))),
                None => Err(NoScope(word.to_owned())),
            },
        }
    }
}

impl Token {
    /// Whether it works at this time.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }

    /// Whether it may pull from a route.
    pub fn may_pull(&self, route: &str) -> bool {
        self.scopes.iter().any(|scope| match scope {
            Scope::Admin | Scope::Pull(None) => true,
            Scope::Pull(Some(only)) => only == route,
            _ => false,
        })
    }

    /// Whether it has a scope, of its own or by being an administrator's.
    pub fn has(&self, wanted: &Scope) -> bool {
        self.scopes.iter().any(|scope| scope == wanted || *scope == Scope::Admin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_read_as_they_are_written() {
        for word in ["pull", "pull:billing", "view", "payloads", "operate", "admin"] {
            assert_eq!(word.parse::<Scope>().unwrap().to_string(), word);
        }
        assert!("pull:".parse::<Scope>().is_err());
        assert!("root".parse::<Scope>().is_err());
    }
}
