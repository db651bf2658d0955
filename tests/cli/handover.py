#!/usr/bin/env python3
"""handover.py [COUNT]: five `simba elect` with hooks on one mutex; COUNT (200) times the leader is made to
hand over: by `simba release`, by STOP (and CONT when another leads), by KILL (and a new process in its
place). The hooks write to one file when they begin and end. Of all processes together:

    acquired begin, acquired end, released begin, released end    with one token, and then the next one's

and nothing in between. A hook that was cut short has no end; that is counted, and must be rare."""
import os
import random
import signal
import subprocess
import sys
import time

SIMBA = os.environ["SIMBA"]
MUTEX = os.environ["M"]
COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 200
PROCESSES = 5
PATIENCE = 30

ACQUIRED = "echo acquired begin $SIMBA_FENCING_TOKEN >>log; sleep 0.02; echo acquired end $SIMBA_FENCING_TOKEN >>log"
RELEASED = ACQUIRED.replace("acquired", "released")


class Candidate:
    def __init__(self):
        self.process = subprocess.Popen(
            [SIMBA, "elect", "-q", "--ttl", "2s", "--transition", "1s", MUTEX, "-a", ACQUIRED, "-r", RELEASED],
            stdout=subprocess.PIPE, stderr=open("errors", "ab"))
        os.set_blocking(self.process.stdout.fileno(), False)

    def signal(self, number):
        self.process.send_signal(number)


def holder():
    """The leader's process, and its token; None: there is none."""
    out = subprocess.run([SIMBA, "status", "--json", MUTEX], capture_output=True, text=True).stdout
    import json
    one = json.loads(out)
    if one["state"] != "held":
        return None
    return int(one["holder"].split(":")[1].split("@")[0]), one["token"]


def wait_for_leader(other_than):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = holder()
        if found and found[1] != other_than and "acquired end %d\n" % found[1] in open("log").read():
            return found
        time.sleep(0.02)
    sys.exit("nobody leads")


def check(lines):
    """The order of all hooks; returns how many hooks were cut short."""
    cut, tenures = 0, []
    for line in lines:
        name, what, token = line.split()
        if not tenures or tenures[-1][0] != int(token):
            if tenures and int(token) <= tenures[-1][0]:
                sys.exit("token %s after %d" % (token, tenures[-1][0]))
            tenures.append((int(token), []))
        tenures[-1][1].append((name, what))
    whole = [("acquired", "begin"), ("acquired", "end"), ("released", "begin"), ("released", "end")]
    for number, (token, seen) in enumerate(tenures):
        is_last = number == len(tenures) - 1
        missing = [step for step in whole if step not in seen]
        if [step for step in whole if step in seen] != seen:
            sys.exit("out of order with %d: %r" % (token, seen))
        if not is_last and (("acquired", "begin") in missing or ("released", "begin") in missing):
            sys.exit("hooks do not alternate: with %d only %r" % (token, seen))
        cut += 0 if is_last else len(missing)
    return cut, len(tenures)


def main():
    random.seed(1)
    open("log", "w").close()
    candidates = [Candidate() for _ in range(PROCESSES)]
    done = {"release": 0, "kill": 0, "stop": 0}
    try:
        pid, token = wait_for_leader(None)
        for number in range(COUNT):
            how = random.choices(["release", "kill", "stop"], [5, 3, 2])[0]
            leader = next((c for c in candidates if c.process.pid == pid), None)
            if leader is None:
                sys.exit("an unknown leader: %d" % pid)
            if how == "release":
                subprocess.run([SIMBA, "release", "--yes", "-q", "--token", str(token), MUTEX], check=False)
            elif how == "kill":
                leader.signal(signal.SIGKILL)
                leader.process.wait()
                candidates.remove(leader)
                candidates.append(Candidate())
            else:
                leader.signal(signal.SIGSTOP)
            pid, token = wait_for_leader(token)
            if how == "stop":
                leader.signal(signal.SIGCONT)
            done[how] += 1
    finally:
        for c in candidates:
            c.signal(signal.SIGCONT)
            c.signal(signal.SIGTERM)
        codes = [c.process.wait(timeout=PATIENCE) for c in candidates]
    cut, tenures = check(open("log").read().splitlines())
    if any(codes):
        sys.exit("exit codes %r" % codes)
    if cut > COUNT // 50:
        sys.exit("%d hooks were cut short" % cut)
    print("%d hand-overs (%s), %d tenures, %d hooks cut short, never two at once"
          % (COUNT, ", ".join("%d by %s" % (n, how) for how, n in done.items()), tenures, cut))


main()
