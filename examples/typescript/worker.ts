// Marks invoices paid, unlocks their customers and queues one e-mail each: once, in one transaction.
//
//     DATABASE_URL=postgres://orders@localhost/app npm start
//
// Works on a route with `pull = true`. The tables are the service's own; Oncebox's are next to them
// in the schema `oncebox`, and one commit covers both. With --drain it stops when nothing is due.
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

type Event = {
  delivery: string;
  lease: string; // a bigint, which JavaScript has no number for
  event_type: string;
  object_version: string | null;
  body: Buffer;
};
type Outcome = [outcome: "processed" | "stale" | "dead", note: string | null];
type Handler = (db: pg.Client, event: Event) => Promise<Outcome>;

const connectionString = process.env.DATABASE_URL;
const leaseSeconds = Number(process.env.LEASE_SECONDS ?? 30);
const lasting = `${leaseSeconds} seconds`;
const LOST = "OB409"; // the lease is over: another worker has the delivery, or it has ended
// Another transaction has the same rows, or the same effect: run the transaction again.
const AGAIN = ["40001", "40P01", "55P03", "OB425"];

/** The business. Everything here commits with the delivery, or not at all. */
const invoicePaid: Handler = async (db, event) => {
  const invoice = JSON.parse(event.body.toString()).data.object;
  const version = event.object_version;
  const newest = await db.query("SELECT oncebox.advance($1, $2)", [invoice.id, version]);
  if (!newest.rows[0].advance) return ["stale", null];
  await db.query("UPDATE invoices SET state = 'paid' WHERE id = $1", [invoice.id]);
  await db.query("UPDATE customers SET locked = false WHERE id = $1", [invoice.customer]);
  const key = `receipt-email:${invoice.id}`;
  const first = await db.query("SELECT oncebox.once($1)", [key]);
  if (first.rows[0].once) {
    const mail = JSON.stringify({ template: "receipt", invoice: invoice.id });
    await db.query("INSERT INTO emails (invoice) VALUES ($1)", [invoice.id]);
    await db.query("SELECT oncebox.send('mailer', $1, $2::text)", [key, mail]);
  }
  return ["processed", `invoice ${invoice.id} paid`];
};

const handlers: Record<string, Handler> = { "invoice.paid": invoicePaid };

async function handle(db: pg.Client, event: Event): Promise<void> {
  const { delivery, lease } = event;
  try {
    await db.query("BEGIN");
    await db.query("SELECT oncebox.enter($1, $2)", [delivery, lease]);
    const handler = handlers[event.event_type];
    const [outcome, note] = handler ? await handler(db, event) : ["dead", "no handler for it"];
    await db.query("SELECT oncebox.finish($1, $2, $3, $4)", [delivery, lease, outcome, note]);
    await db.query("COMMIT");
  } catch (error) {
    await db.query("ROLLBACK");
    throw error;
  }
}

/** Runs one attempt to its end. What cannot be said now is left for the lease to run out. */
async function work(db: pg.Client, event: Event): Promise<void> {
  for (const pause of [100, 500, 2000, null]) {
    try {
      return await handle(db, event);
    } catch (error) {
      const code = (error as { code?: string }).code ?? "";
      if (code === LOST) return console.error(`lost ${event.delivery}: ${error}`);
      if (!AGAIN.includes(code)) return await leave(db, END, event, "retry", String(error), null);
      // Not its fault: no attempt is spent.
      if (pause === null) return await leave(db, END, event, "snooze", String(error), "1 minute");
      await sleep(pause);
    }
  }
}

const END = "SELECT oncebox.finish($1, $2, $3, $4, $5::interval)";
const RETURN = "SELECT oncebox.return($1, $2)"; // not begun: it is as if it had not been claimed

/** Gives up a lease. One that is over is told, and the worker goes on. */
async function leave(db: pg.Client, sql: string, event: Event, ...how: unknown[]): Promise<void> {
  try {
    await db.query(sql, [event.delivery, event.lease, ...how]);
  } catch (refused) {
    console.error(`cannot end ${event.delivery}: ${refused}`);
  }
}

/** Keeps the leases of what this worker has, on a connection of its own. */
async function extend(db: pg.Client, held: Map<string, string>): Promise<void> {
  for (;;) {
    await sleep((leaseSeconds * 1000) / 3, undefined, { ref: false });
    for (const [delivery, lease] of held) {
      try {
        await db.query("SELECT oncebox.extend($1, $2, $3::interval)", [delivery, lease, lasting]);
      } catch (error) {
        if (held.delete(delivery)) console.error(`lost ${delivery}: ${error}`);
      }
    }
  }
}

async function main(drain: boolean): Promise<void> {
  const [db, leases] = [new pg.Client({ connectionString }), new pg.Client({ connectionString })];
  await Promise.all([db.connect(), leases.connect()]);
  const held = new Map<string, string>();
  let stopping = false;
  process.on("SIGTERM", () => (stopping = true));
  void extend(leases, held);
  while (!stopping) {
    // A commit of its own: leases must be known before work begins.
    const claim = "SELECT * FROM oncebox.claim('billing', 4, $1::interval)";
    const { rows } = await db.query<Event>(claim, [lasting]);
    for (const { delivery, lease } of rows) held.set(delivery, lease);
    for (const event of rows) {
      // Else its lease was lost meanwhile.
      if (held.has(event.delivery)) await (stopping ? leave(db, RETURN, event) : work(db, event));
      held.delete(event.delivery);
    }
    if (rows.length > 0) continue;
    if (drain) break;
    await sleep(200);
  }
  await Promise.all([db.end(), leases.end()]);
}

await main(process.argv.includes("--drain"));
