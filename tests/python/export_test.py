"""Packs as files of other tools: what is exported is what the pack holds, also once it is packed again."""
import csv
import errno
import io
import json
import os
import resource
import subprocess
import sys
import tarfile

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
from PIL import Image, ImageOps

import chunkhit

from error_test import raised


def command(*arguments, **options):
    return subprocess.run([sys.executable, "-m", "chunkhit.export", *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, **options)


def groups_of(path):
    """{key: {ending: bytes}} in order, as WebDataset groups members: a key is what stands before the first dot of the name."""
    groups = {}
    with tarfile.open(path) as tar:
        for member in tar:
            folder, name = os.path.split(member.name)
            stem, ending = name.split(".", 1)
            key = os.path.join(folder, stem)
            assert key not in groups or key == list(groups)[-1], "members of a sample stand together"
            groups.setdefault(key, {})[ending] = tar.extractfile(member).read()
    return groups


def pixels(content):
    return np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(content))).convert("RGB"))


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """A pack of images of their own sizes: JPEG, turned JPEG, gray JPEG and PNG."""
    folder = tmp_path_factory.mktemp("own")
    random = np.random.default_rng(4)
    for number in range(24):
        place = folder / "images" / "ab"[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        image = Image.fromarray(random.integers(0, 256, random.integers(9, 60, 2).tolist() + [3], dtype=np.uint8))
        exif = Image.Exif()
        exif[0x112] = 1 + number % 8
        image = image.convert("L") if number % 6 == 4 else image
        image.save(place / f"{number:02}.{'png' if number % 6 == 5 else 'jpg'}", exif=exif)
    chunkhit.pack_images(folder / "images", folder / "pack", sizes="own")
    chunkhit.pack_images(folder / "images", folder / "bytes", sizes="own", jpeg_tile=0)
    return folder


@pytest.mark.parametrize("pack", ["hdf5", "shard"])
def test_a_tar_has_each_sample_in_the_order_of_the_pack(packs, tmp_path, pack):
    dataset = chunkhit.ImageDataset(packs / pack)
    report = chunkhit.export_pack(packs / pack, tmp_path / "out.tar", threads=3)
    assert report == {"samples": 100, "files": [str(tmp_path / "out.tar")],
                      "command": f"pack-images {tmp_path}/out.tar --label-column class --order input -o PACK"}
    groups = groups_of(tmp_path / "out.tar")
    assert list(groups) == [os.path.splitext(key)[0] for key in dataset.keys()]
    for (image, label), parts in zip(dataset, groups.values(), strict=True):
        np.testing.assert_array_equal(pixels(parts["png"]), image)
        assert int(parts["cls"]) == label and set(parts) == {"png", "cls", "json"}


def test_numbers_as_labels_are_json_in_a_tar(packs, tmp_path):
    chunkhit.export_pack(packs / "numbers", tmp_path / "out.tar")
    labels = chunkhit.ImageDataset(packs / "numbers").labels()
    numbers = [json.loads(parts["json"]) for parts in groups_of(tmp_path / "out.tar").values()]
    keys = chunkhit.ImageDataset(packs / "numbers").keys()
    assert numbers == [{"x": x, "y": y, "key": key} for (x, y), key in zip(labels.tolist(), keys, strict=True)]


@pytest.mark.parametrize("pack", ["pack", "bytes"])
def test_jpeg_stays_jpeg_and_upright(own, tmp_path, pack):
    chunkhit.export_pack(own / pack, tmp_path / "out.tar")
    dataset, kinds = chunkhit.ImageDataset(own / pack), []
    for (image, _), parts, sample in zip(dataset, groups_of(tmp_path / "out.tar").values(), range(24), strict=True):
        kind, = set(parts) - {"cls", "json"}
        np.testing.assert_array_equal(pixels(parts[kind]), image)
        kinds.append(kind)
        if kind == "jpg" and pack == "bytes":
            assert parts["jpg"] == (own / "images" / dataset.keys([sample])[0]).read_bytes()
        if dataset.stored_jpeg(sample) is None:
            assert kind == "png"
    assert kinds.count("jpg") == 20


def test_a_jpeg_that_says_another_orientation_than_the_pack_is_written_as_png(own, tmp_path):
    chunkhit.pack_images(own / "images", tmp_path / "pack", sizes="own", jpeg_tile=0, exif="ignore")
    chunkhit.export_pack(tmp_path / "pack", tmp_path / "out.tar")
    dataset = chunkhit.ImageDataset(tmp_path / "pack")
    for (image, _), parts in zip(dataset, groups_of(tmp_path / "out.tar").values(), strict=True):
        np.testing.assert_array_equal(pixels(parts["jpg" if "jpg" in parts else "png"]), image)


@pytest.mark.parametrize("source, options", [("hdf5", {}), ("numbers", {}), ("own", dict(sizes="own"))])
def test_a_folder_that_is_packed_again_has_the_same_samples(packs, own, tmp_path, source, options):
    pack = own / "pack" if source == "own" else packs / source
    chunkhit.export_pack(pack, tmp_path / "out")
    columns = dict(label_column=["x", "y"]) if source == "numbers" else {}
    chunkhit.pack_images(tmp_path / "out", tmp_path / "again", labels=tmp_path / "out/labels.csv", order="input", **columns,
                         **options)
    before, after = chunkhit.ImageDataset(pack), chunkhit.ImageDataset(tmp_path / "again")
    np.testing.assert_array_equal(after.labels(), before.labels())
    for (image, _), (expected, _) in zip(after, before, strict=True):
        np.testing.assert_array_equal(image, expected)


def test_a_tar_whose_class_names_are_left_aside_is_warned_of(packs, tmp_path, logs):
    chunkhit.export_pack(packs / "hdf5", tmp_path / "out.tar")
    with logs(r"labels are the ids in .cls; .* label_column class takes these"):
        chunkhit.pack_images(tmp_path / "out.tar", tmp_path / "ids", label_type="classes")
    with logs(None):
        info = chunkhit.pack_images(tmp_path / "out.tar", tmp_path / "names", label_column="class")
        chunkhit.export_pack(tmp_path / "ids", tmp_path / "ids.tar")  # which has no names
        chunkhit.pack_images(tmp_path / "ids.tar", tmp_path / "again", label_type="classes")
    assert [each["name"] for each in info["classes"]] == ["a", "b"]


def test_classes_named_by_numbers_keep_their_ids_with_the_pack_s_list(tmp_path):
    for number, kind in enumerate(["0", "2", "10", "1"] * 3):
        (tmp_path / "in" / kind).mkdir(parents=True, exist_ok=True)
        Image.new("L", (5, 4), number).save(tmp_path / "in" / kind / f"{number}.png")
    chunkhit.pack_images(tmp_path / "in", tmp_path / "pack")
    chunkhit.export_pack(tmp_path / "pack", tmp_path / "out")
    chunkhit.pack_images(tmp_path / "out", tmp_path / "again", labels=tmp_path / "out/labels.csv", classes=tmp_path / "pack",
                         order="input")
    before, after = chunkhit.ImageDataset(tmp_path / "pack"), chunkhit.ImageDataset(tmp_path / "again")
    assert [each["name"] for each in after.info["classes"]] == ["0", "1", "10", "2"]
    for read, expected in zip(after[:], before[:], strict=True):
        np.testing.assert_array_equal(read, expected)


def test_a_folder_has_a_folder_for_each_class(packs, tmp_path):
    torchvision = pytest.importorskip("torchvision")
    chunkhit.export_pack(packs / "hdf5", tmp_path / "out")
    folder, dataset = torchvision.datasets.ImageFolder(tmp_path / "out"), chunkhit.ImageDataset(packs / "hdf5")
    assert folder.classes == ["a", "b"] and len(folder) == 100
    by_file = {os.path.splitext(key)[0]: sample for sample, key in enumerate(dataset.keys())}
    for path, label in folder.samples:
        expected, kind = dataset[by_file[os.path.splitext(os.path.relpath(path, tmp_path / "out"))[0]]]
        np.testing.assert_array_equal(np.asarray(Image.open(path)), expected)
        assert label == kind


@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
def test_arrays_are_those_of_the_dataset(packs, tmp_path, layout):
    chunkhit.pack_images(packs / "images", tmp_path / "pack", layout=layout, chunk_samples=7)
    chunkhit.export_pack(tmp_path / "pack", tmp_path / "out.npz")
    images, labels = chunkhit.ImageDataset(tmp_path / "pack")[:]
    with np.load(tmp_path / "out.npz") as arrays:
        np.testing.assert_array_equal(arrays["images"], images if layout == "nhwc" else images.transpose(0, 2, 3, 1))
        np.testing.assert_array_equal(arrays["labels"], labels)
        assert arrays["images"].dtype == np.uint8 and arrays["labels"].dtype == np.int64
        assert arrays["classes"].tolist() == ["a", "b"]
    chunkhit.export_pack(packs / "numbers", tmp_path / "numbers.npz")
    with np.load(tmp_path / "numbers.npz") as arrays:
        np.testing.assert_array_equal(arrays["labels"], chunkhit.ImageDataset(packs / "numbers").labels())
        assert "classes" not in arrays


def test_classes_without_names_had_one_made_for_each_id_below_the_largest(packs, tmp_path):
    """Which took memory for ten billion names."""
    rows = [f"a/{number:03}.png,{10**10 + number}" for number in (0, 2, 4)]
    (tmp_path / "list.csv").write_text("\n".join(["file,label", *rows]) + "\n")
    chunkhit.pack_images(packs / "images", tmp_path / "pack", labels=tmp_path / "list.csv", order="input")
    chunkhit.export_pack(tmp_path / "pack", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as arrays:
        assert arrays["labels"].tolist() == [10**10, 10**10 + 2, 10**10 + 4] and "classes" not in arrays


def test_the_same_pack_makes_the_same_bytes(packs, tmp_path):
    for ending in ("tar", "npz"):
        for number, threads in enumerate((1, 5)):
            chunkhit.export_pack(packs / "shard", tmp_path / f"{number}.{ending}", threads=threads)
        assert (tmp_path / f"0.{ending}").read_bytes() == (tmp_path / f"1.{ending}").read_bytes()


def test_some_classes_alone(packs, tmp_path):
    done = command(packs / "hdf5", "-o", tmp_path / "b.npz", "--classes", "b")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"50 samples → {tmp_path}/b.npz\n", "")
    dataset = chunkhit.ImageDataset(packs / "hdf5")
    with np.load(tmp_path / "b.npz") as arrays:
        np.testing.assert_array_equal(arrays["images"], dataset[dataset.labels() == 1][0])
        assert set(arrays["labels"].tolist()) == {1}
    done = command(packs / "hdf5", "-o", tmp_path / "c.npz", "--classes", "b,c")
    assert done.returncode == 2 and "--classes: 'c' is none of the pack, which has a, b" in done.stderr


def test_names_stay_below_the_folder_and_apart(tmp_path):
    """Classes and files as a label CSV may have them."""
    image = np.zeros((4, 5, 3), np.uint8)
    files = ["x.png", "x.bmp", "x.v2.png", "sub/x.png", "sub_x.png", "ü.png", "a:b.png", "x-2.png", "y.png"]
    kinds = ["..", "..", "..", "a/b", "", ".hidden", "q?*", "..", "labels.csv"]
    (tmp_path / "in" / "sub").mkdir(parents=True)
    with open(tmp_path / "labels.csv", "w") as file:
        rows = csv.writer(file)
        rows.writerow(["file", "label"])
        for number, (name, kind) in enumerate(zip(files, kinds)):
            Image.fromarray(image + number).save(tmp_path / "in" / name)
            rows.writerow([name, kind or "e"])
    chunkhit.pack_images(tmp_path / "in", tmp_path / "pack", labels=tmp_path / "labels.csv", order="input")
    chunkhit.export_pack(tmp_path / "pack", tmp_path / "deep/../out")
    with open(tmp_path / "out" / "labels.csv", newline="") as file:
        listed = list(csv.DictReader(file))
    assert [row["label"] for row in listed] == [kind or "e" for kind in kinds]
    assert [row["file"] for row in listed] == [
        "%2E./x.png", "%2E./x-2.png", "%2E./x.v2.png", "a%2Fb/sub_x.png", "e/sub_x.png", "%2Ehidden/ü.png",
        "q%3F%2A/a%3Ab.png", "%2E./x-2-2.png", "%6Cabels.csv/y.png"]
    for number, row in enumerate(listed):
        assert np.asarray(Image.open(tmp_path / "out" / row["file"]))[0, 0, 0] == number
    assert sorted(os.listdir(tmp_path)) == ["in", "labels.csv", "out", "pack"]
    chunkhit.export_pack(tmp_path / "pack", tmp_path / "out.tar")
    groups = groups_of(tmp_path / "out.tar")
    assert list(groups) == ["x", "x-2", "x_v2", "sub/x", "sub_x", "ü", "a%3Ab", "x-2-2", "y"]
    assert [pixels(parts["png"])[0, 0, 0] for parts in groups.values()] == list(range(9))


def ids(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("pack", ["whole", "split/test"])
def test_ratings_are_a_matrix_of_scipy(ratings, tmp_path, pack):
    report = chunkhit.export_pack(ratings[0] / pack, tmp_path / "out.npz")
    dataset = chunkhit.SparseDataset(ratings[0] / pack, format="csr")
    rows = dataset[:] if pack == "whole" else dataset[:][0]
    assert (sp.load_npz(tmp_path / "out.npz") != rows.to_scipy()).nnz == 0
    assert sp.load_npz(tmp_path / "out.npz").shape == rows.shape
    for name, header, expected in (("out.users.csv", ["row", "user"], dataset.row_ids()),
                                   ("out.items.csv", ["column", "item"], dataset.column_ids())):
        assert ids(tmp_path / name) == [header, *([str(number), each] for number, each in enumerate(expected))]
    if pack != "whole":
        assert (sp.load_npz(tmp_path / "out.held_out.npz") != dataset[:][1].to_scipy()).nnz == 0
    files = ["out.npz", "out.held_out.npz", "out.users.csv", "out.items.csv"]
    assert sorted(os.listdir(tmp_path)) == sorted(files if pack != "whole" else [files[0], *files[2:]])
    assert report["rows"] == len(dataset)
    assert sorted(report["files"]) == sorted(str(tmp_path / name) for name in os.listdir(tmp_path))


def test_labels_of_rows_stand_beside_their_ids(tmp_path):
    (tmp_path / "in.svm").write_text("1.5 1:1 3:2\n-2 2:1\n3 1:1 2:2 3:3\n")
    chunkhit.pack_sparse(tmp_path / "in.svm", tmp_path / "pack", format="svmlight", order="input")
    chunkhit.export_pack(tmp_path / "pack", tmp_path / "out.npz")
    assert ids(tmp_path / "out.users.csv") == [["row", "user", "label"], ["0", "0", "1.5"], ["1", "1", "-2.0"], ["2", "2", "3.0"]]


def test_a_matrix_of_another_program_is_exported_too(tmp_path):
    anndata = pytest.importorskip("anndata")
    matrix = sp.random(20, 30, 0.2, random_state=1, format="csr", dtype=np.float32)
    cells = anndata.AnnData(matrix)
    cells.obs_names = [f"cell {number}" for number in range(20)]
    cells.write_h5ad(tmp_path / "in.h5ad")
    chunkhit.export_pack(tmp_path / "in.h5ad", tmp_path / "out.npz")
    assert (sp.load_npz(tmp_path / "out.npz") != matrix).nnz == 0
    assert ids(tmp_path / "out.users.csv")[1] == ["0", "cell 0"]


def test_more_rows_than_are_read_at_a_time(tmp_path):
    rows = sp.random(9001, 40, 0.02, random_state=5, format="csr", dtype=np.float32)
    sp.save_npz(tmp_path / "in.npz", rows)
    chunkhit.pack_sparse(tmp_path / "in.npz", tmp_path / "pack", order="input", id_order="sorted", format="npz")
    chunkhit.export_pack(tmp_path / "pack", tmp_path / "out.npz")
    expected = chunkhit.SparseDataset(tmp_path / "pack", format="csr")[:].to_scipy()
    assert expected.nnz == rows.nnz and (sp.load_npz(tmp_path / "out.npz") != expected).nnz == 0


def test_ratings_are_a_table_that_is_packed_again(ratings, tmp_path):
    chunkhit.export_pack(ratings[0] / "whole", tmp_path / "out.csv")
    with open(ratings[0] / "ratings.csv") as first, open(tmp_path / "out.csv") as second:
        assert sorted(first.read().splitlines()[1:]) == sorted(second.read().splitlines()[1:])
    chunkhit.pack_sparse(tmp_path / "out.csv", tmp_path / "again", order="input", id_order="sorted")
    before, after = chunkhit.SparseDataset(ratings[0] / "whole"), chunkhit.SparseDataset(tmp_path / "again")
    np.testing.assert_array_equal(after[after.rows_of(before.row_ids())][:, after.columns_of(before.column_ids())], before[:])


def test_what_is_held_out_is_a_table_of_its_own(ratings, tmp_path):
    chunkhit.export_pack(ratings[0] / "split/test", tmp_path / "out.csv")
    dataset = chunkhit.SparseDataset(ratings[0] / "split/test")
    for name, matrix in (("out.csv", dataset[:][0]), ("out.held_out.csv", dataset[:][1])):
        header, *lines = ids(tmp_path / name)
        assert header == ["user", "item", "value"] and len(lines) == np.count_nonzero(matrix)
        for user, item, value in lines[::50]:
            assert matrix[dataset.row_of(user), dataset.column_of(item)] == float(value)


@pytest.mark.parametrize("output", ["out.tar", "out.npz", "out"])
def test_what_exists_is_replaced_by_force_alone(packs, tmp_path, output):
    chunkhit.export_pack(packs / "hdf5", tmp_path / output)
    message = raised("cannot_write", chunkhit.export_pack, packs / "hdf5", tmp_path / output)
    assert message == f"{tmp_path / output}: exists; force replaces it"
    done = command(packs / "hdf5", "-o", tmp_path / output)
    assert done.returncode == 73 and done.stderr == f"pack-export: {tmp_path / output}: exists; --force replaces it\n"
    chunkhit.export_pack(packs / "hdf5", tmp_path / output, classes=["a"], force=True)
    assert os.listdir(tmp_path) == [output]
    if output == "out":
        assert not (tmp_path / output / "b").exists()


def test_a_folder_that_could_not_be_renamed_took_the_one_before_with_it(packs, tmp_path, monkeypatch):
    chunkhit.export_pack(packs / "hdf5", tmp_path / "out")
    files, rename = sorted(os.listdir(tmp_path / "out")), os.rename

    def fail(source, target):
        if os.path.basename(target) == "out" and source.endswith(".partial"):
            raise OSError(errno.EIO, "Input/output error")
        rename(source, target)

    monkeypatch.setattr(os, "rename", fail)
    message = raised("cannot_write", chunkhit.export_pack, packs / "hdf5", tmp_path / "out", force=True)
    assert "Input/output error" in message
    assert os.listdir(tmp_path) == ["out"] and sorted(os.listdir(tmp_path / "out")) == files


def test_force_replaces_no_folder_that_was_not_exported(packs, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    (tmp_path / "x.tar").mkdir()
    for output, words in (("mine", "something else than an export"), ("x.tar", "is a folder, which is not replaced")):
        assert words in raised("cannot_write", chunkhit.export_pack, packs / "hdf5", tmp_path / output, force=True)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "x"


@pytest.mark.parametrize("name", ["pack-export", "pack-report"])
def test_text_on_a_full_disk_ended_with_a_traceback(name):
    with open("/dev/full", "w") as full:
        done = subprocess.run([os.path.join(os.environ["CHUNKHIT_TOOLS"], name), "--help"], stdout=full, stderr=subprocess.PIPE,
                              text=True)
    assert (done.returncode, done.stderr) == (73, f"{name}: standard output cannot be written: No space left on device\n")


@pytest.mark.parametrize("name", ["pack-export", "pack-report"])
@pytest.mark.parametrize("limit", [5, 6, 7, 8])
def test_few_descriptors_ended_with_a_traceback(packs, tmp_path, name, limit):
    output = tmp_path / ("out.tar" if name == "pack-export" else "out.html")
    environment = {**os.environ, "MPLCONFIGDIR": str(tmp_path / "fonts")}  # a list of fonts of which few could be opened
    done = subprocess.run([os.path.join(os.environ["CHUNKHIT_TOOLS"], name), packs / "hdf5", "-o", output], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))
    assert "Traceback" not in done.stderr and done.returncode in (0, 73, 75), done.stderr


@pytest.mark.parametrize("output, most", [("out.tar", 20000), ("out.npz", 3000), ("out", 50)])
def test_a_full_disk_leaves_nothing(packs, tmp_path, output, most):
    """A limit of the size of files stands for the disk."""
    done = command(packs / "hdf5", "-o", tmp_path / output,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))
    assert done.returncode == 73 and done.stderr == f"pack-export: {tmp_path / output}: cannot be written: File too large\n"
    assert os.listdir(tmp_path) == []


def test_a_full_disk_leaves_no_ratings(ratings, tmp_path):
    for output in ("out.npz", "out.csv"):
        done = command(ratings[0] / "split/test", "-o", tmp_path / output,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000)))
        assert done.returncode == 73 and "File too large" in done.stderr
        assert os.listdir(tmp_path) == []


