//! The same event many times at the same moment, through two servers.

use std::sync::Barrier;

use oncebox_testkit::http::Connection;

use crate::bed::{Bed, SECRET, body, receipt, signed_request};
use crate::checker::rows;

const COPIES: usize = 100;

#[test]
fn of_concurrent_copies_through_two_servers_one_is_accepted() {
    let bed = Bed::postgres();
    let mut servers = [bed.serve(), bed.serve()];
    let addrs = [servers[0].addresses().public, servers[1].addresses().public];

    let everybody = Barrier::new(COPIES);
    let answers: Vec<_> = std::thread::scope(|scope| {
        let send = |copy: usize| {
            let everybody = &everybody;
            move || {
                let mut connection = Connection::open(addrs[copy % 2]).expect("it listens");
                let request = signed_request(body("evt_many"), SECRET);
                everybody.wait();
                connection.send(&request).expect("it reads");
                connection.answer().expect("it answers")
            }
        };
        let senders: Vec<_> = (0..COPIES).map(|copy| scope.spawn(send(copy))).collect();
        senders.into_iter().map(|sender| sender.join().expect("no panic")).collect()
    });

    let with = |status| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!((with(202), with(200)), (1, COPIES - 1), "{answers:?}");
    let first = receipt(&answers[0]);
    assert!(answers.iter().all(|answer| receipt(answer) == first), "{answers:?}");

    // Counts of repeats are written down about once a second, and when a server ends.
    for server in &mut servers {
        server.terminate();
        assert!(server.wait().success());
    }
    let rows = rows(&bed.url);
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0].receipt, first);
    assert_eq!(rows[0].duplicates, 99, "{rows:?}");
}
