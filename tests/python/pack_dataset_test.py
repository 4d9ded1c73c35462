"""pack_dataset: datasets of torch and of Hugging Face, and iterables, become packs."""
import importlib
import io
import multiprocessing
import os
import pickle
import types

import numpy as np
import pytest
from PIL import Image

import chunkhit

IMAGES = np.random.default_rng(6).integers(0, 256, (50, 6, 8, 3), dtype=np.uint8)


def in_order(folder):
    images, labels = chunkhit.ImageDataset(folder)[:]
    return images.tolist(), labels.tolist()


EXPECTED = (IMAGES.tolist(), [number % 3 for number in range(50)])


def png(image):
    file = io.BytesIO()
    Image.fromarray(image).save(file, "png")
    return file.getvalue()


class Classified:
    """A map-style dataset of images of Pillow, as torchvision's are."""

    classes = ["ant", "bee", "cat"]

    def __len__(self):
        return len(IMAGES)

    def __getitem__(self, index):
        return Image.fromarray(IMAGES[index]), index % 3


class Named(dict):
    """Features as Hugging Face has them: a dict of what each column is."""


class ClassLabel:
    names = ["ant", "bee", "cat"]


class HuggingFace:
    """Rows that are dicts, whose images are decoded or not."""

    def __init__(self, make, label="label"):
        self.make, self.label = make, label
        self.features = Named(image=None, **{label: ClassLabel()})

    def __len__(self):
        return len(IMAGES)

    def __getitem__(self, index):
        return {"image": self.make(IMAGES[index]), self.label: index % 3, "id": f"row {index}"}


def test_a_folder_of_torchvision_is_the_pack_of_its_files(packs, tmp_path):
    """Class ids and names, pixels and order are those of pack_images."""
    datasets = pytest.importorskip("torchvision.datasets")
    options = dict(order="input", resize=(12, 10), crop=(8, 6))
    expected = chunkhit.pack_images(packs / "images", tmp_path / "files", **options)
    for workers in (0, 2):
        source = datasets.ImageFolder(packs / "images")
        found = chunkhit.pack_dataset(source, tmp_path / f"{workers}", workers=workers, **options)
        assert in_order(tmp_path / f"{workers}") == in_order(tmp_path / "files")
        assert (found["classes"], found["mean"]) == (expected["classes"], expected["mean"])


class Sized:
    """Samples of sizes of their own, some with a mask and some without, and a file that is not decoded."""

    def __len__(self):
        return 40

    def __getitem__(self, index):
        image = IMAGES[index][:2 + index % 4]
        mask = np.full(image.shape[:2], index, np.uint8)
        return (png(image) if index % 3 else image), mask, f"row {index}"


def handed_over(monkeypatch, what):
    """The module, and a queue of what `what` says of the pixels and the rest of each batch that a worker hands over."""
    pytest.importorskip("torch")
    data = importlib.import_module("chunkhit._pack_dataset")
    queue, original = multiprocessing.Queue(), data.in_shared_memory

    def in_shared_memory(samples):
        batch = original(samples)
        queue.put(what(*batch))
        return batch

    monkeypatch.setattr(data, "in_shared_memory", in_shared_memory)
    return data, queue


@pytest.mark.parametrize("has_room", [True, False])
def test_workers_hand_over_in_shared_memory_where_there_is_room(tmp_path, monkeypatch, has_room):
    """What runs through the pipe is as small as shapes and labels."""
    _, sizes = handed_over(monkeypatch, lambda pixels, others: len(pickle.dumps(others)))
    statvfs = os.statvfs
    monkeypatch.setattr(os, "statvfs", lambda path: statvfs(path) if has_room else types.SimpleNamespace(f_bavail=1, f_frsize=4096))
    for workers in (0, 2):
        chunkhit.pack_dataset(Sized(), tmp_path / f"{workers}", workers=workers, sizes="own", keep_columns=None)
    stored = [chunkhit.ImageDataset(tmp_path / f"{workers}") for workers in (0, 2)]
    for number in range(40):
        for first, second in zip(*(dataset[number] for dataset in stored)):
            np.testing.assert_array_equal(first, second)
    assert stored[0].keys() == stored[1].keys()
    assert (sizes.get(timeout=60) < 40 * 150) == has_room


class Numbered:
    """Images of one shape that all differ, or of growing ones."""

    def __init__(self, grows):
        self.grows = grows

    def __len__(self):
        return 60

    def __getitem__(self, index):
        return np.random.default_rng(index).integers(0, 256, (8 + self.grows * index, 9, 3), dtype=np.uint8), index % 2


