"""Handles: Lock, Contender, Observer, Scheduler.

A handle that nobody holds any more is destroyed by the garbage collector, with two exceptions: a contender that was
started and an observer go on until stop(), close() or the end of their client, since callbacks are all that
one may want of them.
"""
import ctypes
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, TypedDict

from . import _c, _callbacks
from ._c import lib
from ._client import ASK_SECONDS, Client, Core
from ._errors import Canceled, Error, Lost, StateError, Timeout, check, error_of
from ._values import (Duration, Note, Reason, State, Status, decode, encode, milliseconds, note_of, option_ms,
                      state_of, timeout_ms)

_WAIT_MS = 500  # how long Ctrl-C can take in Contender.wait()
_CANCEL_SECONDS = 5.0  # for an acquisition to end that was cancelled


class Options(TypedDict, total=False):
    """See simba_handle_options in simba.h. id: unique among all that contend for the mutex, in all processes."""
    id: str | None
    ttl: Duration | None
    transition: Duration | None
    initial_delay: Duration | None
    renew: Duration | None
    drain: Duration | None
    jitter_early: Duration | None
    jitter_late: Duration | None


class LockOptions(Options, total=False):
    at_least: Duration | None
    note: str | None


class ContenderOptions(LockOptions, total=False):
    progress: Duration | None


def _c_options(options: Mapping[str, Any], callbacks: Mapping[str, Any], key: int | None) -> _c.HandleOptions:
    c = _c.init(_c.HandleOptions)
    for name, value in options.items():
        if name in ("id", "note"):
            setattr(c, name, None if value is None else encode(value))
        elif name in ContenderOptions.__annotations__:
            setattr(c, name + "_ms", option_ms(value))
        else:
            raise TypeError(f"unexpected option '{name}'")
    for name in callbacks:
        if name != "work":
            setattr(c, name, getattr(_callbacks, name))
    if key is not None:
        c.on_closed, c.data = _callbacks.on_closed, key
    return c


def _destroy(core: Core, name: str, pointer: int) -> None:
    """The client frees its handles when it is closed."""
    with core.gate:
        if not core.closing and not core.forked:
            getattr(lib, name + "_destroy")(pointer)


class Handle:
    _kind = ""

    def __init__(self, client: Client, mutex: str | None, callbacks: Mapping[str, Any], options: Mapping[str, Any],
                 *arguments: Any) -> None:
        self._client, self.name = client, mutex
        core = client._core
        wanted = {name: function for name, function in callbacks.items() if function is not None}
        key = _callbacks.register(wanted) if wanted else None
        pointer = ctypes.c_void_p()
        try:
            c_options = _c_options(options, wanted, key)
            check(core.call(getattr(lib, self._kind + "_create"), core.pointer,
                            None if mutex is None else encode(mutex), *arguments, ctypes.byref(c_options),
                            ctypes.byref(pointer)))
        except BaseException:
            _callbacks.targets.pop(key or 0, None)
            raise
        self._pointer: int | None = pointer.value
        self._calls = 0
        self._finalizer = weakref.finalize(self, _destroy, core, self._kind, pointer.value)
        self._finalizer.atexit = False

    def _target(self) -> int | None:
        """What the functions of this class are called with; None: it is closed."""
        return self._pointer

    def _raw(self, function: Callable[..., Any], *args: Any, while_closing: bool = False) -> Any:
        """close() by another thread destroys the handle when this call is over."""
        core = self._client._core
        with core.gate:
            target = self._target()
            if target is None:
                raise StateError(f"mutex '{self.name}': the handle is closed")
            self._calls += 1
        try:
            return core.call(function, target, *args, while_closing=while_closing)
        finally:
            with core.gate:
                self._calls -= 1
                self._destroy_if_closed()

    def _call(self, function: Callable[..., int], *args: Any, while_closing: bool = False) -> int:
        return check(self._raw(function, *args, while_closing=while_closing))

    def _ask(self, function: Callable[..., Any], *args: Any) -> Any:
        """A call that never waits; what libsimba says about a handle that is being closed is 0, too."""
        core = self._client._core
        if core.closing:
            return 0
        with core.gate:
            target = self._target()
            return 0 if core.closing or target is None else function(target, *args)

    def _destroy_if_closed(self) -> None:
        if self._pointer is None and self._calls == 0:
            self._finalizer()

    def close(self) -> None:
        """Ends it; returns at once. What it holds is handed over in order behind it."""
        self._client._running.discard(self)
        with self._client._core.gate:
            self._pointer = None
            self._destroy_if_closed()

    def __repr__(self) -> str:
        return f"<simba.{type(self).__name__} {self.name!r}>"


