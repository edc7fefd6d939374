//! The workers in `examples/`, against a real server: an invoice is paid once, its customer is
//! unlocked, and one e-mail goes out, however often and in whatever order its events come.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use oncebox::clock::{Clock as _, SystemClock};
use oncebox_testkit::destination::Destination;
use oncebox_testkit::http;
use oncebox_testkit::postgres::{self, Database, execute, query};
use oncebox_testkit::process::{Home, ServerProcess};
use oncebox_testkit::wait;
use oncebox_verify::{Draft, Secret, catalogue, sign};

const SECRET: &str = "whsec_examples_0";

#[test]
fn the_python_worker_does_everything_once() {
    story(python);
}

#[test]
fn the_typescript_worker_does_everything_once() {
    story(typescript);
}

fn python() -> Command {
    let mut command = Command::new(place().join("python/bin/python"));
    command.arg(root().join("examples/python/worker.py"));
    command
}

fn typescript() -> Command {
    let mut command = Command::new("node");
    command.arg(place().join("typescript/dist/worker.js"));
    command
}

/// The attempt fails, and so does saying that. The lease will run out, and the worker goes on to
/// the next event.
#[test]
fn a_worker_outlives_a_retry_that_is_refused() {
    for worker in [python, typescript] {
        let shop = Shop::open();
        shop.post("evt_1", "invoice.paid", "in_1", 200);
        shop.post("evt_2", "invoice.paid", "in_2", 200);
        let finish = "oncebox.finish(text, bigint, text, text, interval)";
        let role = format!("{}_worker", shop.database.name());
        shop.look(&format!("REVOKE EXECUTE ON FUNCTION {finish} FROM {role}"));
        shop.run(worker());
        let under_way = "SELECT count(*) FROM oncebox.deliveries WHERE state = 'processing'";
        assert_eq!(shop.look(under_way), "2");
        assert_eq!(shop.look("SELECT count(*) FROM oncebox.effects"), "0");
    }
}

/// The handler takes longer than the lease, which is extended meanwhile.
#[test]
fn a_slow_handler_runs_once() {
    for worker in [python, typescript] {
        let shop = Shop::open();
        shop.before_update("in_1", "PERFORM pg_sleep(5)");
        shop.post("evt_1", "invoice.paid", "in_1", 200);
        shop.start(worker(), 2).end();
        let ended = "SELECT state, attempts, crashes FROM oncebox.finished WHERE attempts > 0
            ORDER BY receipt LIMIT 1";
        assert_eq!(shop.look(ended), "processed|1|0");
        assert_eq!(shop.look("SELECT invoice FROM public.emails"), "in_1");
    }
}

/// The lease was taken away under the work: nothing of it is kept, the worker says so, and the next
/// attempt does it.
#[test]
fn a_lost_lease_is_told_and_keeps_nothing() {
    for worker in [python, typescript] {
        let shop = Shop::open();
        shop.before_update(
            "in_1",
            "IF nextval('public.tries') = 1 THEN PERFORM pg_sleep(3); END IF",
        );
        shop.post("evt_1", "invoice.paid", "in_1", 200);
        let running = shop.start(worker(), 60);
        let sleeps = "SELECT last_value, is_called FROM public.tries";
        wait::until("the handler sleeps", || shop.look(sleeps) == "1|t");
        let over = "UPDATE oncebox.deliveries SET lease_until = now() - interval '1 second'";
        shop.look(over);
        let log = running.end();
        assert!(log.contains("lost"), "{log}");
        let under_way = "SELECT count(*) FROM oncebox.deliveries WHERE state = 'processing'";
        wait::until("the server takes it back", || shop.look(under_way) == "0");
        shop.run(worker());
        let ended = "SELECT state, attempts, failures, crashes FROM oncebox.finished
            WHERE attempts > 0 ORDER BY receipt LIMIT 1";
        assert_eq!(shop.look(ended), "processed|2|0|1");
        assert_eq!(shop.look("SELECT invoice FROM public.emails"), "in_1");
    }
}

