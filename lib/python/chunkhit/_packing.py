"""Packing, and what packs hold."""
import contextlib
import csv
import json
import logging
import os
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from . import _chunkhit
from . import _types as types
from ._error import FIELD, ArgumentError, Error, counted, whole_number
from ._options import checks_keywords, given, has_options, yes_or_no
from ._paths import Path, Paths, native_path, native_paths
from ._publish import cleaned_up

Info = Dict[str, Any]
Progress = Union[bool, Callable[[Dict[str, Any]], None], None]

LOGGER = logging.getLogger("chunkhit.pack")

# What other libraries call options of pack_images.
OF_IMAGES = {"size": "resize= (with crop=), or fit= for whole images,", "image_size": "resize= (with crop=), or fit= for whole images,",
             "num_workers": "threads=", "workers": "threads=", "masks": "pair=", "transform": "resize=, crop= or fit=, or a loader's transform=,"}


class ProgressLine:
    """Writes the progress over the line before."""

    def __init__(self) -> None:
        self._width = 0

    def __call__(self, event: Dict[str, Any]) -> None:
        unit = "rows" if event["rows_total"] or not event.get("bytes_done") else "bytes"
        done, total = event[f"{unit}_done"], event[f"{unit}_total"]
        text = f"{event['phase']}: {done:,} of {total:,} {unit}" if total else f"{event['phase']}: {done:,} {unit}"
        left = f", about {event['seconds_left']:.0f} s left" if "seconds_left" in event else ""
        self._write(text + (f", {event['rejected']:,} rejected" if event["rejected"] else "") + left)

    def end(self) -> None:
        if self._width:
            self._write("")
            print(end="\r", file=sys.stderr, flush=True)

    def _write(self, text: str) -> None:
        print(f"\r{text:{self._width}}", end="", file=sys.stderr, flush=True)
        self._width = len(text)


def packs_in(path: Path) -> List[str]:
    """The packs in a folder of packs and splits, relative to it, sorted; none where the path is something else."""
    folder = native_path(path, "path")
    return [os.fsdecode(os.path.relpath(pack, folder)) for pack in _chunkhit.packs_of(folder) if pack != folder]


@checks_keywords
def pack_info(path: Path, *, images: str = "images", labels: Optional[str] = None) -> Info:
    """What a pack (its folder or manifest.json) or a part holds, or an HDF5 file that no pack-* wrote, whose datasets
    `images` and `labels` name (as in ImageLoader); as `pack-info --json` prints it. `info` of loaders and datasets is the same.

    The keys are those of chunkhit.ImageInfo, or of ratings chunkhit.RatingInfo, which help() explains: `info["classes"]` is a list
    of dicts with id, name and samples.

    Of a folder of packs and splits a dict of these by the packs' folders, as the command prints it. Raises Error "bad_data"
    when it is none, is unfinished, or its manifest is damaged.
    """
    packs = packs_in(path)
    if packs:
        return {name: pack_info(os.path.join(os.fspath(path), name), images=images, labels=labels) for name in packs}
    info: Info = json.loads(_chunkhit.pack_info_json(native_path(path, "path"), images, labels))
    return info


@checks_keywords
def verify_pack(path: Path, *, quick: bool = False, threads: Optional[int] = None, images: str = "images",
                labels: Optional[str] = None) -> Info:
    """Checks a pack, a part, or an external HDF5 file from end to end.

    quick           manifest, sizes and structure only; no sample is read
    threads         None: all CPUs that the process may use
    images, labels  datasets of an HDF5 file that no pack-* wrote, as in ImageLoader

    Returns parts, chunks, samples, bytes, external (there are no hashes to compare with), problems (what is wrong, each as a
    text: a pack is whole where there are none), and remove_to_rebuild (files that, once removed, the call that made the pack
    writes again); of a folder of packs and splits a dict of these by the packs' folders, also of packs that a split lacks.
    Raises Error only where nothing could be checked.
    """
    folder = native_path(path, "path")
    found = {}
    for name in packs_in(path):
        try:
            found[name] = verify_pack(os.path.join(os.fspath(path), name), quick=quick, threads=threads, images=images, labels=labels)
        except Error as error:
            if error.code != "bad_data":
                raise
            found[name] = {"parts": 0, "chunks": 0, "samples": 0, "bytes": 0, "external": False, "problems": [str(error)],
                           "notices": [], "remove_to_rebuild": []}
    for pack, report in _chunkhit.missing_packs(folder):
        found[os.fsdecode(os.path.relpath(pack, folder))] = json.loads(report)
    return found or dict(json.loads(_chunkhit.verify_pack_json(folder, quick, threads or 0, images, labels)))


