"""pack-info --list gives a CSV of which pack-images makes the same pack, a part of it, or another split of it."""
import csv
import os
import subprocess
import sys

import h5py
import numpy as np
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, SMALL, check, fingerprint, make_images, pack, run, run_tests
from sparse_packs import pack as pack_ratings
from sparse_packs import random_ratings, write_csv


def list_of(path, listed=None, notes=()):
    """What pack-info --list writes to stdout, also as a file."""
    done = subprocess.run([os.path.join(BIN, "pack-info"), path, "--list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60, check=True)
    said = done.stderr.decode()
    check(all(note in said for note in notes) and (notes or not said), "notes", said)
    if listed:
        with open(listed, "wb") as file:
            file.write(done.stdout)
    return done.stdout.decode()


def pack_list(root, output, listed, *arguments):
    run("pack-images", root, "--labels", listed, *SMALL, "--progress", "none", "-o", output, *arguments)


def arrays(folder):
    """Pixels, labels and files of an HDF5 pack, by row of its list."""
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".h5"):
            with h5py.File(os.path.join(folder, name)) as part:
                for image, label, row, file in zip(part["images"], part["labels"], part["rows"], part["files"].asstr()):
                    found[int(row)] = (image.tobytes(), label, file)
    return found


def test_a_list_packs_the_same_bytes_again(space):
    make_images(space("in"), 150)
    for output, flags in (("h5", []), ("shard", ["--container", "shard", "--seed", "7"])):
        pack(space("in"), space(output), *flags)
        list_of(space(output), space("list.csv"))
        pack_list(space("in"), space(output + ".again"), space("list.csv"), *flags)
        check(fingerprint(space(output)) == fingerprint(space(output + ".again")), output)
    check(list_of(space("h5/manifest.json")) == list_of(space("h5")), "the manifest lists other samples")
    part = list_of(space("h5/part-00001.h5")).splitlines()
    check(1 < len(part) < 151 and set(part) <= set(list_of(space("h5")).splitlines()), part)


def test_an_edited_list_packs_what_the_edited_labels_do(space):
    rows = make_images(space("in"), 60, bad=4)
    pack(space("in"), space("out"), "--max-errors", "10")
    list_of(space("out"), space("list.csv"), ["note: 4 rejected rows are not listed: see rejects.csv"])
    with open(space("list.csv"), newline="") as file:
        listed = list(csv.DictReader(file))
    check([(row["file"], row["label"]) for row in listed] == rows[:56], "another list")
    kept = [(row["file"], "cat" if row["label"] == "bee" else row["label"]) for row in listed if int(row["row"]) % 3]
    for name, header in (("edited.csv", "file,label\n"), ("of_labels.csv", "file,label\n")):
        with open(space(name), "w") as file:
            file.write(header + "".join(",".join(row) + "\n" for row in kept))
    pack_list(space("in"), space("edited"), space("edited.csv"), "--classes", space("out"))
    pack_list(space("in"), space("expected"), space("of_labels.csv"), "--classes", space("out"))
    check(fingerprint(space("edited")) == fingerprint(space("expected")), "bytes differ")
    whole, part = arrays(space("out")), arrays(space("edited"))
    check(len(part) == len(kept), len(part))
    by_file = {file: (image, label) for image, label, file in whole.values()}
    check(all(by_file[file][0] == image and label == (2 if by_file[file][1] == 1 else by_file[file][1])
              for image, label, file in part.values()), "pixels or labels differ")


def test_the_packs_of_a_split_are_one_list_that_can_be_split_again(space):
    make_images(space("in"), 60)
    pack(space("in"), space("whole"))
    pack(space("in"), space("split"), "--split", "train=0.6,val=0.4")
    check(list_of(space("split"), space("list.csv")) == list_of(space("whole")), "another list")
    pack_list(space("in"), space("again"), space("list.csv"), "--split", "train=0.6,val=0.4")
    for share in ("train", "val"):
        check(fingerprint(space("split/" + share)) == fingerprint(space("again/" + share)), share)
    train, val = (set(list_of(space("split/" + share)).splitlines()[1:]) for share in ("train", "val"))
    check(train and val and not train & val and len(train | val) == 60, len(train), len(val))


def test_a_merged_pack_lists_the_samples_of_its_packs_one_after_the_other(space):
    make_images(space("one"), 40)
    for name, flags in (("a", []), ("b", ["--seed", "3"])):
        pack(space("one"), space(name + ".pack"), *flags)
    run("pack-merge", space("merged"), space("b.pack"), space("a.pack"))
    first, second = (list_of(space(name + ".pack")).splitlines() for name in "ba")
    check(list_of(space("merged")).splitlines() == first + second[1:], "another list")


def test_a_merged_pack_of_several_folders_names_them(space):
    """Packs of two folders have files of the same names, also one that was filled anew."""
    for day, seed in (("monday", 1), ("tuesday", 2)):
        make_images(space(f"days/{day}"), 30, seed=seed)
        pack(space(f"days/{day}"), space(f"{day}.pack"))
    run("pack-merge", space("days.pack"), space("monday.pack"))
    run("pack-merge", space("days.pack"), space("days.pack"), space("tuesday.pack"))
    listed = list_of(space("days.pack"), space("days.csv"), [f"all in {space('days')}: pack-images"])
    files = [row["file"] for row in csv.DictReader(listed.splitlines())]
    check(len(files) == 60 and all(os.path.exists(file) for file in files), files[:3])
    pack_list(space("days"), space("again"), space("days.csv"))
    pixels = [{(os.path.realpath(os.path.join(root, file)), image) for image, _, file in arrays(folder).values()}
              for root, folder in ((space("days"), space("again")), (space("days/monday"), space("monday.pack")),
                                   (space("days/tuesday"), space("tuesday.pack")))]
    check(pixels[0] == pixels[1] | pixels[2] and len(pixels[0]) == 60, "other images than the merged pack's")
    said = run("pack-info", space("days.pack"))
    check(all(f"of {space('days')}/{day}" in said for day in ("monday", "tuesday")), said)
    os.remove(space("tuesday.pack/run.json"))
    run("pack-merge", space("unknown"), space("monday.pack"), space("tuesday.pack"))
    listed = list_of(space("unknown"), None, ["run.json of the merged packs does not say"])
    check(not any(space("days") in line for line in listed.splitlines()), listed)


def test_labels_and_names_of_every_kind_are_read_back(space):
    os.makedirs(space("in"))
    names = ["plain.png", "big, brown.png", 'quo"te.png', "line\nbreak.png", "=sum(a).png", "-x.png", "ä.png", " blank .png"]
    for index, name in enumerate(names):
        Image.fromarray(np.full((8, 8, 3), 20 * index, np.uint8)).save(os.path.join(space("in"), name), format="png")
    tables = {"ids": (["file", "label"], [["7"], ["-3"], ["7"], ["9223372036854775807"], ["0"], ["1"], ["2"], ["3"]]),
              "floats": (["path", "score"], [["7.0"], ["0.1"], ["-1e-3"], ["2.0"], ["0.3333333"], ["1e20"], ["4.0"], ["5.0"]]),
              "several": (["row", "a", "b"], [[str(i), str(i / 7)] for i in range(8)]),
              "words": (["file", "kind, of"], [["b"], ["a,b"], ["é"], ["x y"], ['"q"'], ["7"], ["b"], ["b"]])}
    for kind, (header, labels) in tables.items():
        with open(space(kind + ".csv"), "w", newline="") as file:
            csv.writer(file).writerows([header] + [[name, *label] for name, label in zip(names, labels)])
        flags = ["--file-column", header[0]] + [word for name in header[1:] for word in ("--label-column", name)]
        pack_list(space("in"), space(kind), space(kind + ".csv"), *flags)
        text = list_of(space(kind), space("list.csv"))
        check((",row" in text.splitlines()[0]) == (kind != "several"), text)
        pack_list(space("in"), space(kind + ".again"), space("list.csv"), *flags)
        before, after = arrays(space(kind)), arrays(space(kind + ".again"))
        check(len(before) == 8, kind)
        for row, (image, label, file) in before.items():
            found = after[row]
            check(found[0] == image and np.array_equal(found[1], label) and found[2] in (file, "./" + file), kind, row)


def test_class_folders_that_are_numbers_are_names_again_with_their_classes(space):
    for folder in ("10", "9", "2"):
        os.makedirs(space("in/" + folder))
        Image.fromarray(np.full((8, 8, 3), int(folder), np.uint8)).save(space(f"in/{folder}/a.png"))
    run("pack-images", space("in"), "-o", space("out"), "--resize", "8x8")
    list_of(space("out"), space("list.csv"), ["names of classes are numbers", "--classes " + space("out")])
    run("pack-images", space("in"), "--labels", space("list.csv"), "--classes", space("out"), "--resize", "8x8", "-o", space("again"))
    before, after = arrays(space("out")), arrays(space("again"))
    check(all(after[row][1] == before[row][1] and after[row][0] == before[row][0] for row in before), "labels differ")


def test_what_has_no_list_of_images_is_refused(space):
    def refused(words, *arguments, expect=65):
        said = run("pack-info", *arguments, "--list", expect=expect)
        check(words in said, words, said)

    make_images(space("in"), 40)
    pack(space("in"), space("out"))
    refused("--json excludes --list", space("out"), "--json", expect=2)
    refused("--watch excludes --list", space("out"), "--watch", expect=2)
    pack_ratings(write_csv(space("r.csv"), random_ratings(1)), "-o", space("ratings"))
    refused("holds ratings; users.csv and items.csv in it list rows and columns", space("ratings"))
    with h5py.File(space("theirs.h5"), "w") as file:
        file["images"], file["labels"] = np.zeros((4, 8, 8, 3), np.uint8), np.zeros(4, np.int64)
    refused("an external file, which names no files of images", space("theirs.h5"))
    refused("no finished pack", space("in"))
    with open(space("out/part-00000.h5"), "r+b") as file:
        file.seek(-30, os.SEEK_END)
        file.write(b"damaged")
    refused("part-00000.h5", space("out"))


def test_a_closed_pipe_ends_a_list_quietly(space):
    make_images(space("in"), 9)
    with open(space("many.csv"), "w") as file:
        file.write("file,label\n" + "images/ant/00000.png,ant\n" * 30_000)
    run("pack-images", space("in"), "--labels", space("many.csv"), "--resize", "1x1", "--container", "shard", "-o", space("out"))
    command = f"{os.path.join(BIN, 'pack-info')} {space('out')} --list | head -2"
    done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, check=True)
    check(done.stdout.decode().splitlines() == ["file,label,row", "images/ant/00000.png,ant,0"], done.stdout)
    check(not done.stderr, done.stderr)
    full = f"{os.path.join(BIN, 'pack-info')} {space('out')} --list > /dev/full"
    done = subprocess.run(["bash", "-c", full], stderr=subprocess.PIPE, timeout=60, check=False)
    check(done.returncode == 73 and b"No space left" in done.stderr, done)


if __name__ == "__main__":
    run_tests(globals())