/// Another transaction held a lock: ours is run again, and no attempt is spent on it.
#[test]
fn what_is_in_the_way_fails_no_attempt() {
    for worker in [python, typescript] {
        let shop = Shop::open();
        let act = "CASE nextval('public.tries')
             WHEN 1 THEN RAISE EXCEPTION USING ERRCODE = '40001';
             WHEN 2 THEN RAISE EXCEPTION USING ERRCODE = '40P01';
             WHEN 3 THEN RAISE EXCEPTION USING ERRCODE = 'OB425';
             ELSE NULL; END CASE";
        shop.before_update("in_1", act);
        shop.post("evt_1", "invoice.paid", "in_1", 200);
        shop.run(worker());
        let ended = "SELECT state, attempts, failures, snoozes FROM oncebox.finished
            WHERE attempts > 0 ORDER BY receipt LIMIT 1";
        assert_eq!(shop.look(ended), "processed|1|0|0");

        // An effect that stays open: the delivery comes back later, and has failed nothing.
        shop.look(
            "CREATE OR REPLACE FUNCTION public.act() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'OB425'; END $$",
        );
        shop.post("evt_2", "invoice.paid", "in_1", 300);
        shop.run(worker());
        let waits = "SELECT state, failures, snoozes, due_at > now() FROM oncebox.deliveries
            WHERE state = 'retrying'";
        assert_eq!(shop.look(waits), "retrying|0|1|t");
    }
}

/// A worker that is told to stop ends what it has begun and gives back the rest.
#[test]
fn a_worker_that_stops_gives_back_what_it_has_not_begun() {
    for worker in [python, typescript] {
        let shop = Shop::open();
        shop.before_update("in_1", "PERFORM nextval('public.tries'); PERFORM pg_sleep(2)");
        shop.post("evt_1", "invoice.paid", "in_1", 200);
        shop.post("evt_2", "invoice.paid", "in_2", 200);
        shop.post("evt_3", "invoice.paid", "in_3", 200);
        let running = shop.start(worker(), 30);
        let claimed = "SELECT count(*) FROM oncebox.deliveries WHERE state = 'processing'";
        let sleeps = "SELECT is_called FROM public.tries";
        wait::until("the handler sleeps", || shop.look(sleeps) == "t");
        assert_eq!(shop.look(claimed), "3", "all were due before the worker began");
        // What was lost meanwhile does not keep the worker from giving back the rest.
        shop.look(
            "UPDATE oncebox.deliveries AS d SET lease_until = now() - interval '1 second'
                FROM oncebox.receipts AS r WHERE r.id = d.receipt AND r.event_id = 'evt_2'",
        );
        let told = Command::new("kill").arg(running.0.id().to_string()).status().unwrap();
        assert!(told.success());
        running.end();
        let left = "SELECT r.event_id, d.state, d.attempts FROM oncebox.deliveries AS d
            JOIN oncebox.receipts AS r ON r.id = d.receipt WHERE r.event_id = 'evt_3'";
        assert_eq!(shop.look(left), "evt_3|received|0");
    }
}

/// What docs/effects.md shows of SQL, with a delivery and a lease put in.
#[test]
fn the_page_on_effects_works() {
    let shop = Shop::open();
    shop.post("evt_1", "invoice.paid", "in_456", 200);
    let page = std::fs::read_to_string(root().join("docs/effects.md")).unwrap();
    let (_, rest) = page.split_once("```sql\n").expect("a block of SQL");
    let (block, _) = rest.split_once("```").expect("its end");
    let (claim, work) = block.split_once("\n\n").expect("a claim, then the work");
    let claimed = query(&shop.worker_url, &claim.replace('*', "delivery, lease"));
    let (delivery, lease) = claimed.split_once('|').expect("a delivery and its lease");
    let work = work.replace("…delivery…", delivery).replace("123456", lease);
    let work = work.replace("invoices", "public.invoices");
    assert_eq!(query(&shop.worker_url, &work).lines().filter(|line| *line == "t").count(), 2);
    assert_eq!(shop.look("SELECT summary FROM oncebox.finished LIMIT 1"), "invoice in_456 paid");
    assert_eq!(shop.mailer.wait_for(1)[0].header("idempotency-key"), Some("receipt-email:in_456"));
}