class Call:
    """An acquisition on its way. Either its caller takes the result, or has given up before: then what was granted is
    given back. dict.setdefault decides which, as it cannot be interrupted."""

    def __init__(self, lock: "BaseLock", ended: Callable[[], None]) -> None:
        self.lock, self.ended = lock, ended
        self.outcome: dict[str, tuple[int, str] | None] = {}

    def start(self, ms: int) -> None:
        key = _callbacks.register(self.done)
        try:
            self.lock._call(lib.locker_acquire_async, ms, _callbacks.done, key)
        except Error:
            _callbacks.targets.pop(key, None)
            raise

    def done(self, code: int, text: str) -> None:
        if self.outcome.setdefault("it", (code, text)) is None and code == 0:
            self.give_back()
        self.ended()

    def give_up(self) -> bool:
        """Whether it still goes on, and ends soon."""
        outcome = self.outcome.setdefault("it", None)
        if outcome is None:
            self.lock._ask(lib.locker_cancel)
        elif outcome[0] == 0:
            self.give_back()
        return outcome is None

    def give_back(self) -> None:
        self.lock._ask(lib.locker_release_async, _c.DoneFn(), None)

    def result(self) -> None:
        code, text = self.outcome["it"] or (Canceled.code, "")
        if code != 0:
            raise error_of(code, text)


class BaseLock(Handle):
    """What a lock is, with threads and with asyncio."""
    _kind = "locker"

    def __init__(self, client: Client, name: str, timeout: Duration | None, on_lost: Any, on_endangered: Any,
                 options: Mapping[str, Any]) -> None:
        self._timeout = timeout
        super().__init__(client, name, {"on_lost": on_lost, "on_endangered": on_endangered}, options)

    def _timeout_ms(self, blocking: bool, timeout: Duration | None) -> int:
        if not blocking:
            return 0
        if timeout is None:
            return timeout_ms(self._timeout)
        return _c.FOREVER if timeout == -1 else milliseconds(timeout)  # -1: as threading.Lock has it

    @property
    def held(self) -> bool:
        """Is it held, by this object, at this instant? Reads the clock: false as soon as the lease ends."""
        return bool(self._ask(lib.locker_is_held))

    @property
    def token(self) -> int:
        """The fencing token; 0: not held, or lost."""
        return int(self._ask(lib.locker_token))

    @property
    def remaining(self) -> float:
        """Seconds left to act, if no renewal succeeds."""
        return int(self._ask(lib.locker_remaining)) / 1000

    @property
    def id(self) -> str:
        return decode(self._raw(lib.locker_id))

    def _end_of_body(self, release_error: Error | None, body: BaseException | None) -> None:
        """Of a with statement. An exception of the body goes before; that the lock was lost, before all is well."""
        if release_error is None:
            return
        if body is not None:
            body.add_note(f"simba: {release_error}")
        elif isinstance(release_error, Lost):
            raise release_error
        else:  # released here; others have the mutex at the end of the lease at the latest
            _callbacks.logger.warning("%s", release_error)


