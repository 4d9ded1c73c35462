"""Packs as the input of pack-sparse: the union has what packing the original texts together has; damage is never left out."""
import os
import re
import shutil
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from optional import optional
from packing import check, files_of, fingerprint, make_images, run, run_tests
from packing import pack as pack_images
from sparse_packs import SMALL, Pack, pack, random_ratings, write_csv

anndata = optional("anndata")


def two_days(space, seed=1):
    """Writes day1.csv and day2.csv, which repeat some pairs, packs both and returns the texts' paths."""
    first = random_ratings(seed, count=3000)
    known = {rating[:2] for rating in first}
    others = [rating for rating in random_ratings(seed + 1, users=340, items=110, count=2500) if rating[:2] not in known]
    again = [(user, item, 5, time) for user, item, _, time in first[::20]]
    texts = [write_csv(space("day1.csv"), first), write_csv(space("day2.csv"), others + again)]
    for day in ("day1", "day2"):
        pack(space(day + ".csv"), "-o", space(day), *SMALL)
    return texts


def without_times(text):
    """The same text as packs hold it: they have no times, and `last` goes by the order of the input then."""
    with open(text) as source, open(text + ".plain", "w") as target:
        target.writelines(",".join(line.rstrip().split(",")[:3]) + "\n" for line in source)
    return text + ".plain"


def test_the_union_of_packs_has_the_entries_of_the_texts_packed_together(space):
    texts = [without_times(text) for text in two_days(space)]
    for index, flags in enumerate((
            ["--duplicates", "last"], ["--duplicates", "sum"], ["--duplicates", "max"],
            ["--duplicates", "first", "--min-user", "9", "--min-item", "12"],
            ["--duplicates", "last", "--above", "2.5", "--binarize", "--min-user", "3"],
            ["--duplicates", "max", "--values", "u16:0.25", "--id-order", "sorted"],
            ["--duplicates", "last", "--reuse-ids", space("day1")])):
        pack(*texts, "-o", space(f"texts{index}"), *flags, *SMALL)
        pack(space("day1"), space("day2"), "-o", space(f"packs{index}"), *flags, *SMALL)
        expected, found = Pack(space(f"texts{index}")), Pack(space(f"packs{index}"))
        check(found.x == expected.x and len(found.x) > 500, flags)
        check(found.manifest["values"] == expected.manifest["values"], flags)
        check(sorted(found.users) == sorted(expected.users) and sorted(found.items) == sorted(expected.items), flags)
        check([step["ratings"] for step in found.manifest["stats"]["steps"]]
              == [step["ratings"] for step in expected.manifest["stats"]["steps"]], flags)
    said = pack(space("day1"), space("day2"), "-o", space("error"), expect=65)
    check("150 ratings repeat a user and item" in said, said)


def test_the_bytes_depend_neither_on_threads_nor_on_memory(space):
    two_days(space)
    how = [space("day1"), space("day2"), "--duplicates", "last", *SMALL]
    pack(*how, "-o", space("one"), "--threads", "1")
    pack(*how, "-o", space("many"), "--threads", "4")
    pack(*how, "-o", space("little"), "--threads", "1", "--memory-bytes", "40M")
    check(fingerprint(space("one")) == fingerprint(space("many")) == fingerprint(space("little")), "bytes differ")
    said = pack(*how, "-o", space("one"), "--threads", "2")
    check("already packed, nothing to do" in said, said)
    said = pack(space("day2"), space("day1"), "--duplicates", "last", *SMALL, "-o", space("one"), expect=73)
    check("the input changed" in said, said)


def test_packs_of_every_container_and_type_of_value_are_read_exactly(space):
    ratings = random_ratings(3, count=2000)
    kinds = {"half": ratings, "ones": [(u, i, 1, t) for u, i, _, t in ratings],
             "wide": [(u, i, 1 + 37 * u % 60_000, t) for u, i, _, t in ratings],
             "float": [(u, i, np.float32(r / 3), t) for u, i, r, t in ratings]}
    for kind, rows in kinds.items():
        source = without_times(write_csv(space(kind + ".csv"), rows))
        pack(source, "-o", space(kind), *SMALL)
        expected = Pack(space(kind)).x
        for flags in ((), ("--codec", "none"), ("--container", "hdf5")):
            small = [*SMALL[2:], *([] if "hdf5" in flags else SMALL[:2])]
            pack(source, "-o", space("stored"), "--force", *small, *flags)
            pack(space("stored"), "-o", space("again"), "--force", *SMALL)
            check(Pack(space("again")).x == expected, kind, flags)
            check(Pack(space("again")).manifest["values"] == Pack(space(kind)).manifest["values"], kind, flags)
    pack(space("half"), "-o", space("h5"), "--container", "hdf5")
    matrix = anndata.read_h5ad(space("h5/part-00000.h5"))
    check(matrix.X.nnz == len(Pack(space("half")).x), "anndata reads another number of entries")


