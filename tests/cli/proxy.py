#!/usr/bin/env python3
"""proxy.py HOST PORT FILE [WORD [SECONDS]]: passes bytes to a server and back, through a port of its own: that in FILE, or else
it writes there which it is. Whoever kills it cuts all connections. FILE.answered has a line for each connection on which the
server has answered a question with WORD in it. With SECONDS, the first question with WORD in it reaches the server, but for so
long no answer comes back."""
import errno
import os
import random
import socket
import sys
import threading
import time


class Connection:
    def __init__(self, client, server):
        self.client, self.server = client, server
        self.asked = self.answered = False
        for source, target in (client, server), (server, client):
            source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.carry, args=(source, target), daemon=True).start()

    def carry(self, source, target):
        try:
            while data := source.recv(65536):
                if source is self.client:
                    self.asked = self.asked or (word != "" and word.encode() in data)
                    if self.asked and silence[1] is None:
                        silence[1] = time.monotonic() + silence[0]
                elif silence[1] is not None and time.monotonic() < silence[1]:
                    continue
                target.sendall(data)
                if source is self.server and self.asked and not self.answered:
                    self.answered = True
                    with open(file + ".answered", "a") as out:
                        out.write("answered\n")
        except OSError:
            pass
        for end in source, target:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


host, port, file, word, seconds = (*sys.argv[1:], "", "")[:5]
silence = [float(seconds or 0), None]  # how long, and until when


def listen():
    if os.path.exists(file):
        return socket.create_server(("127.0.0.1", int(open(file).read())), backlog=64)
    while True:  # not one that the kernel gives to others while the proxy is down
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
    Connection(near, socket.create_connection((host, int(port))))
