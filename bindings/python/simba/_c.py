"""libsimba as ctypes sees it: the structs and functions of simba.h, and nothing that thinks.

tests/test_header.py compares this file with the header, so a field or a function that is missing or has
another type here is found. A function is looked up when it is first used: a library that is older than
this package serves all that it has.
"""
import ctypes
import functools
import os
from ctypes import CFUNCTYPE, POINTER, Structure
from ctypes import c_bool, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

SONAME = "libsimba.so.0"
DEFAULT = -1
FOREVER = 2**63 - 1
ID_MAX = 128
NO_THREAD = 1
PER_HANDLE = 1
OWNER_EVICTED = 1


class Owner(Structure):
    _fields_ = [("id", c_char * 136), ("token", c_uint64), ("acquired_at", c_int64), ("ttl_at", c_int64),
                ("transition_at", c_int64), ("flags", c_uint32), ("reserved32", c_uint32),
                ("reserved", c_uint64 * 3)]


class Note(Structure):
    _fields_ = [("text", c_char * 1032), ("token", c_uint64), ("written_at", c_int64), ("reserved", c_uint64 * 3)]


class State(Structure):
    _fields_ = [("before", Owner), ("after", Owner), ("reason", c_int), ("reserved", c_uint32 * 7)]


class Trouble(Structure):
    _fields_ = [("code", c_int32), ("reserved32", c_uint32), ("since", c_int64), ("until", c_int64),
                ("text", c_char * 384), ("reserved", c_uint64 * 4)]


class Entry(Structure):
    _fields_ = [("mutex", c_char_p), ("owner", Owner), ("waiters", c_int64),
                ("note", POINTER(Note)), ("reserved", c_uint64 * 3)]


class Histogram(Structure):
    _fields_ = [("count", c_uint64), ("sum_us", c_uint64), ("max_us", c_uint64), ("bucket", c_uint64 * 32)]


class Metrics(Structure):
    _fields_ = [("size", c_size_t),
                *((name, c_uint64) for name in ("handles", "owned", "attempts", "acquisitions", "renewals",
                                                "failures", "expired", "evicted", "reconnects")),
                *((name, Histogram) for name in ("operation", "handoff", "callback_delay", "callback")),
                *((name, c_uint64) for name in ("stalled", "runs", "runs_failed", "events_dropped")),
                *((name, Histogram) for name in ("wait", "hold", "run")),
                *((name, c_uint64) for name in ("schedules_blocked", "schedules_apart"))]


class HandleMetrics(Structure):
    _fields_ = [("mutex", c_char_p), ("id", c_char_p), ("status", c_int), ("token", c_uint64),
                *((name, c_uint64) for name in ("attempts", "acquisitions", "renewals", "failures", "expired",
                                                "evicted", "stalled")),
                ("reserved", c_uint64 * 8)]


class Event(Structure):
    _fields_ = [("kind", c_int), ("code", c_int32), ("reason", c_int), ("reserved32", c_uint32),
                ("name", c_char_p), ("mutex", c_char_p), ("id", c_char_p), ("token", c_uint64),
                ("began_us", c_int64), ("duration_us", c_int64), ("dropped", c_uint64),
                ("text", c_char_p), ("until", c_int64), ("reserved", c_uint64 * 2)]


# Every callback gets `data` first, here always a number: see _callbacks.py.
StateFn = CFUNCTYPE(None, c_void_p, c_char_p, POINTER(State))
EndangeredFn = CFUNCTYPE(None, c_void_p, c_char_p, c_int64)
DataFn = CFUNCTYPE(None, c_void_p)
DoneFn = CFUNCTYPE(None, c_void_p, c_int)
WorkFn = CFUNCTYPE(c_int, c_void_p, c_void_p)
EntryFn = CFUNCTYPE(None, c_void_p, POINTER(Entry))
LineFn = CFUNCTYPE(None, c_void_p, c_int, c_char_p)
HandleMetricsFn = CFUNCTYPE(None, c_void_p, POINTER(HandleMetrics))
EventFn = CFUNCTYPE(None, c_void_p, POINTER(Event))


class Options(Structure):
    _fields_ = [("size", c_size_t), ("ttl_ms", c_int64), ("transition_ms", c_int64),
                ("connect_timeout_ms", c_int64), ("command_timeout_ms", c_int64), ("drift_ppm", c_int64),
                ("executor", c_void_p), ("log", LineFn), ("log_data", c_void_p), ("flags", c_uint32),
                ("reserved32", c_uint32), ("trace", EventFn), ("trace_data", c_void_p), ("labels", c_char_p),
                ("trace_kinds", c_uint64)]


class HandleOptions(Structure):
    _fields_ = [("size", c_size_t), ("id", c_char_p), ("ttl_ms", c_int64), ("transition_ms", c_int64),
                ("initial_delay_ms", c_int64), ("renew_ms", c_int64), ("drain_ms", c_int64),
                ("jitter_early_ms", c_int64), ("jitter_late_ms", c_int64), ("on_acquired", StateFn),
                ("on_released", StateFn), ("on_changed", StateFn), ("on_closed", DataFn), ("data", c_void_p),
                ("progress_ms", c_int64), ("at_least_ms", c_int64), ("on_endangered", EndangeredFn),
                ("on_stopped", DataFn), ("on_lost", StateFn), ("note", c_char_p)]


class Schedule(Structure):
    _fields_ = [("size", c_size_t), ("pace", c_int), ("period_ms", c_int64), ("initial_delay_ms", c_int64),
                ("unused_ms", c_int64), ("cron", c_char_p), ("zone", c_char_p), ("missed", c_int), ("flags", c_uint32)]


def init(struct: Any) -> Any:
    """What the INIT macros do: the size, and every duration unset."""
    return struct.from_buffer_copy(_template(struct))


