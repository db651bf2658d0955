#!/usr/bin/env python3
"""tests/cli/reporter.py SECONDS [EVERY [MESSAGE...]]: a CMD that reports progress as sd_notify(3) has it, by a
plain datagram, every EVERY seconds (0.2), for SECONDS, and is then silent. Its process id is in the file reporter; the file silent is made when it is silent.
A MESSAGE (WATCHDOG=1) that begins with fd: comes with a descriptor of a pipe, and the pipe has to be closed."""
import os, socket, sys, time

seconds, every = float(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.2
messages = sys.argv[3:] or ["WATCHDOG=1"]
address = os.environ["NOTIFY_SOCKET"]
if address[0] == "@":
    address = "\0" + address[1:]
assert "WATCHDOG_PID" not in os.environ
assert int(os.environ["WATCHDOG_USEC"]) > 0
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)


def send(message):
    if not message.startswith("fd:"):
        s.sendto(message.encode(), address)
        return
    ours, theirs = os.pipe()
    s.sendmsg([message[3:].encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, theirs.to_bytes(4, sys.byteorder))],
              0, address)
    os.close(theirs)
    assert os.read(ours, 1) == b""  # nobody has the other end any more
    os.close(ours)


with open("reporter.new", "w") as out:
    out.write("%d\n" % os.getpid())
os.rename("reporter.new", "reporter")
end = time.monotonic() + seconds
while time.monotonic() < end:
    for message in messages:
        send(message)
    if every > 0:
        time.sleep(every)
open("silent", "w").close()
time.sleep(60)
