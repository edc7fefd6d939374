//! Connections whose commits are synced, and what their errors mean.

use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::time::Duration;

use deadpool_postgres::{
    GenericClient, Hook, HookError, Manager, ManagerConfig, Object, Pool, PoolError,
    RecyclingMethod, Runtime, Timeouts,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::timeout;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::error::{DbError, Severity, SqlState};
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error, Notification, Row};
use tokio_postgres_rustls::MakeRustlsConnect;
use tracing::{debug, warn};

use super::hosts::{Hosts, driver_error};
use super::names::milliseconds;
use super::primary::{Primary, Standing};
use super::{PostgresOptions, schema, tls};
use crate::limits;
use crate::store::{Purpose, StoreError};

/// The oldest server that knows what the statements use.
const OLDEST_SERVER: i32 = 140_000;

/// Has a commit synced before it is answered.
const SYNCED: &str = "set_config('synchronous_commit', CASE current_setting('synchronous_commit')
    WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false)";

/// Has the server watch its end of a connection.
const WATCH: &str = "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5;
    SET tcp_keepalives_count = 3";

/// Settings of every session. A commit whose wait for its standby is cut short is told by a
/// warning, which a role may have silenced. Whoever waits for a lock has to see what its last
/// holder did; a database or a role may have another default. Compiling a statement takes longer
/// than any of ours runs; the costs guessed for tables in many parts would have it compiled.
const EVERYWHERE: &str = "SET client_min_messages = warning;
    SET default_transaction_isolation = 'read committed'; SET jit = off;";

/// Lets go what outlives a transaction.
const LET_GO: &str = "CLOSE ALL; UNLISTEN *; SELECT pg_advisory_unlock_all(); DISCARD TEMP;
    DISCARD SEQUENCES";

/// What the connections of a pool are for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Recording,
    Working,
    Daily,
    General,
}

/// Opens connections and watches what the server says on them beside its answers.
#[derive(Clone)]
pub(super) struct Connector {
    config: Config,
    hosts: Arc<Hosts>,
    primary: Arc<Primary>,
    tls: MakeRustlsConnect,
    /// How long a session waits for the locks of others.
    lock_wait: Duration,
    /// How long a session may hold locks and do nothing.
    idle: Duration,
    sync_waits_cut: Arc<AtomicU64>,
}

impl Connector {
    pub(super) fn new(url: &str) -> Result<Self, StoreError> {
        let (url, tls) = tls::take_from_url(url)?;
        let mut config = Config::from_str(&url).map_err(|error| {
            StoreError::unfit(
                format!("the store URL cannot be read: {}", with_causes(&error)),
                "Write postgres://user:password@host1,host2/db?target_session_attrs=read-write.",
            )
        })?;
        config.application_name(schema::application_name(config.get_application_name()));
        config.ssl_mode(tls.mode);
        config.connect_timeout(limits::POSTGRES_CONNECT);
        // A peer that vanished without a word must not hold a batch for longer than this.
        config.tcp_user_timeout(Duration::from_secs(10));
        config.keepalives_idle(Duration::from_secs(10));
        let tls = MakeRustlsConnect::new(tls.client);
        let hosts = Hosts::of(&config);
        Ok(Self {
            config,
            primary: Arc::new(Primary::new(hosts.all().len() > 1)),
            hosts: Arc::new(hosts),
            tls,
            lock_wait: limits::POSTGRES_LOCK_WAIT,
            idle: limits::POSTGRES_IDLE,
            sync_waits_cut: Arc::default(),
        })
    }

    pub(super) fn with_limits(self, options: &PostgresOptions) -> Self {
        Self { lock_wait: options.lock_wait, idle: options.idle, ..self }
    }

