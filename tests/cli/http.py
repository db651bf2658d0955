#!/usr/bin/env python3
"""http.py ADDRESS [METHOD] PATH: one request to a server of simba's; prints the status and then the body. ADDRESS is
HOST:PORT or unix:PATH. Status 7 if there is no connection. The file $HTTP_SENT is made when the request was sent.

http.py --abuse KIND ADDRESS PID: connections as one does not want them; prints what came of them, and how much memory the
process had meanwhile, in kB:
    idle       1,000 that say nothing
    slow       200 that send a byte of a request every now and then, for 8 s
    header     one with a header of 1 MB
    old        one request of HTTP/0.9
    rubbish    200 with bytes from /dev/urandom
    unread     50 that ask 2,000 times each and read nothing

http.py --keep-opening ADDRESS FILE: opens one that says nothing after the other, until FILE is there"""
import os
import socket
import sys
import time


def connect(address, timeout=10):
    if address.startswith("unix:"):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(timeout)
        s.connect(address[5:])
        return s
    host, _, port = address.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), timeout)


def read_all(s):
    data = b""
    try:
        while more := s.recv(65536):
            data += more
    except OSError:
        pass
    return data


def ask(address, path, method="GET", version="HTTP/1.1"):
    """(status, headers, body)"""
    with connect(address) as s:
        s.sendall(f"{method} {path} {version}\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        if "HTTP_SENT" in os.environ:
            open(os.environ["HTTP_SENT"], "w").close()
        head, _, body = read_all(s).partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    return int(lines[0].split()[1]) if lines[0] else 0, headers, body.decode()


def open_many(address, count):
    opened = []
    for _ in range(count):
        try:
            opened.append(connect(address, 2))
        except OSError:
            pass
    return opened


def send(s, data):
    """False: the other side has hung up, or takes nothing."""
    try:
        s.sendall(data)
        return True
    except OSError:
        return False


def abuse(kind, address):
    if kind == "idle":
        opened = open_many(address, 1000)
        assert ask(address, "/leader")[0] == 200, "no answer beside idle connections"
        print(len(opened), "opened")
        return opened
    elif kind == "slow":
        opened, end = open_many(address, 200), time.monotonic() + 8
        text = b"GET /leader HTTP/1.1\r\nX-" + b"a" * 1000
        for at in range(len(text)):
            opened = [s for s in opened if send(s, text[at:at + 1])]
            assert ask(address, "/leader")[0] == 200, "no answer beside slow ones"
            time.sleep(0.2)
            if time.monotonic() > end or not opened:
                break
        print(len(opened), "left")
        return opened
    elif kind == "header":
        with connect(address) as s:
            send(s, b"GET /leader HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
            for _ in range(1024):
                if not send(s, b"a" * 1024):
                    break
            print(read_all(s).split(b"\r\n")[0].decode() or "hung up")
    elif kind == "old":
        with connect(address) as s:
            send(s, b"GET /leader\r\n\r\n")
            s.settimeout(8)
            print(read_all(s).split(b"\r\n")[0].decode() or "hung up")
    elif kind == "rubbish":
        for _ in range(200):
            with connect(address) as s:
                send(s, os.urandom(4096) + b"\r\n\r\n")
        print("sent")
    elif kind == "unread":
        opened = open_many(address, 50)
        for s in opened:
            s.settimeout(0.2)
            send(s, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2000)
        print("sent")
        return opened
    return None


def keep_opening(address, end):
    opened = []
    while not os.path.exists(end):
        opened = opened[-200:] + open_many(address, 1)
        time.sleep(0.01)


def main():
    if sys.argv[1] == "--keep-opening":
        return keep_opening(*sys.argv[2:])
    if sys.argv[1] == "--abuse":
        opened = abuse(sys.argv[2], sys.argv[3])
        status = open(f"/proc/{sys.argv[4]}/status").read()
        print("memory", status.split("VmRSS:")[1].split()[0])
        for s in opened or []:
            s.close()
        return 0
    address, *method, path = sys.argv[1:]
    try:
        status, _, body = ask(address, path, *method)
    except OSError as why:
        print(why, file=sys.stderr)
        return 7
    print(status, body, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