def test_a_damaged_chunk_is_bad_data_and_leaves_nothing(packs, tmp_path):
    part = bytearray((packs / "hdf5" / "part-00000.h5").read_bytes())
    part[part.find(chunkhit.ImageDataset(packs / "hdf5")[50][0].tobytes())] ^= 1
    (tmp_path / "part-00000.h5").write_bytes(part)
    for output in ("out.tar", "out.npz", "out"):
        done = command(tmp_path / "part-00000.h5", "-o", tmp_path / output)
        assert done.returncode == 65 and "checksum" in done.stderr
        assert os.listdir(tmp_path) == ["part-00000.h5"]


def test_says_what_cannot_be_exported(packs, own, ratings, tmp_path):
    for pack, output, words in (
            (packs / "hdf5", "out.csv", "output: expected .tar, .npz or a folder for images"),
            (packs / "hdf5", "out.zip", "output: expected .tar, .npz or a folder for images"),
            (packs / "hdf5", "out.tar.gz", "output: expected .tar, .npz or a folder for images"),
            (ratings[0] / "whole", "out", "output: expected .npz or .csv for ratings"),
            (own / "pack", "out.npz", "images of their own sizes make no array"),
            (ratings[0] / "split", "out.npz", "holds the packs test, train; export one of them")):
        done = command(pack, "-o", tmp_path / output)
        assert done.returncode == 2 and words in done.stderr
    assert command(packs / "hdf5").returncode == 2
    assert command(packs / "none", "-o", tmp_path / "out").returncode == 65
    assert command(packs / "hdf5", "-o", tmp_path / "none" / "out.tar").returncode == 73
    assert os.listdir(tmp_path) == []
    message = raised("usage", chunkhit.export_pack, ratings[0] / "whole", tmp_path / "x.npz", classes=["a"])
    assert message == "classes: are for images"


