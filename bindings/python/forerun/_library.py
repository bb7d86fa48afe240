"""Finds and loads the shared library, turns its failures into exceptions, and frees its objects in order."""

from __future__ import annotations

import array
import glob
import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Callable, Optional, TypeVar, Union

from ._abi import ffi as ffi

__all__ = [
    "Aborted",
    "Error",
    "Ids",
    "InputError",
    "LostError",
    "MachineError",
    "NumericError",
    "OutOfMemoryError",
    "UnbuiltError",
    "UsageError",
]

#: Ids of tokens: a sequence of int, or any buffer of int32 (an array.array of "i", a numpy array), which is not copied.
Ids = Union[Sequence[int], "array.array[int]", memoryview]


def _open_library() -> Any:
    """Loads the library that the wheel contains, FORERUN_LIBRARY if that is set, else the system's."""
    bundled = glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "libforerun.so*"))
    path = os.environ.get("FORERUN_LIBRARY") or (bundled[0] if bundled else "libforerun.so")
    try:
        loaded = ffi.dlopen(path)
    except OSError as failure:
        raise ImportError(f"the library of forerun can't be loaded: {failure}") from None
    version = ffi.string(loaded.fr_version()).decode()
    series = f"{loaded.FR_VERSION_MAJOR}.{loaded.FR_VERSION_MINOR}"
    if version.rsplit(".", 1)[0] != series:
        raise ImportError(f"{path} has version {version} of forerun, but this package needs {series}")
    return loaded


lib: Any = _open_library()
version: str = ffi.string(lib.fr_version()).decode()


# ----------------------------------------------------------------------------------------------------------- exceptions


class Error(Exception):
    """A call of the library failed. The text is the library's line, which names the file, tensor or number at fault.

    status: the library's word for the kind of failure, such as "input".
    option: the name of the option of which another value would help, such as "context"; None if there is none.
    """

    status = "error"

    def __init__(self, line: str, option: Optional[str] = None) -> None:
        super().__init__(line)
        self.option = option


class InputError(Error, ValueError):
    """A file, model, prompt or id can't be used."""

    status = "input"


class UsageError(Error, ValueError):
    """An argument or an option's value makes no sense, or the call is not allowed now."""

    status = "usage"


class OutOfMemoryError(Error, MemoryError):
    """The system gave no memory, or a limit on memory was reached."""

    status = "memory"


class NumericError(Error, ArithmeticError):
    """The weights gave a logit that is not finite."""

    status = "numeric"


class MachineError(Error):
    """This machine lacks something that was asked for, such as an instruction set."""

    status = "machine"


class UnbuiltError(Error, NotImplementedError):
    """The library knows the feature but does not have it yet."""

    status = "unbuilt"


class Aborted(Error):
    """Session.cancel ended the call. The session stays usable."""

    status = "aborted"


class LostError(Error):
    """A file that weights are mapped from was shortened or written to: open the model again."""

    status = "lost"


_KINDS = {
    kind.status: kind
    for kind in (
        InputError,
        UsageError,
        OutOfMemoryError,
        NumericError,
        MachineError,
        UnbuiltError,
        Aborted,
        LostError,
    )
}
_OPTION_NAMES: dict[int, str] = {
    getattr(lib, name): name[len("FR_OPT_") :].lower()
    for name in dir(lib)
    if name.startswith("FR_OPT_") and name != "FR_OPT_COUNT"
}


def failure(status: int, line: Optional[str] = None) -> Error:
    """Makes the exception for a status that is not FR_OK. line: None for the thread's last line."""
    word = ffi.string(lib.fr_status_name(status)).decode()
    if line is None:
        line = ffi.string(lib.fr_last_error()).decode("utf-8", "replace")
    kind = _KINDS.get(word, Error)
    return kind(line or word, _OPTION_NAMES.get(lib.fr_last_error_option()))


def check(status: int) -> None:
    """Raises the exception of a failed call."""
    if status:
        raise failure(status)


class Caught:
    """Keeps the exception of a Python callback until the call that the callback belongs to has returned.

    An exception must not go through the library, so cffi gives it to `keep`, and the callback returns what makes the
    library end the call.
    """

    def __init__(self) -> None:
        self.exception: Optional[BaseException] = None

    def keep(self, kind: Any, exception: Any, traceback: Any) -> None:
        """Takes an exception from cffi; of several, the first counts."""
        if self.exception is None:
            self.exception = exception

    def callback(self, signature: str, function: Callable[..., Any], failed: Any) -> Any:
        """Makes a callback of C; it returns `failed` if the function raises an exception, which is kept."""
        return ffi.callback(signature, function, error=failed, onerror=self.keep)

    def check(self, status: int) -> None:
        """Raises a callback's exception, or else that of a failed call."""
        if self.exception is not None:
            exception, self.exception = self.exception, None
            raise exception
        if status:
            raise failure(status)


# ------------------------------------------------------------------------------------------------------------- objects


_Closed = TypeVar("_Closed", bound="Closing")


class Closing:
    """Closes an object of the package at the end of a `with` statement."""

    def close(self) -> None:
        """Frees what the object owns."""
        raise NotImplementedError

    def __enter__(self: _Closed) -> _Closed:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()


