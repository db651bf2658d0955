"""Every test with the fixture `url` uses a store: sqlite: in a folder of its own, or SIMBA_TEST_URL, with names of its
own. The last lines are what scripts/test reads."""
import gc
import itertools
import os
import pathlib
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import urllib.parse

import pytest
import simba
from simba import _c, _client

SECONDS = 30  # for what should come soon
ROOT = pathlib.Path(__file__).resolve().parents[3]
_numbers = itertools.count()


@pytest.fixture
def url(tmp_path):
    return os.environ.get("SIMBA_TEST_URL") or f"sqlite:{tmp_path}/test.db"


@pytest.fixture
def name():
    """Of a mutex that no other test uses."""
    return f"python-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def client(url):
    with simba.open(url, ttl=2, transition=2) as s:
        yield s


@pytest.fixture
def other(url):
    """Another client of the same store, which contends with the first."""
    with simba.open(url, ttl=2, transition=2) as s:
        yield s


@pytest.fixture
def server_pid(url):
    """Of the private redis-server."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "redis":
        pytest.skip("it needs a server that it can stop, here redis:")
    with socket.create_connection((parts.hostname, parts.port)) as s, s.makefile("rb") as answer:
        s.sendall(b"INFO server\r\n")
        text = answer.read(int(answer.readline()[1:]))
    return next(int(line[11:]) for line in text.split(b"\r\n") if line.startswith(b"process_id:"))


@pytest.fixture(autouse=True)
def nothing_left():
    """A test leaves no client behind, and no callback is registered for one."""
    yield
    gc.collect()
    eventually(lambda: not _client._open_cores)


@pytest.fixture
def sigint():
    """A shell starts what is in the background with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def needs(function):
    """The library may be older than the package."""
    if not hasattr(_c.lib._dll, "simba_" + function):
        pytest.skip(f"this libsimba has no simba_{function}")


def eventually(condition):
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.01)


class Calls(list):
    """Collects what callbacks are called with; wait(n) for the n-th."""

    def __init__(self):
        super().__init__()
        self.came = threading.Condition()

    def add(self, *what):
        with self.came:
            self.append(what[0] if len(what) == 1 else what)
            self.came.notify_all()

    def wait(self, count=1):
        with self.came:
            assert self.came.wait_for(lambda: len(self) >= count, SECONDS), f"only {list(self)} came"
        return self[count - 1]


@pytest.fixture
def calls():
    return Calls()


class Script:
    """A Python program in a process of its own, in development mode."""

    def __init__(self, text, *arguments):
        package = pathlib.Path(simba.__file__).parents[1]
        env = {**os.environ, "PYTHONPATH": str(package), "PYTHONDEVMODE": "1", "PYTHONFAULTHANDLER": "1"}
        self.process = subprocess.Popen([sys.executable, "-W", "error::ResourceWarning", "-c", textwrap.dedent(text),
                                         *arguments], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def line(self):
        return self.process.stdout.readline().strip()

    def end(self):
        """(status, the rest of stdout, stderr)"""
        try:
            out, err = self.process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            out, err = self.process.communicate()
            pytest.fail(f"it did not end: {out}{err}")
        return self.process.returncode, out, err


@pytest.fixture
def script():
    started = []

    def start(text, *arguments):
        started.append(Script(text, *arguments))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


def pytest_configure(config):
    config.addinivalue_line("markers", "store: it is about a store, and run on each")


def pytest_collection_modifyitems(items):
    for item in items:
        if "url" in item.fixturenames:
            item.add_marker("store")


def pytest_terminal_summary(terminalreporter):
    stats = terminalreporter.stats
    for report in stats.get("skipped", []):
        reason = report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else "it says so"
        terminalreporter.write_line(f"skip 1 {report.nodeid.replace(':', '.')}: {reason}")
    failed = stats.get("failed", []) + stats.get("error", [])
    for report in failed:
        terminalreporter.write_line(f"FAIL {report.nodeid}")
    terminalreporter.write_line(f"{len(stats.get('passed', []))} passed, {len(failed)} failed, "
                                f"{len(stats.get('skipped', []))} skipped")
