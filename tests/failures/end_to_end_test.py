"""Packs small sets and reads them with h5py; equal bytes in any surroundings; every row is accounted for once."""
import calendar
import csv
import json
import os
import random
import shutil
import sys
import time

import h5py
import jsonschema
import numpy as np
from PIL import Image, ImageOps

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import SMALL, Workspace, check, draw_seed, fingerprint, make_images, pack, run, run_tests


SCHEMA = json.load(open(os.path.join(os.path.dirname(__file__), "../../schemas/manifest.schema.json")))


def packs_below(folder):
    return [path for path, _, files in os.walk(folder) if "manifest.json" in files]


def check_conservation(folder):
    """Every number that a pack's files state about its rows agrees with the others and with what the parts hold."""
    manifest = json.load(open(f"{folder}/manifest.json"))
    jsonschema.validate(manifest, SCHEMA)
    check(manifest["rows"] == manifest["samples"] + manifest["rejected"], folder, "rows")
    with open(f"{folder}/rejects.csv", newline="") as file:
        rejected = [int(row["row"]) for row in csv.DictReader(file)]
    check(len(rejected) == manifest["rejected"] and rejected == sorted(set(rejected)), folder, "rejects.csv")
    with open(f"{folder}/warnings.csv", newline="") as file:
        warned = [int(row["row"]) for row in csv.DictReader(file)]
    check(len(warned) == manifest["warned"] and warned == sorted(set(warned) - set(rejected)), folder, "warnings.csv")
    totals = {name: sum(part[name] for part in manifest["parts"]) for name in ("samples", "rows")}
    check(totals["samples"] == manifest["samples"], folder, "samples of the parts")
    counts, pixels, in_parts = {}, np.zeros((3, 4), dtype=object), []
    for part in manifest["parts"]:
        own = json.load(open(f"{folder}/{part['file'].rsplit('.', 1)[0]}.json"))
        check(all(own["part"][name] == part[name] for name in part), folder, part["file"], "sidecar")
        check(os.path.getsize(f"{folder}/{part['file']}") == part["bytes"], folder, part["file"], "bytes")
        check(part["rows"] == part["samples"] + len(own["part"]["rejects"]), folder, part["file"], "rows")
        in_parts += [reject["row"] for reject in own["part"]["rejects"]]
        warned = [row for row in warned if row not in [warning["row"] for warning in own["part"]["warnings"]]]
        for entry in own["part"]["classes"]:
            counts[entry["id"]] = counts.get(entry["id"], 0) + entry["samples"]
        for index, name in enumerate(("sum", "sum_of_squares")):
            pixels[index] += np.array(own["part"]["pixels"][name], dtype=object)
        pixels[2] += own["part"]["pixels"]["pixel_count"]
    check(set(in_parts) <= set(rejected) and len(in_parts) == len(set(in_parts)), folder, "rejects of the parts")
    check(not warned, folder, "warnings of the parts")
    check(totals["rows"] == manifest["rows"] - (len(rejected) - len(in_parts)), folder, "rows of the parts")
    if manifest["labels"]["kind"] == "class_id":
        check({entry["id"]: entry["samples"] for entry in manifest["classes"] if entry["samples"]} == counts, folder, "classes")
        check(sum(counts.values()) == manifest["samples"], folder, "samples of the classes")
    for channel, mean in enumerate(manifest["mean"]):
        check(abs(pixels[0][channel] / pixels[2][channel] / 255 - mean) < 1e-9, folder, "mean")
    return manifest, rejected


def read(folder):
    """Pixels, labels, rows and files of all parts of an HDF5 pack."""
    parts = [part["file"] for part in json.load(open(f"{folder}/manifest.json"))["parts"]]
    columns = {name: [] for name in ("images", "labels", "rows", "files")}
    for part in parts:
        with h5py.File(f"{folder}/{part}") as file:
            for name, values in columns.items():
                values.append(file[name][:])
    return {name: np.concatenate(values) for name, values in columns.items()}


