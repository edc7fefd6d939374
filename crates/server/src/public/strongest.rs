//! Sources whose provider offers proofs of several strengths: the first request that is proved in
//! the strongest way makes that way required, in every process and after every restart.

use std::sync::Arc;

use oncebox::ingest::Refused;
use oncebox_verify::{Choice, Verified};
use tracing::{info, warn};

use super::judge::Judge;
use super::verdict::Verdict;
use crate::source::Source;

impl Judge<'_> {
    /// Requires the strongest proof from now on, if this request carries it and the source was not
    /// told which to accept. That is durable before the sender hears anything: otherwise a request
    /// whose stronger proof was removed could still pass after a restart.
    pub(super) async fn learn_strongest(
        &self,
        source: &Arc<Source>,
        verified: &Verified,
    ) -> Result<(), Verdict> {
        let strongest = source.provider.choice.map(Choice::strongest);
        if strongest.is_none()
            || verified.way != strongest
            || !source.keyring.learns(&source.provider)
        {
            return Ok(());
        }
        let name = &*source.name;
        let first = self.inbox.store.require_strongest(source.number).await.map_err(|error| {
            warn!(source = name, %error, "the stronger proof of a source could not be noted");
            Verdict::Refused(Refused::StoreDown)
        })?;
        self.live.sources.require_strongest(source);
        if first {
            let hint = "set `scheme` of the source to accept another way";
            let way = verified.way.unwrap_or_default();
            info!(source = name, way, hint, "a request was proved by {way}, which is required now");
        }
        Ok(())
    }
}
