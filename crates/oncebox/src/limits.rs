//! Every bound in one place.
//!
//! A queue, batch, list or wait without a limit is an outage that has not happened yet. What an
//! operator may want to change is also a key of the configuration; these are its defaults and the
//! bounds nobody may pass.

use std::time::Duration;

use jiff::SignedDuration;

/// Events committed together at most. Larger batches add latency and no throughput.
pub const BATCH_EVENTS: usize = 256;

/// Events that one request may carry. They are one commit, so this bounds how long everybody else
/// waits for it: well below the time that senders are kept waiting. The largest batches that
/// providers document are a tenth of this. No more than that are read from one.
pub const BATCH_ITEMS_MAX: usize = oncebox_verify::ITEMS_MAX;

/// How long a batch that is not full waits for the one under way before it is recorded beside it.
pub const BATCH_TURN: Duration = Duration::from_millis(50);

/// Requests that may wait for a commit.
pub const QUEUE_EVENTS: usize = 8192;

/// Bytes of bodies and headers that may wait for a commit.
pub const QUEUE_BYTES: usize = 64 << 20;

/// What an event counts for in the queue beside its bytes.
pub const EVENT_BYTES: usize = 512;

/// How long a sender waits for its commit before it is told to come back. Shopify, the least
/// patient of the large providers, gives up after five seconds.
pub const COMMIT_WAIT: Duration = Duration::from_secs(4);

/// What `Retry-After` says when we cannot record, in seconds.
pub const RETRY_AFTER_SECS: u64 = 5;

/// How long a failed commit makes the node unready, unless one succeeds.
pub const TROUBLE_REMEMBERED: Duration = Duration::from_secs(10);

/// For how long a commit that succeeded is proof that commits get through.
pub const COMMIT_FRESH: Duration = Duration::from_secs(2);

/// How long a question about readiness waits for such a proof.
pub const PROOF_WAIT: Duration = Duration::from_secs(2);

/// How often a batch with an unknown outcome is asked about before its senders are told to retry.
pub const RECHECKS: usize = 3;

/// Length of an identity, type or object, in bytes.
pub const NAME_BYTES: usize = oncebox_verify::VALUE_BYTES_MAX;

/// Twins of one content that are held; more count as repeats of the last.
pub const HELD_TWINS: i16 = 20;

/// Twins and conflicts that are shown with the receipt that came first.
pub const ODD_SHOWN: i64 = 100;

/// Types under which one body is delivered, where a provider sends it under several.
pub const TYPES_PER_BODY: i16 = 20;

/// How often counts of repeated deliveries and of stored bytes are written.
pub const COUNTS_FLUSH: Duration = Duration::from_secs(1);

/// Distinct receipts whose repeats may be waiting to be written. A storm over more of them is
/// flushed early.
pub const REPEATS_PENDING: usize = 4096;

/// Distinct receipts whose repeats are held at most while the store takes none. Repeats of further
/// receipts are not counted.
pub const REPEATS_HELD: usize = 2 * REPEATS_PENDING;

/// Rows removed by retention in one transaction.
pub const EXPIRE_ROWS: u32 = 500;

/// Identities looked at by retention in one step.
pub const SWEEP_ROWS: u32 = 4096;

/// Bytes of payloads removed in one step of retention; one that is larger goes alone.
pub const EXPIRE_BYTES: i64 = 16 << 20;

/// Days for which tables are made ahead.
pub const DAYS_AHEAD: i32 = 14;

/// Windows at least this long last until the end of their day where days go as a whole.
pub const WHOLE_DAYS: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Open deliveries that may be left when a day is taken out; with more, its receipts go one by one.
pub const DAY_UNFINISHED: i32 = 20_000;

/// How long those who write may wait at most for each of the tables from which a day is taken.
pub const DAY_LOCK_WAIT: Duration = Duration::from_millis(40);

/// Receipts of a day that are counted out in one step.
pub const DAY_COUNTED: i32 = 20_000;

/// Rows of counts that are added up in one step.
pub const FOLD_ROWS: i64 = 20_000;

/// How often what writers counted is added up.
pub const FOLD_EVERY: Duration = Duration::from_secs(5);

/// How long a node leads maintenance unless it says so again.
pub const LEAD: Duration = Duration::from_secs(30);

/// Types of a source that are counted by name within an hour; the rest is counted together.
pub const ROLLUP_TYPES: i64 = 200;

