"""Simba for asyncio.

    async with simba.aio.open("redis://localhost") as s:
        async with s.lock("backup", timeout=5) as lock:
            await write(data, fencing_token=lock.token)

Locks and watches have no thread: the loop polls the client (SIMBA_NO_THREAD), so any number of them waits in it at
once. The loop also renews their leases; one that is blocked for longer than a lease lasts, loses them.

Contenders are on a second client with a thread of its own, which is opened for the first of them. Their callbacks are
coroutines on the loop, and a thread of libsimba waits for each: so nothing is given back while one runs, as it is
promised to callbacks everywhere.
"""
import asyncio
import inspect
import threading
import weakref
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, List, TypeVar

from . import _c, _callbacks, _client, _handles
from ._c import lib
from ._errors import Error, StateError, Timeout, error_of
from ._values import (Duration, Entry, Finding, HandleMetrics, Metrics, Note, Owner, Reason, State, Status,
                      encode, milliseconds)

if TYPE_CHECKING:
    from typing import Unpack

T = TypeVar("T")
_LOOP_SECONDS = 1.0  # how often a callback that waits for the loop asks whether that is closed


async def _run(function: Callable[..., Any], *args: Any) -> None:
    result = function(*args)
    if inspect.isawaitable(result):
        await result


class _Loop:
    """The loop, as other threads see it."""

    def __init__(self) -> None:
        self.loop, self.thread = asyncio.get_running_loop(), threading.get_ident()
        self.tasks: set[asyncio.Task[None]] = set()

    def soon(self, function: Callable[..., object], *args: Any) -> None:
        """On the loop; at once, if this is its thread."""
        if threading.get_ident() == self.thread and not self.loop.is_closed():
            function(*args)
            return
        try:
            self.loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            pass  # the loop is closed: nobody waits there any more

    def spawn(self, function: Callable[..., Any]) -> Callable[..., None]:
        """A function that runs this one on the loop, and does not wait for it."""
        def start(*args: Any) -> None:
            task = self.loop.create_task(_run(function, *args))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        return lambda *args: self.soon(start, *args)

    def bridge(self, function: Callable[..., Any]) -> Callable[..., None]:
        """A function that runs this one on the loop, and waits in the thread of the callback until it has ended."""
        def callback(*args: Any) -> None:
            if self.loop.is_closed():
                return
            future = asyncio.run_coroutine_threadsafe(_run(function, *args), self.loop)
            while not self.loop.is_closed():
                try:
                    future.result(_LOOP_SECONDS)
                    return
                except TimeoutError:
                    if future.done():
                        raise
        return callback


