#!/usr/bin/env python3
"""Checks that messages name options that exist: a name in backticks is a field, or a flag and a Python keyword of one name.

Usage: option_names.py ROOT. Commands show such a name as their flag. A flag that is neither field nor keyword is an
error, because programs cannot set it."""
import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
# Flags and keywords that are no field.
DIFFERENT = {"dry_run": "preview_images, preview_sparse", "plan": "plan_images", "task": "tasks"}
LITERAL = re.compile(r'"(?:[^"\\\n]|\\.)*"')
COMMENT = re.compile(r"//.*$", re.M)


def code(path):
    """C++ without comments."""
    return COMMENT.sub("", path.read_text())


def fields():
    """Members and functions that the public headers declare."""
    return {name for path in (ROOT / "lib/include/chunkhit").glob("*.h")
            for name in re.findall(r"\b([a-z]\w*)(?=\s*(?:=|;|\{|\())", code(path))}


def table_names():
    """Fields that the tables show."""
    return {name for path in (ROOT / "lib").rglob("*fields.h") for name in re.findall(r'Field\{\s*"([a-z_]+)"', path.read_text())}


def keywords():
    """Parameters of the Python package's functions, and keys that the binding takes from them."""
    names = {argument.arg for path in (ROOT / "lib/python/chunkhit").rglob("*.py")
             for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, (ast.FunctionDef, ast.Lambda))
             for argument in (*node.args.args, *node.args.kwonlyargs)}
    return names


def flags():
    """Flags of the commands, with underscores."""
    return {name.replace("-", "_") for path in (ROOT / "tools").glob("*.cpp")
            for name in re.findall(r'"(?:-\w,)?--([a-z][a-z-]*)', code(path))}


def named():
    """Names in backticks in messages: pairs of place and name."""
    for folder in ("lib", "tools"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".cpp", ".h"):
                continue
            for text in LITERAL.findall(code(path)):
                for name in re.findall(r"`([a-z][a-z_]*)`", text):
                    yield path.relative_to(ROOT), name


def wrong(pairs, known):
    """Sentences about names that no option has."""
    field_names, shared = known
    for path, name in sorted(set(pairs)):
        if name in field_names or (name in DIFFERENT and name in shared):
            continue
        yield f"{path}: `{name}` is no field, expected a field or one of DIFFERENT with a flag and a keyword"


def main():
    known, pairs = (fields() | table_names(), flags() & keywords()), list(named())
    planted = [("planted", "no_such_option"), ("planted", "as"), ("planted", "memory_bytes"), ("planted", "plan")]
    assert len(list(wrong(planted, known))) == 2, "a name that no option has was not found"
    found = list(wrong(pairs, known))
    found += [f"DIFFERENT: `{name}` is a field now; remove it" for name in sorted(DIFFERENT.keys() & known[0])]
    print("\n".join(found))
    print(f"{len(pairs)} names, {len(found)} wrong")
    sys.exit(1 if found or len(pairs) < 100 else 0)


main()