def check_pixels(root, folder, rows):
    data = read(folder)
    for index, row in enumerate(data["rows"]):
        file, label = rows[row]
        check(data["files"][index].decode() == file, "file of row", row)
        check(("ant", "bee", "cat")[data["labels"][index]] == label, "label of row", row)
        expected = np.asarray(Image.open(f"{root}/{file}").convert("RGB").resize((16, 12), Image.BILINEAR))
        check(np.array_equal(data["images"][index], expected), "pixels of row", row)
    return data


def check_rejects(root, folder, bad):
    with open(f"{folder}/rejects.csv", newline="") as file:
        rejects = list(csv.DictReader(file))
    check(len(rejects) == bad, len(rejects), "rejects, expected", bad)
    check(all(reject["reason"] for reject in rejects), "a reject without a reason")


def test_pixels_threads_and_rejects(space):
    root = space("photos")
    rows = make_images(root, 400, bad=9)
    for arguments in (["--codec", "none"], ["--codec", "deflate"], ["--codec", "zstd:3"],
                      ["--container", "shard"], ["--container", "shard", "--codec", "none", "--layout", "nchw"]):
        packs = []
        for threads in (1, 2, 4, 7):
            out = space("out-" + "-".join(a.strip("-:") for a in arguments) + str(threads))
            pack(root, out, *arguments, "--threads", threads, "--max-errors", "10%")
            packs.append(fingerprint(out))
            check(packs[-1] == packs[0], arguments, threads, "threads: other bytes than with 1")
            check("whole" in run("pack-verify", out), "verify")
        check_rejects(root, out, 9)
        if arguments[-1] in ("none", "deflate"):
            data = check_pixels(root, out, rows) if "--container" not in arguments else None
            check(data is None or len(data["rows"]) == 391, "samples")


def test_every_row_ends_in_one_place(space):
    """A random list of good, broken, missing and repeated files, and of rows without a label."""
    seed = draw_seed()
    rng = random.Random(seed)
    rows = make_images(space("mixed"), 120, bad=25, seed=seed)
    for number in range(4):
        listed = [(file, label if rng.random() < 0.9 else "") if rng.random() < 0.9 else (f"missing{rng.random()}.png", label)
                  for file, label in rng.choices(rows, k=300)]
        with open(space("mixed/labels.csv"), "w", newline="") as file:
            csv.writer(file).writerows([("file", "label"), *listed])
        out = space(f"mixed{number}")
        split = ["--split", "a=0.7,b=0.3"] if number % 2 else []
        pack(space("mixed"), out, "--max-errors", "100%", *split)
        placed = []
        for folder in packs_below(out):
            manifest, rejected = check_conservation(folder)
            packed = read(folder)
            for row, label in zip(packed["rows"], packed["labels"]):
                check(manifest["classes"][label]["name"] == listed[row][1], "label of row", row)
            placed += [*rejected, *map(int, packed["rows"])]
        check(sorted(placed) == list(range(300)), "each row once", seed)


def test_the_same_bytes_in_any_surroundings(space):
    """Locale, time zone, umask, memory, threads, the order of the folder's entries, a path with a blank."""
    rows = make_images(space("there"), 90)
    os.makedirs(space("some where"))
    for name, _ in sorted(rows, key=lambda row: row[0][::-1], reverse=True):
        path = space(f"some where/{name}")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(space(f"there/{name}"), "rb") as source, open(path, "wb") as copy:
            copy.write(source.read())
    packs = []
    for root, umask, env, arguments in (("there", 0o022, {}, []), ("some where", 0o077, {"LC_ALL": "C"}, ["--threads", "7"]),
                                        ("there", 0, {"LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu"}, ["--memory-bytes", "1500M"]),
                                        ("some where", 0o027, {"LC_ALL": "de_DE.UTF-8", "HOME": "/nonexistent", "TMPDIR": "/nonexistent"},
                                         ["--progress", "json", "--threads", "1"])):
        out = space(f"surroundings{len(packs)}")
        before = os.umask(umask)
        run("pack-images", f"{space(root)}/images", *SMALL, *arguments, "--output", out, env=env)
        os.umask(before)
        packs.append(fingerprint(out))
        check(packs[-1] == packs[0], root, env, arguments, "other bytes")


