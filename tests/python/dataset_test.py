"""ImageDataset and SparseDataset: numbers of all kinds, and other processes."""
import multiprocessing
import os
import pickle
import subprocess
import sys

import h5py
import numpy as np
import pytest
from PIL import Image

import chunkhit


@pytest.fixture(scope="module")
def stored(packs):
    with h5py.File(packs / "hdf5" / "part-00000.h5") as part:
        return part["images"][:], part["labels"][:]


@pytest.mark.parametrize("pack", ["hdf5", "shard"])
@pytest.mark.parametrize("cache", ["decoded", "compressed", "none"])
def test_gives_the_samples_that_h5py_reads(packs, stored, pack, cache):
    dataset = chunkhit.ImageDataset(packs / pack, cache=cache)
    assert len(dataset) == 100
    for key in (slice(None), slice(90, 3, -4), slice(5, 5), [3, 97, 3], np.array([-1, 0]), stored[1] == 1,
                np.array([], int), np.uint8([200 - 101])):
        images, labels = dataset[key]
        np.testing.assert_array_equal(images, stored[0][key])
        np.testing.assert_array_equal(labels, stored[1][key])
    for key in (0, 99, -100, np.int64(7)):
        image, label = dataset[key]
        np.testing.assert_array_equal(image, stored[0][key])
        assert label == stored[1][key] and type(label) is int
    np.testing.assert_array_equal(dataset.labels(), stored[1])


def test_gives_items_one_by_one_as_getitem_does(packs):
    dataset = chunkhit.ImageDataset(packs / "hdf5")
    for number, (image, label) in zip([5, 2, 5], dataset.__getitems__([5, 2, 5]), strict=True):
        np.testing.assert_array_equal(image, dataset[number][0])
        assert label == dataset[number][1]
    numbers = chunkhit.ImageDataset(packs / "numbers")
    np.testing.assert_array_equal(numbers[8][1], numbers.labels()[8])


@pytest.mark.parametrize("key", [100, -101, [5, 100], [2**63], [0.5], "3", [[1]], [True], None])
def test_refuses_what_is_no_sample(packs, key):
    with pytest.raises(IndexError):
        chunkhit.ImageDataset(packs / "hdf5")[key]


@pytest.mark.parametrize("pack", ["hdf5", "shard"])
def test_names_the_file_of_each_sample(packs, pack):
    dataset = chunkhit.ImageDataset(packs / pack)
    keys = dataset.keys()
    assert sorted(keys) == sorted(f"{'ab'[number % 2]}/{number:03}.png" for number in range(100))
    for number in (0, 17, 99):
        np.testing.assert_array_equal(dataset[number][0], np.asarray(Image.open(packs / "images" / keys[number])))
    assert dataset.keys([3, -1]) == [keys[3], keys[99]]
    with pytest.raises(IndexError, match="sample 100 of 100"):
        dataset.keys([100])