class Handle:
    """Owns an object of the library, which is closed after everything that uses it.

    Sessions use engines, which use models, and arrays without copies use sessions. Python may drop these in any order,
    so each handle counts its users, and closes its object once it is dropped and nothing uses it any more.
    """

    # Reentrant, because collecting garbage while it is held may drop another handle.
    _lock = threading.RLock()

    def __init__(self, pointer: Any, close: Callable[[Any], None], *used: Handle) -> None:
        self._pointer = pointer
        self._close = close
        self._used = list(used)
        self._users = 0
        self.dropped = False
        #: Keeps callbacks and buffers alive as long as the library may use them.
        self.kept: dict[str, Any] = {}
        for handle in used:
            handle.use()

    @property
    def pointer(self) -> Any:
        """The library's object, for a call of the library."""
        if self.dropped:
            raise UsageError("this object is closed")
        return self._pointer

    def use(self) -> None:
        """Counts one more user."""
        with self._lock:
            self._users += 1

    def hold(self, handle: Handle) -> Handle:
        """Uses one more object until this one is closed, or until `release`."""
        handle.use()
        self._used.append(handle)
        return handle

    def release(self, handle: Handle) -> None:
        """Ends the use of an object that `hold` began."""
        self._used.remove(handle)
        handle.leave()

    def leave(self) -> None:
        """Counts one user less."""
        with self._lock:
            self._users -= 1
        if self.dropped:
            self.drop()

    def drop(self) -> None:
        """Closes the object, now or as soon as its last user leaves. May be called more than once."""
        with self._lock:
            self.dropped = True
            if self._users > 0 or self._pointer is None:
                return
            pointer, self._pointer = self._pointer, None
        self._close(pointer)
        for handle in self._used:
            handle.leave()

    def __del__(self) -> None:
        self.drop()

    @classmethod
    def renew_lock(cls) -> None:
        """Replaces the lock in a child process, where a thread of the parent may seem to hold it."""
        cls._lock = threading.RLock()


os.register_at_fork(after_in_child=Handle.renew_lock)


class Alone:
    """Refuses a second thread, and a callback, while a call of a session or of its engine is running."""

    def __init__(self) -> None:
        lock = threading.Lock()
        self.acquire = lock.acquire
        self.release = lock.release

    def __enter__(self) -> None:
        if not self.acquire(False):
            raise self.busy()

    def __exit__(self, *details: object) -> None:
        self.release()

    def busy(self) -> UsageError:
        """Makes the exception for a call that came during another."""
        return UsageError("a call of this session, or of its engine, is still running")


# ------------------------------------------------------------------------------------------------------------ arguments


def ids_argument(ids: Ids) -> tuple[Any, int]:
    """Gives ids as an array of C. A buffer of int32 is used in place."""
    if isinstance(ids, (list, tuple)):
        return ffi.new("int32_t[]", ids), len(ids)
    try:
        view = memoryview(ids)  # type: ignore[arg-type]
    except TypeError:
        copied = list(ids)
        return ffi.new("int32_t[]", copied), len(copied)
    if view.format in ("i", "=i", "<i") and view.itemsize == 4 and view.contiguous and view.ndim == 1:
        return ffi.from_buffer("int32_t[]", view), len(view)
    copied = view.tolist()
    return ffi.new("int32_t[]", copied), len(copied)


def take_ids(pointer: Any, count: int) -> list[int]:
    """Gives ids that the library allocated as a list, and frees them."""
    ids: list[int] = ffi.unpack(pointer, count) if count else []
    lib.fr_free(pointer)
    return ids


def path_argument(path: Union[str, os.PathLike[str]]) -> bytes:
    """Gives a path as the bytes that the system has for it."""
    return os.fsencode(path)


def view_ids(pointer: Any, length: int) -> memoryview:
    """Shows ids of the library as [length] int32, without a copy."""
    return memoryview(ffi.buffer(pointer, 4 * length)).cast("B").cast("i")


def view_floats(pointer: Any, shape: tuple[int, ...]) -> memoryview[float]:
    """Shows an array of the library as float32, without a copy."""
    size = 4
    for extent in shape:
        size *= extent
    return cast_floats(memoryview(ffi.buffer(pointer, size)).cast("B"), shape)


def cast_floats(view: memoryview, shape: tuple[int, ...]) -> memoryview[float]:
    """Gives bytes the shape of an array of float32."""
    return view.cast("f") if len(shape) == 1 else view.cast("f", shape)


@contextmanager
def lent(*views: memoryview[Any]) -> Iterator[None]:
    """Lends arrays of the library to a callback, whose use of one after its return would read memory that is gone.

    A view that is kept itself is released, so using it raises ValueError. An array that was made of it, as numpy does,
    can't be, so it makes the callback fail.
    """
    try:
        yield
    except BaseException:
        for view in views:
            view.release()
        raise
    for view in views:
        owner = view.obj
        view.release()
        if sys.getrefcount(owner) > 2:  # `owner` and the argument
            raise UsageError("a callback kept an array that is lent to it until it returns: copy it")


def new_floats(shape: tuple[int, ...]) -> tuple[memoryview[float], Any]:
    """Makes an array of float32, as a memoryview and as a pointer to its first element."""
    size = 4
    for extent in shape:
        size *= extent
    memory = bytearray(size)
    return cast_floats(memoryview(memory), shape), ffi.from_buffer("float[]", memory)


def lines_of(note: Callable[[int], Any]) -> Iterable[str]:
    """Gives the lines of a function that returns line `index`, NULL after the last."""
    index = 0
    while (line := note(index)) != ffi.NULL:
        yield ffi.string(line).decode("utf-8", "replace")
        index += 1
