"""Keywords of pack_images and pack_sparse as the commands' flags."""
from __future__ import annotations

import os
import re
import subprocess
from typing import Any, Dict, List, Tuple

import numpy as np

from ._error import Error

# Flags without a value.
SWITCHES = ("accept_warnings", "binarize", "dry_run", "filter_once", "follow_symlinks", "force", "no_transpose", "transpose", "trust_inputs")
# What None could mean two things of: "not given", as everywhere, and the flag's word "none".
HAVE_NONE = ("codec", "time", "value")
NO_OPTION = "no option of this name"
SIZES = ("crop", "fit", "resize")
REPEATED = ("include", "label_column", "split_folders", "test_file", "train_file", "validation_file")


def refuse(name: str, expected: str, value: Any) -> Error:
    return Error(f"{name}: expected {expected}, found {value!r}", "usage")


def words_of(command: str, name: str) -> str:
    """What --help says that a flag takes."""
    helped = subprocess.run([command, "--help"], stdout=subprocess.PIPE, text=True, check=False).stdout
    line = re.search(rf"^ *(?:-\w,)?--{name.replace('_', '-')} (\S+ +.*)$", helped, re.MULTILINE)
    return re.sub(" +", " ", line[1]) if line else NO_OPTION


def texts_of(name: str, value: Any, command: str) -> List[str]:
    """(96, 128) is 96x128 for sizes and 96,128 for colors, {"train": 0.9, "val": 0.1} is train=0.9,val=0.1."""
    if isinstance(value, dict) and name == "split":
        return [",".join(f"{part}={share}" for part, share in value.items())]
    if isinstance(value, (list, tuple)):
        parts = [str(each) for each in value]
        if name in REPEATED:
            return parts
        if name in SIZES and len(parts) == 2:
            return ["x".join(parts)]
        if name == "pad_color" and len(parts) == 3:
            return [",".join(parts)]
    if isinstance(value, (dict, list, tuple, set, np.ndarray)):
        raise refuse(name, NO_OPTION if words_of(command, name) == NO_OPTION else "one value", value)
    return [os.fspath(value) if isinstance(value, os.PathLike) else str(value)]


def switch(name: str, value: Any) -> str:
    """The flag of a switch that was given, which overrides presets and detection."""
    if not isinstance(value, (bool, np.bool_)):
        raise refuse(name, "True or False", value)
    if name == "transpose" and not value:
        return "--no-transpose"
    return "--" + name.replace("_", "-") + ("" if value else "=false")


def flags(options: Dict[str, Any], command: str) -> List[str]:
    """label_column=["a", "b"] is --label-column=a --label-column=b, force=True is --force; what is None is not given."""
    arguments = []
    for name, value in options.items():
        if name in ("help", "version"):
            raise Error(f"{name}: no such option; `{os.path.basename(command)} --help` lists them", "usage")
        if value is None:
            if name in HAVE_NONE:
                what = "have its default" if name == "codec" else "detect the column"
                raise Error(f'{name}=None is ambiguous: leave it out to {what}, or give "none"', "usage")
        elif name in SWITCHES:
            arguments.append(switch(name, value))
        elif name == "header" and isinstance(value, bool):
            arguments.append("--header=yes" if value else "--header=no")
        elif isinstance(value, (bool, np.bool_)):
            raise refuse(name, words_of(command, name), value)
        else:
            arguments += [f"--{name.replace('_', '-')}={text}" for text in texts_of(name, value, command)]
    return arguments


def as_keywords(message: str) -> str:
    """What a command says, with keywords in the place of flags: --force is force=True."""
    def keyword(flag: "re.Match[str]") -> str:
        name = flag[1].replace("-", "_")
        if name in ("help", "version"):
            return flag[0]
        return name + "=True" if name in SWITCHES and flag[0][-1:] != "=" else name
    return re.sub(r"(?<![^\s(])--([a-z]+(?:-[a-z]+)*)(?=[\s,;:=)]|$)", keyword, message)
