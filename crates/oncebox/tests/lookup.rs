//! What people mean by an id.

use std::collections::BTreeSet;

use oncebox::lookup::{Meaning, look_up};
use oncebox::receipt::{Arrival, ReceiptId, Recorded, RouteNo};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, NOON, time};

for_each_store!(
    a_whole_id_means_itself,
    the_beginning_of_a_receipt_id_is_enough,
    an_event_id_needs_no_source,
    one_event_id_in_two_sources_is_told,
    the_beginning_of_an_event_id_is_enough,
    an_id_that_only_a_twin_has_is_found,
    what_has_expired_is_still_known,
    an_event_id_with_a_dot_names_no_route,
    a_beginning_in_a_source_counts_those_of_others,
);

async fn meaning(bed: &Bed, text: &str) -> Meaning {
    look_up(&*bed.store, text, None).await.unwrap()
}

/// The receipts that a text means; none if it means nothing.
async fn means(bed: &Bed, text: &str) -> BTreeSet<ReceiptId> {
    match meaning(bed, text).await {
        Meaning::Nothing => BTreeSet::new(),
        Meaning::One(named, _) => [named.receipt].into(),
        Meaning::Several(named) => named.into_iter().map(|named| named.receipt).collect(),
        Meaning::TooMany => panic!("`{text}` means too many"),
    }
}

async fn a_whole_id_means_itself(bed: Bed) {
    let one = bed.send(bed.arrival("evt_1", "{}")).await;
    let two = bed.send(bed.arrival("evt_2", "{}")).await;
    for id in [one, two] {
        assert_eq!(means(&bed, &id.to_string()).await, [id].into());
        let Meaning::One(named, route) = meaning(&bed, &format!("{id}.7")).await else { panic!() };
        assert_eq!((named.receipt, route), (id, Some(RouteNo(7))));
    }
    assert_eq!(meaning(&bed, "").await, Meaning::Nothing);
    assert_eq!(meaning(&bed, "0000c2f0-7e4a-7c3b-9d53-0242ac120002").await, Meaning::Nothing);
}

async fn the_beginning_of_a_receipt_id_is_enough(bed: Bed) {
    let one = bed.send(bed.arrival_at("evt_1", "{}", time(NOON))).await;
    let two = bed.send(bed.arrival_at("evt_2", "{}", time(NOON + 60))).await;
    let (text, both) = (one.to_string(), [one, two].into());
    assert_eq!(means(&bed, &text[..13]).await, [one].into());
    assert_eq!(means(&bed, &text[..18].replace('-', "")).await, [one].into());
    assert_eq!(means(&bed, &format!("{}…", &text[..20])).await, [one].into());
    assert_eq!(means(&bed, &text[..4]).await, both);
    assert_eq!(means(&bed, "ffff").await, [].into());
}

async fn an_event_id_needs_no_source(bed: Bed) {
    let one = bed.send(bed.arrival("evt_1", "{}")).await;
    let ten = bed.send(bed.arrival("evt_10", "{}")).await;
    // What is written in full wins over what begins so.
    assert_eq!(means(&bed, "evt_1").await, [one].into());
    assert_eq!(means(&bed, "evt_10").await, [ten].into());
    assert_eq!(meaning(&bed, "evt_9").await, Meaning::Nothing);
    // A conflict is shown with the first.
    let conflict = bed.arrival("evt_1", "another body");
    bed.record(vec![conflict]).await;
    assert_eq!(means(&bed, "evt_1").await, [one].into());
}

async fn one_event_id_in_two_sources_is_told(bed: Bed) {
    let live = bed.send(bed.arrival("evt_1", "{}")).await;
    let source = bed.store.register_source("stripe-test", None).await.unwrap();
    let test = bed.send(Arrival { source, ..bed.arrival("evt_1", "{}") }).await;
    assert_eq!(means(&bed, "evt_1").await, [live, test].into());
    let found = look_up(&*bed.store, "evt_1", Some("stripe-test")).await.unwrap();
    assert!(matches!(found, Meaning::One(named, None) if named.receipt == test));
    let nowhere = look_up(&*bed.store, "evt_1", Some("nowhere")).await.unwrap();
    assert_eq!(nowhere, Meaning::Nothing);
}

