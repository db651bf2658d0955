"""A class for each error code of libsimba. The text says what failed, on which mutex and store, and what to do."""
from ._c import lib


class Error(Exception):
    """code is that of simba.h; 0 if the package itself has refused."""
    code = 0


class InvalidArgument(Error, ValueError):
    code = -1


class StateError(Error, RuntimeError):
    """Not allowed now: a lock that is already held, a handle or client that is closed."""
    code = -2


class Timeout(Error, TimeoutError):
    code = -3


class Held(Timeout):
    """Another owns the mutex; only with a timeout of 0."""
    code = -4


class Lost(Error):
    """The lease was lost: the work was not protected to its end."""
    code = -5


class StoreError(Error):
    """The store is unreachable or failing."""
    code = -6


class Denied(Error):
    """The store refuses the user, the password or the name."""
    code = -7


class SchemaError(Error):
    code = -8


class ModuleMissing(Error):
    code = -9


class Unsupported(Error):
    code = -10


class LimitError(Error):
    code = -11


class Forked(Error):
    """The handle is the parent's: open a client of your own in the child."""
    code = -12


class Deadlock(Error):
    """The call would wait for the callback that makes it."""
    code = -13


class Canceled(Error):
    """Ended by cancel, or because the handle or the client was closed."""
    code = -14


class NotYet(Error):
    """Nobody owns the mutex, and nobody may yet: the store may have forgotten owners."""
    code = -15


CLASSES = {one.code: one for one in [*Error.__subclasses__(), Held]}


def last_error(code: int) -> Error:
    """The error of this thread's last call, which returned that code."""
    return error_of(code, error_text())


def error_of(code: int, text: str) -> Error:
    kind = CLASSES.get(code, Error)
    return kind(text or lib.strerror(code).decode())


def error_text() -> str:
    return str(lib.error_text().decode("utf-8", "replace"))


def check(code: int) -> int:
    if code < 0:
        raise last_error(code)
    return code
