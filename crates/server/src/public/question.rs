//! Questions of providers: who may ask how, and what is said.
//!
//! A question is answered and never stored. Most are signed like an event; those that are not are
//! the listed exceptions to "verify first", and say no more than the provider's entry lets them.

use std::borrow::Cow;
use std::sync::Arc;

use http::Method;
use oncebox_verify::{
    Provider, Reply, Request, Scheme, Special, Verified, handshake, signed_handshake,
    subscription_url,
};
use tracing::{info, warn};

use super::verdict::Verdict;
use crate::logs::clean;
use crate::source::Source;
use crate::state::Inbox;

/// The longest answer that may hold words of whoever asked.
const REPLY_BYTES_MAX: usize = 1024;

/// Events are posted; other methods are there only for questions.
pub(super) fn check_method(method: &Method, provider: Option<&Provider>) -> Result<(), Verdict> {
    if *method == Method::POST {
        return Ok(());
    }
    let Some(provider) = provider else { return Err(Verdict::Method(Cow::Borrowed("POST"))) };
    let asked = provider.handshakes.iter().flat_map(|handshake| handshake.methods.iter());
    let mut allowed = vec!["POST"];
    for known in asked {
        if known == method.as_str() {
            return Ok(());
        }
        if !allowed.contains(&known.as_ref()) {
            allowed.push(known);
        }
    }
    Err(Verdict::Method(Cow::Owned(allowed.join(", "))))
}

/// Whether a signed question of the provider may come by this method.
pub(super) fn may_be_signed(method: &Method, provider: &Provider) -> bool {
    *method == Method::POST
        || provider.handshakes.iter().any(|handshake| {
            handshake.signed && handshake.methods.iter().any(|known| known == method.as_str())
        })
}

/// What a question hears that nobody signed, if it is one.
pub(super) fn open(source: &Source, request: &Request<'_>) -> Option<Reply> {
    handshake(&source.provider, &source.keyring, request, false).filter(is_short)
}

/// What a question hears that was found to be signed, if it is one.
pub(super) fn signed(
    inbox: &Inbox,
    source: &Arc<Source>,
    request: &Request<'_>,
    verified: &Verified,
) -> Option<Reply> {
    let reply = signed_handshake(&source.provider, &source.keyring, request, verified.secret);
    let reply = reply.filter(is_short)?;
    match subscription_url(&source.provider, request) {
        Some(url) => subscribe(inbox, source, url),
        None if source.provider.schemes.contains(&Scheme::Special(Special::Sns)) => {
            let hint = "its URL is none that confirms a subscription in the region of the topic";
            warn!(source = &*source.name, hint, "a subscription cannot be confirmed");
        }
        None => {}
    }
    Some(reply)
}

/// Whoever asks gets no page out of us: the answer is short, and the content types are plain.
fn is_short(reply: &Reply) -> bool {
    reply.body.len() <= REPLY_BYTES_MAX
}

/// Confirms a subscription if the operator wants that, after the answer: a topic that is to be
/// confirmed must not wait for itself.
fn subscribe(inbox: &Inbox, source: &Arc<Source>, url: String) {
    if !source.confirms_subscriptions {
        let hint = "set `confirm_subscriptions = true` for this source and request the \
                    confirmation again, or confirm it at the provider";
        warn!(source = &*source.name, hint, "a subscription waits to be confirmed");
        return;
    }
    let Some(turn) = inbox.keys.visitor() else {
        warn!(source = &*source.name, "too many subscriptions at once; ask for this one again");
        return;
    };
    let (keys, source) = (inbox.keys.clone(), source.clone());
    tokio::spawn(async move {
        let visited = keys.visit(&source.asker, &url).await;
        let (source, url) = (&*source.name, &*clean(without_query(&url)));
        match visited {
            Ok(_) => info!(source, url, "a subscription was confirmed"),
            Err(failure) => {
                let reason = failure.code();
                warn!(source, url, reason, "a subscription was not confirmed: {failure}");
            }
        }
        drop(turn);
    });
}

/// The query holds what lets anybody confirm.
fn without_query(url: &str) -> &str {
    url.split('?').next().unwrap_or_default()
}
