"""Paths, as they are given and as the system has them."""
import os
import reprlib
from typing import Any, Dict, List, Sequence, Union

from ._error import ArgumentError

Path = Union[str, os.PathLike[str]]
Paths = Union[Path, Sequence[Path]]


def path_list(paths: Paths, name: str = "paths") -> List[str]:
    """One path or several, as texts; `name` is the argument's, for messages."""
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    if not isinstance(paths, (list, tuple)) or not all(isinstance(path, (str, os.PathLike)) for path in paths):
        raise ArgumentError(f"{name}: expected a path or a list of paths, found {reprlib.repr(paths)}")
    return [os.fsdecode(path) for path in paths]


def native_paths(paths: Paths, name: str = "paths") -> List[bytes]:
    """The paths as the system has them, which need not be UTF-8; `name` is the argument's."""
    return [encoded(path, name) for path in path_list(paths, name)]


def encoded(path: Path, name: str) -> bytes:
    """The path's bytes; a text with a surrogate that stands for no byte has none."""
    try:
        return os.fsencode(path)
    except UnicodeEncodeError:
        raise ArgumentError(f"{name}: expected a path, found {path!r}") from None


def native_path(path: Path, name: str) -> bytes:
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentError(f"{name}: expected a path, found {reprlib.repr(path)}")
    return encoded(path, name)


def with_native_paths(options: Dict[str, Any], *names: str) -> Dict[str, Any]:
    """The options, after those of these names that are not None are as the system has paths."""
    for name in names:
        if options[name] is not None:
            options[name] = native_path(options[name], name)
    return options