def test_an_external_file_names_no_files(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["images"], file["labels"] = np.zeros((2, 2, 2, 3), np.uint8), [0, 1]
    assert chunkhit.ImageDataset(tmp_path / "x.h5").keys() == ["", ""]


def test_reads_images_without_their_labels(packs, tmp_path):
    with h5py.File(tmp_path / "own.h5", "w") as file:
        file["images"] = np.arange(24, dtype=np.uint8).reshape(2, 2, 2, 3)
        file["labels"] = [5, 6]
    assert chunkhit.ImageDataset(tmp_path / "own.h5").labels().tolist() == [5, 6]
    assert chunkhit.ImageDataset(tmp_path / "own.h5", labels="").labels().tolist() == [-1, -1]


def test_labels_in_a_group_were_minus_one_without_a_word(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["train/images"] = np.zeros((2, 2, 2, 3), np.uint8)
        file["train/labels"] = [5, 6]
        file["plain"] = np.zeros((2, 2, 2, 3), np.uint8)
    path = tmp_path / "x.h5"
    assert chunkhit.ImageDataset(path, images="train/images").labels().tolist() == [5, 6]
    assert [each["id"] for each in chunkhit.pack_info(path, images="train/images")["classes"]] == [5, 6]
    assert chunkhit.verify_pack(path, images="train/images")["problems"] == []
    for read in (chunkhit.ImageDataset, chunkhit.ImageLoader, chunkhit.pack_info):
        with pytest.raises(chunkhit.Error, match='has no dataset /labels; it has .*/train/labels.*; labels=""'):
            read(path, images="plain")
    assert [labels.tolist() for _, labels in chunkhit.ImageLoader(path, images="plain", labels="").epoch(0)] == [[-1, -1]]
    assert chunkhit.verify_pack(path, images="plain", labels="")["problems"] == []


def test_ends_when_it_is_iterated(packs):
    assert sum(1 for _ in chunkhit.ImageDataset(packs / "hdf5")) == 100


def test_gives_scipys_rows(ratings, expected_rows):
    dataset = chunkhit.SparseDataset(ratings[0] / "whole")
    picks = np.random.default_rng(3).integers(0, len(dataset), 50)
    np.testing.assert_array_equal(dataset[picks], expected_rows(dataset, picks))
    np.testing.assert_array_equal(dataset[int(picks[0])], expected_rows(dataset, picks[:1])[0])
    csr = chunkhit.SparseDataset(ratings[0] / "whole", format="csr")
    np.testing.assert_array_equal(csr[picks].to_scipy().toarray(), expected_rows(dataset, picks))
    for row, one in zip(picks, csr.__getitems__(picks.tolist()), strict=True):
        np.testing.assert_array_equal(one.to_scipy().toarray(), expected_rows(dataset, [row]))
    assert len(csr[3:3].values) == 0


def test_gives_the_whole_matrix_of_scipy(ratings):
    for name in ("whole", "split/test"):
        dataset = chunkhit.SparseDataset(ratings[0] / name, held_out=False)
        whole = dataset.to_scipy()
        assert whole.dtype == np.float32 and whole.shape == (len(dataset), dataset.column_count)
        np.testing.assert_array_equal(whole.toarray(), dataset[:])
    dataset = chunkhit.SparseDataset(ratings[0] / "split" / "test")
    np.testing.assert_array_equal(dataset.to_scipy(held_out=True).toarray(), dataset[:][1])
    with pytest.raises(chunkhit.Error, match="held"):
        chunkhit.SparseDataset(ratings[0] / "whole").to_scipy(held_out=True)


def test_gives_held_out_rows_beside(ratings, expected_rows):
    dataset = chunkhit.SparseDataset(ratings[0] / "split" / "test")
    x, held_out = dataset[:]
    np.testing.assert_array_equal(x + held_out, expected_rows(dataset, range(len(dataset))))
    for number, pair in enumerate(dataset.__getitems__([0, 1])):
        np.testing.assert_array_equal(pair, [x[number], held_out[number]])
    assert chunkhit.SparseDataset(ratings[0] / "split" / "test", held_out=False)[0].shape == (dataset.column_count,)


def test_is_pickled_as_its_place(packs, ratings, monkeypatch):
    monkeypatch.chdir(packs)
    for dataset in (chunkhit.ImageDataset("hdf5"), chunkhit.SparseDataset(ratings[0] / "whole")):
        text = pickle.dumps(dataset)
        assert len(text) < 1000
        monkeypatch.chdir("/")
        np.testing.assert_array_equal(pickle.loads(text)[:][0], dataset[:][0])


def read_in_child(dataset, results):
    results.put((os.getpid(), [pixels.tolist() for pixels in dataset[::10][0]]))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_reads_in_processes(packs, method):
    dataset = chunkhit.ImageDataset(packs / "shard", cache="none")
    context = multiprocessing.get_context(method)
    results = context.Queue()
    children = [context.Process(target=read_in_child, args=(dataset, results)) for _ in range(2)]
    for child in children:
        child.start()
    found = [results.get(timeout=60) for _ in children]
    for child in children:
        child.join()
        assert child.exitcode == 0
    expected = dataset[::10][0].tolist()
    assert all(process != os.getpid() and pixels == expected for process, pixels in found)


def test_a_loader_of_the_parent_is_refused_in_a_forked_child(packs):
    loader = chunkhit.ImageLoader(packs / "hdf5")
    epoch = loader.epoch(0)
    held = next(epoch)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            next(epoch)
        except chunkhit.Error as error:
            code = 0 if error.code == "usage" and held.images.any() else 2
            del epoch, loader, held
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    next(iter(loader))


LEFT_BEHIND = """
import sys, threading, time
import chunkhit

def use():
    loader = chunkhit.ImageLoader(sys.argv[1], batch_size=2) if sys.argv[2] == "loader" else None
    while True:
        if loader:
            for _ in loader.epoch(0):
                taken.set()
        else:
            chunkhit.ImageDataset(sys.argv[1])[[0, 1]]
            taken.set()

taken = threading.Event()
threading.Thread(target=use, daemon=True).start()
taken.wait()
time.sleep(0.1)
"""


JOINED_AT_EXIT = """
import atexit, sys, threading
threads = []
atexit.register(lambda: [thread.join() for thread in threads])
import chunkhit

def use():
    begun.set()
    for _ in range(30):
        for batch in chunkhit.ImageLoader(sys.argv[1], batch_size=2):
            pass
    print("read")

begun = threading.Event()
threads.append(threading.Thread(target=use, daemon=True))
threads[0].start()
begun.wait()
"""


def test_a_thread_that_a_handler_of_atexit_joins_never_came_back_from_its_loader(packs):
    run = subprocess.run([sys.executable, "-c", JOINED_AT_EXIT, str(packs / "shard")], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True, timeout=60)
    assert (run.returncode, run.stdout, run.stderr) == (0, "read\n", "")


@pytest.mark.parametrize("reader", ["loader", "dataset"])
def test_python_ends_while_a_daemon_thread_reads(packs, reader):
    """The thread, which Python ends when it takes the GIL, ended the program by SIGABRT."""
    run = subprocess.run([sys.executable, "-c", LEFT_BEHIND, str(packs / "shard"), reader], stderr=subprocess.PIPE, text=True,
                         timeout=60)
    assert (run.returncode, run.stderr) == (0, "")
