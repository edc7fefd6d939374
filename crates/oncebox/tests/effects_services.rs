//! Keys of effects, told apart by the service whose workers a route has.

use oncebox::effect::{Begun, Settled};
use oncebox::route::RouteRules;
use oncebox::store::StoreError;
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::{Bed, key, step, under};

for_each_store!(
    services_do_not_share_keys,
    a_service_is_fixed_when_its_route_is_made,
    a_route_with_effects_gets_no_service,
    keys_are_the_same_over_a_replay,
);

const REFUND: &str = "refund:ch_1";

async fn services_do_not_share_keys(bed: Bed) {
    let mut claimed = Vec::new();
    for (name, service) in [("a", "shop"), ("b", "shop"), ("c", "books"), ("d", "")] {
        let route = bed.route(name, RouteRules::default()).await;
        bed.store.assign_service(route.no, service).await.unwrap();
        claimed.push(bed.working_on(&format!("evt_{name}"), &route).await);
    }
    let key_of = async |number: usize| match bed.begin(&claimed[number], &key(REFUND)).await {
        Begun::Yours { key, .. } => key,
        other => panic!("{other:?}"),
    };
    assert_eq!(key_of(0).await, "@shop/refund:ch_1");
    let busy = bed.begin(&claimed[1], &key(REFUND)).await;
    assert!(matches!(busy, Begun::Busy(_)), "{busy:?}");
    assert_eq!(key_of(2).await, "@books/refund:ch_1");
    assert_eq!(key_of(3).await, "refund:ch_1");
    let done = bed.store.complete_effect(under(&claimed[0]), &key(REFUND), Some("1")).await;
    assert_eq!(done.unwrap(), Settled::Done);
    let found = bed.store.effect("@shop/refund:ch_1").await.unwrap().expect("it is done");
    assert_eq!(found.delivery, claimed[0].delivery);
    // No service can name the key of another.
    let refused = bed.store.begin_effect(under(&claimed[3]), &key("@shop/x"), <_>::default()).await;
    assert!(matches!(refused, Err(StoreError::Data(_))), "{refused:?}");
    // A step is of its delivery alone, and has no service.
    match bed.begin(&claimed[0], &step("charge")).await {
        Begun::Yours { key, .. } => assert!(!key.starts_with('@'), "{key}"),
        other => panic!("{other:?}"),
    }
}

async fn a_service_is_fixed_when_its_route_is_made(bed: Bed) {
    let route = bed.route("orders", RouteRules::default()).await;
    bed.store.assign_service(route.no, "shop").await.unwrap();
    bed.store.assign_service(route.no, "shop").await.unwrap();
    for other in ["", "books"] {
        let refused = bed.store.assign_service(route.no, other).await.unwrap_err();
        let StoreError::Unfit { problem, hint } = refused else { panic!("{refused:?}") };
        assert!(problem.contains("`service = \"shop\"`"), "{problem}");
        assert!(hint.contains("new route"), "{hint}");
    }
    let plain = bed.route("plain", RouteRules::default()).await;
    bed.store.assign_service(plain.no, "").await.unwrap();
    assert!(bed.store.assign_service(plain.no, "shop").await.is_err());
}

/// A service in Rust has made the route and done effects under bare keys: under a service they
/// would happen again.
async fn a_route_with_effects_gets_no_service(bed: Bed) {
    let route = bed.route("orders", RouteRules::default()).await;
    let claimed = bed.working_on("evt_1", &route).await;
    bed.begin(&claimed, &step("charge")).await;
    let untouched = bed.route("untouched", RouteRules::default()).await;
    bed.store.assign_service(untouched.no, "shop").await.unwrap();

    bed.begin(&claimed, &key(REFUND)).await;
    let refused = bed.store.assign_service(route.no, "shop").await.unwrap_err();
    assert!(matches!(refused, StoreError::Unfit { .. }), "{refused:?}");
    bed.store.assign_service(route.no, "").await.unwrap();
}

async fn keys_are_the_same_over_a_replay(bed: Bed) {
    use oncebox::delivery::Next;
    use oncebox::replay::{How, ReplayFilter};

    let route = bed.route("orders", RouteRules::default()).await;
    bed.store.assign_service(route.no, "shop").await.unwrap();
    let claimed = bed.working_on("evt_1", &route).await;
    bed.begin(&claimed, &key(REFUND)).await;
    bed.store.complete_effect(under(&claimed), &key(REFUND), None).await.unwrap();
    assert!(bed.finish(&claimed, Next::Processed).await);
    bed.store.register_route("orders-2", Some("orders"), &route.rules).await.unwrap();
    let filter = ReplayFilter { receipts: vec![claimed.delivery.receipt], ..<_>::default() };
    bed.replay(filter, How { force: true, ignore_stale: false }).await;
    let again = bed.take(&route).await;
    let found = bed.begin(&again, &key(REFUND)).await;
    assert!(matches!(found, Begun::Done(_)), "{found:?}");
}
