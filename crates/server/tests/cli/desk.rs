//! A store with deliveries in every state that an operator acts on.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use oncebox::delivery::{Ending, Next};
use oncebox::receipt::{Arrival, ReceiptId, ReceiptMint, RouteNo, Taker, encode_headers};
use oncebox::route::RouteRules;
use oncebox::store::{Claim, Finish, Purpose, Store, Wanted, open};
use oncebox_testkit::process::ServerProcess;
use oncebox_testkit::wait::DEADLINE;
use oncebox_verify::{SampleEvent, Secret, Trust, sample, sign};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::bed::{Run, SECRET, noon, oncebox_in, provider};

const CONFIG: &str = r#"
[store]
url = "sqlite://inbox.db"

# The events are as old as the time the tests stand at.
[retention]
payloads = "9999d"
identities = "9999d"

[sources.shop]
provider = "stripe"
secrets = ["env:CANARY"]

[routes.billing]
sources = ["shop"]
events = ["invoice.*"]
pull = true

[routes.mail]
sources = ["shop"]
events = ["customer.*", "invoice.paid"]
pull = true

[routes.later]
sources = ["shop"]
pull = true
"#;

/// A folder with a configuration and a store. The route `billing` has a dead delivery, of
/// `evt_dead`, and one that is processed, of `evt_done`; it was never asked about
/// `evt_unrouted`. `mail` is known and took nothing; `later` is configured and not yet known.
pub(crate) struct Desk {
    dir: TempDir,
    pub(crate) billing: RouteNo,
    pub(crate) dead: ReceiptId,
    pub(crate) done: ReceiptId,
    pub(crate) unrouted: ReceiptId,
    /// Another body under the identity of `evt_done`, held as a conflict.
    pub(crate) conflict: ReceiptId,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self::with_customers(0)
    }

    /// With that many more events that no route took and `mail` takes.
    pub(crate) fn with_customers(more: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("oncebox.toml"), CONFIG).unwrap();
        tokio::runtime::Runtime::new().unwrap().block_on(fill(dir, more))
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        oncebox_in(self.dir.path(), args, b"")
    }

    /// Starts a command that takes its time.
    pub(crate) fn start(&self, args: &[&str]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_oncebox"));
        command.args(args).current_dir(self.dir.path()).env("CANARY", SECRET);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// Starts a server over the store.
    pub(crate) fn serve(&self) -> ServerProcess {
        let config = self.dir.path().join("oncebox.toml");
        let store = format!("sqlite://{}", self.dir.path().join("inbox.db").display());
        let anywhere = "127.0.0.1:0".to_owned();
        let variables = [
            ("ONCEBOX__SERVER__LISTEN", anywhere.clone()),
            ("ONCEBOX__SERVER__ADMIN_LISTEN", anywhere),
            ("ONCEBOX__STORE__URL", store),
            ("CANARY", SECRET.to_owned()),
        ];
        let args = [OsStr::new("serve"), OsStr::new("--config"), config.as_os_str()];
        let binary = Path::new(env!("CARGO_BIN_EXE_oncebox"));
        let server = ServerProcess::spawn(binary, args, variables);
        server.addresses();
        server
    }

    /// Makes every lease on a replay run out, and lets whoever takes it hurry.
    pub(crate) fn expire_leases(&self) {
        let database = rusqlite::Connection::open(self.dir.path().join("inbox.db")).unwrap();
        database.busy_timeout(DEADLINE).unwrap();
        database.execute("UPDATE replays SET lease_until = 0, rate = NULL", []).unwrap();
    }

    /// The delivery of a receipt to `billing`, as lists name it.
    pub(crate) fn delivery(&self, receipt: ReceiptId) -> String {
        format!("{receipt}.{}", self.billing.0)
    }

    /// `state` or `state:reason` of a receipt's deliveries, by route.
    #[track_caller]
    pub(crate) fn states(&self, receipt: ReceiptId) -> Vec<String> {
        let run = self.run(&["deliveries", "list", "--all", "--json"]).exits(0);
        let all = run.json();
        let mut states: Vec<_> = all
            .iter()
            .filter(|row| row["receipt"] == receipt.to_string())
            .map(|row| match &row["reason"] {
                Value::String(reason) => {
                    format!("{} {}:{reason}", text(row, "route"), text(row, "state"))
                }
                _ => format!("{} {}", text(row, "route"), text(row, "state")),
            })
            .collect();
        states.sort();
        states
    }

    /// What operators did, newest first: `act subject why`.
    #[track_caller]
    pub(crate) fn acts(&self) -> Vec<String> {
        let acts = self.run(&["audit", "list", "--json"]).exits(0).json();
        acts.iter().map(|act| format!("{} by {}", text(act, "act"), text(act, "who"))).collect()
    }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object[field].as_str().unwrap_or_else(|| panic!("no text {field} in {object}"))
}

