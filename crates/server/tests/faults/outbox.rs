//! What a handler wrote reaches its destination, whatever happens to the relay.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use oncebox::effect::{Message, Sent};
use oncebox::route::RouteRules;
use oncebox::store::{Claim, Purpose, Wanted, open};
use oncebox_testkit::destination::{Behaviour, Destination, Received};
use oncebox_testkit::store::{grouped, message, pass, query, under};
use oncebox_testkit::wait;
use tokio::runtime::Runtime;

use crate::bed::{Bed, ROUTE, SOURCE, post};
use crate::chance::{Chance, rounds};

/// Longer than any lease, in seconds.
const PAST_ANY_LEASE: u32 = 120;

impl Bed {
    /// Writes a configuration with the destination `mailer`, and a route for those who write to
    /// it.
    fn mail_to(&self, destination: &Destination) {
        let to = destination.address();
        self.configure_routes(&format!(
            "[routes.{ROUTE}]\nsources = [\"{SOURCE}\"]\npull = true\n\
             [destinations.mailer]\nurl = \"http://{to}/\"\nallow_private = true\n\
             secret = \"whsec_ZmF1bHRzLWZhdWx0cy1mYXVsdHMtZmF1bHRzLTA=\"\n\
             retry = {{ max_attempts = 1000, base = \"10ms\", cap = \"100ms\" }}\n"
        ));
    }

    /// Writes messages as a handler does, while no server runs.
    fn write(&self, messages: &[Message]) {
        // It makes the destination known, and takes the event that the handler works on.
        let mut server = self.serve();
        assert_eq!(post(server.addresses().public, "evt_cause").status, 202);
        server.terminate();
        assert!(server.wait().success());
        Runtime::new().unwrap().block_on(async {
            let store = open(&self.url, Purpose::Serve).await.unwrap();
            let routes = store.routes().await.unwrap();
            let route = routes.iter().find(|view| view.name == ROUTE).unwrap().route;
            let wanted = vec![Wanted::new(route, 1, RouteRules::default())];
            let lease = Duration::from_secs(600);
            let claim = Claim { wanted, lease, worker: "handler".into() };
            let handler = store.claim(&claim).await.unwrap().claimed.remove(0);
            for message in messages {
                let sent = store.send(under(&handler), message).await.unwrap();
                assert!(matches!(sent, Sent::New(_)), "{sent:?}");
            }
            store.close().await;
        });
    }

    /// How many messages are through.
    fn sent(&self) -> usize {
        let sql = "SELECT count(*) FROM finished AS f JOIN routes AS t ON t.no = f.route
                   WHERE t.name = 'outbox/mailer' AND f.state = 'processed'";
        query(&self.url, sql).parse().expect("a count")
    }
}

#[test]
fn a_relay_killed_between_the_send_and_its_record_sends_the_same_key_again_on_sqlite() {
    killed_before_the_record(&Bed::sqlite());
}

#[test]
fn a_relay_killed_between_the_send_and_its_record_sends_the_same_key_again_on_postgres() {
    killed_before_the_record(&Bed::postgres());
}

/// The destination has taken the message, and nobody has written that down.
fn killed_before_the_record(bed: &Bed) {
    let destination = Destination::start();
    bed.mail_to(&destination);
    bed.write(&[message("mailer", "receipt-email:in_1", "{\"to\":\"ada\"}")]);
    destination.next(Behaviour::Hang);
    let mut server = bed.serve();
    destination.wait_for(1);
    server.kill();

    pass(&bed.url, PAST_ANY_LEASE);
    let server = bed.serve();
    wait::until("the message is through", || bed.sent() == 1);
    let [first, second] = <[Received; 2]>::try_from(destination.requests()).expect("two requests");
    assert_eq!(first.header("idempotency-key"), Some("receipt-email:in_1"));
    for name in ["idempotency-key", "webhook-id", "oncebox-cause", "content-type"] {
        assert!(first.header(name).is_some(), "{name}");
        assert_eq!(first.header(name), second.header(name), "{name}");
    }
    assert_eq!(first.body, second.body);
    assert_eq!(second.header("oncebox-attempt"), Some("2"));
    let of_mailer = "SELECT a.number, a.outcome FROM attempts AS a
                     JOIN routes AS t ON t.no = a.route WHERE t.name = 'outbox/mailer'";
    assert_eq!(query(&bed.url, of_mailer), "1|lost");
    assert_eq!(query(&bed.url, "SELECT count(*) FROM receipts"), "2", "the event and the message");
    assert_eq!(query(&bed.url, "SELECT key, state FROM effects"), EFFECT);
    drop(server);
}

const EFFECT: &str = "outbox/mailer/receipt-email:in_1|done";

#[test]
fn a_relay_killed_again_and_again_delivers_every_message_in_order_on_sqlite() {
    killed_again_and_again(&Bed::sqlite());
}

#[test]
fn a_relay_killed_again_and_again_delivers_every_message_in_order_on_postgres() {
    killed_again_and_again(&Bed::postgres());
}

/// Groups of messages, and some without one, through a relay that dies at any moment: each key
/// comes at least once with its own bytes, no other key comes, and no group is overtaken.
fn killed_again_and_again(bed: &Bed) {
    let destination = Destination::start();
    bed.mail_to(&destination);
    let kills = rounds(5, 50);
    let all: Vec<Message> = (0..kills * 60).map(numbered).collect();
    bed.write(&all);
    let mut chance = Chance::new();
    for _ in 0..kills {
        let mut server = bed.serve();
        let (seen, more) = (destination.requests().len(), chance.between(1..60));
        wait::until("some more messages came", || {
            destination.requests().len() >= seen + more || bed.sent() == all.len()
        });
        chance.spin();
        server.kill();
        pass(&bed.url, PAST_ANY_LEASE);
    }
    let server = bed.serve();
    wait::until("every message is through", || bed.sent() == all.len());
    drop(server);

    let bodies: BTreeMap<String, Vec<u8>> =
        all.iter().map(|one| (one.key.to_string(), one.payload.to_vec())).collect();
    let mut came = BTreeSet::new();
    let mut reached: BTreeMap<String, i64> = BTreeMap::new();
    for request in destination.requests() {
        let key = request.header("idempotency-key").expect("a key").to_owned();
        assert_eq!(Some(&request.body), bodies.get(&key), "{key}");
        if let Some(group) = request.header("oncebox-group") {
            let number = request.header("oncebox-sequence").expect("a number").parse().unwrap();
            let before = reached.insert(group.to_owned(), number).unwrap_or(0);
            assert!((before..=before + 1).contains(&number), "{group}: {number} after {before}");
        }
        came.insert(key);
    }
    assert!(came.iter().eq(bodies.keys()), "every key, and no other");
    println!("{} requests for {} messages", destination.requests().len(), all.len());
}

/// Every fourth message has no group; the others are of five.
fn numbered(number: usize) -> Message {
    let one = message("mailer", &format!("mail:{number}"), &format!("{{\"n\":{number}}}"));
    match number % 4 {
        0 => one,
        _ => grouped(one, &format!("group-{}", number % 5)),
    }
}
