"""The one exception of the package, what arguments are checked with, and counts in messages."""
from __future__ import annotations

import operator
import re
import sys
from typing import TYPE_CHECKING, Any, NoReturn, Optional, Sequence

if TYPE_CHECKING:
    import argparse

FIELD = re.compile("`([a-z_]+)`")
TRY_HELP = "Try '{} --help'."
WORKER = re.compile(r"Caught \w+ (in DataLoader worker process \d+)\.\nOriginal Traceback")


def counted(number: int, thing: str = "") -> str:
    """'1 image', '1,234 images', '2 batches'."""
    if not thing:
        return f"{number:,}"
    return f"{number:,} {thing}{'' if number == 1 else 'es' if thing.endswith(('s', 'ch')) else 's'}"


def first_line_first(message: str) -> str:
    """A message that torch's DataLoader put a worker's traceback around: what it says comes first, then the traceback."""
    begin = WORKER.match(message)
    own = message.rpartition("\nchunkhit._error.")[2].partition(": ")[2].strip()
    return f"{own} ({begin[1]})\n{message.rstrip()}" if begin and own else message


def flag_text(message: str) -> str:
    """The message with flags in the place of fields in backticks: `keep_columns` is --keep-columns."""
    return FIELD.sub(lambda field: "--" + field[1].replace("_", "-"), message)


def parse_flags(flags: argparse.ArgumentParser, arguments: Optional[Sequence[str]]) -> Any:
    """The flags of a command; what it does not take ends it with the line that all commands say, and exit code 2."""
    def error(message: str) -> NoReturn:
        flags.exit(2, f"{flags.prog}: {message}\n{TRY_HELP.format(flags.prog)}\n")

    setattr(flags, "error", error)
    return flags.parse_args(arguments)


def print_error(command: str, message: str, code: str) -> None:
    """Writes what ends a command to standard error."""
    print(f"{command}: {message}" + (f"\n{TRY_HELP.format(command)}" if code == "usage" else ""), file=sys.stderr)


class Error(RuntimeError):
    """Says what, where, found and expected.

    `code` names what went wrong: "usage" (an option that makes no sense), "bad_data" (input that cannot be used, or a
    damaged pack), "too_many_rejects", "cannot_write", or "try_again" (something that may pass). An error over a keyword
    that is no option, or over a value that is no path or function, is a TypeError, too.

    An error that is made with a code is of that code's subclass: torch's DataLoader makes a worker's exception again
    from its class and a text alone.
    """

    code: str = "usage"
    exit_code = 2  # of the commands

    def __new__(cls, message: str = "", code: Optional[str] = None) -> "Error":
        kinds = {kind.code: kind for kind in Error.__subclasses__()} if cls is Error else {}
        return super().__new__(kinds.get(code or "", cls))

    def __init__(self, message: str = "", code: Optional[str] = None) -> None:
        """A field in backticks is a keyword in Python, a flag for the commands: `keep_columns` is --keep-columns."""
        message = first_line_first(message)
        super().__init__(FIELD.sub(r"\1", message))
        self._flag_text = flag_text(message)
        if code is not None:
            self.code = code

    def __reduce__(self) -> Any:
        return type(self), (str(self), self.code)


class UsageError(Error):
    code = "usage"


class ArgumentError(UsageError, TypeError):
    """An argument of another type than expected, or a keyword that there is not: a TypeError, too."""


class BadDataError(Error):
    code = "bad_data"
    exit_code = 65


class TooManyRejectsError(Error):
    code = "too_many_rejects"
    exit_code = 1


class CannotWriteError(Error):
    code = "cannot_write"
    exit_code = 73


class TryAgainError(Error):
    code = "try_again"
    exit_code = 75


def whole_number(name: str, value: Any) -> int:
    """The value as an int that C++ can hold; raises Error "usage" for what is none."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if isinstance(value, bool) or not 0 <= number < 1 << 64:
        raise Error(f"{name}: expected a whole number from 0 and below 2**64, found {value!r}", "usage")
    return number
