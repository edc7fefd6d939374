//! Who asks, and what they may.

use axum::http::{HeaderMap, header};
use oncebox::token::Token;
use tracing::info;

use super::problem::Problem;
use super::token::Presented;
use super::{Api, Name, segment};

impl Api {
    /// The token a request came with, if it works now. Looked up each time, so that a revoked one
    /// is refused at once, by every node.
    pub(super) async fn authenticate(&self, headers: &HeaderMap) -> Result<Token, Problem> {
        let presented = bearer(headers).and_then(Presented::parse);
        let presented = presented.ok_or_else(Problem::unauthorized)?;
        let kept = self.in_time(self.inbox.store.token(&presented.id)).await?;
        let is_it = presented.is(kept.as_ref());
        let now = self.inbox.clock.now();
        match kept.filter(|token| is_it && token.is_live(now)) {
            Some(token) => Ok(token),
            None => {
                info!(token = %presented.id, "a token was refused");
                Err(Problem::unauthorized())
            }
        }
    }

    /// The token a request came with, and the name of the route it is about, if the token may pull
    /// from that. Whether there is such a route only those learn who may.
    pub(super) async fn may_pull(
        &self,
        route: Name,
        headers: &HeaderMap,
    ) -> Result<(Token, String), Problem> {
        let token = self.authenticate(headers).await?;
        let route = segment(route)?;
        if !token.may_pull(&route) {
            return Err(Problem::forbidden(&format!("pull:{route}")));
        }
        Ok((token, route))
    }
}

/// What follows `Bearer` in the one `Authorization` header.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_bearer_is_believed() {
        let of = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, value.parse().unwrap());
            }
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(of(&["Bearer abc"]).as_deref(), Some("abc"));
        assert_eq!(of(&["bearer  abc "]).as_deref(), Some("abc"));
        for wrong in [&[] as &[&str], &["abc"], &["Basic abc"], &["Bearer a", "Bearer b"]] {
            assert_eq!(of(wrong), None, "{wrong:?}");
        }
    }
}
