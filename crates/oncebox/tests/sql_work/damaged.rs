//! A stored body that is no longer what arrived is given to no worker.

use oncebox::route::RouteRules;
use oncebox_testkit::store::Bed;

use crate::session::Session;

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_body_is_held_and_not_claimed() {
    let bed = Bed::postgres().await;
    let plain = RouteRules { pulled: true, ..RouteRules::default() };
    for (name, rules) in [("billing", plain), ("ledger", RouteRules { ordered: true, ..plain })] {
        let route = bed.route(name, rules).await;
        let events = [format!("{name}_1"), format!("{name}_2")];
        for event_id in &events {
            bed.due(event_id, &[route]).await;
        }
        bed.query(&format!("UPDATE receipts SET body = '{{}}' WHERE event_id = '{}'", events[0]));
        let session = Session::open(&bed).await;
        let claimed = session.claim(name, 10).await;
        let ids: Vec<_> = claimed.iter().map(|work| work.event_id.as_str()).collect();
        assert_eq!(ids, [events[1].as_str()]);
        let states = bed.states(&route).await;
        let expected = [format!("{name}_1 held:damaged"), format!("{name}_2 processing")];
        assert_eq!(states, expected);
        assert_eq!(session.claim(name, 10).await, []);
    }
    assert_eq!(bed.query("SELECT max(attempts) FROM deliveries WHERE state = 'held'"), "0");
}
