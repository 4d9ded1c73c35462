"""Columns of ImageWriter and pack_dataset: as pack_images keeps them of a table."""
import math

import numpy as np
import pytest

import chunkhit

COLUMNS = ["age", "score", "city"]
IMAGE = np.arange(6 * 8 * 3, dtype=np.uint8).reshape(6, 8, 3)


def columns(number):
    return {"age": number - 5, "score": None if number % 3 == 0 else number / 8, "city": ["Köln", "", "7"][number % 3]}


def write(output, values, names=("value",), **options):
    with chunkhit.ImageWriter(output, keep_columns=names, order="input", **options) as writer:
        for number, value in enumerate(values):
            writer.add(IMAGE + number, number % 2, f"k{number}", columns=value if isinstance(value, dict) else {"value": value})
    return chunkhit.ImageDataset(output)


@pytest.mark.parametrize("container", ["hdf5", "shard"])
def test_columns_are_those_that_were_added(tmp_path, container):
    dataset = write(tmp_path / "out", map(columns, range(20)), COLUMNS, container=container)
    assert dataset.info["columns"] == [{"name": "age", "type": "int64"}, {"name": "score", "type": "float64"},
                                       {"name": "city", "type": "text"}]
    assert dataset.info["spec"]["keep-columns"] == "age,score,city"
    assert dataset.column("age").tolist() == list(range(-5, 15))
    np.testing.assert_array_equal(dataset.column("score"), [math.nan if n % 3 == 0 else n / 8 for n in range(20)])
    assert dataset.column("city").tolist() == [["Köln", "", "7"][n % 3] for n in range(20)]
    batch = next(iter(chunkhit.ImageLoader(tmp_path / "out", batch_size=5)))
    assert batch.column("age").tolist() == [int(key[1:]) - 5 for key in batch.keys]


@pytest.mark.parametrize("values, kind, expected", [
    ([1, 2], "int64", [1, 2]), ([True, False], "int64", [1, 0]), ([np.int32(3), np.uint8(4)], "int64", [3, 4]),
    ([2**62, -(2**63)], "int64", [2**62, -(2**63)]),
    ([1.0, 2.0], "float64", [1, 2]), ([1, 0.1], "float64", [1, 0.1]), ([np.float32(0.5), 1e300], "float64", [0.5, 1e300]),
    ([None, math.nan], "float64", [math.nan, math.nan]), ([1, None], "float64", [1, math.nan]),
    (["7", "8"], "text", ["7", "8"]), (["", ""], "text", ["", ""]), (["x", None], "text", ["x", ""]),
])
def test_values_decide_the_type(tmp_path, values, kind, expected):
    dataset = write(tmp_path / "out", values)
    assert dataset.info["columns"] == [{"name": "value", "type": kind}]
    np.testing.assert_array_equal(dataset.column("value"), np.array(expected, object if kind == "text" else kind))


@pytest.mark.parametrize("first, second, message", [
    ({"value": 1}, {}, "k1: columns: 'value' is missing, found none"),
    ({"value": 1}, {"valu": 1}, "k1: columns: 'value' is missing, found valu"),
    ({"value": 1}, {"value": 1, "age": 2}, "k1: columns: found 'age', expected value; keep_columns names what each sample has"),
    (1, "x", 'k1: column "value": found a text, expected a number as before'),
    ("x", 1, 'k1: column "value": found a number, expected a text as before'),
    (0.5, 2**53, 'k1: column "value": has whole numbers from 2^53 on'),
    (2**53, 0.5, 'k1: column "value": has whole numbers from 2^53 on'),
    (1, 2**63, "k1: column 'value': expected a number that 64 bits hold"),
    (1, math.inf, 'k1: column "value": found inf, expected a finite number'),
    (1, [1], "k1: column 'value': expected a number or a text, found [1]"),
    ("x", "x" * 1025, 'k1: column "value": has 1,025 bytes, expected at most 1,024'),
])
def test_a_value_that_does_not_fit_is_an_error_and_is_not_added(tmp_path, first, second, message):
    of = lambda value: value if isinstance(value, dict) else {"value": value}
    with chunkhit.ImageWriter(tmp_path / "out", keep_columns=["value"]) as writer:
        writer.add(IMAGE, 0, "k0", of(first))
        with pytest.raises(chunkhit.Error) as error:
            writer.add(IMAGE, 0, "k1", of(second))
        assert error.value.code == "usage" and message in str(error.value)
        writer.add(IMAGE, 0, "k2", of(first))
    assert chunkhit.ImageDataset(tmp_path / "out").info["samples"] == 2


