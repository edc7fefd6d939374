"""Marks invoices paid, unlocks their customers and queues one e-mail each: once, in one transaction.

    DATABASE_URL=postgres://orders@localhost/app python worker.py

Works on a route with `pull = true`. The tables are the service's own; Oncebox's are next to them in
the schema `oncebox`, and one commit covers both. With --drain it stops when nothing is due.
"""

import json
import os
import signal
import sys
import threading
import time

import psycopg
from psycopg.rows import dict_row

URL = os.environ["DATABASE_URL"]
LEASE = int(os.environ.get("LEASE_SECONDS", "30"))
LOST = "OB409"  # the lease is over: another worker has the delivery, or it has ended
# Another transaction has the same rows, or the same effect: run the transaction again.
AGAIN = {"40001", "40P01", "55P03", "OB425"}


def invoice_paid(db, event):
    """The business. Everything here commits with the delivery, or not at all."""
    invoice = json.loads(event["body"])["data"]["object"]
    newest = db.execute("SELECT oncebox.advance(%s, %s)", (invoice["id"], event["object_version"]))
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


def why(error):
    return getattr(getattr(error, "diag", None), "message_primary", None) or str(error)


def handle(db, event):
    lease = (event["delivery"], event["lease"])
    handler = HANDLERS.get(event["event_type"])
    with db.transaction():
        db.execute("SELECT oncebox.enter(%s, %s)", lease)
        outcome, note = handler(db, event) if handler else ("dead", "no handler for its type")
        db.execute("SELECT oncebox.finish(%s, %s, %s, %s)", (*lease, outcome, note))


def work(db, event):
    """Runs one attempt to its end. What cannot be said now is left for the lease to run out."""
    try:
        for pause in (0.1, 0.5, 2, None):
            try:
                return handle(db, event)
            except psycopg.Error as error:
                if error.sqlstate not in AGAIN:
                    raise
                if pause is None:  # not its fault: no attempt is spent
                    return end(db, event, "snooze", error, "1 minute")
                time.sleep(pause)
    except Exception as error:  # whatever it is, the attempt failed, and says why
        if getattr(error, "sqlstate", None) == LOST or db.broken:
            print(f"lost {event['delivery']}: {why(error)}", file=sys.stderr)
        else:
            end(db, event, "retry", error, None)


def end(db, event, outcome, error, after):
    try:
        values = (event["delivery"], event["lease"], outcome, why(error), after)
        db.execute("SELECT oncebox.finish(%s, %s, %s, %s, %s::interval)", values)
    except psycopg.Error as refused:
        print(f"cannot end {event['delivery']}: {why(refused)}", file=sys.stderr)


def give_back(db, event):
    """Returns what was not begun: it is as if it had not been claimed."""
    try:
        db.execute("SELECT oncebox.return(%s, %s)", (event["delivery"], event["lease"]))
    except psycopg.Error as refused:
        print(f"cannot return {event['delivery']}: {why(refused)}", file=sys.stderr)


def extend(db, held):
    """Keeps the leases of what this worker has, on a connection of its own."""
    while True:
        time.sleep(LEASE / 3)
        for delivery, lease in list(held.items()):
            try:
                by = f"{LEASE} seconds"
                db.execute("SELECT oncebox.extend(%s, %s, %s::interval)", (delivery, lease, by))
            except psycopg.Error as error:
                if db.broken:
                    os._exit(1)  # without leases there is nothing to work on: start again
                if held.pop(delivery, None):
                    print(f"lost {delivery}: {why(error)}", file=sys.stderr)


def main(drain):
    stopping, held = threading.Event(), {}
    signal.signal(signal.SIGTERM, lambda *_: stopping.set())
    leases = psycopg.connect(URL, autocommit=True)
    threading.Thread(target=extend, args=(leases, held), daemon=True).start()
    # Each claim is a commit of its own: leases must be known before work begins.
    with psycopg.connect(URL, autocommit=True, row_factory=dict_row) as db:
        while not stopping.is_set():
            claim = "SELECT * FROM oncebox.claim('billing', 4, %s::interval)"
            events = db.execute(claim, (f"{LEASE} seconds",)).fetchall()
            held.update((event["delivery"], event["lease"]) for event in events)
            for event in events:
                if event["delivery"] in held:  # else its lease was lost meanwhile
                    give_back(db, event) if stopping.is_set() else work(db, event)
                held.pop(event["delivery"], None)
            if not events and (drain or stopping.wait(0.2)):
                return


if __name__ == "__main__":
    main("--drain" in sys.argv)
