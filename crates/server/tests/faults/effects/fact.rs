//! What an event tells of, known from its id alone.

pub(super) struct Fact {
    /// What was paid.
    pub(super) key: String,
    /// Whose account changed, and to what version.
    pub(super) account: String,
    pub(super) version: i64,
}

/// Every fifth event tells of the same payment as the one before it. One in ten has changed places
/// with its neighbour, and is the last of its account: what is old comes after all that is new.
pub(super) fn fact(event_id: &str) -> Fact {
    let number = event_id.trim_start_matches("evt_");
    let n: i64 = number.parse().unwrap_or_else(|_| panic!("{event_id} has no number"));
    let version = match n % 20 {
        8 => 9,
        9 => 8,
        other => other % 10,
    };
    let key = format!("pay:{}", n - i64::from(n % 5 == 4));
    Fact { key, account: format!("account:{}", n / 10), version }
}

#[test]
fn facts_repeat_and_versions_change_places() {
    assert_eq!(fact("evt_0000004").key, fact("evt_0000003").key);
    assert_ne!(fact("evt_0000005").key, fact("evt_0000004").key);
    assert_eq!((fact("evt_0000008").version, fact("evt_0000009").version), (9, 8));
    assert_eq!((fact("evt_0000018").version, fact("evt_0000019").version), (8, 9));
    assert_eq!(fact("evt_0000013").account, fact("evt_0000019").account);
}
