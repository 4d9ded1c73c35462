"""Packing from Python: runs the commands, whose flags are keywords here."""
from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from typing import Any, Dict, Iterable, List, Optional

from . import _chunkhit
from ._error import Error
from ._flags import as_keywords, flags
from ._paths import Path, Paths, native_paths, path_list
from ._progress import ProgressLine, is_shown

# The commands' exit codes.
CODES = {1: "too_many_rejects", 2: "usage", 65: "bad_data", 73: "cannot_write", 75: "try_again"}

# Where the commands are, seen from the package: of a wheel, a build tree, an installation below a prefix.
PLACES = ("bin", "../../../tools", "../../../../bin")


def find_command(name: str) -> str:
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.path.normpath(os.path.join(here, place)) for place in PLACES]
    found = shutil.which(name, path=os.pathsep.join(places)) or shutil.which(name)
    if not found:
        raise Error(f"{name}: is neither beside the package nor on PATH", "usage")
    return found


def watch(lines: Iterable[str], line: ProgressLine) -> str:
    """Shows the events of --progress json until the end; returns what else the command said."""
    said = []
    for text in lines:
        try:
            line.show(json.loads(text))
        except ValueError:
            said.append(text)
    return "".join(said)


def run(command: List[str], progress: Optional[bool]) -> str:
    """What the command printed. Ctrl-C stops it after what is in hand: the same call resumes there."""
    line = ProgressLine(is_shown() if progress is None else progress)
    with tempfile.TemporaryFile("w+") as printed:
        # Of a session of its own, so that the terminal's Ctrl-C does not reach it a second time, which would not wait.
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.PIPE, text=True,
                              errors="replace", start_new_session=True) as process:
            try:
                said = watch(process.stderr or (), line)
            except BaseException:
                process.send_signal(signal.SIGINT)
                process.communicate()
                raise
            finally:
                line.end()
        check(process.returncode, os.path.basename(command[0]), said)
        printed.seek(0)
        return printed.read()


def check(code: int, name: str, said: str) -> None:
    """Raises Error for an exit code, with what the command said."""
    if code == 0:
        return
    lines = [text for text in said.splitlines() if text.strip() and not text.startswith("Try '")]
    message = "\n".join(lines).removeprefix(f"{name}: ")
    if code not in CODES:
        message = f"{name} was stopped by signal {-code if code < 0 else code - 128}; the same call resumes"
    raise Error(as_keywords(message), CODES.get(code, "try_again"))


def packs_in(path: Path) -> List[str]:
    """The folders of the packs in the folder of a split, sorted; none where the path is something else."""
    folder = path_list(path)[0]
    if not os.path.isdir(folder) or os.path.exists(os.path.join(folder, "manifest.json")):
        return []
    return sorted(name for name in os.listdir(folder) if os.path.exists(os.path.join(folder, name, "manifest.json")))


def pack_info(path: Path, *, images: str = "images", labels: Optional[str] = None) -> Dict[str, Any]:
    """What a pack (its folder or manifest.json) or a part holds, or an HDF5 file that no pack-* wrote, whose datasets
    `images` and `labels` name (as in ImageLoader); as `pack-info --json` prints it. `info` of loaders and datasets is the same.

    all       path, single_part, external (no pack-* wrote it), container, filter, parts (each file), problems (of parts that
              are missing or have another size than recorded), raw_bytes, stored_bytes,
              spec (the options it was made with), tool, pack_id, input_xxh3
    images  samples, sample (height, width, channels, layout, dtype), labels (kind, columns), classes, mean and std of
              each channel in 0..255, rows and rejected of the input, warned (samples packed with warnings),
              chunk_samples, chunk_bytes; hdf5: default_cache and advised_cache, what h5py's rdcc_* are best set to
    ratings   rows, columns, matrices (each with nnz and longest_row), values (type, scale), split_name, label_columns,
              chunk_rows, account (what became of each rating of the input)

    Of the folder of a split a dict of these by the packs' names, as the command prints it. Raises Error "bad_data" when
    it is none, is unfinished, or its manifest is damaged.
    """
    packs = packs_in(path)
    if packs:
        return {name: pack_info(os.path.join(os.fspath(path), name), images=images, labels=labels) for name in packs}
    return json.loads(_chunkhit.pack_info_json(native_paths([path])[0], images, labels))


