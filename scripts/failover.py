"""Failovers of PostgreSQL under Patroni, with two nodes of Oncebox under load on each way in.

Starts etcd, three PostgreSQL under Patroni, HAProxy and four `oncebox serve` on loopback, in a
private folder that is removed afterwards. Two nodes know the hosts by a bare list, two go through
HAProxy, which asks Patroni. Then each kind of fault happens so many times. Senders keep what they
were told; a checker that knows only SQL compares it with what the surviving primary holds.

Run it with `make failover`. FAULTS=20 is how often each kind happens, KINDS is which.
"""

import collections
import hashlib
import hmac
import http.client
import itertools
import json
import os
import pathlib
import pwd
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import psycopg

SECRET = "whsec_failover"
SOURCE = "stripe-live"
KINDS = ["killed", "frozen", "agent", "switchover", "returning"]
# Patroni allows no ttl below 20 s.
TIMES = {"ttl": 20, "loop_wait": 2, "retry_timeout": 5}
WAYS = ["list", "proxy"]


def log(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def until(what, holds, limit=120):
    """Waits until `holds()`; whatever it returns is returned."""
    began = time.monotonic()
    while time.monotonic() - began < limit:
        try:
            if found := holds():
                return found
        except (OSError, psycopg.Error, ValueError):
            pass
        time.sleep(0.2)
    raise TimeoutError(f"waited {limit} s in vain until {what}")


class Place:
    """The private folder and the processes in it."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="oncebox-failover-", dir="/tmp"))
        self.user = None
        self.processes = []
        if os.geteuid() == 0:
            self.user = pwd.getpwnam("postgres")
            os.chown(self.folder, self.user.pw_uid, self.user.pw_gid)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        if self.user:
            os.chown(path, self.user.pw_uid, self.user.pw_gid)
        return str(path)

    def start(self, name, command):
        with open(self.folder / f"{name}.log", "ab") as output:
            user = {"user": "postgres", "group": "postgres"} if self.user else {}
            process = subprocess.Popen(
                command, stdout=output, stderr=output, cwd=self.folder,
                env={"PATH": os.environ["PATH"], "HOME": str(self.folder)}, **user,
            )
        self.processes.append(process)
        return process

    def close(self):
        for process in reversed(self.processes):
            if process.poll() is None:
                process.kill()
                process.wait()
        for data in self.folder.glob("pg*/data"):
            for pid in postgres_processes(data):
                send(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def postgres_processes(data):
    """The postmaster of a data folder first, then its children."""
    try:
        postmaster = int((data / "postmaster.pid").read_text().split()[0])
        command = pathlib.Path(f"/proc/{postmaster}/cmdline").read_bytes()
    except (OSError, ValueError, IndexError):
        return []
    if str(data).encode() not in command:
        return []
    children = pathlib.Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text()
    return [postmaster, *map(int, children.split())]


class Member:
    """One PostgreSQL and its agent."""

    def __init__(self, cluster, number):
        self.cluster, self.name = cluster, f"pg{number}"
        self.port, self.rest = free_port(), free_port()
        self.folder = cluster.place.folder / self.name
        self.data = self.folder / "data"
        self.folder.mkdir()
        if cluster.place.user:
            os.chown(self.folder, cluster.place.user.pw_uid, cluster.place.user.pw_gid)
        self.config = cluster.place.write(f"{self.name}.yml", json.dumps(self.settings()))
        self.agent = None

    def settings(self):
        password = {"password": "secret"}
        return {
            "scope": "oncebox",
            "name": self.name,
            "etcd3": {"host": f"127.0.0.1:{self.cluster.etcd_port}"},
            "restapi": {
                "listen": f"127.0.0.1:{self.rest}",
                "connect_address": f"127.0.0.1:{self.rest}",
            },
            "bootstrap": {
                "dcs": {
                    **TIMES,
                    "primary_start_timeout": 0,
                    "synchronous_mode": True,
                    "synchronous_mode_strict": True,
                    "postgresql": {"use_pg_rewind": True},
                },
                "initdb": [{"encoding": "UTF8"}, "data-checksums"],
            },
            "postgresql": {
                "listen": f"127.0.0.1:{self.port}",
                "connect_address": f"127.0.0.1:{self.port}",
                "data_dir": str(self.data),
                "bin_dir": self.cluster.programs,
                "pgpass": str(self.folder / "pgpass"),
                "authentication": {
                    "superuser": {"username": "postgres", **password},
                    "replication": {"username": "replicator", **password},
                    "rewind": {"username": "rewinder", **password},
                },
                "pg_hba": ["local all all trust", "host all all 127.0.0.1/32 trust",
                           "host replication all 127.0.0.1/32 trust"],
                "parameters": {
                    "unix_socket_directories": str(self.folder),
                    "shared_buffers": "32MB",
                    "wal_log_hints": "on",
                    "wal_keep_size": "512MB",
                },
            },
        }

    def start(self):
        patroni = str(pathlib.Path(sys.executable).parent / "patroni")
        self.agent = self.cluster.place.start(self.name, [sys.executable, patroni, self.config])

    def url(self, database="postgres"):
        return (f"postgres://postgres@127.0.0.1:{self.port}/{database}"
                "?connect_timeout=3&options=-c%20statement_timeout%3D20000")

    def signal_postgres(self, number):
        # The postmaster first, so that it starts no new process meanwhile.
        for pid in postgres_processes(self.data):
            send(pid, number)


class Cluster:
    """etcd, three members and HAProxy."""

    def __init__(self, place):
        self.place, self.etcd_port, self.proxy_port = place, free_port(), free_port()
        initdb = pathlib.Path(shutil.which("initdb") or "")
        found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"))
        self.programs = str((found[-1] if found else initdb).resolve().parent)
        peer = free_port()
        place.start("etcd", [
            "etcd", "--data-dir", str(place.folder / "etcd"),
            "--listen-client-urls", f"http://127.0.0.1:{self.etcd_port}",
            "--advertise-client-urls", f"http://127.0.0.1:{self.etcd_port}",
            "--listen-peer-urls", f"http://127.0.0.1:{peer}",
            "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
            "--initial-cluster", f"default=http://127.0.0.1:{peer}",
        ])
        self.members = [Member(self, number) for number in (1, 2, 3)]
        self.members[0].start()
        until("there is a leader", self.leader)
        for member in self.members[1:]:
            member.start()
        until("the standbys stream", self.is_whole)
        place.start("haproxy", ["haproxy", "-f", place.write("haproxy.cfg", self.haproxy())])

    def haproxy(self):
        servers = "\n".join(
            f"  server {member.name} 127.0.0.1:{member.port} check port {member.rest}"
            for member in self.members
        )
        return f"""
defaults
  mode tcp
  timeout connect 3s
  timeout client 1h
  timeout server 1h
  timeout check 2s
listen primary
  bind 127.0.0.1:{self.proxy_port}
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
{servers}
"""

    def ask(self, path, body=None):
        """Asks the first agent that answers."""
        for member in self.members:
            try:
                request = urllib.request.Request(
                    f"http://127.0.0.1:{member.rest}{path}",
                    data=json.dumps(body).encode() if body else None,
                )
                with urllib.request.urlopen(request, timeout=3 if body is None else 60) as answer:
                    return answer.read().decode()
            except OSError:
                continue
        raise OSError("no agent answers")

    def states(self):
        return json.loads(self.ask("/cluster"))["members"]

    def leader(self, other_than=None):
        names = [state["name"] for state in self.states()
                 if state["role"] == "leader" and state["state"] == "running"]
        if not names or names[0] == other_than:
            return None
        member = next(member for member in self.members if member.name == names[0])
        with psycopg.connect(member.url(), autocommit=True) as connection:
            standby = connection.execute("SELECT pg_is_in_recovery()").fetchone()[0]
        return None if standby else member

    def is_whole(self):
        """A leader, and two standbys that stream on its timeline, one of them synchronous."""
        states = self.states()
        roles = collections.Counter(state["role"] for state in states)
        timelines = {state.get("timeline") for state in states}
        streaming = sum(state["state"] == "streaming" for state in states)
        return (len(states) == 3 and roles["leader"] == 1 and streaming == 2
                and roles["sync_standby"] >= 1 and len(timelines) == 1)


class Ledger:
    """What the senders of one way were told."""

    def __init__(self, way):
        self.way = way
        self.lock = threading.Lock()
        self.numbers = itertools.count()
        self.told = {}
        self.open = collections.deque()
        self.wrong = []
        self.answers = collections.Counter()
        self.acks = collections.defaultdict(list)

    def next(self):
        with self.lock:
            if self.open and (len(self.open) > 50 or next(self.numbers) % 3 == 0):
                return self.open.popleft()
            return f"evt_{self.way}_{next(self.numbers):07}"

    def note(self, node, event, status, receipt):
        with self.lock:
            self.answers[status] += 1
            if status not in (200, 202):
                self.open.append(event)
                if status not in (503, "broken"):
                    self.wrong.append(f"{event}: {status}")
                return
            self.acks[node].append(time.monotonic())
            if self.told.setdefault(event, receipt) != receipt:
                self.wrong.append(f"{event}: {self.told[event]}, then {receipt}")

    def gap(self, since):
        """The longest time without an acknowledgement from one of the nodes."""
        longest = 0.0
        with self.lock:
            for times in self.acks.values():
                recent = [at for at in times if at >= since - 5]
                pairs = zip(recent, recent[1:])
                longest = max([longest, *(b - a for a, b in pairs if b >= since)])
        return longest

    def is_flowing(self, nodes, within=1.5):
        now = time.monotonic()
        with self.lock:
            return all(self.acks[node] and now - self.acks[node][-1] < within for node in nodes)


class Sender(threading.Thread):
    """Posts signed events to one node, and comes back with those that were not acknowledged."""

    def __init__(self, ledger, node, port, stop):
        super().__init__(daemon=True)
        self.ledger, self.node, self.port, self.stop = ledger, node, port, stop

    def run(self):
        connection = None
        while not self.stop.is_set():
            event = self.ledger.next()
            connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=8)
            try:
                status, receipt = post(connection, event)
            except (OSError, http.client.HTTPException):
                connection.close()
                connection, status, receipt = None, "broken", None
            self.ledger.note(self.node, event, status, receipt)
            time.sleep(0.05 if status in (200, 202) else 0.2)


def post(connection, event):
    body = json.dumps({
        "id": event, "object": "event", "type": "invoice.paid", "created": 1760000000,
        "data": {"object": {"id": f"in_{event}"}},
    }).encode()
    at = int(time.time())
    signed = hmac.new(SECRET.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    headers = {"Content-Type": "application/json", "Stripe-Signature": f"t={at},v1={signed}"}
    connection.request("POST", f"/in/{SOURCE}", body, headers)
    answer = connection.getresponse()
    text = answer.read()
    receipt = json.loads(text).get("receipt") if answer.status in (200, 202) else None
    return answer.status, receipt


class Nodes:
    """Two nodes of Oncebox on each way to the primary, and their senders."""

    def __init__(self, cluster, binary, leader):
        self.cluster, self.stop = cluster, threading.Event()
        self.ledgers = {way: Ledger(way) for way in WAYS}
        self.processes, self.names = [], {way: [] for way in WAYS}
        with psycopg.connect(leader.url(), autocommit=True) as connection:
            for way in WAYS:
                connection.execute(f"CREATE DATABASE oncebox_{way}")
        hosts = ",".join(f"127.0.0.1:{member.port}" for member in cluster.members)
        urls = {
            "list": f"postgres://postgres@{hosts}/oncebox_list?target_session_attrs=read-write",
            "proxy": f"postgres://postgres@127.0.0.1:{cluster.proxy_port}/oncebox_proxy",
        }
        for way in WAYS:
            for number in (1, 2):
                self.start(way, f"{way}{number}", urls[way], binary)

    def start(self, way, name, url, binary):
        public, admin = free_port(), free_port()
        config = self.cluster.place.write(f"{name}.toml", f"""
[server]
listen = "127.0.0.1:{public}"
admin_listen = "127.0.0.1:{admin}"
[store]
url = "{url}"
[log]
format = "json"
[sources.{SOURCE}]
provider = "stripe"
secrets = ["{SECRET}"]
[routes.billing]
sources = ["{SOURCE}"]
pull = true
""")
        command = [binary, "serve", "--config", config]
        self.processes.append((name, self.cluster.place.start(name, command)))
        until(f"{name} is ready", lambda: urllib.request.urlopen(
            f"http://127.0.0.1:{admin}/readyz", timeout=5).status == 200)
        self.names[way].append(name)
        for _ in range(2):
            Sender(self.ledgers[way], name, public, self.stop).start()

    def are_flowing(self):
        for name, process in self.processes:
            if process.poll() is not None:
                raise SystemExit(f"{name} ended with {process.returncode}")
        return all(self.ledgers[way].is_flowing(self.names[way]) for way in WAYS)

    def check(self, leader):
        """Compares what senders were told with what the primary holds: lost, doubled, wrong."""
        counts = collections.Counter()
        for way, ledger in self.ledgers.items():
            with ledger.lock:
                told = dict(ledger.told)
                wrong = list(ledger.wrong)
            with psycopg.connect(leader.url(f"oncebox_{way}")) as connection:
                rows = connection.execute("SELECT event_id, id::text FROM oncebox.receipts")
                stored = collections.defaultdict(set)
                for event, receipt in rows:
                    stored[event].add(receipt)
            lost = [event for event, receipt in told.items() if receipt not in stored[event]]
            doubled = [event for event, receipts in stored.items() if len(receipts) > 1]
            for name, found in [("lost", lost), ("doubled", doubled), ("wrong", wrong)]:
                counts[name] += len(found)
                if found:
                    log(f"{way}: {len(found)} {name}: {found[:5]}")
            counts["told"] += len(told)
        return counts


class Faults:
    """Each kind of fault: it happens, another member leads, and it is undone."""

    def __init__(self, cluster, nodes):
        self.cluster, self.nodes = cluster, nodes

    def run(self, kind):
        until("the cluster is whole", self.cluster.is_whole, 180)
        until("events are acknowledged", self.nodes.are_flowing, 60)
        leader = until("there is a leader", self.cluster.leader)
        began = time.monotonic()
        getattr(self, kind)(leader)
        until("events are acknowledged again", self.nodes.are_flowing, 60)
        gaps = {way: self.nodes.ledgers[way].gap(began) for way in WAYS}
        return gaps

    def another(self, leader):
        return until("another member leads", lambda: self.cluster.leader(leader.name), 90)

    def killed(self, leader):
        leader.signal_postgres(signal.SIGKILL)
        self.another(leader)

    def frozen(self, leader):
        pids = postgres_processes(leader.data)
        leader.signal_postgres(signal.SIGSTOP)
        try:
            self.another(leader)
            until("events are acknowledged again", self.nodes.are_flowing, 60)
        finally:
            for pid in pids:
                send(pid, signal.SIGCONT)
            leader.signal_postgres(signal.SIGCONT)

    def agent(self, leader):
        leader.agent.send_signal(signal.SIGSTOP)
        try:
            self.another(leader)
            until("events are acknowledged again", self.nodes.are_flowing, 60)
        finally:
            leader.agent.send_signal(signal.SIGCONT)

    def switchover(self, leader):
        self.cluster.ask("/switchover", {"leader": leader.name})
        self.another(leader)

    def returning(self, leader):
        """The machine of the primary crashes and comes back without its agent, writable."""
        leader.agent.kill()
        leader.agent.wait()
        leader.signal_postgres(signal.SIGKILL)
        primary = self.another(leader)
        until("events are acknowledged again", self.nodes.are_flowing, 60)
        old = self.cluster.place.start(f"{leader.name}-old", [
            f"{self.cluster.programs}/postgres", "-D", str(leader.data), "-p", str(leader.port),
            "-c", "synchronous_standby_names=", "-c", "listen_addresses=127.0.0.1",
        ])
        until("the old primary takes writes", lambda: self.takes_writes(leader), 60)
        with psycopg.connect(primary.url(), autocommit=True) as connection:
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                               " WHERE application_name = 'oncebox'")
        time.sleep(3)
        until("events are acknowledged again", self.nodes.are_flowing, 60)
        leader.signal_postgres(signal.SIGKILL)
        old.wait()
        leader.start()

    @staticmethod
    def takes_writes(member):
        with psycopg.connect(member.url(), autocommit=True) as connection:
            connection.execute("SELECT pg_logical_emit_message(true, 'failover', '')")
        return True


def table(gaps):
    lines = [f"{'kind':<12}{'way':<8}{'faults':>6}{'min':>8}{'median':>8}{'max':>8}  s"]
    for (kind, way), values in gaps.items():
        low, middle, high = min(values), statistics.median(values), max(values)
        lines.append(f"{kind:<12}{way:<8}{len(values):>6}{low:>8.1f}{middle:>8.1f}{high:>8.1f}")
    return "\n".join(lines)


def main():
    binary = os.path.abspath(sys.argv[1])
    count = int(os.environ.get("FAULTS", "20"))
    kinds = os.environ.get("KINDS", " ".join(KINDS)).split()
    # An interrupted run cleans up, too.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit("interrupted"))
    place = Place()
    try:
        shutil.copy2(binary, place.folder / "oncebox")
        log("starting etcd, Patroni and HAProxy")
        cluster = Cluster(place)
        leader = until("there is a leader", cluster.leader)
        nodes = Nodes(cluster, str(place.folder / "oncebox"), leader)
        faults, gaps = Faults(cluster, nodes), collections.defaultdict(list)
        for number in range(count):
            for kind in kinds:
                found = faults.run(kind)
                for way in WAYS:
                    gaps[kind, way].append(found[way])
                counts = nodes.check(until("there is a leader", cluster.leader))
                shown = ", ".join(f"{way} {found[way]:.1f} s" for way in WAYS)
                log(f"{number + 1}/{count} {kind}: {shown}; {dict(counts)}")
        nodes.stop.set()
        time.sleep(9)
        until("the cluster is whole", cluster.is_whole, 180)
        counts = nodes.check(until("there is a leader", cluster.leader))
        for way in WAYS:
            log(f"{way}: answers {dict(nodes.ledgers[way].answers)}")
        print(table(gaps))
        log(f"{counts['told']} told, {counts['lost']} lost, {counts['doubled']} doubled, "
            f"{counts['wrong']} wrong answers")
        return 1 if counts["lost"] or counts["doubled"] or counts["wrong"] else 0
    except BaseException:
        if keep := os.environ.get("KEEP_LOGS"):
            for file in place.folder.glob("*.log"):
                shutil.copy(file, keep)
        raise
    finally:
        place.close()


if __name__ == "__main__":
    sys.exit(main())
