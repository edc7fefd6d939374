// Marks invoices paid, unlocks their customers and queues one e-mail each: once, in one transaction.
//
//     DATABASE_URL=postgres://orders@localhost/app npm start
//
// Works on a route with `pull = true`. The tables are the service's own; Oncebox's are next to them
// in the schema `oncebox`, and one commit covers both. With --drain it stops when nothing is due.
import pg from "pg";

type Event = {
  delivery: string;
  lease: string; // a bigint, which JavaScript has no number for
  event_type: string;
  version: string | null;
  body: Buffer;
};
type Outcome = [outcome: "processed" | "stale" | "dead", note: string | null];
type Handler = (db: pg.Client, event: Event) => Promise<Outcome>;

/** The business. Everything here commits with the delivery, or not at all. */
const invoicePaid: Handler = async (db, event) => {
  const invoice = JSON.parse(event.body.toString()).data.object;
  const newest = await db.query("SELECT oncebox.advance($1, $2)", [invoice.id, event.version]);
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

async function work(db: pg.Client, event: Event): Promise<void> {
  const { delivery, lease } = event;
  try {
    await db.query("BEGIN");
    await db.query("SELECT oncebox.enter($1, $2)", [delivery, lease]);
    const handler = handlers[event.event_type];
    const [outcome, note] = handler ? await handler(db, event) : ["dead", "no handler for it"];
    await db.query("SELECT oncebox.finish($1, $2, $3, $4)", [delivery, lease, outcome, note]);
    await db.query("COMMIT");
  } catch (error) {
    await retry(db, event, error);
  }
}

async function retry(db: pg.Client, { delivery, lease }: Event, error: unknown): Promise<void> {
  try {
    await db.query("ROLLBACK");
    // OB409: another worker has the delivery by now, and nothing of ours was kept.
    if ((error as { code?: string }).code === "OB409") return;
    const why = String(error);
    await db.query("SELECT oncebox.finish($1, $2, 'retry', $3)", [delivery, lease, why]);
  } catch (unheard) {
    console.error(unheard); // the lease runs out, and the delivery comes back by itself
  }
}

async function main(drain: boolean): Promise<void> {
  const db = new pg.Client({ connectionString: process.env.DATABASE_URL });
  await db.connect();
  for (;;) {
    // A commit of its own: leases must be known before work begins.
    const { rows } = await db.query<Event>("SELECT * FROM oncebox.claim('billing', 10)");
    for (const event of rows) await work(db, event);
    if (rows.length > 0) continue;
    if (drain) break;
    await new Promise((later) => setTimeout(later, 200));
  }
  await db.end();
}

await main(process.argv.includes("--drain"));
