//! The migrations of the two stores: the same steps, and what is made of others.

use oncebox::store::{self, Purpose};
use oncebox_testkit::store::Bed;

#[tokio::test(flavor = "multi_thread")]
async fn both_stores_have_the_same_steps() {
    let sqlite = steps(&Bed::sqlite().await).await;
    assert!(!sqlite.is_empty());
    assert_eq!(sqlite, steps(&Bed::postgres().await).await);
}

async fn steps(bed: &Bed) -> Vec<(i32, String)> {
    let schema = store::schema(&bed.url).await.unwrap();
    assert!(schema.is_current());
    schema.migrations.into_iter().map(|step| (step.version, step.name)).collect()
}

/// As one of an earlier build is, which had steps that are not known any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_with_unknown_steps_is_refused() {
    for (bed, sql, says) in [
        (Bed::sqlite().await, "UPDATE migrations SET version = version + 32000", "has version 320"),
        (Bed::postgres().await, "DROP TABLE schema_epoch", "made by an earlier build"),
    ] {
        bed.query(sql);
        let refused = store::open(&bed.url, Purpose::Operate).await.err().expect("refused");
        assert!(refused.to_string().contains(says), "{refused}");
        let refused = store::migrate(&bed.url).await.expect_err("refused");
        assert!(refused.to_string().contains(says), "{refused}");
    }
}
