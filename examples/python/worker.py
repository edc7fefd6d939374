"""Marks invoices paid, unlocks their customers and queues one e-mail each: once, in one transaction.

    DATABASE_URL=postgres://orders@localhost/app python worker.py

Works on a route with `pull = true`. The tables are the service's own; Oncebox's are next to them in
the schema `oncebox`, and one commit covers both. With --drain it stops when nothing is due.
"""

import json
import os
import sys
import time

import psycopg
from psycopg.rows import dict_row


def invoice_paid(db, event):
    """The business. Everything here commits with the delivery, or not at all."""
    invoice = json.loads(event["body"])["data"]["object"]
    newest = db.execute("SELECT oncebox.advance(%s, %s)", (invoice["id"], event["version"]))
    if not newest.fetchone()["advance"]:
        return "stale", None
    db.execute("UPDATE invoices SET state = 'paid' WHERE id = %s", (invoice["id"],))
    db.execute("UPDATE customers SET locked = false WHERE id = %s", (invoice["customer"],))
    key = f"receipt-email:{invoice['id']}"
    if db.execute("SELECT oncebox.once(%s)", (key,)).fetchone()["once"]:
        mail = json.dumps({"template": "receipt", "invoice": invoice["id"]})
        db.execute("INSERT INTO emails (invoice) VALUES (%s)", (invoice["id"],))
        db.execute("SELECT oncebox.send('mailer', %s, %s::text)", (key, mail))
    return "processed", f"invoice {invoice['id']} paid"


HANDLERS = {"invoice.paid": invoice_paid}


def work(db, event):
    delivery, lease = event["delivery"], event["lease"]
    handler = HANDLERS.get(event["event_type"])
    try:
        with db.transaction():
            db.execute("SELECT oncebox.enter(%s, %s)", (delivery, lease))
            outcome, note = handler(db, event) if handler else ("dead", "no handler for its type")
            db.execute(
                "SELECT oncebox.finish(%s, %s, %s, %s)", (delivery, lease, outcome, note)
            )
    except psycopg.Error as error:
        # OB409: another worker has the delivery by now, and nothing of ours was kept.
        if error.sqlstate != "OB409" and not db.broken:
            retry(db, delivery, lease, error)
    except Exception as error:  # whatever it is, the attempt failed, and says why
        retry(db, delivery, lease, error)


def retry(db, delivery, lease, error):
    try:
        db.execute("SELECT oncebox.finish(%s, %s, 'retry', %s)", (delivery, lease, str(error)))
    except psycopg.Error:
        pass  # the lease runs out, and the delivery comes back by itself


def main(drain):
    url = os.environ["DATABASE_URL"]
    # Each claim is a commit of its own: leases must be known before work begins.
    with psycopg.connect(url, autocommit=True, row_factory=dict_row) as db:
        while True:
            events = db.execute("SELECT * FROM oncebox.claim('billing', 10)").fetchall()
            for event in events:
                work(db, event)
            if not events:
                if drain:
                    return
                time.sleep(0.2)


if __name__ == "__main__":
    main("--drain" in sys.argv)
