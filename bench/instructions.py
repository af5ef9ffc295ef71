#!/usr/bin/env python3
"""Counts the instructions that calls cost a server, with valgrind's callgrind.

    bench/instructions.py [--program FILE] [--calls N] [--only KIND,...] [--rounds N] [--keep DIR]

Each kind of call is made on one connection, one after the other: N times, then 3 N times, each time between two readings of
callgrind's counter. The difference of both readings, divided by 2 N, is what one call costs, with all that follows from it
(the append, the fold into the read models). What the server does by itself is measured before, and taken off. Counts of two
programs, or with and without a token, can be compared although other programs use the machine; times cannot.

A user's flows have an owner, whose totals are kept: so calls without a token name a `user_id`, and the ratio is that of a token
to the same work without one; "of nobody": without such a name. SHA-256 (the chain of the log, digests of credentials) is
counted apart, because valgrind has no instructions of the processor for it.

Needs valgrind and Python 3.9. For names of functions in `--keep`, measure a program that was built with
`--config 'profile.release.strip="none"'`.
"""

import argparse
import http.client
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

TASK = {"name": "Measured task", "priority": 2, "inputs": {"url": "https://example.com", "timeout": 60},
        "schemas": {"method": "echo_executor"}, "dependencies": []}
START_PATIENCE_S = 180
# Tasks of a page that is listed.
LISTED = 20
IDLE_S = 8


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Server:
    """A server under callgrind with a fresh data folder, and one connection to it."""

    def __init__(self, program, folder, auth):
        self.auth = auth
        self.folder = folder
        data = os.path.join(folder, "data")
        os.mkdir(data)
        self.headers = {"content-type": "application/json"}
        arguments = ["--data-dir", data, "--auth", "on" if auth else "off", "--metrics", "--log-level", "error"]
        # Limits would refuse what is measured.
        arguments += ["--quota-open-flows", "0", "--quota-waiting-tasks", "0"]
        if auth:
            made = subprocess.run([program, "--json", "tokens", "create", "ann", "--scopes",
                                   "tasks:read,tasks:write,tasks:run,metrics", "--data-dir", data],
                                  check=True, capture_output=True)
            self.headers["authorization"] = "Bearer " + json.loads(made.stdout)["token"]
        self.port = free_port()
        valgrind = ["valgrind", "--tool=callgrind", "--quiet", f"--callgrind-out-file={folder}/out"]
        self.process = subprocess.Popen(valgrind + [program, "serve", "--listen", f"127.0.0.1:{self.port}"] + arguments,
                                        stderr=subprocess.DEVNULL, env={**os.environ, "TOKIO_WORKER_THREADS": "1"})
        self.dumps = 0
        self.idle = 0
        until = time.monotonic() + START_PATIENCE_S
        while True:
            try:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                self.call("system.health", {})
                return
            except OSError:
                if time.monotonic() > until or self.process.poll() is not None:
                    sys.exit("the server did not start")
                time.sleep(0.2)

    def send(self, method, path, body=None):
        self.connection.request(method, path, body, self.headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            sys.exit(f"{method} {path}: {answer.status} {text[:300]!r}")
        return text

    def call(self, method, params):
        answer = json.loads(self.send("POST", "/", json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})))
        if "error" in answer:
            sys.exit(f"{method}: {answer}")
        return answer["result"]

    def count(self, work):
        """Instructions that were carried out while `work` was done."""
        # What was begun before ends before.
        time.sleep(0.5)
        self.control("--zero")
        began = time.monotonic()
        work()
        time.sleep(0.5)
        self.control("--dump")
        seconds = time.monotonic() - began
        self.dumps += 1
        with open(f"{self.folder}/out.{self.dumps}", errors="replace") as dump:
            found = re.search(r"^(?:summary|totals): (\d+)", dump.read(), re.MULTILINE)
        return int(found.group(1)) - self.idle * seconds

    def control(self, what):
        subprocess.run(["callgrind_control", what, str(self.process.pid)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def digests(self):
        """Instructions of SHA-256 in the last dump; None without names of functions."""
        listed = subprocess.run(["callgrind_annotate", "--threshold=100","--auto=no", f"{self.folder}/out.{self.dumps}"],
                                capture_output=True, text=True).stdout
        if "taskledger" not in listed:
            return None
        digests = re.findall(r"^ *([\d,]+) .*(?:sha256|sha2::)", listed, re.IGNORECASE | re.MULTILINE)
        return sum(int(count.replace(",", "")) for count in digests)

    def end(self):
        self.connection.close()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(120)


def own(server):
    """A task of the user, whose name has to be said while nobody shows a token."""
    return TASK if server.auth else {**TASK, "user_id": "ann"}


def create(server):
    return lambda: server.call("tasks.create", TASK)


def labelled_create(server):
    return lambda: server.call("tasks.create", own(server))


def get(server):
    task = server.call("tasks.create", own(server))["id"]
    return lambda: server.call("tasks.get", {"task_id": task})


def list_tasks(server):
    for _ in range(LISTED):
        server.call("tasks.create", own(server))
    return lambda: server.call("tasks.list", {"limit": LISTED})


def execute(server):
    return lambda: server.call("tasks.execute", {"tasks": [own(server)]})


def scrape(server):
    return lambda: server.send("GET", "/metrics")


KINDS = {"tasks.create": labelled_create, "tasks.create of nobody": create, "tasks.get": get, "tasks.list": list_tasks,
         "tasks.execute": execute, "GET /metrics": scrape}


def measured(program, auth, kinds, calls, keep):
    """Instructions per call of each kind, and those of digests among them."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        server = Server(program, folder, auth)
        try:
            # What it does by itself depends on how long it takes, and that on what else the machine does.
            server.idle = server.count(lambda: time.sleep(IDLE_S)) / (IDLE_S + 0.5)
            found = {kind: per_call(server, KINDS[kind](server), calls) for kind in kinds}
        finally:
            server.end()
        if keep:
            shutil.copytree(folder, os.path.join(keep, "with-token" if auth else "without"),
                            ignore=shutil.ignore_patterns("data"), dirs_exist_ok=True)
        return found


def per_call(server, one, calls):
    """Instructions of one call, and those of digests among them, if functions have names."""
    def many(times):
        for _ in range(times):
            one()

    many(max(calls // 4, 1))
    few = server.count(lambda: many(calls))
    few_of_digests = server.digests()
    more = server.count(lambda: many(3 * calls))
    of_digests = server.digests()
    if of_digests is None:
        return (more - few) / (2 * calls), None
    return (more - few) / (2 * calls), (of_digests - few_of_digests) / (2 * calls)


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--program", default="target/release/taskledger")
    asked.add_argument("--calls", type=int, default=200)
    asked.add_argument("--only", default=",".join(KINDS), help="kinds, with commas: " + ", ".join(KINDS))
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--keep", help="a folder for callgrind's files, which callgrind_annotate reads")
    args = asked.parse_args()
    kinds = args.only.split(",")
    rounds = {True: [], False: []}
    for _ in range(args.rounds):
        for auth in (False, True):
            rounds[auth].append(measured(args.program, auth, kinds, args.calls, args.keep))
    print("| | without | with a token | ratio | SHA-256 without, with |\n|---|---|---|---|---|")
    for kind in kinds:
        of = {auth: [it[kind][0] for it in rounds[auth]] for auth in rounds}
        without, token = statistics.median(of[False]), statistics.median(of[True])
        digests = [[it[kind][1] for it in rounds[auth]] for auth in (False, True)]
        known = not any(None in it for it in digests)
        digest = ", ".join(f"{statistics.median(it):,.0f}" for it in digests) if known else "?"
        spread = [f"{min(of[auth]):,.0f} to {max(of[auth]):,.0f}" for auth in (False, True)]
        print(f"| `{kind}` | {without:,.0f} ({spread[0]}) | {token:,.0f} ({spread[1]}) | {token / without:.3f} | {digest} |")


main()
