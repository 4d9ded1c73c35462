"""Input that nobody plans for: packed as it should be, or refused with words that say what to do."""
import csv
import fcntl
import json
import os
import subprocess
import sys

from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, Workspace, check, make_images, run, run_tests


def info(out):
    return json.loads(run("pack-info", out, "--json"))


def image(path, size=(8, 8)):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    Image.new("RGB", size, (9, 8, 7)).save(path)


def test_nothing_to_pack(space):
    os.makedirs(space("empty/class"))
    os.makedirs(space("flat"))
    image(space("flat/a.png"))
    for root in ("empty", "flat"):
        text = run("pack-images", space(root), "--output", space("none"), expect=65)
        check("sub-folder" in text and "--labels" in text, text)
    os.makedirs(space("broken/x"))
    for index in range(3):
        with open(space(f"broken/x/{index}.jpg"), "w") as file:
            file.write("nothing")
    text = run("pack-images", space("broken"), "--max-errors", "100%", "--output", space("none"), expect=65)
    check("none of the 3 files" in text and "x/0.jpg" in text, text)
    check(not os.path.exists(space("none")), "left an output")


def test_one_image_of_one_pixel(space):
    image(space("pixel/k/a.png"), (1, 1))
    for container in ("hdf5", "shard"):
        for arguments in ([], ["--resize", "5x3"], ["--crop", "4x4"], ["--resize", "2", "--crop", "1x1"]):
            out = space(f"pixel-{container}-{len(arguments)}-{'crop' in str(arguments)}")
            run("pack-images", space("pixel"), "--container", container, *arguments, "--output", out)
            check(info(out)["samples"] == 1, info(out))
            run("pack-verify", out)


def test_crop_larger_than_the_image_pads_with_zeros(space):
    import h5py
    image(space("two/k/a.png"), (2, 2))
    text = run("pack-images", space("two"), "--crop", "4x6", "--output", space("padded"))
    check("1 of 1 image is smaller than the crop: black borders, at most 83.3 % of a sample" in text, text)
    with h5py.File(space("padded/part-00000.h5")) as part:
        sample = part["images"][0]
    check(sample.shape == (6, 4, 3) and sample[2:4, 1:3].tolist() == [[[9, 8, 7]] * 2] * 2, sample)
    check(int(sample.sum()) == 4 * (9 + 8 + 7), sample.sum())
    text = run("pack-images", space("two"), "--resize", "2x2", "--crop", "4x6", "--output", space("never"), expect=2)
    check("--crop 4x6: --resize 2x2 leaves less, so that every sample would have black borders" in text, text)


def test_every_label_rejected(space):
    with open(space("labels.csv"), "w") as file:
        file.write("file,label\n" + "images/ant/00000.png,\n" * 4)
    text = run("pack-images", space("photos"), "--labels", space("labels.csv"), "--output", space("none"), expect=65)
    check("label is missing" in text, text)


def test_a_part_whose_rows_are_all_rejected(space):
    """Only the first image is one; every part but its own stays empty."""
    with open(space("sparse.csv"), "w") as file:
        file.write("file,label\nimages/ant/00000.png,a\n" + "missing.png,b\n" * 30)
    for container in ("hdf5", "shard"):
        out = space(f"sparse-{container}")
        run("pack-images", space("photos"), "--labels", space("sparse.csv"), "--resize", "8x8", "--order", "input", "--part-bytes", "600",
            "--chunk-samples", "2", "--container", container, "--max-errors", "100%", "--output", out)
        found = info(out)
        check((found["samples"], found["rejected"], found["rows"]) == (1, 30, 31), found)
        check(len(found["parts"]) > 5, found["parts"])
        run("pack-verify", out)
        run("pack-info", out + "/" + found["parts"][-1]["file"])