def test_turned_images_are_upright_as_in_pillow(space):
    os.makedirs(space("turned/x"))
    source = Image.fromarray(np.random.default_rng(3).integers(0, 256, (12, 12, 3), dtype=np.uint8))
    expected = {}
    for orientation in range(1, 9):
        for ending in ("png", "jpg"):
            exif = Image.Exif()
            exif[0x112] = orientation
            name = f"x/{orientation}.{ending}"
            source.save(space(f"turned/{name}"), exif=exif)
            expected[name] = np.asarray(ImageOps.exif_transpose(Image.open(space(f"turned/{name}"))))
    run("pack-images", space("turned"), "--output", space("upright"))
    data = read(space("upright"))
    check(len(data["files"]) == 16, data["files"])
    for file, image in zip(data["files"], data["images"]):
        check(np.array_equal(image, expected[file.decode()]), file, "is not upright as in Pillow")


def test_the_run_is_recorded(space):
    begin = time.time()
    run("pack-images", space("turned"), "--output", space("recorded"))
    taken = time.time() - begin
    record = json.load(open(space("recorded/run.json")))
    check(0 < record["seconds"] <= taken, record, taken)
    check(record["threads"] >= 1 and record["command_line"].endswith(f"--output {space('recorded')}"), record)
    started = calendar.timegm(time.strptime(record["started"], "%Y-%m-%dT%H:%M:%SZ"))
    check(int(begin) <= started <= begin + taken - record["seconds"], record, begin, taken)


def test_class_folders_equal_the_csv(space):
    root = space("photos")
    run("pack-images", root + "/images", "--resize", "16x12", "--output", space("folders"), "--order", "input", "--max-errors", "9")
    data = read(space("folders"))
    check(list(data["labels"]) == sorted(data["labels"]), "classes in order")


def test_pack_info_names_things_as_the_manifest_does(space):
    info = json.loads(run("pack-info", space("folders"), "--json"))
    manifest = json.load(open(space("folders/manifest.json")))
    check(info["classes"][1]["name"] == "bee", info["classes"])
    check({name for name in manifest if name not in info} == {"format", "version", "rejects", "warnings", "xxh3"}, sorted(info))
    for name, value in manifest.items():
        if name in info and name != "parts":
            check(info[name] == value, name, info[name], value)
    for part, own in zip(info["parts"], manifest["parts"]):
        check(part.items() <= own.items(), part, own)


def test_split_covers_every_row_once(space):
    out = space("split")
    pack(space("photos"), out, "--split", "train=0.8,val=0.2", "--max-errors", "10%")
    rows = np.concatenate([read(f"{out}/{name}")["rows"] for name in ("train", "val")])
    check(len(set(rows)) == len(rows) == 391, "rows of the split")


def test_a_folder_of_packs_and_splits_is_verified_as_a_whole(space):
    folder = space("all")
    pack(space("photos"), f"{folder}/one", "--max-errors", "10%")
    pack(space("photos"), f"{folder}/split", "--split", "train=0.8,val=0.2", "--max-errors", "10%")
    named = {"one", "split/train", "split/val"}
    check(set(json.loads(run("pack-verify", "--quick", "--json", folder))) == named, "packs of the folder")
    check(set(json.loads(run("pack-info", "--json", folder))) == named, "packs of the folder")
    shutil.copytree(f"{folder}/split/val", space("val"))
    shutil.rmtree(f"{folder}/split/val")
    text = run("pack-verify", "--quick", folder, expect=65)
    check(f"{folder}/split/val: is missing: {folder}/split/train is of the split train, val;" in text, text)
    found = json.loads(run("pack-verify", "--quick", "--json", folder, expect=65))
    check(set(found) == named and len(found["split/val"]["problems"]) == 1 and not found["split/train"]["problems"], found)
    run("pack-verify", "--quick", f"{folder}/split/train")
    shutil.move(space("val"), f"{folder}/split/renamed")
    run("pack-verify", "--quick", folder)
    run("pack-merge", f"{folder}/merged/train", f"{folder}/split/train")
    run("pack-verify", "--quick", f"{folder}/merged")
    os.truncate(f"{folder}/split/train/part-00000.h5", 1000)
    run("pack-verify", "--quick", folder, expect=65)
    shutil.rmtree(folder)


