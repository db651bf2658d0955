"""The client: one store.

Core holds the C object and sees to it that no thread uses it, or one of its handles, after simba_close has freed them:
calls are counted, close waits until there are none, and later ones are refused here. Client is what users see.
"""
import atexit
import ctypes
import logging
import os
import signal
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, List

from . import _c, _callbacks
from ._c import lib
from ._errors import Deadlock, Error, StateError, Timeout, check, last_error
from ._values import (Duration, Entry, Event, EventKind, Finding, HandleMetrics, Level, Metrics, Note, Owner, decode, encode, entry_of,
                      handle_metrics_of, metrics_of, milliseconds, note_of, option_ms, owner_of, timeout_ms)

if TYPE_CHECKING:
    from typing import Unpack

    from ._handles import Contender, ContenderOptions, Lock, LockOptions, Observer, Run, Scheduler

EXIT_SECONDS = 5.0  # at exit, while no user code runs
ASK_SECONDS = 10.0  # default timeout of read, list, evict, publish and diagnose
CLOSE_SECONDS = 30.0
_SLICE_MS = 20  # of simba_close; in between a thread can release its lock

_open_cores: set["Core"] = set()


class Core:
    def __init__(self, url: str | None, options: _c.Options, keys: Iterable[int]) -> None:
        self.gate = threading.Condition()  # its lock is reentrant: finalizers and signal handlers come at any time
        self.calls, self.closing, self.closed, self.forked = 0, False, False, False
        self.keys = set(keys)
        pointer = ctypes.c_void_p()
        try:
            check(lib.open(None if url is None else encode(url), ctypes.byref(options), ctypes.byref(pointer)))
        except BaseException:
            self.forget()
            raise
        self.pointer = pointer
        _open_cores.add(self)

    def forget(self) -> None:
        for key in self.keys:
            _callbacks.targets.pop(key, None)
        self.keys.clear()

    def call(self, function: Callable[..., Any], *args: Any, while_closing: bool = False) -> Any:
        with self.gate:
            if self.closed or self.closing and not while_closing:
                raise StateError("the client is closed")
            self.calls += 1
        try:
            return function(*args)
        finally:
            with self.gate:
                self.calls -= 1
                self.gate.notify_all()

    def close(self, timeout: Duration | None) -> None:
        ms = timeout_ms(timeout)
        until = None if ms == _c.FOREVER else time.monotonic() + ms / 1000
        with self.gate:
            if self.closed or self.forked:
                return
            self.closing = True
            while True:
                while self.calls > 0:
                    left = None if until is None else until - time.monotonic()
                    if left is not None and left <= 0:
                        raise Timeout("the client is not closed in time: another thread still makes a call")
                    self.gate.wait(left)
                if self.closed:
                    return
                left = _SLICE_MS / 1000 if until is None else min(_SLICE_MS / 1000, until - time.monotonic())
                code = lib.close(self.pointer, max(0, round(left * 1000)))
                if code == 0:
                    self.closed = True
                    break
                if code != Timeout.code or until is not None and time.monotonic() >= until:
                    error = last_error(code)
                    self.closing = not isinstance(error, Deadlock)
                    raise error
                self.gate.wait(0.001)
        self.forget()
        _open_cores.discard(self)


def _close_all() -> None:
    """At exit, before the interpreter goes: threads of libsimba must not call it after that. User code that still runs
    is waited for, as Python waits for its threads; all else gets a few seconds."""
    try:
        for core in list(_open_cores):
            _close_at_exit(core)
    except KeyboardInterrupt:  # out of patience; to go on could call what is gone
        os._exit(128 + signal.SIGINT)


def _close_at_exit(core: Core) -> None:
    told, ran_at = False, time.monotonic()
    while True:
        try:
            return core.close(EXIT_SECONDS / 8)
        except Error as e:
            runs = ", ".join(_callbacks.running.values())
            late = time.monotonic() - ran_at > EXIT_SECONDS
            if not runs and late:
                _callbacks.logger.warning("at exit: %s", e)
                return _callbacks.park()
            if runs:
                ran_at = time.monotonic()
                if not told:
                    _callbacks.logger.warning("at exit: waiting for %s", runs)
                told = True


def _forget_all() -> None:
    """In the child of a fork: the handles are the parent's, whose threads are not here."""
    for core in _open_cores:
        core.gate, core.calls, core.forked = threading.Condition(), 0, True
    _open_cores.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_forget_all)


