//! What the guards cannot judge for want of a version is told.

use oncebox::delivery::Outcome;
use oncebox::receipt::Arrival;
use oncebox::route::RouteRules;
use oncebox::worker::{Report, Worker, WorkerOptions};
use oncebox_testkit::for_each_store;
use oncebox_testkit::store::Bed;

use crate::bed::{Destination, Notes, options, work, work_off};

for_each_store!(what_has_no_version_is_told_once);

/// At its first attempt, and only where its route guards its object.
async fn what_has_no_version_is_told_once(bed: Bed) {
    let guarding = RouteRules { skip_stale: true, ..RouteRules::default() };
    let guarded = bed.route("guarded", guarding).await;
    let plain = bed.route("plain", RouteRules::default()).await;
    let destination = Destination::new();
    destination.answer([Report::of(Outcome::Retry { after: None })]);
    let about = |id: &str, version| {
        let object = Some(id.to_owned());
        Arrival { object, version, ..bed.event(id, &[guarded, plain]) }
    };
    bed.send(about("without", None)).await;
    bed.send(about("with", Some(1))).await;
    bed.due("about-nothing", &[guarded]).await;
    let notes = Notes::new();
    let options = WorkerOptions { observer: notes.clone(), ..options() };
    let routes = vec![work(guarded, "guarded", &destination), work(plain, "plain", &destination)];
    let worker = Worker::by_hand(bed.store.clone(), routes, options);
    work_off(&worker).await;
    bed.pass(60);
    work_off(&worker).await;
    assert_eq!(bed.rows("finished"), 5);
    let mut told = notes.lines();
    told.retain(|line| line.ends_with("unversioned"));
    assert_eq!(told, ["guarded without unversioned"]);
}
