//! Whether a sender is believed.

use std::net::IpAddr;
use std::time::Instant;

use jiff::Timestamp;
use oncebox_verify::{Keyring, Provider, Rejection, Request, Scheme, Verified};

use super::verdict::{Doubt, Verdict};
use crate::keys::{Asker, KeyFailure};
use crate::state::{Inbox, Live};

/// What proves a request, and who asks for the keys of its provider.
pub(super) type Proof<'a> = (&'a Provider, &'a Keyring, &'a Asker);

/// Judges one request.
pub(super) struct Judge<'a> {
    pub(super) inbox: &'a Inbox,
    pub(super) live: &'a Live,
    pub(super) sender: IpAddr,
    pub(super) at: Timestamp,
    /// Whether there is a source of the name, or another stands in for it.
    pub(super) is_known: bool,
}

impl Judge<'_> {
    /// Checks that the request is its provider's, with a key that is fetched if need be.
    pub(super) async fn verify(
        &self,
        (provider, keyring, asker): Proof<'_>,
        request: &Request<'_>,
    ) -> Result<Verified, Verdict> {
        let reject = |rejection| self.reject(rejection);
        if !provider.schemes.iter().any(Scheme::fetches_keys) {
            let check = || oncebox_verify::verify(provider, keyring, request, self.at);
            return self.check(keyring, request, check).await.map_err(reject);
        }
        let wanted = || oncebox_verify::wanted_key(provider, keyring, request);
        let wanted = self.inbox.beside(request.body.len(), wanted).await.map_err(reject)?;
        let fetched = match &wanted {
            Some(wanted) => {
                let key = self.inbox.keys.get(asker, wanted, self.sender).await;
                Some(key.map_err(|failure| self.no_key(failure))?)
            }
            None => None,
        };
        let key = fetched.as_deref();
        let check = || oncebox_verify::verify_with(provider, keyring, key, request, self.at);
        let verified = self.check(keyring, request, check).await.map_err(reject)?;
        if let (Some(wanted), Some(fetched)) = (&wanted, &fetched) {
            self.inbox.keys.proved(asker, wanted, fetched);
        }
        Ok(verified)
    }

    /// Checks a request with each secret, beside the runtime where that takes long.
    pub(super) async fn check<T>(
        &self,
        keyring: &Keyring,
        request: &Request<'_>,
        check: impl FnOnce() -> T,
    ) -> T {
        // A key that is fetched is one, too.
        let bytes = request.body.len().saturating_mul(keyring.len().max(1));
        self.inbox.beside(bytes, check).await
    }

    /// What stands in for a source opens nothing, whoever knocks.
    pub(super) fn check_known(&self) -> Result<(), Verdict> {
        if self.is_known { Ok(()) } else { Err(self.doubt(Doubt::NoSource)) }
    }

    fn reject(&self, rejection: Rejection) -> Verdict {
        let clock = &*self.inbox.clock;
        if rejection.is_about_time() && self.inbox.clock_watch.is_suspect_now(clock) {
            return Verdict::ClockSuspect;
        }
        self.doubt(Doubt::Rejected(rejection))
    }

    /// What the sender hears who has no valid proof.
    pub(super) fn doubt(&self, doubt: Doubt) -> Verdict {
        doubted(self.inbox, self.live, self.sender, doubt)
    }

    /// Whoever failed too often makes nobody ask the store for secrets.
    pub(super) fn check_failures(&self, without: Rejection) -> Result<(), Verdict> {
        let per_minute = self.live.failed_signatures_per_minute;
        match self.inbox.failures.over(self.sender, per_minute, Instant::now()) {
            None => Ok(()),
            Some(wait) => {
                let doubt = Doubt::Rejected(without);
                Err(Verdict::TooManyFailures(doubt, wait.as_secs() + 1))
            }
        }
    }

    /// Without a key nobody can tell whether the sender is right. One that names a key which the
    /// provider did not have a moment ago may be ahead of us, and may be a forger, who does not
    /// go on for long.
    fn no_key(&self, failure: KeyFailure) -> Verdict {
        if failure.is_unknown_key()
            && let over @ Verdict::TooManyFailures(..) =
                self.doubt(Doubt::Rejected(Rejection::UnknownKey))
        {
            return over;
        }
        Verdict::NoKey(failure)
    }
}

/// What a sender without a valid proof hears. Only failures count against an address, and only
/// failures are refused because of it.
pub(super) fn doubted(inbox: &Inbox, live: &Live, sender: IpAddr, doubt: Doubt) -> Verdict {
    match inbox.failures.note(sender, live.failed_signatures_per_minute, Instant::now()) {
        Ok(()) => Verdict::NotBelieved(doubt),
        Err(wait) => Verdict::TooManyFailures(doubt, wait.as_secs() + 1),
    }
}
