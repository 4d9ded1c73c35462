"""Class ids, statistics and samples: what differed without a word between the packs of one data set."""
import csv
import json
import os
import shutil
import sys

import h5py
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import Workspace, check, fingerprint, run, run_tests

GRAYS = {"ant": 20, "bee": 60, "cat": 100, "eel": 180}


def write_images(root, classes, count=10, size=(8, 6), extra=0):
    for name in classes:
        os.makedirs(f"{root}/{name}")
        for number in range(count):
            Image.new("L", size, GRAYS[name] + extra).save(f"{root}/{name}/{number}.png")
    return root


def manifest_of(pack):
    with open(f"{pack}/manifest.json") as file:
        return json.load(file)


def classes_of(pack):
    return [(each["id"], each["name"], each["samples"]) for each in manifest_of(pack)["classes"]]


def check_labels_are_those_of_pixels(pack, extra=0):
    names = {each["id"]: each["name"] for each in manifest_of(pack)["classes"]}
    with h5py.File(f"{pack}/part-00000.h5") as part:
        for image, label in zip(part["images"][:], part["labels"][:]):
            check(image[0, 0, 0] == GRAYS[names[label]] + extra, pack, label, image[0, 0, 0])


def pack(root, out, *arguments, **how):
    return run("pack-images", root, "--output", out, "--progress", "none", *arguments, **how)


def test_a_class_had_another_id_in_each_pack(space):
    write_images(space("train"), ("ant", "bee", "cat"))
    write_images(space("val"), ("ant", "cat"))
    pack(space("train"), space("train-pack"))
    expected = [(0, "ant", 10), (1, "bee", 0), (2, "cat", 10)]
    with open(space("names.txt"), "w") as file:
        file.write("ant\nbee\ncat\n")
    for number, known in enumerate((space("train-pack"), space("train-pack/manifest.json"), space("names.txt"))):
        pack(space("val"), space(f"val-{number}"), "--classes", known)
        check(classes_of(space(f"val-{number}")) == expected, known, classes_of(space(f"val-{number}")))
        check_labels_are_those_of_pixels(space(f"val-{number}"))
        run("pack-verify", space(f"val-{number}"))
    check(fingerprint(space("val-0")) == fingerprint(space("val-2")), "the same list, the same pack")
    check("already packed" in pack(space("val"), space("val-0"), "--classes", space("names.txt")), "found finished")
    text = pack(space("val"), space("val-0"), expect=73)
    check("classes: " in text and "sorted now" in text, text)


def test_an_unknown_class_is_an_error(space):
    write_images(space("more"), ("ant", "eel"))
    text = pack(space("more"), space("x"), "--classes", space("train-pack"), expect=65)
    check('class "eel" of eel/0.png' in text and not os.path.exists(space("x")), text)


def test_labels_of_a_csv_are_numbered_alike(space):
    rows = [("cat/0.png", "cat"), ("ant/0.png", "ant")]
    digits = [("cat/0.png", "10"), ("ant/0.png", "9")]
    for name, content in (("names", rows), ("digits", digits)):
        with open(space(f"{name}.csv"), "w", newline="") as file:
            csv.writer(file).writerows([("file", "label"), *content])
    pack(space("val"), space("from-csv"), "--labels", space("names.csv"), "--classes", space("names.txt"))
    check(classes_of(space("from-csv")) == [(0, "ant", 1), (1, "bee", 0), (2, "cat", 1)], classes_of(space("from-csv")))
    with open(space("numbers.txt"), "w") as file:
        file.write("10\n9\n8\n")
    pack(space("val"), space("digits"), "--labels", space("digits.csv"), "--classes", space("numbers.txt"))
    check(classes_of(space("digits")) == [(0, "10", 1), (1, "9", 1), (2, "8", 0)], classes_of(space("digits")))
    pack(space("val"), space("ids"), "--labels", space("digits.csv"))
    text = pack(space("val"), space("x"), "--labels", space("names.csv"), "--classes", space("ids"), expect=65)
    check("has no name" in text, text)
    for arguments in (["--split-folders", "a,b", "--split", "a=0.5,b=0.5"],
                      ["--split-folders", "../a,b"], ["--split-folders", "a,a"],
                      ["--labels", space("names.csv"), "--split-folders", "a,b"],
                      ["--labels", space("names.csv"), "--include", "*.png"]):
        pack(space("val"), space("x"), *arguments, expect=2)


