"""Modules that not every release of Debian has."""
import importlib
import unittest


class _Missing:
    def __init__(self, name):
        self._name = name

    def __getattr__(self, _):
        raise unittest.SkipTest(f"{self._name} is not installed")


def optional(name):
    """The module; where it is not installed, an object whose use skips the test."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return _Missing(name)