/// How long counts per minute are kept.
pub const ROLLUP_MINUTES_KEPT: Duration = Duration::from_secs(2 * 86_400);

/// How long counts per hour are kept.
pub const ROLLUP_HOURS_KEPT: Duration = Duration::from_secs(90 * 86_400);

/// SQLite: the write-ahead log is copied back once it has grown by this much.
pub const WAL_CHECKPOINT_BYTES: u64 = 64 << 20;

/// SQLite: a write-ahead log this large is reported. Something holds an old snapshot open.
pub const WAL_ALERT_BYTES: u64 = 256 << 20;

/// SQLite: a write-ahead log this large refuses new events until it could be copied back.
pub const WAL_REFUSE_BYTES: u64 = 2 << 30;

/// PostgreSQL: batches committing at the same time. Two keep the disk busy while the next batch
/// is parsed, and a connection that is stuck holds up only one; more only split the batches.
pub const POSTGRES_WRITERS: usize = 2;

/// PostgreSQL: connections in all.
pub const POSTGRES_CONNECTIONS: usize = 13;

/// How long opening a connection to PostgreSQL may take.
pub const POSTGRES_CONNECT: Duration = Duration::from_secs(3);

/// PostgreSQL: how long a batch waits on a connection that says nothing before it is asked about
/// on another. A commit that waits for a standby is silent, too, so this is long.
pub const POSTGRES_PATIENCE: Duration = Duration::from_secs(30);

/// PostgreSQL: how long deliveries wait for what another session has locked, before their worker
/// turns to something else. Much longer than any transaction here takes.
pub const POSTGRES_LOCK_WAIT: Duration = Duration::from_secs(3);

/// PostgreSQL: how long a claim, or an ending apart from its batch, waits for what another session
/// has locked, before it goes around. Longer than most transactions of the store take.
pub const POSTGRES_CLAIM_WAIT: Duration = Duration::from_millis(50);

/// PostgreSQL: how long a migration waits for a lock before it gives up and tries again later.
/// Everybody who needs the same table waits behind it for that long.
pub const MIGRATE_LOCK_WAIT: Duration = Duration::from_millis(500);

/// How long `oncebox migrate up` tries unless it is told otherwise.
pub const MIGRATE_PATIENCE: Duration = Duration::from_secs(600);

/// How often a server that waits for `oncebox migrate up` looks whether it has run.
pub const MIGRATE_LOOK: Duration = Duration::from_secs(1);

/// PostgreSQL: how long a node waits for another that creates the schema in an empty database.
pub const POSTGRES_CREATE: Duration = Duration::from_secs(30);

/// PostgreSQL: how long `migrate up` waits for sessions of an older release that it has ended, and
/// how often it looks.
pub const FENCE_WAIT: Duration = Duration::from_secs(30);

/// See [`FENCE_WAIT`].
pub const FENCE_LOOK: Duration = Duration::from_millis(100);

/// PostgreSQL: how long a session may hold locks and do nothing before the server ends it: its
/// process is frozen, or its machine is gone.
pub const POSTGRES_IDLE: Duration = Duration::from_secs(5);

/// PostgreSQL: silent connections that were left and have not answered, for each connection that a
/// pool may have. Enough to get away from a server that froze with all of them. Their server
/// processes may still be waiting; leaving more of them would exhaust the server.
pub const POSTGRES_LEFT_PER_PLACE: usize = 2;

/// PostgreSQL: how often each of several hosts is asked whether it is the primary.
pub const POSTGRES_ASK: Duration = Duration::from_secs(2);

/// PostgreSQL: receipts acknowledged last that a new primary is asked for.
pub const ACKNOWLEDGED_KEPT: usize = 1024;

/// PostgreSQL: how long ago one of those was acknowledged at most. Retention removes none so young.
pub const ACKNOWLEDGED_FOR: Duration = Duration::from_secs(3600);

/// SQLite: read-only connections for lists and counts.
pub const SQLITE_READERS: usize = 2;

/// SQLite: read-only connections for what workers and requests look up by its key, so that they
/// never wait for a list.
pub const SQLITE_LOOK_UPS: usize = 2;

/// Bytes of the body of a rejected request that are kept, where a source keeps any.
pub const REJECTED_BODY: usize = 64 << 10;

/// Rejected requests of one source and reason that a source may keep.
pub const REJECTED_MOST: u32 = 1000;

