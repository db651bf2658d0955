import gc
import os
import signal
import threading
import time
from datetime import timedelta

import pytest
import simba
from conftest import SECONDS, eventually


def test_with(client, name):
    with client.lock(name, timeout=SECONDS) as lock:
        assert lock.held and lock.token > 0 and 0 < lock.remaining <= 4
        owner = client.read(name)
        assert (owner.id, owner.token) == (lock.id, lock.token)
        assert owner.exists() and not owner.evicted
        first = lock.token
    assert not lock.held and lock.token == 0 and lock.remaining == 0
    assert client.read(name) is None
    with lock:
        assert lock.token > first


def test_another_has_it(client, other, name):
    with client.lock(name):
        lock = other.lock(name)
        assert lock.acquire(blocking=False) is False
        assert lock.acquire(timeout=0.2) is False
        assert lock.acquire(timeout=timedelta(milliseconds=50)) is False
        with pytest.raises(simba.Timeout, match=f"{name}.*timed out.*held by") as e, other.lock(name, timeout=0.1):
            pass
        assert isinstance(e.value, TimeoutError) and e.value.code == -3
        with pytest.raises(TimeoutError) as e, other.lock(name, timeout=0):
            pass
        assert type(e.value) is simba.Held and e.value.code == -4
    assert lock.acquire(timeout=SECONDS) is True
    lock.release()


def test_wrong_use(client, name):
    lock = client.lock(name)
    with pytest.raises(simba.StateError):
        lock.release()
    with lock, pytest.raises(simba.StateError):
        lock.acquire(timeout=1)
    with pytest.raises(simba.InvalidArgument, match="name"):
        client.lock("")
    with pytest.raises(ValueError):
        lock.acquire(timeout=-2)
    with pytest.raises(TypeError, match="tll"):
        client.lock(name, tll=3)
    with pytest.raises(simba.InvalidArgument, match="progress.*not an option of a locker"):
        client.lock(name, progress=1)
    for callback in ("on_acquired", "on_released", "on_changed", "on_stopped"):
        with pytest.raises(TypeError, match=callback):
            client.lock(name, **{callback: print})
    lock.close()
    with pytest.raises(simba.StateError, match="closed"):
        lock.acquire()
    assert not lock.held


