"""Where libsimba calls Python.

C gets the functions of this file, which live as long as the process, and as `data` a number. The number is
a key of `targets`, which holds what has to be called, until on_closed, done or the end of the client take it out.
So nothing that C may still call is ever collected, and a late number finds nobody.

Threads: callbacks come from threads of libsimba; ctypes takes the interpreter's lock for them. In a client that
asyncio polls they come from inside of simba_poll(). No exception leaves a callback: it is logged with its traceback.

At exit the clients are closed (_client.py), and that waits for user code that still `running` says. A thread that came
out of it while the interpreter is being taken down would go on in libsimba, and call what is gone. For a client that
cannot be closed for another reason, `park` holds here for ever whoever still comes, as Python does with daemon
threads.
"""
import itertools
import logging
import threading
from collections.abc import Callable
from typing import Any

from . import _c
from ._errors import error_text
from ._values import decode, event_of, state_of

logger = logging.getLogger("simba")
targets: dict[int, Any] = {}
running: dict[int, str] = {}  # user code, by thread
interrupts: list[KeyboardInterrupt] = []
_numbers = itertools.count(1)
_LEVELS = (logging.ERROR, logging.WARNING, logging.INFO, logging.DEBUG)
_exiting = False


def register(target: Any) -> int:
    key = next(_numbers)
    targets[key] = target
    return key


def park() -> None:
    global _exiting
    _exiting = True


def call(what: str, function: Callable[..., Any] | None, *args: Any) -> bool:
    """Calls user code; False: it has raised."""
    done, thread = True, threading.get_ident()
    running[thread] = what
    try:
        if function is not None:
            function(*args)
    except KeyboardInterrupt as e:
        interrupts.append(e)  # the main thread, inside of simba_poll(): raised when that has returned
        done = False
    except BaseException:
        logger.exception("%s raised an exception", what)
        done = False
    running.pop(thread, None)
    wait_if_exiting()
    return done


def wait_if_exiting() -> None:
    if _exiting and threading.current_thread() is not threading.main_thread():
        never = threading.Lock()
        never.acquire()
        never.acquire()


def _state_callback(name: str) -> Any:
    def callback(key: int, mutex: bytes, state: Any) -> None:
        target = targets.get(key)
        if target is not None:
            call(f"{name} of mutex '{decode(mutex)}'", target.get(name), state_of(mutex, state.contents))
    return _c.StateFn(callback)


on_acquired = _state_callback("on_acquired")
on_released = _state_callback("on_released")
on_changed = _state_callback("on_changed")
on_lost = _state_callback("on_lost")


@_c.EndangeredFn
def on_endangered(key: int, mutex: bytes, left_ms: int) -> None:
    target = targets.get(key)
    if target is not None:
        call(f"on_endangered of mutex '{decode(mutex)}'", target.get("on_endangered"), left_ms / 1000)


@_c.DataFn
def on_stopped(key: int) -> None:
    target = targets.get(key)
    if target is not None:
        call("on_stopped", target.get("on_stopped"))


@_c.DataFn
def on_closed(key: int) -> None:
    target = targets.pop(key, None)
    if target is not None:
        call("on_closed", target.get("on_closed"))


@_c.DoneFn
def done(key: int, code: int) -> None:
    target = targets.pop(key, None)
    if target is not None:
        call("the end of a lock's wait", target, code, error_text() if code else "")


@_c.WorkFn
def work(key: int, run: int) -> int:
    target = targets.get(key)
    return 0 if target is not None and call("scheduled work", target["work"], run) else 1


@_c.LineFn
def log(key: int, level: int, line: bytes) -> None:
    target = targets.get(key)
    if target is not None and target.isEnabledFor(_LEVELS[level]):
        call("logging", target.log, _LEVELS[level], "%s", line.decode("utf-8", "replace"))


@_c.EventFn
def trace(key: int, event: Any) -> None:
    target = targets.get(key)
    if target is not None:
        call("trace", target, event_of(event.contents))