/// How long a rejected request is kept.
pub const REJECTED_KEPT: Duration = Duration::from_secs(86_400);

/// Bytes of rejected requests, of one source and reason, that wait to be written. They are written
/// about once a second, so this is what a sender who is not believed can have written a second.
pub const REJECTED_PENDING: usize = 256 << 10;

/// How long `oncebox tail` can read what nodes did.
pub const HAPPENINGS_KEPT: Duration = Duration::from_secs(60);

/// How many happenings a node writes in a second while an operator watches; it counts the rest.
pub const HAPPENINGS_A_SECOND: usize = 500;

/// Receipts that are shown where an id means several.
pub const CANDIDATES: usize = 20;

/// Event ids that are looked through for the beginning of one.
pub const LOOKED_THROUGH: i64 = 2000;

/// A list without `--limit`.
pub const LIST_ROWS: usize = 50;

/// Rows fetched for a list in one step, however many were asked for.
pub const LIST_PAGE: usize = 500;

/// Clock difference to the database from which time-based rejections are no longer trusted.
pub const CLOCK_SKEW: Duration = Duration::from_secs(60);

/// The longest pause a consumer may ask for with `Retry-After` or a snooze.
pub const LONGEST_WAIT: Duration = Duration::from_secs(7 * 86_400);

/// How often a delivery may be snoozed unless its route says otherwise.
pub const SNOOZES: u32 = 100;

/// How long a handler that met somebody who is at the same thing stays away: doubled each time
/// until it is the second. So many snoozes as a delivery may have are then about half a day.
pub const BUSY_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(600));

/// How long a claim is good for unless it is extended.
pub const LEASE: Duration = Duration::from_secs(30);

/// The longest lease a pulling worker may ask for.
pub const LONGEST_LEASE: Duration = Duration::from_secs(3600);

/// Deliveries claimed or finished in one transaction.
pub const CLAIM_ROWS: usize = 256;

/// Open deliveries that are given their objects in one transaction, after a route has come to guard
/// objects.
pub const FILL_ROWS: usize = 1000;

/// How long that waits for a delivery that another transaction has locked.
pub const FILL_LOCK_WAIT: Duration = Duration::from_millis(250);

/// How often a worker looks for due deliveries when nobody told it of any.
pub const POLL: Duration = Duration::from_millis(500);

/// PostgreSQL: claims start this far before the newest due time they have seen, so that they do
/// not walk over what was claimed before; what was committed later than this is found by the
/// claim that looks at everything.
pub const CLAIM_MARGIN: Duration = Duration::from_millis(500);

/// PostgreSQL: how often a claim looks at everything.
pub const CLAIM_EVERYTHING: Duration = Duration::from_secs(5);

/// Bytes of a detail or summary kept with an attempt.
pub const DETAIL_BYTES: usize = 1024;

/// Bytes of payloads that a worker may hold.
pub const WORKER_BYTES: usize = 128 << 20;

/// The part of those bytes that deliveries of one route may hold, so that a hanging destination
/// with large payloads leaves room for others.
pub const WORKER_ROUTE_SHARE: usize = 4;

/// Days after which what was processed of an object or an operation is forgotten, counted from
/// the last time it was.
pub const GUARD_DAYS: i32 = 400;

/// Deliveries a replay looks at, and opens, in one step.
pub const REPLAY_ROWS: usize = 256;

/// Receipts that one replay may name.
pub const REPLAY_RECEIPTS: usize = 1000;

/// How often a server looks for replays that nobody drives.
pub const REPLAY_LOOK: Duration = Duration::from_secs(5);

/// Replays a server drives at the same time, so that a slow one does not keep the others waiting.
pub const REPLAYS_DRIVEN: usize = 4;

/// Deliveries claimed ahead of those with their consumer, per place with the consumer: enough
/// that a quick consumer never waits for a claim.
pub const CLAIM_AHEAD: usize = 8;

/// Claiming ahead is for consumers that would get through it within about this time; what waits
/// for a slow one is better left to be claimed by whoever is free.
pub const CLAIM_AHEAD_FOR: Duration = Duration::from_millis(20);

/// How long deliveries whose last worker died are the only ones of their route that a worker has,
/// unless they end before. What kills a worker does so soon.
pub const ALONE_FOR: Duration = Duration::from_secs(5);

