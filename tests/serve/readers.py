#!/usr/bin/env python3
"""readers.py ADDRESS PID: many readers of simba serve, of which some never read: it keeps answering, its memory stays.
With --unread, there are only many that never read what they ask for, and it is long.

Prints what it measured."""
import resource
import socket
import sys
import threading
import time
import urllib.request

IDLE, STUCK, SECONDS = 300, 50, 10
UNREAD = 500
MORE_KB = 64 * 1024  # at most so much for all of them


def memory(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def connect(host, port, path, room=None):
    s = socket.socket()
    if room:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    s.settimeout(30)
    s.connect((host, port))
    s.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    return s


def check_memory(more):
    if "--any-memory" not in sys.argv and more > MORE_KB:
        sys.exit(f"readers.py: {more} kB more, not at most {MORE_KB}")


def unread(address, host, port, pid):
    """As many long answers as fit into the limit, then 503; small ones always."""
    first = memory(pid)
    paths = ["/api/mutexes", "/api/history", "/api/mutexes?names=" + "%0A".join(["service-00001"] * 400)]
    stuck = [connect(host, port, paths[i % 3], 2048) for i in range(UNREAD)]
    for _ in range(5):
        with urllib.request.urlopen(f"{address}/healthz", timeout=10) as answer:
            answer.read()
        time.sleep(0.2)
    most, begins = memory(pid), {}
    for s in stuck:
        status = s.recv(12)[9:].decode()
        begins[status] = begins.get(status, 0) + 1
        s.close()
    print(f"{UNREAD} that never read: {first} kB before, {most} kB then; answers: {begins}")
    if set(begins) != {"200", "503"}:
        sys.exit("readers.py: there should be some answers, and 503 for the rest")
    return most - first


def main():
    address, pid = sys.argv[1], int(sys.argv[2])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    host, port = address.removeprefix("http://").split(":")
    if "--unread" in sys.argv:
        return check_memory(unread(address, host, int(port), pid))
    first = memory(pid)
    # Those that never read ask for the long answer again and again, and for events.
    stuck = [connect(host, int(port), "/events" if i % 2 else "/api/mutexes", 2048) for i in range(STUCK)]
    idle = [connect(host, int(port), "/events") for _ in range(IDLE)]
    got = [0] * IDLE

    def drain(i):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            data = idle[i].recv(65536)
            if not data:
                return
            got[i] += len(data)

    threads = [threading.Thread(target=drain, args=(i,)) for i in range(IDLE)]
    for thread in threads:
        thread.start()
    most, slowest = first, 0
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        began = time.monotonic()
        with urllib.request.urlopen(f"{address}/healthz", timeout=10) as answer:
            answer.read()
        slowest = max(slowest, time.monotonic() - began)
        most = max(most, memory(pid))
        time.sleep(0.2)
    for thread in threads:
        thread.join()
    for s in stuck + idle:
        s.close()
    fed = sum(1 for n in got if n > 1000)
    print(f"{IDLE} readers, {STUCK} that never read: {first} kB before, {most} kB at most, slowest answer {slowest:.2f} s; "
          f"{sum(got) / IDLE / SECONDS / 1000:.1f} kB/s for each reader")
    if fed < IDLE * 0.9:
        sys.exit(f"readers.py: only {fed} of {IDLE} were told of changes")
    return check_memory(most - first)


main()
