"""Labels as JSON lines: the metadata.jsonl of Hugging Face's image folders."""
import gzip
import json

import pytest

import chunkhit

from tar_columns_test import shard

COUNT = 10
FILES = [f"{'ab'[n % 2]}/{n:03}.png" for n in range(COUNT)]


def write(path, rows, end="\n"):
    text = end.join(row if isinstance(row, str) else json.dumps(row) for row in rows) + end
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def packed(packs, path, output, **options):
    chunkhit.pack_images(packs / "images", output, labels=path, order="input", **options)
    return chunkhit.ImageDataset(output)


@pytest.mark.parametrize("name, end", [("metadata.jsonl", "\n"), ("metadata.jsonl", "\r\n"), ("metadata.jsonl.gz", "\n"),
                                       ("blank.jsonl", "\n \n\n")])
def test_keys_are_columns(packs, tmp_path, name, end):
    rows = [{"file_name": file, "boxes": [[1, 2]], "label": ["kräuter, \"a\"\nb", "bee"][n % 2], "age": n}
            for n, file in enumerate(FILES)]
    dataset = packed(packs, write(tmp_path / name, rows, end), tmp_path / "out", file_column="file_name", keep_columns=["age"])
    assert [each["name"] for each in dataset.info["classes"]] == ["bee", "kräuter, \"a\"\nb"]
    assert dataset.labels().tolist() == [1, 0] * 5
    assert dataset.column("age").tolist() == list(range(COUNT))
    assert list(dataset.keys()) == FILES


def test_it_packs_the_same_as_the_csv(packs, tmp_path):
    (tmp_path / "rows.csv").write_text("file,x,y\n" + "".join(f"{file},{n / 4},{n % 2}\n" for n, file in enumerate(FILES)))
    rows = [{"file": file, "x": n / 4, "y": n % 2 == 1} for n, file in enumerate(FILES)]
    one = packed(packs, tmp_path / "rows.csv", tmp_path / "one", label_column=["x", "y"])
    two = packed(packs, write(tmp_path / "rows.jsonl", rows), tmp_path / "two", label_column=["x", "y"])
    assert one.labels().tolist() == two.labels().tolist()


def test_a_list_is_several_labels(packs, tmp_path):
    rows = [{"file": file, "label": [["cat", "dog"], ["dog"], []][n % 3]} for n, file in enumerate(FILES)]
    path = write(tmp_path / "rows.jsonl", rows)
    dataset = packed(packs, path, tmp_path / "out", label_separator="|")
    assert dataset.labels()[:3].tolist() == [[1, 1], [0, 1], [0, 0]]
    with pytest.raises(chunkhit.Error, match=r'line 1: key "label" is a list of labels; label_separator'):
        packed(packs, path, tmp_path / "no")


def test_what_a_line_lacks_is_missing(packs, tmp_path):
    rows = [{"file": file, "label": "x", "age": n} for n, file in enumerate(FILES)]
    rows[3] = {"file": FILES[3], "label": None}
    rows[4] = {"file": FILES[4], "label": "x", "age": None}
    dataset = packed(packs, write(tmp_path / "rows.jsonl", rows), tmp_path / "out", keep_columns=["age"], max_errors=1)
    assert len(dataset) == COUNT - 1
    assert "label is missing" in (tmp_path / "out" / "rejects.csv").read_text()


@pytest.mark.parametrize("lines, message", [
    (['{"file": "a/000.png", "label": "x"}', "", "[1]"], "line 3: is no JSON object"),
    (['{"file": "a/000.png", "label": "x"}', '{"file": '], "line 2: is no JSON object"),
    (['{"file": "a/000.png", "label": {"a": 1}}'], 'line 1: key "label" is an object'),
    (['{"file_name": "a/000.png", "label": "x"}'], "file_column file_name"),
    (["{}"], "has no keys"),
    (["[", '{"file": "a/000.png", "label": "x"}', "]"], "holds a JSON array"),
])
def test_errors_name_the_line(packs, tmp_path, lines, message):
    with pytest.raises(chunkhit.Error) as error:
        packed(packs, write(tmp_path / "rows.jsonl", lines), tmp_path / "out")
    assert message in str(error.value)


def test_lists_and_truth_values_in_tars(packs, tmp_path):
    tags = shard(tmp_path / "tags.tar", packs, [{"label": [["cat", "dog"], ["dog"]][n % 2]} for n in range(COUNT)], cls=False)
    chunkhit.pack_images(tags, tmp_path / "tags", label_separator="|", order="input")
    assert chunkhit.ImageDataset(tmp_path / "tags").labels()[:2].tolist() == [[1, 1], [0, 1]]
    both = shard(tmp_path / "both.tar", packs, [{"cat": n % 2 == 0, "dog": n} for n in range(COUNT)], cls=False)
    chunkhit.pack_images(both, tmp_path / "both", label_column="cat,dog", order="input")
    assert chunkhit.ImageDataset(tmp_path / "both").labels()[:3].tolist() == [[1, 0], [0, 1], [1, 2]]
