//! Secrets that a provider sets in a handshake: only in a window, one in each, none replaced.

use std::time::Duration;

use oncebox::limits;
use oncebox::receipt::SourceNo;
use oncebox::sealed::{Sealed, SealingKey};
use oncebox::store::{Paired, PairedNo, Purpose};
use oncebox::verify::Secret;
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, NOON, act, time};

for_each_store!(
    a_secret_is_taken_in_an_open_window,
    no_secret_is_taken_without_a_window,
    no_secret_is_taken_after_a_window,
    a_closed_window_takes_nothing,
    a_window_takes_one_secret,
    a_repeated_handshake_is_told_the_same,
    of_several_at_once_one_wins,
    another_window_adds_and_replaces_nothing,
    a_known_secret_does_not_use_a_window_up,
    a_removed_secret_is_gone_and_its_number_too,
    windows_of_sources_are_apart,
    windows_have_a_longest_time,
    a_source_has_only_so_many,
    secrets_outlive_a_restart_and_are_seen_from_beside,
    everything_is_audited,
);

const WHILE: Duration = Duration::from_secs(600);

fn key() -> SealingKey {
    SealingKey::derive(&[7; 32]).unwrap()
}

fn seal(source: SourceNo, secret: &str) -> Sealed {
    key().seal(source, secret).unwrap()
}

async fn open(bed: &Bed) {
    bed.store.open_pairing(bed.source, WHILE, &act("a new webhook")).await.unwrap();
}

/// Sends a handshake, sealed anew each time as a server does.
async fn pair(bed: &Bed, secret: &str) -> Paired {
    bed.store.pair(bed.source, &seal(bed.source, secret), time(NOON)).await.unwrap()
}

/// The secrets that the source has, as their texts, told by trying them.
async fn secrets(bed: &Bed, texts: &[&str]) -> Vec<(i16, String)> {
    let kept = bed.store.paired_secrets(bed.source).await.unwrap();
    let text = |sealed: &[u8]| {
        let secret = key().open(bed.source, sealed).unwrap();
        let found = texts.iter().find(|text| secret.is_same(&Secret::new(**text)));
        found.expect("it is one of them").to_string()
    };
    kept.iter().map(|secret| (secret.no.0, text(&secret.sealed))).collect()
}

fn one(no: i16, text: &str) -> (i16, String) {
    (no, text.to_owned())
}

async fn a_secret_is_taken_in_an_open_window(bed: Bed) {
    let opened = bed.store.open_pairing(bed.source, WHILE, &act("")).await.unwrap();
    assert!(opened.is_open && opened.paired.is_none());
    assert_eq!(opened.until.duration_since(opened.opened_at).as_secs(), 600);
    assert_eq!(bed.store.pairing(bed.source).await.unwrap(), Some(opened));

    assert_eq!(pair(&bed, "secret").await, Paired::New(PairedNo(1)));

    let window = bed.store.pairing(bed.source).await.unwrap().unwrap();
    assert!(!window.is_open);
    assert_eq!((window.paired, window.until), (Some(PairedNo(1)), opened.until));
    assert_eq!(secrets(&bed, &["secret"]).await, [one(1, "secret")]);
    let kept = &bed.store.paired_secrets(bed.source).await.unwrap()[0];
    assert_eq!(kept.fingerprint, Secret::new("secret").fingerprint());
    assert_eq!(kept.paired_at, time(NOON));
}

async fn no_secret_is_taken_without_a_window(bed: Bed) {
    assert_eq!(bed.store.pairing(bed.source).await.unwrap(), None);
    assert_eq!(pair(&bed, "secret").await, Paired::Closed);
    assert_eq!(bed.rows("paired_secrets"), 0);
}

async fn no_secret_is_taken_after_a_window(bed: Bed) {
    let opened = bed.store.open_pairing(bed.source, Duration::ZERO, &act("")).await.unwrap();
    assert!(!opened.is_open);
    assert_eq!(pair(&bed, "secret").await, Paired::Closed);
    assert_eq!(bed.rows("paired_secrets"), 0);
    // Nor a repeat, once the window that took it would have ended.
    open(&bed).await;
    assert_eq!(pair(&bed, "secret").await, Paired::New(PairedNo(1)));
    bed.query("UPDATE pairings SET until = opened_at");
    assert_eq!(pair(&bed, "secret").await, Paired::Closed);
    assert_eq!(secrets(&bed, &["secret"]).await, [one(1, "secret")]);
}

