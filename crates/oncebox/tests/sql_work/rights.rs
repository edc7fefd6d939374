//! Least privilege: a role that may call what is meant to be called, and touch nothing else.

use oncebox::delivery::Next;
use oncebox::route::RouteRules;
use oncebox_testkit::store::Bed;

use super::session::Session;

/// What a role is allowed to call.
const PUBLIC: &[&str] = &[
    "advance",
    "claim",
    "effect",
    "enter",
    "extend",
    "finish",
    "get_result",
    "once",
    "return",
    "send",
    "set_result",
    "step",
];

/// A role of a name that has to be quoted, in a cluster that other tests share.
struct Role {
    name: String,
    owner: Session,
}

impl Role {
    async fn new(bed: &Bed) -> Self {
        let database = bed.query("SELECT current_database()");
        let name = format!("worker \"{database}\"; --");
        let owner = Session::open(bed).await;
        owner.run(&format!("CREATE ROLE {}", quoted(&name))).await;
        Self { name, owner }
    }

    async fn session(&self, bed: &Bed) -> Session {
        let session = Session::open(bed).await;
        session.run(&format!("SET ROLE {}", quoted(&self.name))).await;
        session
    }

    async fn allow(&self, routes: &[&str]) {
        let sql = "SELECT oncebox.allow($1, VARIADIC $2)";
        self.owner.rows(sql, &[&self.name, &routes]).await;
    }

