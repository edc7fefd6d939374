//! Keys that servers on one store share: the one that fingerprints of credentials are made with,
//! and those that providers publish.

use async_trait::async_trait;
use jiff::Timestamp;

use super::StoreError;

/// The side of a store that keeps keys.
#[async_trait]
pub trait Keys: Send + Sync + 'static {
    /// The key that fingerprints of credentials are made with: `fresh` if the store has none yet.
    /// It never changes, so that fingerprints of one store can be compared.
    async fn fingerprint_key(&self, fresh: [u8; 32]) -> Result<[u8; 32], StoreError>;

    /// Keeps a key that a provider publishes, instead of what was kept of the same place. Of more
    /// than [`PUBLISHED_KEYS`](crate::limits::PUBLISHED_KEYS), those kept the longest ago go.
    async fn keep_published_key(&self, key: &PublishedKey) -> Result<(), StoreError>;

    /// All of them.
    async fn published_keys(&self) -> Result<Vec<PublishedKey>, StoreError>;
}

/// A certificate or a set of keys that a provider publishes and that has proved a request. What
/// is loaded is read and checked again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedKey {
    /// Where it was fetched from.
    pub url: String,
    /// Whether that place might be at a private address.
    pub allow_private: bool,
    /// What was served there.
    pub served: Vec<u8>,
    /// When it should be fetched again.
    pub fresh_until: Timestamp,
    /// When it was kept.
    pub kept_at: Timestamp,
}
