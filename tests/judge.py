#!/usr/bin/env python3
"""Judges what workers recorded: lines "worker mutex token before_ns after_ns", one for each time that a client said
that it is the owner, with the clock read before and after the question; and the faults that they suffered. All clocks
must be one clock. Workers named jvm… are clients of the JVM, others are of this library.

A tenure was held for certain from the end of its first question to the beginning of its last one. Where two tenures
of a mutex overlap, the one that began first has overstayed. Clients of the JVM keep no deadline: one that did not run
for a while, because it was stopped or because the machine was busy (lines "worker - 0 begin_ns end_ns"), may overstay
when it goes on, or take a grant for its own that has expired meanwhile. That is a known limit, and counted apart.
Every other overlap is a failure; nothing excuses ours. Clients of the JVM have no tokens; those of ours must rise, so
that no token is two workers'.

  judge.py [FILE...]      of workers of ours alone. Exit 0: all is well; 1: it is not, and each case is printed
  judge.py --self-test    sees that planted mistakes are found"""
import sys
from collections import namedtuple

KINDS = ("ours", "JVM")
MS = 1_000_000
NEXT_ANSWER = 50 * MS  # a worker asks every ms; on a busy machine it takes longer

Tenure = namedtuple("Tenure", "worker mutex token begin end")
Fault = namedtuple("Fault", "what worker begin end")  # what: kill (end = begin), stop, stall
LIMITS = ("stopped JVM overstayed", "starved JVM overstayed", "JVM began with an expired grant")


def kind(worker):
    return "JVM" if worker.startswith("jvm") else "ours"


def read(lines):
    """Tenures, in the order in which they began, stalls, and lines that are wrong."""
    found, stalls, wrong = {}, [], []
    for number, line in enumerate(lines, 1):
        try:
            worker, mutex, *figures = line.split()
            token, before, after = map(int, figures)
        except ValueError:
            wrong.append(f"line {number}: not 'worker mutex token before after': {line.strip()!r}")
            continue
        if mutex == "-":
            stalls.append(Fault("stall", worker, before, after))
        elif before > after or token <= 0 and kind(worker) == "ours":
            wrong.append(f"line {number}: a clock that ran back, or no token: {line.strip()!r}")
        else:
            t = found.setdefault((worker, mutex, token), [after, before])
            t[0], t[1] = min(t[0], after), max(t[1], before)
    return sorted((Tenure(*key, *times) for key, times in found.items()), key=lambda t: t.begin), stalls, wrong