def test_the_folders_of_a_split_have_one_list_of_classes(space):
    root = space("imagenet")
    write_images(f"{root}/train", ("ant", "bee", "cat"), 20)
    write_images(f"{root}/val", ("ant", "cat"), 6, extra=7)
    os.symlink("ant", f"{root}/val/zebra")
    text = pack(root, space("packs"), "--split-folders", "train,val", "--part-bytes", "600", "--max-errors", "1")
    check("val has no samples of 1 class: bee" in text, text)
    train, val = manifest_of(space("packs/train")), manifest_of(space("packs/val"))
    check((train["rows"], train["rejected"], val["rows"], val["rejected"]) == (60, 0, 13, 1), train, val)
    check(classes_of(space("packs/train")) == [(0, "ant", 20), (1, "bee", 20), (2, "cat", 20)], train["classes"])
    check(classes_of(space("packs/val")) == [(0, "ant", 6), (1, "bee", 0), (2, "cat", 6)], val["classes"])
    check_labels_are_those_of_pixels(space("packs/train"))
    check_labels_are_those_of_pixels(space("packs/val"), 7)
    for name in ("train", "val"):
        run("pack-verify", space(f"packs/{name}"))
    check("already packed" in pack(root, space("packs"), "--split-folders", "train,val", "--part-bytes", "600",
                                   "--max-errors", "1"), "found finished")
    text = pack(root, space("none"), "--split-folders", "train,test", expect=65)
    check("imagenet/test" in text, text)


def test_validation_was_normalised_by_its_own_statistics(space):
    """Each pack of a split has the first one's statistics beside its own, the same after any restart."""
    arguments = ["--split-folders", "train,val", "--max-errors", "1"]
    for number, split in enumerate((arguments, ["--split", "train=0.8,val=0.2"])):
        root = space("imagenet" if number == 0 else "train")
        out = space(f"normalised-{number}")
        pack(root, out, *split)
        train, val = manifest_of(f"{out}/train"), manifest_of(f"{out}/val")
        shared = {"from": "train", "mean": train["mean"], "std": train["std"]}
        check(train["normalize"] == shared and val["normalize"] == shared, train, val)
        check(number == 1 or val["mean"] != train["mean"], "their own statistics differ")
        check(json.loads(run("pack-info", f"{out}/val", "--json"))["normalize"] == shared, "pack-info says so")
        before = fingerprint(f"{out}/val")
        for lost in (["val/manifest.json"], ["val/manifest.json", "val/part-00000.h5", "val/part-00000.json"],
                     ["train/manifest.json", "val/manifest.json"]):
            for name in lost:
                os.remove(f"{out}/{name}")
            pack(root, out, *split)
            check(fingerprint(f"{out}/val") == before, "restarted without", lost)
    pack(space("train"), space("alone"))
    check("normalize" not in manifest_of(space("alone")), "a pack of its own shares nothing")


def test_a_first_example_squeezed_photos(space):
    """512 x 384 to 96 x 128: a notice; none where the ratio stays. --crop 64 is 64x64."""
    write_images(space("photos"), ("ant", "bee"), 2, (512, 384))
    text = pack(space("photos"), space("squeezed"), "--resize", "96x128", "--crop", "64x64", "--dry-run")
    check("changes the aspect ratio" in text and "from 1.33 to 0.75" in text and "--resize 64 --crop 64x64 keeps it" in text,
          text)
    for arguments in (["--resize", "64", "--crop", "64"], ["--resize", "128x96"], ["--resize", "128x98"], ["--fit", "64x64"]):
        text = pack(space("photos"), space("kept"), *arguments, "--dry-run")
        check("aspect ratio" not in text and "as large as they are" not in text, arguments, text)
    pack(space("photos"), space("square"), "--resize", "64", "--crop", "64")
    sample = manifest_of(space("square"))["sample"]
    check((sample["height"], sample["width"]) == (64, 64) and manifest_of(space("square"))["spec"]["crop"] == "64x64", sample)
    text = pack(space("photos"), space("whole"))
    check("packed as large as they are: 512x384 pixels, 589.8 kB a sample, 2.4 MB in all" in text, text)


def test_files_that_are_no_images_were_rejected(space):
    for name in ("notes.txt", "Thumbs.db"):
        with open(space(f"more/ant/{name}"), "w") as file:
            file.write("no image")
    text = pack(space("more"), space("clean"), "--max-errors", "0")
    check("2 files are skipped as evidently no images (1 .txt, 1 thumbs.db)" in text, text)
    check(manifest_of(space("clean"))["rows"] == 20, "they are no rows")
    text = pack(space("more"), space("all"), "--include", "*", "--max-errors", "0", expect=1)
    check(manifest_of(space("clean"))["spec"]["include"] == "none", "recorded")
    pack(space("more"), space("chosen"), "--include", "[0-4].png,5.png")
    check(manifest_of(space("chosen"))["rows"] == 12, "only what matches")


def test_a_class_without_an_image_shifted_ids_without_a_word(space):
    for name in ("__pycache__/x.pyc", "aux/clip.mp4", "bad/noise"):
        os.makedirs(os.path.dirname(space(f"shifted/{name}")))
        with open(space(f"shifted/{name}"), "w") as file:
            file.write("no image")
    for label in ("ant", "eel"):
        shutil.copytree(space(f"more/{label}"), space(f"shifted/{label}"))
    text = pack(space("shifted"), space("unshifted"), "--max-errors", "1")
    check("2 sub-folders hold no files to pack and are no class: __pycache__, aux" in text, text)
    check("no image of 1 class could be packed, but it keeps its id: bad" in text, text)
    check([name for _, name, _ in classes_of(space("unshifted"))] == ["ant", "bad", "eel"], classes_of(space("unshifted")))