@pytest.mark.parametrize("grows", [False, True])
def test_workers_fill_their_shared_memory_in_turns(tmp_path, monkeypatch, grows):
    """Each batch had new memory, which cost as much as the copies."""
    data, segments = handed_over(monkeypatch, lambda pixels, others: (os.getpid(), pixels.data_ptr()))
    monkeypatch.setattr(data, "BATCH", 3)
    for workers in (0, 2):
        chunkhit.pack_dataset(Numbered(grows), tmp_path / f"{workers}", workers=workers, sizes="own", order="input")
    stored = [chunkhit.ImageDataset(tmp_path / f"{workers}") for workers in (0, 2)]
    for number in range(60):
        np.testing.assert_array_equal(stored[0][number][0], stored[1][number][0])
    used = [segments.get(timeout=60) for _ in range(20)]
    assert grows or len(set(used)) == 2 * data.SEGMENTS
    samples = data.read_ahead(data.Samples(Numbered(grows), ("image", "label", None, None), {}, [], None), 1)
    image = next(samples)[0]
    for _ in range(2):
        segments.get(timeout=60)
    np.testing.assert_array_equal(image, Numbered(grows)[0][0], "the worker has filled its next segment, not this one")
    samples.close()


def test_any_number_of_workers_makes_the_same_pack(tmp_path):
    pytest.importorskip("torch")
    packs = [chunkhit.pack_dataset(Classified(), tmp_path / f"{workers}", workers=workers, seed=3) for workers in (0, 1, 3)]
    assert packs[0]["pack_id"] == packs[1]["pack_id"] == packs[2]["pack_id"]
    assert len({(tmp_path / f"{workers}/part-00000.h5").read_bytes() for workers in (0, 1, 3)}) == 1


def test_a_subset_has_the_classes_of_its_dataset(tmp_path):
    data = pytest.importorskip("torch.utils.data")
    found = chunkhit.pack_dataset(data.Subset(Classified(), [4, 2, 9]), tmp_path / "out", order="input")
    assert in_order(tmp_path / "out") == (IMAGES[[4, 2, 9]].tolist(), [1, 2, 0])
    assert [each["name"] for each in found["classes"]] == ["ant", "bee", "cat"]


@pytest.mark.parametrize("make", [Image.fromarray, png, lambda image: {"bytes": png(image), "path": None}],
                         ids=["decoded", "bytes", "not decoded"])
def test_rows_of_hugging_face_have_the_names_of_their_features(tmp_path, make):
    found = chunkhit.pack_dataset(HuggingFace(make), tmp_path / "out", order="input")
    assert in_order(tmp_path / "out") == EXPECTED
    assert [each["name"] for each in found["classes"]] == ["ant", "bee", "cat"]


def test_names_of_columns_are_keywords_and_a_path_is_read(tmp_path):
    def in_file(image):
        path = tmp_path / "image.png"
        path.write_bytes(png(image))
        return {"bytes": None, "path": str(path)}

    chunkhit.pack_dataset(HuggingFace(in_file, label="labels"), tmp_path / "out", order="input", label="labels", key="id")
    assert in_order(tmp_path / "out") == EXPECTED


def test_iterables_are_read_once_in_their_order(tmp_path):
    data = pytest.importorskip("torch.utils.data")

    class Stream(data.IterableDataset):
        def __len__(self):
            return len(IMAGES)

        def __iter__(self):
            return ((image, number % 3) for number, image in enumerate(IMAGES))

    for name, source in (("generator", iter(Stream())), ("stream", Stream()), ("list", list(Stream()))):
        chunkhit.pack_dataset(source, tmp_path / name, order="input")
        assert in_order(tmp_path / name) == EXPECTED
    with pytest.raises(chunkhit.Error, match="workers: expected a dataset with __getitem__ and __len__, found a Stream"):
        chunkhit.pack_dataset(Stream(), tmp_path / "more", workers=2)


def test_classes_may_be_given_or_left_out(tmp_path):
    named = chunkhit.pack_dataset(Classified(), tmp_path / "named", classes=["x", "y", "z"])
    assert [each["name"] for each in named["classes"]] == ["x", "y", "z"]
    plain = chunkhit.pack_dataset(Classified(), tmp_path / "plain", classes=())
    assert [each["id"] for each in plain["classes"]] == [0, 1, 2] and not any(each.get("name") for each in plain["classes"])