#[test]
fn the_workers_stay_short() {
    for file in ["python/worker.py", "typescript/worker.ts"] {
        let text = std::fs::read_to_string(root().join("examples").join(file)).unwrap();
        assert!(text.lines().count() < 130, "{file} is no longer something to read in a minute");
    }
}

fn story(worker: impl Fn() -> Command) {
    let shop = Shop::open();
    // The same event twice, another that tells of the same payment, and one that is late.
    for (id, invoice, created) in [
        ("evt_1", "in_1", 200),
        ("evt_1", "in_1", 200),
        ("evt_2", "in_1", 300),
        ("evt_3", "in_1", 100),
        ("evt_4", "in_2", 200),
    ] {
        shop.post(id, "invoice.paid", invoice, created);
    }
    shop.post("evt_5", "invoice.voided", "in_2", 400);
    shop.run(worker());

    let failed = shop.look("SELECT detail FROM oncebox.deliveries WHERE state = 'retrying'");
    assert_eq!(failed, "");
    assert_eq!(
        shop.look("SELECT id || ' ' || state FROM public.invoices ORDER BY id"),
        "in_1 paid\nin_2 paid"
    );
    assert_eq!(shop.look("SELECT count(*) FROM public.customers WHERE locked"), "0");
    assert_eq!(shop.look("SELECT invoice FROM public.emails ORDER BY invoice"), "in_1\nin_2");
    let mails = shop.mailer.wait_for(2);
    let mut keys: Vec<_> = mails.iter().filter_map(|mail| mail.header("idempotency-key")).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["receipt-email:in_1", "receipt-email:in_2"]);
    let ended = "SELECT r.event_id || ' ' || f.state FROM oncebox.finished f
        JOIN oncebox.receipts r ON r.id = f.receipt WHERE r.event_type <> 'message' ORDER BY 1";
    let expected = "evt_1 processed\nevt_2 processed\nevt_3 skipped\nevt_4 processed";
    assert_eq!(shop.look(ended), expected);
    assert_eq!(shop.look("SELECT state FROM oncebox.deliveries WHERE state = 'dead'"), "dead");

    // A replay of everything runs the code again and repeats no effect.
    shop.oncebox(&["replay", "--route", "billing", "--state", "processed", "--force", "--yes"]);
    shop.run(worker());
    assert_eq!(shop.look("SELECT invoice FROM public.emails ORDER BY invoice"), "in_1\nin_2");
    assert_eq!(shop.mailer.requests().len(), 2);
}

/// A server, the tables of a service in the same database, and somebody who takes its mail.
struct Shop {
    database: Database,
    worker_url: String,
    home: Home,
    server: ServerProcess,
    mailer: Destination,
}