def test_rejects_are_an_input_again(space):
    text = run("pack-images", space("photos"), "--labels", space("out-codec-none1/rejects.csv"), "--resize", "16x12",
               "--accept-warnings", "--output", space("again"), "--max-errors", "100%", expect=(0, 1, 65))[1]
    check("9 rows" in text or "9 files" in text, text)
    text = run("pack-images", space("photos"), "--labels", space("out-codec-none1/rejects.csv"), "--resize", "16x12",
               "--accept-warnings", "--output", space("again"), "--dry-run")
    check("--classes PACK keeps them" in text, text)


def test_same_command_again_does_nothing(space):
    out = space("out-codec-none1")
    before = fingerprint(out)
    check("already packed" in pack(space("photos"), out, "--max-errors", "10%"), "already packed")
    check(fingerprint(out) == before, "the finished pack changed")
    shutil.copytree(space("photos"), space("longer"))
    with open(space("longer/labels.csv"), "a") as file:
        file.write("images/ant/00000.png,bee\n")
    text = run("pack-images", space("longer"), "--labels", space("longer/labels.csv"), "--resize", "16x12", "--part-bytes", "40000",
               "--output", out, expect=73)
    check("the input list changed: 400 rows before, 401 now)" in text, text)
    text = pack(space("photos"), out, "--seed", "1", expect=73)
    check("seed: 0 before, 1 now" in text, text)
    pack(space("photos"), out, "--seed", "1", "--max-errors", "10%", "--force")


def test_a_finished_pack_that_is_not_whole_is_packed_again(space):
    """Removed and shortened parts, records and rejects.csv: pack-verify names them, the same command mends them."""
    out = space("mended")
    pack(space("photos"), out, "--max-errors", "10%")
    golden = fingerprint(out)
    parts = [part["file"] for part in json.load(open(f"{out}/manifest.json"))["parts"]]
    for name in (parts[0], parts[-1], "part-00001.json", "rejects.csv", "warnings.csv"):
        for damage in (os.remove, lambda path: os.truncate(path, os.path.getsize(path) - 1)):
            damage(f"{out}/{name}")
            text = run("pack-verify", "--quick", out, expect=65)
            check(name in text and "to repair" in text, text)
            text = pack(space("photos"), out, "--max-errors", "10%")
            check("not whole" in text and "already packed" not in text, name, text)
            check(fingerprint(out) == golden, name, "differs after it was mended")
    check("already packed" in pack(space("photos"), out, "--max-errors", "10%"), "already packed")


def test_what_pack_verify_says_repairs_a_pack(space):
    """Flipped bytes keep a file's size, so only pack-verify sees them; following its words gives the pack again."""
    out = space("mended")
    golden = fingerprint(out)
    for name in ("part-00000.h5", "part-00001.json", "rejects.csv", "warnings.csv"):
        with open(f"{out}/{name}", "r+b") as file:
            file.seek(os.path.getsize(f"{out}/{name}") // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))
        text = run("pack-verify", out, expect=65)
        named = [line.strip() for line in text.split("to repair")[1].splitlines()[1:]]
        check(f"{out}/{name}" in named and f"{out}/manifest.json" in named, text)
        for path in named:
            if path.startswith(out):
                os.remove(path)
        pack(space("photos"), out, "--max-errors", "10%")
        check(fingerprint(out) == golden, name, "differs after it was repaired")
    open(f"{out}/notes.txt", "w").close()
    text = run("pack-verify", out, expect=65)
    check("notes.txt: is not part of the pack" in text and "to repair" not in text, text)
    os.remove(f"{out}/notes.txt")


with Workspace() as workspace:
    run_tests(globals(), workspace)
    checked = [check_conservation(folder) for folder in packs_below(workspace.path)]
    check(len(checked) > 30, "only", len(checked), "packs were found")
    print(len(checked), "manifests agree with schemas/manifest.schema.json and with their packs")