class Client:
    """One store. The arguments are those of simba.open."""

    def __init__(self, url: str | None = None, **options: Any) -> None:
        self._url, self._options = url, options
        self._polled: _client.Client | None = None
        self._threaded: _client.Client | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._handles: weakref.WeakSet[Any] = weakref.WeakSet()

    async def __aenter__(self) -> "Client":
        self._loop = _Loop()
        self._polled = _client.Client(self._url, **self._options, _flags=_c.NO_THREAD)
        self._fd = self._polled._core.call(lib.poll_fd, self._polled._core.pointer)
        self._loop.loop.add_reader(self._fd, self._poll)
        self._poll()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        where: TracebackType | None) -> None:
        await self.close()

    def _open(self) -> _client.Client:
        if self._polled is None:
            raise StateError("the client is not open: use it in 'async with'")
        return self._polled

    def _poll(self) -> None:
        core = self._open()._core
        with core.gate:
            if core.closing:
                return
            lib.poll(core.pointer)
            ms = lib.poll_timeout(core.pointer)
        if _callbacks.interrupts:
            raise _callbacks.interrupts.pop()
        if ms < 0:
            return
        # An earlier timer may stay: to poll too soon does no harm, and most timeouts only move on.
        loop, due = self._loop.loop, self._loop.loop.time() + ms / 1000
        if self._timer is None or self._timer.when() > due:
            self._stop_timer()
            self._timer = loop.call_at(due, self._poll_in_time)

    def _poll_in_time(self) -> None:
        self._timer = None
        self._poll()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def close(self, timeout: Duration | None = _client.CLOSE_SECONDS) -> None:
        """Stops every handle, hands over in order, and frees them. Timeout: nothing is freed yet, call it again."""
        if self._polled is None:
            return
        for handle in list(self._handles):
            handle._end()
        if self._threaded is not None:
            await asyncio.to_thread(self._threaded.close, timeout)
        if self._fd >= 0:
            self._loop.loop.remove_reader(self._fd)
            self._stop_timer()
            self._fd = -1
        await asyncio.to_thread(self._polled.close, timeout)

    @property
    def store(self) -> str:
        """The URL, to show: secrets are blanked."""
        return self._open().store

    @property
    def clients(self) -> list[_client.Client]:
        """For simba.prometheus: this client, and that of the contenders if there are any."""
        return [self._open()] + ([self._threaded] if self._threaded is not None else [])

    # ---- handles ----

    def lock(self, name: str, timeout: Duration | None = None, *, on_lost: Any = None, on_endangered: Any = None,
             **options: "Unpack[_handles.LockOptions]") -> "Lock":
        """A lock, not yet acquired. timeout is that of `async with`, and the default of acquire(). The callbacks may be
        coroutine functions."""
        lost = self._loop.spawn(on_lost) if on_lost is not None else None
        endangered = self._loop.spawn(on_endangered) if on_endangered is not None else None
        lock = Lock(self._open(), name, timeout, lost, endangered, options)
        lock._loop = self._loop
        self._handles.add(lock)
        return lock

    def contender(self, name: str, *, on_acquired: Any = None, on_released: Any = None, on_endangered: Any = None,
                  on_stopped: Any = None, **options: "Unpack[_handles.ContenderOptions]") -> "Contender":
        """A candidate for leadership, not yet started. The callbacks may be coroutine functions."""
        self._open()
        if self._threaded is None:
            labels = {**(self._options.get("labels") or {}), "handles": "contenders"}
            self._threaded = _client.Client(self._url, **{**self._options, "labels": labels})
        callbacks = {"on_acquired": on_acquired, "on_released": on_released, "on_endangered": on_endangered,
                     "on_stopped": on_stopped}
        return Contender(self._threaded, self._loop, name, callbacks, options)

    def watch(self, name: str | None = None) -> "Watch":
        """`async for state in s.watch("x")`: what is known first, and then every change. None: all mutexes."""
        watch = Watch(self._open(), self._loop, name)
        self._handles.add(watch)
        return watch

    # ---- asking the store: by a thread, while the loop polls ----

    async def read(self, name: str, timeout: Duration = _client.ASK_SECONDS) -> Owner | None:
        return await asyncio.to_thread(self._open().read, name, timeout)

    async def read_note(self, name: str, timeout: Duration = _client.ASK_SECONDS) -> tuple[Note | None, Owner | None]:
        return await asyncio.to_thread(self._open().read_note, name, timeout)

    async def list(self, prefix: str | None = None, timeout: Duration = _client.ASK_SECONDS) -> "List[Entry]":
        return await asyncio.to_thread(self._open().list, prefix, timeout)

    async def evict(self, name: str, tenure: Owner | None = None, *, forced: bool = False,
                    timeout: Duration = _client.ASK_SECONDS) -> None:
        await asyncio.to_thread(self._open().evict, name, tenure, forced=forced, timeout=timeout)

    async def diagnose(self, timeout: Duration = _client.ASK_SECONDS) -> "List[Finding]":
        return await asyncio.to_thread(self._open().diagnose, timeout)

    async def handle_metrics(self) -> "List[HandleMetrics]":
        return await asyncio.to_thread(self._open().handle_metrics)

    def metrics(self) -> Metrics:
        """Of locks and watches; that of contenders is in clients[1]."""
        return self._open().metrics()


open = Client


class Lock(_handles.BaseLock):
    """A lock for one task at a time, not reentrant."""
    _loop: _Loop

    async def acquire(self, blocking: bool = True, timeout: Duration | None = None) -> bool:
        """False: another has it, until the end of the timeout. StoreError, Denied, …: the store did not answer. A task
        that is cancelled meanwhile gives back what was granted."""
        try:
            await self._acquire(self._timeout_ms(blocking, timeout))
        except Timeout:
            return False
        return True

    async def _acquire(self, ms: int) -> None:
        ended = [self._loop.loop.create_future()]
        call = _handles.Call(self, lambda: self._loop.soon(_set_last, ended))
        call.start(ms)
        try:
            await ended[0]
        except asyncio.CancelledError:  # it has taken that future along; wait once more, for the end
            ended.append(self._loop.loop.create_future())
            if call.give_up():
                await ended[1]
            raise
        call.result()

    async def release(self) -> None:
        """See simba.Lock.release. It is not held from the call on, also if the task is cancelled."""
        ended = self._loop.loop.create_future()
        key = _callbacks.register(lambda code, text: self._loop.soon(_set, ended, (code, text)))
        try:
            self._call(lib.locker_release_async, _callbacks.done, key)
        except Error:
            _callbacks.targets.pop(key, None)
            raise
        code, text = await ended
        if code != 0:
            raise error_of(code, text)

    async def publish(self, note: str, timeout: Duration = _client.ASK_SECONDS) -> None:
        """See simba.Lock.publish."""
        await asyncio.to_thread(self._call, lib.locker_publish, encode(note), milliseconds(timeout))

    def _end(self) -> None:
        self.close()

    async def __aenter__(self) -> "Lock":
        await self._acquire(self._timeout_ms(True, None))
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        where: TracebackType | None) -> None:
        try:
            await self.release()
        except Error as e:
            self._end_of_body(e, error)