/// Endings that may wait to be committed before further attempts keep their places.
pub const ENDINGS_WAITING: usize = 1024;

/// The first and the longest pause before a worker asks a store again that did not answer.
pub const WORKER_RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// How long a stopping worker tries to tell the store what came of its last attempts.
pub const STOP_FINISH: Duration = Duration::from_secs(5);

/// Failures to connect in a row that open the breaker of a route.
pub const BREAKER_CONNECTS: u32 = 5;

/// Different deliveries whose ends a breaker remembers.
pub const BREAKER_DELIVERIES: usize = 20;

/// How many of them there must be before their share of failures opens it.
pub const BREAKER_LEAST: usize = 5;

/// How long a breaker remembers the end of a delivery.
pub const BREAKER_MEMORY: Duration = Duration::from_secs(60);

/// How long a breaker stays open the first time; doubled each time until it is the second.
pub const BREAKER_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Due deliveries among which the one is looked for that failed longest ago.
pub const PROBE_ROWS: i64 = 1000;

/// How long a route goes at half its rate after its destination asked for fewer requests. After
/// as long again without being asked, the rate doubles until it is what it was.
pub const SLOWED_FOR: Duration = Duration::from_secs(30);

/// How often the breakers that are not closed are told to the store, for operators to see.
pub const BREAKERS_TOLD: Duration = Duration::from_secs(10);

/// For how long what was told of a breaker is shown. A worker that died tells nothing new.
pub const BREAKERS_SHOWN: Duration = Duration::from_secs(60);

/// How often a delivery is tried unless its route says otherwise.
pub const RETRY_ATTEMPTS: u32 = 15;

/// The most attempts that a route may ask for.
pub const RETRY_ATTEMPTS_MAX: u32 = 1000;

/// The pause after the first failure and the longest one, unless the route says otherwise. With
/// fifteen attempts that makes about three days.
pub const RETRY_PAUSE: (Duration, Duration) =
    (Duration::from_secs(5), Duration::from_secs(12 * 3600));

/// Attempts that every delivery has before its budget in time may end it.
pub const BUDGET_ATTEMPTS: u32 = 5;

/// How long a delivery that keeps failing holds up those behind it on a route that goes on after
/// a dead one, unless the route says otherwise.
pub const HOLD_FOR: Duration = Duration::from_secs(3600);

/// Attempts for which a sender that waits for processing hears that it failed. Then it hears that
/// the event is kept, and the attempts go on without it.
pub const ACK_ATTEMPTS: u32 = 3;

/// How much longer than the time-out of a push its lease is.
pub const PUSH_LEASE_MARGIN: Duration = Duration::from_secs(5);

/// The pause before an ending that was set aside is written again: the first and the longest.
pub const ASIDE_RETRY: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// Deliveries whose last lease was lost may be claimed together: at first as many as a claim asks
/// for; one part in so many of that if they were lost again; then each alone.
pub const SUSPECTS_SHARE: usize = 8;

/// PostgreSQL: connections for claims and outcomes, out of all.
pub const POSTGRES_WORKING: usize = 3;

/// PostgreSQL: connections for what is looked for by receipt, such as payloads, out of all.
pub const POSTGRES_DAILY: usize = 3;

/// PostgreSQL: how far apart two notifications of one process are at least.
pub const NOTIFY_APART: Duration = Duration::from_millis(5);

/// PostgreSQL: how long closing a store waits for its last notification.
pub const NOTIFY_STOP: Duration = Duration::from_secs(1);

/// PostgreSQL: the first and the longest pause before the connection for notifications is opened
/// again.
pub const LISTEN_RETRY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// The largest body of a request to the admin API.
pub const API_BODY: usize = 16 << 10;

/// The largest body of a request to the admin API that tells of many deliveries: two kilobytes for
/// each of [`CLAIM_ROWS`].
pub const API_BATCH_BODY: usize = CLAIM_ROWS * (2 << 10);

/// The largest body of a request to the admin API that has a result to record: it may be written
/// with more escapes and spaces than it is kept with.
pub const API_RESULT_BODY: usize = API_BODY + 6 * RESULT_BYTES;

/// The largest body of a request to the admin API that has a message to send: base64 makes four
/// bytes of three, and JSON may have spaces.
pub const API_MESSAGE_BODY: usize = API_BODY + 2 * MESSAGE_BYTES;

