"""Simba: at most one owner of a named mutex, in any number of processes, on any machines.

    import simba

    with simba.open("redis://localhost") as s, s.lock("backup", timeout=5) as lock:
        write(data, fencing_token=lock.token)

One client (simba.open) talks to one store. On it you create a lock, a contender (leader election), an observer or a
scheduler (work that runs on the leader only). simba.aio has locks, contenders and watches for asyncio. Times are seconds or
timedelta.
"""
import ctypes as _ctypes

from . import _c
from ._c import lib as _lib
from ._client import Client, prometheus
from ._errors import (Canceled, Deadlock, Denied, Error, Forked, Held, InvalidArgument, LimitError, Lost, ModuleMissing,
                      NotYet, SchemaError, StateError, StoreError, Timeout, Unsupported)
from ._errors import check as _check
from ._handles import Contender, Lock, Observer, Run, Scheduler
from ._values import (Duration, Entry, Event, EventKind, Finding, HandleMetrics, Histogram, Level, Metrics, Note, Owner,
                      Reason, State, Status, now, wall)

open = Client


def version() -> str:
    """Of the library."""
    return str(_lib.version().decode())


def default_url() -> str:
    """The URL of the store that open() takes without one, and without SIMBA_URL."""
    return _text(_lib.default_url, 4096)


def id_host() -> str:
    """An id for contenders: 0:12345@web1/192.168.1.10-3f9a2c7e."""
    return _text(_lib.id_host, _c.ID_MAX + 1)


def id_uuid() -> str:
    """An id for contenders: 32 random hex digits."""
    return _text(_lib.id_uuid, _c.ID_MAX + 1)


def parse_duration(text: str) -> float:
    """Seconds of "500ms", "10s", "5m", "1h", "1d"; a bare number is in seconds."""
    ms = _ctypes.c_int64()
    _check(_lib.duration_parse(text.encode(), _ctypes.byref(ms)))
    return ms.value / 1000


def _text(function: _c.Any, size: int) -> str:
    out = _ctypes.create_string_buffer(size)
    _check(function(out, size))
    return out.value.decode("utf-8", "surrogateescape")


__all__ = ["Canceled", "Client", "Contender", "Deadlock", "Denied", "Duration", "Entry", "Error", "Event", "EventKind",
           "Finding", "Forked", "HandleMetrics", "Held", "Histogram", "InvalidArgument", "Level", "LimitError", "Lock",
           "Lost", "Metrics", "ModuleMissing", "NotYet", "Note", "Observer", "Owner", "Reason", "Run", "Scheduler",
           "SchemaError", "State", "StateError", "Status", "StoreError", "Timeout", "Unsupported", "default_url",
           "id_host", "id_uuid", "now", "open", "parse_duration", "prometheus", "version", "wall"]
