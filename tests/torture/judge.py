#!/usr/bin/env python3
"""judge.py FILE...: whether ever two owned a mutex at once, or a token fell or came twice.

A line: WORKER MUTEX TOKEN BEFORE_NS AFTER_NS: owns(TOKEN) said yes between the two moments. So a tenure has
lasted at least from the AFTER of its first yes to the BEFORE of its last."""
import sys


def tenures(files):
    found = {}
    for path in files:
        for line in open(path):
            words = line.split()
            if len(words) != 5:
                continue  # the worker was killed while it wrote
            worker, mutex, token = words[0], words[1], int(words[2])
            before, after = int(words[3]), int(words[4])
            key = (mutex, token, worker)
            first, last = found.get(key, (after, before))
            found[key] = (min(first, after), max(last, before))
    return found


def judge(files):
    by_mutex, bad = {}, 0
    for (mutex, token, worker), (first, last) in tenures(files).items():
        by_mutex.setdefault(mutex, []).append((first, max(first, last), token, worker))
    count = 0
    for mutex, list_ in sorted(by_mutex.items()):
        list_.sort()
        count += len(list_)
        latest, highest = None, None  # the tenure that lasted longest so far; the highest token so far
        for one in list_:
            if latest and one[0] <= latest[1]:
                print(f"{mutex}: two owners for {(min(one[1], latest[1]) - one[0]) / 1e6:.1f} ms: "
                      f"{latest[3]} with {latest[2]}, {one[3]} with {one[2]}")
                bad += 1
            if highest and one[2] <= highest[2]:
                print(f"{mutex}: token {one[2]} of {one[3]} after {highest[2]} of {highest[3]}")
                bad += 1
            latest = one if not latest or one[1] > latest[1] else latest
            highest = one if not highest or one[2] > highest[2] else highest
    print(f"{count} tenures of {len(by_mutex)} mutexes, {bad} faults")
    return 1 if bad or not count else 0


if __name__ == "__main__":
    sys.exit(judge(sys.argv[1:]))
