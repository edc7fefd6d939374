//! Work on many bytes, beside the runtime.

use oncebox::limits;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use crate::state::Inbox;

impl Inbox {
    /// Hashes or looks at so many bytes. Where that takes long it is done beside the runtime, and
    /// few such at the same time: a sender of very large bodies keeps no other sender waiting.
    pub(super) async fn beside<T>(&self, bytes: usize, work: impl FnOnce() -> T) -> T {
        if bytes <= limits::VERIFY_INLINE_BYTES {
            return work();
        }
        let turn = self.heavy.acquire().await;
        let done = match Handle::current().runtime_flavor() {
            RuntimeFlavor::MultiThread => block_in_place(work),
            // There is no thread that could take over.
            _ => work(),
        };
        drop(turn);
        done
    }
}
