"""measure.py: the figures of a peer that is a Python library; see compare. Each of two clients has its own thread."""
import json
import statistics
import threading
import time

WARM_UP, ASLEEP_S = 20, 0.003


def measure(open_lock, seconds):
    """open_lock() makes a client and a lock with acquire() and release() on it."""
    one = open_lock()
    one.acquire()
    first = time.monotonic_ns()
    one.release()
    for _ in range(WARM_UP):
        one.acquire()
        one.release()
    pairs, began = 0, time.monotonic()
    while time.monotonic() - began < seconds:
        one.acquire()
        one.release()
        pairs += 1
    rate = pairs / (time.monotonic() - began)
    print(json.dumps({"first_ns": first, "pairs_per_s": rate, "handover_us": handover_us(one, open_lock, seconds)}))


def handover_us(one, open_lock, seconds):
    go, done, got = threading.Semaphore(0), threading.Semaphore(0), []

    def wait_for_it():
        other = open_lock()
        while True:
            go.acquire()
            other.acquire()
            got.append(time.monotonic())
            other.release()
            done.release()

    threading.Thread(target=wait_for_it, daemon=True).start()
    took, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        one.acquire()
        go.release()
        time.sleep(ASLEEP_S)
        began = time.monotonic()
        one.release()
        done.acquire()
        took.append(got[-1] - began)
    return statistics.median(took) * 1e6
