"""Packs that were made with other settings are merged with a notice, whichever setting differs."""
import subprocess
import os

import pytest

import chunkhit


def merged(folder, packs):
    done = subprocess.run([os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-merge"), folder, *packs], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("name, values, common", [
    ("zeros", ("keep", "drop"), {}), ("duplicates", ("sum", "max"), {}), ("encoding", ("utf-8", "latin-1"), {}),
    ("binarize", (False, True), dict(values="f32")), ("above", (1, 2), {}), ("min_user", (1, 2), None), ("values", ("auto", "u8"), None), ("seed", (1, 2), None), ("order", ("shuffle", "input"), None)])
def test_settings_of_ratings_that_differ_gave_no_notice(tmp_path, name, values, common):
    """A list by hand said which are named; `None`: it does not change what a rating means."""
    packs = []
    for number, value in enumerate(values):
        (tmp_path / f"{number}.csv").write_text("user,item,rating\n" + "".join(
            f"u{number}{user},i{item},{1 + (user + item) % 4 + 1}\n" for user in range(8) for item in range(6)))
        pack = tmp_path / f"pack{number}"
        ids = {} if number == 0 else dict(reuse_ids=tmp_path / "pack0")
        chunkhit.pack_sparse(tmp_path / f"{number}.csv", pack, **{name: value}, **(common or {}), **ids)
        packs.append(pack)
    said = merged(tmp_path / "all", packs)
    found = [line for line in said.splitlines() if "different settings" in line]
    if common is None:
        assert not found, said
    else:
        assert found and name.replace("_", "-") in found[0], said


@pytest.mark.parametrize("name, values, common", [
    ("quality", (80, 90), dict(sizes="own", short_side=4)), ("store", ("zstd", "photo"), dict(sizes="own", container="shard")),
    ("resample", ("bilinear", "nearest"), dict(resize=(4, 4))), ("exif", ("apply", "ignore"), {}),
    ("seed", (1, 2), None), ("check", ("whole", "region"), None)])
def test_settings_of_images_that_differ_gave_no_notice(packs, tmp_path, name, values, common):
    made = []
    for number, value in enumerate(values):
        made.append(tmp_path / str(number))
        chunkhit.pack_images(packs / "images", made[-1], **{name: value}, **(common or {}))
    said = merged(tmp_path / "all", made)
    found = [line for line in said.splitlines() if "different settings" in line]
    assert (not found) if common is None else (found and name in found[0]), said


def test_packs_of_one_command_were_called_different_where_one_had_an_image_without_a_label(packs, tmp_path):
    made = []
    for number, cells in enumerate((("x y", "x", "y"), ("x y", "", "y"))):
        files = sorted(path.name for path in (packs / "images" / "a").glob("*.png"))[3 * number:3 * number + 3]
        (tmp_path / f"{number}.csv").write_text("file,label\n" + "".join(f"a/{file},{cell}\n" for file, cell in zip(files, cells)))
        made.append(tmp_path / str(number))
        chunkhit.pack_images(packs / "images", made[-1], labels=tmp_path / f"{number}.csv", label_separator=" ")
    assert "different settings" not in merged(tmp_path / "all", made)


def test_the_printed_way_out_failed_and_lost_times(tmp_path):
    """Of two packs with a user in common: duplicates were an error, and times were left out."""
    for name, value in (("a", 1), ("b", 2)):
        (tmp_path / f"{name}.csv").write_text("user,item,rating,time\n" + "".join(
            f"u{user},i{item},{value},{1_600_000_000 + item}\n" for user in range(8) for item in range(6)))
        reused = {} if name == "a" else dict(reuse_ids=tmp_path / "a")
        chunkhit.pack_sparse(tmp_path / f"{name}.csv", tmp_path / name, keep_times=True, values="u8", **reused)
    with pytest.raises(chunkhit.Error) as failed:
        chunkhit.merge_packs([tmp_path / "a", tmp_path / "b"], tmp_path / "all")
    command = str(failed.value).split("pack both as one: ")[1].replace("…", str(tmp_path / "all")).split()
    assert command[:3] == ["pack-sparse", str(tmp_path / "a"), str(tmp_path / "b")]
    subprocess.run([os.path.join(os.environ["CHUNKHIT_TOOLS"], command[0]), *command[1:]], check=True)
    assert chunkhit.pack_info(tmp_path / "all")["times"] == "seconds"
