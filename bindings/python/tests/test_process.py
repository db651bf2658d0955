"""The end of the process, fork, and what is missing: each in a process of its own."""
import os
import signal
import subprocess
import sys
import time

import pytest
import simba
from conftest import ROOT, SECONDS, eventually

LIVE = """
    import asyncio, sys, threading, time
    import simba, simba.aio
    url, name, how = sys.argv[1:]
    s = simba.open(url, ttl=2)
    led, ran = threading.Event(), threading.Event()
    lock = s.lock(name + "-lock", on_lost=print)
    lock.acquire()
    contender = s.contender(name + "-contender", on_acquired=lambda state: led.set(), on_released=lambda state: None)
    contender.start()
    scheduler = s.scheduler(name + "-scheduler", lambda run: ran.set(), every=0.01)
    scheduler.start()
    s.observer(None, lambda state: None)
    def wait():
        try:
            s.lock(name + "-lock").acquire()
        except simba.Error: # canceled, or it came when the client was closed
            pass
    threading.Thread(target=wait, daemon=True).start()
    assert led.wait(30) and ran.wait(30)
    if how == "raise":
        raise SystemExit(3)
    if how == "thread":
        t = threading.Thread(target=lambda: s.lock(name + "-thread").acquire())
        t.start()
    print("ready", flush=True)
"""


@pytest.mark.parametrize("how", ["end", "raise", "thread"])
def test_exit_with_live_handles(script, client, url, name, how):
    start = time.monotonic()
    status, out, err = script(LIVE, url, name, how).end()
    assert (status, err) == (3 if how == "raise" else 0, "")
    assert client.list(name) == []  # all was handed over
    assert time.monotonic() - start < SECONDS


SLOW = """
    import sys, threading, time
    import simba, simba._client
    import signal
    signal.signal(signal.SIGINT, signal.default_int_handler)
    simba._client.EXIT_SECONDS = 1
    s, led = simba.open(sys.argv[1], ttl=2), threading.Event()
    def on_acquired(state):
        led.set()
        time.sleep(float(sys.argv[3]))
    s.contender(sys.argv[2], on_acquired=on_acquired, on_released=lambda state: print("released")).start()
    assert led.wait(30)
    print("leads", flush=True)
"""


@pytest.mark.parametrize("seconds", ["0.2", "0.21", "0.25", "1"])
def test_exit_waits_for_a_callback(script, client, url, name, seconds):
    status, out, err = script(SLOW, url, name, seconds).end()
    assert (status, out) == (0, "leads\nreleased\n")
    assert err in ("", f"at exit: waiting for on_acquired of mutex '{name}'\n")
    assert client.read(name) is None


def test_exit_while_a_callback_never_ends(script, url, name):
    program = script(SLOW, url, name, "1000")
    assert program.line() == "leads"
    assert "at exit: waiting" in program.process.stderr.readline()
    program.process.send_signal(signal.SIGINT)
    assert program.end() == (130, "", "")


def test_exit_while_a_daemon_thread_holds_a_lock(script, url, name):
    """It is not released: the thread may still be at work. Its lease ends."""
    status, out, err = script("""
        import sys, threading, time
        import simba, simba._client
        simba._client.EXIT_SECONDS = 0.2
        s, held = simba.open(sys.argv[1], ttl=2), threading.Event()
        def hold():
            with s.lock(sys.argv[2]):
                held.set()
                time.sleep(1000)
        threading.Thread(target=hold, daemon=True).start()
        assert held.wait(30)
        """, url, name).end()
    assert status == 0 and "at exit" in err and "Fatal" not in err


def test_exit_of_a_loop_without_close(script, client, url, name):
    status, out, err = script("""
        import asyncio, sys, time
        import simba.aio
        async def main():
            s = await simba.aio.open(sys.argv[1], ttl=2).__aenter__()
            await s.lock(sys.argv[2]).acquire()
            asyncio.get_running_loop().kept = s.lock(sys.argv[2] + "-b")
            await asyncio.get_running_loop().kept.acquire()
            asyncio.create_task(s.lock(sys.argv[2] + "-b").acquire())
            await asyncio.sleep(0.05)
        asyncio.run(main())
        """, url, name).end()
    assert status == 0 and "Traceback" not in err and "Fatal" not in err
    eventually(lambda: client.list(name) == [])


