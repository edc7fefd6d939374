//! A handshake that tells the secret of the provider.

use oncebox::ingest::Refused;
use oncebox_verify::Secret;

use super::judge::Judge;
use super::verdict::{Doubt, Verdict};
use crate::pairing::{self, NotHeard};
use crate::source::Source;

impl Judge<'_> {
    /// Hears the secret, if an operator waits for it. Outside of that it is worth no more than a
    /// request without a signature.
    pub(super) async fn pair(&self, source: &Source, secret: &Secret) -> Verdict {
        match pairing::hear(self.inbox, self.live, source, secret, self.at).await {
            Ok(reply) => Verdict::Handshake(reply),
            Err(NotHeard::Rejected(rejection)) => self.doubt(Doubt::Rejected(rejection)),
            Err(NotHeard::Unavailable) => Verdict::Refused(Refused::StoreDown),
        }
    }
}
