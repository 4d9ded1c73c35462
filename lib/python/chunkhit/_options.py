"""Options of classes and functions: their signatures, what help() says of each, and which one a misspelt keyword was meant
to be. Those that C++ has stand in its tables of fields; a docstring explains the others."""
from __future__ import annotations

import functools
import inspect
import json
import re
import textwrap
import typing
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Sequence, Tuple, TypeVar, cast

from . import _chunkhit
from . import _types as types
from ._error import ArgumentError, Error
from ._paths import Path

Function = TypeVar("Function", bound=Callable[..., Any])
Options = Dict[str, Any]

# What is in the place of an option of masks, which packs have or have not.
MASKS = "pair= of pack_images, whose masks every batch has,"

ENTRY = re.compile(r"(\w+(?:, \w+)*)(?: {2,}(\S.*))?")


class Row(NamedTuple):
    """A field of a table, as a keyword."""

    name: str
    annotation: str
    default: Any
    group: str
    text: str


def with_underscores(name: "re.Match[str]") -> str:
    return name[0].replace("-", "_")


@functools.lru_cache(maxsize=None)
def rows_of(table: str) -> List[Row]:
    """The fields of a table of C++, named as in Python in texts, too."""
    rows: List[Row] = [Row(*row) for row in _chunkhit.fields_of(table)]
    names = "|".join(row.name.replace("_", "-") for row in rows if "_" in row.name)
    return [row._replace(text=re.sub(rf"\b({names})\b", with_underscores, row.text)) for row in rows]


def with_defaults(table: str, options: Options) -> Options:
    """All options of a table: those that are given, and the defaults of the others."""
    return {row.name: row.default for row in rows_of(table)} | options


@functools.lru_cache(maxsize=None)
def annotation_of(text: str) -> Any:
    return eval(text, {**vars(typing), "types": types, "Path": Path})  # what the binding wrote


def hint_of(name: str, names: Sequence[str], elsewhere: Mapping[str, str]) -> str:
    """What follows the name of an option that there is not: what is in its place, or the nearest one; "" for neither."""
    if name in elsewhere:
        return f"; {elsewhere[name]} {'are' if ' and ' in elsewhere[name] else 'is'} in its place"
    return _chunkhit.did_you_mean(name, list(names))


def check_keys(location: str, keys: Mapping[str, Any], kind: type, elsewhere: Mapping[str, str]) -> None:
    """Raises Error "usage" for a key that the TypedDict has not, where something like it can be named."""
    names = list(typing.get_type_hints(kind))
    for key in keys:
        hint = "" if key in names else hint_of(str(key), names, elsewhere)
        if hint:
            raise Error(f"{location}.{key}: no such option{hint}", "usage")


def checks_keywords(function: Function, elsewhere: Mapping[str, str] = {}) -> Function:
    """The function, which names the keyword that was meant by one that it does not have. `elsewhere` says what is in the
    place of other libraries' keywords."""
    names = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def checked(*arguments: Any, **options: Any) -> Any:
        for name in options:
            if name not in names:
                hint = hint_of(name, names, elsewhere) or f"; help({function.__qualname__.split('.')[0]}) lists what there is"
                raise ArgumentError(f"{name}: no such option{hint}")
        return function(*arguments, **options)

    return cast(Function, checked)


def parts_of(docstring: str, names: Sequence[str]) -> Tuple[str, Dict[str, str], str]:
    """What comes before the options, the text of each, and what comes behind them: an option of `names` begins a line, and
    its text is on that line behind two spaces, and on the indented lines below it."""
    texts: Dict[str, str] = {}
    before: List[str] = []
    lines = inspect.cleandoc(docstring).splitlines()
    options: List[str] = []
    for index, line in enumerate(lines):
        entry = ENTRY.fullmatch(line)
        if entry and set(entry[1].split(", ")) <= set(names):
            options = entry[1].split(", ")
            texts.update(dict.fromkeys(options, entry[2] or ""))
        elif options and line.startswith(" "):
            texts.update(dict.fromkeys(options, f"{texts[options[0]]} {line.strip()}".strip()))
        elif options:
            return "\n".join(before), texts, "\n".join(lines[index:])
        else:
            before.append(line)
    return "\n".join(before), texts, ""


def entries_of(parameters: Sequence[inspect.Parameter], texts: Mapping[str, str]) -> str:
    """The options with their defaults and texts; neighbours with the same text are explained together."""
    entries: List[Tuple[str, str]] = []
    for each in (each for each in parameters if each.name in texts):
        shown = json.dumps(each.default) if isinstance(each.default, str) else repr(each.default)
        head = each.name if each.default is each.empty else f"{each.name}={shown}"
        if entries and entries[-1][1] == texts[each.name]:
            entries[-1] = (f"{entries[-1][0]}, {head}", texts[each.name])
        else:
            entries.append((head, texts[each.name]))
    return "\n".join(head + "\n" + textwrap.indent(textwrap.fill(text, 100, break_on_hyphens=False), "    ")
                     for head, text in entries)


def has_options(table: str, *others: Any, without: Sequence[str] = (),
                elsewhere: Mapping[str, str] = {}) -> Callable[[Function], Function]:
    """A function, or a class, whose **options are the fields of a table, but those of `without` and those that it has as
    keywords of its own. Its docstring explains each option with its default; what it does not explain itself is taken
    from those of `others` and from the table. An error names the option that a misspelt one was meant to be."""
    def document(kind: Function) -> Function:
        function = getattr(kind, "__init__") if isinstance(kind, type) else kind
        signature = inspect.signature(function)
        own = {name: each for name, each in signature.parameters.items() if each.kind is not each.VAR_KEYWORD}
        rows = [row for row in rows_of(table) if row.name not in {*own, *without}]
        parameters = [*own.values(), *(inspect.Parameter(row.name, inspect.Parameter.KEYWORD_ONLY, default=row.default,
                                                         annotation=annotation_of(row.annotation)) for row in rows)]
        before, own_texts, behind = parts_of(kind.__doc__ or "", [each.name for each in parameters])
        texts = {row.name: row.text for row in rows_of(table)}
        for other in others:
            texts.update(getattr(other, "_own_texts"))
            behind = behind or getattr(other, "_behind_options")
        texts.update(own_texts)
        if kind.__doc__:  # none with python3 -OO
            kind.__doc__ = "\n\n".join(filter(None, (before.strip(), entries_of(parameters, texts), behind.strip())))
        setattr(function, "__signature__", signature.replace(parameters=parameters))
        checked = checks_keywords(function, elsewhere)
        found = kind if isinstance(kind, type) else checked
        setattr(found, "_own_texts", own_texts)
        setattr(found, "_behind_options", behind)
        if found is kind:
            setattr(kind, "__init__", checked)
        return cast(Function, found)

    return document


def given(options: Options) -> Options:
    """The options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def yes_or_no(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ArgumentError(f"{name}: expected True or False, found {value!r}")
    return value
