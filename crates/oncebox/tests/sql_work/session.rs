//! A session as a worker in another language has it.

use oncebox_testkit::store::Bed;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, NoTls, Row};

/// A connection that calls functions and knows nothing else of the store.
pub(crate) struct Session {
    pub(crate) client: Client,
}

/// What a claim gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) delivery: String,
    pub(crate) lease: i64,
    pub(crate) event_id: String,
    pub(crate) version: Option<i64>,
    pub(crate) attempt: i32,
}

/// An error as the caller sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        let refused = error.as_db_error().unwrap_or_else(|| panic!("no answer: {error}"));
        Self {
            code: refused.code().code().to_owned(),
            message: refused.message().to_owned(),
            hint: refused.hint().map(str::to_owned),
        }
    }
}

impl Session {
    pub(crate) async fn open(bed: &Bed) -> Self {
        let (client, connection) = tokio_postgres::connect(&bed.url, NoTls).await.unwrap();
        tokio::spawn(connection);
        Self { client }
    }

    /// Runs statements that must succeed.
    pub(crate) async fn run(&self, sql: &str) {
        self.client.batch_execute(sql).await.unwrap_or_else(|error| panic!("{sql}\n{error:?}"));
    }

    /// Runs statements, and tells how they were refused if they were.
    pub(crate) async fn try_run(&self, sql: &str) -> Result<(), Refused> {
        Ok(self.client.batch_execute(sql).await?)
    }

    /// How statements that must not succeed are refused.
    pub(crate) async fn refusal(&self, sql: &str) -> Refused {
        let refused = self.try_run(sql).await;
        refused.expect_err(sql)
    }

    pub(crate) async fn rows(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Vec<Row> {
        let rows = self.client.query(sql, values).await;
        rows.unwrap_or_else(|error| panic!("{sql}\n{error:?}"))
    }

    pub(crate) async fn claim(&self, route: &str, max: i32) -> Vec<Work> {
        self.try_claim(route, max).await.expect("a claim")
    }

    pub(crate) async fn try_claim(&self, route: &str, max: i32) -> Result<Vec<Work>, Refused> {
        let sql = "SELECT delivery, lease, event_id, object_version, attempt
            FROM oncebox.claim($1, $2, '1 minute')";
        let rows = self.client.query(sql, &[&route, &max]).await?;
        let read = |row: &Row| Work {
            delivery: row.get(0),
            lease: row.get(1),
            event_id: row.get(2),
            version: row.get(3),
            attempt: row.get(4),
        };
        Ok(rows.iter().map(read).collect())
    }

    /// Claims the one delivery that must be due.
    pub(crate) async fn take(&self, route: &str) -> Work {
        let mut work = self.claim(route, 1).await;
        assert_eq!(work.len(), 1, "{work:?}");
        work.remove(0)
    }

    pub(crate) async fn finish(&self, work: &Work, outcome: &str) -> Result<String, Refused> {
        self.finish_with(work, outcome, None, None).await
    }

    pub(crate) async fn finish_with(
        &self,
        work: &Work,
        outcome: &str,
        note: Option<&str>,
        after: Option<&str>,
    ) -> Result<String, Refused> {
        let sql = "SELECT oncebox.finish($1, $2, $3, $4, $5::text::interval)";
        let values: [&(dyn ToSql + Sync); 5] =
            [&work.delivery, &work.lease, &outcome, &note, &after];
        Ok(self.client.query_one(sql, &values).await?.get(0))
    }
}

impl Work {
    /// The call that ends it, as part of a script.
    pub(crate) fn finish_sql(&self) -> String {
        format!("SELECT oncebox.finish('{}', {});", self.delivery, self.lease)
    }
}