def test_samples_without_keys_are_named_by_their_number(tmp_path):
    with chunkhit.ImageWriter(tmp_path / "out", keep_columns="age") as writer:
        writer.add(IMAGE, 0, columns={"age": 1})
        with pytest.raises(chunkhit.Error, match="^sample 1: columns: 'age' is missing"):
            writer.add(IMAGE, 0)
        with pytest.raises(chunkhit.Error, match="^sample 1: column \"age\": found a text"):
            writer.add(IMAGE, 0, columns={"age": "x"})
        writer.close()
    with pytest.raises(chunkhit.Error, match='column "age" is given twice'):
        chunkhit.ImageWriter(tmp_path / "out", keep_columns=["age", "age"])


def test_an_unknown_class_is_an_error_when_it_is_added(tmp_path):
    with chunkhit.ImageWriter(tmp_path / "out", classes=["cat", "dog"]) as writer:
        writer.add(IMAGE, "dog", "a.png")
        with pytest.raises(chunkhit.Error) as error:
            writer.add(IMAGE, "cats", "b.png")
        assert error.value.code == "bad_data"
        assert str(error.value) == ('b.png: label: found class "cats", expected one of the class names cat, dog; did you mean '
                                    '"cat"?')
        writer.add(IMAGE, "cat", "c.png")
    dataset = chunkhit.ImageDataset(tmp_path / "out")
    assert sorted(dataset.keys()) == ["a.png", "c.png"] and len(dataset.info["classes"]) == 2


class Rows:
    """A dataset whose samples have a dict of columns behind their label."""

    def __init__(self, form):
        self.form = form

    def __len__(self):
        return 9

    def __getitem__(self, number):
        if number >= len(self):
            raise IndexError
        fields = {**columns(number), "unused": [number]}
        return {"dict": {"image": IMAGE + number, "label": 0, **fields}, "pair": (IMAGE + number, 0, fields),
                "triple": (IMAGE + number, 0, f"k{number}", fields)}[self.form]


@pytest.mark.parametrize("form", ["dict", "pair", "triple"])
def test_datasets_give_columns(tmp_path, form):
    chunkhit.pack_dataset(Rows(form), tmp_path / "out", keep_columns=COLUMNS, order="input")
    dataset = chunkhit.ImageDataset(tmp_path / "out")
    assert dataset.column("age").tolist() == list(range(-5, 4))
    assert dataset.column("city").tolist() == ["Köln", "", "7"] * 3
    assert dataset.keys()[3] == ("k3" if form == "triple" else "3")


def test_a_sample_of_a_dataset_that_lacks_a_column_is_named(tmp_path):
    samples = [(IMAGE, 0, {"age": 1}), (IMAGE, 0)]
    with pytest.raises(chunkhit.Error, match="^sample 1: columns: 'age' is missing, found none"):
        chunkhit.pack_dataset(samples, tmp_path / "out", keep_columns=["age"])
    samples = [{"image": IMAGE, "label": 0, "age": 1}, {"image": IMAGE, "label": 0}]
    with pytest.raises(chunkhit.Error, match="^sample 1: has no 'age', only 'image', 'label'; keep_columns= names what it has"):
        chunkhit.pack_dataset(samples, tmp_path / "out", keep_columns=["age"])


def test_a_dict_of_columns_without_keep_columns_is_an_error(tmp_path):
    with pytest.raises(chunkhit.Error, match="^sample 0: columns: found 'age', expected none; keep_columns names those to keep"):
        chunkhit.pack_dataset([(np.zeros((4, 4, 3), np.uint8), 0, "a", {"age": 3})], tmp_path / "out", progress=None)


def test_other_columns_are_another_pack(tmp_path):
    ids = []
    for number, values in enumerate([[1, 2], [1, 3]]):
        write(tmp_path / str(number), values)
        ids.append(chunkhit.pack_info(tmp_path / str(number))["pack_id"])
    assert ids[0] != ids[1]


def test_exported_texts_of_digits_stay_texts(tmp_path):
    write(tmp_path / "out", ["7", "8", "9"])
    chunkhit.export_pack(tmp_path / "out", tmp_path / "out.tar")
    chunkhit.pack_images(tmp_path / "out.tar", tmp_path / "again", keep_columns=["value"], order="input")
    dataset = chunkhit.ImageDataset(tmp_path / "again")
    assert dataset.column("value").tolist() == ["7", "8", "9"] and dataset.column("value").dtype == object