def test_datasets_of_an_external_file_are_named(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["val/x"], file["val/y"] = np.arange(240, dtype=np.uint8).reshape(10, 6, 4), np.arange(10)
    done = command(tmp_path / "in.h5", "-o", tmp_path / "out.npz", "--images", "val/x", "--labels", "val/y", "--quiet")
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "out.npz") as arrays:
        assert arrays["images"].ravel().tolist() == list(range(240)) and arrays["labels"].tolist() == list(range(10))


def test_progress_counts_what_was_written(packs, tmp_path):
    events = []
    chunkhit.export_pack(packs / "hdf5", tmp_path / "out.tar", progress=events.append)
    assert [event["rows_done"] for event in events] == list(range(1, 101))
    assert {(event["phase"], event["rows_total"]) for event in events} == {("exporting", 100)}


def test_the_build_has_the_command(packs, tmp_path):
    tool = os.path.join(os.path.dirname(chunkhit.__file__), "..", "..", "..", "tools", "pack-export")
    if not os.path.exists(os.path.join(os.path.dirname(tool), "pack-images")):
        pytest.skip("the package is installed, not built here")
    run = subprocess.run([tool, packs / "hdf5", "-o", tmp_path / "out.tar"], stdout=subprocess.PIPE, text=True,
                         env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"})
    assert (run.returncode, run.stdout) == (0, f"100 samples → {tmp_path}/out.tar\nto pack it again: pack-images {tmp_path}/out.tar "
                                               "--label-column class --order input -o PACK\n")
    assert len(groups_of(tmp_path / "out.tar")) == 100


def test_memory_is_that_of_a_few_runs_not_of_the_pack(tmp_path):
    """An array of 400 MB that is mostly a hole."""
    with h5py.File(tmp_path / "in.h5", "w") as file:
        images = file.create_dataset("images", (400, 1000, 1000), np.uint8, chunks=(1, 1000, 1000), compression="gzip")
        images[::40] = 7
        file["labels"] = np.arange(400)
    program = """
import resource, sys
from chunkhit import export

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
export.main(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    for output in ("out.npz", "out.tar"):
        run = subprocess.run([sys.executable, "-c", program, tmp_path / "in.h5", "-o", tmp_path / output, "--threads", "2"],
                             stdout=subprocess.PIPE, text=True, check=True)
        assert int(run.stdout.split()[-1]) < 200_000
    with np.load(tmp_path / "out.npz") as arrays:
        assert arrays["images"].shape == (400, 1000, 1000, 1) and arrays["images"][::40].min() == 7
        np.testing.assert_array_equal(arrays["labels"], np.arange(400))
    assert list(groups_of(tmp_path / "out.tar"))[:2] == ["000000000", "000000001"]
