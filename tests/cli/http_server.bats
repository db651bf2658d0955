#!/usr/bin/env bats
# http_server.bats: the HTTP server of simba serve by itself (src/serve/http): routes, headers, hosts, streams.
bats_require_minimum_version 1.8.0
# bats file_tags=storeless
load helper

# What the client does is in Python: several connections, and one that reads nothing. SAMPLE and ADDRESS are in its
# environment; say() gives a line to the sample, and returns what it says.
with_sample() { # script
    SAMPLE=$(dirname "$SIMBA")/tests/http_sample
    [ -x "$SAMPLE" ] || skip "tests are not built beside this simba"
    export SAMPLE KEEPS_MEMORY=
    ! is_sanitized "$SIMBA" || KEEPS_MEMORY=1
    run timeout 100 python3 - "$BATS_TEST_DIRNAME/http.py" <<P
import importlib.util, os, subprocess, sys, time
spec = importlib.util.spec_from_file_location("client", sys.argv[1])
client = importlib.util.module_from_spec(spec)
spec.loader.exec_module(client)
sample = subprocess.Popen([os.environ["SAMPLE"], "127.0.0.1:0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
ADDRESS = sample.stdout.readline().strip().removeprefix("http://")
def say(line):
    sample.stdin.write(line + "\n")
    sample.stdin.flush()
    return int(sample.stdout.readline())
def until(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "in vain"
        time.sleep(0.01)
def request(text, host="localhost"):
    s = client.connect(ADDRESS)
    s.sendall(f"{text} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    return s
def read_until(s, text):
    data = b""
    while text not in data:
        more = s.recv(65536)
        assert more, (text, data)
        data += more
    return data
def memory():
    return int(open(f"/proc/{sample.pid}/status").read().split("VmRSS:")[1].split()[0])
$1
sample.stdin.close()
sys.exit(sample.wait(10))
P
    expect 0
}

@test "http: routes, queries and headers" {
    with_sample '
status, headers, body = client.ask(ADDRESS, "/echo/a%20b?x=1%2F2&y")
assert (status, body) == (200, "/echo/a b 1/2 none\n"), (status, body)
assert headers["cache-control"] == "max-age=60" and "x-bad" not in headers and "b" not in headers, headers
assert client.ask(ADDRESS, "/nothing")[0] == 500
assert client.ask(ADDRESS, "/ech")[0] == 404 and client.ask(ADDRESS, "/")[0] == 404
assert client.ask(ADDRESS, "/echo/" + "a" * 20000)[0] in (414, 431)'
}

@test "http: a name that is not ours is refused, an address and localhost are not" {
    with_sample '
for host, status in (("localhost", 200), ("127.0.0.1:8080", 200), ("[::1]:1", 200), ("LOCALHOST:1", 200),
                     ("one.example", 200), ("Two.Example:80", 200), ("example", 403), ("one.example,two.example", 403),
                     ("evil.example", 403), ("localhost.evil.example:80", 403), ("", 403), ("[::1", 403),
                     ("[::1].evil.example", 403), ("localhost:80.evil.example", 403)):
    with request("GET /echo/", host) as s:
        answer = read_until(s, b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 %d" % status), (host, answer)
with request("GET /nothing", "evil.example") as s: # no path is for everybody
    assert read_until(s, b"\r\n\r\n").startswith(b"HTTP/1.1 403")'
}

@test "http: streams get a first event and then all others, in order" {
    with_sample '
a = request("GET /events")
assert b"text/event-stream" in read_until(a, b"data: first\n\n")
assert say("publish one") == 1
b = request("GET /events")
read_until(b, b"data: first\n\n")
assert say("publish two") == 2
got = read_until(a, b"data: two\n\n")
assert got.index(b"data: one\n\n") < got.index(b"data: two\n\n")
assert b"one" not in read_until(b, b"data: two\n\n")
for i in range(500):
    say(f"publish number {i}")
got = read_until(b, b"data: number 499\n\n")
places = [got.index(b"data: number %d\n\n" % i) for i in range(500)]
assert places == sorted(places)
c = request("GET /events")
read_until(c, b"data: first\n\n")
with request("GET /events") as d: # one more than allowed
    assert read_until(d, b"\r\n\r\n").startswith(b"HTTP/1.1 503")
c.close()
until(lambda: say("publish x") == 2)
assert client.ask(ADDRESS, "/events", "HEAD")[0] == 200'
}

@test "http: a stream that nobody reads is dropped, and costs no more than its buffer; others go on" {
    with_sample '
slow, quick, before = request("GET /events"), request("GET /events"), memory()
read_until(slow, b"data: first\n\n")
read_until(quick, b"data: first\n\n")
sent = 0
while say("count") == 2:
    say("bytes 65536")
    sent += 65536
    read_until(quick, b"x\n\n")
    assert sent < 64 << 20, "never dropped"
assert say("count") == 1
for _ in range(200):
    say("bytes 65536")
    read_until(quick, b"x\n\n")
assert os.environ["KEEPS_MEMORY"] or memory() < before + 4096, (memory(), before)
say("publish end")
read_until(quick, b"data: end\n\n")
assert not client.read_all(slow).endswith(b"data: end\n\n")'
}

@test "http: a socket file is removed by the process that made it, and by no other" {
    with_sample '
def begin():
    return subprocess.Popen([os.environ["SAMPLE"], "unix:sock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.DEVNULL)
def end(process):
    process.stdin.close()
    return process.wait(10)
one = begin()
assert one.stdout.readline() == "unix:sock\n"
os.unlink("sock")
other = begin()
assert other.stdout.readline() == "unix:sock\n"
assert end(one) == 0
assert client.ask("unix:sock", "/echo/")[0] == 200
assert end(other) == 0 and not os.path.exists("sock")'
}

@test "http: of those who find a stale socket file, one listens there" {
    with_sample '
import socket
def begin():
    return subprocess.Popen([os.environ["SAMPLE"], "unix:sock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.DEVNULL)
for _ in range(40):
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind("sock")
    all = [begin() for _ in range(6)]
    said = [process.stdout.readline() for process in all]
    assert said.count("unix:sock\n") == 1, said
    assert client.ask("unix:sock", "/echo/")[0] == 200
    for process in all:
        process.stdin.close()
    assert sorted(process.wait(10) for process in all) == [0] + [125] * 5
    assert not os.path.exists("sock")'
}
