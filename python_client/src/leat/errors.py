# SPDX-License-Identifier: Apache-2.0
"""What goes wrong, one class a kind; the text is the service's own.

Each class also derives from the built-in exception that Python users would
catch: `except TimeoutError` and `except ValueError` work as expected.
"""

from __future__ import annotations

__all__ = [
    "Aborted",
    "AlreadyExists",
    "Cancelled",
    "DataLoss",
    "DatasetChanged",
    "DeadlineExceeded",
    "Error",
    "FailedPrecondition",
    "Internal",
    "InvalidArgument",
    "NotFound",
    "OutOfRange",
    "PermissionDenied",
    "PipelineError",
    "ResourceExhausted",
    "Unauthenticated",
    "Unavailable",
    "Unimplemented",
]


def one_line(text: str) -> str:
    """`text`, which may have paths and names of people's in it, with line ends and all else that is not shown written
    out as `repr` does. It stays one line, and does nothing to a terminal."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


class Error(RuntimeError):
    """Base of all errors of Leat.

    Attributes:
        code: the status code's number, as gRPC counts them.
        lines: what is shown below the text, a line each.
    """

    code: int = 2
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(map(one_line, (super().__str__(), *self.lines)))


class DatasetChanged(UserWarning):
    """A job that exists keeps the listing of its dataset, and the dataset has changed since."""


class Cancelled(Error):
    """The call was cancelled."""

    code = 1


class InvalidArgument(Error, ValueError):
    """A value is wrong whatever the state of the service is."""

    code = 3


class PipelineError(InvalidArgument, TypeError):
    """A pipeline does what a graph cannot hold: Python control flow or arithmetic on a node."""


class DeadlineExceeded(Error, TimeoutError):
    """The time given was not enough; the call may be repeated."""

    code = 4


class NotFound(Error, LookupError):
    """No such job, dataset, path or worker."""

    code = 5


class AlreadyExists(Error):
    """Something else has this name already."""

    code = 6


class PermissionDenied(Error, PermissionError):
    """The service or the file system does not allow it."""

    code = 7


class ResourceExhausted(Error):
    """A bound of the service was reached."""

    code = 8


class FailedPrecondition(Error):
    """The service is not in the state that this needs."""

    code = 9


class Aborted(Error):
    """Given up because of something that happened at the same time; may be repeated."""

    code = 10


class OutOfRange(Error, IndexError):
    """An index beyond the end."""

    code = 11


class Unimplemented(Error, NotImplementedError):
    """This version of the service has no such thing."""

    code = 12


class Internal(Error):
    """A fault of Leat itself."""

    code = 13


class Unavailable(Error, ConnectionError):
    """Nobody answers at the address."""

    code = 14


class DataLoss(Error):
    """Stored data is damaged, or not what was indexed."""

    code = 15


class Unauthenticated(Error, PermissionError):
    """The token or the certificate is missing or wrong."""

    code = 16


_BY_CODE = {
    kind.code: kind
    for kind in (
        Cancelled,
        InvalidArgument,
        DeadlineExceeded,
        NotFound,
        AlreadyExists,
        PermissionDenied,
        ResourceExhausted,
        FailedPrecondition,
        Aborted,
        OutOfRange,
        Unimplemented,
        Internal,
        Unavailable,
        DataLoss,
        Unauthenticated,
    )
}


def from_status(code: int, message: str) -> Error:
    """The exception for a status; an unknown code gives `Error`."""
    return _BY_CODE.get(code, Error)(message)
