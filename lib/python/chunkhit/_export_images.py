"""Packs of images as files that other tools read: a tar of WebDataset, class folders, or arrays."""
from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import io
import json
import os
import re
import shlex
import struct
import tarfile
from typing import Any, Callable, Deque, Dict, Generator, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from ._datasets import ImageDataset
from ._error import Error
from ._export_arrays import ArrayArchive
from ._publish import Table, new_file, new_folder

RUN_BYTES = 32 << 20  # pixels that are read at a time
MAX_NAME_BYTES = 200
LIST = "labels.csv"  # in an exported folder
FOLDERS = {"mask": "masks"}  # of fields, and their arrays; others have the field's name
UNSAFE = re.compile(r'[\x00-\x1f\x7f/\\%:*?"<>|]')
EXIF_ORIENTATION = 0x112


class Export(NamedTuple):
    """What is exported, and how."""

    dataset: ImageDataset
    info: Dict[str, Any]  # as pack_info gives it
    samples: NDArray[Any]  # their numbers, in the order of the output
    threads: int
    done: Callable[[int], None]  # is called with the number of samples that were written
    plain: bool = False  # tables have ' before what spreadsheets would compute


class EncodedImage(NamedTuple):
    suffix: str
    content: bytes
    fields: Dict[str, bytes]  # PNG of the masks and views beside it, by name


def safe_name(text: str) -> str:
    """A text as the name of a file: what names may not have, or other systems not, is %XX."""
    name = UNSAFE.sub(lambda found: f"%{ord(found.group()):02X}", text)
    if not name or name[0] in ".~" or name == LIST:
        name = f"%{ord(name[0]):02X}{name[1:]}" if name else "%"
    return name.encode()[:MAX_NAME_BYTES].decode("utf-8", "ignore")


class Names:
    """Gives each name once: "a", and then "a-2"."""

    def __init__(self) -> None:
        self._uses: Dict[str, int] = {}

    def unused(self, name: str) -> str:
        count = self._uses.get(name, 0) + 1
        self._uses[name] = count
        return name if count == 1 else self.unused(f"{name}-{count}")


def pillow() -> Any:
    try:
        from PIL import Image  # type: ignore
    except ImportError:
        raise Error("images are written by Pillow, which is not installed: apt-get install python3-pil", "usage") from None
    return Image


def png(pixels: NDArray[Any]) -> bytes:
    """(height, width, channels), or (height, width) of a mask, as PNG."""
    channels = pixels.shape[2] if pixels.ndim == 3 else 1
    if channels not in (1, 2, 3, 4):
        raise Error(f"images of {channels} channels, expected 1 to 4", "bad_data")
    file = io.BytesIO()
    pillow().fromarray(np.ascontiguousarray(pixels.reshape(pixels.shape[:2]) if channels == 1 else pixels)).save(file, "PNG")
    return file.getvalue()


def turned_jpeg(jpeg: bytes, orientation: int) -> Optional[bytes]:
    """A JPEG whose EXIF says this orientation, with the same coefficients; None where it says another one."""
    try:
        exif = pillow().open(io.BytesIO(jpeg)).getexif()
    except OSError:  # Pillow reads it not
        return None
    found = exif.get(EXIF_ORIENTATION, 1)
    if found == orientation:
        return jpeg
    if len(exif) > 0:
        return None
    exif[EXIF_ORIENTATION] = orientation
    segment: bytes = exif.tobytes()
    return bytes(jpeg[:2]) + b"\xff\xe1" + struct.pack(">H", len(segment) + 2) + segment + jpeg[2:]


def encode_own_size(dataset: ImageDataset, sample: int) -> Tuple[str, bytes]:
    """The suffix and the content of its file."""
    stored = dataset.stored_jpeg(sample)
    jpeg = turned_jpeg(*stored) if stored else None
    return ("png", png(dataset[sample][0])) if jpeg is None else ("jpg", jpeg)


