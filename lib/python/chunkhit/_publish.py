"""Outputs that appear as a whole or not at all: written aside, then renamed."""
from __future__ import annotations

import contextlib
import csv
import itertools
import os
import re
import shutil
import signal
from typing import Any, BinaryIO, Callable, Iterable, Iterator, List, TextIO

from ._error import Error

MARK = ".pack-export"  # in folders that were exported, so that no other is ever replaced
cleanups: List[Callable[[], None]] = []  # what a signal calls, the last first
writes = itertools.count()  # names of files aside differ between threads


@contextlib.contextmanager
def cleaned_up(clean_up: Callable[[], None]) -> Iterator[None]:
    """Calls `clean_up` at the end of the block, also where a signal ends a command within it."""
    cleanups.append(clean_up)
    try:
        yield
    finally:
        try:
            clean_up()
        finally:
            cleanups.remove(clean_up)


def end_at_once(number: int, frame: Any) -> None:
    """Cleans up and ends the process. Raised instead, an exception could be lost in a callback, or keep a lock that threads
    of a pool wait for."""
    for clean_up in reversed(cleanups):
        with contextlib.suppress(Exception):  # such as a line of progress that was being printed
            clean_up()
    os._exit(128 + number)


def end_on_signals() -> None:
    """Lets signals end a command, and nothing of its outputs stay; what `nohup` ignores stays ignored."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, end_at_once)


class LineFeeds:
    """A file for csv.writer: lines end with a line feed. With this line end of its own it quotes no carriage return."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, row: str) -> int:
        return self._file.write(row[:-2] + "\n" if row.endswith("\r\n") else row)


def is_formula(cell: object) -> bool:
    """Whether a spreadsheet would compute a cell: a text that begins as a formula and is no number."""
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return False
    try:
        float(cell)
    except ValueError:
        return True
    return False


class Table:
    """A CSV. `plain` puts ' before what a spreadsheet would compute."""

    def __init__(self, file: TextIO, plain: bool) -> None:
        self._rows = csv.writer(LineFeeds(file))
        self._plain = plain

    def add(self, row: Iterable[Any]) -> None:
        self._rows.writerow([f"'{cell}" if is_formula(cell) else cell for cell in row] if self._plain else row)


def check_free(path: str, force: bool, is_folder: bool) -> None:
    """Raises Error "cannot_write" for an output that exists, unless `force` may replace it."""
    if not os.path.lexists(path):
        return
    if not force:
        raise Error(f"{path}: exists; `force` replaces it", "cannot_write")
    if os.path.isdir(path) != is_folder:
        raise Error(f"{path}: is {'a file' if is_folder else 'a folder'}, which is not replaced", "cannot_write")
    if is_folder and os.listdir(path) and not os.path.exists(os.path.join(path, MARK)):
        raise Error(f"{path}: holds files of something else than an export, which are not replaced", "cannot_write")


@contextlib.contextmanager
def writing(path: str) -> Iterator[None]:
    """Says what could not be written, as Error "cannot_write"."""
    try:
        yield
    except OSError as error:
        raise Error(f"{path}: cannot be written: {error.strerror or error}", "cannot_write") from error


def process_start(pid: int) -> str:
    """When a process started, in clock ticks; empty where there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def aside_of(path: str) -> str:
    """A name that an output is written under. Removes what killed processes of this machine left of it; machines differ by
    their names."""
    folder, name = os.path.split(path)
    begin = f".{os.fsdecode(os.fsencode(name)[:100])}.{os.uname().nodename[:64]}-"
    entries = []
    with contextlib.suppress(OSError):  # a folder that may be written need not be listed
        entries = os.listdir(folder)
    for entry in entries:
        found = re.fullmatch(re.escape(begin) + r"(\d+)-(\d+)-\d+\.partial", entry)
        if found and process_start(int(found[1])) != found[2]:
            remove(os.path.join(folder, entry))
    return os.path.join(folder, f"{begin}{os.getpid()}-{process_start(os.getpid())}-{next(writes)}.partial")


def remove(path: str) -> None:
    """Removes a file or a folder, if it is there."""
    with contextlib.suppress(OSError):
        os.unlink(path)
    shutil.rmtree(path, ignore_errors=True)


def flush_folder(path: str) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:  # it may be written, and not read
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def new_file(path: str, force: bool) -> Iterator[BinaryIO]:
    """A file to be written, which is at `path` once the block has ended, and nowhere where it was left by an error."""
    path = os.path.abspath(path)
    check_free(path, force, False)
    aside = aside_of(path)
    with cleaned_up(lambda: remove(aside)), writing(path):
        with open(aside, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        check_free(path, force, False)  # another process may have made it meanwhile
        os.replace(aside, path)
        flush_folder(os.path.dirname(path))


@contextlib.contextmanager
def new_folder(path: str, force: bool) -> Iterator[str]:
    """The path of a folder to be filled, which is at `path` once the block has ended, and nowhere after an error."""
    path = os.path.abspath(path)
    check_free(path, force, True)
    aside = aside_of(path)
    replaced = aside + ".old"

    def clean_up() -> None:
        if os.path.lexists(replaced) and not os.path.lexists(path):
            os.rename(replaced, path)
        remove(aside)
        remove(replaced)

    with cleaned_up(clean_up), writing(path):
        os.mkdir(aside)
        yield aside
        with open(os.path.join(aside, MARK), "wb"):
            pass
        os.sync()
        check_free(path, force, True)  # another process may have made it meanwhile
        if os.path.lexists(path):
            os.rename(path, replaced)
        os.rename(aside, path)
        flush_folder(os.path.dirname(path))