    async fn drop(self) {
        let name = quoted(&self.name);
        self.owner.run(&format!("DROP OWNED BY {name}; DROP ROLE {name}")).await;
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_calls_the_verbs_and_nothing_else() {
    let bed = Bed::postgres().await;
    let route = bed.route("billing", RouteRules::default()).await;
    bed.due("e1", &[route]).await;
    let role = Role::new(&bed).await;
    let worker = role.session(&bed).await;
    let denied = "42501";
    assert_eq!(worker.try_claim("billing", 1).await.unwrap_err().code, denied);
    role.allow(&["billing"]).await;
    role.allow(&[]).await;

    let work = worker.take("billing").await;
    worker.rows("SELECT oncebox.extend($1, $2)", &[&work.delivery, &work.lease]).await;
    let verbs = format!(
        "BEGIN;
         SELECT oncebox.enter('{0}', {1});
         SELECT oncebox.once('receipt-email:in_456');
         SELECT oncebox.step('{0}', 'unlock');
         SELECT oncebox.set_result('{0}', 'unlock', '1');
         SELECT oncebox.get_result('{0}', 'unlock');
         SELECT oncebox.advance('in_456', 7);
         SELECT * FROM oncebox.effect('receipt-email:in_456');
         SELECT oncebox.finish('{0}', {1});
         COMMIT",
        work.delivery, work.lease
    );
    worker.run(&verbs).await;
    assert_eq!(bed.query("SELECT state FROM finished"), "processed");
    assert_eq!(bed.rows("effects"), 2);

    for table in ["deliveries", "receipts", "tokens", "effects", "finished", "lanes", "routes"] {
        for sql in [
            format!("SELECT 1 FROM oncebox.{table}"),
            format!("DELETE FROM oncebox.{table}"),
            format!("INSERT INTO oncebox.{table} DEFAULT VALUES"),
            format!("TRUNCATE oncebox.{table}"),
        ] {
            assert_eq!(worker.refusal(&sql).await.code, denied, "{sql}");
        }
    }
    for call in [
        "allow(current_user::text)",
        "disallow(current_user::text)",
        "allow_handlers(current_user::text)",
        "may_work(1::smallint)",
        "claim_plain(1::smallint, 1, '1 minute', '')",
        "release_lanes(1::smallint, '{}', '{}')",
        "end_attempt(NULL, 'processed', NULL, NULL)",
        "headers_of('')",
    ] {
        let sql = format!("SELECT oncebox.{call}");
        assert_eq!(worker.refusal(&sql).await.code, denied, "{sql}");
    }
    assert_eq!(worker.refusal("CREATE TABLE oncebox.mine ()").await.code, denied);
    drop(worker);
    role.drop().await;
}

/// A lease is a number that tells claims apart. Whoever guessed that of something which is pushed
/// must not be able to end it; and nobody is told how near a guess is.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_pushed_is_nobodys_to_work_on_here() {
    let bed = Bed::postgres().await;
    let pushed = bed.route("push", RouteRules { pulled: false, ..RouteRules::default() }).await;
    let pulled = bed.route("pull", RouteRules::default()).await;
    bed.due("e1", &[pushed, pulled]).await;
    let role = Role::new(&bed).await;
    role.allow(&["push", "pull"]).await;
    let worker = role.session(&bed).await;
    for (route, code, right_is_refused) in [(pushed, "OB412", true), (pulled, "OB409", false)] {
        let claimed = bed.take(&route).await;
        let (delivery, lease) = (claimed.delivery, claimed.lease.0);
        for verb in ["enter", "finish", "extend", "return"] {
            let call = async |lease: i64| {
                let sql = format!("SELECT oncebox.{verb}('{delivery}', {lease})");
                worker.try_run(&sql).await
            };
            let wrong = [0, lease - 1, lease + 1, i64::MAX];
            let mut told = Vec::new();
            for guess in wrong {
                told.push(call(guess).await.unwrap_err());
            }
            assert!(told.iter().all(|refused| *refused == told[0]), "{verb}: {told:?}");
            assert_eq!(told[0].code, code, "{verb}");
            if right_is_refused {
                assert_eq!(call(lease).await.unwrap_err(), told[0], "{verb}");
            }
        }
        assert!(bed.finish(&claimed, Next::Processed).await, "it is as it was");
    }
    drop(worker);
    role.drop().await;
}

/// A role works on the routes it was allowed, and is told nothing of the deliveries of others.
#[tokio::test(flavor = "multi_thread")]
async fn a_role_works_on_its_routes_alone() {
    let bed = Bed::postgres().await;
    let ours = bed.route("orders", RouteRules::default()).await;
    let theirs = bed.route("billing", RouteRules::default()).await;
    bed.due("e1", &[ours, theirs]).await;
    let role = Role::new(&bed).await;
    let worker = role.session(&bed).await;
    // Without a route it may call, and has nothing to call it on.
    role.allow(&[]).await;
    assert_eq!(worker.try_claim("orders", 1).await.unwrap_err().code, "OB403");
    role.allow(&["orders"]).await;
    let refused = worker.try_claim("billing", 1).await.unwrap_err();
    assert_eq!(refused.code, "OB403");
    assert!(refused.hint.is_some_and(|hint| hint.contains("oncebox.allow")));

    let claimed = bed.take(&theirs).await;
    let (delivery, lease) = (claimed.delivery, claimed.lease.0);
    for verb in ["enter", "finish", "extend", "return"] {
        let sql = format!("SELECT oncebox.{verb}('{delivery}', {lease})");
        assert_eq!(worker.refusal(&sql).await.code, "OB403", "{verb}");
    }
    // What a transaction says of itself is not believed either.
    let settings = format!(
        "SELECT set_config('oncebox.delivery', '{delivery}', true);
         SELECT set_config('oncebox.lease', '{lease}', true)"
    );
    for verb in ["once('k')", "advance('x', 1)", "send('mailer', 'k', 'p')"] {
        let sql = format!("BEGIN; {settings}; SELECT oncebox.{verb}");
        assert_eq!(worker.refusal(&sql).await.code, "OB403", "{verb}");
        worker.run("ROLLBACK").await;
    }
    assert!(bed.finish(&claimed, Next::Processed).await, "it is as it was");
    let work = worker.take("orders").await;
    assert_eq!(worker.finish(&work, "processed").await.unwrap(), "processed");
    drop(worker);
    role.drop().await;
}

/// Members have what their role was allowed, until it is taken away.
#[tokio::test(flavor = "multi_thread")]
async fn routes_are_taken_away_again() {
    let bed = Bed::postgres().await;
    for route in ["orders", "billing"] {
        bed.route(route, RouteRules::default()).await;
    }
    let role = Role::new(&bed).await;
    let member = format!("member of {}", role.name);
    role.owner
        .run(&format!(
            "CREATE ROLE {member}; GRANT {team} TO {member}",
            member = quoted(&member),
            team = quoted(&role.name)
        ))
        .await;
    role.allow(&["orders", "billing"]).await;
    let worker = Session::open(&bed).await;
    worker.run(&format!("SET ROLE {}", quoted(&member))).await;
    assert!(worker.claim("orders", 1).await.is_empty());

    let disallow = "SELECT oncebox.disallow($1, VARIADIC $2)";
    role.owner.rows(disallow, &[&role.name, &vec!["orders"]]).await;
    assert_eq!(worker.try_claim("orders", 1).await.unwrap_err().code, "OB403");
    assert!(worker.claim("billing", 1).await.is_empty());
    role.owner.rows("SELECT oncebox.disallow($1)", &[&role.name]).await;
    assert_eq!(worker.try_claim("billing", 1).await.unwrap_err().code, "42501");
    let missing = "SELECT oncebox.allow(current_user::text, 'billing', 'nowhere')";
    assert_eq!(role.owner.refusal(missing).await.code, "OB404");
    drop(worker);
    role.owner.run(&format!("DROP ROLE {}", quoted(&member))).await;
    role.drop().await;
}

/// A service sees and takes keys of its own, whatever those of others are.
#[tokio::test(flavor = "multi_thread")]
async fn a_service_has_keys_of_its_own() {
    let bed = Bed::postgres().await;
    let role = Role::new(&bed).await;
    let mut works = Vec::new();
    for (name, service) in [("orders", "shop"), ("returns", "shop"), ("ledger", "books")] {
        let route = bed.route(name, RouteRules::default()).await;
        bed.store.assign_service(route.no, service).await.unwrap();
        bed.due(&format!("e-{name}"), &[route]).await;
        works.push(bed.take(&route).await);
    }
    role.allow(&["orders", "returns"]).await;
    let worker = role.session(&bed).await;
    let owner = Session::open(&bed).await;
    let once = async |session: &Session, claimed: &oncebox::delivery::Claimed| -> bool {
        let enter = format!("SELECT oncebox.enter('{}', {})", claimed.delivery, claimed.lease);
        session.run(&format!("BEGIN; {enter}")).await;
        let row = session.rows("SELECT oncebox.once('refund:ch_1')", &[]).await;
        session.run("COMMIT").await;
        row[0].get(0)
    };
    assert!(once(&owner, &works[2]).await, "the first of the books");
    let found = "SELECT key, route FROM oncebox.effect('refund:ch_1')";
    assert!(worker.rows(found, &[]).await.is_empty(), "another service's is none of theirs");
    let ledger = "SELECT FROM oncebox.effect('@books/refund:ch_1')";
    assert!(worker.rows(ledger, &[]).await.is_empty());
    assert!(once(&worker, &works[0]).await, "the first of the shop");
    assert!(!once(&worker, &works[1]).await, "two routes of one service share keys");
    let row = &worker.rows(found, &[]).await[0];
    assert_eq!((row.get(0), row.get(1)), ("@shop/refund:ch_1", "orders"));
    assert_eq!(owner.rows(found, &[]).await.len(), 2);
    let enter = format!("SELECT oncebox.enter('{}', {})", works[0].delivery, works[0].lease);
    let other = format!("BEGIN; {enter}; SELECT oncebox.once('@books/refund:ch_2')");
    assert_eq!(worker.refusal(&other).await.code, "OB400");
    worker.run("ROLLBACK").await;
    drop(worker);
    role.drop().await;
}

/// Everything there is in the schema, as the catalogue has it.
#[tokio::test(flavor = "multi_thread")]
async fn the_catalogue_grants_no_more() {
    let bed = Bed::postgres().await;
    let role = Role::new(&bed).await;
    role.allow(&[]).await;
    let sql = "SELECT p.proname, p.oid::regprocedure::text, p.prosecdef,
            coalesce('search_path=oncebox, pg_temp' = ANY (p.proconfig), false),
            has_function_privilege($1, p.oid, 'EXECUTE'),
            EXISTS (SELECT 1 FROM aclexplode(p.proacl) AS a WHERE a.grantee = 0)
        FROM pg_proc AS p WHERE p.pronamespace = 'oncebox'::regnamespace";
    let mut allowed: Vec<String> = Vec::new();
    for row in role.owner.rows(sql, &[&role.name]).await {
        let (name, whole): (String, String) = (row.get(0), row.get(1));
        assert!(!row.get::<_, bool>(5), "everybody may call {whole}");
        if row.get(4) {
            assert!(row.get::<_, bool>(2) && row.get::<_, bool>(3), "{whole} is not pinned");
            allowed.push(name);
        }
    }
    allowed.sort();
    allowed.dedup();
    assert_eq!(allowed, PUBLIC);

    let sql = "SELECT c.relname FROM pg_class AS c
        WHERE c.relnamespace = 'oncebox'::regnamespace AND c.relkind IN ('r', 'v', 'm', 'p', 'S')
          AND CASE c.relkind
              WHEN 'S' THEN has_sequence_privilege($1, c.oid, 'USAGE, SELECT, UPDATE')
              ELSE has_table_privilege($1, c.oid,
                  'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
          END";
    assert!(role.owner.rows(sql, &[&role.name]).await.is_empty());
    let sql = "SELECT has_schema_privilege($1, 'oncebox', 'USAGE'),
        has_schema_privilege($1, 'oncebox', 'CREATE')";
    let row = &role.owner.rows(sql, &[&role.name]).await[0];
    assert_eq!((row.get(0), row.get(1)), (true, false));
    role.drop().await;
}

/// What a caller puts before ours in its search path changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_gets_between_a_verb_and_its_tables() {
    let bed = Bed::postgres().await;
    let route = bed.route("billing", RouteRules::default()).await;
    bed.due("e1", &[route]).await;
    let session = Session::open(&bed).await;
    session
        .run(
            "CREATE TEMPORARY TABLE deliveries (LIKE oncebox.deliveries);
             CREATE TEMPORARY TABLE routes (LIKE oncebox.routes);
             CREATE FUNCTION pg_temp.clock_timestamp() RETURNS timestamptz
             LANGUAGE sql AS $$ SELECT 'infinity'::timestamptz $$;
             SET search_path = pg_temp, public, oncebox",
        )
        .await;
    let work = session.take("billing").await;
    assert_eq!(session.finish(&work, "processed").await.unwrap(), "processed");
    assert_eq!(bed.rows("finished"), 1);
}
