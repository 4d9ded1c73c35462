"""Keys and kept columns: what the CSV says is what loaders, datasets, h5py and the manifest give."""
import csv
import json
import math
import os
import subprocess

import h5py
import numpy as np
import pytest

import chunkhit

NUMBERS = range(100)
CITIES = ["Köln", "", "a,\"b\"", "007"]
# By name: the text in the CSV, and the value in the pack.
COLUMNS = {
    "age": lambda n: (str(n - 50), n - 50),
    "big": lambda n: (str(2**62 + n), 2**62 + n),
    "score": lambda n: ("" if n % 7 == 0 else f"{n / 8}", math.nan if n % 7 == 0 else n / 8),
    "city": lambda n: (CITIES[n % 4], CITIES[n % 4]),
    "code": lambda n: (f"{n:05}", f"{n:05}"),
}
TYPES = {"age": "int64", "big": "int64", "score": "float64", "city": "text", "code": "text"}


def file_of(number):
    return f"{'ab'[number % 2]}/{number:03}.png"


@pytest.fixture(scope="module")
def table(packs):
    with open(packs / "people.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["file", "label", *COLUMNS, "unused"])
        writer.writerows([file_of(n), "ab"[n % 2], *(of(n)[0] for of in COLUMNS.values()), "x"] for n in NUMBERS)
    return packs / "people.csv"


@pytest.fixture(scope="module", params=["hdf5", "shard", "own sizes"])
def pack(request, packs, table):
    path = packs / f"people of {request.param}"
    sizes = {"sizes": "own"} if request.param.startswith("own") else {"chunk_samples": 7}
    container = "hdf5" if request.param == "hdf5" else "shard"
    chunkhit.pack_images(packs / "images", path, labels=table, keep_columns=list(COLUMNS), container=container,
                         part_bytes=6000, **sizes)
    return path


def expected(name, numbers):
    return [COLUMNS[name](n)[1] for n in numbers]


def assert_column(found, name, numbers):
    wanted = expected(name, numbers)
    if TYPES[name] == "text":
        assert found.dtype == object and found.tolist() == wanted
    else:
        assert found.dtype == TYPES[name]
        np.testing.assert_array_equal(found, np.array(wanted, TYPES[name]))


def numbers_of(keys):
    return [int(key[2:5]) for key in keys]


def test_dataset_gives_keys_and_columns(pack):
    dataset = chunkhit.ImageDataset(pack)
    assert len(dataset.info["parts"]) > 1
    assert dataset.info["columns"] == [{"name": name, "type": kind} for name, kind in TYPES.items()]
    keys = dataset.keys()
    assert sorted(keys) == sorted(file_of(n) for n in NUMBERS) and keys != sorted(keys)
    for name in COLUMNS:
        assert_column(dataset.column(name), name, numbers_of(keys))


def test_batches_have_keys_and_columns(pack):
    crop = dict(resized_crop=dict(height=4, width=4)) if "own" in pack.name else {}
    loader = chunkhit.ImageLoader(pack, batch_size=9, shuffle="global", seed=3, augment=crop)
    labels = loader.info["classes"]
    seen = []
    for batch in loader:
        numbers = numbers_of(batch.keys)
        for name in COLUMNS:
            assert_column(batch.column(name), name, numbers)
        assert [labels[label]["name"] for label in batch.labels] == ["ab"[n % 2] for n in numbers]
        seen += numbers
    assert sorted(seen) == list(NUMBERS)


def test_tensors_have_keys_and_columns(pack):
    torch = pytest.importorskip("torch")
    import chunkhit.torch

    crop = dict(resized_crop=dict(height=4, width=4)) if "own" in pack.name else {}
    batch = next(iter(chunkhit.torch.ImageLoader(pack, batch_size=9, shuffle="global", augment=crop)))
    assert isinstance(batch.samples, torch.Tensor)
    assert_column(batch.column("age"), "age", numbers_of(batch.keys))


def test_unknown_column_is_named(pack):
    with pytest.raises(chunkhit.Error, match='column: found "agee", expected one of age, big, score, city, code; '
                                             'did you mean "age"') as error:
        chunkhit.ImageDataset(pack).column("agee")
    assert error.value.code == "usage"


def test_more_columns_than_an_index_may_have_were_packed_and_not_read(packs, tmp_path):
    names = [f"c{number}" for number in range(1025)]
    (tmp_path / "list.csv").write_text(f"file,label,{','.join(names)}\na/000.png,0{',1' * 1025}\n")
    options = dict(labels=tmp_path / "list.csv", order="input", container="shard")
    with pytest.raises(chunkhit.Error, match="keep_columns: found 1,025 columns, expected at most 1,024") as error:
        chunkhit.pack_images(packs / "images", tmp_path / "pack", keep_columns=names, **options)
    assert error.value.code == "usage"
    chunkhit.pack_images(packs / "images", tmp_path / "pack", keep_columns=names[:-1], **options)
    assert chunkhit.ImageDataset(tmp_path / "pack").column("c1023").tolist() == [1]


def test_h5py_reads_columns(pack):
    if not pack.name.endswith("hdf5"):
        pytest.skip("no HDF5")
    for part in chunkhit.pack_info(pack)["parts"]:
        with h5py.File(pack / part["file"]) as file:
            numbers = numbers_of(file["files"].asstr()[:])
            for name in COLUMNS:
                column = file["columns"][name]
                values = column.asstr()[:] if TYPES[name] == "text" else column[:]
                assert_column(np.asarray(values, object if TYPES[name] == "text" else None), name, numbers)


def test_shards_of_a_pack_with_columns_are_valid_zstd(pack):
    if pack.name.endswith("hdf5"):
        pytest.skip("no shard")
    for part in chunkhit.pack_info(pack)["parts"]:
        subprocess.run(["zstd", "-tq", pack / part["file"]], check=True)


def test_pack_without_columns_has_none(packs):
    dataset = chunkhit.ImageDataset(packs / "shard")
    assert "columns" not in dataset.info and "keep-columns" not in dataset.info["spec"]
    assert sorted(dataset.keys())[0] == "a/000.png"
    with pytest.raises(chunkhit.Error, match='column: found "age", but .*shard has no columns; keep_columns keeps columns '
                                             'when images are packed'):
        dataset.column("age")


def test_plan_packs_the_same_bytes(packs, table, tmp_path):
    options = dict(labels=table, keep_columns=list(COLUMNS), container="shard", chunk_samples=7, part_bytes=6000)
    chunkhit.pack_images(packs / "images", tmp_path / "alone", **options)
    chunkhit.pack_images(packs / "images", tmp_path / "planned", plan=3, **options)
    for task in range(3):
        chunkhit.run_plan(tmp_path / "planned", task=task)
    chunkhit.run_plan(tmp_path / "planned")
    for part in chunkhit.pack_info(tmp_path / "alone")["parts"]:
        assert (tmp_path / "planned" / part["file"]).read_bytes() == (tmp_path / "alone" / part["file"]).read_bytes()
    manifests = [json.loads((tmp_path / name / "manifest.json").read_text()) for name in ("alone", "planned")]
    assert manifests[0]["columns"] == manifests[1]["columns"] and manifests[0]["pack_id"] == manifests[1]["pack_id"]


def test_list_and_rejects_pack_again_with_columns(packs, table, pack, tmp_path):
    command = os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-info")
    listed = subprocess.run([command, pack, "--list"], check=True, capture_output=True, text=True).stdout
    lines = list(csv.DictReader(listed.splitlines()))
    assert list(lines[0]) == ["file", "label", *COLUMNS, "row"]
    (tmp_path / "again.csv").write_text(listed)
    with open(tmp_path / "again.csv", "a", newline="") as file:
        csv.writer(file).writerow(["missing.png", "a", *(of(3)[0] for of in COLUMNS.values()), 100])
    chunkhit.pack_images(packs / "images", tmp_path / "again", labels=tmp_path / "again.csv", keep_columns=list(COLUMNS),
                         container="shard")
    again = chunkhit.ImageDataset(tmp_path / "again")
    for name in COLUMNS:
        assert_column(again.column(name), name, numbers_of(again.keys()))
    rejects = list(csv.DictReader(open(tmp_path / "again" / "rejects.csv", newline="")))
    assert [reject["file"] for reject in rejects] == ["missing.png"]
    assert {name: rejects[0][name] for name in COLUMNS} == {name: of(3)[0] for name, of in COLUMNS.items()}


def test_listed_numbers_stay_numbers(packs, tmp_path):
    texts = ["1.0", "1e300"]
    rows = [f"{file_of(n)},{n % 2},{texts[n % 2]}" for n in range(10)]
    (tmp_path / "rows.csv").write_text("file,label,value\n" + "\n".join(rows))
    chunkhit.pack_images(packs / "images", tmp_path / "pack", labels=tmp_path / "rows.csv", keep_columns=["value"])
    command = os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-info")
    (tmp_path / "list.csv").write_bytes(subprocess.check_output([command, tmp_path / "pack", "--list"]))
    chunkhit.pack_images(packs / "images", tmp_path / "again", labels=tmp_path / "list.csv", keep_columns=["value"])
    dataset = chunkhit.ImageDataset(tmp_path / "again")
    assert dataset.info["columns"] == [{"name": "value", "type": "float64"}]
    assert dataset.column("value").tolist() == [float(texts[n % 2]) for n in numbers_of(dataset.keys())]


def test_rejects_of_the_list_have_their_columns(packs, tmp_path):
    rows = [f"{file_of(n)},{n % 2},{n}" for n in NUMBERS] * 3
    rows[5] = rows[5].replace(",1,", ",odd,")  # under 1 % of the labels are no integers: a reject
    rows[9] = f"{file_of(9)},1,\udcff"  # not UTF-8
    rows[11] = f"{file_of(11)},1,{'x' * 1025}"
    (tmp_path / "rows.csv").write_bytes(("file,label,age\n" + "\n".join(rows)).encode(errors="surrogateescape"))
    chunkhit.pack_images(packs / "images", tmp_path / "pack", labels=tmp_path / "rows.csv", keep_columns=["age"])
    rejects = list(csv.DictReader(open(tmp_path / "pack" / "rejects.csv", newline="")))
    assert [reject["row"] for reject in rejects] == ["5", "9", "11"]
    assert rejects[0]["age"] == "5" and rejects[1]["age"] == "\\xff"
    assert "not UTF-8" in rejects[1]["reason"] and "1,025 bytes, expected at most 1,024" in rejects[2]["reason"]
    dataset = chunkhit.ImageDataset(tmp_path / "pack")
    assert dataset.column("age").dtype == np.int64
    np.testing.assert_array_equal(dataset.column("age"), numbers_of(dataset.keys()))


@pytest.mark.parametrize("texts, kind", [
    (["1", "2"], "int64"), ([" 1", "-2 "], "int64"), (["1", ""], "float64"), (["1", "nan"], "float64"), (["1.5", "2e3"], "float64"),
    ([str(2**53 + 1), ""], "text"), (["01", "2"], "text"), (["", ""], "text"), (["inf", "1"], "text"), (["0x1", "1"], "text"),
    (["+1", "2"], "text"), ([str(2**63), "1"], "text"), (["0.5", "00.5"], "text"),
])
def test_values_decide_the_type(packs, tmp_path, texts, kind):
    rows = [f"{file_of(n)},{n % 2},{texts[n % 2]}" for n in range(10)]
    (tmp_path / "rows.csv").write_text("file,label,value\n" + "\n".join(rows))
    chunkhit.pack_images(packs / "images", tmp_path / "pack", labels=tmp_path / "rows.csv", keep_columns=["value"])
    assert chunkhit.pack_info(tmp_path / "pack")["columns"] == [{"name": "value", "type": kind}]


@pytest.mark.parametrize("options, message", [
    (dict(keep_columns=["age", "age"]), 'column "age" is given twice'),
    (dict(keep_columns=["label"]), 'column "label" is given twice'),
    (dict(keep_columns=["a/b"]), "keep_columns: 'a/b' is no name for a dataset"),
    (dict(keep_columns=["agee"]), 'expected a header with a column "agee" for keep_columns.*did you mean "?age'),
    (dict(keep_columns=["age"], labels=None), "keep_columns: is for a CSV or for .json files in tars, found class folders"),
])
def test_wrong_columns_are_errors(packs, table, tmp_path, options, message):
    with pytest.raises(chunkhit.Error, match=message):
        chunkhit.pack_images(packs / "images", tmp_path / "pack", **{"labels": table, **options})


def test_merged_packs_have_columns_of_one_type(packs, table, tmp_path):
    options = dict(labels=table, container="shard")
    chunkhit.pack_images(packs / "images", tmp_path / "a", keep_columns=["age"], **options)
    chunkhit.pack_images(packs / "images", tmp_path / "b", keep_columns=["age"], seed=1, **options)
    chunkhit.pack_images(packs / "images", tmp_path / "c", keep_columns=["city"], **options)
    chunkhit.merge_packs([tmp_path / "a", tmp_path / "b"], tmp_path / "merged")
    merged = chunkhit.ImageDataset(tmp_path / "merged")
    assert_column(merged.column("age"), "age", numbers_of(merged.keys()))
    with pytest.raises(chunkhit.Error, match=r"columns are city \(text\), expected age \(int64\)"):
        chunkhit.merge_packs([tmp_path / "a", tmp_path / "c"], tmp_path / "none")
    both = chunkhit.ImageDataset([tmp_path / "a", tmp_path / "c"])
    assert "columns" not in both.info and len(both.keys()) == 200
    with pytest.raises(chunkhit.Error, match='column: found "age", which .*/a has and .*/c lacks; a column is available only'):
        both.column("age")
    with pytest.raises(chunkhit.Error, match='column: found "x", but .*/a and the other packs have in common no columns'):
        next(iter(chunkhit.ImageLoader([tmp_path / "a", tmp_path / "c"], batch_size=4))).column("x")
    texts = table.read_text().splitlines()
    (tmp_path / "texts.csv").write_text("\n".join([texts[0], *(line.replace(",-", ",x") for line in texts[1:])]))
    chunkhit.pack_images(packs / "images", tmp_path / "d", keep_columns=["age"], labels=tmp_path / "texts.csv")
    with pytest.raises(chunkhit.Error, match='"age", which is int64 in .*/a and text in .*/d; expected one type'):
        chunkhit.ImageDataset([tmp_path / "a", tmp_path / "d"]).column("age")


def test_changed_column_is_another_pack(packs, table, tmp_path):
    chunkhit.pack_images(packs / "images", tmp_path / "pack", labels=table, keep_columns=["age"])
    with pytest.raises(chunkhit.Error, match="keep-columns: age before, city now"):
        chunkhit.pack_images(packs / "images", tmp_path / "pack", labels=table, keep_columns=["city"])
