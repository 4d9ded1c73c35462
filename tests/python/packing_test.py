"""pack_images and pack_sparse: the commands, with keywords."""
import os
import shutil
import signal
import sys
import textwrap

import pytest
from PIL import Image

import chunkhit
from chunkhit import _packing, _progress


def test_keywords_are_flags():
    assert _packing.flags(dict(resize=(96, 128), label_column=["a", "b"], force=True, dry_run=False, labels=None,
                               split={"train": 0.9, "val": 0.1}, max_errors="5%", seed=-3), "pack-images") == [
        "--resize=96x128", "--label-column=a", "--label-column=b", "--force", "--dry-run=false", "--split=train=0.9,val=0.1",
        "--max-errors=5%", "--seed=-3"]


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
    assert report["problems"] and str(part) in report["damaged"]
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
    with pytest.raises(chunkhit.Error, match="INPUT: found") as caught:
        chunkhit.pack_sparse(tmp_path / "base", tmp_path / "wrong", train_file=tmp_path / "base", test_file=tmp_path / "test")
    assert caught.value.code == "usage"
    (tmp_path / "users").write_text("9\n")
    with pytest.raises(chunkhit.Error, match="^test_users: 1 of 1 user"):
        chunkhit.pack_sparse(tmp_path / "base", tmp_path / "wrong", split="users", test_users=tmp_path / "users")


def test_says_what_a_dry_run_would_pack(packs, tmp_path, capsys):
    assert chunkhit.pack_images(packs / "images", tmp_path / "out", dry_run=True) == {}
    assert "100" in capsys.readouterr().out and not (tmp_path / "out").exists()


@pytest.mark.parametrize("code, message, options", [
    ("usage", "no_such_flag=5", dict(no_such_flag=5)),
    ("bad_data", "gone.csv", dict(labels="gone.csv")),
    ("cannot_write", "holds another pack", dict(resize=(4, 4))),
])
def test_raises_what_the_command_says(packs, code, message, options):
    with pytest.raises(chunkhit.Error, match=message) as caught:
        chunkhit.pack_images(packs / "images", packs / "hdf5", **options)
    assert caught.value.code == code
    assert "pack-images:" not in str(caught.value) and "--help" not in str(caught.value)


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


def test_shows_progress_where_it_is_wanted(packs, tmp_path, capfd):
    chunkhit.pack_images(packs / "images", tmp_path / "shown", progress=True)
    assert "of 100 rows" in capfd.readouterr().err
    chunkhit.pack_images(packs / "images", tmp_path / "hidden")
    assert capfd.readouterr().err == ""
    text = _progress.progress_text({"phase": "packing", "rows_done": 1500, "rows_total": 3000, "rejected": 2,
                                    "rows_per_second": 1234.0, "seconds": 1.0})
    assert text == "packing: 1,500 of 3,000 rows (50%), 1,234/s, 2 rejected"


def test_shows_no_rate_before_it_says_something(capsys):
    line = _progress.ProgressLine(True)
    for phase, done, seconds in (("reading", 0, 0.5), ("reading", 9, 1.0), ("packing", 7, 1.1), ("packing", 8, 1.4)):
        line.show({"phase": phase, "rows_done": done, "rows_total": 9 if done else 0, "rejected": 0,
                   "rows_per_second": 1e12, "seconds": seconds})
    shown = capsys.readouterr().err.split("\r")[1:]
    assert ["/s" in each for each in shown] == [False, True, False, True]


def test_ctrl_c_stops_the_command_and_is_passed_on(packs, tmp_path, monkeypatch):
    """A stand-in for the command, which says when it is there and when it was stopped."""
    command = tmp_path / "pack-images"
    command.write_text(textwrap.dedent(f"""\
        #!{sys.executable}
        import os, signal, sys, time
        def stop(*_):
            open({str(tmp_path / "stopped")!r}, "a").write("once ")
            sys.exit(130)
        signal.signal(signal.SIGINT, stop)
        os.kill({os.getpid()}, signal.SIGUSR1)
        time.sleep(60)
        """))
    command.chmod(0o755)
    monkeypatch.setattr(_packing, "find_command", lambda name: str(command))
    before = signal.signal(signal.SIGUSR1, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        with pytest.raises(KeyboardInterrupt):
            chunkhit.pack_images(packs / "images", tmp_path / "out")
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (tmp_path / "stopped").read_text() == "once "


def test_the_folder_of_a_split_is_described_as_the_commands_do(ratings, tmp_path):
    options = dict(split="users", test=5, fold_in=0.5, save_config=tmp_path / "recipe.toml")
    packed = chunkhit.pack_sparse(ratings[0] / "ratings.csv", tmp_path / "packs", **options)
    assert sorted(packed) == ["test", "train"] and (tmp_path / "recipe.toml").exists()
    assert packed == chunkhit.pack_info(tmp_path / "packs")
    verified = chunkhit.verify_pack(tmp_path / "packs")
    assert sorted(verified) == ["test", "train"] and verified["test"]["problems"] == []


def test_a_wrong_input_of_ratings_is_named_as_the_argument(tmp_path):
    with pytest.raises(TypeError, match="^inputs: expected a path"):
        chunkhit.pack_sparse({1: 2}, tmp_path / "packs")