class Lock(BaseLock):
    """A lock, used as threading.Lock is: one holder at a time, not reentrant."""

    def acquire(self, blocking: bool = True, timeout: Duration | None = None) -> bool:
        """False: another has it, until the end of the timeout. StoreError, Denied, …: the store did not answer. (`with`
        raises Timeout, or Held with a timeout of 0.)"""
        try:
            self._acquire(self._timeout_ms(blocking, timeout))
        except Timeout:
            return False
        return True

    def _acquire(self, ms: int) -> None:
        """Waits on a lock of Python's, which Ctrl-C can interrupt."""
        ended = threading.Lock()
        ended.acquire()
        call = Call(self, ended.release)
        try:
            call.start(ms)
            ended.acquire()
        except (Error, NotImplementedError):  # of start
            raise
        except BaseException:
            if call.give_up():
                ended.acquire(timeout=_CANCEL_SECONDS)
            raise
        call.result()

    def release(self) -> None:
        """Lost: it had been lost before, the work was not protected to its end. StoreError: released here, but the
        store could not be told; others have it at the end of the lease at the latest."""
        self._call(lib.locker_release, while_closing=True)

    def publish(self, note: str, timeout: Duration = ASK_SECONDS) -> None:
        """Sets the note of the mutex, while it is held. Lost: it is not any more, nothing was written. StoreError: the
        outcome is unknown."""
        self._call(lib.locker_publish, encode(note), milliseconds(timeout))

    def __enter__(self) -> "Lock":
        self._acquire(self._timeout_ms(True, None))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 where: TracebackType | None) -> None:
        try:
            self.release()
        except Error as e:
            self._end_of_body(e, error)


class Contender(Handle):
    """A candidate for leadership. Callbacks: on_acquired(state), on_released(state), on_endangered(seconds left),
    on_stopped(). They come on threads of libsimba, one at a time, and may block: the lease is renewed meanwhile."""
    _kind = "contender"

    def start(self) -> None:
        """Begins to contend; returns at once."""
        self._call(lib.contender_start)
        self._client._running.add(self)

    def stop(self) -> None:
        """Returns at once. Then on_released runs, the store is told, and on_stopped runs."""
        self._call(lib.contender_stop)
        self._client._running.discard(self)

    def resign(self, pause: Duration = 0) -> None:
        """Ends this tenure in order, stays a candidate, and does not try again for that long."""
        self._call(lib.contender_resign, milliseconds(pause))

    def fail(self, token: int, reason: Reason) -> None:
        """As stop, but the tenure counts as lost: Reason.STALLED or Reason.EXPIRED. Lost: it is over."""
        self._call(lib.contender_fail, token, reason)

    def progress(self, token: int) -> None:
        """The owner is getting on with its work: see the option progress. Lost: that tenure is over."""
        self._call(lib.contender_progress, token)

    def publish(self, token: int, note: str, timeout: Duration = ASK_SECONDS) -> None:
        """Sets the note of the mutex, in this tenure. Lost: it is over, nothing was written. StoreError: the outcome is
        unknown."""
        self._call(lib.contender_publish, token, encode(note), milliseconds(timeout))

    def wait(self, until: Status = Status.RUNNING, timeout: Duration | None = None) -> None:
        """Waits for a status; Timeout if it does not come."""
        ms = timeout_ms(timeout)
        end = None if ms == _c.FOREVER else time.monotonic() + ms / 1000
        while True:
            left = _WAIT_MS if end is None else max(0, round((end - time.monotonic()) * 1000))
            code = self._raw(lib.contender_wait, until, min(left, _WAIT_MS))
            if code != Timeout.code or left <= _WAIT_MS and end is not None:
                check(code)
                return

    @property
    def status(self) -> Status:
        return Status(self._ask(lib.contender_status))

    @property
    def is_owner(self) -> bool:
        """May I act as the owner now? Reads the clock, takes no lock of libsimba's."""
        return bool(self._ask(lib.contender_is_owner))

    def owns(self, token: int) -> bool:
        """The same about one tenure, so that work of an old one is not misled."""
        return bool(self._ask(lib.contender_owns, token))

    @property
    def token(self) -> int:
        """The fencing token; 0: not owner."""
        return int(self._ask(lib.contender_token))

    @property
    def remaining(self) -> float:
        """Seconds left to act, if no renewal succeeds."""
        return int(self._ask(lib.contender_remaining)) / 1000

    @property
    def id(self) -> str:
        return decode(self._raw(lib.contender_id))

    @property
    def state(self) -> State:
        state = _c.State()
        self._raw(lib.contender_state, ctypes.byref(state))
        return state_of(encode(self.name or ""), state)

    def __enter__(self) -> "Contender":
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 where: TracebackType | None) -> None:
        """Stops, and waits until callbacks and work have ended and the store is told."""
        if self._pointer is None or self._client._core.closing:
            return
        try:
            self.stop()
        except StateError:
            pass  # it was stopped
        self.wait(Status.INITIAL)
        self.close()