def _close_dropped(core: Core) -> None:
    if core in _open_cores:
        warnings.warn("a simba client was dropped without close()", ResourceWarning, stacklevel=2)
        # Not here: the last reference may go anywhere, also in a callback that close would wait for.
        threading.Thread(target=_close_quietly, args=(core,), name="simba-close", daemon=True).start()


def _close_quietly(core: Core) -> None:
    try:
        core.close(CLOSE_SECONDS)
    except Error as e:
        _callbacks.logger.warning("closing a dropped client: %s", e)


def labels_text(labels: Mapping[str, str]) -> str:
    escaped = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
    return ",".join(f'{name}="{value.translate(escaped)}"' for name, value in labels.items())


class Client:
    """One store. Use it in a `with` statement, or call close()."""

    def __init__(self, url: str | None = None, *, ttl: Duration | None = None, transition: Duration | None = None,
                 connect_timeout: Duration | None = None, command_timeout: Duration | None = None,
                 drift: float | None = None, log: logging.Logger | None = _callbacks.logger,
                 trace: Callable[[Event], object] | None = None, labels: Mapping[str, str] | None = None,
                 trace_kinds: "Iterable[EventKind]" = (),
                 _flags: int = 0) -> None:
        options, keys = _c.init(_c.Options), []
        options.ttl_ms, options.transition_ms = option_ms(ttl), option_ms(transition)
        options.connect_timeout_ms = option_ms(connect_timeout)
        options.command_timeout_ms = option_ms(command_timeout)
        options.drift_ppm = _c.DEFAULT if drift is None else round(drift * 1_000_000)
        options.flags = _flags
        for kind in trace_kinds:
            options.trace_kinds |= 1 << kind
        options.labels = encode(labels_text(labels)) if labels else None
        if log is not None:
            options.log, options.log_data = _callbacks.log, _callbacks.register(log)
            keys.append(options.log_data)
        if trace is not None:
            options.trace, options.trace_data = _callbacks.trace, _callbacks.register(trace)
            keys.append(options.trace_data)
        self._core = Core(url, options, keys)
        self._running: set[object] = set()  # handles that work without anybody holding them
        self._finalizer = weakref.finalize(self, _close_dropped, self._core)
        self._finalizer.atexit = False

    def close(self, timeout: Duration | None = CLOSE_SECONDS) -> None:
        """Stops every handle, hands over in order, and frees them. Locks that other living threads hold are waited for.
        Timeout: nothing is freed yet, call it again."""
        self._core.close(timeout)
        self._running.clear()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 where: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<simba.Client {'closed' if self._core.closing else self.store}>"

    @property
    def store(self) -> str:
        """The URL, to show: secrets are blanked."""
        return decode(self._core.call(lib.store_text, self._core.pointer))

    @property
    def liveness_fd(self) -> int | None:
        """For children that act for the owner: see simba_liveness_fd in simba.h."""
        fd = self._core.call(lib.liveness_fd, self._core.pointer)
        return fd if fd >= 0 else None

    # ---- handles ----

    def lock(self, name: str, timeout: Duration | None = None, *, on_lost: Any = None, on_endangered: Any = None,
             **options: "Unpack[LockOptions]") -> "Lock":
        """A lock, not yet acquired. timeout is that of `with`, and the default of acquire(); None waits for ever."""
        from ._handles import Lock
        return Lock(self, name, timeout, on_lost, on_endangered, options)

    def contender(self, name: str, *, on_acquired: Any = None, on_released: Any = None, on_endangered: Any = None,
                  on_stopped: Any = None, **options: "Unpack[ContenderOptions]") -> "Contender":
        """A candidate for leadership, not yet started."""
        from ._handles import Contender
        callbacks = {"on_acquired": on_acquired, "on_released": on_released, "on_endangered": on_endangered,
                     "on_stopped": on_stopped}
        return Contender(self, name, callbacks, options)

    def observer(self, name: str | None, on_changed: Any, *, on_closed: Any = None) -> "Observer":
        """Calls on_changed(state) with what is known first, and then for every change. None: all mutexes."""
        from ._handles import Observer
        return Observer(self, name, {"on_changed": on_changed, "on_closed": on_closed})

    def scheduler(self, name: str, work: "Callable[[Run], object]", *, every: Duration | None = None,
                  delay: Duration | None = None, on_acquired: Any = None, on_released: Any = None,
                  on_endangered: Any = None, on_stopped: Any = None, first: Duration | None = None,
                  **options: "Unpack[ContenderOptions]") -> "Scheduler":
        """Work that runs on the leader only, not yet started: at a fixed rate (every), or with a fixed delay after each
        run. first: from the acquisition to the first run."""
        from ._handles import Scheduler
        callbacks = {"on_acquired": on_acquired, "on_released": on_released, "on_endangered": on_endangered,
                     "on_stopped": on_stopped}
        return Scheduler(self, name, work, every, delay, first, callbacks, options)

    # ---- asking the store ----

    def read(self, name: str, timeout: Duration = ASK_SECONDS) -> Owner | None:
        """Who owns the mutex now; None: nobody."""
        owner, core = _c.Owner(), self._core
        check(core.call(lib.read, core.pointer, encode(name), milliseconds(timeout), ctypes.byref(owner)))
        return owner_of(owner)

    def read_note(self, name: str, timeout: Duration = ASK_SECONDS) -> tuple[Note | None, Owner | None]:
        """What an owner of the mutex published last, and who owns it now, in one exchange. None: there is none; nobody."""
        note, owner, core = _c.Note(), _c.Owner(), self._core
        check(core.call(lib.read_note, core.pointer, encode(name), milliseconds(timeout), ctypes.byref(note),
                        ctypes.byref(owner)))
        return note_of(note), owner_of(owner)

    def list(self, prefix: str | None = None, timeout: Duration = ASK_SECONDS) -> "List[Entry]":
        """Every mutex that is owned or waited for, in no order."""
        found: list[Entry] = []
        each = _c.EntryFn(lambda _, entry: found.append(entry_of(entry.contents)))
        core, begin = self._core, None if prefix is None else encode(prefix)
        check(core.call(lib.list, core.pointer, begin, milliseconds(timeout), each, None))
        return found

    def evict(self, name: str, tenure: Owner | None = None, *, forced: bool = False,
              timeout: Duration = ASK_SECONDS) -> None:
        """Ends a tenure, as an operator: this one, or whichever is on. forced: see simba_evict in simba.h. Lost: that
        tenure is over, or nobody owns the mutex."""
        owner, core = None, self._core
        if tenure is not None:
            owner = ctypes.byref(_c.Owner(id=encode(tenure.id), token=tenure.token))
        check(core.call(lib.evict, core.pointer, encode(name), owner, forced, milliseconds(timeout)))

    def diagnose(self, timeout: Duration = ASK_SECONDS) -> "List[Finding]":
        """What the store says about itself and how it is set up. Ask after a first exchange."""
        found: list[Finding] = []
        each = _c.LineFn(lambda _, level, line: found.append(Finding(Level(level), decode(line))))
        check(self._core.call(lib.diagnose, self._core.pointer, milliseconds(timeout), each, None))
        return found

    def metrics(self) -> Metrics:
        values = _c.init(_c.Metrics)
        check(self._core.call(lib.metrics_read, self._core.pointer, ctypes.byref(values)))
        return metrics_of(values)

    def handle_metrics(self) -> "List[HandleMetrics]":
        found: list[HandleMetrics] = []
        each = _c.HandleMetricsFn(lambda _, metrics: found.append(handle_metrics_of(metrics.contents)))
        check(self._core.call(lib.metrics_each, self._core.pointer, each, None))
        return found


def prometheus(clients: Client | Iterable[Client], *, per_handle: bool = False) -> str:
    """The metrics of these clients as one page in the text format of Prometheus; they differ in their labels. per_handle:
    also what each handle counts, with its mutex as a label."""
    cores = [client._core for client in ([clients] if isinstance(clients, Client) else clients)]
    pointers = (ctypes.c_void_p * len(cores))(*(core.pointer.value for core in cores))
    size = 65536
    while True:
        out = ctypes.create_string_buffer(size)

        def write(rest: "list[Core]") -> int:
            """Inside of a call of each client, so that none is closed meanwhile."""
            if rest:
                return int(rest[0].call(write, rest[1:]))
            return check(lib.metrics_prometheus(pointers, len(cores), _c.PER_HANDLE if per_handle else 0, out, size))

        length = write(cores)
        if length < size:
            return out.value.decode("utf-8", "replace")
        size = length + 4096  # it may have grown meanwhile
