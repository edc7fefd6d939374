//! What sources were sent lately, and what is done while an `oncebox tail` runs.

use std::time::Duration;

use jiff::Timestamp;
use oncebox::limits;
use oncebox::receipt::{ReceiptId, ReceiptMint, SourceNo};
use oncebox::store::{ActivityNote, Happening, Rejected, RejectedFilter, RejectionNote};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, NOON, time};

for_each_store!(
    later_notes_win,
    what_is_accepted_ends_the_count,
    the_secret_in_use_is_the_one_that_verified_last,
    the_last_rejected_of_each_reason_are_kept,
    a_rejected_request_is_kept_whole,
    rejected_requests_are_gone_after_a_day,
    what_happens_is_written_down_while_it_is_watched,
);

fn note(source: SourceNo) -> ActivityNote {
    ActivityNote {
        source,
        accepted_at: None,
        rejection: None,
        rejected_in_a_row: 0,
        secrets: Vec::new(),
    }
}

fn rejected_at(second: i64, reason: &str) -> RejectionNote {
    RejectionNote { at: time(second), reason: reason.into(), hint: Some("look".into()) }
}

/// Two nodes write in any order; what is latest stays.
async fn later_notes_win(bed: Bed) {
    let late = ActivityNote {
        accepted_at: Some(time(NOON + 9)),
        rejection: Some(rejected_at(NOON + 8, "late")),
        ..note(bed.source)
    };
    let early = ActivityNote {
        accepted_at: Some(time(NOON + 1)),
        rejection: Some(rejected_at(NOON + 2, "early")),
        ..note(bed.source)
    };
    for notes in [late.clone(), early, note(bed.source)] {
        bed.store.note_activity(vec![notes], Vec::new()).await.unwrap();
    }
    let activity = bed.store.activity().await.unwrap();
    assert_eq!(activity.len(), 1);
    assert_eq!(activity[0].source, bed.source);
    assert_eq!(activity[0].accepted_at, late.accepted_at);
    assert_eq!(activity[0].rejection, late.rejection);
}

async fn what_is_accepted_ends_the_count(bed: Bed) {
    let rejects = |rejected_in_a_row| ActivityNote {
        rejection: Some(rejected_at(NOON, "signature_mismatch")),
        rejected_in_a_row,
        ..note(bed.source)
    };
    let count = async || bed.store.activity().await.unwrap()[0].rejected_in_a_row;
    bed.store.note_activity(vec![rejects(70)], Vec::new()).await.unwrap();
    bed.store.note_activity(vec![rejects(5)], Vec::new()).await.unwrap();
    assert_eq!(count().await, 75);
    let accepted = ActivityNote { accepted_at: Some(time(NOON)), ..rejects(2) };
    bed.store.note_activity(vec![accepted], Vec::new()).await.unwrap();
    assert_eq!(count().await, 2);
}

async fn the_secret_in_use_is_the_one_that_verified_last(bed: Bed) {
    let old = bed.store.register_secret(bed.source, "0000", time(NOON)).await.unwrap();
    let new = bed.store.register_secret(bed.source, "1111", time(NOON)).await.unwrap();
    let uses = |secrets| ActivityNote { secrets, ..note(bed.source) };
    let notes = vec![uses(vec![(new, time(NOON + 2)), (old, time(NOON + 1))])];
    bed.store.note_activity(notes, Vec::new()).await.unwrap();
    // A node that is late does not bring it back.
    let late = vec![uses(vec![(old, time(NOON))])];
    bed.store.note_activity(late, Vec::new()).await.unwrap();
    let activity = bed.store.activity().await.unwrap();
    assert_eq!(activity[0].secret, Some(("1111".into(), time(NOON + 2))));
}

fn rejected(mint: &ReceiptMint, source: SourceNo, at: Timestamp, reason: &str) -> Rejected {
    Rejected {
        id: mint.mint(at),
        source,
        rejection: RejectionNote { at, reason: reason.into(), hint: None },
        sender: "192.0.2.1".into(),
        method: "POST".into(),
        url: "/in/stripe-live".into(),
        headers: b"x-a: 1\n".to_vec(),
        body: vec![0, 255, b'{'],
        body_bytes: 70_000,
        keep: 2,
    }
}

