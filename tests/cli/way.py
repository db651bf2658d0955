#!/usr/bin/env python3
"""way.py HOST PORT FILE: a way to a server, through a port of its own: that in FILE, or else it writes there
which it is. Whoever kills it cuts the way."""
import errno
import os
import random
import socket
import sys
import threading


def carry(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    for end in source, target:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


host, port, file = sys.argv[1:]


def listen():
    if os.path.exists(file):
        return socket.create_server(("127.0.0.1", int(open(file).read())), backlog=64)
    while True:  # not one that the kernel gives to others while the way is cut
        try:
            return socket.create_server(("127.0.0.1", random.randrange(10000, 32000)), backlog=64)
        except OSError as why:
            if why.errno != errno.EADDRINUSE:
                raise


listener = listen()
with open(file + ".new", "w") as out:
    out.write(str(listener.getsockname()[1]))
os.rename(file + ".new", file)
while True:
    near, _ = listener.accept()
    far = socket.create_connection((host, int(port)))
    for a, b in (near, far), (far, near):
        a.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=carry, args=(a, b), daemon=True).start()