async fn the_beginning_of_an_event_id_is_enough(bed: Bed) {
    let a = bed.send(bed.arrival("evt_1MqqbKzzAAA", "{}")).await;
    let b = bed.send(bed.arrival("evt_1MqqbKzzBBB", "{}")).await;
    let c = bed.send(bed.arrival("8c1f-a-plain-id", "{}")).await;
    assert_eq!(means(&bed, "evt_1MqqbKzzA").await, [a].into());
    assert_eq!(means(&bed, "evt_1M").await, [a, b].into());
    assert_eq!(means(&bed, "ev").await, [a, b].into());
    assert_eq!(means(&bed, "8c1f-a-pl").await, [c].into());
    assert_eq!(means(&bed, "8c1f").await, [c].into());
    assert_eq!(means(&bed, "evt_%").await, [].into());
    assert_eq!(means(&bed, "evt*").await, [].into());
}

async fn an_id_that_only_a_twin_has_is_found(bed: Bed) {
    let guard = Some([7; 32]);
    let first = Arrival { guard, ..bed.arrival("id-1", "{}") };
    let receipt = first.receipt;
    let twin = Arrival { guard, ..bed.arrival("id-2", "{}") };
    let of_twin = twin.receipt;
    bed.record(vec![first]).await;
    assert_eq!(bed.record(vec![twin]).await, [Recorded::Twin { first: receipt }]);
    assert_eq!(bed.store.identity(bed.source, "id-2").await.unwrap(), None);
    assert_eq!(means(&bed, "id-2").await, [of_twin].into());
    assert_eq!(means(&bed, "id-1").await, [receipt].into());
    assert_eq!(means(&bed, "id-").await, [receipt, of_twin].into());
}

async fn what_has_expired_is_still_known(bed: Bed) {
    let keys = vec![oncebox::identity::IdentityKey::of_event("evt_1")];
    bed.store.remember(bed.source, keys, time(NOON)).await.unwrap();
    let Meaning::One(named, None) = meaning(&bed, "evt_1").await else { panic!() };
    assert_eq!((named.source.as_str(), named.event), ("stripe-live", None));
}

async fn an_event_id_with_a_dot_names_no_route(bed: Bed) {
    let id = bed.send(bed.arrival("1700000000.123456", "{}")).await;
    for text in ["1700000000.123456", "1700000000.12", "1700000000.1"] {
        let Meaning::One(named, route) = meaning(&bed, text).await else { panic!("{text}") };
        assert_eq!((named.receipt, route), (id, None), "{text}");
    }
    let begin = &id.to_string()[..18];
    let Meaning::One(named, route) = meaning(&bed, &format!("{begin}.3")).await else { panic!() };
    assert_eq!((named.receipt, route), (id, Some(RouteNo(3))));
}

async fn a_beginning_in_a_source_counts_those_of_others(bed: Bed) {
    let other = bed.store.register_source("other", None).await.unwrap();
    let old = bed.send(bed.arrival_at("evt_1", "{}", time(NOON))).await;
    bed.send(bed.arrival_at("evt_2", "{}", time(NOON + 1))).await;
    for number in 0..oncebox::limits::CANDIDATES - 1 {
        let arrival = bed.arrival_at(&format!("other_{number}"), "{}", time(NOON + 2));
        bed.send(Arrival { source: other, ..arrival }).await;
    }
    let begin = &old.to_string()[..6];
    let in_source = async |name| look_up(&*bed.store, begin, Some(name)).await.unwrap();
    assert_eq!(in_source("stripe-live").await, Meaning::TooMany);
    assert_eq!(in_source("nowhere").await, Meaning::TooMany);
    let Meaning::Several(found) = in_source("other").await else { panic!() };
    assert_eq!(found.len(), oncebox::limits::CANDIDATES - 1);
}