def test_the_packs_of_a_split_give_back_all_ratings_and_can_be_split_again(space):
    source = without_times(two_days(space)[0])
    split = ["--split-by", "users", "--validation", "20", "--test", "30", "--reuse-ids", space("day1")]
    said = pack(source, "-o", space("split"), *split, *SMALL)
    left_out = sum(int(count) for count in re.findall("left out: [a-z]+: ratings [^:]*: ([0-9]+)", said))
    parts = [space(f"split/{name}") for name in ("train", "validation", "test")]
    said = pack(*parts, "-o", space("joined"), *SMALL)
    check("split/test: the ratings of X and of held_out are taken together" in said, said)
    joined, day1 = Pack(space("joined")).x, Pack(space("day1")).x
    check(joined.items() <= day1.items() and len(joined) == len(day1) - left_out, "entries differ")
    said = pack(space("split"), "-o", space("error"), expect=65)
    check("holds several packs; name those to read: " + " ".join(sorted(parts)) in said, said)
    pack(space("joined"), "-o", space("resplit"), "--split-by", "ratio", "--test", "0.2", *SMALL)
    test = Pack(space("resplit/test"))
    check(test.held_out and not test.held_out.keys() & test.x.keys(), "no ratings are held out")
    check({**test.x, **test.held_out}.items() <= Pack(space("day1")).x.items(), "entries differ")
    given = ["--train-file", space("day1"), "--test-file", space("day2"), "--duplicates", "first", *SMALL]
    pack(*given, "-o", space("given"))
    check(Pack(space("given/train")).x == Pack(space("day1")).x, "training differs")
    check(Pack(space("given/test")).held_out.items() <= Pack(space("day2")).x.items(), "held out differs")
    said = pack(space("day1"), "-o", space("error"), "--split-by", "leave-one-out", expect=2)
    check("time" in said, said)


def test_a_merged_pack_is_an_input_like_its_packs(space):
    two_days(space)
    apart = [(f"night-{user}", item, value) for user, item, value, _ in random_ratings(9, count=800)]
    pack(write_csv(space("night.csv"), apart, "user,item,rating"), "-o", space("night"), "--reuse-ids", space("day1"),
         "--values", "u8:0.5", *SMALL)
    run("pack-merge", space("merged"), space("day1"), space("night"))
    pack(space("day1"), space("night"), "-o", space("one by one"), *SMALL)
    pack(space("merged"), "-o", space("at once"), *SMALL)
    first, second = Pack(space("one by one")), Pack(space("at once"))
    check(first.x == second.x and len(first.x) == len(Pack(space("day1")).x) + len(Pack(space("night")).x), "entries differ")
    check(first.manifest["input_xxh3"] != second.manifest["input_xxh3"], "both inputs have one hash")
    part = sorted(name for name in os.listdir(space("merged")) if name.endswith(".zst"))[-1]
    os.remove(os.path.join(space("merged"), part))
    check(part in pack(space("merged"), "-o", space("out"), expect=65), part)


def test_a_damaged_pack_is_named_and_never_left_out(space):
    two_days(space)
    whole = files_of(space("day2"))
    parts = sorted(name for name in whole if name.endswith(".zst"))
    check(len(parts) > 2, parts)

    def damage(name, change):
        shutil.rmtree(space("day2"))
        os.mkdir(space("day2"))
        for file, data in whole.items():
            if file == name:
                data = change(data)
            if data is not None:
                with open(os.path.join(space("day2"), file), "wb") as target:
                    target.write(data)
        said = pack(space("day1"), space("day2"), "--duplicates", "last", "-o", space("all"), *SMALL, expect=65)
        check(os.path.join(space("day2"), os.path.normpath(name)) in said, name, said)
        check(not os.path.exists(space("all")), "an output was left")

    rng = np.random.default_rng(4)
    for name in (parts[0], parts[-1]):
        for at in (0, 90, 4090, *rng.integers(4096, len(whole[name]) - 40, 8)):
            damage(name, lambda data, at=int(at): data[:at] + bytes([data[at] ^ 16]) + data[at + 1:])
        damage(name, lambda data: data[:-20])
        damage(name, lambda data: b"")
        damage(name, lambda data: None)
    damage(parts[1], lambda _: whole[parts[0]])
    damage("./manifest.json", lambda data: data.replace(b'"rows": ', b'"rows": 1', 1))
    damage("./manifest.json", lambda data: data[:-100])
    first = files_of(space("day1"))
    damage(parts[0], lambda _: first[parts[0]])


def test_what_is_no_pack_of_ratings_is_refused_by_name(space):
    texts = two_days(space)
    before = files_of(space("day1"))

    def refused(words, *arguments, expect=65):
        said = pack(*arguments, "-o", space("out"), expect=expect)
        check(words in said, words, said)
        check(not os.path.exists(space("out")), "an output was left", arguments)

    make_images(space("photos"), 6)
    pack_images(space("photos"), space("images"))
    refused("is a pack of images, expected one of ratings", space("images"))
    refused("photos: is a folder without a pack", space("photos"))
    refused("is text, the inputs before are pack", space("day1"), texts[1])
    refused("is pack, the inputs before are text", texts[1], space("day1"))
    refused("is a file, expected the folder of a pack", texts[0], "--format", "pack")
    refused("is a folder, expected a file", space("day1"), "--format", "text", expect=2)
    refused("rows of packs are users", space("day1"), "--transpose", expect=2)
    refused("--user: has no meaning for pack", space("day1"), "--user", "u", expect=2)
    refused("--encoding: has no meaning for pack, only for text and tables", space("day1"), "--encoding", "latin-1", expect=2)
    with open(space("r.svm"), "w") as file:
        file.write("1 0:2 3:1\n0 1:4\n")
    pack(space("r.svm"), "-o", space("labelled"))
    refused("its rows have labels (label)", space("labelled"))
    shutil.copytree(space("day1"), space("unfinished"))
    os.remove(space("unfinished/manifest.json"))
    refused("no finished pack: run the command that began it to its end first", space("unfinished"))
    pack(texts[0], "-o", space("h5"), "--container", "hdf5")
    fake = open(space("h5/manifest.json")).read()
    for output in (space("day1"), space("day1") + "/.", space("")):
        said = pack(space("day1"), "-o", output, "--force", expect=2)
        check("is or holds the input" in said, said)
    check(files_of(space("day1")) == before, "the input was changed")
    check(open(space("h5/manifest.json")).read() == fake, "another pack was changed")


if __name__ == "__main__":
    run_tests(globals())
