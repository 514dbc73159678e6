"""Errors of pyverbs.

Source: pyverbs, pyverbs_error.py (names and texts).
Leaves out: nothing.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from errno import EINVAL, EOPNOTSUPP
from typing import TYPE_CHECKING

from weftwork.base.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PyverbsError", "PyverbsRDMAError", "PyverbsUserError", "not_supported", "refused_as"]

_NO_CODE = -1


class PyverbsError(Exception):
    """Any error of pyverbs.

    Parameters
    ----------
    msg : what happened
    error_code : number of errno, or -1 for none
    """

    def __init__(self, msg: object, error_code: int = _NO_CODE) -> None:
        text = str(msg)
        if error_code != _NO_CODE:
            text = f"{text}. Errno: {error_code}, {os.strerror(error_code)}"
        super().__init__(text)


class PyverbsRDMAError(PyverbsError):
    """A refusal of the device.

    Parameters
    ----------
    msg, error_code : see `PyverbsError`
    """

    def __init__(self, msg: object, error_code: int = _NO_CODE) -> None:
        super().__init__(msg, error_code)
        self._error_code = error_code

    @property
    def error_code(self) -> int:
        """Number of errno, or -1."""
        return self._error_code


class PyverbsUserError(PyverbsError):
    """A mistake of the program, found before the device was asked."""

    def __init__(self, msg: object) -> None:
        super().__init__(msg)


def not_supported(what: str) -> PyverbsRDMAError:
    """The error of a device that lacks something."""
    return PyverbsRDMAError(f"{what} is not supported by a software NIC", EOPNOTSUPP)


@contextmanager
def refused_as(what: str, error_code: int = EINVAL) -> Iterator[None]:
    """Translate a refusal of the NIC.

    Parameters
    ----------
    what : words that pyverbs uses for this failure
    error_code : number of errno
    """
    try:
        yield
    except UsageError as error:
        raise PyverbsRDMAError(f"{what} ({error})", error_code) from error