class Observer(Handle):
    """Watches without contending: on_changed(state)."""
    _kind = "observer"

    def __init__(self, client: Client, name: str | None, callbacks: Mapping[str, Any]) -> None:
        super().__init__(client, name, callbacks, {})
        client._running.add(self)

    @property
    def state(self) -> State:
        """What is known, of one mutex."""
        state = _c.State()
        self._raw(lib.observer_state, ctypes.byref(state))
        return state_of(encode(self.name or ""), state)

    @property
    def note(self) -> Note | None:
        """As it was when the observer last asked the store, of one mutex."""
        note = _c.Note()
        self._call(lib.observer_note, ctypes.byref(note))
        return note_of(note)

    def __enter__(self) -> "Observer":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 where: TracebackType | None) -> None:
        self.close()


class Run:
    """One run of scheduled work; when that has returned, it should stop."""

    def __init__(self, pointer: int, contender: int) -> None:
        self._pointer: int | None = pointer
        self._contender = contender  # is there as long as the run
        self._thread, self._gate = threading.get_ident(), threading.RLock()

    def _end(self) -> None:
        with self._gate:
            self._pointer = None

    @property
    def should_stop(self) -> bool:
        """Has the leadership of this run ended? Work that takes long asks often, and ends soon after it hears True."""
        with self._gate:
            return self._pointer is None or bool(lib.run_should_stop(self._pointer))

    @property
    def token(self) -> int:
        """Of the tenure, for fencing."""
        with self._gate:
            return 0 if self._pointer is None else int(lib.run_token(self._pointer))

    def progress(self) -> None:
        """The work is getting on: see the option progress. Lost: the tenure, or this run, is over."""
        with self._gate:
            if self._pointer is None:
                raise Lost("the run is over")
            check(lib.contender_progress(self._contender, self.token))

    def wait(self, seconds: Duration) -> bool:
        """Sleeps, or until the run should stop; says what should_stop then says. For the thread of the work only."""
        if threading.get_ident() != self._thread:
            raise StateError("only the thread of the work can wait in its run")
        return self._pointer is None or bool(lib.run_wait(self._pointer, milliseconds(seconds)))


class Scheduler(Contender):
    """A contender with work(run), which it does while it leads. A run that raises an exception has failed: that is
    logged, and the schedule goes on."""
    _kind = "scheduler"

    def __init__(self, client: Client, name: str, work: Callable[[Run], object], every: Duration | None,
                 delay: Duration | None, first: Duration | None, callbacks: Mapping[str, Any],
                 options: Mapping[str, Any]) -> None:
        if (every is None) == (delay is None):
            raise TypeError("a scheduler needs either every or delay")
        schedule = _c.init(_c.Schedule)
        schedule.pace = 0 if every is not None else 1
        schedule.period_ms = option_ms(every if every is not None else delay)
        schedule.initial_delay_ms = option_ms(first)

        inner = ctypes.c_void_p()  # not self: that could never be collected

        def run_work(pointer: int) -> None:
            run = Run(pointer, inner.value or 0)
            try:
                work(run)
            finally:
                run._end()

        super().__init__(client, name, {**callbacks, "work": run_work}, options, ctypes.byref(schedule),
                         _callbacks.work)
        self._inner: int = client._core.call(lib.scheduler_contender, self._pointer)
        inner.value = self._inner

    def _target(self) -> int | None:
        return None if self._pointer is None else self._inner