def verify_pack(path: Path, *, quick: bool = False, threads: Optional[int] = None, images: str = "images",
                labels: Optional[str] = None) -> Dict[str, Any]:
    """Checks a pack, a part, or an external HDF5 file from end to end, as the command pack-verify does.

    quick           manifest, sizes and structure only; no sample is read
    threads         None: all CPUs that the process may use
    images, labels  datasets of an HDF5 file that no pack-* wrote, as in ImageLoader

    Returns parts, chunks, samples, bytes, external (there are no hashes to compare with), problems (what is wrong, each as a
    text: a pack is whole where there are none), and damaged (files that, once removed, the call that made the pack
    writes again); of the folder of a split a dict of these by the packs' names. Raises Error only where nothing could be
    checked.
    """
    command = find_command("pack-verify")
    arguments = [f"--images={images}", *([] if labels is None else [f"--labels={labels}"]), "--json", *(["--quick"] if quick else []),
                 *([] if threads is None else [f"--threads={threads}"]), "--", os.fspath(path)]
    done = subprocess.run([command, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, errors="replace", check=False)
    if not done.stdout:
        check(done.returncode, "pack-verify", done.stderr)
    return json.loads(done.stdout)


def pack(name: str, inputs: List[str], output: Path, progress: Optional[bool], options: Dict[str, Any]) -> Dict[str, Any]:
    folder, command = os.fspath(output), find_command(name)
    arguments = [f"--output={folder}", "--progress=json", *flags(options, command)]
    # CLI11 takes ./-name for a file, and -name for flags.
    arguments += [f"./{each}" if each.startswith("-") else each for each in inputs]
    text = run([command, *arguments], progress)
    if options.get("dry_run"):
        print(text, end="")
        return {}
    return pack_info(folder)


def pack_images(root: Optional[Path], output: Path, *, progress: Optional[bool] = None, **options: Any) -> Dict[str, Any]:
    """Packs a folder of images, once, as the command pack-images does; `pack-images --help` lists the options, which
    are keywords here: resize=(96, 128), crop=64, labels="labels.csv", split={"train": 0.9, "val": 0.1},
    label_column=["x", "y"], pad_color=(255, 0, 0), force=True, split_folders=["train", "val"], classes="train". None is "not given": seed=None is 0, as without it.

    root      folder of the images; None: that of labels
    output    folder of the pack, or of the packs of split
    progress  whether a line shows it; None: in a terminal and in a notebook

    Returns what `pack_info` says of the pack, by their names where there are several; after dry_run=True, which prints
    what would be packed, an empty dict. Raises Error with the command's own message and code. The same call
    resumes an interrupted run.
    """
    return pack("pack-images", [] if root is None else [os.fspath(root)], output, progress, options)


def pack_sparse(inputs: Optional[Paths], output: Path, *, progress: Optional[bool] = None, **options: Any) -> Dict[str, Any]:
    """Packs user-item ratings, once, as the command pack-sparse does; `pack-sparse --help` lists the options, which are
    keywords here: user="userId", value="rating", preset="vae-cf", split="users", test=10000. None is "not given";
    value=None, time=None and codec=None, which could also be the word "none", are refused: value="none" makes every
    rating 1.

    inputs    one file or several, all of one kind; None where a split is given as files: train_file="u1.base",
              test_file="u1.test", each one file or several
    output    folder of the pack, or of the packs of split

    Returns and raises what `pack_images` does.
    """
    if hasattr(inputs, "tocsr") or hasattr(inputs, "__array__"):
        raise TypeError(f"inputs: expected files, found a {type(inputs).__name__}; scipy.sparse.save_npz(file, matrix) "
                        "makes one of it")
    return pack("pack-sparse", [] if inputs is None else path_list(inputs, "inputs"), output, progress, options)