impl Shop {
    fn open() -> Self {
        let (database, home, mailer) =
            (postgres::shared().database(), Home::new(), Destination::start());
        let to = mailer.address();
        home.configure(
            database.url(),
            &format!(
                "[sources.stripe]\nprovider = \"stripe\"\nsecrets = [\"{SECRET}\"]\n\
                 [routes.billing]\nsources = [\"stripe\"]\npull = true\n\
                 [destinations.mailer]\nurl = \"http://{to}/mail\"\nallow_private = true\n\
                 secret = \"whsec_ZmF1bHRzLWZhdWx0cy1mYXVsdHMtZmF1bHRzLTA=\"\n"
            ),
        );
        let oncebox = Path::new(env!("CARGO_BIN_EXE_oncebox"));
        let server = ServerProcess::serve(oncebox, &home, [("NO_COLOR", "1")]);
        server.addresses();
        let role = format!("{}_worker", database.name());
        execute(
            database.url(),
            &format!(
                "CREATE TABLE public.invoices (id text PRIMARY KEY, state text NOT NULL);
                 CREATE TABLE public.customers (id text PRIMARY KEY, locked boolean NOT NULL);
                 CREATE TABLE public.emails (invoice text NOT NULL);
                 INSERT INTO public.invoices VALUES ('in_1', 'open'), ('in_2', 'open');
                 INSERT INTO public.customers VALUES ('cus_1', true);
                 CREATE ROLE {role} LOGIN PASSWORD 'worker';
                 GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO {role};
                 SELECT oncebox.allow('{role}', 'billing')"
            ),
        );
        let (_, rest) = database.url().split_once('@').expect("a user in the address");
        let worker_url = format!("postgres://{role}:worker@{rest}");
        Self { database, worker_url, home, server, mailer }
    }

    fn post(&self, id: &str, event_type: &str, invoice: &str, created: u32) {
        let body = format!(
            "{{\"id\":\"{id}\",\"object\":\"event\",\"type\":\"{event_type}\",\
             \"created\":{created},\"data\":{{\"object\":{{\"id\":\"{invoice}\",\
             \"customer\":\"cus_1\"}}}}}}"
        );
        let status = post_signed(self.server.addresses().public, body.into_bytes());
        assert!(status == 202 || status == 200, "{status}");
    }

    /// Runs a worker until nothing is due. Returns what it wrote to its log.
    fn run(&self, worker: Command) -> String {
        self.start(worker, 30).end()
    }

    /// Starts a worker with leases of so many seconds.
    fn start(&self, mut worker: Command, lease: u32) -> Running {
        let worker = worker.arg("--drain").env("DATABASE_URL", &self.worker_url);
        let worker = worker.env("LEASE_SECONDS", lease.to_string()).stderr(Stdio::piped());
        Running(worker.spawn().unwrap())
    }

    /// Has the update of an invoice do something before.
    fn before_update(&self, invoice: &str, act: &str) {
        self.look(&format!(
            "CREATE SEQUENCE public.tries;
             GRANT USAGE ON SEQUENCE public.tries TO PUBLIC;
             CREATE FUNCTION public.act() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN {act}; RETURN NEW; END $$;
             CREATE TRIGGER act BEFORE UPDATE ON public.invoices FOR EACH ROW
             WHEN (OLD.id = '{invoice}') EXECUTE FUNCTION public.act()"
        ));
    }

    fn oncebox(&self, args: &[&str]) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oncebox"));
        let output = command.args(args).arg("--config").arg(self.home.config()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn look(&self, sql: &str) -> String {
        query(self.database.url(), sql)
    }
}

/// A worker that runs.
struct Running(Child);

impl Running {
    /// Waits for its end. Returns what it wrote to its log.
    fn end(self) -> String {
        let output = self.0.wait_with_output().unwrap();
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{log}");
        log
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.server.kill();
        let role = format!("{}_worker", self.database.name());
        execute(self.database.url(), &format!("DROP OWNED BY {role}; DROP ROLE {role}"));
    }
}

fn post_signed(addr: SocketAddr, body: Vec<u8>) -> u16 {
    let draft = Draft {
        method: "POST".into(),
        url: "https://oncebox.test/in/stripe".into(),
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

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where the workers are made ready to run, once.
fn place() -> PathBuf {
    static READY: OnceLock<()> = OnceLock::new();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a target folder");
    READY.get_or_init(|| {
        let mut script = Command::new(root().join("scripts/ensure-examples"));
        let done = script.env("CARGO_TARGET_DIR", target).status().expect("a shell");
        assert!(done.success(), "scripts/ensure-examples failed");
    });
    target.join("examples")
}
