"""The commands of a wheel that carries them: entry points that become the programs in chunkhit/bin. This module is none of the
package's, so that a command does not import NumPy."""
import os
import sys


def _become(name):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "chunkhit", "bin", name)
    os.execv(path, [path, *sys.argv[1:]])


def pack_bench():
    _become("pack-bench")


def pack_images():
    _become("pack-images")


def pack_info():
    _become("pack-info")


def pack_merge():
    _become("pack-merge")


def pack_run():
    _become("pack-run")


def pack_sparse():
    _become("pack-sparse")


def pack_verify():
    _become("pack-verify")
