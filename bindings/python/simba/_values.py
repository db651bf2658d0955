"""Values: who owns a mutex, what has changed, what was counted. Times are in seconds, as everywhere in Python.

Points in time are on the clock of simba.now(), which goes on while the machine sleeps; simba.wall() makes
a datetime of one, to show.
"""
import dataclasses
import enum
import math
from datetime import datetime, timedelta, timezone
from typing import Any, Union

from . import _c
from ._c import lib

Duration = Union[float, timedelta]


class Status(enum.IntEnum):
    """Of a contender. RUNNING: the store has answered, which says nothing about who owns."""
    INITIAL = 0
    STARTING = 1
    RUNNING = 2
    STOPPING = 3


class Reason(enum.IntEnum):
    """Why a state came about."""
    UNCHANGED = 0
    ACQUIRED = 1
    RELEASED = 2
    EXPIRED = 3
    EVICTED = 4
    STALLED = 5
    UNSEEN = 6


class Level(enum.IntEnum):
    """Of a finding of diagnose: ERROR where a guarantee does not hold, WARN where it has conditions."""
    ERROR = 0
    WARN = 1
    INFO = 2
    DEBUG = 3


class EventKind(enum.IntEnum):
    EXCHANGE = 0
    ACQUIRED = 1
    ENDED = 2
    CALLBACK = 3
    RUN = 4
    FAILING = 5
    WORKS = 6
    NOT_YET = 7
    REACHED = 8
    NOTE_FAILED = 9
    NOTE_PUBLISHED = 10


def milliseconds(value: Duration) -> int:
    """Never 0 for what is not 0: a timeout of 0 has a meaning of its own."""
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if math.isnan(seconds) or seconds < 0:
        raise ValueError(f"a duration is not negative: {value!r}")
    if seconds > 2**53 / 1000:
        return _c.FOREVER
    return max(round(seconds * 1000), 1 if seconds > 0 else 0)


def option_ms(value: Duration | None) -> int:
    return _c.DEFAULT if value is None else milliseconds(value)


def timeout_ms(value: Duration | None) -> int:
    return _c.FOREVER if value is None else milliseconds(value)


def encode(text: str) -> bytes:
    """As Python does it with file names, so that names that are not UTF-8 go there and back unchanged."""
    data = text.encode("utf-8", "surrogateescape")
    if b"\0" in data:
        raise ValueError("a name or URL has no NUL in it")
    return data


def decode(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "surrogateescape")


def now() -> float:
    return float(lib.now()) / 1000


def wall(point: float) -> datetime:
    """A point on the clock of now() as date and time, for display."""
    return datetime.fromtimestamp(lib.wall_ms(round(point * 1000)) / 1000, timezone.utc)


@dataclasses.dataclass(frozen=True, slots=True)
class Owner:
    """A tenure of a mutex. token is the fencing token, greater than that of every earlier tenure."""
    id: str
    token: int
    acquired_at: float
    ttl_at: float
    transition_at: float
    evicted: bool = False

    def exists(self, at: float | None = None) -> bool:
        """Before transition_at; from there on another may own the mutex."""
        return (now() if at is None else at) < self.transition_at

    def in_ttl(self, at: float | None = None) -> bool:
        return (now() if at is None else at) < self.ttl_at

    def in_transition(self, at: float | None = None) -> bool:
        at = now() if at is None else at
        return self.ttl_at <= at < self.transition_at


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    """What a callback is told: the tenures before and after a change. None: nobody."""
    mutex: str
    before: Owner | None
    after: Owner | None
    reason: Reason

    @property
    def token(self) -> int:
        """Of the tenure that began, or of the one that ended."""
        tenure = self.after or self.before
        return tenure.token if tenure else 0

    @property
    def changed(self) -> bool:
        return tenure_of(self.before) != tenure_of(self.after)


def tenure_of(owner: Owner | None) -> tuple[str, int] | None:
    return (owner.id, owner.token) if owner else None


@dataclasses.dataclass(frozen=True, slots=True)
class Note:
    """What an owner of the mutex published last. token is that of the tenure that wrote it; written_at is on the clock
    of now(), and it may be older."""
    text: str
    token: int
    written_at: float


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """A mutex that is owned or waited for. waiters is None where the store does not know."""
    mutex: str
    owner: Owner | None
    waiters: int | None
    note: Note | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Event:
    """What a client did, for tracing: see simba_event in simba.h. code 0: it went well."""
    kind: EventKind
    code: int
    reason: Reason
    name: str
    mutex: str
    id: str
    token: int
    began: float
    duration: float
    dropped: int
    text: str = ""
    until: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Histogram:
    """buckets: (seconds, how many took less than that and did not fit into an earlier one)."""
    count: int
    sum: float
    max: float
    buckets: tuple[tuple[float, int], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Metrics:
    """What has happened since the client was opened; handles and owned are as of now."""
    handles: int
    owned: int
    attempts: int
    acquisitions: int
    renewals: int
    failures: int
    expired: int
    evicted: int
    reconnects: int
    operation: Histogram
    handoff: Histogram
    callback_delay: Histogram
    callback: Histogram
    stalled: int
    runs: int
    runs_failed: int
    events_dropped: int
    wait: Histogram
    hold: Histogram
    run: Histogram
    schedules_blocked: int
    schedules_apart: int


@dataclasses.dataclass(frozen=True, slots=True)
class HandleMetrics:
    """The same for one handle. id "": an observer."""
    mutex: str
    id: str
    status: Status
    token: int
    attempts: int
    acquisitions: int
    renewals: int
    failures: int
    expired: int
    evicted: int
    stalled: int


# ---- from C ------------------------------------------------------------------------------------------------

def owner_of(c: _c.Owner) -> Owner | None:
    if not c.id:
        return None
    return Owner(decode(c.id), c.token, c.acquired_at / 1000, c.ttl_at / 1000, c.transition_at / 1000,
                 bool(c.flags & _c.OWNER_EVICTED))


def note_of(c: _c.Note) -> Note | None:
    return Note(decode(c.text), c.token, c.written_at / 1000) if c.token else None


def state_of(mutex: bytes | None, c: _c.State) -> State:
    return State(decode(mutex), owner_of(c.before), owner_of(c.after), Reason(c.reason))


def entry_of(c: _c.Entry) -> Entry:
    return Entry(decode(c.mutex), owner_of(c.owner), c.waiters if c.waiters >= 0 else None,
                 note_of(c.note.contents) if c.note else None)


def event_of(c: _c.Event) -> Event:
    return Event(EventKind(c.kind), c.code, Reason(c.reason), decode(c.name), decode(c.mutex), decode(c.id),
                 c.token, c.began_us / 1e6, c.duration_us / 1e6, c.dropped, decode(c.text),
                 c.until / 1000 if c.until else None)


def histogram_of(c: _c.Histogram) -> Histogram:
    return Histogram(c.count, c.sum_us / 1e6, c.max_us / 1e6,
                     tuple((2**i / 1e6, count) for i, count in enumerate(c.bucket)))


def metrics_of(c: _c.Metrics) -> Metrics:
    values: dict[str, Any] = {}
    for field in dataclasses.fields(Metrics):
        value = getattr(c, field.name)
        values[field.name] = histogram_of(value) if isinstance(value, _c.Histogram) else value
    return Metrics(**values)


def handle_metrics_of(c: _c.HandleMetrics) -> HandleMetrics:
    counts = {f.name: getattr(c, f.name) for f in dataclasses.fields(HandleMetrics)[3:]}
    return HandleMetrics(decode(c.mutex), decode(c.id), Status(c.status), **counts)
