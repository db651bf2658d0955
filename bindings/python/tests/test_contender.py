import gc
import logging
import threading
import time

import pytest
import simba
from conftest import SECONDS, Calls, eventually, needs


def test_callbacks(client, name, calls):
    def told(what):
        return lambda state: calls.add(what, state.reason.name, state.token, contender.is_owner)

    contender = client.contender(name, on_acquired=told("acquired"), on_released=told("released"))
    assert contender.status == simba.Status.INITIAL and not contender.is_owner
    with contender:
        contender.wait(timeout=SECONDS)
        token = calls.wait()[2]
        assert contender.token == token and contender.owns(token) and not contender.owns(token + 1)
        assert contender.remaining > 0 and contender.state.after.id == contender.id
    assert list(calls) == [("acquired", "ACQUIRED", token, True), ("released", "RELEASED", token, False)]
    assert client.read(name) is None


def test_hand_over(client, other, name, calls):
    with client.contender(name, on_acquired=lambda state: calls.add("first")) as first:
        calls.wait()
        with other.contender(name, on_acquired=lambda state: calls.add("second")):
            first.stop()
            assert calls.wait(2) == "second"


def test_a_callback_may_stop_and_start_again(client, name, calls):
    contender = client.contender(name, on_acquired=lambda state: (contender.stop(), calls.add(state.token)))
    for _ in range(3):
        contender.start()
        contender.wait(simba.Status.INITIAL, timeout=SECONDS)
    assert len(calls) == 3 and calls == sorted(set(calls))
    with pytest.raises(simba.StateError):
        contender.stop()


def test_exceptions_are_logged(client, name, calls, caplog):
    def fail(state):
        calls.add(state)
        raise ZeroDivisionError("of the callback")

    with client.contender(name, on_acquired=fail, on_released=fail):
        calls.wait()
    assert len(calls) == 2
    shown = [record for record in caplog.records if record.exc_info]
    assert [record.levelno for record in shown] == [logging.ERROR] * 2
    assert "on_acquired" in shown[0].getMessage() and name in shown[0].getMessage()
    assert shown[0].exc_info[0] is ZeroDivisionError and "of the callback" in caplog.text


def test_a_callback_cannot_wait_for_itself(client, name, calls):
    def callback(state):
        for call in (lambda: contender.wait(simba.Status.INITIAL), client.close):
            try:
                call()
            except simba.Error as e:
                calls.add(type(e))

    contender = client.contender(name, on_acquired=callback)
    with contender:
        calls.wait(2)
    assert list(calls) == [simba.Deadlock] * 2
    assert client.read(name) is None  # the client is still open


def test_wait_in_time_and_interrupted(client, name):
    contender = client.contender(name)
    start = time.monotonic()
    with pytest.raises(simba.Timeout):
        contender.wait(timeout=0.1)
    assert time.monotonic() - start > 0.09


def test_one_that_runs_needs_nobody_to_hold_it(client, other, name, calls):
    client.contender(name, on_acquired=calls.add).start()
    token = calls.wait().token
    gc.collect()
    time.sleep(0.1)
    assert other.read(name).token == token


def test_dropped_before_start(client, name):
    contender = client.contender(name, on_acquired=print)
    assert client.metrics().handles == 1
    del contender
    gc.collect()
    eventually(lambda: client.metrics().handles == 0)
    from simba import _callbacks
    eventually(lambda: not [one for one in _callbacks.targets.values() if isinstance(one, dict)])


def test_close_of_the_client_ends_it(url, name):
    calls = Calls()
    with simba.open(url, ttl=2) as s:
        contender = s.contender(name, on_acquired=calls.add, on_released=calls.add)
        contender.start()
        calls.wait()
    assert len(calls) == 2 and not contender.is_owner and contender.status == simba.Status.INITIAL
    with pytest.raises(simba.StateError):
        contender.start()


def test_eviction_in_order(client, other, name, calls):
    with client.contender(name, on_acquired=calls.add, on_released=calls.add):
        calls.wait()
        other.evict(name, other.read(name))
        assert calls.wait(2).reason in (simba.Reason.EVICTED, simba.Reason.EXPIRED)


def test_stopped_and_resigned(client, name, calls):
    needs("contender_resign")
    contender = client.contender(name, on_acquired=lambda s: calls.add("acquired"),
                                 on_released=lambda s: calls.add("released"), on_stopped=lambda: calls.add("stopped"))
    contender.start()
    calls.wait(1)
    contender.resign(0.1)
    calls.wait(3)
    with pytest.raises(ValueError):
        contender.resign(-1)
    contender.stop()
    calls.wait(5)
    assert list(calls) == ["acquired", "released", "acquired", "released", "stopped"]
    with pytest.raises(simba.StateError):
        contender.resign()


def test_failed(client, name, calls):
    needs("contender_fail")
    contender = client.contender(name, on_acquired=calls.add, on_released=calls.add)
    contender.start()
    calls.wait(1)
    token = contender.token
    with pytest.raises(simba.Lost):
        contender.fail(token + 1, simba.Reason.STALLED)
    contender.fail(token, simba.Reason.STALLED)
    assert calls.wait(2).reason == simba.Reason.STALLED


def test_options_of_other_handles(client, name):
    for create in (client.contender, lambda name, **callback: client.scheduler(name, print, every=1, **callback)):
        for callback in ("on_lost", "on_changed"):
            with pytest.raises(TypeError, match=callback):
                create(name, **{callback: print})
    assert client.metrics().handles == 0


