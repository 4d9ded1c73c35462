"""Writes the stubs of the package's modules whose functions have **options: python3 python_stubs.py BINDING FOLDER MODULE.py...

Type checkers find there what the binding's tables of fields say of each keyword; the rest of a module is as in its source."""
import ast
import importlib.machinery
import importlib.util
import os
import sys

HEAD = """from typing import Any, Callable, Dict, List, Literal, Optional, Sequence, Tuple, Union
from . import _types as types
from ._paths import Path, Paths
"""
KEPT = ("property", "staticmethod", "classmethod", "contextlib.contextmanager")


def load(path):
    """The binding alone: the package's modules may need what is not installed where it is built."""
    loader = importlib.machinery.ExtensionFileLoader("_chunkhit", path)
    binding = importlib.util.module_from_spec(importlib.util.spec_from_loader("_chunkhit", loader))
    loader.exec_module(binding)
    return binding


class Stubs(ast.NodeTransformer):
    """The module without what its functions do."""

    def __init__(self, binding, constants):
        self.binding, self.constants = binding, constants
        self.call = None  # has_options(...) of the class that is read

    def options(self, node):
        return next((each for each in node.decorator_list if isinstance(each, ast.Call) and ast.unparse(each.func) == "has_options"), None)

    def visit_ClassDef(self, node):
        call, self.call = self.call, self.options(node)
        node.decorator_list = []
        fields = [ast.parse(f"{each.target.attr}: {ast.unparse(each.annotation)}").body[0]
                  for function in node.body if isinstance(function, ast.FunctionDef) and function.name == "__init__"
                  for each in ast.walk(function) if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Attribute)]
        self.generic_visit(node)
        node.body += fields
        self.call = call
        return node

    def visit_FunctionDef(self, node):
        call = self.options(node) or (self.call if node.name == "__init__" else None)
        node.decorator_list = [each for each in node.decorator_list
                               if ast.unparse(each) in KEPT or ast.unparse(each).endswith(".setter")]
        node.body = [ast.Expr(ast.Constant(...))]
        if call:
            self.add_keywords(node.args, call)
        return node

    def add_keywords(self, arguments, call):
        without = next((each.value for each in call.keywords if each.arg == "without"), None)
        own = {each.arg for each in arguments.args + arguments.kwonlyargs} | set(self.constants.get(without and without.id, ()))
        for name, annotation, default, _, _ in self.binding.fields_of(call.args[0].value):
            if name not in own:
                arguments.kwonlyargs.append(ast.arg(name, ast.parse(annotation, mode="eval").body))
                arguments.kw_defaults.append(ast.Constant(default))
        arguments.kwarg = None


def main(binding, folder, *modules):
    binding = load(binding)
    trees = {path: ast.parse(open(path, encoding="utf-8").read()) for path in modules}
    constants = {node.targets[0].id: ast.literal_eval(node.value) for tree in trees.values() for node in tree.body
                 if isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple) and node.targets[0].id.isupper()}
    for path, tree in trees.items():
        tree.body = [node for node in tree.body if not isinstance(node, ast.ImportFrom) or node.module != "__future__"]
        stub = HEAD + ast.unparse(ast.fix_missing_locations(Stubs(binding, constants).visit(tree))) + "\n"
        with open(os.path.join(folder, os.path.basename(path) + "i"), "w", encoding="utf-8") as file:
            file.write(stub)


if __name__ == "__main__":
    main(*sys.argv[1:])
