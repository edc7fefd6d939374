//! Secrets that providers tell in a handshake: taken in a window that an operator opened, kept
//! sealed, and put in force in every process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use oncebox::ingest::Refused;
use oncebox::receipt::SourceNo;
use oncebox::sealed::SealingKey;
use oncebox::store::{Paired, PairedNo, PairedSecret, StoreError};
use oncebox_verify::{Keyring, Rejection, Reply, Secret};
use tokio::sync::{Mutex, Semaphore};
use tracing::{debug, error, info, warn};

use crate::config::{Config, Problem};
use crate::source::{Source, Sources};
use crate::state::{Inbox, Live, Means};

/// How often a process looks for secrets that came in by another.
pub const INTERVAL: Duration = Duration::from_secs(2);

/// How long a handshake may take. Providers wait about ten seconds.
const ANSWER_TIME: Duration = Duration::from_secs(4);

/// Requests to one source that ask the store at the same time. Anybody can send them, so nobody
/// waits for a turn: the provider comes again.
pub const AT_ONCE: usize = 4;

/// What a source needs whose provider tells the secret.
#[derive(Clone, Debug)]
pub struct Pairs {
    sealing: Arc<SealingKey>,
    /// What the configuration gives it.
    configured: Arc<Keyring>,
    /// Which secrets that were told are in force.
    told: Vec<PairedNo>,
    shared: Arc<Shared>,
}

/// What does not change with the secrets.
#[derive(Debug)]
struct Shared {
    asking: Semaphore,
    /// One at a time, or an older list might replace a newer one.
    refreshing: Mutex<()>,
    /// Whether it was said that what is kept cannot be used.
    complained: AtomicBool,
}

/// What a handshake tells.
#[derive(Debug)]
pub struct Told<'a> {
    /// The secret.
    pub secret: &'a Secret,
    /// When it came.
    pub at: Timestamp,
    /// Whether it came to the source itself. A source that only stands in for a name takes nothing.
    pub is_to_us: bool,
}

/// Why a handshake is not answered.
#[derive(Debug)]
pub enum NotHeard {
    /// It is not believed.
    Rejected(Rejection),
    /// The secret cannot be kept now.
    Trouble(Trouble),
}

impl From<Trouble> for NotHeard {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

/// Why secrets can neither be kept nor looked for now. None of it is the sender's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// As many ask the store as may.
    Busy,
    /// The store does not answer.
    StoreDown,
    /// The store does, and a secret cannot be sealed, opened or used.
    Failed,
}

impl Trouble {
    /// A stable word for logs and metrics. Never renamed.
    pub fn code(self) -> &'static str {
        match self {
            Self::Busy => "pairing_busy",
            Self::StoreDown => Refused::StoreDown.code(),
            Self::Failed => "pairing_failed",
        }
    }

    /// What an error comes to. The sender does not hear of it, so the operator does.
    fn of(source: &str, error: &StoreError) -> Self {
        match error {
            StoreError::Unfit { problem, hint } => {
                error!(source, hint, "{problem}");
                Self::Failed
            }
            StoreError::Data(_) => {
                error!(source, %error, "the secrets of the provider cannot be kept or read");
                Self::Failed
            }
            _ => {
                warn!(source, %error, "the store was asked for secrets of the provider in vain");
                Self::StoreDown
            }
        }
    }
}

/// What secrets of a configuration are sealed under, if it says so.
pub async fn sealing_key(config: &Config) -> Result<Option<Arc<SealingKey>>, StoreError> {
    if config.store.master_secret.is_none() {
        return Ok(None);
    }
    // It may be a file, and whatever that is on may hang.
    let config = config.clone();
    let read = tokio::task::spawn_blocking(move || config.sealing_key());
    let read = read.await.map_err(|error| StoreError::Unavailable(error.to_string()))?;
    let unfit = |problem: Problem| StoreError::Unfit {
        problem: problem.message().to_owned(),
        hint: problem.hint().to_owned(),
    };
    Ok(read.map_err(unfit)?.map(Arc::new))
}

