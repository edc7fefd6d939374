//! Where a delivery goes: the same as the rules of the other doors say.

use std::time::Duration;

use oncebox::delivery::{Counts, Next, Outcome, next};
use oncebox::limits;
use oncebox::receipt::Arrival;
use oncebox::route::RouteRules;
use oncebox_testkit::store::Bed;

use super::session::Session;

const SECOND: Duration = Duration::from_secs(1);

fn rules() -> RouteRules {
    RouteRules {
        max_attempts: 4,
        base: 100 * SECOND,
        cap: 150 * SECOND,
        longest_wait: 1000 * SECOND,
        max_snoozes: 2,
        ..RouteRules::default()
    }
}

/// A way through attempts: what is said of each, and the state it comes to.
type Way = &'static [(&'static str, Option<u64>, &'static str)];

const WAYS: [Way; 5] = [
    &[
        ("retry", None, "retrying"),
        ("retry", Some(500), "retrying"),
        ("processed", None, "processed"),
    ],
    &[
        ("retry", None, "retrying"),
        ("snooze", Some(60), "retrying"),
        ("retry", None, "retrying"),
        ("retry", Some(0), "retrying"),
        ("retry", Some(10), "dead"),
    ],
    &[
        ("snooze", Some(0), "retrying"),
        ("snooze", Some(9999), "retrying"),
        ("snooze", Some(1), "dead"),
    ],
    &[("dead", None, "dead")],
    &[("retry", Some(99_999_999), "retrying"), ("stale", None, "skipped")],
];

/// Every step of every way, beside what `delivery::next` says of it.
#[tokio::test(flavor = "multi_thread")]
async fn outcomes_lead_where_the_rules_say() {
    let bed = Bed::postgres().await;
    let session = Session::open(&bed).await;
    for (n, way) in WAYS.iter().enumerate() {
        let name = format!("way-{n}");
        let route = bed.route(&name, rules()).await;
        let receipt = bed.due(&name, &[route]).await;
        let mut counts = Counts::default();
        let mut expected_attempts = Vec::new();
        for (outcome, after, state) in *way {
            let work = session.take(&name).await;
            counts.attempts += 1;
            assert_eq!(i32::try_from(counts.attempts), Ok(work.attempt));
            let interval = after.map(|seconds| format!("{seconds} seconds"));
            let note = format!("note {}", counts.attempts);
            let ended = session.finish_with(&work, outcome, Some(&note), interval.as_deref()).await;
            assert_eq!(ended.unwrap(), *state, "{name}: {outcome}");
            let after = after.map(Duration::from_secs);
            let said = match *outcome {
                "processed" => Outcome::Processed,
                "stale" => Outcome::Stale,
                "dead" => Outcome::Dead,
                "snooze" => Outcome::Snooze { after: after.unwrap() },
                _ => Outcome::Retry { after },
            };
            let (least, most) =
                (next(&rules(), counts, &said, 0.0), next(&rules(), counts, &said, 1.0));
            assert_eq!(least.as_str(), most.as_str());
            match (least, most) {
                (Next::Retry(least), Next::Retry(most)) => {
                    counts.failures += 1;
                    assert_due(&bed, least, most);
                }
                (Next::Snooze(pause), _) => {
                    counts.snoozes += 1;
                    assert_due(&bed, pause, pause);
                }
                (Next::Dead, _) => counts.failures += 1,
                _ => {}
            }
            if !matches!(least, Next::Processed | Next::Stale) {
                let word = least.as_str();
                expected_attempts.push(format!("{word}|{}|{note}|t", counts.attempts));
            }
            let row = bed.delivery(route.of(receipt)).await;
            counts.tried = row.counts.tried;
            assert_eq!((row.state.as_str(), row.counts), (*state, counts), "{name}: {outcome}");
            let noted = if *outcome == "processed" { row.summary } else { row.detail };
            assert_eq!(noted, Some(note));
            bed.pass(1000);
        }
        let attempts = bed.query(&format!(
            "SELECT outcome, number, detail, took_ms IS NOT NULL FROM attempts
             WHERE route = {} ORDER BY epoch",
            route.no.0
        ));
        assert_eq!(attempts, expected_attempts.join("\n"), "{name}");
        bed.query("DELETE FROM deliveries");
    }
}

/// The only delivery there is comes back within those pauses from now.
fn assert_due(bed: &Bed, least: Duration, most: Duration) {
    let sql = "SELECT round(extract(epoch FROM due_at - now()) * 1000) FROM deliveries";
    let due: f64 = bed.query(sql).parse().unwrap();
    // What was said a moment ago.
    let moment = 20_000.0;
    let (least, most) = (least.as_secs_f64() * 1000.0 - moment, most.as_secs_f64() * 1000.0);
    assert!((least..=most).contains(&due), "{due} is not within {least}..={most}");
}

