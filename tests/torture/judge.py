#!/usr/bin/env python3
"""Judges what workers recorded: lines "worker mutex token before_ns after_ns", one for each time that
owns(token) said yes, with the clock read before and after the question. All clocks must be one clock.

A tenure was held for certain from the end of its first question to the beginning of its last one. No
two tenures of a mutex may overlap, no token may be two workers', and later tenures have greater tokens.

  judge.py [FILE...]      exit 0: all is well; 1: it is not, and each case is printed
  judge.py --self-test    sees that planted mistakes are found"""
import sys


def read(lines):
    tenures, faults = {}, []
    for number, line in enumerate(lines, 1):
        parts = line.split()
        if len(parts) != 5:
            faults.append(f"line {number}: not 'worker mutex token before after': {line.strip()!r}")
            continue
        worker, mutex = parts[:2]
        token, before, after = map(int, parts[2:])
        if before > after or token <= 0:
            faults.append(f"line {number}: a clock that ran back, or no token: {line.strip()!r}")
            continue
        t = tenures.setdefault((mutex, token), [worker, after, before])
        if t[0] != worker:
            faults.append(f"{mutex}: token {token} was {t[0]}'s and {worker}'s")
        t[1], t[2] = min(t[1], after), max(t[2], before)
    return tenures, list(dict.fromkeys(faults))  # each once


def judge(lines):
    tenures, faults = read(lines)
    by_mutex = {}
    for (mutex, token), (worker, begin, end) in tenures.items():
        by_mutex.setdefault(mutex, []).append((token, worker, begin, end))
    for mutex, held in sorted(by_mutex.items()):
        held.sort()
        latest = None  # of the lower tokens, the one that was held last
        for t in held:
            if latest is not None and latest[3] > t[2]:
                faults.append(f"{mutex}: token {latest[0]} ({latest[1]}) was held until {latest[3]}, "
                              f"token {t[0]} ({t[1]}) from {t[2]}: {latest[3] - t[2]} ns together, "
                              "or tokens fell")
            if latest is None or t[3] > latest[3]:
                latest = t
    return faults, len(tenures)


def self_test():
    good = ["a m 1 10 11", "a m 1 20 21", "b m 2 22 23", "b m 2 30 31", "b n 1 5 6", "b n 1 90 91"]
    planted = {
        "overlap": good + ["c m 3 15 16", "c m 3 40 41"],
        "token of two": good + ["c m 2 24 25"],
        "tokens fall": ["a m 5 10 11", "a m 5 20 21", "b m 4 30 31", "b m 4 40 41"],
        "no line": good + ["c m x"],
    }
    assert judge(good) == ([], 3), judge(good)
    for name, lines in planted.items():
        assert judge(lines)[0], f"not found: {name}"
    print("judge: finds what was planted:", ", ".join(planted))


def main(paths):
    if paths == ["--self-test"]:
        return self_test()
    lines = []
    for path in paths or ["/dev/stdin"]:
        with open(path, encoding="utf-8") as f:
            lines += [line for line in f if line.endswith("\n")]  # else killed while it wrote
    faults, count = judge(lines)
    if count == 0:
        faults.append("nobody ever owned anything: that proves nothing")
    for fault in faults:
        print(fault)
    print(f"judge: {len(lines)} answers, {count} tenures, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