def fields_of(export: Export) -> Dict[str, str]:
    """Roles of what the samples have beside the image, by name."""
    return dict(export.info.get("fields", {}))


def read_field(export: Export, name: str, samples: NDArray[Any]) -> Any:
    """uint8 (n, height, width, channels) of "image" and views, (n, height, width) of masks; a list where each has its own
    size."""
    pixels: Any = export.dataset[samples][0] if name == "image" else export.dataset.field(name, samples)
    has_channels = fields_of(export).get(name) != "mask"
    return pixels.transpose(0, 2, 3, 1) if has_channels and export.info["sample"]["layout"] == "nchw" else pixels


def run_length(info: Dict[str, Any]) -> int:
    """Images of one shape that are read at a time: a chunk, or as many as fit RUN_BYTES."""
    sample = info["sample"]
    fitting = RUN_BYTES // max(1, sample["height"] * sample["width"] * sample["channels"])
    return int(max(1, min(fitting, info.get("chunk_samples") or 64)))


def runs_of(samples: NDArray[Any], length: int) -> Iterator[NDArray[Any]]:
    return (samples[first : first + length] for first in range(0, len(samples), length))


def encoded_images(export: Export) -> Generator[Tuple[int, EncodedImage], None, None]:
    """(sample, image) of all samples in order. Threads read and encode; at a time a run for each and one more."""
    is_own = bool(export.info.get("own_sizes"))

    def encode(run: NDArray[Any]) -> List[EncodedImage]:
        images = [encode_own_size(export.dataset, int(sample)) for sample in run] if is_own else \
            [("png", png(image)) for image in read_field(export, "image", run)]
        fields = {name: [png(pixels) for pixels in read_field(export, name, run)] for name in fields_of(export)}
        return [EncodedImage(*image, {name: encoded[at] for name, encoded in fields.items()}) for at, image in enumerate(images)]

    pool = concurrent.futures.ThreadPoolExecutor(export.threads)
    pending: Deque[Any] = collections.deque()
    try:
        for run in runs_of(export.samples, 1 if is_own else run_length(export.info)):
            pending.append((run, pool.submit(encode, run)))
            if len(pending) > export.threads:
                done, images = pending.popleft()
                yield from zip(done.tolist(), images.result())
        for done, images in pending:
            yield from zip(done.tolist(), images.result())
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class Fields:
    """What a pack has of its samples beside pixels, by their numbers: labels, classes, keys and kept columns."""

    def __init__(self, export: Export) -> None:
        info = export.info
        self.labels = export.dataset.labels()
        self.are_numbers = self.labels.ndim == 2
        self.label_columns: List[str] = list((info.get("labels") or {}).get("columns") or ["label"])
        records = info.get("classes") or []
        if all(each["id"] < 0 and not each.get("name") for each in records):  # images without labels
            records = []
        self.are_labelled = self.are_numbers or bool(records)
        self.names: Dict[int, str] = {each["id"]: each.get("name") or str(each["id"]) for each in records}
        self.has_names = not self.are_numbers and any("name" in each for each in records)
        self._dataset = export.dataset
        self.columns = {each["name"]: export.dataset.column(each["name"]) for each in info.get("columns") or []}
        names = Names()  # what a column has as name gets another one: "key-2"
        for name in [*self.label_columns, *self.columns]:
            names.unused(name)
        self.file_name, self.key_name, self.class_name = map(names.unused, ("file", "key", "class"))

    def key(self, sample: int) -> str:
        """The sample's file; empty where the pack names none."""
        return self._dataset.keys([sample])[0]

    def class_of(self, sample: int) -> Optional[str]:
        """None for a sample without a class."""
        label = int(self.labels[sample])
        return self.names.get(label, None if label < 0 else str(label))

    def are_ids_sorted(self, samples: NDArray[Any]) -> bool:
        """Whether the names of these samples' classes, sorted and numbered again, get the same ids."""
        found = [int(each) for each in np.unique(self.labels[samples])]
        names = [self.names.get(each, "") for each in found]
        return found == list(range(len(found))) and names == sorted(names, key=str.encode) and \
            not all(re.fullmatch(r"\s*[+-]?[\d.]+\s*", name) for name in names)

    def row(self, sample: int) -> List[str]:
        """Labels, key and columns, as a label CSV has them; a missing number is empty."""
        labels = self.labels[sample] if self.are_numbers else [self.class_of(sample) or ""]
        values = (column[sample] for column in self.columns.values())
        return ["" if value != value else str(value) for value in (*labels, self.key(sample), *values)]

    def json(self, sample: int) -> Dict[str, Any]:
        """The same by their names, the label of a class as its id, and its name."""
        found: Dict[str, Any] = {}
        if self.are_numbers:
            found.update(zip(self.label_columns, (None if value != value else float(str(value)) for value in self.labels[sample])))
        elif self.class_of(sample) is not None:
            found[self.label_columns[0]] = int(self.labels[sample])
        if self.has_names:
            found[self.class_name] = self.class_of(sample)
        if self.key(sample):
            found[self.key_name] = self.key(sample)
        for name, column in self.columns.items():
            value = column[sample] if column.dtype == object else column[sample].item()
            found[name] = None if value != value else value
        return found

    def class_list(self) -> NDArray[Any]:
        """Names by id."""
        last = max(self.names, default=-1)
        return np.array([self.names.get(each, str(each)) for each in range(last + 1)], dtype=np.str_)


