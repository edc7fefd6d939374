//! Asks every host, again and again, whether it is the primary.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_postgres::Client;
use tracing::{debug, error, info};
use uuid::Uuid;

use super::acknowledged::Acknowledged;
use super::connect::{Connector, Driver, query};
use super::primary::{Place, Standing};
use super::sessions::Sessions;
use crate::limits;
use crate::store::StoreError;

/// What a host said when it was asked.
pub(super) struct Asked {
    /// As the URL names it.
    pub(super) host: String,
    /// Its answer, or why there is none.
    pub(super) standing: Result<Standing, String>,
}

/// Asks every host once, all at the same time, each with a deadline.
pub(super) async fn ask_all(connector: &Connector) -> Vec<Asked> {
    let mut asking = JoinSet::new();
    for n in 0..connector.hosts().all().len() {
        let connector = connector.clone();
        asking.spawn(async move { (n, Probe::new(connector, n).ask().await) });
    }
    let mut answers = asking.join_all().await;
    answers.sort_unstable_by_key(|(n, _)| *n);
    let name = |n: usize| connector.hosts().all()[n].name.clone();
    answers.into_iter().map(|(n, standing)| Asked { host: name(n), standing }).collect()
}

/// Asks every host before the first connection is taken, and takes the highest timeline. Silence
/// is no vote.
pub(super) async fn look_around(connector: &Connector) -> Result<(), StoreError> {
    let primary = connector.primary();
    if !primary.compares() {
        return Ok(());
    }
    let mut best: Option<(usize, Place)> = None;
    for (n, asked) in ask_all(connector).await.into_iter().enumerate() {
        let place = match asked.standing {
            Ok(Standing::Primary(place)) => place,
            Ok(Standing::Untold) => {
                primary.compare_no_more();
                return Ok(());
            }
            Ok(Standing::Standby(_)) => continue,
            Err(reason) => {
                debug!(host = asked.host, reason, "a PostgreSQL host did not answer");
                continue;
            }
        };
        match best {
            Some((_, other)) if other.system != place.system => {
                return Err(StoreError::unfit(
                    format!(
                        "hosts of the store URL belong to different clusters: {other}, {place}"
                    ),
                    "Name the hosts of one cluster; `oncebox store hosts` shows them.",
                ));
            }
            Some((_, other)) if other.timeline >= place.timeline => {}
            _ => best = Some((n, place)),
        }
    }
    if let Some((n, place)) = best {
        // Nothing is known before this, so it cannot be refused.
        let _ = primary.learn(place);
        connector.hosts().note_good(n);
    }
    Ok(())
}

/// Asks each host every two seconds until the tasks are dropped.
pub(super) fn keep_watch(connector: &Connector, tasks: &mut JoinSet<()>) {
    if !connector.primary().compares() {
        return;
    }
    for n in 0..connector.hosts().all().len() {
        tasks.spawn(watch(Probe::new(connector.clone(), n)));
    }
}

async fn watch(mut probe: Probe) {
    loop {
        match probe.ask().await {
            Ok(Standing::Primary(place)) => probe.judge(place).await,
            Ok(_) => {}
            Err(reason) => debug!(host = probe.name(), reason, "a host gave no answer"),
        }
        sleep(limits::POSTGRES_ASK).await;
    }
}

/// A connection to one host that is only asked where it leads.
struct Probe {
    connector: Connector,
    host: usize,
    open: Option<(Client, Driver)>,
    /// A place that was refused, and the last adoption of it that was there then.
    refused: Option<(Place, i64)>,
}

impl Probe {
    fn new(connector: Connector, host: usize) -> Self {
        Self { connector, host, open: None, refused: None }
    }

    fn name(&self) -> &str {
        &self.connector.hosts().all()[self.host].name
    }

    /// Asks within a deadline. A connection that fails or stays silent is closed.
    async fn ask(&mut self) -> Result<Standing, String> {
        let open = self.open.take();
        let (connector, host) = (self.connector.clone(), self.host);
        let asking = async {
            let (client, driver) = match open {
                Some(open) => open,
                None => connector.connect_to(&connector.hosts().all()[host].config).await?,
            };
            let standing = Standing::of(&client).await?;
            Ok::<_, String>((standing, (client, driver)))
        };
        let answer = timeout(limits::POSTGRES_CONNECT, asking).await;
        let (standing, open) = answer.map_err(|_| silent())??;
        self.open = Some(open);
        Ok(standing)
    }

    /// Compares the place with the known primary; one that is refused may have been adopted.
    async fn judge(&mut self, place: Place) {
        let primary = self.connector.primary().clone();
        if primary.learn(place).is_ok() {
            self.refused = None;
            self.connector.hosts().note_good(self.host);
            return;
        }
        let Some(adoption) = self.last_adoption(place).await else { return };
        match self.refused {
            // Only what was adopted after it was refused: an older adoption says nothing about
            // the primary that took its place.
            Some((refused, before)) if refused == place && adoption > before => {
                primary.adopt(place);
                self.refused = None;
                self.connector.hosts().note_good(self.host);
            }
            Some((refused, _)) if refused == place => {}
            _ => self.refused = Some((place, adoption)),
        }
    }

    async fn last_adoption(&mut self, place: Place) -> Option<i64> {
        let (client, _) = self.open.as_ref()?;
        let sql = include_str!("sql/find_adoption.sql");
        let subject = place.to_string();
        let asked = timeout(limits::POSTGRES_CONNECT, client.query_one(sql, &[&subject])).await;
        match asked {
            Ok(Ok(row)) => Some(row.get(0)),
            Ok(Err(error)) => {
                debug!(%error, "cannot look for an adoption");
                None
            }
            Err(_) => {
                self.open = None;
                None
            }
        }
    }
}

fn silent() -> String {
    format!("no answer within {:?}", limits::POSTGRES_CONNECT)
}

/// After each change of primary, looks for the receipts acknowledged last.
pub(super) async fn look_for_acknowledged(
    connector: Connector,
    sessions: Sessions,
    acknowledged: Arc<Acknowledged>,
) {
    let primary = connector.primary().clone();
    let mut changes = primary.changes();
    while changes.changed().await.is_ok() {
        let recent = acknowledged.recent();
        let missing = loop {
            match find_missing(&sessions, &recent).await {
                Ok(missing) => break missing,
                Err(error) => debug!(%error, "cannot look for acknowledged receipts yet"),
            }
            sleep(limits::POSTGRES_ASK).await;
        };
        match missing.first() {
            None => info!(receipts = recent.len(), "the new primary has what was acknowledged"),
            Some(first) => {
                let count = u64::try_from(missing.len()).unwrap_or(u64::MAX);
                primary.missing.fetch_add(count, Ordering::Relaxed);
                error!(
                    missing = count,
                    of = recent.len(),
                    %first,
                    "acknowledged receipts are missing on the new primary: they were lost with \
                     the old one, whose disk may still have them"
                );
            }
        }
    }
}

async fn find_missing(sessions: &Sessions, receipts: &[Uuid]) -> Result<Vec<Uuid>, StoreError> {
    let sql = include_str!("sql/find_missing.sql");
    let rows = sessions.read(async |client| query(client, sql, &[&receipts]).await).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}