/// Chance spreads what failed together over the second half of the pause.
#[tokio::test(flavor = "multi_thread")]
async fn retries_are_spread() {
    let bed = Bed::postgres().await;
    let rules = RouteRules { base: 1000 * SECOND, cap: 1000 * SECOND, ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    bed.record((0..64).map(|n| bed.event(&format!("e{n}"), &[route])).collect()).await;
    let session = Session::open(&bed).await;
    for work in session.claim("billing", 64).await {
        session.finish(&work, "retry").await.unwrap();
    }
    let eighths = "SELECT count(DISTINCT floor(extract(epoch FROM due_at - now()) / 125)),
        max(due_at) < now() + interval '1000 seconds', count(DISTINCT due_at) > 60,
        min(due_at) > now() + interval '450 seconds'
        FROM deliveries";
    // The odds against one in each of the four are a few in a hundred million.
    let spread = bed.query(eighths);
    assert!(["4|t|t|t", "5|t|t|t"].contains(&spread.as_str()), "{spread}");
}

/// An older event that is processed after a newer one leaves the watermark where it is, and so does
/// one that was not processed.
#[tokio::test(flavor = "multi_thread")]
async fn the_watermark_never_goes_back() {
    let bed = Bed::postgres().await;
    let route = bed.route("billing", RouteRules { ordered: true, ..RouteRules::default() }).await;
    let session = Session::open(&bed).await;
    for (version, outcome, applied) in [
        (Some(5), "stale", ""),
        (Some(5), "processed", "5"),
        (Some(3), "processed", "5"),
        (None, "processed", "5"),
        (Some(9), "dead", "5"),
        (Some(8), "processed", "8"),
    ] {
        let id = format!("{version:?}-{outcome}");
        let event = bed.event(&id, &[route]);
        bed.send(Arrival { object: Some("in_1".into()), version, ..event }).await;
        let work = session.take("billing").await;
        assert_eq!(work.event_id, id);
        session.finish(&work, outcome).await.unwrap();
        assert_eq!(bed.query("SELECT applied FROM lanes"), applied, "{id}");
    }
}

/// Notes are cut as those of other doors are: between characters.
#[tokio::test(flavor = "multi_thread")]
async fn long_notes_are_cut() {
    let bed = Bed::postgres().await;
    let route = bed.route("billing", RouteRules::default()).await;
    let session = Session::open(&bed).await;
    let euros = "€".repeat(limits::DETAIL_BYTES);
    for (n, note) in [format!("a{euros}"), format!("ab{euros}"), euros.clone()].iter().enumerate() {
        let receipt = bed.due(&format!("e{n}"), &[route]).await;
        let work = session.take("billing").await;
        session.finish_with(&work, "processed", Some(note), None).await.unwrap();
        let kept = bed.delivery(route.of(receipt)).await.summary.unwrap();
        assert!(note.starts_with(&kept));
        assert!((limits::DETAIL_BYTES - 2..=limits::DETAIL_BYTES).contains(&kept.len()));
    }
}

/// What was not begun is as if it had not been claimed; said again, it is told as done.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_returned_was_not_tried() {
    let bed = Bed::postgres().await;
    let route = bed.route("billing", RouteRules::default()).await;
    let receipt = bed.due("e1", &[route]).await;
    let session = Session::open(&bed).await;
    let work = session.take("billing").await;
    let give_back = "SELECT oncebox.return($1, $2)";
    for _ in 0..2 {
        let row = &session.rows(give_back, &[&work.delivery, &work.lease]).await[0];
        assert_eq!(row.get::<_, &str>(0), "received");
        assert_eq!(bed.delivery(route.of(receipt)).await.counts.attempts, 0);
    }
    assert_eq!(session.finish(&work, "processed").await.unwrap_err().code, "OB409");
    let again = session.take("billing").await;
    assert_eq!(again.attempt, 1);
    let late = format!("SELECT oncebox.return('{}', {})", work.delivery, work.lease);
    assert_eq!(session.refusal(&late).await.code, "OB409", "another has it");
    assert_eq!(session.finish(&again, "retry").await.unwrap(), "retrying");
    let ended = format!("SELECT oncebox.return('{}', {})", again.delivery, again.lease);
    assert_eq!(session.refusal(&ended).await.code, "OB409");
}