def pack_command(export: Export, output: str) -> str:
    """The command that packs an exported tar or folder with the same labels in the same order; empty where a name has a comma, which
    flags take for two."""
    fields, of_fields = Fields(export), fields_of(export)
    is_tar = output.endswith(".tar")
    arguments = ["pack-images", output if is_tar or not of_fields else os.path.join(output, "images")]
    for name, role in of_fields.items():
        kind = ":view" if role == "view" else ""
        arguments += ["--mask-column", f"{name}={name}.png{kind}"] if is_tar else \
            ["--pair", f"{name}={os.path.join(output, FOLDERS.get(name, name))}{kind}"]
    if not is_tar and (fields.are_labelled or fields.columns):
        arguments += ["--labels", os.path.join(output, LIST)]
        if fields.file_name != "file":
            arguments += ["--file-column", fields.file_name]
    columns = fields.label_columns if fields.are_numbers or not is_tar or not fields.has_names else [fields.class_name]
    if not fields.are_labelled:
        arguments += ["--label-type", "none"]
    elif columns != ["label"]:
        arguments += [each for name in columns for each in ("--label-column", name)]
    if fields.has_names and not fields.are_ids_sorted(export.samples):
        arguments += ["--classes", export.info["path"]]
    if fields.are_numbers and len(columns) == 1:
        arguments += ["--label-type", "numbers"]
    if fields.are_numbers and np.isnan(fields.labels).any():
        arguments += ["--missing", "nan"]
    if any("," in name for name in (*fields.columns, *(columns if is_tar else ()))):
        return ""
    if fields.columns:
        arguments += ["--keep-columns", ",".join(fields.columns)]
    if export.info.get("own_sizes"):
        arguments += ["--sizes", "own"]
    return " ".join(map(shlex.quote, [*arguments, "--order", "input", "-o", "PACK"]))


def stem_of(key: str, sample: int) -> str:
    """A sample's file without its ending; its number where the pack names no files."""
    return os.path.splitext(key)[0] if key else f"{sample:09}"


def tar_key(key: str, sample: int) -> str:
    """A sample's key: its file below the root. Its last part has no dot, behind which WebDataset sees the ending."""
    *folders, name = [each for each in stem_of(key, sample).split("/") if each] or [f"{sample:09}"]
    return "/".join([*(safe_name(each) for each in folders), safe_name(name.replace(".", "_"))])


