//! Versions that `advance` is given: of the unit that the object has.

use oncebox::receipt::Arrival;
use oncebox::route::RouteRules;
use oncebox::store::StoreError;
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, under};

for_each_store!(
    a_version_of_another_unit_than_the_watermark_is_refused,
    a_version_of_another_unit_than_the_event_is_refused,
    a_watermark_of_another_unit_than_the_event_is_replaced,
);

const MS: i64 = 1_760_000_000_000;

async fn a_version_of_another_unit_than_the_watermark_is_refused(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let claimed = bed.working_on("evt_1", &route).await;
    let advance = async |version| bed.store.advance(under(&claimed), "in_1", version).await;
    assert_eq!(advance(MS).await.unwrap(), Some(true));
    for (version, unit) in
        [(MS / 1000 + 60, "seconds"), (MS * 1000, "microseconds"), (MS * 1_000_000, "nanoseconds")]
    {
        let refused = advance(version).await.unwrap_err();
        let StoreError::Data(why) = refused else { panic!("{refused:?}") };
        assert!(why.contains(&format!("reads as {unit} since 1970")), "{why}");
        assert!(why.contains("milliseconds"), "{why}");
    }
    // What is no time is judged as ever.
    assert_eq!(advance(7).await.unwrap(), Some(false));
    assert_eq!(advance(MS - 1).await.unwrap(), Some(false));
    assert_eq!(advance(MS + 1).await.unwrap(), Some(true));
    assert_eq!(bed.query("SELECT applied FROM lanes"), (MS + 1).to_string());
}

/// The first word about an object is compared with the event itself.
async fn a_version_of_another_unit_than_the_event_is_refused(bed: Bed) {
    let rules = RouteRules { skip_stale: true, ..RouteRules::default() };
    let route = bed.route("billing", rules).await;
    let (object, version) = (Some("in_1".to_owned()), Some(MS));
    bed.send(Arrival { object, version, ..bed.event("evt_1", &[route]) }).await;
    let claimed = bed.take(&route).await;
    let advance = async |object, version| bed.store.advance(under(&claimed), object, version).await;
    assert!(matches!(advance("in_1", MS / 1000).await, Err(StoreError::Data(_))));
    assert_eq!(advance("in_1", MS).await.unwrap(), Some(true));
    assert_eq!(advance("another", MS / 1000).await.unwrap(), Some(true));
}

/// The event's own unit is the right one, also where the route guards no object.
async fn a_watermark_of_another_unit_than_the_event_is_replaced(bed: Bed) {
    let route = bed.route("billing", RouteRules::default()).await;
    let about = |id: &str, version| {
        let (object, version) = (Some("in_1".to_owned()), Some(version));
        Arrival { object, version, ..bed.event(id, &[route]) }
    };
    bed.record(vec![about("evt_1", MS), about("evt_2", MS + 60)]).await;
    let claimed = bed.take_all(&route).await;
    let advance = async |version| bed.store.advance(under(&claimed[1]), "in_1", version).await;
    let refused = advance(MS * 1000).await.unwrap_err();
    assert!(matches!(refused, StoreError::Data(_)), "{refused:?}");
    for wrong in [MS * 1000, MS / 1000] {
        let other = bed.working_on(&format!("about-{wrong}"), &route).await;
        bed.query("UPDATE lanes SET applied = NULL");
        assert_eq!(bed.store.advance(under(&other), "in_1", wrong).await.unwrap(), Some(true));
        assert_eq!(advance(MS + 60).await.unwrap(), Some(true));
        assert_eq!(bed.query("SELECT applied FROM lanes"), (MS + 60).to_string());
    }
    let older = bed.store.advance(under(&claimed[0]), "in_1", MS).await.unwrap();
    assert_eq!(older, Some(false), "of the same unit never back");
}