    /// To serve, a host that can be written to is looked for unless the URL says otherwise.
    pub(super) fn for_purpose(mut self, purpose: Purpose) -> Self {
        let any = self.config.get_target_session_attrs() == TargetSessionAttrs::Any;
        if purpose == Purpose::Serve && any {
            self.config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        self
    }

    /// The same for one of the hosts, whatever the others say.
    pub(super) fn only(self, host: &str) -> Self {
        let hosts = Arc::new(Hosts::only(&self.config, host));
        Self { hosts, primary: Arc::new(Primary::new(false)), ..self }
    }

    pub(super) fn hosts(&self) -> &Hosts {
        &self.hosts
    }

    pub(super) fn primary(&self) -> &Arc<Primary> {
        &self.primary
    }

    pub(super) fn tls(&self) -> MakeRustlsConnect {
        self.tls.clone()
    }

    /// Connects once, to say in full why the server cannot be used.
    pub(super) async fn check(&self) -> Result<(), StoreError> {
        let (client, _driver) = self.open(|_| {}).await.map_err(StoreError::Unavailable)?;
        self.prepare_in_time(&client, Use::General).await
    }

    /// Connects to the first host that can be used, the last good one first. A host that says
    /// nothing costs one time-out.
    async fn open(
        &self,
        heard: impl Fn(Notification) + Clone + Send + 'static,
    ) -> Result<(Client, Driver), String> {
        let mut reasons = Vec::new();
        for (n, host) in self.hosts.in_order() {
            let mut config = host.config.clone();
            config.target_session_attrs(self.config.get_target_session_attrs());
            let opening = self.open_at(&config, heard.clone());
            let reason = match timeout(limits::POSTGRES_CONNECT, opening).await {
                Ok(Ok(open)) => {
                    self.hosts.note_good(n);
                    return Ok(open);
                }
                Ok(Err(reason)) => reason,
                Err(_) => format!("no answer within {:?}", limits::POSTGRES_CONNECT),
            };
            reasons.push(format!("{}: {reason}", host.name));
        }
        Err(reasons.join("; "))
    }

    /// Connects to one host, unless it is an old primary.
    async fn open_at(
        &self,
        config: &Config,
        heard: impl Fn(Notification) + Send + 'static,
    ) -> Result<(Client, Driver), String> {
        let (client, driver) = self.connect_and_hear(config, heard).await?;
        if self.primary.compares() {
            self.primary.admit(Standing::of(&client).await?, driver.abort_handle())?;
        }
        Ok((client, driver))
    }

    /// Connects to one host, whatever it is.
    pub(super) async fn connect_to(&self, config: &Config) -> Result<(Client, Driver), String> {
        self.connect_and_hear(config, |_| {}).await
    }

    async fn connect_and_hear(
        &self,
        config: &Config,
        heard: impl Fn(Notification) + Send + 'static,
    ) -> Result<(Client, Driver), String> {
        let (client, connection) =
            config.connect(self.tls.clone()).await.map_err(|error| with_causes(&error))?;
        let watch = watch(connection, self.sync_waits_cut.clone(), heard);
        Ok((client, Driver(Some(tokio::spawn(watch)))))
    }

    pub(super) fn pool(&self, size: usize, purpose: Use) -> Result<Pool, StoreError> {
        let connector = self.clone();
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_connect(self.config.clone(), self.clone(), recycling);
        let hosts = u32::try_from(self.hosts.all().len()).unwrap_or(u32::MAX);
        Pool::builder(manager)
            .max_size(size)
            .runtime(Runtime::Tokio1)
            .timeouts(Timeouts {
                wait: Some(limits::POSTGRES_CONNECT),
                // Each host has a time-out of its own.
                create: Some(limits::POSTGRES_CONNECT.saturating_mul(hosts.saturating_add(1))),
                recycle: Some(limits::POSTGRES_CONNECT),
            })
            .post_create(Hook::async_fn(move |client, _| {
                let connector = connector.clone();
                Box::pin(async move {
                    connector
                        .prepare_in_time(client, purpose)
                        .await
                        .map_err(|error| HookError::message(error.to_string()))
                })
            }))
            .build()
            .map_err(|error| StoreError::Unavailable(error.to_string()))
    }

    /// Connects once, apart from the pools, and has notifications heard until the driver ends.
    pub(super) async fn listen(
        &self,
        heard: impl Fn(Notification) + Clone + Send + 'static,
    ) -> Result<(Client, Driver), StoreError> {
        self.open(heard).await.map_err(StoreError::Unavailable)
    }

    async fn prepare_in_time(&self, client: &Client, purpose: Use) -> Result<(), StoreError> {
        let prepared = self.prepare_session(client, purpose);
        timeout(limits::POSTGRES_CONNECT, prepared).await.unwrap_or_else(|_| {
            Err(StoreError::Unavailable("a new connection says nothing".into()))
        })
    }

    async fn prepare_session(&self, client: &Client, purpose: Use) -> Result<(), StoreError> {
        require_synced(client).await?;
        // Where the server cannot watch its end of a connection it says so, and nothing is lost
        // but time.
        if let Err(error) = client.batch_execute(WATCH).await {
            debug!(%error, "PostgreSQL does not watch this connection");
        }
        client.batch_execute(&self.settings(purpose)).await.map_err(failure)?;
        schema::require_epoch(client).await
    }

    /// Makes a session what it was when it was new, whatever was done in it, but for statements
    /// that are prepared. It is told so now, and whatever is asked of it next comes after that, so
    /// nobody waits for the answer.
    pub(super) fn renew(&self, client: &Client, purpose: Use) {
        let settings = format!(
            "RESET SESSION AUTHORIZATION; RESET ROLE; RESET ALL; SELECT {SYNCED}; {}",
            self.settings(purpose)
        );
        for sql in [settings.as_str(), WATCH, LET_GO] {
            let asked = std::pin::pin!(client.batch_execute(sql));
            // The first poll sends it.
            let _ = asked.poll(&mut Context::from_waker(Waker::noop()));
        }
    }

    fn settings(&self, purpose: Use) -> String {
        // A node that froze or was unplugged while it held locks must not stop the others: they
        // turn to something else for now, and the server takes its locks away. No wait of a batch
        // that is recorded is cut short: it may be the wait of a commit for its standby.
        let limits = format!(
            "SET lock_timeout = {}; SET idle_in_transaction_session_timeout = {};",
            milliseconds(self.lock_wait),
            milliseconds(self.idle),
        );
        let by_key = "SET enable_seqscan = off; SET enable_bitmapscan = off;
            SET enable_hashjoin = off; SET enable_mergejoin = off";
        let special = match purpose {
            // A batch is joined with itself; the planner, blind to the length of arrays, would
            // compare every row with every other.
            Use::Recording => "SET enable_nestloop = off; SET enable_mergejoin = off".into(),
            // Everything goes by a key or along an index, however many rows the planner believes
            // in: a plan made while a table was empty must do when it holds a million. The
            // statements leave no other choice, so there is no use in planning them again.
            Use::Working => format!("{limits} {by_key}; SET plan_cache_mode = force_generic_plan"),
            // A plan for the ids at hand has only their days; any other locks all there are.
            Use::Daily => format!("{limits} {by_key}; SET plan_cache_mode = force_custom_plan"),
            Use::General => limits,
        };
        format!("{EVERYWHERE} {special}")
    }

    /// How long a session waits for the locks of others.
    pub(super) fn lock_wait(&self) -> Duration {
        self.lock_wait
    }

    /// How often a commit may have returned although no standby has it: its wait was cut short, or
    /// another server is the primary.
    pub(super) fn sync_waits_cut(&self) -> u64 {
        self.sync_waits_cut.load(Ordering::SeqCst).wrapping_add(self.primary.changed())
    }

    /// Whether what was committed since that many were cut is known to be durable.
    pub(super) fn is_durable_since(&self, cut_before: u64) -> Result<(), StoreError> {
        match self.sync_waits_cut() == cut_before {
            true => Ok(()),
            false => Err(StoreError::UnknownOutcome(
                "during a commit, a wait for the standby was cut short or the primary changed"
                    .into(),
            )),
        }
    }
}

impl deadpool_postgres::Connect for Connector {
    fn connect(
        &self,
        _: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + '_>> {
        Box::pin(async move {
            match self.open(|_| {}).await {
                Ok((client, driver)) => Ok((client, driver.keep())),
                Err(reason) => Err(driver_error(reason).await),
            }
        })
    }
}

/// The task that drives a connection. The connection is closed when this is dropped.
pub(super) struct Driver(Option<JoinHandle<()>>);

impl Driver {
    /// Leaves it to the holder of the handle to close the connection.
    fn keep(mut self) -> JoinHandle<()> {
        self.0.take().expect("it is kept once")
    }

