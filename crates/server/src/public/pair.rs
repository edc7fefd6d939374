//! Sources whose provider tells the secret: the handshake that does, and events that come by one
//! process while the handshake went to another.

use std::sync::Arc;

use oncebox_verify::{Rejection, Request, Secret, Verified};

use super::judge::Judge;
use super::verdict::{Doubt, Verdict};
use crate::pairing::{self, NotHeard, Told};
use crate::source::Source;

impl Judge<'_> {
    /// Hears the secret, if an operator waits for it. Outside of that it is worth no more than a
    /// request without a signature, and whoever sent too many of those does not reach the store.
    pub(super) async fn pair(&self, source: &Source, secret: &Secret) -> Verdict {
        if let Err(verdict) = self.check_failures(Rejection::PairingClosed) {
            return verdict;
        }
        let told = Told { secret, at: self.at, is_to_us: self.is_known };
        match pairing::hear(self.inbox, source, &told).await {
            Ok(reply) => Verdict::Handshake(reply),
            Err(NotHeard::Rejected(rejection)) => self.doubt(Doubt::Rejected(rejection)),
            Err(NotHeard::Trouble(trouble)) => Verdict::Pairing(trouble),
        }
    }

    /// Checks that the request is from the provider of a source, and says which secrets the source
    /// has by now: before one that tells them is found to lack the right one, the store is asked.
    pub(super) async fn verify_of(
        &self,
        source: &Arc<Source>,
        request: &Request<'_>,
    ) -> Result<(Arc<Source>, Verified), Verdict> {
        let mut source = source.clone();
        if source.pairs.is_some() {
            let check =
                || oncebox_verify::verify(&source.provider, &source.keyring, request, self.at);
            match self.check(&source.keyring, request, check).await {
                Ok(verified) => return Ok((source, verified)),
                Err(rejection) if may_lack_secret(&rejection) => {
                    self.check_failures(rejection)?;
                    let learnt = pairing::learn(self.inbox, self.live, &source).await;
                    source = learnt.map_err(Verdict::Pairing)?;
                }
                Err(_) => {}
            }
        }
        let proof = (&source.provider, &*source.keyring, &*source.asker);
        let verified = self.verify(proof, request).await?;
        Ok((source, verified))
    }
}

/// Whether another secret might have made the request a good one.
fn may_lack_secret(rejection: &Rejection) -> bool {
    matches!(rejection, Rejection::NotPaired | Rejection::SignatureMismatch { .. })
}