async fn a_closed_window_takes_nothing(bed: Bed) {
    assert!(!bed.store.close_pairing(bed.source, &act("")).await.unwrap());
    open(&bed).await;
    assert!(bed.store.close_pairing(bed.source, &act("")).await.unwrap());
    assert!(!bed.store.close_pairing(bed.source, &act("")).await.unwrap());
    assert_eq!(bed.store.pairing(bed.source).await.unwrap(), None);
    assert_eq!(pair(&bed, "secret").await, Paired::Closed);
    assert_eq!(bed.rows("paired_secrets"), 0);
}

async fn a_window_takes_one_secret(bed: Bed) {
    open(&bed).await;
    assert_eq!(pair(&bed, "first").await, Paired::New(PairedNo(1)));
    assert_eq!(pair(&bed, "second").await, Paired::Closed);
    // Its window is used, so there is none to close.
    assert!(!bed.store.close_pairing(bed.source, &act("")).await.unwrap());
    assert_eq!(secrets(&bed, &["first"]).await, [one(1, "first")]);
}

/// Its answer was lost, so the provider sends it again.
async fn a_repeated_handshake_is_told_the_same(bed: Bed) {
    open(&bed).await;
    assert_eq!(pair(&bed, "secret").await, Paired::New(PairedNo(1)));
    let kept = bed.store.paired_secrets(bed.source).await.unwrap();
    for _ in 0..2 {
        assert_eq!(pair(&bed, "secret").await, Paired::Already(PairedNo(1)));
    }
    assert_eq!(bed.store.paired_secrets(bed.source).await.unwrap(), kept);
}

async fn of_several_at_once_one_wins(bed: Bed) {
    for round in 1..=5 {
        open(&bed).await;
        let mut handshakes = tokio::task::JoinSet::new();
        for n in 0..8 {
            let sealed = seal(bed.source, &format!("secret {round} {n}"));
            let (store, source) = (bed.store.clone(), bed.source);
            handshakes.spawn(async move { store.pair(source, &sealed, time(NOON)).await.unwrap() });
        }
        let outcomes = handshakes.join_all().await;
        let won = outcomes.iter().filter(|outcome| matches!(outcome, Paired::New(_))).count();
        let lost = outcomes.iter().filter(|outcome| **outcome == Paired::Closed).count();
        assert_eq!((won, lost), (1, 7), "{outcomes:?}");
        assert_eq!(bed.rows("paired_secrets"), round);
    }
    // The same one several times is one.
    open(&bed).await;
    let mut handshakes = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (store, source, sealed) = (bed.store.clone(), bed.source, seal(bed.source, "same"));
        handshakes.spawn(async move { store.pair(source, &sealed, time(NOON)).await.unwrap() });
    }
    let outcomes = handshakes.join_all().await;
    let told = |wanted: Paired| outcomes.iter().filter(|outcome| **outcome == wanted).count();
    let no = PairedNo(6);
    assert_eq!((told(Paired::New(no)), told(Paired::Already(no))), (1, 7), "{outcomes:?}");
}

async fn another_window_adds_and_replaces_nothing(bed: Bed) {
    for (no, secret) in [(1, "first"), (2, "second")] {
        open(&bed).await;
        assert_eq!(pair(&bed, secret).await, Paired::New(PairedNo(no)));
    }
    let expected = [one(1, "first"), one(2, "second")];
    assert_eq!(secrets(&bed, &["first", "second"]).await, expected);
    // The first one is known, and not what closed this window.
    assert_eq!(pair(&bed, "first").await, Paired::Closed);
    assert_eq!(pair(&bed, "second").await, Paired::Already(PairedNo(2)));
}

async fn a_known_secret_does_not_use_a_window_up(bed: Bed) {
    open(&bed).await;
    assert_eq!(pair(&bed, "first").await, Paired::New(PairedNo(1)));
    open(&bed).await;
    assert_eq!(pair(&bed, "first").await, Paired::Already(PairedNo(1)));
    assert!(bed.store.pairing(bed.source).await.unwrap().unwrap().is_open);
    assert_eq!(pair(&bed, "second").await, Paired::New(PairedNo(2)));
}