@functools.cache
def _template(struct: Any) -> Any:
    value = struct()
    value.size = ctypes.sizeof(struct)
    for name, *_ in struct._fields_:
        if name.endswith(("_ms", "_ppm")):
            setattr(value, name, DEFAULT)
    return value


_P, _S, _MS = c_void_p, c_char_p, c_int64

# Name without simba_: what it returns, what it takes.
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "strerror": (_S, c_int),
    "error_text": (_S,),
    "error_cause": (_S,),
    "owner_is": (c_bool, POINTER(Owner), _S),
    "owner_exists": (c_bool, POINTER(Owner), _MS),
    "owner_in_ttl": (c_bool, POINTER(Owner), _MS),
    "owner_in_transition": (c_bool, POINTER(Owner), _MS),
    "state_changed": (c_bool, POINTER(State)),
    "state_acquired": (c_bool, POINTER(State), _S),
    "state_released": (c_bool, POINTER(State), _S),
    "version": (_S,),
    "now": (_MS,),
    "wall_ms": (_MS, _MS),
    "duration_parse": (c_int, _S, POINTER(_MS)),
    "id_host": (c_int, _P, c_size_t),
    "id_uuid": (c_int, _P, c_size_t),
    "open": (c_int, _S, POINTER(Options), POINTER(_P)),
    "default_url": (c_int, _P, c_size_t),
    "store_text": (_S, _P),
    "liveness_fd": (c_int, _P),
    "read": (c_int, _P, _S, _MS, POINTER(Owner)),
    "read_note": (c_int, _P, _S, _MS, POINTER(Note), POINTER(Owner)),
    "list": (c_int, _P, _S, _MS, EntryFn, _P),
    "evict": (c_int, _P, _S, POINTER(Owner), c_bool, _MS),
    "diagnose": (c_int, _P, _MS, LineFn, _P),
    "metrics_read": (c_int, _P, POINTER(Metrics)),
    "metrics_each": (c_int, _P, HandleMetricsFn, _P),
    "metrics_prometheus": (_MS, POINTER(_P), c_size_t, c_uint64, _P, c_size_t),
    "close": (c_int, _P, _MS),
    "poll_fd": (c_int, _P),
    "poll_timeout": (_MS, _P),
    "poll": (c_int, _P),
    "contender_create": (c_int, _P, _S, POINTER(HandleOptions), POINTER(_P)),
    "contender_start": (c_int, _P),
    "contender_stop": (c_int, _P),
    "contender_resign": (c_int, _P, _MS),
    "contender_fail": (c_int, _P, c_uint64, c_int),
    "contender_progress": (c_int, _P, c_uint64),
    "contender_publish": (c_int, _P, c_uint64, _S, _MS),
    "contender_wait": (c_int, _P, c_int, _MS),
    "contender_destroy": (None, _P),
    "contender_status": (c_int, _P),
    "contender_is_owner": (c_bool, _P),
    "contender_owns": (c_bool, _P, c_uint64),
    "contender_token": (c_uint64, _P),
    "contender_remaining": (_MS, _P),
    "contender_id": (_S, _P),
    "contender_trouble": (c_int, _P, POINTER(Trouble)),
    "contender_state": (None, _P, POINTER(State)),
    "locker_create": (c_int, _P, _S, POINTER(HandleOptions), POINTER(_P)),
    "locker_acquire": (c_int, _P, _MS),
    "locker_acquire_async": (c_int, _P, _MS, DoneFn, _P),
    "locker_cancel": (c_int, _P),
    "locker_release": (c_int, _P),
    "locker_release_async": (c_int, _P, DoneFn, _P),
    "locker_publish": (c_int, _P, _S, _MS),
    "locker_is_held": (c_bool, _P),
    "locker_token": (c_uint64, _P),
    "locker_remaining": (_MS, _P),
    "locker_id": (_S, _P),
    "locker_trouble": (c_int, _P, POINTER(Trouble)),
    "locker_destroy": (None, _P),
    "observer_create": (c_int, _P, _S, POINTER(HandleOptions), POINTER(_P)),
    "observer_state": (None, _P, POINTER(State)),
    "observer_note": (c_int, _P, POINTER(Note)),
    "observer_destroy": (None, _P),
    "scheduler_create": (c_int, _P, _S, POINTER(Schedule), WorkFn, POINTER(HandleOptions), POINTER(_P)),
    "scheduler_contender": (_P, _P),
    "scheduler_destroy": (None, _P),
    "run_should_stop": (c_bool, _P),
    "run_token": (c_uint64, _P),
    "run_tick": (c_int64, _P),
    "run_wait": (c_bool, _P, _MS),
    "schedule_next": (c_int, POINTER(Schedule), _MS, POINTER(c_int64), _P),
}


class Library:
    """lib.locker_create is simba_locker_create. ctypes gives the interpreter's lock away during each call."""

    def __init__(self) -> None:
        path = os.environ.get("SIMBA_LIBRARY") or SONAME
        try:
            self._dll = ctypes.CDLL(path)
        except OSError as e:
            raise ImportError(f"simba needs the library libsimba, and cannot load it: {e}. Install it, or set "
                              f"SIMBA_LIBRARY to the path of {SONAME}.") from None
        if not hasattr(self._dll, "simba_open"):
            raise ImportError(f"{path} is not libsimba")

    def __getattr__(self, name: str) -> Any:
        returns, *takes = FUNCTIONS[name]
        try:
            function = getattr(self._dll, "simba_" + name)
        except AttributeError:
            raise NotImplementedError(f"this libsimba is too old: it has no simba_{name}") from None
        function.restype, function.argtypes = returns, takes
        setattr(self, name, function)
        return function


lib = Library()
