"""Packing, and what packs hold."""
import csv
import json
import os
import sys
import warnings
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from . import _chunkhit
from . import _types as types
from ._error import FIELD, ArgumentError, Error, whole_number
from ._options import checks_keywords
from ._paths import Path, Paths, native_path, native_paths

Info = Dict[str, Any]
Progress = Union[bool, Callable[[Dict[str, Any]], None], None]


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
    """The folders of the packs in the folder of a split, sorted; none where the path is something else."""
    folder = os.fsdecode(native_path(path, "path"))
    if not os.path.isdir(folder) or os.path.exists(os.path.join(folder, "manifest.json")):
        return []
    return sorted(name for name in os.listdir(folder) if os.path.exists(os.path.join(folder, name, "manifest.json")))


@checks_keywords
def pack_info(path: Path, *, images: str = "images", labels: Optional[str] = None) -> Info:
    """What a pack (its folder or manifest.json) or a part holds, or an HDF5 file that no pack-* wrote, whose datasets
    `images` and `labels` name (as in ImageLoader); as `pack-info --json` prints it. `info` of loaders and datasets is the same.

    The keys are those of chunkhit.ImageInfo, or of ratings chunkhit.RatingInfo, which help() explains: `info["classes"]` is a list
    of dicts with id, name and samples.

    Of the folder of a split a dict of these by the packs' names, as the command prints it. Raises Error "bad_data" when
    it is none, is unfinished, or its manifest is damaged.
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
    writes again); of the folder of a split a dict of these by the packs' names. Raises Error only where nothing could be
    checked.
    """
    packs = packs_in(path)
    if packs:
        return {name: verify_pack(os.path.join(os.fspath(path), name), quick=quick, threads=threads, images=images,
                                  labels=labels) for name in packs}
    found: Info = json.loads(_chunkhit.verify_pack_json(native_path(path, "path"), quick, threads or 0, images, labels))
    return found


def native(value: Any) -> Any:
    """Paths as the system has them, which need not be UTF-8; all else as it is."""
    if isinstance(value, os.PathLike):
        return os.fsencode(value)
    if isinstance(value, (list, tuple)):
        return [native(each) for each in value]
    return value


def given(arguments: Dict[str, Any]) -> Info:
    """The options of packing among a function's locals() that are not None."""
    others = ("self", "__class__", "root", "inputs", "output", "progress", "dry_run", "plan")
    return {name: value for name, value in arguments.items() if value is not None and name not in others}


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
    try:
        return run(show)
    finally:
        if isinstance(show, ProgressLine):
            show.end()


def pack(run: Callable[..., Dict[str, Any]], output: Path, progress: Progress, dry_run: bool,
         options: Dict[str, Any]) -> Dict[str, Any]:
    options = pack_options(output, options)
    found = with_progress(progress, lambda on_progress: run(options, on_progress, bool(dry_run)))
    return dict(found) if dry_run else finished_info(output, found)


def finished_info(output: Path, warned: Sequence[str] = ()) -> Info:
    """What `pack_info` says of what was packed. Warns of what packing found, and where samples were rejected."""
    info = pack_info(output)
    texts = list(warned)
    for each in [info] if isinstance(info.get("path"), str) else info.values():
        if each.get("rejected"):
            texts.append(rejects_text(each))
    warn(texts)
    return info


def warn(texts: Sequence[str]) -> None:
    """Warns at the caller's line."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals["__name__"].split(".")[0] == "chunkhit":
        frame, level = frame.f_back, level + 1
    for text in texts:
        warnings.warn(FIELD.sub(r"\1", text), UserWarning, stacklevel=level)


def rejects_text(info: Info) -> str:
    path = os.path.join(info["path"], "rejects.csv")
    text = f"{info['path']}: {info['rejected']:,} of {info['rows']:,} samples were rejected and are not in the pack"
    try:
        with open(path, newline="", encoding="utf-8", errors="replace") as file:
            first = next(csv.DictReader(file))
    except (OSError, StopIteration):  # a merged pack has other names
        return text
    return f"{text}; the first is {first['file']}: {first['reason']}; {path} lists them"


def pack_options(output: Path, options: Dict[str, Any]) -> Dict[str, Any]:
    options = {name: native(value) for name, value in options.items()}
    options.update(output=native_path(output, "output"), command_line=" ".join(sys.argv))
    return options


def is_shown() -> bool:
    """Returns whether progress is visible: standard error is a terminal, or this is a notebook's kernel."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


