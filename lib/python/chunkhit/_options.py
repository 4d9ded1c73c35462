"""Options of classes and functions: what help() says of each, and which one a misspelt keyword was meant to be."""
from __future__ import annotations

import difflib
import functools
import inspect
import json
import re
import textwrap
from typing import Any, Callable, Dict, List, Mapping, Tuple, TypeVar, cast

from ._error import ArgumentError

Function = TypeVar("Function", bound=Callable[..., Any])
Kind = TypeVar("Kind", bound=type)
Texts = Dict[Tuple[str, ...], str]  # of options that are explained together

ENTRY = re.compile(r"(\w+(?:, \w+)*)(?: {2,}(\S.*))?")


def checks_keywords(function: Function, elsewhere: Mapping[str, str] = {}) -> Function:
    """The function, which names the keyword that was meant by one that it does not have. `elsewhere` says what is in the
    place of other libraries' keywords."""
    names = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def checked(*arguments: Any, **options: Any) -> Any:
        for name in options:
            if name not in names:
                near = difflib.get_close_matches(name.lower(), names, 1)
                hint = f"; {elsewhere[name]} is in its place" if name in elsewhere else (
                    f'; did you mean "{near[0]}"?' if near else f"; help({function.__qualname__.split('.')[0]}) lists what there is")
                raise ArgumentError(f"{name}: no such option{hint}")
        return function(*arguments, **options)

    return cast(Function, checked)


def parts_of(docstring: str, names: List[str]) -> Tuple[str, Texts, str]:
    """What comes before the options, the text of each, and what comes behind them: an option of `names` begins a line, and
    its text is on that line behind two spaces, and on the indented lines below it."""
    texts: Texts = {}
    before: List[str] = []
    lines = inspect.cleandoc(docstring).splitlines()
    options: Tuple[str, ...] = ()
    for index, line in enumerate(lines):
        entry = ENTRY.fullmatch(line)
        if entry and set(entry[1].split(", ")) <= set(names):
            options = tuple(entry[1].split(", "))
            texts[options] = entry[2] or ""
        elif options and line.startswith(" "):
            texts[options] = f"{texts[options]} {line.strip()}".strip()
        elif options:
            return "\n".join(before), texts, "\n".join(lines[index:])
        else:
            before.append(line)
    return "\n".join(before), texts, ""


def entry_of(options: Tuple[str, ...], text: str, defaults: Mapping[str, Any]) -> str:
    shown = {name: json.dumps(value) if isinstance(value, str) else repr(value) for name, value in defaults.items()}
    head = ", ".join(f"{name}={shown[name]}" if name in shown else name for name in options)
    return head + "\n" + textwrap.indent(textwrap.fill(text, 100, break_on_hyphens=False), "    ")


def has_options(*others: type, elsewhere: Mapping[str, str] = {}) -> Callable[[Kind], Kind]:
    """A class whose docstring explains each option with its default, in the order of its signature; what it does not
    explain itself, and what comes behind the options, is taken from the docstrings of `others`. An error
    names the option that a misspelt one was meant to be."""
    def document(kind: Kind) -> Kind:
        parameters = inspect.signature(kind).parameters
        defaults = {name: each.default for name, each in parameters.items() if each.default is not each.empty}
        before, own, behind = parts_of(kind.__doc__ or "", list(parameters))
        texts: Texts = dict(own)
        for other in others:
            theirs, behind = getattr(other, "_option_texts"), behind or getattr(other, "_behind_options")
            known = {name for options in texts for name in options}
            texts.update({options: text for options, text in theirs.items()
                          if known.isdisjoint(options) and set(options) <= set(parameters)})
        first = {options[0]: options for options in texts}
        entries = [entry_of(first[name], texts[first[name]], defaults) for name in parameters if name in first]
        if kind.__doc__:  # none with python3 -OO
            kind.__doc__ = "\n\n".join(filter(None, (before.strip(), "\n".join(entries), behind.strip())))
        setattr(kind, "_option_texts", texts)
        setattr(kind, "_behind_options", behind)
        setattr(kind, "__init__", checks_keywords(getattr(kind, "__init__"), elsewhere))
        return kind

    return document