/// How long a request to the admin API waits for the store.
pub const API_STORE_WAIT: Duration = Duration::from_secs(10);

/// Deliveries a pulling worker gets at once unless it says otherwise.
pub const PULL_ROWS: usize = 10;

/// How long a claim of a pulling worker may wait for something to become due.
pub const PULL_WAIT: Duration = Duration::from_secs(30);

/// The shortest lease a pulling worker may ask for.
pub const SHORTEST_LEASE: Duration = Duration::from_secs(1);

/// Bytes of payloads in the answer to one claim. A larger payload is given alone.
pub const PULL_BYTES: usize = 8 << 20;

/// Bytes of payloads in all answers to claims that are on their way.
pub const PULL_MEMORY: usize = 64 << 20;

/// Claims for pulling workers that one process makes on one route at the same time.
pub const PULL_CLAIMS: usize = 4;

/// PostgreSQL: rescues start this far before the last one, for the same reason as claims; what ran
/// out before that and was committed later is found by the rescue that looks at everything.
pub const RESCUE_MARGIN: Duration = Duration::from_secs(60);

/// PostgreSQL: how often a rescue looks at everything.
pub const RESCUE_EVERYTHING: Duration = Duration::from_secs(60);

/// Retries whose times a worker remembers, to look for them when they are due and not before.
pub const RETRIES_REMEMBERED: usize = 10_000;

/// Bytes of an effect's key, a step's name or a message's group.
pub const KEY_BYTES: usize = 512;

/// How many conflicts of an effect whoever comes upon it is told of. Lists count them all; this is
/// so that a key which very many come upon costs the last of them what it cost the first.
pub const CONFLICTS_TOLD: u32 = 100;

/// Bytes of the result recorded with an effect.
pub const RESULT_BYTES: usize = 16 << 10;

/// Bytes of an outbox message.
pub const MESSAGE_BYTES: usize = 1 << 20;

/// How long the synchronous part of a handler may keep SQLite's only writer.
pub const APPLY_TIME: Duration = Duration::from_millis(250);

/// Days for which what is done is remembered in the ledger, unless configured.
pub const EFFECT_DAYS: i32 = 400;

/// Bytes of a key as the ledger has it, the names of a step's delivery or of a message's
/// destination included.
pub const LEDGER_KEY_BYTES: usize = 1024;

/// Answers that a route keeps of what it fetched.
pub const FETCHES_KEPT: usize = 1024;

/// Bytes of answers that a route keeps.
pub const FETCH_KEPT_BYTES: usize = 8 << 20;

/// How far the clock that an event was received by may be from the one of whoever fetches, for an
/// answer to be known to be newer than the event.
pub const FETCH_CLOCK_SLACK: Duration = Duration::from_secs(1);

/// PostgreSQL: connections for the transactions of handlers in Rust.
pub const POSTGRES_HANDLERS: usize = 8;

/// SQLite: events that handlers in Rust work on at the same time, unless they say otherwise. One
/// writes at a time; the others share its commit.
pub const SQLITE_HANDLERS: usize = 64;

/// How long handlers that are told to stop may go on with what they have begun, unless they say
/// otherwise.
pub const HANDLER_GRACE: Duration = Duration::from_secs(20);

/// How often handlers look whether the rules of their route have changed.
pub const ROUTE_LOOK: Duration = Duration::from_secs(30);

/// How long the window of a source takes a secret from its provider, unless the operator says
/// otherwise.
pub const PAIRING: Duration = Duration::from_secs(600);

/// The longest such window. A handshake is believed without proof while it is open.
pub const PAIRING_LONGEST: Duration = Duration::from_secs(86_400);

/// Secrets that one source may have been given by handshakes. Each is tried on each request.
pub const PAIRED_SECRETS: usize = 64;

/// Bytes that are hashed to verify one request, its body with each secret, before others who share
/// the thread would notice: about a millisecond. Larger ones are checked beside them.
pub const VERIFY_INLINE_BYTES: usize = 1 << 20;

/// Keys that providers publish which a store keeps: as many places as a server remembers.
pub const PUBLISHED_KEYS: i64 = 256;

/// Bytes of the master secret that other secrets are sealed under, at least: as many as the key
/// made of it has.
pub const MASTER_SECRET_BYTES: usize = 32;

/// Bytes of a secret that is sealed.
pub const SEALED_SECRET_BYTES: usize = 4096;