def test_ctrl_c(script, other, url, name):
    with other.lock(name):
        waiter = script("""
            import signal, sys
            import simba
            signal.signal(signal.SIGINT, signal.default_int_handler)
            with simba.open(sys.argv[1], ttl=2) as s:
                print("waiting", flush=True)
                with s.lock(sys.argv[2]):
                    print("wrong")
            """, url, name)
        assert waiter.line() == "waiting"
        time.sleep(0.2)
        waiter.process.send_signal(signal.SIGINT)
        status, out, err = waiter.end()
        assert status == -signal.SIGINT and out == "" and err.rstrip().endswith("KeyboardInterrupt")


def test_fork(script, url, name):
    status, out, err = script("""
        import os, sys
        import simba
        s = simba.open(sys.argv[1], ttl=2)
        lock = s.lock(sys.argv[2])
        lock.acquire()
        child = os.fork()
        if child == 0:
            assert not lock.held and lock.token == 0
            for call in (lock.release, lambda: s.read("x"), lambda: s.lock("x"), lambda: s.contender("x")):
                try:
                    call()
                    print("wrong: no error")
                except simba.Forked as e:
                    pass
            s.close()
            if sys.argv[1].startswith("redis:"):  # SQLite cannot be used again in a forked child
                with simba.open(sys.argv[1], ttl=2) as mine:
                    assert not mine.lock(sys.argv[2]).acquire(blocking=False)
            del lock
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert lock.held
        lock.release()
        s.close()
        """, url, name).end()
    assert (status, out) == (0, "") and "Traceback" not in err  # Python 3.12 warns of fork in general


def test_multiprocessing(script, url, name):
    status, out, err = script("""
        import multiprocessing, sys
        import simba
        def work(url, name, value):
            for _ in range(5):
                with simba.open(url, ttl=2) as s, s.lock(name, timeout=30):
                    value.value += 1
        if __name__ == "__main__":
            context = multiprocessing.get_context("fork")
            value = context.Value("i", 0, lock=False)
            workers = [context.Process(target=work, args=(*sys.argv[1:], value)) for _ in range(3)]
            for one in workers: one.start()
            with simba.open(sys.argv[1], ttl=2) as s:
                for one in workers: one.join()
                assert s.read(sys.argv[2]) is None
            assert [one.exitcode for one in workers] == [0, 0, 0]
            print(value.value)
        """, url, name).end()
    assert (status, out.strip()) == (0, "15") and "Traceback" not in err


@pytest.mark.parametrize("library, text", [("/nonexistent/libsimba.so", "SIMBA_LIBRARY"), ("libc.so.6", "not libsimba")])
def test_library_missing(library, text):
    env = {**os.environ, "SIMBA_LIBRARY": library}
    made = subprocess.run([sys.executable, "-c", "import simba"], env=env, capture_output=True, text=True, check=False)
    assert made.returncode == 1 and "ImportError" in made.stderr and text in made.stderr and library in made.stderr


def test_types():
    """Opt-in: SIMBA_MYPY=1, since what mypy says depends on its version."""
    if not os.environ.get("SIMBA_MYPY"):
        pytest.skip("SIMBA_MYPY=1 is not set")
    made = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", os.devnull], cwd=ROOT / "bindings/python",
                          capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr


def test_pip_install_offline(tmp_path):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    if subprocess.run([*pip, "--version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("there is no pip")
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PIP_NO_INDEX": "1"}
    made = subprocess.run([*pip, "install", "-q", "--root-user-action=ignore", "--target", tmp_path / "site",
                           ROOT / "bindings/python"], env=env, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    made = subprocess.run([sys.executable, "-c", "import simba.aio; print(simba.__file__, simba.version())"],
                          env={**env, "PYTHONPATH": str(tmp_path / "site")}, cwd=tmp_path, capture_output=True, text=True,
                          check=True)
    assert made.stdout.split() == [str(tmp_path / "site/simba/__init__.py"), simba.version()]
    assert (tmp_path / "site/simba/py.typed").exists()