class Judge:
    """lease_ms: ttl + transition, the longest time between an acquisition and its expiry."""

    def __init__(self, lines, faults=(), lease_ms=0):
        tenures, stalls, self.bad_lines = read(lines)
        self.faults, self.lease = sorted([*faults, *stalls], key=lambda f: f.begin), lease_ms * MS
        self.handovers = {}  # (cause, kind before, kind after): seconds from the fault, or the last yes, to the first
        self.limits = {}  # tenure of the JVM's: what it did, kind before, kind after, seconds after it went on
        self.bad_overlaps, self.bad_tokens = [], []
        self.tenures = tenures
        for mutex in sorted({t.mutex for t in tenures}):
            self.judge([t for t in tenures if t.mutex == mutex])

    def judge(self, tenures):
        """Of one mutex, in the order in which they began."""
        token, held = 0, []
        for i, t in enumerate(tenures):
            held = [earlier for earlier in held if earlier.end > t.begin]
            for earlier in held:
                self.overlap(earlier, t)
            held.append(t)
            if i > 0:
                self.handover(tenures[i - 1], t)
            if kind(t.worker) == "ours":
                if t.token <= token:
                    self.bad_tokens.append(f"{t.mutex}: {t.worker} had token {t.token} after {token}")
                token = max(token, t.token)

    def idle(self, worker, begin, end):
        """For how long it did not run in that time, until when, and whether it was stopped."""
        total, last, stopped = 0, begin, False
        for f in self.faults:
            if f.what != "kill" and f.worker == worker and f.begin < end and f.end > begin:
                total += max(0, min(f.end, end) - max(f.begin, last))
                last, stopped = max(last, f.end), stopped or f.what == "stop"
        return total, last, stopped

    def limit_of(self, first, second):
        """What excuses this overlap, if anything does, and when it began and ended."""
        until = min(first.end, second.end)
        # Its renewal came too late, or its lease counts from an answer that it read too late. When it goes on, a
        # renewal is due at once; it learns of the loss by the answer.
        total, last, stopped = self.idle(first.worker, first.begin - self.lease, first.end)
        if kind(first.worker) == "JVM" and total > self.lease / 4 and first.end < last + self.lease:
            return LIMITS[0 if stopped else 1], max(second.begin, min(last, first.end)), first.end
        total, last, stopped = self.idle(second.worker, second.begin - 2 * self.lease, second.begin)
        first_ran = self.idle(first.worker, first.begin, until)[0] == 0
        if kind(second.worker) == "JVM" and total > self.lease / 2 and first_ran:
            return LIMITS[2], second.begin, until
        return None, second.begin, until

    def overlap(self, first, second):
        limit, since, until = self.limit_of(first, second)
        seconds = (until - since) / 1e9
        if limit:
            # It may have overstayed into several tenures; the last one counts.
            wrong = second if limit == LIMITS[2] else first
            self.limits[wrong] = (limit, kind(first.worker), kind(second.worker), seconds)
            return
        guilty = "ours overstayed" if kind(first.worker) == "ours" else "no worker was disturbed"
        self.bad_overlaps.append(f"{first.mutex}: {first.worker} ({first.token}) and {second.worker} "
                                 f"({second.token}) owned it together for {seconds:.3f} s: {guilty}")

    def cause(self, before, after):
        """Why it changed hands, and when that began. The lease of a dead owner has most of its time left: who comes
        sooner has got what was released right before the fault."""
        for f in self.faults:
            if f.worker != before.worker or after.begin < f.begin + self.lease / 4:
                continue
            if f.what == "kill" and before.end <= f.begin < before.end + NEXT_ANSWER:
                return "killed", f.begin
            if f.what == "stop" and before.begin < f.begin < before.end + NEXT_ANSWER \
                    and (before.end <= f.begin + NEXT_ANSWER or after.begin < f.end):
                return "stopped", f.begin
        return "released", before.end

    def handover(self, before, after):
        cause, since = self.cause(before, after)
        key = (cause, kind(before.worker), kind(after.worker))
        self.handovers.setdefault(key, []).append(max(0, after.begin - since) / 1e9)

    def count(self, causes, before=None, after=None):
        return sum(len(gaps) for (c, b, a), gaps in self.handovers.items()
                   if c in causes and before in (None, b) and after in (None, a))

    def table(self):
        columns = [(b, a) for b in KINDS for a in KINDS]
        rows = [["from → to", *(f"{b} → {a}" for b, a in columns)]]
        for cause in ("released", "killed", "stopped"):
            row = [f"owner {cause}"]
            for b, a in columns:
                gaps = sorted(self.handovers.get((cause, b, a), []))
                row.append(f"{len(gaps)} ({gaps[len(gaps) // 2]:.2f}, ≤ {gaps[-1]:.1f} s)" if gaps else "0")
            rows.append(row)
        for limit in LIMITS:
            row = [limit]
            for b, a in columns:
                seconds = [s for *what, s in self.limits.values() if what == [limit, b, a]]
                row.append(f"{len(seconds)} (≤ {max(seconds) * 1000:.0f} ms)" if seconds else "0")
            rows.append(row)
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return ["| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths)) + " |" for row in
                [rows[0], ["-" * w for w in widths], *rows[1:]]]


def faults_of(lines):
    """Of workers of ours alone, that nothing excuses: what is wrong, and how many tenures there are."""
    j = Judge(lines)
    nothing = [] if j.tenures else ["nobody ever owned anything: that proves nothing"]
    return [*j.bad_lines, *j.bad_overlaps, *j.bad_tokens, *nothing], len(j.tenures)


