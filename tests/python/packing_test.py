"""pack_images and pack_sparse: packing in this process."""
import json
import shutil
import os
import re
import signal
import struct
import subprocess
import sys
import tarfile
import threading

import numpy as np
import pytest
from PIL import Image

import chunkhit


def test_gives_what_pack_info_says(packs, ratings):
    info = chunkhit.pack_info(packs / "numbers")
    assert (info["samples"], info["sample"]["height"], info["sample"]["width"]) == (100, 6, 8)
    assert chunkhit.pack_info(ratings[0] / "whole")["columns"] == 97


def test_verifies_a_pack(packs, tmp_path):
    report = chunkhit.verify_pack(packs / "hdf5", threads=1)
    assert (report["samples"], report["problems"], report["external"]) == (100, [], False)
    shutil.copytree(packs / "hdf5", tmp_path / "damaged")
    part = tmp_path / "damaged" / "part-00000.h5"
    part.write_bytes(part.read_bytes()[:-9])
    report = chunkhit.verify_pack(tmp_path / "damaged", quick=True)
    assert report["problems"] and str(part) in report["remove_to_rebuild"]
    assert chunkhit.pack_info(tmp_path / "damaged")["problems"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(chunkhit.Error, match="no finished pack") as caught:
        chunkhit.verify_pack(tmp_path / "empty")
    assert caught.value.code == "bad_data"
    with pytest.raises(chunkhit.Error, match="is a pack") as caught:
        chunkhit.pack_info(packs / "hdf5", images="pixels")
    assert caught.value.code == "usage"


def test_packs_the_pixels_that_pillow_makes(packs, tmp_path):
    chunkhit.pack_images(packs / "images", tmp_path / "out", resize=(12, 10), crop=(8, 6), progress=False)
    files = sorted((packs / "images").glob("*/*.png"))
    expected = {Image.open(file).resize((12, 10), Image.BILINEAR).crop((2, 2, 10, 8)).tobytes() for file in files}
    images, _ = chunkhit.ImageDataset(tmp_path / "out")[:]
    assert images.shape == (100, 6, 8, 3)
    assert {image.tobytes() for image in images} == expected


def test_says_that_transparent_pixels_get_their_hidden_colors(tmp_path, caplog):
    (tmp_path / "in/a").mkdir(parents=True)
    for name in ("1.png", "2.png"):
        Image.new("RGBA", (8, 6), (255, 0, 0, 0)).save(tmp_path / "in/a" / name)
    for channels, warns in ("rgb", True), ("gray", True), ("rgba", False), ("keep", False):
        caplog.clear()
        chunkhit.pack_images(tmp_path / "in", tmp_path / channels, channels=channels)
        assert ("has alpha, which is dropped" in caplog.text) == warns
        # The other one, which is not the first, was not counted.
        assert ("2 images have alpha, which was dropped" in caplog.text) == warns
        assert chunkhit.pack_info(tmp_path / channels)["inputs"].get("alpha_dropped", 0) == (2 if warns else 0)
    assert chunkhit.ImageDataset(tmp_path / "rgb")[0][0][0, 0].tolist() == [255, 0, 0]


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
@pytest.mark.parametrize("channels", ["rgb", "gray"])
def test_transparent_pixels_had_no_way_to_show_a_background(tmp_path, caplog, mode, channels):
    (tmp_path / "in/a").mkdir(parents=True)
    image = Image.fromarray(np.random.default_rng(3).integers(0, 256, (30, 40, 4), dtype=np.uint8), "RGBA")
    if mode == "P":
        image.convert("RGB").quantize(256).save(tmp_path / "in/a/1.png", transparency=bytes(range(256)))
    else:
        image.convert(mode).save(tmp_path / "in/a/1.png")
    color = (250, 20, 130)
    options = dict(resize=(16, 12), channels=channels, background=color)
    chunkhit.pack_images(tmp_path / "in", tmp_path / "out", **options)
    assert "alpha" not in caplog.text
    image = Image.open(tmp_path / "in/a/1.png").convert("RGBA")
    expected = Image.new("RGB", image.size, color)
    expected.paste(image, mask=image.getchannel("A"))
    expected = expected.convert("L" if channels == "gray" else "RGB").resize((16, 12), Image.BILINEAR)
    np.testing.assert_array_equal(chunkhit.ImageDataset(tmp_path / "out")[0][0].squeeze(), np.asarray(expected))
    assert "alpha_dropped" not in chunkhit.pack_info(tmp_path / "out")["inputs"]
    with chunkhit.ImageWriter(tmp_path / "written", **options) as writer:
        writer.add(Image.open(tmp_path / "in/a/1.png"), 0)
    np.testing.assert_array_equal(chunkhit.ImageDataset(tmp_path / "written")[0][0].squeeze(), np.asarray(expected))


def test_a_background_behind_samples_that_keep_alpha_is_an_error(packs, tmp_path):
    with pytest.raises(chunkhit.Error, match="background.*is for samples without alpha"):
        chunkhit.pack_images(packs / "images", tmp_path / "out", channels="rgba", background=(255, 255, 255))


def test_packs_tars_and_idx_files(packs, tmp_path):
    files = sorted((packs / "images").glob("*/*.png"))
    for name, some in (("0.tar", files[:50]), ("1.tar.gz", files[50:])):
        with tarfile.open(tmp_path / name, "w:gz" if name.endswith("gz") else "w") as tar:
            for file in some:
                tar.add(file, f"{file.parent.name}/{file.name}")
    tars = [tmp_path / "0.tar", str(tmp_path / "1.tar.gz")]
    info = chunkhit.pack_images(tars, tmp_path / "tars", order="input", progress=False)
    assert info["samples"] == 100 and [record["name"] for record in info["classes"]] == ["a", "b"]
    expected = [np.asarray(Image.open(file)) for file in files]
    images, labels = chunkhit.ImageDataset(tmp_path / "tars")[:]
    assert np.array_equal(images, expected) and labels.tolist() == [0] * 50 + [1] * 50
    assert chunkhit.pack_images(tars[0], tmp_path / "one", progress=False)["samples"] == 50
    with open(tmp_path / "images", "wb") as file:
        file.write(struct.pack(">4B4I", 0, 0, 8, 4, 100, 6, 8, 3) + np.asarray(expected).tobytes())
    with open(tmp_path / "labels", "wb") as file:
        file.write(struct.pack(">4BI", 0, 0, 8, 1, 100) + bytes(range(100)))
    chunkhit.pack_images(tmp_path / "images", tmp_path / "idx", labels=tmp_path / "labels", order="input", progress=False)
    images, labels = chunkhit.ImageDataset(tmp_path / "idx")[:]
    assert np.array_equal(images, expected) and labels.tolist() == list(range(100))
    with pytest.raises(chunkhit.Error, match="expected one folder, or archives alone") as caught:
        chunkhit.pack_images([tmp_path / "0.tar", packs / "images"], tmp_path / "mixed")
    assert caught.value.code == "usage"


def test_messages_called_every_path_paths(packs, tmp_path):
    for name, call in (("root", lambda: chunkhit.pack_images(1, tmp_path)), ("output", lambda: chunkhit.pack_images(packs, 2)),
                       ("inputs", lambda: chunkhit.pack_sparse([1], tmp_path)), ("path", lambda: chunkhit.pack_info(3)),
                       ("normalize_like", lambda: chunkhit.ImageLoader(packs / "hdf5", dtype="float32", normalize_like=4))):
        with pytest.raises(TypeError, match=f"^{name}: expected a path"):
            call()


def test_progress_ended_differently_for_images_and_ratings(packs, ratings, tmp_path):
    for call, source in ((chunkhit.pack_images, packs / "images"), (chunkhit.pack_sparse, ratings[0] / "ratings.csv")):
        found = []
        call(source, tmp_path / call.__name__, progress=found.append)
        assert found[-1]["phase"] == "finishing" and found[-1]["rows_done"] == found[-1]["rows_total"] > 0


def test_a_part_of_matrices_had_other_raw_bytes_than_its_pack(ratings, tmp_path):
    for container in ("shard", "hdf5"):
        whole = chunkhit.pack_sparse(ratings[0] / "ratings.csv", tmp_path / container, container=container)
        part = chunkhit.pack_info(tmp_path / container / whole["parts"][0]["file"])
        assert len(whole["parts"]) == 1 and whole["matrices"][0]["nnz"] > 0
        assert (part["raw_bytes"], part["matrices"]) == (whole["raw_bytes"], whole["matrices"])


def test_fit_takes_one_side_as_crop_does(packs, tmp_path):
    found = chunkhit.pack_images(packs / "images", tmp_path / "out", fit=12)
    assert (found["sample"]["height"], found["sample"]["width"]) == (12, 12)


def test_gives_the_packs_of_a_split_by_name(packs, tmp_path):
    found = chunkhit.pack_images(packs / "images", tmp_path / "out", split={"train": 0.9, "val": 0.1}, progress=False)
    assert {name: info["samples"] for name, info in found.items()} == {"train": 90, "val": 10}


def test_a_given_split_had_no_keywords(tmp_path):
    for name, rows in (("base", ["1,1,5", "1,2,4", "2,1,3"]), ("more", ["3,1,4", "3,3,1"]), ("test", ["1,3,2", "2,2,5", "4,2,5"])):
        (tmp_path / name).write_text("user,item,rating\n" + "\n".join(rows) + "\n")
    chunkhit.pack_sparse(None, tmp_path / "given", train_file=[tmp_path / "base", tmp_path / "more"], test_file=tmp_path / "test",
                         order="input", id_order="sorted", progress=False)
    x, held_out = chunkhit.SparseDataset(tmp_path / "given/test")[:]
    assert (x.tolist(), held_out.tolist()) == ([[5, 4, 0], [3, 0, 0]], [[0, 0, 2], [0, 5, 0]])
    with pytest.raises(chunkhit.Error, match="^inputs: found") as caught:
        chunkhit.pack_sparse(tmp_path / "base", tmp_path / "wrong", train_file=tmp_path / "base", test_file=tmp_path / "test")
    assert caught.value.code == "usage"
    (tmp_path / "users").write_text("9\n")
    with pytest.raises(chunkhit.Error, match="^test_users: 1 of 1 user"):
        chunkhit.pack_sparse(tmp_path / "base", tmp_path / "wrong", split_by="users", test_users=tmp_path / "users")


def test_says_what_a_dry_run_would_pack(packs, ratings, tmp_path):
    planned = chunkhit.pack_images(packs / "images", tmp_path / "out", dry_run=True)
    assert planned[str(tmp_path / "out")] == {"samples": 100, "raw_bytes": 14400, "parts": 1, "chunks": 1}
    planned = chunkhit.pack_sparse(ratings[0] / "ratings.csv", tmp_path / "out", dry_run=True)
    assert planned[str(tmp_path / "out")]["columns"] == 97
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("code, message, options", [
    ("usage", "^split: the shares add up to 0.9, expected 1", dict(split={"train": 0.9})),
    ("usage", "^chunk_samples and chunk_bytes exclude each other", dict(chunk_samples=5, chunk_bytes=99)),
    ("bad_data", "gone.csv", dict(labels="gone.csv")),
    ("cannot_write", "holds another pack.*force", dict(resize=(4, 4))),
])
def test_raises_what_is_wrong_by_the_keyword(packs, code, message, options):
    with pytest.raises(chunkhit.Error, match=message) as caught:
        chunkhit.pack_images(packs / "images", packs / "hdf5", **options)
    assert caught.value.code == code
    assert "--" not in str(caught.value) and "`" not in str(caught.value)


def test_too_many_rejects_are_an_error(packs, tmp_path):
    shutil.copytree(packs / "images", tmp_path / "in", dirs_exist_ok=True)
    for number in range(10):
        (tmp_path / "in" / "a" / f"{number}.png").write_bytes(b"no image")
    with pytest.raises(chunkhit.Error) as caught:
        chunkhit.pack_images(tmp_path / "in", tmp_path / "out")
    assert caught.value.code == "too_many_rejects"


def test_takes_names_that_look_like_flags(packs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-odd").symlink_to(packs / "images")
    assert chunkhit.pack_images("-odd", "-out")["samples"] == 100


def test_shows_progress_where_it_is_wanted(packs, ratings, tmp_path, capfd):
    chunkhit.pack_images(packs / "images", tmp_path / "shown", progress=True)
    assert "of 100 rows" in capfd.readouterr().err
    chunkhit.pack_images(packs / "images", tmp_path / "hidden")
    assert capfd.readouterr().err == ""
    events = []
    chunkhit.pack_sparse(ratings[0] / "ratings.csv", tmp_path / "called", progress=events.append)
    assert events[-1]["phase"] == "finishing" and events[-1]["rows_done"] == events[-1]["rows_total"] > 0


class Slow:
    """A folder of images that take seconds to pack, in parts of a few."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "a").mkdir(parents=True)
        image = Image.effect_noise((1500, 1500), 50).convert("RGB")
        image.save(folder / "a" / "000.png")
        for number in range(1, 150):
            shutil.copy(folder / "a" / "000.png", folder / "a" / f"{number:03}.png")

    def pack(self, output, **options):
        return chunkhit.pack_images(self.folder, output, resize=(256, 256), chunk_samples=1, part_bytes=1, order="input",
                                    threads=1, **options)


def test_ctrl_c_stops_packing_and_keeps_finished_parts(tmp_path):
    slow = Slow(tmp_path / "in")
    has_parts = threading.Event()
    threading.Thread(target=lambda: has_parts.wait() and os.kill(os.getpid(), signal.SIGINT), daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        slow.pack(tmp_path / "out", progress=lambda event: has_parts.set() if event["rows_done"] >= 3 else None)
    parts = {part: part.stat().st_mtime_ns for part in (tmp_path / "out").glob("part-*.h5")}
    assert 3 <= len(parts) < 150
    assert slow.pack(tmp_path / "out")["samples"] == 150
    assert all(part.stat().st_mtime_ns == written for part, written in parts.items())


def test_what_a_progress_function_raises_stops_packing(tmp_path):
    def fail(event):
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        Slow(tmp_path / "in").pack(tmp_path / "out", progress=fail)
    assert not (tmp_path / "out" / "manifest.json").exists()


LISTED_MEANWHILE = """
import os, sys, threading
import chunkhit
os.mkfifo("list")
packing = threading.Thread(target=chunkhit.pack_images, args=(sys.argv[1], "out"), kwargs={"labels": "list"})
packing.start()
with open("list", "w") as file:
    file.write("file,label\\na/000.png,0\\n")
packing.join()
"""


def test_packing_leaves_the_gil_to_other_threads(packs, tmp_path):
    """Packing waits for a list that another thread writes."""
    subprocess.run([sys.executable, "-c", LISTED_MEANWHILE, packs / "images"], cwd=tmp_path, timeout=100, check=True)
    assert chunkhit.pack_info(tmp_path / "out")["samples"] == 1


def test_the_folder_of_a_split_is_described_as_the_commands_do(ratings, tmp_path):
    options = dict(split_by="users", test=5, fold_in=0.5)
    packed = chunkhit.pack_sparse(ratings[0] / "ratings.csv", tmp_path / "packs", **options)
    assert sorted(packed) == ["test", "train"]
    assert packed == chunkhit.pack_info(tmp_path / "packs")
    verified = chunkhit.verify_pack(tmp_path / "packs")
    assert sorted(verified) == ["test", "train"] and verified["test"]["problems"] == []
    assert chunkhit.pack_info(tmp_path) == {f"packs/{name}": info for name, info in packed.items()}
    (tmp_path / "packs/test").rename(tmp_path / "elsewhere")
    verified = chunkhit.verify_pack(tmp_path / "packs", quick=True)
    assert "is missing" in verified["test"]["problems"][0] and verified["train"]["problems"] == []


def test_a_wrong_input_of_ratings_is_named_as_the_argument(tmp_path):
    with pytest.raises(TypeError, match="^inputs: expected a path"):
        chunkhit.pack_sparse({1: 2}, tmp_path / "packs")


def test_a_frozen_type_of_values_is_stored_and_other_values_are_an_error(ratings, tmp_path):
    info = chunkhit.pack_sparse(ratings[0] / "ratings.csv", tmp_path / "frozen", values="u16:0.5")
    assert info["values"] == {"type": "u16", "scale": 0.5} and info["spec"]["values"] == "u16:0.5"
    with pytest.raises(chunkhit.Error, match=r"ratings.csv:\d+: value: expected 1 \(values none\), found"):
        chunkhit.pack_sparse(ratings[0] / "ratings.csv", tmp_path / "none", values="none")


def test_packs_are_inputs_of_a_pack(ratings, tmp_path):
    day = tmp_path / "day"
    chunkhit.pack_sparse(ratings[0] / "ratings.csv", day)
    info = chunkhit.pack_sparse([day], tmp_path / "again", container="hdf5")
    assert info["matrices"] == chunkhit.pack_info(day)["matrices"]
    with pytest.raises(chunkhit.Error, match="output: .* is or holds the input"):
        chunkhit.pack_sparse(day, day, force=True)


def test_lines_that_were_left_out_are_warned_of(tmp_path, logs):
    (tmp_path / "ratings.csv").write_text("user,item,rating\n" + "".join(f"{n},{n % 7},{n % 5 or 'x'}\n" for n in range(100)))
    with logs(r"20 bad lines were left out; the first: .*ratings.csv:2:"):
        chunkhit.pack_sparse(tmp_path / "ratings.csv", tmp_path / "out", on_error="skip", max_errors=0.5)


def test_warnings_go_to_stderr_and_are_silenced_by_their_logger_s_name(tmp_path):
    """They were UserWarnings, which only a filter of their texts kept from those of other packages."""
    (tmp_path / "ratings.csv").write_text("user,item,rating\n1,2,3\n4,5,100%\n")
    program = """if True:
        import logging, sys
        import chunkhit
        if sys.argv[1] == "silent": logging.getLogger("chunkhit").setLevel(logging.ERROR)
        chunkhit.pack_sparse("ratings.csv", sys.argv[1], on_error="skip", max_errors=1)"""
    said = {how: subprocess.run([sys.executable, "-c", program, how], cwd=tmp_path, check=True, stderr=subprocess.PIPE, text=True).stderr
            for how in ("as_is", "silent")}
    assert re.fullmatch("1 bad line was left out; the first: .*100%.*\n", said["as_is"]) and said["silent"] == ""


def test_no_errors_allowed_were_one_in_a_hundred(tmp_path):
    (tmp_path / "ratings.csv").write_text("user,item,rating\n1,2,3\n2,3,x\n")
    with pytest.raises(chunkhit.Error, match="max_errors allows 0"):
        chunkhit.pack_sparse(tmp_path / "ratings.csv", tmp_path / "out", on_error="skip", max_errors=0)


def test_a_date_as_the_input_has_it_was_no_time(tmp_path):
    days = "".join(f"{user},{item},2017-0{8 + ((item + user) % 3 == 0)}-0{user + 1}\n" for user in range(4) for item in range(6))
    (tmp_path / "ratings.csv").write_text("user,item,date\n" + days)
    packs = chunkhit.pack_sparse(tmp_path / "ratings.csv", tmp_path / "out", split_by="time", before="2017-09-01")
    assert [matrix["nnz"] for matrix in packs["test"]["matrices"]] == [16, 8]


def test_a_color_is_also_named(tmp_path):
    image = np.zeros((4, 4, 4), np.uint8)
    for name, color in (("white", (255, 255, 255)), ("named", "#ffffff")):
        with chunkhit.ImageWriter(tmp_path / name, background=color) as writer:
            writer.add(image, 0)
        assert (np.asarray(chunkhit.ImageDataset(tmp_path / name)[0][0]) == 255).all()


def test_memory_that_holds_no_image_is_an_error_before_anything_is_read(tmp_path):
    """A tar of gigabytes was unpacked first."""
    (tmp_path / "broken.tar.gz").write_bytes(b"no tar")
    options = {"memory_bytes": 256 << 20, "max_decode_bytes": 900 << 20}
    for begin in (lambda: chunkhit.pack_images(tmp_path / "broken.tar.gz", tmp_path / "out", **options),
                  lambda: chunkhit.ImageWriter(tmp_path / "out", **options)):
        with pytest.raises(chunkhit.Error, match="memory_bytes.*cannot hold one image of `?max_decode_bytes"):
            begin()


def test_a_long_recipe_is_an_error_at_once(tmp_path):
    """One of a megabyte was read for 25 seconds."""
    (tmp_path / "recipe.toml").write_text("seed=" + '"a" ' * 250_000)
    run = subprocess.run([os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-images"), "--config", tmp_path / "recipe.toml"],
                         stderr=subprocess.PIPE, text=True, timeout=60)
    assert run.returncode == 2 and "has more than 131072 bytes, expected a recipe" in run.stderr


def test_what_packing_returns_is_a_dict_that_shows_itself_in_a_line(packs, ratings, tmp_path):
    info = chunkhit.pack_images(packs / "images", tmp_path / "pack", progress=False)
    assert info == chunkhit.pack_info(tmp_path / "pack") and isinstance(info, dict) and json.loads(json.dumps(info)) == info
    size = sum(part["bytes"] for part in info["parts"]) / 1000
    assert repr(info) == f"<{tmp_path}/pack: 100 images of 8x6, 2 classes, 0 rejected, {size:.1f} kB in 1 part>"
    split = chunkhit.pack_sparse(ratings[0] / "ratings.csv", tmp_path / "split", split_by="users", test=11, progress=False)
    lines = repr(split).splitlines()
    assert len(lines) == 2 and lines[1].startswith(f"<{tmp_path}/split/train: 200 users, 97 items, ")
    assert lines[0].startswith(f"<{tmp_path}/split/test: 11 users, ") and " held out, " in lines[0]