async fn fill(dir: TempDir, more: usize) -> Desk {
    let url = format!("sqlite://{}", dir.path().join("inbox.db").display());
    let store = open(&url, Purpose::Serve).await.unwrap();
    let source = store.register_source("shop", None).await.unwrap();
    let billing = store.register_route("billing", None, &RouteRules::default()).await.unwrap();
    store.register_route("mail", None, &RouteRules::default()).await.unwrap();
    let mint = ReceiptMint::new();
    let event = |id: &str, event_type: &str, object: &str, takers: &[RouteNo]| {
        let stripe = provider("stripe");
        let event = SampleEvent { id, event_type, at: noon(), object: Some(object) };
        let draft = sign(stripe, &Secret::new(SECRET), sample(stripe, &event), noon()).unwrap();
        let digest: [u8; 32] = Sha256::digest(&draft.body).into();
        Arrival {
            receipt: mint.mint(noon()),
            source,
            received_at: noon(),
            event_id: id.to_owned(),
            trust: Trust::Signed,
            event_type: event_type.to_owned(),
            object: Some(object.to_owned()),
            version: Some(7),
            secret: oncebox::receipt::SecretNo(1),
            signed_at: Some(noon()),
            headers: encode_headers(&draft.headers),
            body: Bytes::from(draft.body),
            digest,
            content: digest,
            guard: None,
            odd_rules: Default::default(),
            has_room: true,
            is_defective: false,
            takers: takers.iter().copied().map(Taker::plain).collect(),
            part: None,
        }
    };
    let dead = event("evt_dead", "invoice.paid", "in_1", &[billing]);
    let done = event("evt_done", "invoice.paid", "in_2", &[billing]);
    let unrouted = event("evt_unrouted", "customer.created", "cus_1", &[]);
    let conflict = event("evt_done", "invoice.voided", "in_2", &[billing]);
    let [dead, done, unrouted, conflict] = [dead, done, unrouted, conflict];
    let ids = [dead.receipt, done.receipt, unrouted.receipt, conflict.receipt];
    store.record(vec![dead].into()).await.unwrap();
    finish(&store, billing, Next::Dead).await;
    store.record(vec![done].into()).await.unwrap();
    finish(&store, billing, Next::Processed).await;
    store.record(vec![unrouted].into()).await.unwrap();
    store.record(vec![conflict].into()).await.unwrap();
    for number in 0..more {
        let customer = event(&format!("evt_{number}"), "customer.created", "cus_2", &[]);
        store.record(vec![customer].into()).await.unwrap();
    }
    store.close().await;
    let [dead, done, unrouted, conflict] = ids;
    Desk { dir, billing, dead, done, unrouted, conflict }
}

/// Claims what is due and ends it.
async fn finish(store: &Arc<dyn Store>, route: RouteNo, next: Next) {
    let wanted = vec![Wanted::new(route, 1, RouteRules::default())];
    let claim = Claim { wanted, lease: Duration::from_secs(60), worker: "w".into() };
    let claimed = store.claim(&claim).await.unwrap().claimed.remove(0);
    let ending = Ending {
        delivery: claimed.delivery,
        lease: claimed.lease,
        next,
        took: Duration::from_millis(12),
        status: Some(500),
        detail: Some("out of order \x1b[2J".to_owned()),
        summary: None,
        guarded: claimed.guarded,
    };
    assert_eq!(store.finish(vec![ending]).await.unwrap(), [Finish::Done]);
}