def native(value: Any) -> Any:
    """Paths as the system has them, which need not be UTF-8; all else as it is."""
    if isinstance(value, os.PathLike):
        return os.fsencode(value)
    if isinstance(value, (list, tuple)):
        return [native(each) for each in value]
    return value


def progress_shower(progress: Progress) -> Optional[Callable[[Info], None]]:
    """The function that shows the progress, or None."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise ArgumentError(f"progress: expected True, False, None or a function, found {progress!r}")
    if callable(progress):
        return progress
    return ProgressLine() if progress is True or (progress is None and is_shown()) else None


def with_progress(progress: Progress, run: Callable[[Any], Any]) -> Any:
    """Calls `run` with the function that shows its progress, or None."""
    show = progress_shower(progress)
    with cleaned_up(show.end) if isinstance(show, ProgressLine) else contextlib.nullcontext():
        return run(show)


def pack(run: Callable[..., Dict[str, Any]], output: Path, progress: Progress, dry_run: bool,
         options: Dict[str, Any]) -> Dict[str, Any]:
    options = pack_options(output, options)
    found = with_progress(progress, lambda on_progress: run(options, on_progress, yes_or_no("dry_run", dry_run)))
    return dict(found) if dry_run else finished_info(output, found)


class PackResult(Dict[str, Any]):
    """What `pack_info` says of what was packed: a dict, which shows itself in a line a pack."""

    def __repr__(self) -> str:
        infos = [self] if isinstance(self.get("path"), str) else list(self.values())
        return "\n".join(f"<{pack_text(info)}>" for info in infos)


def pack_text(info: Info) -> str:
    from .report._page import bytes_text

    if "matrices" in info:
        held = [f"{entry['nnz']:,} {'ratings' if entry['name'] == 'X' else 'held out'}" for entry in info["matrices"]]
        what = [counted(info["rows"], "user"), counted(info["columns"], "item"), *held]
    else:
        shape = "of their own sizes" if info.get("own_sizes") else "of {width}x{height}".format(**info["sample"])
        classes = sum(entry["id"] != -1 for entry in info["classes"])
        columns = info["labels"]["columns"] if info["labels"]["kind"] == "numbers" else []
        what = [f"{counted(sum(part['samples'] for part in info['parts']), 'image')} {shape}",
                counted(len(columns), "label column") if columns else counted(classes, "class"),
                f"{info.get('rejected', 0):,} rejected"]
    stored = bytes_text(sum(part["bytes"] for part in info["parts"]))
    return f"{info['path']}: {', '.join(what)}, {stored} in {counted(len(info['parts']), 'part')}"


def finished_info(output: Path, warned: Sequence[str] = ()) -> Info:
    """What `pack_info` says of what was packed. Warns of what packing found, and where samples were rejected."""
    if not os.path.isdir(output) or not _chunkhit.packs_of(native_path(output, "output")):  # of ratings that the rules leave nothing
        warn(warned)
        return PackResult({})
    info = pack_info(output)
    texts = list(warned)
    for each in [info] if isinstance(info.get("path"), str) else info.values():
        if each.get("rejected"):
            texts.append(rejects_text(each))
    warn(texts)
    return PackResult(info)


def warn(texts: Sequence[str]) -> None:
    """Logs what packing found, with the caller's line: notes as INFO."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals["__name__"].split(".")[0] == "chunkhit":
        frame, level = frame.f_back, level + 1
    for text in texts:
        is_note = text.startswith("note: ")
        LOGGER.log(logging.INFO if is_note else logging.WARNING, FIELD.sub(r"\1", text[6:] if is_note else text), stacklevel=level)


def rejects_text(info: Info) -> str:
    path = os.path.join(info["path"], "rejects.csv")
    were, are = ("was", "is") if info["rejected"] == 1 else ("were", "are")
    text = f"{info['path']}: {info['rejected']:,} of {counted(info['rows'], 'sample')} {were} rejected and {are} not in the pack"
    try:
        with open(path, newline="", encoding="utf-8", errors="replace") as file:
            rows = csv.reader(file)
            next(rows)
            first = next(rows)
    except (OSError, StopIteration):  # a merged pack has other names
        return text
    return f"{text}; the first is {first[1]}: {first[-1]}; {path} lists them"


def pack_options(output: Path, options: Dict[str, Any]) -> Dict[str, Any]:
    split = options.get("split")
    kinds = (int, float, str) if options.get("split_column") else (int, float)  # texts are values of the column
    if split is not None and not (isinstance(split, dict) and all(
            isinstance(name, str) and isinstance(share, kinds) for name, share in split.items())):
        raise ArgumentError(f'split: expected shares by name like {{"train": 0.9, "val": 0.1}}, or values of split_column, found {split!r}')
    options = {name: native(value) for name, value in options.items()}
    options.update(output=native_path(output, "output"), command_line=" ".join(sys.argv))
    return options


