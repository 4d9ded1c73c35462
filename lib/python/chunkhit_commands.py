"""The commands of a wheel that carries them: entry points, pack_images for pack-images, that become the programs in chunkhit/bin.
This module is none of the package's, so that a command does not import NumPy."""
import os
import sys


def __getattr__(name):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "chunkhit", "bin", name.replace("_", "-"))
    if not name.startswith("pack_") or not os.path.exists(path):
        raise AttributeError(name)
    return lambda: os.execv(path, [path, *sys.argv[1:]])
