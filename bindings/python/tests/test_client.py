import logging
import math
import os
from datetime import timedelta, timezone

import pytest
import simba
from conftest import SECONDS, eventually
from simba import _c, _client, _values


def test_asking(client, name):
    assert client.read(name) is None
    assert client.store.split(":")[0] in ("sqlite", "redis")
    assert all(isinstance(finding.level, simba.Level) and finding.text for finding in client.diagnose())
    with client.lock(name) as lock:
        metrics = client.metrics()
        assert (metrics.handles, metrics.owned, metrics.acquisitions) == (1, 1, 1)
        assert metrics.operation.count == sum(count for _, count in metrics.operation.buckets) > 0
        assert metrics.operation.max <= metrics.operation.sum
        (handle,) = client.handle_metrics()
        assert (handle.mutex, handle.id, handle.token) == (name, lock.id, lock.token)


def test_ids_are_kept_as_they_are(client, name):
    strange = name + " ☃ \x1b\\"
    with client.lock(strange[:60], id=strange):
        owner = client.read(strange[:60])
        assert owner.id == strange
        assert [entry.mutex for entry in client.list(strange[:60])] == [strange[:60]]


def test_log(url, name, caplog):
    caplog.set_level(logging.DEBUG, "simba")
    with simba.open(url, ttl=2, log=logging.getLogger("simba.mine")) as s, s.lock(name):
        eventually(lambda: [r for r in caplog.records if r.name == "simba.mine" and name in r.getMessage()])
    assert {record.levelno for record in caplog.records} <= {logging.DEBUG, logging.INFO, logging.WARNING}


def test_trace_and_prometheus(url, name):
    events = []
    with simba.open(url, trace=events.append, labels={"app": 'a"b\\'}) as s, \
            simba.open(url, labels={"app": "other"}) as other:
        with s.contender(name) as contender:
            eventually(lambda: contender.is_owner)
            token = contender.token
            page = simba.prometheus([s, other], per_handle=True)
            assert 'app="a\\"b\\\\"' in page and 'app="other"' in page and name in page
            assert name not in simba.prometheus(s)
        eventually(lambda: [e for e in events if e.kind == simba.EventKind.ENDED])
    (begun,) = [e for e in events if e.kind == simba.EventKind.ACQUIRED]
    assert (begun.mutex, begun.token, begun.code) == (name, token, 0)
    exchange = next(e for e in events if e.kind == simba.EventKind.EXCHANGE)
    assert exchange.name == "contend" and 0 <= exchange.duration < SECONDS
    assert abs(exchange.began - simba.now()) < SECONDS


def test_trace_of_some_kinds(url, name):
    events = []
    kinds = simba.EventKind.ENDED, simba.EventKind.REACHED
    with simba.open(url, trace=events.append, trace_kinds=kinds) as s:
        with s.lock(name):
            pass
        eventually(lambda: len(events) == 2)
    assert sorted(e.kind for e in events) == sorted(kinds)
    assert {(e.text, e.until) for e in events} == {("", None)}


def test_dropped_client_is_closed(url, name):
    with pytest.warns(ResourceWarning, match="dropped"):
        lock = simba.open(url).lock(name)
        lock.acquire()
        del lock
    with simba.open(url, ttl=2) as s:
        eventually(lambda: s.read(name) is None)
    eventually(lambda: not _client._open_cores)


def test_errors_of_open():
    with pytest.raises(simba.ModuleMissing, match="nosuch"):
        simba.open("nosuch://host")
    with pytest.raises(simba.InvalidArgument, match="ttl"):
        simba.open("memory:", ttl=1e6)
    with pytest.raises(ValueError):
        simba.open("memory:\0")
    from simba import _callbacks
    assert not _callbacks.targets


def test_durations():
    ms = _values.milliseconds
    assert (ms(0), ms(0.0001), ms(1.5), ms(timedelta(minutes=1))) == (0, 1, 1500, 60000)
    assert ms(math.inf) == ms(1e300) == _c.FOREVER
    assert _values.option_ms(None) == _c.DEFAULT and _values.timeout_ms(None) == _c.FOREVER
    for wrong in (-1, math.nan, timedelta(seconds=-1)):
        with pytest.raises(ValueError):
            ms(wrong)
    assert simba.parse_duration("5m") == 300
    with pytest.raises(simba.InvalidArgument):
        simba.parse_duration("5 parsecs")


def test_owner():
    owner = simba.Owner("me", 7, 10.0, 20.0, 30.0)
    assert (owner.in_ttl(19.9), owner.in_ttl(20.0), owner.in_transition(20.0), owner.in_transition(30.0)) == \
        (True, False, True, False)
    assert owner.exists(29.9) and not owner.exists(30.0)
    with pytest.raises(AttributeError):
        owner.token = 8
    assert not simba.State("m", owner, owner, simba.Reason.UNCHANGED).changed
    assert simba.wall(simba.now()).tzinfo is timezone.utc
    assert str(os.getpid()) in simba.id_host() and len(simba.id_uuid()) == 32
    assert simba.default_url().startswith("sqlite:")


def test_errors():
    for code, kind in ((-3, simba.Timeout), (-4, simba.Held), (-12, simba.Forked)):
        error = simba._errors.error_of(code, "")
        assert type(error) is kind and isinstance(error, simba.Error) and error.code == code and str(error)
    assert type(simba._errors.error_of(-99, "new")) is simba.Error


def test_every_error_class_is_public():
    assert {kind.__name__ for kind in simba.Error.__subclasses__()} <= set(simba.__all__)
