#!/usr/bin/env python3
"""schedule_runs.py [SECONDS]: three `simba schedule --every 1s` on one mutex, for SECONDS (30); the leader is killed
twice. No second has two runs, whoever leads, and there is a gap only where the leader was killed: not
longer than the store lets it be."""
import json
import os
import signal
import subprocess
import sys
import time

SIMBA = os.environ["SIMBA"]
MUTEX = os.environ["M"]
SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 30
TTL, TRANSITION = 3, 2
JITTER = 1  # of a busy machine: a run may be that late
# After a crash: the lease and 1.5 s; then the initial delay. C7 of docs/guarantees.md.
GAP = TTL + TRANSITION + 1.5 + 0.01 * (TTL + TRANSITION) + 1 + JITTER


def start():
    # The first run of a leader comes a period after it has become one, so that the rate stays.
    return subprocess.Popen([SIMBA, "schedule", "--json", "--ttl", "%ds" % TTL, "--transition", "%ds" % TRANSITION,
                             MUTEX, "--every", "1s", "--initial-delay", "1s", "true"],
                            stdout=open("runs", "ab"), stderr=open("errors", "ab"))


def leader():
    out = subprocess.run([SIMBA, "status", "--json", MUTEX], capture_output=True, text=True).stdout
    holder = json.loads(out)["holder"]
    return int(holder.split(":")[1].split("@")[0]) if holder else None


def main():
    open("runs", "w").close()
    processes = [start() for _ in range(3)]
    began = time.time()
    kills = []
    try:
        while time.time() < began + SECONDS:
            if len(kills) < 2 and time.time() > began + (len(kills) + 1) * SECONDS / 3:
                victim = next(p for p in processes if p.pid == leader())
                victim.send_signal(signal.SIGKILL)
                victim.wait()
                kills.append(time.time())
            time.sleep(0.05)
    finally:
        for p in processes:
            if p.returncode is None:
                p.send_signal(signal.SIGTERM)
        codes = [p.wait(timeout=30) for p in processes]
    lines = [json.loads(line) for line in open("runs")]
    runs = sorted((one["at_ms"] / 1000, one["token"]) for one in lines if one["event"] == "run")
    gaps = []
    first = {}
    for at, token in runs:
        first.setdefault(token, at)
    for (before, old), (after, new) in zip(runs, runs[1:]):
        took = after - before
        # A late run does not shift the next one: seconds are counted from the leader's first run.
        if old == new and int(before - first[old] + 0.05) == int(after - first[new] + 0.05):
            sys.exit("two runs in one second, %.3f s apart, token %d" % (took, old))
        if old != new and took < 1:
            sys.exit("two leaders' runs within %.3f s, tokens %d and %d" % (took, old, new))
        if new < old:
            sys.exit("a run of an old leader: token %d after %d" % (new, old))
        if took > 2:
            gaps.append(took)
            if not any(before <= kill <= after for kill in kills):
                sys.exit("a gap of %.3f s without a reason" % took)
            if took > GAP:
                sys.exit("a gap of %.3f s, longer than %.1f s" % (took, GAP))
    tenures = len({token for _, token in runs})
    if len(kills) != 2 or tenures != 3 or sorted(codes)[:2] != [-9, -9] or sorted(codes)[2] != 0:
        sys.exit("%d kills, %d leaders, exit codes %r" % (len(kills), tenures, codes))
    if len(runs) < SECONDS - 2 * GAP - 2:
        sys.exit("only %d runs" % len(runs))
    print("%d runs in %d s by %d leaders; gaps: %s" %
          (len(runs), SECONDS, tenures, ", ".join("%.2f s" % gap for gap in gaps)))


main()