@checks_keywords
def pack_images(root: Optional[Paths], output: Path, *, progress: Progress = None, dry_run: bool = False,
                sheet: Optional[Path] = None, plan: Optional[int] = None, labels: Optional[Path] = None, file_column: Optional[str] = None,
                label_column: Optional[types.Texts] = None, label_type: Optional[types.LabelType] = None,
                keep_columns: Optional[types.Texts] = None, classes: Optional[Path] = None,
                include: Optional[types.Texts] = None,
                split_folders: Optional[types.Texts] = None, follow_symlinks: Optional[bool] = None,
                exif: Optional[types.Exif] = None, decode: Optional[types.Decode] = None, check: Optional[types.Check] = None,
                accept_warnings: Optional[bool] = None, max_seconds_per_image: Optional[int] = None,
                max_decode_bytes: Optional[int] = None,
                resize: Optional[types.Side] = None, fit: Optional[types.Side] = None,
                crop: Optional[types.Side] = None, pad_color: Union[str, Sequence[int], None] = None,
                resample: Optional[types.Resample] = None, channels: Optional[types.Channels] = None,
                background: Union[str, Sequence[int], None] = None,
                sizes: Optional[types.Sizes] = None, max_side: Optional[int] = None, short_side: Optional[int] = None,
                store: Optional[types.Store] = None, quality: Optional[int] = None,
                jpeg_tile: Optional[int] = None, part_samples: Optional[int] = None,
                container: Optional[types.Container] = None, layout: Optional[types.Layout] = None, codec: Optional[str] = None,
                chunk_samples: Optional[int] = None, chunk_bytes: Optional[int] = None, part_bytes: Optional[int] = None,
                order: Optional[types.Order] = None, seed: Optional[int] = None, split: Optional[Dict[str, float]] = None,
                on_error: Optional[types.OnError] = None, max_errors: Optional[types.Amount] = None,
                trust_inputs: Optional[bool] = None,
                threads: Optional[int] = None, memory_bytes: Optional[int] = None, force: Optional[bool] = None) -> Info:
    """Packs a folder of images, once; the same call resumes an interrupted run.

    root      folder of the images, or of tars of them; a tar or an IDX file, or a list of tars; None: the folder of `labels`
    output    folder of the pack, or of the packs of a split
    progress  True: show a line on stderr; False: nothing; a function is called with a dict (phase, pack, rows_done,
              rows_total, rejected); None: a line in a terminal and in a notebook
    dry_run   write nothing; return the packs that would be written: {folder: {samples, raw_bytes, parts, chunks}};
              with sheet="FILE.png" also draw 16 images before and after into that file
    plan      write a plan of so many tasks (at most one a part) for `run_plan` instead; return `plan_status`, or of
              finished packs `pack_info`

    The options are those of the command pack-images (`--chunk-samples` is chunk_samples); None means the default:
    input     labels, file_column, label_column (a name or a list), label_type (of one column: "classes" or "numbers"),
              keep_columns (a list; of tars, keys of the .json), classes,
              include, split_folders (lists), follow_symlinks, exif, decode, check, accept_warnings, max_seconds_per_image,
              max_decode_bytes
    samples   resize: (width, height) or the short side, fit, crop: (width, height) or one side,
              pad_color: (red, green, blue), resample, channels, background: (red, green, blue)
    own sizes sizes ("own": each image its own size, by default in shards), max_side, short_side, store,
              quality, jpeg_tile, part_samples
    output    container, layout, codec, chunk_samples, chunk_bytes, part_bytes, order, seed,
              split: {"train": 0.9, "val": 0.1}
    run       on_error, max_errors (a count, or a share as a float), trust_inputs, threads, memory_bytes,
              force

    Returns what `pack_info` says of the pack, by their names if there are several. Warns (UserWarning) of what the command
    prints as notes, of whole numbers that were taken for class ids because no label_type says what they are, and of
    rejected samples: how many, the first with its reason, and where the list is. Raises Error: "usage" for options
    that make no sense, "bad_data", "too_many_rejects", "cannot_write", or "try_again". Ctrl-C stops after the samples
    in hand and raises KeyboardInterrupt; finished parts are kept.
    """
    options = given(locals())
    check_split(split)
    if root is not None:
        options["inputs"] = native_paths(root, "root")
    if plan is None:
        return pack(_chunkhit.pack_images, output, progress, dry_run, options)
    if dry_run:
        raise Error("plan, dry_run: exclude each other; a dry run writes nothing", "usage")
    tasks, options = whole_number("plan", plan), pack_options(output, options)
    found = with_progress(progress, lambda on_progress: _chunkhit.plan_images(options, on_progress, tasks))
    warn(found)
    return plan_status(output) or finished_info(output)