def test_threads_exclude_each_other(client, other, name):
    inside, most, rounds = [], [], 10

    def work(s):
        for _ in range(rounds):
            with s.lock(name, timeout=SECONDS) as lock:
                inside.append(1)
                most.append((len(inside), lock.token))
                inside.pop()

    threads = [threading.Thread(target=work, args=(s,)) for s in (client, client, other, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {count for count, _ in most} == {1} and len(most) == 4 * rounds
    assert [token for _, token in most] == sorted({token for _, token in most})


def test_another_thread_releases(client, name):
    lock = client.lock(name)
    lock.acquire()
    thread = threading.Thread(target=lock.release)
    thread.start()
    thread.join()
    assert not lock.held


def test_lost(client, other, name, calls):
    with pytest.raises(simba.Lost, match=name):
        with client.lock(name, on_lost=calls.add) as lock:
            other.evict(name, client.read(name), forced=True)
            state = calls.wait()
            assert state.mutex == name and state.reason in (simba.Reason.EVICTED, simba.Reason.EXPIRED)
            assert not lock.held and lock.token == 0
    with pytest.raises(simba.Lost):
        other.evict(name)


def test_lost_does_not_hide_what_the_body_raises(client, other, name, calls):
    with pytest.raises(KeyError) as e:
        with client.lock(name, on_lost=calls.add):
            other.evict(name, forced=True)
            calls.wait()
            raise KeyError("mine")
    assert name in e.value.__notes__[0]


@pytest.mark.parametrize("again", range(3))
def test_ctrl_c_ends_a_wait(client, other, name, sigint, again):
    lock = client.lock(name)
    with other.lock(name):
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            lock.acquire()  # without end
        timer.join()
    time.sleep(0.1)  # what was cancelled is not granted later
    assert other.read(name) is None
    assert lock.acquire(timeout=SECONDS)
    lock.release()


def test_given_up_when_it_was_granted(client, name):
    """The signal comes after the grant, and before the caller has taken the result: it is given back."""
    from simba import _handles
    ended = threading.Event()
    call = _handles.Call(client.lock(name), ended.set)
    call.start(SECONDS * 1000)
    assert ended.wait(SECONDS)
    assert call.lock.held
    assert call.give_up() is False
    eventually(lambda: not call.lock.held and client.read(name) is None)


def test_given_up_before_it_was_granted(client, name):
    from simba import _handles
    ended = threading.Event()
    call = _handles.Call(client.lock(name), ended.set)
    call.outcome["it"] = None  # as give_up() does, but without the cancel: the grant comes
    call.start(SECONDS * 1000)
    assert ended.wait(SECONDS)
    eventually(lambda: not call.lock.held and client.read(name) is None)


def test_dropped(client, name):
    lock = client.lock(name)
    lock.acquire()
    del lock
    gc.collect()
    eventually(lambda: client.read(name) is None)
    eventually(lambda: client.metrics().handles == 0)


def test_close_waits_for_a_lock_of_another_thread(url, name):
    s = simba.open(url)
    lock, go = s.lock(name), threading.Event()
    errors = []

    def hold():
        with lock:
            held.set()
            go.wait(SECONDS)

    held = threading.Event()
    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(SECONDS)
    with pytest.raises(simba.Timeout):
        s.close(timeout=0.2)
    assert thread.is_alive() and not errors
    go.set()
    s.close(timeout=SECONDS)
    thread.join()
    with pytest.raises(simba.StateError, match="closed"):
        lock.acquire()
    assert (lock.held, lock.token, lock.remaining) == (False, 0, 0)
    lock.close()
    s.close()


def test_closing_beside_callers(url, name):
    """No thread uses what simba_close has freed."""
    for _ in range(10):
        s = simba.open(url)
        locks = [s.lock(f"{name}-{i}") for i in range(4)]
        stop = threading.Event()

        def ask(lock, stop=stop):
            while not stop.is_set():
                lock.held, lock.token, lock.remaining
                try:
                    lock.acquire(timeout=0.01)
                    lock.release()
                except (simba.StateError, simba.Canceled, simba.Lost):
                    pass

        threads = [threading.Thread(target=ask, args=(lock,)) for lock in locks]
        for thread in threads:
            thread.start()
        time.sleep(0.05)
        s.close(timeout=SECONDS)
        stop.set()
        for thread in threads:
            thread.join()


def test_nobody_calls_what_is_freed(url):
    s, called, inside, go = simba.open(url), [], threading.Event(), threading.Event()
    core, lock = s._core, s.lock("x")
    thread = threading.Thread(target=core.call, args=(lambda: (inside.set(), go.wait(SECONDS)),))
    thread.start()
    assert inside.wait(SECONDS)
    with pytest.raises(simba.Timeout, match="another thread"):
        s.close(timeout=0.1)
    assert not core.closed
    go.set()
    s.close(timeout=SECONDS)
    thread.join()
    assert core.closed and lock._ask(called.append) == 0
    for while_closing in (False, True):
        with pytest.raises(simba.StateError, match="closed"):
            core.call(called.append, 1, while_closing=while_closing)
    assert not called


def test_nobody_calls_a_handle_that_is_destroyed(client, name):
    lock, inside, go = client.lock(name), threading.Event(), threading.Event()
    thread = threading.Thread(target=lock._raw, args=(lambda pointer: (inside.set(), go.wait(SECONDS)),))
    thread.start()
    assert inside.wait(SECONDS)
    lock.close()
    assert client.metrics().handles == 1 and lock._ask(lambda pointer: 1) == 0
    with pytest.raises(simba.StateError, match="closed"):
        lock.acquire()
    go.set()
    thread.join()
    eventually(lambda: client.metrics().handles == 0)


def test_unreachable_store():
    with simba.open("redis://127.0.0.1:1", connect_timeout=0.2, log=None) as s:
        with pytest.raises((simba.StoreError, simba.ModuleMissing)):
            s.lock("x").acquire(timeout=0.5)


def test_at_least(client, other, name):
    from conftest import needs
    needs("contender_resign")
    start = time.monotonic()
    with client.lock(name, at_least=0.5):
        pass
    assert other.lock(name).acquire(timeout=SECONDS)
    assert time.monotonic() - start >= 0.45


def test_server_stopped(client, name, server_pid, calls):
    lock = client.lock(name, on_lost=calls.add)
    lock.acquire()
    os.kill(server_pid, signal.SIGSTOP)
    try:
        assert calls.wait().reason == simba.Reason.EXPIRED
        assert not lock.held
        with pytest.raises(simba.Lost):
            lock.release()
        with pytest.raises((simba.StoreError, simba.Timeout)):
            with client.lock(name, timeout=0.5):
                pass
    finally:
        os.kill(server_pid, signal.SIGCONT)
    with client.lock(name, timeout=SECONDS):
        pass


def test_notes(client, other, name):
    """Written by who holds it, kept when nobody does."""
    assert other.read_note(name) == (None, None)
    with client.lock(name, note="http://me") as lock:
        note, owner = other.read_note(name)
        assert (note.text, note.token, owner.id) == ("http://me", lock.token, lock.id)
        assert 0 <= simba.now() - note.written_at < 20
        lock.publish("zwölf\n")
        assert [e.note.text for e in other.list(name) if e.mutex == name] == ["zwölf\n"]
        token = lock.token
    note, owner = other.read_note(name)
    assert (note.text, note.token, owner) == ("zwölf\n", token, None)
    with pytest.raises(simba.StateError):
        lock.publish("x")
    with pytest.raises(simba.InvalidArgument, match="1024"):
        client.lock(name, note="x" * 1025)


def test_notes_of_a_contender(client, name):
    with client.contender(name, note="led") as contender:
        while not (token := contender.token):
            time.sleep(0.01)
        contender.publish(token, "more")
        assert client.read_note(name)[0].text == "more"
        with pytest.raises(simba.Lost):
            contender.publish(token + 1, "x")