def _set(future: "asyncio.Future[T]", value: T) -> None:
    if not future.done():
        future.set_result(value)


def _set_last(futures: "list[asyncio.Future[None]]") -> None:
    _set(futures[-1], None)


class Watch(AsyncIterator[State]):
    """The states of a mutex, or of all. Of changes that come while nobody asks, the latest of each mutex is kept."""

    def __init__(self, client: _client.Client, loop: _Loop, name: str | None) -> None:
        self._loop, self._latest = loop, dict[str, State]()
        self._ready, self._closed = asyncio.Event(), False
        me = weakref.ref(self)  # so that a watch that nobody iterates over any more can go

        def changed(state: State) -> None:
            watch = me()
            if watch is not None:
                loop.soon(watch._add, state)

        self._observer = client.observer(name, changed)
        weakref.finalize(self, self._observer.close).atexit = False

    def _add(self, state: State) -> None:
        self._latest[state.mutex] = state
        self._ready.set()

    async def __anext__(self) -> State:
        while not self._latest and not self._closed:
            self._ready.clear()
            await self._ready.wait()
        if not self._latest:
            raise StopAsyncIteration
        return self._latest.pop(next(iter(self._latest)))

    def _end(self) -> None:
        self._observer.close()
        self._closed = True
        self._ready.set()

    async def aclose(self) -> None:
        self._end()


class Contender:
    """A candidate for leadership. The callbacks run on the loop, one at a time."""

    def __init__(self, client: _client.Client, loop: _Loop, name: str, callbacks: dict[str, Any],
                 options: "_handles.ContenderOptions") -> None:
        self._loop, self._waiting = loop, list[asyncio.Future[None]]()
        self._stopped: asyncio.Future[None] | None = None
        acquired, stopped = callbacks["on_acquired"], callbacks["on_stopped"]

        async def on_acquired(state: State) -> None:
            self._wake()
            if acquired is not None:
                await _run(acquired, state)

        async def on_stopped() -> None:
            if self._stopped is not None:
                _set(self._stopped, None)
            if stopped is not None:
                await _run(stopped)

        callbacks = {**callbacks, "on_acquired": on_acquired, "on_stopped": on_stopped}
        bridged = {key: loop.bridge(value) for key, value in callbacks.items() if value is not None}
        self._inner = client.contender(name, **bridged, **options)

    def _wake(self) -> None:
        for future in self._waiting:
            _set(future, None)
        self._waiting.clear()

    def start(self) -> None:
        """Begins to contend; returns at once."""
        self._inner.start()
        self._stopped = self._loop.loop.create_future()

    async def stop(self) -> None:
        """Returns when the callbacks have ended and the store is told."""
        if self._stopped is None:
            return
        if self._inner.status in (Status.STARTING, Status.RUNNING):
            self._inner.stop()
        await asyncio.shield(self._stopped)

    def resign(self, pause: Duration = 0) -> None:
        """Ends this tenure in order, stays a candidate, and does not try again for that long."""
        self._inner.resign(pause)

    def fail(self, token: int, reason: Reason) -> None:
        """As stop, but the tenure counts as lost: Reason.STALLED or Reason.EXPIRED. Lost: it is over."""
        self._inner.fail(token, reason)

    def progress(self, token: int) -> None:
        """The owner is getting on with its work: see the option progress. Lost: that tenure is over."""
        self._inner.progress(token)

    async def publish(self, token: int, note: str, timeout: Duration = _client.ASK_SECONDS) -> None:
        """See simba.Contender.publish."""
        await asyncio.to_thread(self._inner.publish, token, note, timeout)

    async def wait_leader(self) -> int:
        """Waits until it is the owner, and returns the token of that tenure."""
        while not (token := self._inner.token):
            future = self._loop.loop.create_future()
            self._waiting.append(future)
            await future
        return token

    def owns(self, token: int) -> bool:
        """The same about one tenure, so that work of an old one is not misled."""
        return self._inner.owns(token)

    @property
    def is_owner(self) -> bool:
        """May I act as the owner now?"""
        return self._inner.is_owner

    @property
    def token(self) -> int:
        """The fencing token; 0: not owner."""
        return self._inner.token

    @property
    def remaining(self) -> float:
        """Seconds left to act, if no renewal succeeds."""
        return self._inner.remaining

    @property
    def status(self) -> Status:
        return self._inner.status

    @property
    def id(self) -> str:
        return self._inner.id

    async def __aenter__(self) -> "Contender":
        self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        where: TracebackType | None) -> None:
        await self.stop()
        self._inner.close()


__all__ = ["Client", "Contender", "Lock", "Watch", "open"]