async fn listed(bed: &Bed) -> Vec<ReceiptId> {
    let all = RejectedFilter::since(time(0));
    let listed = bed.store.rejected_list(&all).await.unwrap();
    listed.into_iter().map(|rejected| rejected.id).collect()
}

async fn the_last_rejected_of_each_reason_are_kept(bed: Bed) {
    let mint = ReceiptMint::new();
    let other = bed.store.register_source("other", None).await.unwrap();
    let new = |n: i64, source, reason| rejected(&mint, source, time(NOON + n), reason);
    let mismatches: Vec<_> = (0..5).map(|n| new(n, bed.source, "signature_mismatch")).collect();
    let missing = new(5, bed.source, "missing_header");
    let elsewhere = new(6, other, "signature_mismatch");
    let expected = [&elsewhere, &missing, &mismatches[4], &mismatches[3]].map(|kept| kept.id);
    bed.store.note_activity(Vec::new(), vec![missing]).await.unwrap();
    for mismatch in mismatches {
        bed.store.note_activity(Vec::new(), vec![mismatch]).await.unwrap();
    }
    bed.store.note_activity(Vec::new(), vec![elsewhere]).await.unwrap();
    assert_eq!(listed(&bed).await, expected);
    let filter = RejectedFilter { source: Some(other), ..RejectedFilter::since(time(0)) };
    assert_eq!(bed.store.rejected_list(&filter).await.unwrap().len(), 1);
    let one = RejectedFilter { from: expected[2], to: expected[2], ..filter };
    let one = RejectedFilter { source: None, ..one };
    assert_eq!(bed.store.rejected_list(&one).await.unwrap().len(), 1);
}

async fn a_rejected_request_is_kept_whole(bed: Bed) {
    let request = rejected(&ReceiptMint::new(), bed.source, time(NOON), "missing_header");
    bed.store.note_activity(Vec::new(), vec![request.clone()]).await.unwrap();
    let kept = bed.store.rejected(request.id).await.unwrap().unwrap();
    assert_eq!(kept, Rejected { keep: 0, ..request.clone() });
    let nothing = Rejected { headers: Vec::new(), body: Vec::new(), ..kept };
    let all = RejectedFilter::since(time(0));
    assert_eq!(bed.store.rejected_list(&all).await.unwrap(), [nothing]);
    assert_eq!(bed.store.rejected(ReceiptId::floor(time(NOON))).await.unwrap(), None);
    // It is no receipt, and is never delivered.
    assert_eq!(bed.event_ids().await, [""; 0]);
    assert_eq!(bed.store.receipt(request.id).await.unwrap(), None);
}

async fn rejected_requests_are_gone_after_a_day(bed: Bed) {
    let mint = ReceiptMint::new();
    let kept: Vec<_> =
        [0, 10].map(|n| rejected(&mint, bed.source, time(NOON + n), "missing_header")).into();
    let ids: Vec<_> = kept.iter().map(|kept| kept.id).collect();
    bed.store.note_activity(Vec::new(), kept).await.unwrap();
    bed.store.fold(time(NOON + 86_400)).await.unwrap();
    assert_eq!(listed(&bed).await.len(), 2);
    bed.store.fold(time(NOON + 86_405)).await.unwrap();
    assert_eq!(listed(&bed).await, ids[1..]);
}

async fn what_happens_is_written_down_while_it_is_watched(bed: Bed) {
    assert!(!bed.store.is_watched().await.unwrap());
    bed.store.watch(Duration::from_secs(60)).await.unwrap();
    // Who watches for shorter does not send the other away.
    bed.store.watch(Duration::ZERO).await.unwrap();
    assert!(bed.store.is_watched().await.unwrap());

    let line = |n: i64, line: &str| Happening { no: 0, at: time(NOON + n), line: line.into() };
    bed.store.note_happenings(vec![line(1, "b"), line(0, "a")]).await.unwrap();
    bed.store.note_happenings(vec![line(1, "c")]).await.unwrap();
    let lines = async || -> Vec<String> {
        let lines = bed.store.happenings().await.unwrap();
        lines.into_iter().map(|happening| happening.line).collect()
    };
    assert_eq!(lines().await, ["a", "b", "c"]);
    let later = i64::try_from(limits::HAPPENINGS_KEPT.as_secs()).unwrap() + 1;
    bed.store.note_happenings(vec![line(later, "d")]).await.unwrap();
    assert_eq!(lines().await, ["b", "c", "d"]);
}
