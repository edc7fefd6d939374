//! A PostgreSQL database of the benchmark's own, dropped afterwards.

use tokio_postgres::{Client, NoTls};

use super::cost;
use crate::exit::{Code, Failure};

/// A new database on the server that a URL names.
pub(crate) struct Database {
    admin: Client,
    name: String,
    pub(crate) url: String,
    /// The server's main process, where it runs on this machine.
    pub(crate) postmaster: Option<u32>,
}

impl Database {
    pub(crate) async fn create(server: &str, case: &str) -> Result<Self, Failure> {
        let (admin, connection) = tokio_postgres::connect(server, NoTls).await.map_err(failed)?;
        tokio::spawn(connection);
        let name = format!("oncebox_bench_{}_{case}", std::process::id());
        admin.batch_execute(&format!("CREATE DATABASE {name}")).await.map_err(failed)?;
        // What another case left to write must not be charged to this one.
        admin.batch_execute("CHECKPOINT").await.map_err(failed)?;
        let row = admin.query_one("SELECT pg_backend_pid()", &[]).await.map_err(failed)?;
        let backend = u32::try_from(row.get::<_, i32>(0)).ok();
        let postmaster = backend.and_then(cost::parent_of).filter(|pid| is_postgres(*pid));
        Ok(Self { url: with_database(server, &name), admin, name, postmaster })
    }

    /// Bytes of the database on disk.
    pub(crate) async fn bytes(&self) -> Result<u64, Failure> {
        let row = self
            .admin
            .query_one("SELECT pg_database_size($1::text::name)", &[&self.name])
            .await
            .map_err(failed)?;
        Ok(row.get::<_, i64>(0).unsigned_abs())
    }

    pub(crate) async fn drop(self) -> Result<(), Failure> {
        let sql = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        self.admin.batch_execute(&sql).await.map_err(failed)
    }
}

/// Fills yesterday with receipts and their finished deliveries.
pub(crate) async fn fill_yesterday(url: &str, receipts: u64, size: usize) -> Result<(), Failure> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.map_err(failed)?;
    tokio::spawn(connection);
    let filled = format!(
        "INSERT INTO oncebox.receipts (id, received_at, source, secret, routes, trust, event_id,
            event_type, digest, headers, body)
        SELECT (lpad(to_hex(d.ms + n * 86400000 / {receipts}), 12, '0') || '70008000'
                || lpad(to_hex(n), 12, '0'))::uuid,
            to_timestamp((d.ms + n * 86400000 / {receipts}) / 1000.0), 1, 1, 1, 'signed',
            'evt_' || n, 'invoice.paid', sha256('x'), '', convert_to(repeat('x', {size}), 'UTF8')
        FROM generate_series(0::bigint, {receipts} - 1) AS n,
            (SELECT (oncebox.today() - 1)::bigint * 86400000 AS ms) AS d;
        INSERT INTO oncebox.finished (receipt, created_at, finished_at, epoch, route, source,
            attempts, failures, crashes, snoozes, replays, laned, state)
        SELECT id, received_at, received_at, 1, 1, 1, 1, 0, 0, 0, 0, false, 'processed'
        FROM oncebox.receipts;
        CHECKPOINT"
    );
    client.batch_execute(&filled).await.map_err(failed)
}

/// A snapshot that is held open, as by a forgotten session.
pub(crate) struct Pin(Client);

impl Pin {
    pub(crate) async fn hold(url: &str) -> Result<Self, Failure> {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await.map_err(failed)?;
        tokio::spawn(connection);
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class";
        client.batch_execute(begin).await.map_err(failed)?;
        Ok(Self(client))
    }

    pub(crate) async fn release(self) -> Result<(), Failure> {
        self.0.batch_execute("COMMIT").await.map_err(failed)
    }
}

/// The same URL with another database.
fn with_database(url: &str, name: &str) -> String {
    let (base, query) =
        url.split_once('?').map_or((url, None), |(base, query)| (base, Some(query)));
    let host_at = base.find("://").map_or(0, |at| at + 3);
    let end = base[host_at..].find('/').map_or(base.len(), |at| host_at + at);
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{}/{name}{query}", &base[..end])
}

/// A process of that number may be another machine's: its name has to fit, too.
fn is_postgres(pid: u32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim().starts_with("postgres") || name.trim() == "postmaster"
}

#[expect(clippy::needless_pass_by_value, reason = "the shape `map_err` wants")]
fn failed(error: tokio_postgres::Error) -> Failure {
    let text =
        error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().into());
    Failure::new(Code::StoreUnavailable, format!("PostgreSQL: {text}"))
        .hint("`--postgres` takes the URL of a server on which databases may be created")
}

#[cfg(test)]
mod tests {
    use super::with_database;

    #[test]
    fn only_the_database_changes() {
        assert_eq!(with_database("postgres://u@h:1/a?x=y", "b"), "postgres://u@h:1/b?x=y");
        assert_eq!(with_database("postgres://u@h", "b"), "postgres://u@h/b");
    }
}