def self_test():
    def held(worker, token, begin, end):
        return [f"{worker} m {token} {t * MS} {t * MS + 1}" for t in (begin, end)]

    def judged(lines, *faults):
        return Judge(sum(lines, []), [Fault(w, n, b * MS, e * MS) for w, n, b, e in faults], 1000)

    def limits_of(judge):
        return [what[:3] for what in judge.limits.values()]

    good = [held("ours1", 7, 0, 100), held("jvm1", 1, 200, 300), held("ours2", 8, 600, 700),
            held("jvm2", 1, 1000, 1100)]
    j = judged(good)
    assert not j.bad_overlaps and not j.bad_tokens and not j.limits and j.count(["released"]) == 3
    assert j.count(["released"], "ours", "JVM") == 2 and j.count(["released"], "JVM", "ours") == 1
    j = judged(good, ("kill", "ours1", 101, 101), ("kill", "jvm1", 301, 301), ("stop", "ours2", 701, 900))
    assert (j.count(["killed"], "JVM", "ours"), j.count(["stopped"], "ours", "JVM"), j.count(["released"])) == (1, 1, 1)
    late = [held("jvm1", 1, 0, 2000), held("ours1", 7, 1500, 3000)]
    j = judged(late, ("stop", "jvm1", 100, 1900))
    assert not j.bad_overlaps and limits_of(j) == [(LIMITS[0], "JVM", "ours")]
    j = judged(late + [[f"jvm1 - 0 {500 * MS} {1900 * MS}"]])
    assert not j.bad_overlaps and limits_of(j) == [(LIMITS[1], "JVM", "ours")]
    grant = [held("ours1", 7, 1500, 3000), held("jvm1", 1, 2000, 2100)]
    j = judged(grant, ("stop", "jvm1", 100, 1990))
    assert not j.bad_overlaps and limits_of(j) == [(LIMITS[2], "ours", "JVM")]
    planted = {
        "both own, no fault": judged(late),
        "another was stopped": judged(late, ("stop", "ours1", 100, 1400)),
        "JVM overstays long after it goes on": judged([held("jvm1", 1, 0, 9000), late[1]], ("stop", "jvm1", 100, 1900)),
        "JVM overstays, stopped for a moment": judged(late, ("stop", "jvm1", 500, 700)),
        "JVM overstays, stopped before its tenure": judged(late, ("stop", "jvm1", -3000, -1100)),
        "ours overstays, undisturbed": judged([held("ours1", 7, 0, 2000), held("jvm1", 1, 1500, 3000)]),
        "ours overstays after a stop": judged([held("ours1", 7, 0, 2000), held("jvm1", 1, 1500, 3000)],
                                              ("stop", "ours1", 100, 1900)),
        "ours overstays, both stopped": judged(grant, ("stop", "ours1", 1600, 2000), ("stop", "jvm1", 100, 1990)),
        "ours and ours": judged([held("ours1", 7, 0, 2000), held("ours2", 8, 1500, 3000)]),
        "the first of many": judged([held("ours1", 7, 0, 900), held("jvm1", 1, 100, 200), held("jvm2", 1, 800, 850)]),
    }
    for name, j in planted.items():
        assert j.bad_overlaps and not j.bad_tokens, f"not found: {name}"
    for tokens in ((8, 7), (7, 7)):
        j = judged([held("ours1", tokens[0], 0, 100), held("jvm1", 1, 200, 300), held("ours2", tokens[1], 400, 500)])
        assert j.bad_tokens and not j.bad_overlaps, tokens
    good = ["a m 1 10 11", "a m 1 20 21", "b m 2 22 23", "b m 2 30 31", "b n 1 5 6", "b n 1 90 91"]
    assert faults_of(good) == ([], 3), faults_of(good)
    alone = {
        "overlap": good + ["c m 3 15 16", "c m 3 40 41"],
        "token of two": good + ["c m 2 24 25"],
        "tokens fall": ["a m 5 10 11", "a m 5 20 21", "b m 4 30 31", "b m 4 40 41"],
        "no line": good + ["c m x"],
        "a clock that ran back": good + ["c m 3 51 50"],
        "nobody": [],
    }
    for name, lines in alone.items():
        assert faults_of(lines)[0], f"not found: {name}"
    print("judge: finds what was planted:", ", ".join([*planted, *alone]))


def main(paths):
    if paths == ["--self-test"]:
        return self_test()
    lines = []
    for path in paths or ["/dev/stdin"]:
        with open(path, encoding="utf-8") as f:
            lines += [line for line in f if line.endswith("\n")]  # else killed while it wrote
    faults, count = faults_of(lines)
    print(*faults, f"judge: {len(lines)} answers, {count} tenures, {len(faults)} faults", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
