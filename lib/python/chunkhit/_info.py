"""What packs hold, as `pack_info` and `info` of loaders and datasets give it."""
from __future__ import annotations

import json
from typing import Any, Dict, List, Tuple, TypedDict


class Shape(TypedDict):
    """Of a sample; where each image has its own size, height and width are 0."""

    height: int
    width: int
    channels: int
    layout: str
    dtype: str


class Class(TypedDict):
    """`id` is the label; -1: samples without one."""

    id: int
    name: str
    samples: int


class PackInfo(TypedDict, total=False):
    """What a pack of either kind holds; chunkhit.ImageInfo and chunkhit.RatingInfo have the keys that the kinds add.

    path         its folder or file
    single_part  True for a part of a pack
    external     True where no pack-* wrote it
    container, codec
                 how it is stored
    parts        a list of a dict for each file
    problems     texts: parts that are missing or have another size than recorded
    raw_bytes, stored_bytes
                 of samples, and of these as stored
    rows         rows of the input of images; users of ratings
    spec         the options that it was made with
    tool, pack_id, input_xxh3
                 the command and its version; hashes of the pack and of its input
    sources      of a merged pack: a dict for each pack in it, with pack_id, tool, root, spec, input_xxh3, rows, samples, parts,
                 codec, chunk_samples
    """

    path: str
    single_part: bool
    external: bool
    container: str
    codec: str
    parts: List[Dict[str, Any]]
    problems: List[str]
    raw_bytes: int
    stored_bytes: int
    rows: int
    spec: Dict[str, Any]
    tool: str
    pack_id: str
    input_xxh3: str
    sources: List[Dict[str, Any]]


class ImageInfo(PackInfo, total=False):
    """What a pack of images holds.

    samples    their number
    sample     a dict: height, width, channels, layout, dtype
    labels     a dict: kind ("class_id", or of numbers), columns
    label_counts
               of labels that are all 0 or 1: samples with 1, by label column
    classes    a list of dicts: id (the label), name, samples (their number)
    mean, std  lists of a number a channel, of pixels scaled to 0..1
    normalize  of a pack of a split: mean and std of its first pack, named by `from`, which normalise all of them
    columns    the columns that were kept: a list of dicts: name, type
    inputs     sizes of the images before the transform, by format: see schemas/manifest.md
    input_notices
               texts: what was lost of how many of them
    rejected   rows of the input that could not be packed
    warned     samples packed with warnings
    chunk_samples, chunk_bytes
               of a chunk
    default_cache, advised_cache
               of HDF5 files: what h5py's rdcc_* are, and what they are best set to
    own_sizes  True where each image has its own size; height, width and chunk_samples are missing or 0 then
    fields     where images have some: what each has beside it, by name: "mask" or "view"
    sizes      min, median and max of height, width, stored_bytes; jpeg and raw, the numbers of images stored so

    And the keys of chunkhit.PackInfo. Keys that do not apply are missing.
    """

    samples: int
    sample: Shape
    labels: Dict[str, Any]
    label_counts: List[int]
    classes: List[Class]
    mean: List[float]
    std: List[float]
    normalize: Dict[str, Any]
    columns: List[Dict[str, str]]
    inputs: Dict[str, Any]
    input_notices: List[str]
    rejected: int
    warned: int
    chunk_samples: int
    chunk_bytes: int
    default_cache: Dict[str, float]
    advised_cache: Dict[str, float]
    own_sizes: bool
    fields: Dict[str, str]
    sizes: Dict[str, Any]


class RatingInfo(PackInfo, total=False):
    """What a pack of ratings holds.

    columns        items
    matrices       a list of dicts: name ("X", "held_out"), nnz, longest_row
    values         a dict: type (as stored), scale
    split_name     "train", "validation", "test", or ""
    lost           "test lacks 95 % of its ratings, 21 of 22" where the split left out more than a tenth, or ""
    label_columns  names of the columns of row labels
    item_columns, user_columns
                   the columns kept of items and users: lists of dicts: name, type
    times          unit of the times that are kept of ratings: "seconds", "milliseconds", ... since 1970, by their size,
                   else "numbers"
    repeats        True where a row may have an item several times (`duplicates` keep)
    chunk_rows     rows of a chunk
    stats          what became of each rating of the input

    And the keys of chunkhit.PackInfo. Keys that do not apply are missing.
    """

    columns: int
    matrices: List[Dict[str, Any]]
    values: Dict[str, Any]
    split_name: str
    lost: str
    label_columns: List[str]
    item_columns: List[Dict[str, str]]
    user_columns: List[Dict[str, str]]
    times: str
    repeats: bool
    chunk_rows: int
    stats: Dict[str, Any]


class OfImages:
    """A loader or dataset of images."""

    _core: Any

    @property
    def info(self) -> ImageInfo:
        """What the (first) pack holds, as `chunkhit.pack_info` gives it; help(chunkhit.ImageInfo) explains the keys."""
        info: ImageInfo = json.loads(self._core.info_json())
        return info

    def _classes(self) -> List[Tuple[int, str, int]]:
        """Id, name and number of samples of each class, by id, or of each label column where labels are 0 and 1; what has no
        recorded name is named by its id."""
        info = self.info
        columns = info["labels"]["columns"]
        if counts := info.get("label_counts"):
            return [(at, columns[at] or str(at), samples) for at, samples in enumerate(counts)]
        found = info.get("classes", [])
        return sorted((each["id"], each.get("name") or str(each["id"]), each["samples"]) for each in found if each["id"] >= 0)

    @property
    def classes(self) -> List[str]:
        """Names of the classes, in the order of their ids: labels of pack_images are positions in it. Where labels are
        0 and 1 these are the names of their columns; empty where they are other numbers."""
        return [name for _, name, _ in self._classes()]

    @property
    def class_counts(self) -> List[int]:
        """Samples of each of `classes`, in the whole source: of all ranks, without sampler and subset."""
        return [samples for _, _, samples in self._classes()]

    @property
    def class_to_idx(self) -> Dict[str, int]:
        """The label of each class by its name, as torchvision's ImageFolder has it; where labels are 0 and 1, its column."""
        return {name: label for label, name, _ in self._classes()}


class OfRatings:
    """A loader or dataset of ratings."""

    _core: Any

    @property
    def info(self) -> RatingInfo:
        """What the (first) pack holds, as `chunkhit.pack_info` gives it; help(chunkhit.RatingInfo) explains the keys."""
        info: RatingInfo = json.loads(self._core.info_json())
        return info