def check_split(split: Any) -> None:
    if split is not None and not (isinstance(split, dict) and all(
            isinstance(name, str) and isinstance(share, (int, float)) for name, share in split.items())):
        raise ArgumentError(f'split: expected shares by name like {{"train": 0.9, "val": 0.1}}, found {split!r}')


def plan_status(folder: Path) -> Optional[Dict[str, Any]]:
    """How far the packs of a plan are, as `pack-info --json` prints it: path, rows, tasks, parts, parts_done,
    missing_tasks (those with missing parts), rejected, max_rejected, begun (files that are being written or left over), finished
    (False). None where the folder has no plan, as when its packs are finished."""
    status = _chunkhit.plan_status_json(native_path(folder, "folder"))
    return None if status is None else json.loads(status)


@checks_keywords
def run_plan(folder: Path, *, task: Union[int, Sequence[int], None] = None,
             root: Optional[Path] = None, threads: Optional[int] = None,
             memory_bytes: Optional[int] = None, progress: Progress = None) -> Info:
    """Packs what `pack_images` planned (plan=…). Any number of calls on any number of machines may run
    at once, also of the same task.

    folder       output of the plan
    task         number of a task, or several: packs their missing parts; None: all that is missing, and finishes
    root         folder of the inputs on this machine; None: the plan's
    threads, memory_bytes, progress
                 as in pack_images

    Returns `plan_status`, or what `pack_info` says of the finished packs. Raises what pack_images does; after "try_again"
    the same call may succeed, here or on another machine.
    """
    options = {"folder": native_path(folder, "folder"), "threads": threads,
               "memory_bytes": memory_bytes, "root": None if root is None else native_path(root, "root"),
               "task": None if task is None else task_numbers(task)}
    with_progress(progress, lambda on_progress: _chunkhit.run_plan(options, on_progress))
    return plan_status(folder) or finished_info(folder)


def task_numbers(task: Union[int, Sequence[int]]) -> List[int]:
    tasks = [whole_number("task", each) for each in (task if isinstance(task, (list, tuple, range)) else [task])]
    if not tasks:
        raise Error("task: expected at least one number, found none; None runs all", "usage")
    return tasks