def test_keys_of_triples_name_rejects(tmp_path):
    samples = [(image, 0, f"photo {number}") for number, image in enumerate(IMAGES)]
    samples[7] = (b"no image", 0, "photo 7")
    found = chunkhit.pack_dataset(samples, tmp_path / "out", max_errors=1)
    assert (found["samples"], found["rejected"]) == (49, 1)
    assert "7,photo 7,0,not an image of a known type" in (tmp_path / "out/rejects.csv").read_text()


class Broken(Classified):
    """Raises at a number, or gives something else there."""

    def __init__(self, at, give):
        self.at, self.give = at, give

    def __getitem__(self, index):
        return self.give() if index == self.at else super().__getitem__(index)


def fail():
    raise ValueError("no such row")


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("code, message, give", [
    ("bad_data", "sample 21: ValueError: no such row", fail),
    ("usage", r"sample 21: expected \(image, label\), .* found 4 values", lambda: (1, 2, 3, 4)),
    ("usage", "sample 21: has no 'label', only 'image'; label= names what it has, label=None says that there is none", lambda: {"image": IMAGES[0]}),
    ("usage", "sample 21: image: expected uint8, found float32", lambda: (IMAGES[0].astype(np.float32), 0)),
    ("bad_data", "sample 21: image: expected a NumPy array, .* found a str", lambda: ("photo.png", 0)),
    ("usage", "sample 21: fields: found mask, expected none as before", lambda: (IMAGES[0], Image.fromarray(IMAGES[0, :, :, 0]))),
    ("usage", "sample 21: label: found 3, expected an id from 0 and below 3", lambda: (IMAGES[0], 3)),
])
def test_an_error_names_the_index_of_the_sample(tmp_path, code, message, give, workers):
    if workers:
        pytest.importorskip("torch")
    with pytest.raises(chunkhit.Error, match=message) as caught:
        chunkhit.pack_dataset(Broken(21, give), tmp_path / "out", workers=workers)
    assert multiprocessing.active_children() == []  # a later search for cycles would wait for workers
    assert caught.value.code == code
    assert not (tmp_path / "out").exists()


MASKS = [np.full((6, 8), number % 3, np.uint8) for number in range(50)]


def test_a_mask_beside_a_label_was_dropped(tmp_path):
    tuples = [(IMAGES[n], n % 3, MASKS[n]) for n in range(50)]
    dicts = [dict(image=IMAGES[n], label=n % 3, mask=MASKS[n]) for n in range(50)]
    for name, source, options in (("tuples", tuples, {}), ("dicts", dicts, dict(mask="mask"))):
        chunkhit.pack_dataset(source, tmp_path / name, order="input", container="shard", **options)
        dataset = chunkhit.ImageDataset(tmp_path / name)
        np.testing.assert_array_equal(dataset.masks(range(50)), MASKS)
        assert dataset.labels().tolist() == [n % 3 for n in range(50)]
    with pytest.raises(chunkhit.Error, match="sample 0: has 'mask', which may be a mask: mask='mask' packs it"):
        chunkhit.pack_dataset(dicts, tmp_path / "lost")
    chunkhit.pack_dataset(dicts, tmp_path / "without", mask="")
    assert not chunkhit.pack_info(tmp_path / "without").get("fields")


def test_names_of_classes_of_concatenated_datasets_were_lost(tmp_path):
    class Joined:
        def __init__(self, *datasets):
            self.datasets = list(datasets)

        def __len__(self):
            return sum(map(len, self.datasets))

        def __getitem__(self, index):
            return self.datasets[index // 50][index % 50]

    chunkhit.pack_dataset(Joined(Classified(), Classified()), tmp_path / "joined")
    assert [each["name"] for each in chunkhit.pack_info(tmp_path / "joined")["classes"]] == ["ant", "bee", "cat"]
    other = Classified()
    other.classes = ["cat", "bee", "ant"]
    with pytest.raises(chunkhit.Error, match="classes: the datasets that are concatenated have different ones"):
        chunkhit.pack_dataset(Joined(Classified(), other), tmp_path / "mixed")


def test_its_signature_lists_no_options_of_files():
    import inspect
    names = set(inspect.signature(chunkhit.pack_dataset).parameters)
    assert not names & {"pair", "mask_column", "labels", "empty_labels", "include"} and "split_group" in names