def test_messages_named_the_wrong_cause(space):
    text = pack(space("more"), space("none"), "--include", "*.webp", expect=65)
    check("none of the 22 files in sub-folders matches --include" in text, text)
    text = pack(space("more/ant"), space("none"), expect=65)
    check("in the folder itself; for images without class folders give their labels with --labels" in text, text)
    shutil.copytree(space("more/ant"), space("hub"))
    open(space("hub/metadata.jsonl"), "w").write('{"file_name": "1.png", "label": "ant"}\n')
    text = pack(space("hub"), space("none"), expect=65)
    check("metadata.jsonl --file-column file_name; --label-type none packs them without labels" in text, text)
    text = pack(space("hub"), space("none"), "--labels", space("hub/metadata.jsonl"), expect=65)
    check('expected a header with a column "file" for --file-column' in text, text)
    check("give --file-column file_name" in text, text)
    names = sorted(os.listdir(space("more/ant")))
    labels = ["cat", "dog", "cat|dog", "dog|eel", "eel"]
    with open(space("joined.csv"), "w") as file:
        file.writelines(["file,label\n", *(f"{name},{labels[at % 5]}\n" for at, name in enumerate(names))])
    text = pack(space("more/ant"), space("joined"), "--labels", space("joined.csv"), "--dry-run")
    check("\"dog|eel\" is one of 5 classes; where a sample has several labels, give --label-separator '|'" in text, text)
    pack(space("more"), space("divided"), "--split", "train=0.5,val=0.5")
    text = pack(space("more"), space("none"), "--classes", space("divided"), expect=65)
    check("holds 2 packs; name one of them" in text, text)
    text = pack(space("more"), space("divided"), expect=73)
    check("holds train, a pack by itself, perhaps of an earlier split; remove it" in text, text)
    check("must not contain /" in pack(space("more"), space("none"), "--split", "a/b=0.5,c=0.5", expect=2), "names of a split")
    pack(space("more"), space("sorted"))
    text = pack(space("more"), space("sorted"), "--classes", space("divided/train"), expect=73)
    check(f"classes: sorted before, {space('divided/train')} now" in text, text)
    shutil.copytree(space("more"), space("quoted"))
    os.rename(space("quoted/ant"), space("quoted/ant, red"))
    with open(space("quoted/eel/large.png"), "wb") as file:
        file.write(b"P5 40000 10000 255\n")
    text = pack(space("quoted"), space("quotes"), "--max-errors", "1")
    check('0 = "ant, red", 1 = ' in text and "N x N" not in text and "40000" in text, text)


def test_pack_info_draws_counts_as_bars(space):
    write_images(space("uneven"), ["ant"], 48)
    write_images(space("uneven"), ["bee"], 24)
    write_images(space("uneven"), ["cat"], 1)
    pack(space("uneven"), space("bars"))
    text = run("pack-info", space("bars"))
    bars = {line.split()[1]: line.split()[2:] for line in text.splitlines() if line.endswith("#")}
    check(bars == {"ant": ["48", 24 * "#"], "bee": ["24", 12 * "#"], "cat": ["1", "#"]}, text)


def test_links_into_a_cache_were_rejected(space):
    """DVC, git-annex and Hugging Face: files are links that lead out of ROOT."""
    os.makedirs(space("dvc/data/ant"))
    os.makedirs(space("dvc/cache"))
    for number in range(5):
        Image.new("L", (8, 6), GRAYS["ant"]).save(space(f"dvc/cache/{number}"), format="png")
        os.symlink(f"../../cache/{number}", space(f"dvc/data/ant/{number}.png"))
    os.symlink(space("more/eel"), space("dvc/data/eel"))
    pack(space("dvc/data"), space("x"), expect=(1, 65))
    pack(space("dvc/data"), space("linked"), "--follow-symlinks")
    check(classes_of(space("linked")) == [(0, "ant", 5), (1, "eel", 10)], classes_of(space("linked")))
    check_labels_are_those_of_pixels(space("linked"))


def test_a_recipe_keeps_what_was_asked_for(space):
    recipe = space("recipe.toml")
    pack(space("imagenet"), space("saved"), "--split-folders", "train,val", "--include", "*.png", "--save-config", recipe,
         "--max-errors", "1")
    check("already packed" in run("pack-images", "--config", recipe), "the same pack from the recipe")
    pack(space("val"), space("plain"), "--save-config", recipe, "--force")
    check("already packed" in run("pack-images", "--config", recipe), "of empty lists, too")


with Workspace() as workspace:
    run_tests(globals(), workspace)
