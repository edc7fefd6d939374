//! Plans: what is claimed and read does not depend on what the planner believes.

use oncebox::route::RouteRules;
use oncebox_testkit::store::Bed;

use super::session::Session;

/// A planner that may join in one way only must not make a claim take more than wanted.
#[tokio::test(flavor = "multi_thread")]
async fn no_plan_makes_a_claim_exceed_its_limit() {
    let bed = Bed::postgres().await;
    let route = bed.route("billing", RouteRules::default()).await;
    let guarded = bed.route("guarded", RouteRules { ordered: true, ..RouteRules::default() }).await;
    let events = (0..250).map(|n| bed.event(&format!("e{n}"), &[route, guarded]));
    bed.record(events.collect()).await;
    bed.query("ANALYZE deliveries");
    let ways = [
        "SELECT 1",
        "SET enable_nestloop = off",
        "SET enable_nestloop = off; SET enable_material = off",
        "SET enable_material = off; SET enable_sort = off",
        "SET enable_indexscan = off; SET enable_indexonlyscan = off",
        "SET enable_tidscan = off",
        "SET plan_cache_mode = force_custom_plan",
    ];
    let functions =
        ["claim(text, integer, interval)", "finish(text, bigint, text, text, interval)"];
    for (n, way) in ways.iter().enumerate() {
        // Half of them without what the functions set for themselves.
        if n == ways.len() / 2 {
            for function in functions {
                bed.query(&format!(
                    "ALTER FUNCTION {function} RESET ALL;
                     ALTER FUNCTION {function} SET search_path = oncebox, pg_temp"
                ));
            }
        }
        let session = Session::open(&bed).await;
        session.run(way).await;
        assert_eq!(session.claim("billing", 7).await.len(), 7, "{way}");
        assert_eq!(session.claim("guarded", 5).await.len(), 5, "{way}");
        let leased = bed.query("SELECT count(*) FROM deliveries WHERE state = 'processing'");
        assert_eq!(leased, (12 * (n + 1)).to_string(), "{way}");
    }
}

/// What a call has read of a table, in its transaction.
async fn scans(session: &Session) -> Vec<(String, i64, i64)> {
    let sql = "SELECT relname::text, coalesce(seq_scan, 0), coalesce(idx_tup_fetch, 0)
        FROM pg_stat_xact_user_tables WHERE schemaname = 'oncebox'";
    let rows = session.rows(sql, &[]).await;
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

/// Plans are made while there is nothing, and done by among very many: no call walks over a table,
/// and a few rows are read for each delivery, however many there are.
#[tokio::test(flavor = "multi_thread")]
async fn calls_go_by_keys_however_many_there_are() {
    const MANY: usize = 30_000;
    let bed = Bed::postgres().await;
    let rules = RouteRules {
        ordered: true,
        skip_stale: true,
        same_operation: Some(std::time::Duration::from_secs(60)),
        ..RouteRules::default()
    };
    let plain = bed.route("plain", RouteRules::default()).await;
    let guarded = bed.route("guarded", rules).await;
    bed.query("ANALYZE");
    let session = Session::open(&bed).await;
    for route in ["plain", "guarded"] {
        assert!(session.claim(route, 10).await.is_empty());
    }
    bed.query(&format!(
        "INSERT INTO receipts (id, received_at, source, secret, routes, trust, event_id,
             event_type, object, version, digest, headers, body)
         SELECT oncebox.new_id(), now(), 1, 1, 1, 'signed', 'e' || n, 't', 'o' || n % 100, n,
             sha256('{{}}'), '', '{{}}'
         FROM generate_series(1, {MANY}) AS n;
         INSERT INTO deliveries (receipt, created_at, route, source, state, due_at, lane, place,
             operation)
         SELECT r.id, now(), t.no, 1, 'received',
             now() - ({MANY} - r.version) * interval '1 second',
             CASE t.no WHEN {0} THEN r.object END, r.version,
             CASE t.no WHEN {0} THEN md5(r.event_id)::uuid END
         FROM receipts AS r, routes AS t",
        guarded.no.0
    ));
    assert_eq!(plain.no.0 + guarded.no.0, 3);
    for route in ["plain", "guarded"] {
        session.run("BEGIN").await;
        let work = session.claim(route, 10).await;
        let of_claim = scans(&session).await;
        session.run("COMMIT").await;
        assert!(!work.is_empty());
        session.run("BEGIN").await;
        session.finish(&work[0], "processed").await.unwrap();
        session.rows("SELECT oncebox.extend($1, $2)", &[&work[1].delivery, &work[1].lease]).await;
        session.finish_with(&work[1], "retry", None, None).await.unwrap();
        let of_endings = scans(&session).await;
        session.run("COMMIT").await;
        for (table, walks, fetched) in of_claim.into_iter().chain(of_endings) {
            assert_eq!(walks, 0, "{route}: {table} was walked over");
            assert!(fetched < 1000, "{route}: {fetched} rows of {table} were read");
        }
    }
}
