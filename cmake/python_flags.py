#!/usr/bin/env python3
"""Prints the flags of a command of the Python package as JSON, for tools/table_pages.cpp. Its module is not imported, because
what it imports need not be there while building: the function `parser` runs alone, with the module's constants.
Usage: python_flags.py MODULE.py VERSION"""
import argparse
import ast
import json
import sys


def parser_of(path, version):
    with open(path, encoding="utf-8") as file:
        module = ast.parse(file.read(), path)
    names = {"argparse": argparse, "__version__": version}
    for statement in module.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, (ast.Constant, ast.Tuple)):
            names[statement.targets[0].id] = ast.literal_eval(statement.value)
    functions = [each for each in module.body if isinstance(each, ast.FunctionDef) and each.name == "parser"]
    if len(functions) != 1:
        sys.exit(f"{path}: found {len(functions)} functions named parser, expected 1")
    exec(compile(ast.Module(functions, []), path, "exec"), names)
    return names["parser"]()


def flag(action):
    about = action.help % {"default": action.default}
    return {"names": action.option_strings or [action.dest], "shape": "" if action.nargs == 0 else action.metavar or "WORD",
            "about": about[:1].upper() + about[1:], "required": action.required, "repeats": action.nargs in ("+", "*"),
            "words": list(action.choices or [])}


def main():
    sys.stdout.reconfigure(encoding="utf-8")
    command = parser_of(sys.argv[1], sys.argv[2])
    json.dump({"name": command.prog, "about": command.description, "flags": [flag(each) for each in command._actions]},
              sys.stdout, indent=1)


main()
