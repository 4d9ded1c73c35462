"""Tables as competitions give them: ids for files, many label columns, several names in a cell."""
import json
import os
import subprocess
import tarfile

import numpy
import pytest
from PIL import Image

import chunkhit


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of 000.jpg to 011.jpg."""
    root = tmp_path_factory.mktemp("competition") / "train"
    root.mkdir()
    for number in range(12):
        Image.new("RGB", (8, 8), (number * 20, 0, 0)).save(root / f"{number:03}.jpg")
    return root


def table(folder, header, rows):
    path = folder.parent / "train.csv"
    path.write_text("".join([header + "\n", *(f"{row}\n" for row in rows)]))
    return path


def manifest_of(pack):
    with open(pack / "manifest.json") as file:
        return json.load(file)


def command(*arguments, code=0):
    done = subprocess.run([os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-images"), *map(str, arguments), "--progress", "none"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == code, done.stdout
    return done.stdout


def tool(name, *arguments):
    return subprocess.check_output([os.path.join(os.environ["CHUNKHIT_TOOLS"], name), *map(str, arguments)], text=True)


def test_the_extension_of_ids_is_appended(folder, tmp_path):
    ids = table(folder, "image_id,breed", [*(f"{n:03},{'ab'[n % 2]}" for n in range(12)), "012,"])
    said = command(folder, "--labels", ids, "--file-column", "image_id", "--label-column", "breed", "--max-errors", "1",
                   "-o", tmp_path / "out")
    assert f"note: file names of {ids} have no extension: .jpg is appended\n" in said
    assert "12 of 13 rows packed" in said
    assert (tmp_path / "out/rejects.csv").read_text().splitlines()[1] == "12,012.jpg,,label is missing"
    files = chunkhit.ImageDataset(tmp_path / "out").keys()
    assert sorted(files) == [f"{n:03}.jpg" for n in range(12)]


def test_ids_of_files_of_several_kinds_are_an_error(folder, tmp_path):
    ids = table(folder, "file,label", [f"{n:03},a" for n in range(12)])
    other = folder / "003.png"
    Image.new("RGB", (8, 8)).save(other)
    try:
        said = command(folder, "--labels", ids, "-o", tmp_path / "out", code=65)
    finally:
        other.unlink()
    assert (f"{ids}: file names have no extension, and files of these names below {folder} have several: 000.jpg, 003.png; write the "
            "extensions into the table, or give a folder of one kind as ROOT") in said


@pytest.mark.parametrize("rows", [["000,a", "001.jpg,a", "002.jpg,a"], ["x,a", "y,a"]])
def test_no_extension_is_appended_where_a_file_exists_or_none_has_the_name(folder, tmp_path, rows):
    said = command(folder, "--labels", table(folder, "file,label", rows), "-o", tmp_path / "out", "--max-errors", "1",
                   code=0 if "001.jpg,a" in rows else 65)
    assert "have no extension" not in said and "no such file" in said


@pytest.mark.parametrize("first", ["000", "000.jpg", "images/000.jpg"])
def test_names_of_files_in_other_folders_say_where_they_are(folder, tmp_path, first):
    """Files in class folders were "no such file", each on its own."""
    os.rename(folder, folder.parent / "of_class")
    folder.mkdir()
    os.rename(folder.parent / "of_class", folder / "cat")
    try:
        rows = table(folder, "file,label", [f"{first},a", f"{first.replace('000', '001')},b"])
        said = command(folder, "--labels", rows, "-o", tmp_path / "out", code=65)
    finally:
        os.rename(folder / "cat", folder.parent / "of_class")
        folder.rmdir()
        os.rename(folder.parent / "of_class", folder)
    assert (f"{rows}: file names are paths below {folder}: none of them is there, the first is {first}, but cat/000.jpg is; write the folders "
            "into the table") in said


def test_paths_that_begin_above_the_root_say_so(folder, tmp_path):
    """They were to be written with their folders, which they had."""
    rows = table(folder, "file,label", [f"{folder.name}/000.jpg,a", f"{folder.name}/001.jpg,b"])
    assert "give the folder in which these paths begin as ROOT" in command(folder, "--labels", rows, "-o", tmp_path / "out", code=65)


def test_a_list_of_tars_says_what_to_give(folder, tmp_path):
    with tarfile.open(tmp_path / "0.tar", "w") as tar:
        for n in range(12):
            tar.add(folder / f"{n:03}.jpg", f"{'ab'[n % 2]}/{n:03}.jpg")
    command(tmp_path, "-o", tmp_path.parent / "of_tars", "--force")
    (tmp_path / "list.csv").write_text(tool("pack-info", tmp_path.parent / "of_tars", "--list"))
    said = command(tmp_path, "--labels", tmp_path / "list.csv", "-o", tmp_path.parent / "again", "--force", code=65)
    assert "where files are members of tars, give the tars as ROOT" in said
    assert "12 of 12 rows packed" in command(tmp_path / "0.tar", "--labels", tmp_path / "list.csv", "-o", tmp_path.parent / "again", "--force")


@pytest.mark.parametrize("column", ["cat,dog,owl", "cat-owl", ["cat", "dog", "owl"]])
def test_several_label_columns_are_said_in_three_ways(folder, tmp_path, column):
    rows = table(folder, "file,cat,dog,owl,more", [f"{n:03}.jpg,{n % 2},0.5,{n},x" for n in range(12)])
    info = chunkhit.pack_images(folder, tmp_path / "out", labels=rows, label_column=column, order="input")
    assert info["labels"] == {"kind": "numbers", "columns": ["cat", "dog", "owl"]}
    assert chunkhit.ImageDataset(tmp_path / "out").labels().tolist() == [[n % 2, 0.5, n] for n in range(12)]
    assert manifest_of(tmp_path / "out")["spec"]["label-column"] == "cat,dog,owl"
    chunkhit.pack_images(folder, tmp_path / "out", labels=rows, label_column=["cat", "dog", "owl"], order="input")  # the same pack


def test_a_cell_holds_several_names(folder, tmp_path):
    names = ["cat", "dog", "cat dog", "owl  cat"]
    tags = table(folder, "image,tags", [f"{n:03}.jpg,{names[n % 4]}" for n in range(12)])
    flags = ("--labels", tags, "--file-column", "image", "--label-column", "tags", "--label-separator", " ", "--order", "input")
    said = command(folder, *flags, "-o", tmp_path / "out", "--save-config", tmp_path / "recipe.toml")
    assert "labels: numbers, 3 columns of float32: cat, dog, owl\n" in said
    dataset = chunkhit.ImageDataset(tmp_path / "out")
    assert dataset.info["labels"]["columns"] == ["cat", "dog", "owl"]
    assert dataset.labels()[:4].tolist() == [[1, 0, 0], [0, 1, 0], [1, 1, 0], [1, 0, 1]]
    spec = manifest_of(tmp_path / "out")["spec"]
    assert (spec["label-column"], spec["label-separator"]) == ("tags", " ")
    again = command("--config", tmp_path / "recipe.toml", "-o", tmp_path / "out")
    assert "already packed" in again, again
    # Another list with fewer names has the same columns.
    some = table(folder, "file,label", ["000.jpg,owl", "001.jpg,dog"])
    chunkhit.pack_images(folder, tmp_path / "some", labels=some, label_separator=" ", classes=tmp_path / "out", order="input")
    assert chunkhit.ImageDataset(tmp_path / "some").labels().tolist() == [[0, 0, 1], [0, 1, 0]]
    both = chunkhit.ImageLoader([tmp_path / "out", tmp_path / "some"], batch_size=14)
    assert next(iter(both)).labels.shape == (14, 3)


def test_rejects_of_sets_of_names_can_be_packed_again(folder, tmp_path):
    (folder / "bad.jpg").write_bytes(b"no image")
    tags = table(folder, "file,label", ["000.jpg,a b", "001.jpg,b", "bad.jpg,a", "002.jpg,"])
    try:
        said = command(folder, "--labels", tags, "--label-separator", " ", "--empty-labels", "reject", "--max-errors", "2",
                       "-o", tmp_path / "out")
    finally:
        (folder / "bad.jpg").unlink()
    assert "2 of 4 rows packed, 2 rejected" in said
    lines = (tmp_path / "out/rejects.csv").read_text().splitlines()
    assert lines[0] == "row,file,label,reason" and lines[1].startswith("2,bad.jpg,a,") and lines[2] == "3,002.jpg,,label is missing"
    Image.new("RGB", (8, 8)).save(folder / "bad.jpg")
    try:
        said = command(folder, "--labels", tmp_path / "out/rejects.csv", "--label-separator", " ", "--classes", tmp_path / "out",
                       "--empty-labels", "reject", "--max-errors", "1", "-o", tmp_path / "mended")
    finally:
        (folder / "bad.jpg").unlink()
    assert chunkhit.ImageDataset(tmp_path / "mended").labels().tolist() == [[1, 0]], said


@pytest.mark.parametrize("header, cells, flags", [
    ("image,tags", ["cat", "dog", "cat, dog", "owl ,cat"], ["--file-column", "image", "--label-column", "tags", "--label-separator", ","]),
    ("file,a,b,c", ["1,0,1", "0,0,1", "0,1,0", "1,1,1"], ["--label-column", "a-c"]),
    ("file,a,x,b", ["0.5,t,-1", "2,u,0", "1e-3,v,1", "7,w,16777216"], ["--label-column", "b,a", "--keep-columns", "x"]),
])
@pytest.mark.parametrize("container", ["hdf5", "shard"])
def test_the_list_of_a_pack_has_the_columns_that_it_was_packed_from(folder, tmp_path, header, cells, flags, container):
    """A list of 0 and 1 for each name could not be packed with the options that the names were packed with."""
    quoted = [f'"{cell}"' if "tags" in header else cell for cell in cells]
    rows = table(folder, header, [f"{n:03}.jpg,{quoted[n % 4]}" for n in range(12)])
    command(folder, "--labels", rows, *flags, "--container", container, "-o", tmp_path / "out")
    listed = tmp_path / "list.csv"
    listed.write_text(tool("pack-info", tmp_path / "out", "--list"))
    assert listed.read_text().splitlines()[0] == ("file,b,a,x,row" if "x" in header else f"{header},row")
    command(folder, "--labels", listed, *flags, "--container", container, "-o", tmp_path / "again")
    before, after = (chunkhit.ImageDataset(tmp_path / name) for name in ("out", "again"))
    assert before.info["labels"] == after.info["labels"]
    labels = [dict(zip(dataset.keys(), dataset.labels().tolist())) for dataset in (before, after)]
    assert labels[0] == labels[1] and len(labels[0]) == 12


def test_names_and_counts_of_labels_of_0_and_1_are_shown(folder, tmp_path):
    names = ["cat", "dog", "cat dog", "owl cat"]
    tags = table(folder, "file,label", [f"{n:03}.jpg,{names[n % 4]}" for n in range(12)])
    command(folder, "--labels", tags, "--label-separator", " ", "-o", tmp_path / "out", "--split", "train=0.5,val=0.5")
    info = tool("pack-info", tmp_path / "out/train")
    assert "labels     float32, 3 columns of 0 and 1; samples with 1:\n" in info
    counts = chunkhit.ImageDataset(tmp_path / "out/train").labels().sum(axis=0).astype(int).tolist()
    assert [line.split()[:3] for line in info.splitlines() if line.endswith("#")] == \
        [[str(at), name, str(count)] for at, (name, count) in enumerate(zip(("cat", "dog", "owl"), counts))]
    for described in (chunkhit.pack_info(tmp_path / "out/train"), json.loads(tool("pack-info", tmp_path / "out/train", "--json")),
                      chunkhit.pack_info(next((tmp_path / "out/train").glob("part-*.h5")))):
        assert described["label_counts"] == counts
    for kind in (chunkhit.ImageDataset, chunkhit.ImageLoader):
        found = kind([tmp_path / "out/train", tmp_path / "out/val"])
        assert (found.classes, found.class_to_idx) == (["cat", "dog", "owl"], {"cat": 0, "dog": 1, "owl": 2})
        assert found.class_counts == [9, 6, 3]
    sheet = chunkhit.show(tmp_path / "out/train")
    assert "3 label columns" in repr(sheet) and "owl" in sheet._repr_html_()


def test_labels_of_other_numbers_are_not_counted(folder, tmp_path):
    rows = table(folder, "file,x,y", [f"{n:03}.jpg,{n % 2},{n / 2}" for n in range(12)])
    chunkhit.pack_images(folder, tmp_path / "out", labels=rows, label_column="x,y")
    dataset = chunkhit.ImageDataset(tmp_path / "out")
    assert (dataset.classes, dataset.class_counts) == ([], []) and "label_counts" not in dataset.info
    assert "labels     float32, 2 columns: x, y\n" in tool("pack-info", tmp_path / "out")


@pytest.mark.parametrize("cells, separator, words", [
    (["cat|dog", "dog"], " ", "no cell holds the --label-separator ' ': each is one name, as \"cat|dog\"; is it '|'?"),
    (["cat", "dog"], ",", "no cell holds the --label-separator ',': each is one name, as \"cat\"; is it the right one?"),
])
def test_a_separator_that_no_cell_holds_was_not_noticed(folder, tmp_path, cells, separator, words):
    tags = table(folder, "file,label", [f"{n:03}.jpg,{cells[n % 2]}" for n in range(12)])
    assert f'note: column "label": {words}\n' in command(folder, "--labels", tags, "--label-separator", separator, "-o", tmp_path / "out")


@pytest.mark.parametrize("options, words", [
    ({"subset": ["dog"]}, r"subset: .* labels are numbers \(cat, dog\): give the numbers of samples, in Python "
                          r"numpy.flatnonzero\(dataset.labels\(\)\[:, 1\]\)$"),
    ({"sampler": "balanced"}, r"sampler: .* labels are numbers \(cat, dog\): give a weight for each sample$"),
    ({"sampler": {"dog": 1.0}}, r"sampler: .* labels are numbers \(cat, dog\): give a weight for each sample$"),
])
def test_classes_of_labels_of_0_and_1_say_what_is_in_their_place(folder, tmp_path, options, words):
    tags = table(folder, "file,label", [f"{n:03}.jpg,{('cat', 'dog', 'cat dog')[n % 3]}" for n in range(12)])
    chunkhit.pack_images(folder, tmp_path / "out", labels=tags, label_separator=" ")
    with pytest.raises(chunkhit.Error, match=words):
        chunkhit.ImageLoader(tmp_path / "out", batch_size=2, **options)
    chunkhit.export_pack(tmp_path / "out", tmp_path / "dogs.npz", classes=["dog"])
    with numpy.load(tmp_path / "dogs.npz") as exported:
        assert len(exported["labels"]) == 8 and exported["labels"][:, 1].all()
    dogs = numpy.flatnonzero(chunkhit.ImageDataset(tmp_path / "out").labels()[:, 1])
    assert chunkhit.ImageLoader(tmp_path / "out", batch_size=2, subset=dogs).epoch_samples == 8


def test_a_dataset_of_label_columns_is_packed_again(folder, tmp_path):
    """Its classes were taken for names of class ids."""
    tags = table(folder, "file,label", [f"{n:03}.jpg,{('cat', 'dog', 'cat dog')[n % 3]}" for n in range(12)])
    chunkhit.pack_images(folder, tmp_path / "out", labels=tags, label_separator=" ")
    dataset = chunkhit.ImageDataset(tmp_path / "out")
    chunkhit.pack_dataset(dataset, tmp_path / "again", label_column=dataset.classes, order="input")
    again = chunkhit.ImageDataset(tmp_path / "again")
    assert again.classes == ["cat", "dog"] and again.labels().tolist() == dataset.labels().tolist()


def test_merged_rejects_of_names_and_of_columns_have_the_same_fields(folder, tmp_path, logs):
    tables = {"names": (["000.jpg,a b", "001.jpg,b", '"none, 1.jpg",a'], "file,label", dict(label_separator=" ")),
              "columns": (["002.jpg,1,0", "003.jpg,0,1", '"none, 2.jpg",1,1'], "file,a,b", dict(label_column="a,b"))}
    for name, (rows, header, options) in tables.items():
        with logs("rejected"):
            chunkhit.pack_images(folder, tmp_path / name, labels=table(folder, header, rows), max_errors=1, **options)
    chunkhit.merge_packs([tmp_path / "names", tmp_path / "columns"], tmp_path / "one")
    chunkhit.merge_packs([tmp_path / "columns", tmp_path / "names"], tmp_path / "two")
    assert (tmp_path / "one/rejects.csv").read_text().splitlines() == [
        "pack,row,file,label,reason", '0,2,"none, 1.jpg",a,no such file', '1,2,"none, 2.jpg",,no such file']
    assert (tmp_path / "two/rejects.csv").read_text().splitlines() == [
        "pack,row,file,a,b,reason", '0,2,"none, 2.jpg",1,1,no such file', '1,2,"none, 1.jpg",,,no such file']


def test_a_plan_has_the_labels_of_sets(folder, tmp_path):
    tags = table(folder, "file,label", [f"{n:03},{'ab'[n % 2]} c" for n in range(12)])
    flags = ("--labels", tags, "--label-separator", " ", "--part-bytes", "800", "--chunk-samples", "2")
    command(folder, *flags, "-o", tmp_path / "one")
    said = command(folder, *flags, "-o", tmp_path / "planned", "--plan", "3")
    assert "slurm.sh" in said and "samples/jobs" in said
    run = os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-run")
    subprocess.run([run, tmp_path / "planned", "--progress", "none"], check=True, stdout=subprocess.DEVNULL)
    one, planned = (manifest_of(tmp_path / name) for name in ("one", "planned"))
    assert one["pack_id"] == planned["pack_id"] and one["labels"] == planned["labels"]


@pytest.mark.parametrize("flags, words", [
    (("--label-column", "a,b", "--label-separator", " "), "--label-separator: is for one --label-column, whose cells hold several names"),
    (("--label-separator", " ", "--label-type", "numbers"), "--label-type: excludes --label-separator, which takes labels as names"),
])
def test_separators_go_with_one_column_of_names(folder, tmp_path, flags, words):
    rows = table(folder, "file,a,b", ["000.jpg,1,2"])
    assert words in command(folder, "--labels", rows, *flags, "-o", tmp_path / "out", code=2)


def test_images_without_a_label_among_several_were_rejected(folder, tmp_path):
    ids = table(folder, "file,label", [*(f"{n:03}.jpg,{('a;b', 'b', '', ' ; ')[n % 4]}" for n in range(12))])
    said = command(folder, "--labels", ids, "--label-separator", ";", "-o", tmp_path / "out")
    assert "note: 6 images have none of the labels: all of theirs are 0 (--empty-labels reject rejects them)\n" in said
    assert "12 of 12 rows packed, 0 rejected" in said
    dataset = chunkhit.ImageDataset(tmp_path / "out")
    assert sorted(map(tuple, dataset.labels().tolist())) == [(0, 0)] * 6 + [(0, 1)] * 3 + [(1, 1)] * 3
    assert {entry["name"]: entry["value"] for entry in spec_of(tmp_path / "out")}["empty-labels"] == "zeros"
    said = command(folder, "--labels", ids, "--label-separator", ";", "--empty-labels", "reject", "--max-errors", "100%",
                   "-o", tmp_path / "rejects")
    assert "6 of 12 rows packed, 6 rejected" in said and "label is missing" in said


def spec_of(pack):
    return [dict(name=name, value=value) for name, value in manifest_of(pack)["spec"].items()]


def test_empty_labels_are_recorded_where_they_matter(folder, tmp_path):
    ids = table(folder, "file,label", [*(f"{n:03}.jpg,{('a;b', 'b')[n % 2]}" for n in range(12))])
    command(folder, "--labels", ids, "--label-separator", ";", "-o", tmp_path / "out")
    assert "empty-labels" not in manifest_of(tmp_path / "out")["spec"]
    said = command(folder, "--labels", ids, "--empty-labels", "reject", "-o", tmp_path / "none", code=2)
    assert "--empty-labels: needs --label-separator" in said


@pytest.mark.parametrize("text", ['["cat","dog"]', "['cat', 'dog']", "['cat' 'dog']", "['cat'\n 'dog'\n]"])
def test_lists_as_programs_write_them(folder, text):
    """Of JSON, pandas and NumPy; each was one name, brackets and all."""
    rows = [f'{number:03}.jpg,"{cell}"' for number, cell in enumerate([text.replace('"', '""'), "[]", "['bee']", "bee|cat"] * 3)]
    labels = table(folder, "file,label", rows)
    chunkhit.pack_images(folder, folder.parent / "lists", labels=labels, label_separator="|", order="input", force=True)
    dataset = chunkhit.ImageDataset(folder.parent / "lists")
    assert dataset.info["labels"]["columns"] == ["bee", "cat", "dog"]
    assert dataset.labels()[:4].tolist() == [[0, 1, 1], [0, 0, 0], [1, 0, 0], [1, 1, 0]]
    escaped = table(folder, "file,label", ['000.jpg,"[""caf\\u00e9""]"', "001.jpg,['bee']"])
    said = command(folder, "--labels", escaped, "--label-separator", "|", "--max-errors", "1", "-o", folder.parent / "escaped", "--force")
    assert "label is a list with backslashes in it, expected plain names" in said
    table(folder, "file,label", rows)
    said = command(folder, "--labels", labels, "-o", folder.parent / "classes", "--dry-run")
    assert "labels are lists, each of which is a class of its own; --label-separator '|' packs them" in said


def test_paths_of_windows(folder):
    rows = [f"train\\{number:03}.jpg,a" for number in range(12)]
    said = command(folder.parent, "--labels", table(folder, "file,label", rows), "-o", folder.parent / "windows", "--order", "input")
    assert "12 of 12 rows packed" in said and "paths have backslashes, as train\\000.jpg, which are taken for slashes" in said
    assert chunkhit.ImageDataset(folder.parent / "windows").keys() == [f"train/{number:03}.jpg" for number in range(12)]
    # A file whose name has a backslash is that file.
    Image.new("RGB", (8, 8)).save(folder / "a\\b.jpg")
    said = command(folder, "--labels", table(folder, "file,label", ["a\\b.jpg,a"]), "-o", folder.parent / "named")
    assert "1 of 1 row packed" in said and "backslashes" not in said
    os.remove(folder / "a\\b.jpg")


def test_run_lengths_are_no_masks(folder):
    labels = table(folder, "file,label,rle", ["000.jpg,a,1 3 10 5", "001.jpg,a,7 2"])
    said = command(folder, "--labels", labels, "--mask-column", "rle", "-o", folder.parent / "rle", code=65)
    assert "mask is run-length encoded, expected the path of an image: write masks as PNG files first" in said


def test_labels_in_another_encoding(folder):
    labels = folder.parent / "cp1252.csv"
    labels.write_bytes("file,label\n000.jpg,a\n001.jpg,caf\u00e9\n".encode("cp1252"))
    said = command(folder, "--labels", labels, "--max-errors", "1", "-o", folder.parent / "cp1252")
    assert "label is not UTF-8; iconv -f cp1252 -t utf-8 converts texts of Windows" in said


def test_imagenets_mapping_has_the_ids_of_classes(folder):
    root = folder.parent / "synsets"
    for name in ("n01443537", "n01440764"):
        (root / name).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(root / name / "x.jpg")
    mapping = folder.parent / "LOC_synset_mapping.txt"
    mapping.write_text("n01443537 goldfish, Carassius auratus\nn01440764 tench, Tinca tinca\n")
    chunkhit.pack_images(root, folder.parent / "mapped", classes=mapping, order="input")
    dataset = chunkhit.ImageDataset(folder.parent / "mapped")
    assert list(dataset.classes) == ["n01443537", "n01440764"]
    assert dict(zip(dataset.keys(), dataset.labels().tolist())) == {"n01440764/x.jpg": 1, "n01443537/x.jpg": 0}