/// A source with all of its secrets: those of the configuration, and those it was told.
pub async fn in_force(
    source: Source,
    sealing: Option<&Arc<SealingKey>>,
    means: &Means,
) -> Result<Source, StoreError> {
    let (store, now) = (&*means.store, means.clock.now());
    let configured = source.keyring.clone();
    let Some(sealing) = sealing.filter(|_| source.provider.pairing.is_some()) else {
        return source.with_keyring(configured, store, now).await;
    };
    let shared = Arc::new(Shared {
        asking: Semaphore::new(AT_ONCE),
        refreshing: Mutex::new(()),
        complained: AtomicBool::new(false),
    });
    let pairs = Pairs { sealing: sealing.clone(), configured, told: Vec::new(), shared };
    let kept = store.paired_secrets(source.number).await?;
    let keyring = pairs.keyring(&source, &kept)?;
    let mut source = source;
    source.pairs = Some(pairs.telling(&kept));
    source.with_keyring(Arc::new(keyring), store, now).await
}

/// Takes the secret of a handshake, if an operator waits for one, and puts it in force before the
/// provider hears of it.
pub async fn hear(inbox: &Inbox, source: &Source, told: &Told<'_>) -> Result<Reply, NotHeard> {
    match &source.pairs {
        Some(pairs) => pairs.in_turn(source, pairs.hear(inbox, source, told)).await,
        None => Err(NotHeard::Rejected(Rejection::PairingClosed)),
    }
}

/// The source with every secret that it was told until now, perhaps a moment ago and by way of
/// another process. Whoever finds a signature wrong has to look, before the sender is told so.
pub async fn learn(
    inbox: &Inbox,
    live: &Live,
    source: &Arc<Source>,
) -> Result<Arc<Source>, Trouble> {
    let Some(pairs) = &source.pairs else { return Ok(source.clone()) };
    let look = async {
        let looked = refresh(inbox, &live.sources, &source.name).await;
        looked.map_err(|error| Trouble::of(&source.name, &error))
    };
    pairs.in_turn(source, look).await?;
    Ok(live.sources.find(&source.name).unwrap_or_else(|| source.clone()))
}

/// Looks for secrets that came in by another process, or that an operator removed.
pub async fn refresh_all(inbox: &Inbox) {
    let live = inbox.live();
    for source in live.sources.iter() {
        let Some(pairs) = &source.pairs else { continue };
        match refresh(inbox, &live.sources, &source.name).await {
            Ok(()) => pairs.shared.complained.store(false, Ordering::Relaxed),
            Err(StoreError::Unfit { problem, hint }) => {
                if !pairs.shared.complained.swap(true, Ordering::Relaxed) {
                    error!(source = &*source.name, hint, "{problem}");
                }
            }
            Err(error) => debug!(source = &*source.name, %error, "paired secrets were not read"),
        }
    }
}

/// Puts in force what the store has now, if that has changed.
async fn refresh(inbox: &Inbox, sources: &Sources, name: &str) -> Result<(), StoreError> {
    let Some(shared) = sources.find(name).and_then(|source| Some(source.pairs.as_ref()?.shared()))
    else {
        return Ok(());
    };
    let turn = shared.refreshing.lock().await;
    let Some(source) = sources.find(name) else { return Ok(()) };
    let Some(pairs) = &source.pairs else { return Ok(()) };
    let kept = inbox.store.paired_secrets(source.number).await?;
    if !kept.iter().map(|secret| secret.no).eq(pairs.told.iter().copied()) {
        let keyring = Arc::new(pairs.keyring(&source, &kept)?);
        let now = inbox.clock.now();
        let mut next = (*source).clone();
        next.pairs = Some(pairs.telling(&kept));
        sources.replace(next.with_keyring(keyring, &*inbox.store, now).await?);
        info!(source = name, secrets = kept.len(), "other secrets of the provider are in force");
    }
    drop(turn);
    Ok(())
}

impl Pairs {
    /// Asks the store, if there is a turn for it, and not for long.
    async fn in_turn<T, E: From<Trouble>>(
        &self,
        source: &Source,
        asked: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let turn = self.shared.asking.try_acquire().map_err(|_| Trouble::Busy)?;
        let answer = tokio::time::timeout(ANSWER_TIME, asked).await;
        drop(turn);
        answer.unwrap_or_else(|_| {
            let error = StoreError::Unavailable(format!("no answer within {ANSWER_TIME:?}"));
            Err(Trouble::of(&source.name, &error).into())
        })
    }