async fn a_removed_secret_is_gone_and_its_number_too(bed: Bed) {
    open(&bed).await;
    assert_eq!(pair(&bed, "first").await, Paired::New(PairedNo(1)));
    let removed = async |no: i16| {
        bed.store.remove_paired_secret(bed.source, PairedNo(no), &act("")).await.unwrap()
    };
    assert!(!removed(2).await);
    assert!(removed(1).await);
    assert!(!removed(1).await);
    assert_eq!(bed.rows("paired_secrets"), 0);
    // The window that took it does not take it again.
    assert_eq!(pair(&bed, "first").await, Paired::Closed);
    open(&bed).await;
    assert_eq!(pair(&bed, "first").await, Paired::New(PairedNo(2)));
}

async fn windows_of_sources_are_apart(bed: Bed) {
    let other = bed.store.register_source("asana", None).await.unwrap();
    bed.store.open_pairing(other, WHILE, &act("")).await.unwrap();
    assert_eq!(pair(&bed, "secret").await, Paired::Closed);
    let paired = bed.store.pair(other, &seal(other, "secret"), time(NOON)).await.unwrap();
    assert_eq!(paired, Paired::New(PairedNo(1)));
    assert!(bed.store.paired_secrets(bed.source).await.unwrap().is_empty());
    let kept = bed.store.paired_secrets(other).await.unwrap();
    assert!(key().open(bed.source, &kept[0].sealed).is_err());
    assert!(!bed.store.remove_paired_secret(bed.source, PairedNo(1), &act("")).await.unwrap());

    let unknown = bed.store.open_pairing(SourceNo(99), WHILE, &act("")).await;
    assert!(unknown.is_err(), "{unknown:?}");
}

async fn windows_have_a_longest_time(bed: Bed) {
    let opened = bed.store.open_pairing(bed.source, Duration::MAX, &act("")).await.unwrap();
    let length = opened.until.duration_since(opened.opened_at);
    assert_eq!(length.unsigned_abs(), limits::PAIRING_LONGEST);
}

async fn a_source_has_only_so_many(bed: Bed) {
    for n in 0..limits::PAIRED_SECRETS {
        open(&bed).await;
        assert!(matches!(pair(&bed, &format!("secret {n}")).await, Paired::New(_)));
    }
    open(&bed).await;
    assert_eq!(pair(&bed, "one more").await, Paired::Full);
    assert_eq!(bed.rows("paired_secrets"), limits::PAIRED_SECRETS);
    assert!(bed.store.remove_paired_secret(bed.source, PairedNo(1), &act("")).await.unwrap());
    assert!(matches!(pair(&bed, "one more").await, Paired::New(_)));
}

/// An operator opens the window beside the server that takes the handshake.
async fn secrets_outlive_a_restart_and_are_seen_from_beside(mut bed: Bed) {
    let beside = oncebox::store::open(&bed.url, Purpose::Operate).await.unwrap();
    beside.open_pairing(bed.source, WHILE, &act("")).await.unwrap();
    assert_eq!(pair(&bed, "secret").await, Paired::New(PairedNo(1)));
    assert_eq!(beside.paired_secrets(bed.source).await.unwrap().len(), 1);
    beside.close().await;
    bed.reopen().await;
    assert_eq!(secrets(&bed, &["secret"]).await, [one(1, "secret")]);
    assert_eq!(pair(&bed, "secret").await, Paired::Already(PairedNo(1)));
}

async fn everything_is_audited(bed: Bed) {
    open(&bed).await;
    bed.store.close_pairing(bed.source, &act("")).await.unwrap();
    bed.store.close_pairing(bed.source, &act("")).await.unwrap();
    open(&bed).await;
    pair(&bed, "secret").await;
    pair(&bed, "secret").await;
    pair(&bed, "another").await;
    bed.store.remove_paired_secret(bed.source, PairedNo(1), &act("")).await.unwrap();
    bed.store.remove_paired_secret(bed.source, PairedNo(1), &act("")).await.unwrap();
    let mut audit = bed.store.audit(None, 50).await.unwrap();
    audit.reverse();
    let who = act("").who;
    let lines: Vec<_> =
        audit.iter().map(|row| (row.act.as_str(), row.subject.as_str(), &row.who[..])).collect();
    let expected = [
        ("source.pair", "stripe-live", who.as_str()),
        ("source.unpair", "stripe-live", &who),
        ("source.pair", "stripe-live", &who),
        ("secret.paired", "stripe-live/1", "handshake"),
        ("secret.remove", "stripe-live/1", &who),
    ];
    assert_eq!(lines, expected);
    assert_eq!(audit[0].why.as_deref(), Some("a new webhook"));
}