def is_shown() -> bool:
    """Returns whether progress is visible: standard error is a terminal, or this is a notebook's kernel."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


@has_options("pack_images", elsewhere=OF_IMAGES)
def pack_images(root: Optional[Paths], output: Path, *, progress: Progress = None, dry_run: bool = False,
                sheet: Optional[Path] = None, plan: Optional[int] = None, **options: Any) -> Info:
    """Packs a folder of images, once; the same call resumes an interrupted run.

    root      folder of the images, or of tars of them; a tar or an IDX file, or a list of tars; None: the folder of `labels`
    output    folder of the pack, or of the packs of a split
    progress  True: show a line on stderr; False: nothing; a function is called with a dict (phase, pack, rows_done,
              rows_total, rejected); None: a line in a terminal and in a notebook
    dry_run   write nothing; return the packs that would be written: {folder: {samples, raw_bytes, parts, chunks}}
    sheet     with dry_run, also draw 16 images before and after into this PNG file
    plan      write a plan of so many tasks (at most one a part) for `run_plan` instead; return `plan_status`, or of
              finished packs `pack_info`

    The others are those of the command pack-images; None means the default. A size is (width, height) or one side, a color
    (red, green, blue) or a name, a list one text or several; a split {"train": 0.9, "val": 0.1}.

    Returns what `pack_info` says of the pack, by their names if there are several. Logs warnings (`chunkhit.pack`) of what
    the command prints as notes, of whole numbers that were taken for class ids because no label_type says what they are, and of
    rejected samples: how many, the first with its reason, and where the list is. Raises Error: "usage" for options
    that make no sense, "bad_data", "too_many_rejects", "cannot_write", or "try_again". Ctrl-C stops after the samples
    in hand and raises KeyboardInterrupt; finished parts are kept.
    """
    options = given({**options, "sheet": sheet})
    if root is not None:
        options["inputs"] = native_paths(root, "root")
    if plan is None:
        return pack(_chunkhit.pack_images, output, progress, dry_run, options)
    if dry_run:
        raise Error("plan, dry_run: exclude each other; a dry run writes nothing", "usage")
    tasks, options = whole_number("plan", plan), pack_options(output, options)
    found = with_progress(progress, lambda on_progress: _chunkhit.plan_images(options, on_progress, tasks))
    warn(found)
    return unfinished(output) or finished_info(output)


def plan_status(folder: Path) -> Dict[str, Any]:
    """How far the packs of a plan are, as `pack-info --json` prints it: path, rows, tasks, parts, parts_done,
    missing_tasks (those with missing parts), rejected, max_rejected, begun (files that are being written or left over), finished
    (False). Of a folder of finished packs, which have no plan: path, rows, parts, parts_done, missing_tasks (none), rejected,
    finished (True). Raises Error "bad_data" where the folder has neither."""
    status = unfinished(folder)
    if status:
        return status
    info = pack_info(folder)
    infos = [info] if isinstance(info.get("path"), str) else list(info.values())
    parts = sum(len(each["parts"]) for each in infos)
    return {"path": os.fsdecode(native_path(folder, "folder")), "rows": sum(each.get("rows", 0) for each in infos), "parts": parts,
            "parts_done": parts, "missing_tasks": [], "rejected": sum(each.get("rejected", 0) for each in infos), "finished": True}


def unfinished(folder: Path) -> Optional[Dict[str, Any]]:
    """The status of a plan; None where the folder has none, as when its packs are finished."""
    status = _chunkhit.plan_status_json(native_path(folder, "folder"))
    return None if status is None else json.loads(status)


@checks_keywords
def run_plan(folder: Path, *, task: Union[int, Sequence[int], None] = None,
             root: Optional[Path] = None, pair: Optional[types.Pairs] = None, threads: Optional[int] = None,
             memory_bytes: Optional[types.Bytes] = None, progress: Progress = None) -> Info:
    """Packs what `pack_images` planned (plan=…). Any number of calls on any number of machines may run
    at once, also of the same task.

    folder       output of the plan
    task         number of a task, or several: packs their missing parts; None: all that is missing, and finishes
    root, pair   folders of the inputs and of their fields on this machine; None: the plan's
    threads, memory_bytes, progress
                 as in pack_images

    Returns `plan_status`, or what `pack_info` says of the finished packs. Raises what pack_images does; after "try_again"
    the same call may succeed, here or on another machine.
    """
    options = {"folder": native_path(folder, "folder"), "threads": threads,
               "memory_bytes": memory_bytes, "root": None if root is None else native_path(root, "root"),
               "pair": pair,
               "task": None if task is None else task_numbers(task)}
    with_progress(progress, lambda on_progress: _chunkhit.run_plan(options, on_progress))
    return unfinished(folder) or finished_info(folder)


def task_numbers(task: Union[int, Sequence[int]]) -> List[int]:
    tasks = [whole_number("task", each) for each in (task if isinstance(task, (list, tuple, range)) else [task])]
    if not tasks:
        raise Error("task: expected at least one number, found none; None runs all", "usage")
    return tasks


@has_options("pack_sparse")
def pack_sparse(inputs: Optional[Paths], output: Path, *, progress: Progress = None, dry_run: bool = False,
                preset: Optional[types.Preset] = None, train_file: Optional[Paths] = None,
                validation_file: Optional[Paths] = None, test_file: Optional[Paths] = None, **options: Any) -> Info:
    """Packs user-item ratings, once.

    inputs    one file or several, all of one format, or folders of packs; None if a split is given as files
    output    folder of the pack, or of the packs of a split
    progress, dry_run
              as in pack_images; the function's dict has also bytes_done and bytes_total of the input, and dry_run
              gives {folder: {rows, columns}}
    preset    "vae-cf": the Mult-VAE paper's ratings above 3.5 as 1, users of 5 ratings, 10,000 users held out each
    train_file, validation_file, test_file
              files of a split that is given, as "u1.base" and "u1.test": one file or several of each

    The others are those of the command pack-sparse; None means the default. A count is an int, a share a float; a column a
    name or a number from 1. Ids of tables stand in the column named as in the ratings, else in one with a usual name
    ("movieId"), else in the first one. Loaders give the other columns as item_column(name) and user_column(name), and kept
    times in CSR batches as batch.times.

    Returns and raises what `pack_images` does. Logs a warning (`chunkhit.pack`) where on_error="skip" left lines out,
    and as INFO what the command prints as notes: the columns taken, say.
    """
    options = given({**options, "preset": preset, "train_file": train_file, "validation_file": validation_file,
                     "test_file": test_file})
    return pack(_chunkhit.pack_sparse, output, progress, dry_run, rating_options(inputs, options))


@has_options("pack_sparse")
def count_items(inputs: Paths, output: Path, *, progress: Progress = None, preset: Optional[types.Preset] = None,
                **options: Any) -> Dict[str, Any]:
    """Counts items, before parts of the inputs are packed one by one: each with reuse_ids=`output`, and merged.

    inputs    all files, as in pack_sparse; or the lists that it wrote of parts, which are added up
    output    the file to write: the items.csv that one pack of all would have
    progress, preset
              as in pack_sparse

    The others are those of `pack_sparse`. They are checked; only those that decide the items have an effect. Returns items (how many there are) and values, which the
    parts get as values=: None of lists. Raises what `pack_sparse` does.
    """
    options = pack_options(output, rating_options(inputs, given({**options, "preset": preset})))
    found: Dict[str, Any] = with_progress(progress, lambda on_progress: _chunkhit.count_items(options, on_progress))
    warn(found.pop("warnings"))
    return found


def rating_options(inputs: Optional[Paths], options: Dict[str, Any]) -> Dict[str, Any]:
    """The options with the inputs; raises ArgumentError for what is in memory."""
    if hasattr(inputs, "tocsr") or hasattr(inputs, "__array__"):
        raise ArgumentError(f"inputs: expected files, found a {type(inputs).__name__}; RatingWriter packs what is in "
                        "memory")
    for name in ("item_columns", "user_columns"):
        if isinstance(options.get(name), dict) or hasattr(options.get(name), "to_csv"):
            raise ArgumentError(f"{name}: expected the path of a CSV, found a {type(options[name]).__name__}; RatingWriter takes "
                                "tables in memory")
    if inputs is not None:
        options["inputs"] = native_paths(inputs, "inputs")
    return options


@checks_keywords
def merge_packs(packs: Paths, output: Path) -> Info:
    """Merges finished packs into one without copying: their parts are hard-linked (copied where that cannot be).

    packs     one folder or several, in this order; classes are joined by name, the first pack's ids stay. Ratings: all
              have the same items, and no user is in two of them
    output    folder of the merged pack; named among `packs`, the others are appended to it, also where it is not there yet

    The same call resumes, and does nothing for what is merged already, or for one pack that is the output. Logs warnings
    (`chunkhit.pack`) of what `pack-merge` notes: classes that are added, say. Returns what `pack_info` says of the pack, with
    `sources`: what was merged. Raises Error "bad_data" for packs that do not fit, "cannot_write" or "try_again".
    """
    warn(_chunkhit.merge_packs(native_paths(packs, "packs"), native_path(output, "output"), " ".join(sys.argv)))
    return pack_info(output)
