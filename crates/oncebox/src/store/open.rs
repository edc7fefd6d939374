//! From a URL to a store, and what is done to a store as a whole.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{
    BackupProgress, MigrateProgress, PostgresOptions, PostgresStore, Purpose, Schema,
    SqliteOptions, SqliteStore, Store, StoreError, postgres, sqlite,
};
use crate::limits;

/// Opens the store a URL names: `sqlite://path` or `postgres://…`. To serve, a SQLite file is
/// migrated and an empty PostgreSQL gets its schema; otherwise a store with pending migrations is
/// refused as [`StoreError::NotMigrated`]: [`migrate`] runs them.
pub async fn open(url: &str, purpose: Purpose) -> Result<Arc<dyn Store>, StoreError> {
    match Backend::of(url)? {
        Backend::Sqlite(path) => {
            let options = SqliteOptions::new(path);
            Ok(Arc::new(SqliteStore::open(options, purpose).await?))
        }
        Backend::Postgres(url) => {
            let options = PostgresOptions::new(url);
            Ok(Arc::new(PostgresStore::open(options, purpose).await?))
        }
    }
}

/// Says what is wrong with a store URL, without connecting to anything.
pub fn check_url(url: &str) -> Result<(), StoreError> {
    match Backend::of(url)? {
        Backend::Sqlite(_) => Ok(()),
        Backend::Postgres(url) => postgres::check_url(url),
    }
}

/// Brings the schema of the store up to date and tells where it stands.
pub async fn migrate(url: &str) -> Result<Schema, StoreError> {
    migrate_telling(url, limits::MIGRATE_PATIENCE, &|_| {}).await
}

/// As [`migrate`], for at most so long, and says what it does meanwhile. On PostgreSQL it waits
/// only shortly for locks and tries again, so that running nodes record all the while.
pub async fn migrate_telling(
    url: &str,
    patience: Duration,
    tell: &(dyn Fn(MigrateProgress) + Send + Sync),
) -> Result<Schema, StoreError> {
    match Backend::of(url)? {
        Backend::Sqlite(path) => sqlite::migrate(path).await,
        Backend::Postgres(url) => postgres::migrate(url, patience, tell).await,
    }
}

/// Where the schema of the store stands, without changing it.
pub async fn schema(url: &str) -> Result<Schema, StoreError> {
    match Backend::of(url)? {
        Backend::Sqlite(path) => sqlite::schema(path).await,
        Backend::Postgres(url) => postgres::schema(url).await,
    }
}

/// Copies a SQLite store to another file while it may be in use; says how far it is. Returns the
/// size of the copy. A PostgreSQL has tools of its own for that.
pub async fn backup(
    url: &str,
    to: PathBuf,
    overwrite: bool,
    tell: impl Fn(BackupProgress) + Send + 'static,
) -> Result<u64, StoreError> {
    match Backend::of(url)? {
        Backend::Sqlite(path) => sqlite::backup(path, to, overwrite, tell).await,
        Backend::Postgres(_) => Err(StoreError::unfit(
            "this store is a PostgreSQL, which oncebox does not copy",
            "Use pg_dump or pg_basebackup; docs/operating.md says how.",
        )),
    }
}

/// The database a store URL names.
pub(super) enum Backend<'a> {
    Sqlite(&'a str),
    Postgres(&'a str),
}

impl<'a> Backend<'a> {
    pub(super) fn of(url: &'a str) -> Result<Self, StoreError> {
        if let Some(path) = url.strip_prefix("sqlite://") {
            let path = path.split('?').next().unwrap_or(path);
            if path.is_empty() || path == ":memory:" {
                return Err(StoreError::unfit(
                    "the store URL names no file",
                    "Write sqlite:// and a path, such as sqlite://oncebox.db.",
                ));
            }
            return Ok(Self::Sqlite(path));
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Self::Postgres(url));
        }
        Err(StoreError::unfit(
            "the store URL is neither sqlite:// nor postgres://",
            "Write sqlite://oncebox.db, or postgres://user@host1,host2/db?target_session_attrs=read-write.",
        ))
    }
}