    async fn hear(
        &self,
        inbox: &Inbox,
        source: &Source,
        told: &Told<'_>,
    ) -> Result<Reply, NotHeard> {
        let Told { secret, at, is_to_us } = *told;
        let rejected = |rejection| Err(NotHeard::Rejected(rejection));
        let trouble = |error: StoreError| Trouble::of(&source.name, &error);
        // What would not make a key is not kept: the source could not start again.
        if self.configured.with_more(&source.provider, [secret.clone()]).is_err() {
            return rejected(Rejection::BadToken { why: "no key can be made of the secret" });
        }
        let window = inbox.store.pairing(source.number).await.map_err(trouble)?;
        if !is_to_us || !window.is_some_and(|window| window.is_open) {
            // Strangers cost no write. Whoever knows the secret repeats a handshake, perhaps one
            // that another process has answered.
            let live = inbox.live();
            refresh(inbox, &live.sources, &source.name).await.map_err(trouble)?;
            let ours = live.sources.find(&source.name);
            let knows = |source: Arc<Source>| {
                source.keyring.secrets().iter().any(|known| known.is_same(secret))
            };
            if !is_to_us || !ours.is_some_and(knows) {
                return rejected(Rejection::PairingClosed);
            }
        }
        let sealed = self.sealing.seal(source.number, secret.expose()).map_err(|error| {
            error!(source = &*source.name, %error, "the secret of the provider is not sealed");
            Trouble::Failed
        })?;
        match inbox.store.pair(source.number, &sealed, at).await.map_err(trouble)? {
            Paired::New(no) => {
                let (number, fingerprint) = (no.0, &sealed.fingerprint);
                info!(source = &*source.name, number, fingerprint, "paired with the provider");
            }
            Paired::Already(_) => {}
            Paired::Closed => return rejected(Rejection::PairingClosed),
            Paired::Full => return rejected(Rejection::PairingFull),
        }
        // What is in force by now, which a reload may have replaced. The secret is kept: should
        // this fail, it comes into force with the first event that needs it.
        if let Err(error) = refresh(inbox, &inbox.live().sources, &source.name).await {
            error!(source = &*source.name, %error, "the secret is kept, and not in force yet");
        }
        Ok(oncebox_verify::paired(&source.provider, secret))
    }

    fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// The same, with these secrets in force.
    fn telling(&self, kept: &[PairedSecret]) -> Self {
        Self { told: kept.iter().map(|secret| secret.no).collect(), ..self.clone() }
    }

    /// The keys of a source that was told these secrets.
    fn keyring(&self, source: &Source, kept: &[PairedSecret]) -> Result<Keyring, StoreError> {
        let (name, provider) = (&source.name, &source.provider);
        let told = opened(&self.sealing, source.number, name, kept)?;
        self.configured.with_more(provider, told).map_err(|bad| StoreError::Unfit {
            problem: format!(
                "source `{name}`: a secret that its provider told is of no use: {bad}"
            ),
            hint: format!("remove it: `oncebox sources secrets {name}`"),
        })
    }
}

/// Opens what the provider of a source told, the newest first: it is the one that is used most.
pub fn opened(
    sealing: &SealingKey,
    number: SourceNo,
    name: &str,
    kept: &[PairedSecret],
) -> Result<Vec<Secret>, StoreError> {
    let open = |PairedSecret { no, sealed, .. }: &PairedSecret| {
        sealing.open(number, sealed).map_err(|why| unusable(name, *no, &why))
    };
    kept.iter().rev().map(open).collect()
}

/// What to say of a secret that cannot be opened.
pub fn unusable(source: &str, no: PairedNo, why: &dyn std::error::Error) -> StoreError {
    let number = no.0;
    StoreError::Unfit {
        problem: format!("source `{source}`: secret {number} of its provider: {why}"),
        hint: format!(
            "set `[store] master_secret` to the one it was paired under, or remove the secret with \
             `oncebox sources forget {source} {number}` and pair again"
        ),
    }
}