def test_every_image_of_a_pack_rejected(space):
    """The header of an image gives the shape, but its data is cut off."""
    os.makedirs(space("cut/x"))
    with open(space("photos/images/bee/00001.jpg"), "rb") as file:
        image_bytes = file.read()
    for name in ("a", "b"):
        with open(space(f"cut/x/{name}.jpg"), "wb") as file:
            file.write(image_bytes[:len(image_bytes) * 3 // 4])
    text = run("pack-images", space("cut"), "--max-errors", "100%", "--output", space("nothing"))
    check("warning: no sample was packed" in text, text)
    check("mean" not in run("pack-info", space("nothing")) and info(space("nothing"))["mean"] == [], "mean of nothing")
    run("pack-verify", space("nothing"))
    text = run("pack-images", space("pixel"), "--split", "train=0.9,val=0.1", "--output", space("none"), expect=2)
    check("--split: val gets none of the 1 sample" in text and not os.path.exists(space("none")), text)


def test_a_list_whose_only_row_is_rejected_was_a_success(space):
    """One reject is always allowed, but for the only row; pack-info then named no rejects.csv."""
    with open(space("photos/images/bee/00001.jpg"), "rb") as file:
        image_bytes = file.read()
    os.makedirs(space("half/x"))
    with open(space("half/x/a.jpg"), "wb") as file:
        file.write(image_bytes[:len(image_bytes) * 3 // 4])
    text = run("pack-images", space("half"), "--output", space("rejected"), expect=1)
    check("rejected 1 of 1 rows, --max-errors allows 0" in text and "rejects.csv" in text, text)
    text = run("pack-info", space("rejected"), expect=75)
    check("0 finished" in text and f"see {space('rejected')}/rejects.csv" in text, text)
    check(json.loads(run("pack-info", space("rejected"), "--json", expect=75))["has_rejects"], "in JSON")


def test_control_characters_are_shown_and_not_obeyed(space):
    image(space("control/\x1b[31mred/line\nend.png"))
    image(space("control/plain/b.png"), (9, 9))
    text = run("pack-images", space("control"), "--output", space("none"), expect=65)
    check("\\x1b[31mred/line\\nend.png" in text and "\x1b" not in text, text)
    text = run("pack-images", space("control"), "--resize", "8x8", "--output", space("escaped"))
    check("labels: 2 classes: 0 = \\x1b[31mred, 1 = plain" in text and "\x1b" not in text, text)
    check("\x1b" not in run("pack-info", space("escaped")), "obeyed")


def test_reasons_are_counted_by_kind(space):
    with open(space("kinds.csv"), "w") as file:
        file.write("file,label\nimages/ant/00000.png,a\nimages/bee/00001.jpg\nmissing.png,b\nimages,b\n/etc/passwd,b\nimages/ant/00003.jpg,\n")
    text = run("pack-images", space("photos"), "--labels", space("kinds.csv"), "--max-errors", "100%", "--output", space("kinds"))
    check("  2 times, the first: row has 1 field" in text and "  1 time: no such file" in text, text)
    check("  2 times, the first: is a folder" in text or "  2 times, the first: leads out of the root" in text, text)


def test_dry_run_says_why(space):
    text = run("pack-images", space("photos"), "--labels", space("photos/labels.csv"), "--output", space("none"), "--dry-run")
    check("all samples in one chunk" in text and "h5py" not in text and "above every" not in text, text)
    check("64 wide x 48 high x 3 channels" in text and "images/ant/00000.png" in text, text)
    text = run("pack-images", space("photos"), "--labels", space("photos/labels.csv"), "--codec", "zstd", "--output", space("none"), "--dry-run")
    check("HDF5_PLUGIN_PATH" in text, text)


def test_ten_thousand_classes(space):
    image(space("one.png"))
    for index in range(10_000):
        os.makedirs(space(f"many/c{index:05d}"))
        os.link(space("one.png"), space(f"many/c{index:05d}/a.png"))
    run("pack-images", space("many"), "--output", space("classes"))
    found = info(space("classes"))["classes"]
    check(len(found) == 10_000 and found[-1] == {"id": 9999, "name": "c09999", "samples": 1}, found[-1])
    text = run("pack-info", space("classes"))
    check("10,000 classes" in text and "9,980 more" in text and text.count("\n") < 50, text)
    run("pack-verify", space("classes"))


def test_output_and_root_inside_each_other(space):
    for output in ("photos/images/pack", "photos/images", "photos/images/ant/pack", "photos/../photos/images/pack"):
        text = run("pack-images", space("photos/images"), "--resize", "8x8", "--output", space(output), expect=2)
        check("output" in text and "choose a folder outside" in text, text)
        check(not os.path.exists(space("photos/images/pack")), "made a folder in ROOT")
    # With a list nothing is found by looking, so the pack may lie anywhere.
    run("pack-images", space("photos"), "--labels", space("photos/labels.csv"), "--resize", "8x8", "--output", space("photos/pack"))
    text = run("pack-images", space("pixel"), "--output", space("photos/pack/below"), expect=2)
    check("lies in the pack" in text and not os.path.exists(space("photos/pack/below")), text)
    text = run("pack-images", space("photos/images"), "--resize", "8x8", "--output", space("photos"), expect=73)
    check("belongs to no pack" in text, text)
    check(os.path.exists(space("photos/labels.csv")), "something in the output was removed")


def test_strange_outputs(space):
    with open(space("file"), "w") as file:
        file.write("mine")
    for output in ("file", "file/below"):
        text = run("pack-images", space("pixel"), "--output", space(output), expect=73)
        check("cannot create the folder" in text, text)
    os.makedirs(space("strange/.git"))
    for force in ([], ["--force"]):
        text = run("pack-images", space("pixel"), "--output", space("strange"), *force, expect=73)
        check(".git" in text and "new folder" in text, text)
    with open(space("pixel-hdf5-0-False/manifest.json"), "r+b") as file:
        file.truncate(100)
    text = run("pack-images", space("pixel"), "--output", space("pixel-hdf5-0-False"), expect=65)
    check("manifest.json" in text, text)
    run("pack-images", space("pixel"), "--output", space("pixel-hdf5-0-False"), "--force")


def test_force_removes_no_pack_of_a_split_before_all_may_go(space):
    split = ("pack-images", space("thirty"), "--output", space("parts"), "--split", "a=0.5,b=0.5")
    make_images(space("thirty"), 30)
    run(*split)
    before = open(space("parts/a/manifest.json")).read()
    with open(space("parts/b/notes.txt"), "w") as file:
        file.write("mine")
    text = run(*split, "--seed", "5", "--force", expect=73)
    check("notes.txt" in text, text)
    check(open(space("parts/a/manifest.json")).read() == before, "the first pack of the split is gone")
    os.remove(space("parts/b/notes.txt"))
    folder = os.open(space("parts/b"), os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    check("another process" in run(*split, "--seed", "5", "--force", expect=75), "b is being written")
    os.close(folder)
    check(open(space("parts/a/manifest.json")).read() == before, "the first pack of the split is gone")


def test_a_share_of_another_split_does_not_stay(space):
    def split(shares, *more, expect=0):
        return run("pack-images", space("thirty"), "--output", space("shares"), "--split", shares, *more, expect=expect)
    split("a=0.4,b=0.3,c=0.3")
    run("pack-images", space("thirty"), "--output", space("shares/whole"))
    text = split("a=0.4,b=0.6", expect=73)
    check("shares/c: holds a share of another split" in text, text)
    with open(space("shares/c/notes.txt"), "w") as file:
        file.write("mine")
    check("notes.txt" in split("a=0.4,b=0.6", "--force", expect=73), "a stranger was not seen")
    os.remove(space("shares/c/notes.txt"))
    split("a=0.4,b=0.6", "--force")
    check(sorted(os.listdir(space("shares"))) == ["a", "b", "whole"], os.listdir(space("shares")))
    check(info(space("shares/a"))["samples"] + info(space("shares/b"))["samples"] == 30, "samples were lost")


def test_contradictions(space):
    for arguments, words in ((["--resize", "8x8", "--fit", "8x8"], "exclude"), (["--file-column", "x"], "--labels"),
                             (["--label-column", "x"], "--labels"),
                             (["--chunk-samples", "3", "--chunk-bytes", "1M"], "exclude"), (["--threads", "0"], "threads"),
                             (["--split", "../a=0.5,b=0.5"], "no name for a folder"), (["--split", "a=0.5,a=0.5"], "repeated"),
                             (["--max-errors", "101%"], "max-errors"), (["--resize", "60000x60000"], "chunk"),
                             (["--container", "shard", "--channels", "gray", "--codec", "deflate"], "photo")):
        text = run("pack-images", space("pixel"), "--output", space("none"), *arguments, expect=2)
        check(words in text, arguments, text)
        check(not os.path.exists(space("none")), arguments, "left an output")


def test_without_rights(space):
    if os.geteuid() != 0:
        return print("  not run: who is not root may not become another user")
    os.makedirs(space("secret/x"))
    for index in range(8):
        image(space(f"secret/x/{index}.png"))
    os.chmod(space("secret/x/3.png"), 0)
    os.makedirs(space("mine"))
    for folder, mode in ((space.path, 0o755), (space("mine"), 0o777)):
        os.chmod(folder, mode)

    def pack_as_nobody(output):
        return subprocess.run([f"{BIN}/pack-images", space("secret"), "--max-errors", "1", "--output", output], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, user=65534, group=65534, extra_groups=[])

    done = pack_as_nobody(space("mine/pack"))
    check(done.returncode == 0, done.stdout.decode())
    with open(space("mine/pack/rejects.csv"), newline="") as file:
        check([row["file"] for row in csv.DictReader(file) if "permission denied" in row["reason"]] == ["x/3.png"], "rejects")
    done = pack_as_nobody(space("theirs"))
    check(done.returncode == 73 and b"Permission denied" in done.stdout, done.stdout.decode())
    os.chmod(space("secret/x"), 0o700)
    done = pack_as_nobody(space("mine/other"))
    check(done.returncode == 65 and b"Permission denied" in done.stdout, done.stdout.decode())


def test_what_is_no_pack(space):
    for command in ("pack-info", "pack-verify"):
        for path, words in ((space("nowhere"), "No such file"), ("/dev/null", "not a regular file"),
                            (space("photos/images"), "manifest.json is missing"),
                            (space("one.png"), "one.png")):
            text = run(command, path, expect=65)
            check(words in text, command, path, text)
        check("required" in run(command, expect=2), command)
        check(space("photos/pack") in run(command, space("photos")), command, "takes the pack in a folder")


with Workspace() as workspace:
    make_images(workspace("photos"), 20)
    run_tests(globals(), workspace)
