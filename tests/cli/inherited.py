"""inherited.py: a process that CMD has become after it gave up its user, and that does all the harm it can
with the descriptors that it has inherited. It says what it could do, a line each, and then waits."""

import fcntl
import os
import signal
import struct
import time

OFD_SETLK = 37  # F_OFD_SETLK


def attempt(name, act):
    try:
        act()
        print(name, flush=True)
    except OSError:
        pass


def lock(fd, kind, start, length):
    fcntl.fcntl(fd, OFD_SETLK, struct.pack("hhqqixxxx", kind, os.SEEK_SET, start, length, 0))


def attack(fd, file):
    attempt(f"wrote to {file}", lambda: os.pwrite(fd, b"\xff" * 4096, 0))
    attempt(f"opened {file} for writing", lambda: os.close(os.open(f"/proc/self/fd/{fd}", os.O_RDWR)))
    attempt(f"locked {file} alone", lambda: lock(fd, fcntl.F_WRLCK, 0, 0))
    attempt(f"gave up the lock on {file}", lambda: lock(fd, fcntl.F_UNLCK, 0, 0))
    if os.path.exists("share"):
        attempt(f"locked all of {file} with others", lambda: lock(fd, fcntl.F_RDLCK, 0, 0))


signal.signal(signal.SIGTERM, signal.SIG_IGN)
for fd in sorted(int(name) for name in os.listdir("/proc/self/fd")):
    try:
        file = os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))
    except OSError:
        continue
    if file.startswith("locks.db"):
        attack(fd, file)
print("done", flush=True)
time.sleep(60)
