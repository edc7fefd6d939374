//! The shop as its customers and Stripe see it, killed now and then.

use std::net::SocketAddr;
use std::path::Path;

use oncebox::clock::{Clock as _, SystemClock};
use oncebox_testkit::destination::Destination;
use oncebox_testkit::http;
use oncebox_testkit::process::ServerProcess;
use oncebox_testkit::store::query;
use oncebox_testkit::wait;
use oncebox_verify::{Draft, Secret, catalogue, sign};
use tempfile::TempDir;

const SECRET: &str = "whsec_orders_0";

#[test]
fn goods_leave_the_stock_once_and_one_receipt_is_mailed() {
    let mut shop = Shop::open();
    for n in 0..40 {
        let order = format!("o{n}");
        shop.order(&order);
        // Twice the same, another that tells of the same payment, and every fourth is given back:
        // the refund comes before the last word about the payment.
        shop.post(&format!("evt_{n}"), "checkout.session.completed", &order, 100);
        shop.post(&format!("evt_{n}"), "checkout.session.completed", &order, 100);
        if n % 4 == 0 {
            shop.post(&format!("evt_{n}_back"), "charge.refunded", &order, 300);
        }
        shop.post(&format!("evt_{n}_again"), "checkout.session.completed", &order, 200);
        if n % 10 == 5 {
            shop.kill_and_restart();
        }
    }
    wait::until("everything is done", || shop.look("SELECT count(*) FROM deliveries") == "0");

    assert_eq!(shop.look("SELECT left FROM stock"), (1000 - 2 * 30).to_string());
    assert_eq!(shop.look("SELECT count(*) FROM orders WHERE state = 'paid'"), "30");
    assert_eq!(shop.look("SELECT count(*) FROM orders WHERE state = 'refunded'"), "10");
    let mut keys: Vec<String> = shop
        .mailer
        .requests()
        .iter()
        .map(|mail| mail.header("idempotency-key").expect("it has a key").to_owned())
        .collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 50, "a receipt each, and ten refunds");
    let order = http::get(shop.address, "/orders/o1").expect("an answer").json();
    assert_eq!(order["state"], "paid");
}

#[test]
fn what_was_paid_before_it_was_ordered_waits_for_the_order() {
    let shop = Shop::open();
    shop.post("evt_1", "checkout.session.completed", "early", 100);
    wait::until("it has been tried", || {
        shop.look("SELECT detail FROM deliveries") == "its order has not been placed yet"
    });
    shop.order("early");
    wait::until("it is paid", || {
        shop.look("SELECT state FROM orders WHERE id = 'early'") == "paid"
    });
}

/// The service in a folder of its own, and somebody who takes its mail.
struct Shop {
    folder: TempDir,
    mailer: Destination,
    process: ServerProcess,
    address: SocketAddr,
}

impl Shop {
    fn open() -> Self {
        let (folder, mailer) = (tempfile::tempdir().unwrap(), Destination::start());
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("orders.toml");
        let config = std::fs::read_to_string(config).unwrap();
        let config = config
            .replace("127.0.0.1:3025", &mailer.address().to_string())
            .replace("sqlite://orders.db", &store(folder.path()));
        std::fs::write(folder.path().join("orders.toml"), config).unwrap();
        let (process, address) = start(folder.path());
        Self { folder, mailer, process, address }
    }

    fn kill_and_restart(&mut self) {
        self.process.kill();
        (self.process, self.address) = start(self.folder.path());
    }

    fn order(&self, id: &str) {
        let body = format!("{{\"id\":\"{id}\",\"sku\":\"mug\",\"quantity\":2}}");
        let json = [("content-type", "application/json")];
        let answer = http::post(self.address, "/orders", &json, body.as_bytes());
        assert_eq!(answer.expect("an answer").status, 201);
    }

    fn post(&self, id: &str, event_type: &str, order: &str, created: u32) {
        let body = format!(
            "{{\"id\":\"{id}\",\"object\":\"event\",\"type\":\"{event_type}\",\
             \"created\":{created},\"data\":{{\"object\":{{\"id\":\"obj_{id}\",\
             \"metadata\":{{\"order\":\"{order}\"}}}}}}}}"
        );
        let status = post_signed(self.address, body.into_bytes());
        assert!(status == 202 || status == 200, "{status}");
    }

    fn look(&self, sql: &str) -> String {
        query(&store(self.folder.path()), sql)
    }
}

fn store(folder: &Path) -> String {
    format!("sqlite://{}", folder.join("orders.db").display())
}

fn start(folder: &Path) -> (ServerProcess, SocketAddr) {
    let binary = Path::new(env!("CARGO_BIN_EXE_orders"));
    let envs = [("STRIPE_SECRET", SECRET), ("LISTEN", "127.0.0.1:0")];
    let process = ServerProcess::spawn(binary, [folder.join("orders.toml")], envs);
    let address = process
        .wait_for("its address", |line| line.strip_prefix("listening on ")?.trim().parse().ok());
    (process, address)
}

fn post_signed(addr: SocketAddr, body: Vec<u8>) -> u16 {
    let draft = Draft {
        method: "POST".into(),
        url: "https://shop.test/in/stripe".into(),
        headers: ::http::HeaderMap::new(),
        body,
    };
    let stripe = catalogue::find("stripe").expect("stripe is in the catalogue");
    let signed = sign(stripe, &Secret::new(SECRET), draft, SystemClock.now()).expect("signed");
    let headers: Vec<(&str, &str)> = signed
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().expect("signatures are text")))
        .collect();
    http::post(addr, "/in/stripe", &headers, &signed.body).expect("an answer").status
}