def export_tar(export: Export, output: str, force: bool) -> None:
    """KEY.png or KEY.jpg of each sample, KEY.FIELD.png, KEY.cls with its class id, and KEY.json with label, class, key and
    columns."""
    fields, names = Fields(export), Names()

    def append(tar: tarfile.TarFile, name: str, content: bytes) -> None:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))

    with new_file(output, force) as file, contextlib.closing(encoded_images(export)) as images:
        tar = tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8")
        for sample, image in images:
            key = names.unused(tar_key(fields.key(sample), sample))
            append(tar, f"{key}.{image.suffix}", image.content)
            for name, content in image.fields.items():
                append(tar, f"{key}.{name}.png", content)
            if not fields.are_numbers and fields.labels[sample] >= 0:
                append(tar, f"{key}.cls", str(fields.labels[sample]).encode())
            append(tar, f"{key}.json", json.dumps(fields.json(sample), ensure_ascii=False, allow_nan=False).encode())
            export.done(1)
        tar.close()


def export_folder(export: Export, output: str, force: bool) -> None:
    """CLASS/NAME.png, or .jpg where stored so, and labels.csv, which names them in order with labels, keys and columns. Of
    images with fields images/CLASS/NAME.png, masks/CLASS/NAME.png and FIELD/CLASS/NAME.png."""
    fields, names = Fields(export), Names()

    def write(path: str, content: bytes) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)

    with new_folder(output, force) as folder, contextlib.closing(encoded_images(export)) as images:
        with open(os.path.join(folder, LIST), "w", newline="", encoding="utf-8") as file:
            rows = Table(file, export.plain)
            rows.add([fields.file_name, *fields.label_columns, fields.key_name, *fields.columns])
            for sample, image in images:
                kind = None if fields.are_numbers else fields.class_of(sample)
                stem = stem_of(fields.key(sample), sample).strip("/")
                if kind is not None:
                    stem = stem[len(kind) + 1 :] if stem.startswith(kind + "/") else stem
                place = "" if kind is None else safe_name(kind) + "/"
                stem = names.unused(place + safe_name(stem.replace("/", "_")))
                name = f"{stem}.{image.suffix}"
                write(os.path.join(folder, "images" if image.fields else "", name), image.content)
                for field, content in image.fields.items():
                    write(os.path.join(folder, FOLDERS.get(field, field), f"{stem}.png"), content)
                rows.add([name, *fields.row(sample)])
                export.done(1)


def text_array(texts: Any) -> NDArray[Any]:
    """Unicode (n,), also of none."""
    return np.array(texts, dtype=np.str_) if len(texts) else np.empty(0, "<U1")


def export_arrays(export: Export, output: str, force: bool) -> None:
    """images, uint8 (n, height, width, channels); masks (n, height, width), and an array of each other field; labels; classes,
    their names by id where there are any; keys; columns/NAME."""
    info, fields = export.info, Fields(export)
    if info.get("own_sizes"):
        raise Error(f"{output}: images of their own sizes make no array; expected a .tar or a folder as output", "usage")
    sample = info["sample"]

    def read(name: str) -> Iterator[NDArray[Any]]:
        for run in runs_of(export.samples, run_length(info)):
            yield read_field(export, name, run)
            if name == "image":
                export.done(len(run))

    with new_file(output, force) as file, ArrayArchive(file) as archive:
        shape = (len(export.samples), sample["height"], sample["width"], sample["channels"])
        archive.append_pieces("images", np.uint8, shape, read("image"))
        for name, role in fields_of(export).items():
            archive.append_pieces(FOLDERS.get(name, name), np.uint8, shape[:3] if role == "mask" else shape, read(name))
        archive.append("labels", fields.labels[export.samples])
        if fields.has_names:
            archive.append("classes", fields.class_list())
        archive.append("keys-2" if "keys" in fields_of(export) else "keys", text_array(export.dataset.keys(export.samples)))
        for name, column in fields.columns.items():
            values = column[export.samples]
            archive.append(f"columns/{name}", text_array(values) if column.dtype == object else values)