def test_progress(client, name, calls):
    needs("contender_progress")
    endangered = Calls()
    with client.contender(name, progress=2, on_acquired=calls.add, on_released=calls.add,
                          on_endangered=endangered.add) as contender:
        token = calls.wait().token
        for _ in range(4):  # together longer than that
            contender.progress(token)
            time.sleep(0.6)
        assert contender.owns(token)
        assert calls.wait(2).reason == simba.Reason.STALLED
        with pytest.raises(simba.Lost):
            contender.progress(token)
    assert endangered and 0 <= endangered[0] <= 2


# ---- observer ----------------------------------------------------------------------------------------------

def test_observer(client, other, name, calls):
    with client.observer(name, calls.add) as observer:
        assert calls.wait().after is None
        with other.lock(name) as lock:
            state = calls.wait(2)
            assert (state.mutex, state.after.id, state.token, state.changed) == (name, lock.id, lock.token, True)
            assert observer.state.after.token == lock.token
        assert calls.wait(3).after is None
    calls.clear()
    with other.lock(name):
        time.sleep(0.1)
    assert not calls


def test_observer_of_all(client, other, name, calls):
    client.observer(None, lambda state: calls.add(state.mutex, state.after is not None))
    with other.lock(name), other.lock(name + "-b"):
        eventually(lambda: {(name, True), (name + "-b", True)} <= set(calls))
        entries = {entry.mutex: entry for entry in client.list(name)}
        assert set(entries) == {name, name + "-b"} and entries[name].owner.token > 0
    eventually(lambda: {(name, False), (name + "-b", False)} <= set(calls))


# ---- scheduler ---------------------------------------------------------------------------------------------

def test_scheduler(client, name, calls):
    runs = []

    def work(run):
        runs.append(run)
        calls.add(run.token, run.should_stop, scheduler.is_owner)

    scheduler = client.scheduler(name, work, every=0.05)
    with scheduler:
        calls.wait(3)
        token = scheduler.token
    assert set(calls) == {(token, False, True)}
    assert runs[0].should_stop and runs[0].token == 0
    assert runs[0]._pointer is None  # what it points to is gone
    count = len(calls)
    time.sleep(0.15)
    assert len(calls) == count


def test_work_that_fails(client, name, calls, caplog):
    def work(run):
        calls.add(run.token)
        raise ZeroDivisionError("of the work")

    with client.scheduler(name, work, delay=0.01, first=0.01):
        calls.wait(2)
    eventually(lambda: "returned 1" in caplog.text)  # as the library logs a run that has failed
    assert "of the work" in caplog.text and "work" in caplog.records[0].getMessage()
    failed = client.metrics().runs_failed
    assert failed == len(calls) or failed == 0 == client.metrics().runs  # an older library does not count them


def test_work_sees_the_end(client, other, name, calls):
    def work(run):
        calls.add("begun")
        while not run.should_stop:
            time.sleep(0.01)
        calls.add("ended")

    with client.scheduler(name, work, every=60):
        calls.wait()
        other.evict(name, forced=True)
        calls.wait(2)


def test_waiting_in_a_run(client, name, calls):
    needs("run_wait")

    def work(run):
        calls.add(run.wait(0.02))
        thread = threading.Thread(target=lambda: calls.add(pytest.raises(simba.StateError, run.wait, 1) is not None))
        thread.start()
        thread.join()
        calls.add(run.wait(SECONDS))

    with client.scheduler(name, work, every=60) as scheduler:
        calls.wait(2)
        scheduler.stop()
    assert list(calls) == [False, True, True]


def test_work_reports_progress(client, name, calls):
    needs("contender_progress")
    runs = []

    def work(run):
        runs.append(run)
        for _ in range(4):  # together longer than progress
            run.progress()
            time.sleep(0.6)
        calls.add("went on", run.should_stop)
        while not run.should_stop:
            time.sleep(0.01)
        with pytest.raises(simba.Lost):
            run.progress()
        calls.add("stalled", run.should_stop)

    with client.scheduler(name, work, every=60, progress=2) as scheduler:
        calls.wait(2)
    assert list(calls) == [("went on", False), ("stalled", True)]
    scheduler.close()
    with pytest.raises(simba.Lost, match="over"):
        runs[0].progress()


def test_callbacks_of_a_scheduler(client, name, calls):
    def work(run):
        while not run.should_stop:
            time.sleep(0.01)

    scheduler = client.scheduler(name, work, every=60, progress=0.5, on_acquired=lambda s: calls.add("acquired"),
                                 on_endangered=lambda left: calls.add("endangered", 0 <= left <= 0.5),
                                 on_released=lambda s: calls.add("released", s.reason.name),
                                 on_stopped=lambda: calls.add("stopped", scheduler.status.name))
    scheduler.start()
    calls.wait(3)
    scheduler.stop()
    calls.wait(4)
    assert list(calls) == ["acquired", ("endangered", True), ("released", "STALLED"), ("stopped", "INITIAL")]


def test_scheduler_is_collected(client, name):
    scheduler = client.scheduler(name, print, every=60)
    del scheduler
    eventually(lambda: client.metrics().handles == 0)


def test_scheduler_needs_a_period(client, name):
    with pytest.raises(TypeError):
        client.scheduler(name, print)
    with pytest.raises(TypeError):
        client.scheduler(name, print, every=1, delay=1)
