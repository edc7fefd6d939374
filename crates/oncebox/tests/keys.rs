//! Keys that servers on one store share.

use oncebox::limits;
use oncebox::store::{PublishedKey, Purpose};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, NOON, time};

for_each_store!(
    the_fingerprint_key_is_made_once,
    of_several_first_servers_one_makes_the_fingerprint_key,
    published_keys_are_kept_and_replaced,
    only_so_many_published_keys_are_kept,
);

async fn the_fingerprint_key_is_made_once(mut bed: Bed) {
    assert_eq!(bed.store.fingerprint_key([1; 32]).await.unwrap(), [1; 32]);
    assert_eq!(bed.store.fingerprint_key([2; 32]).await.unwrap(), [1; 32]);
    bed.reopen().await;
    assert_eq!(bed.store.fingerprint_key([3; 32]).await.unwrap(), [1; 32]);
    let beside = oncebox::store::open(&bed.url, Purpose::Operate).await.unwrap();
    assert_eq!(beside.fingerprint_key([4; 32]).await.unwrap(), [1; 32]);
    beside.close().await;
}

async fn of_several_first_servers_one_makes_the_fingerprint_key(bed: Bed) {
    let asked = (1..=8).map(|number| {
        let store = bed.store.clone();
        tokio::spawn(async move { store.fingerprint_key([number; 32]).await.unwrap() })
    });
    let mut keys = Vec::new();
    for asked in asked.collect::<Vec<_>>() {
        keys.push(asked.await.unwrap());
    }
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
}

fn key(url: &str, served: &str, at: i64) -> PublishedKey {
    PublishedKey {
        url: url.into(),
        allow_private: false,
        served: served.into(),
        fresh_until: time(NOON + at + 3600),
        kept_at: time(NOON + at),
    }
}

async fn published_keys_are_kept_and_replaced(mut bed: Bed) {
    assert_eq!(bed.store.published_keys().await.unwrap(), []);
    let (old, new) = (key("https://a/x.pem", "old", 0), key("https://a/x.pem", "new", 9));
    let private = PublishedKey { allow_private: true, ..key("https://a/x.pem", "other", 1) };
    for kept in [&old, &private, &new] {
        bed.store.keep_published_key(kept).await.unwrap();
    }
    bed.reopen().await;
    assert_eq!(bed.store.published_keys().await.unwrap(), [new, private]);
}

async fn only_so_many_published_keys_are_kept(bed: Bed) {
    let most = limits::PUBLISHED_KEYS;
    for number in 0..most + 3 {
        let kept = key(&format!("https://a/{number:03}.pem"), "x", number);
        bed.store.keep_published_key(&kept).await.unwrap();
    }
    let kept = bed.store.published_keys().await.unwrap();
    assert_eq!(kept.len(), usize::try_from(most).unwrap());
    assert_eq!(kept[0].url, "https://a/003.pem", "those kept the longest ago are gone");
}