    fn abort_handle(&self) -> AbortHandle {
        self.0.as_ref().expect("it is not kept yet").abort_handle()
    }

    /// Resolves when the connection has ended.
    pub(super) async fn ended(&mut self) {
        if let Some(task) = &mut self.0 {
            // However it ended.
            let _ = task.await;
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// Drives a connection until it ends, and looks at what the server says beside its answers.
async fn watch<S, T>(
    mut connection: Connection<S, T>,
    sync_waits_cut: Arc<AtomicU64>,
    heard: impl Fn(Notification) + Send,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        match std::future::poll_fn(|cx| connection.poll_message(cx)).await {
            Some(Ok(AsyncMessage::Notice(notice))) => {
                // Processed before the answer to the commit it belongs to.
                if is_cut_sync_wait(&notice) {
                    sync_waits_cut.fetch_add(1, Ordering::SeqCst);
                }
                warn!(notice = notice.message(), "PostgreSQL says");
            }
            Some(Ok(AsyncMessage::Notification(notification))) => heard(notification),
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                warn!(%error, "a connection to PostgreSQL was lost");
                return;
            }
            None => return,
        }
    }
}

/// Whether a notice says that a commit was answered before its standby had it. The text is
/// translated by some servers; the name of the routine is not.
fn is_cut_sync_wait(notice: &DbError) -> bool {
    notice.routine() == Some("SyncRepWaitForLSN")
        || notice.message().contains("synchronous replication")
}

/// Makes sure that a commit on this connection is synced before it is answered.
async fn require_synced(client: &Client) -> Result<(), StoreError> {
    let sql = format!(
        "SELECT {SYNCED}, current_setting('fsync'), current_setting('full_page_writes'),
            current_setting('server_version_num')::integer"
    );
    let row = client.query_one(&sql, &[]).await.map_err(failure)?;
    let (commit, fsync, pages): (String, String, String) = (row.get(0), row.get(1), row.get(2));
    if row.get::<_, i32>(3) < OLDEST_SERVER {
        return Err(StoreError::unfit(
            format!("PostgreSQL is of version {}", row.get::<_, i32>(3) / 10_000),
            "Use PostgreSQL 14 or later.",
        ));
    }
    if !matches!(commit.as_str(), "on" | "remote_apply") || fsync != "on" || pages != "on" {
        return Err(StoreError::unfit(
            format!(
                "PostgreSQL has synchronous_commit = {commit}, fsync = {fsync}, \
                 full_page_writes = {pages}: it may lose what it has committed"
            ),
            "Set all three to on.",
        ));
    }
    Ok(())
}

/// Runs a statement that is prepared once for each connection.
pub(super) async fn query(
    client: &impl GenericClient,
    sql: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, StoreError> {
    let statement = client.prepare_cached(sql).await.map_err(failure)?;
    client.query(&statement, values).await.map_err(failure)
}

/// As [`query`], for a statement that tells only how many rows it changed.
pub(super) async fn execute(
    client: &impl GenericClient,
    sql: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<u64, StoreError> {
    let statement = client.prepare_cached(sql).await.map_err(failure)?;
    client.execute(&statement, values).await.map_err(failure)
}

/// Gives a connection back after work on it, unless its host has become a standby: the next one
/// looks for the primary.
pub(super) fn given_back<T>(
    client: Object,
    outcome: Result<T, StoreError>,
) -> Result<T, StoreError> {
    if let Err(StoreError::Unavailable(reason)) = &outcome
        && reason.contains(SqlState::READ_ONLY_SQL_TRANSACTION.code())
    {
        drop(Object::take(client));
    }
    outcome
}

/// Whether something could not be done because somebody has locked what it needs.
pub(super) fn is_locked(error: &StoreError) -> bool {
    let code = SqlState::LOCK_NOT_AVAILABLE.code();
    matches!(error, StoreError::Unavailable(reason) if reason.contains(code))
}

/// No connection could be had, so nothing was changed.
pub(super) fn no_connection(error: &PoolError) -> StoreError {
    StoreError::Unavailable(with_causes(error))
}

/// An error with what caused it, each said once.
pub(super) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

/// What an error of PostgreSQL means for us.
#[expect(clippy::needless_pass_by_value, reason = "the shape `map_err` wants")]
pub(super) fn failure(error: Error) -> StoreError {
    let Some(answer) = error.as_db_error() else {
        // No answer: the connection broke, before or after the server had committed.
        return StoreError::UnknownOutcome(error.to_string());
    };
    let text = format!("{} ({})", answer.message(), answer.code().code());
    let fatal = matches!(answer.parsed_severity(), Some(Severity::Fatal | Severity::Panic));
    // A backend that is told to go while it waits for a standby has already committed.
    if fatal || *answer.code() == SqlState::QUERY_CANCELED {
        return StoreError::UnknownOutcome(text);
    }
    // No rule of the table is broken: there is no table for the row, see days.rs.
    if *answer.code() == SqlState::CHECK_VIOLATION && answer.constraint().is_none() {
        return StoreError::Unavailable(text);
    }
    match &answer.code().code()[..2] {
        "22" | "23" | "OB" => StoreError::Data(text),
        // Deadlock or serialisation: rolled back as a whole, safe to run again at once.
        "40" => StoreError::UnknownOutcome(text),
        _ => StoreError::Unavailable(text),
    }
}
