# SPDX-License-Identifier: Apache-2.0
"""The exceptions of Leat, one class per kind of error; their text comes from the service.

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
    """Returns `text`, which may contain paths and names that other people chose, with line ends and unprintable
    characters escaped as `repr` does. The result is one line, and cannot control a terminal."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


class Error(RuntimeError):
    """Base of all errors of Leat.

    Attributes:
        code: the number of the gRPC status code.
        lines: further lines that are shown below the text.
    """

    code: int = 2
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(map(one_line, (super().__str__(), *self.lines)))


class DatasetChanged(UserWarning):
    """An existing job keeps the listing of its dataset, and the dataset has changed since."""


class Cancelled(Error):
    """The call was cancelled."""

    code = 1


class InvalidArgument(Error, ValueError):
    """A value is wrong, whatever the state of the service."""

    code = 3


class PipelineError(InvalidArgument, TypeError):
    """A pipeline does something that a graph cannot represent: Python control flow or arithmetic on a node."""


class DeadlineExceeded(Error, TimeoutError):
    """The given time was not enough; the call may be repeated."""

    code = 4


class NotFound(Error, LookupError):
    """There is no such job, dataset, path or worker."""

    code = 5


class AlreadyExists(Error):
    """The name is already taken by something else."""

    code = 6


class PermissionDenied(Error, PermissionError):
    """The service or the file system denies access."""

    code = 7


class ResourceExhausted(Error):
    """A limit of the service was reached."""

    code = 8


class FailedPrecondition(Error):
    """The service is not in the state that the call needs."""

    code = 9


class Aborted(Error):
    """The call was given up because of something that happened at the same time; it may be repeated."""

    code = 10


class OutOfRange(Error, IndexError):
    """An index lies beyond the end."""

    code = 11


class Unimplemented(Error, NotImplementedError):
    """This version of the service does not support it."""

    code = 12


class Internal(Error):
    """Leat itself has a bug."""

    code = 13


class Unavailable(Error, ConnectionError):
    """No service answers at the address."""

    code = 14


class DataLoss(Error):
    """Stored data is damaged, or differs from what was indexed."""

    code = 15


class Unauthenticated(Error, PermissionError):
    """The token or the certificate is missing or wrong."""

    code = 16


_BY_CODE = {kind.code: kind for kind in Error.__subclasses__()}


def from_status(code: int, message: str) -> Error:
    """Returns the exception for a status; an unknown code gives `Error`."""
    return _BY_CODE.get(code, Error)(message)