@checks_keywords
def pack_sparse(inputs: Optional[Paths], output: Path, *, progress: Progress = None, dry_run: bool = False,
                format: Optional[types.RatingFormat] = None, delimiter: Optional[str] = None,
                header: Optional[bool] = None, user: Union[str, int, None] = None, item: Union[str, int, None] = None,
                value: Union[str, int, None] = None, time: Union[str, int, None] = None, quote: Optional[types.Quote] = None,
                comment: Optional[str] = None, transpose: Optional[bool] = None,
                layer: Optional[str] = None,
                shared_rows: Optional[types.SharedRows] = None, encoding: Optional[types.Encoding] = None,
                preset: Optional[types.Preset] = None,
                duplicates: Optional[types.Duplicates] = None, zeros: Optional[types.Zeros] = None,
                above: Optional[float] = None, binarize: Optional[bool] = None,
                min_user: Optional[int] = None, min_item: Optional[int] = None, 
                values: Optional[str] = None, split_by: Optional[types.SplitBy] = None,
                validation: Optional[types.Amount] = None, test: Optional[types.Amount] = None,
                fold_in: Optional[float] = None, split_order: Optional[types.SplitOrder] = None,
                hide_validation: Optional[bool] = None, before: Union[int, str, None] = None,
                validation_users: Optional[Path] = None, test_users: Optional[Path] = None,
                train_file: Optional[Paths] = None, validation_file: Optional[Paths] = None, test_file: Optional[Paths] = None,
                id_order: Optional[types.IdOrder] = None, reuse_ids: Optional[Path] = None, order: Optional[types.Order] = None,
                seed: Optional[int] = None, container: Optional[types.Container] = None, codec: Optional[str] = None,
                chunk_rows: Optional[int] = None, part_bytes: Optional[int] = None,
                item_columns: Optional[Path] = None, user_columns: Optional[Path] = None,
                table_header: Optional[bool] = None, table_quote: Optional[types.Quote] = None, keep_times: Optional[bool] = None,
                on_error: Optional[types.OnError] = None, max_errors: Optional[types.Amount] = None,
                threads: Optional[int] = None, memory_bytes: Optional[int] = None, force: Optional[bool] = None) -> Info:
    """Packs user-item ratings, once.

    inputs    one file or several, all of one format, or folders of packs; None if a split is given as files:
              train_file="u1.base", test_file="u1.test", each one file or several
    output    folder of the pack, or of the packs of a split
    progress, dry_run
              as in pack_images; the function's dict has also bytes_done and bytes_total of the input, and dry_run
              gives {folder: {rows, columns}}

    The options are those of the command pack-sparse; None means the default:
    input     format, delimiter, header (bool), user, item, value, time (names or numbers of columns; "none"), quote,
              comment, transpose (bool), layer, shared_rows (of matrices), encoding (also of tables)
    ratings   preset="vae-cf", duplicates, zeros, above, binarize, min_user, min_item, values
              (stored type, as "u8:0.5")
    split     split_by ("users-by-id": parts packed alone agree), validation, test (a count, or a share as a float), fold_in, split_order, hide_validation
              (X of test lacks the ratings of validation), before (a time as the input has it), validation_users,
              test_users, train_file, validation_file, test_file
    columns   item_columns, user_columns: CSVs with a row for each item or user, whose ids are in the column named as in
              the ratings, else in one with a usual name ("movieId"), else in the first one; loaders give the others as
              item_column(name) and user_column(name). table_header=False: no header; table_quote="none": quotes are letters
    times     keep_times: keep the time of each rating, which loaders give in CSR batches as batch.times
    output    id_order, reuse_ids, order, seed, container, codec, chunk_rows, part_bytes
    run       on_error, max_errors, threads, memory_bytes, force

    Returns and raises what `pack_images` does. Warns (UserWarning) where on_error="skip" left lines out.
    """
    options = given(locals())
    if hasattr(inputs, "tocsr") or hasattr(inputs, "__array__"):
        raise ArgumentError(f"inputs: expected files, found a {type(inputs).__name__}; RatingWriter packs what is in "
                        "memory")
    for name in ("item_columns", "user_columns"):
        if isinstance(options.get(name), dict) or hasattr(options.get(name), "to_csv"):
            raise ArgumentError(f"{name}: expected the path of a CSV, found a {type(options[name]).__name__}; RatingWriter takes "
                                "tables in memory")
    if inputs is not None:
        options["inputs"] = native_paths(inputs, "inputs")
    for name in ("user", "item", "value", "time"):
        if isinstance(options.get(name), int) and not isinstance(options[name], bool):
            options[name] = str(options[name])
    return pack(_chunkhit.pack_sparse, output, progress, dry_run, options)


@checks_keywords
def merge_packs(packs: Paths, output: Path) -> Info:
    """Merges finished packs into one without copying: their parts are hard-linked (copied where that cannot be).

    packs     one folder or several, in this order; classes are joined by name, the first pack's ids stay. Ratings: all
              have the same items, and no user is in two of them
    output    folder of the merged pack; named among `packs`, the others are appended to it

    The same call resumes, and does nothing for what is merged already, or for one pack that is the output. Warns (UserWarning)
    of what `pack-merge` notes: classes that are added, say. Returns what `pack_info` says of the pack, with
    `sources`: what was merged. Raises Error "bad_data" for packs that do not fit, "cannot_write" or "try_again".
    """
    warn(_chunkhit.merge_packs(native_paths(packs, "packs"), native_path(output, "output"), " ".join(sys.argv)))
    return pack_info(output)
