"""Tars as the input of pack-images: the pixels and labels of the same files in folders; damage is named with its byte."""
import csv
import gzip
import io
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tarfile

import h5py
import numpy as np
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, OWN_SIZES, SHIM, SMALL, Workspace, check, fingerprint, make_images, run

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def pack(*arguments, **how):
    shape = [] if "--sizes" in arguments else SMALL
    return run("pack-images", *arguments, *shape, "--progress", "none", **how)


def add(tar, name, data=b"", **fields):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    for field, value in fields.items():
        setattr(member, field, value)
    tar.addfile(member, io.BytesIO(data))


def photos(root, count=40):
    """Makes class folders; returns {path: bytes}, by paths below the folder of the classes."""
    rows = make_images(root, count)
    return {name[len("images/"):]: open(os.path.join(root, name), "rb").read() for name, _ in rows}


def write_tar(path, members, mode="w", **how):
    with tarfile.open(path, mode, **how) as tar:
        for name, data in members.items():
            add(tar, name, data)
    return path


def labelled(files, label=lambda name: {"cls": name.split("/")[0].encode()}):
    """The members of a shard: 000000.jpg, 000000.cls …"""
    members = {}
    for index, (name, data) in enumerate(files.items()):
        members[f"{index:06d}{os.path.splitext(name)[1]}"] = data
        for extension, text in label(name).items():
            members[f"{index:06d}.{extension}"] = text
    return members


def samples(folder):
    """{file of the input: (label, pixels)} of a pack."""
    found = {}
    with open(folder + "/manifest.json") as file:
        manifest = json.load(file)
    names = {record["id"]: record["name"] for record in manifest["classes"] if "name" in record}
    for part in manifest["parts"]:
        with h5py.File(os.path.join(folder, part["file"])) as file:
            for name, label, image in zip(file["files"].asstr()[:], file["labels"][:].tolist(), file["images"][:]):
                found[name] = (names[label] if names else label, image.tobytes())
    return found


def below(found, archive):
    check(found and all(name.startswith(archive + "/") for name in found), archive, list(found)[:3])
    return {name[len(archive) + 1:]: sample for name, sample in found.items()}


def rejects(folder):
    with open(folder + "/rejects.csv", newline="") as file:
        return {row["file"]: row["reason"] for row in csv.DictReader(file)}


def test_a_tar_of_class_folders_is_packed_as_the_folders_are(space):
    files = photos(space("photos"))
    pack(space("photos/images"), "-o", space("folders"))
    expected = samples(space("folders"))
    check(len(expected) == 40, len(expected))
    for name, how in FORMATS.items():
        write_tar(space(name + ".tar"), files, format=how)
        pack(space(name + ".tar"), "-o", space(name))
        check(below(samples(space(name)), name + ".tar") == expected, name)
        run("pack-verify", space(name))
    # As tar writes a folder: its name, or "./", is before all paths.
    subprocess.run(["tar", "-C", space("photos"), "-cf", space("named.tar"), "images"], check=True)
    subprocess.run(["tar", "-C", space("photos/images"), "-cf", space("dot.tar"), "."], check=True)
    said = pack(space("named.tar"), "-o", space("named"))
    check("all images are in images/, whose sub-folders are the classes" in said, said)
    check(below(samples(space("named")), "named.tar/images") == expected, "named")
    pack(space("dot.tar"), "-o", space("dot"))
    check(below(samples(space("dot")), "dot.tar") == expected, "dot")


def test_compressed_tars_and_streams_are_packed_as_plain_ones(space):
    files = photos(space("photos"))
    plain = write_tar(space("a.tar"), files)
    pack(plain, "-o", space("plain"), "--order", "input")
    expected = below(samples(space("plain")), "a.tar")
    with open(plain, "rb") as source, gzip.open(space("a.tar.gz"), "wb") as target:
        target.write(source.read())
    subprocess.run(["zstd", "-q", plain, "-o", space("a.tar.zst")], check=True)
    for name in ("a.tar.gz", "a.tar.zst"):
        pack(space(name), "-o", space("out-" + name), "--threads", "3", "--order", "input")
        check(below(samples(space("out-" + name)), name) == expected, name)
        check("already packed" in pack(space(name), "-o", space("out-" + name), "--order", "input"), "resumed")
    pack(space("a.tar.gz"), space("a.tar"), space("a.tar.zst"), "-o", space("three"))
    three = samples(space("three"))
    for name in ("a.tar.gz", "a.tar", "a.tar.zst"):
        check(below({file: sample for file, sample in three.items() if file.startswith(name + "/")}, name) == expected, name)
    with open(space("a.tar.gz"), "rb") as source:
        done = subprocess.run([BIN + "/pack-images", "-", "-o", space("stdin"), *SMALL, "--progress", "none"], stdin=source,
                              stdout=subprocess.DEVNULL)
    check(done.returncode == 0 and below(samples(space("stdin")), "stdin") == expected, "stdin")
    check(not [name for name in os.listdir(space("")) if name.startswith(".")], os.listdir(space("")))


def test_shards_of_webdataset(space):
    files = photos(space("photos"))
    pack(space("photos/images"), "-o", space("folders"))
    expected = sorted(samples(space("folders")).values())
    half = list(files.items())
    os.makedirs(space("shards/deep"))
    write_tar(space("shards/000.tar"), {**labelled(dict(half[:20])), "000003.txt": b"a caption", "README.md": b"text"})
    write_tar(space("shards/deep/001.tar"), labelled(dict(half[20:]), lambda name: {"json": json.dumps(
        {"label": name.split("/")[0], "id": 7}).encode()}))
    both = [space("shards/000.tar"), space("shards/deep/001.tar")]
    pack(*both, "-o", space("shards-pack"))
    found = samples(space("shards-pack"))
    check(sorted(found.values()) == expected, "pixels and labels")
    check("deep/001.tar/000000.png" in found, list(found))
    pack(space("shards"), "-o", space("by-folder"))
    check(fingerprint(space("by-folder")) == fingerprint(space("shards-pack")), "a folder of shards is these shards")
    pack(*both, "-o", space("sized"), *OWN_SIZES)
    run("pack-verify", space("sized"))
    pack(*both, "-o", space("split"), "--split", "train=0.75,val=0.25")
    train, val = samples(space("split/train")), samples(space("split/val"))
    check(len(train) + len(val) == 40 and 8 < len(val) < 12 and {**train, **val} == found, "split", len(val))
    with open(space("split/val/manifest.json")) as file:
        check(json.load(file)["spec"]["labels"] == "members", "spec")


def test_labels_are_numbers_names_and_columns(space):
    files = photos(space("photos"), 12)
    order = {name: index for index, name in enumerate(files)}
    numbers = lambda name: {"cls": b" %d\n" % (order[name] % 5), "json": json.dumps(
        {"age": order[name], "score": order[name] / 4, "kind": "k%d" % (order[name] % 2)}).encode()}
    tar = write_tar(space("numbers.tar"), labelled(files, numbers))
    pack(tar, "-o", space("ids"), "--order", "input")
    check([label for label, _ in samples(space("ids")).values()] == [index % 5 for index in range(12)], "class ids")
    pack(tar, "-o", space("columns"), "--order", "input", "--label-column", "age", "--label-column", "score")
    check([label for label, _ in samples(space("columns")).values()] == [[index, index / 4] for index in range(12)], "columns")
    pack(tar, "-o", space("kinds"), "--order", "input", "--label-column", "kind")
    check([label for label, _ in samples(space("kinds")).values()] == ["k0", "k1"] * 6, "names")
    said = pack(tar, "-o", space("ids"), "--label-column", "kind", "--order", "input", expect=73)
    check("labels" in said or "input list changed" in said, said)
    with open(space("classes.txt"), "w") as file:
        file.write("4\n3\n2\n1\n0\n")
    pack(tar, "-o", space("given"), "--order", "input", "--classes", space("classes.txt"))
    check([label for label, _ in samples(space("given")).values()] == [str(index % 5) for index in range(12)], "--classes")


def test_each_bad_sample_is_a_reject_with_a_reason(space):
    files = photos(space("photos"), 12)
    members = labelled(files)
    del members["000002.cls"]
    members["000003.cls"] = b"\n"
    members["000004.cls"] = b"\xff\xfe"
    members["000005.png"] = b"no image"
    members["000007.cls"] = b"x" * (1 << 20) + b"y"
    members["000099.cls"] = b"ant"
    members["000006.mask.png"] = members["000000.png"]
    members["000008.png"] = members["000000.png"]
    path = write_tar(space("bad.tar"), members)
    members["v1.0.png"], members["v1.0.cls"] = members["000000.png"], b"bee"
    path = write_tar(space("bad.tar"), members)
    with tarfile.open(path, "a") as tar:
        add(tar, "000001.cls", b"bee")
        add(tar, "000009.jpg", members["000009.jpg"])
    pack(path, "-o", space("bad"), "--max-errors", "20")
    found = rejects(space("bad"))
    wanted = {"000001.jpg": "the tar holds its .cls twice", "000002.jpg": "has no label: expected .cls or .json of the same name "
              "beside it", "000003.jpg": "label is missing", "000004.jpg": "label is not UTF-8; iconv -f cp1252 -t utf-8 converts texts of Windows",
              "000005.png": "not an image of a known type", "000007.jpg": "its label has 1,048,577 bytes, expected at most 1,048,576",
              "000008.jpg": "has 2 images, 000008.jpg and 000008.png; --include chooses one", "000099": "has a label and no image",
              "000009.jpg": "has 2 images, 000009.jpg and 000009.jpg; --include chooses one",
              "v1.0.png": "has no label: expected v1.cls or .json beside it; all up to the first dot of a name is its key, as in "
              'WebDataset: "v1" here; rename such files: a_1.jpg instead of a.1.jpg'}
    for name, reason in wanted.items():
        check(found.get("bad.tar/" + name, "").replace("`include`", "--include") == reason, name, found.get("bad.tar/" + name))
    check(len(found) == len(wanted), sorted(set(found) - {"bad.tar/" + name for name in wanted}))
    check("bad.tar/000006.jpg" in samples(space("bad")), "the image without a second dot is the sample")
    pack(path, "-o", space("chosen"), "--max-errors", "20", "--include", "*.mask.png")
    check(list(below(samples(space("chosen")), "bad.tar")) == ["000006.mask.png"], "--include")


def test_links_hidden_sparse_and_repeated_members(space):
    files = photos(space("photos"), 12)
    names = list(files)
    path = write_tar(space("odd.tar"), files, format=tarfile.PAX_FORMAT)
    with tarfile.open(path, "a") as tar:
        add(tar, "ant/._00000.jpg", b"AppleDouble")
        add(tar, ".hidden/1.jpg", files[names[0]])
        add(tar, "ant/Thumbs.db", b"text")
        add(tar, "ant/a.cls.txt", b"text")
        add(tar, "ant/folder", type=tarfile.DIRTYPE)
        add(tar, "ant/link.jpg", type=tarfile.SYMTYPE, linkname="../" + names[0])
        add(tar, "bee/hard.jpg", type=tarfile.LNKTYPE, linkname=names[0])
        add(tar, "bee/lost.jpg", type=tarfile.LNKTYPE, linkname="ant/none.jpg")
        add(tar, "ant/pipe.jpg", type=tarfile.FIFOTYPE)
        add(tar, "alone.jpg", files[names[0]])
        add(tar, "ant/" + "long" * 60 + ".jpg", files[names[0]])
        add(tar, "ant/Bär 日.jpg", files[names[0]])
        add(tar, names[3], files[names[3]])
        add(tar, "ant/empty.jpg")
        add(tar, "ant/version.2.jpg", files[names[0]])
        add(tar, "ant/version.3.jpg", files[names[0]])
        add(tar, "/bee/absolute.jpg", files[names[0]])
    pack(path, "-o", space("odd"), "--max-errors", "20", env={"LC_ALL": "C"})
    found = below(samples(space("odd")), "odd.tar")
    extra = {"bee/hard.jpg", "ant/" + "long" * 60 + ".jpg", "ant/Bär 日.jpg", "ant/version.2.jpg", "ant/version.3.jpg",
             "bee/absolute.jpg"}
    check(set(found) == set(files) | extra, set(found) ^ (set(files) | extra))
    check(all(found[name][1] == found[names[0]][1] for name in extra), "pixels")
    check(found["bee/hard.jpg"][0] == "bee", "a hard link's class is that of its own folder")
    wanted = {"ant/link.jpg": "a link, which is not followed", "ant/pipe.jpg": "not a regular file",
              "bee/lost.jpg": "a link to ant/none.jpg, which is no file in the tar before it", "ant/empty.jpg": "is empty",
              "alone.jpg": "has no class: expected .cls or .json of the same name beside it, or a folder above it", names[3]: "the tar holds it twice"}
    check(below(rejects(space("odd")), "odd.tar") == wanted, rejects(space("odd")))
    pack(path, "-o", space("utf8"), "--max-errors", "20", env={"LC_ALL": "C.UTF-8"})
    check(fingerprint(space("odd")) == fingerprint(space("utf8")), "the locale plays no part")
    os.makedirs(space("sparse/ant"))
    with open(space("sparse/ant/hole.jpg"), "wb") as file:
        file.truncate(1 << 20)
        file.seek(0, 2)
        file.write(files[names[0]])
    with open(space("sparse/ant/whole.jpg"), "wb") as file:
        file.write(files[names[0]])
    for how in ("gnu", "pax"):
        subprocess.run(["tar", "-C", space("sparse"), "--sparse", "--format", how, "-cf", space(how + "-sparse.tar"), "ant"], check=True)
        pack(space(how + "-sparse.tar"), "-o", space(how + "-sparse"))
        reason = list(rejects(space(how + "-sparse")).values())
        check(reason == ["a sparse file, whose bytes do not lie in one piece"], reason)


def test_damaged_and_truncated_tars_are_errors_with_the_byte(space):
    files = photos(space("photos"), 12)
    path = write_tar(space("whole.tar"), files)
    with open(path, "rb") as file:
        whole = file.read()
    with tarfile.open(path) as tar:
        fifth = tar.getmembers()[5]

    def error_of(name, content):
        with open(space(name), "wb") as file:
            file.write(content)
        said = pack(space(name), "-o", space(name + "-pack"), expect=65)
        check(not os.path.exists(space(name + "-pack")), name, "was begun")
        return said

    for size in (700, fifth.offset, fifth.offset_data + 100, fifth.offset_data + fifth.size):
        said = error_of("cut.tar", whole[:size])
        check(f"cut.tar: at byte {size}: ends without the two blocks of zeros" in said, size, said)
    zeros = error_of("zeros.tar", whole[:fifth.offset_data] + bytes(1024))
    check(f"zeros.tar: at byte {fifth.offset}: {fifth.name} has {fifth.size} bytes from byte {fifth.offset_data} on" in zeros, zeros)
    flipped = error_of("flipped.tar", whole[:fifth.offset + 3] + b"~" + whole[fifth.offset + 4:])
    check(f"flipped.tar: at byte {fifth.offset}: cannot be read as tar: Damaged tar archive" in flipped, flipped)
    huge = bytearray(whole)
    huge[fifth.offset + 124:fifth.offset + 136] = b"\x80" + bytes(3) + struct.pack(">Q", (1 << 63) - 1)
    total = sum(huge[fifth.offset:fifth.offset + 512]) - sum(huge[fifth.offset + 148:fifth.offset + 156]) + 8 * 32
    huge[fifth.offset + 148:fifth.offset + 156] = b"%06o\0 " % total
    check("huge.tar: at byte " in error_of("huge.tar", bytes(huge)), "a size beyond all")
    with gzip.open(space("cut.tar.gz"), "wb") as file:
        file.write(whole)
    with open(space("cut.tar.gz"), "rb") as file:
        content = file.read()
    check("cut.tar.gz: cannot be read: gzip member 1: is truncated" in error_of("cut.tar.gz", content[:-900]), "gzip")
    check("found neither a folder nor a tar" in error_of("text.tar", b"hello" * 1000), "no tar")
    check("none.tar: holds no images" in error_of("none.tar", bytes(10240)), "a tar without members")
    write_tar(space("inner.tar"), {"n01.tar": bytes(1024)})
    check("holds no images: 1 file is skipped" in pack(space("inner.tar"), "-o", space("inner"), expect=65), "a tar of tars")
    write_tar(space("empty.tar"), {})
    write_tar(space("shard.tar"), labelled(files))
    pack(space("empty.tar"), space("shard.tar"), "-o", space("after-empty"))
    check("lost.tar: no such file" in pack(space("cut.tar"), space("lost.tar"), "-o", space("lost"), expect=65), "missing")
    check("is given twice" in pack(path, path, "-o", space("twice"), expect=2), "twice")


def test_what_changes_between_runs_is_packed_again(space):
    files = photos(space("photos"), 60)
    path = write_tar(space("a.tar"), files)
    pack(path, "-o", space("pack"))
    check("already packed" in pack(path, "-o", space("pack")), "nothing changed")
    names = list(files)
    write_tar(path, {**files, names[0]: files[names[3]]})
    said = pack(path, "-o", space("pack"))
    check("60 images changed since packed" in said, said)
    pack(path, "-o", space("new"))
    check(fingerprint(space("pack")) == fingerprint(space("new")), "as a new pack")
    write_tar(path, dict(list(files.items())[1:]))
    said = pack(path, "-o", space("pack"), expect=73)
    check("the input list changed: 60 rows before, 59 now" in said, said)


def test_killed_and_full_disk_leave_nothing_and_resume(space):
    files = photos(space("photos"), 60)
    write_tar(space("a.tar.gz"), files, "w:gz")
    pack(space("a.tar.gz"), "-o", space("golden"))
    golden = fingerprint(space("golden"))
    for nth, op in enumerate(("pwrite", "pwrite", "fsync", "rename", "rename"), 1):
        out = space("killed")
        pack(space("a.tar.gz"), "-o", out, expect=(0, -signal.SIGKILL),
             env={"LD_PRELOAD": SHIM, "FAULT": f"{op}:{nth}:kill", "FAULT_PATH": space("")})
        pack(space("a.tar.gz"), "-o", out)
        check(fingerprint(out) == golden, op, nth)
        subprocess.run(["rm", "-r", out], check=True)
    # Without O_TMPFILE the copy has a name for a moment: what a kill leaves is removed by the next run.
    for env in ({"FAULT": "unlink:1:kill"}, {}):
        pack(space("a.tar.gz"), "-o", out, expect=(0, -signal.SIGKILL),
             env={"LD_PRELOAD": SHIM, "NO_TMPFILE": "1", "FAULT_PATH": space(""), **env})
        left = [name for name in os.listdir(space("")) if name.startswith(".")]
        check(len(left) == (1 if env else 0), env, left)
    check(fingerprint(out) == golden, "without O_TMPFILE")
    said = pack(space("a.tar.gz"), "-o", space("full"), expect=73, env={"LD_PRELOAD": SHIM, "FAULT": "pwrite:1:28", "FAULT_PATH": space("")})
    check("No space left" in said and not os.path.exists(space("full")), said)
    left = [name for name in os.listdir(space("")) if name.startswith(".")]
    check(not left, left)


def test_storage_that_does_not_answer_is_no_damage(space):
    files = photos(space("photos"), 60)
    noise = io.BytesIO()
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (64, 96, 3), dtype=np.uint8)).save(noise, "PNG")
    path = write_tar(space("a.tar"), {**files, "bee/large.png": noise.getvalue()})
    pack(path, "-o", space("golden"))
    golden = fingerprint(space("golden"))

    def fault(text, *arguments, expect):
        return pack(path, "-o", space("pack"), "--threads", "2", *arguments, expect=expect, env={
            "LD_PRELOAD": SHIM, "FAULT_PATH": path, **text})

    for nth in (2, 40, 90):
        fault({"FAULT": f"pread:{nth}:5"}, expect=0)
        check(fingerprint(space("pack")) == golden, "an error that passed", nth)
        shutil.rmtree(space("pack"))
        fault({"FAULT": f"pread:{nth}:5:sticky"}, expect=75)
        check(not os.path.exists(space("pack/manifest.json")), "published", nth)
        pack(path, "-o", space("pack"))
        check(fingerprint(space("pack")) == golden, "resumed", nth)
    with tarfile.open(path) as tar:
        bad = tar.getmember("bee/large.png")
    # Headers are read with the 4 KiB around them.
    sector = {"BAD_BYTE": str(bad.offset_data + bad.size // 2)}
    said = fault(sector, "--force", expect=75)
    check(bad.name in said, said)


def test_a_tar_that_changes_while_it_is_packed_is_an_error(space):
    files = photos(space("photos"), 400)
    path = write_tar(space("a.tar"), files)
    with open(path, "rb") as file:
        whole = file.read()
    for change in (lambda: os.truncate(path, len(whole) // 2), lambda: os.utime(path)):
        with open(path, "wb") as file:
            file.write(whole)
        process = subprocess.Popen([BIN + "/pack-images", path, "-o", space("pack"), *SMALL, "--force", "--progress", "json", "--threads", "1"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "LD_PRELOAD": SHIM, "DELAY_US": "20000"})
        while b'"packing"' not in process.stderr.readline():
            pass
        change()
        said = process.stderr.read().decode()
        check(process.wait() == 65 and ("changed while it was packed" in said or "ends at byte" in said), process.returncode, said[-500:])
        check(not os.path.exists(space("pack/manifest.json")), "published")


def test_a_csv_names_members_of_tars(space):
    files = photos(space("photos"), 20)
    names = list(files)
    write_tar(space("a.tar"), {**dict(list(files.items())[:12]), names[3]: b"no image"})
    write_tar(space("b.tar.gz"), dict(list(files.items())[12:]), "w:gz")
    both = [space("a.tar"), space("b.tar.gz")]
    pack(*both, "-o", space("all"), "--max-errors", "5")
    with open(space("all/rejects.csv"), newline="") as file:
        check([row["file"] for row in csv.DictReader(file)] == ["a.tar/" + names[3]], "rejects")
    # The list of a pack, and its rejects once they are repaired, are inputs again.
    with open(space("list.csv"), "wb") as file:
        subprocess.run([BIN + "/pack-info", space("all"), "--list"], stdout=file, stderr=subprocess.DEVNULL, check=True)
    pack(*both, "--labels", space("list.csv"), "--classes", space("all"), "-o", space("again"))
    check(samples(space("again")) == samples(space("all")) and len(samples(space("all"))) == 19, "the same samples")
    write_tar(space("a.tar"), dict(list(files.items())[:12]))
    pack(*both, "--labels", space("all/rejects.csv"), "--classes", space("all"), "-o", space("repaired"))
    check(list(samples(space("repaired"))) == ["a.tar/" + names[3]], "the repaired one")
    with open(space("few.csv"), "w") as file:
        file.write("file,label\n" + "".join(f"a.tar/{name},{index}\n" for index, name in enumerate(names)) + "b.tar.gz/lost.jpg,9\n")
    pack(*both, "--labels", space("few.csv"), "-o", space("few"), "--max-errors", "9", "--order", "input")
    check([label for label, _ in samples(space("few")).values()] == list(range(12)), "labels of the CSV")
    missing = {"a.tar/" + name for name in names[12:]} | {"b.tar.gz/lost.jpg"}
    check(rejects(space("few")) == {name: "no such file" for name in missing}, rejects(space("few")))


def test_tasks_of_a_plan_read_tars(space):
    files = photos(space("photos"), 120)
    os.makedirs(space("data/deep"))
    write_tar(space("data/a.tar"), {**dict(list(files.items())[:50]), "ant/bad.jpg": b"no image"})
    write_tar(space("data/deep/b.tar"), dict(list(files.items())[50:]))
    tars, split = [space("data/a.tar"), space("data/deep/b.tar")], ["--split", "train=0.8,val=0.2"]
    pack(*tars, "-o", space("one"), *split)
    pack(*tars, "-o", space("many"), *split, "--plan", "3")
    rows = subprocess.run(["zstd", "-dcq", space("many/plan.rows")], stdout=subprocess.PIPE, check=True).stdout.decode()
    check(len(rows.splitlines()) == 121 and rows.splitlines()[0].count(",") == 5, rows[:200])
    run("pack-run", space("many"), "--task", "1", "--progress", "none")
    with open(space("relative.txt"), "wb") as said:
        for number, root in enumerate(("a.tar", "./deep/../a.tar")):
            subprocess.run([os.path.abspath(BIN) + "/pack-images", root, "-o", f"../relative{number}", *SMALL, "--plan", "1"], cwd=space("data"),
                           stdout=said, stderr=said, check=True)
            run("pack-run", space(f"relative{number}"), "--progress", "none")
    check(fingerprint(space("relative0")) == fingerprint(space("relative1")), "paths relative to the working folder")
    # Another machine has the tars elsewhere; a tar that is missing or of another size is none of the plan's.
    os.rename(space("data"), space("moved"))
    said = run("pack-run", space("many"), "--task", "0", "--progress", "none", expect=75)
    check("data/a.tar: No such file" in said and "is its file system mounted" in said, said)
    with open(space("moved/a.tar"), "ab") as file:
        file.write(bytes(512))
    said = run("pack-run", space("many"), "--root", space("moved"), "--progress", "none", expect=75)
    check("bytes, " in said and "when it was planned" in said, said)
    os.truncate(space("moved/a.tar"), os.path.getsize(space("moved/a.tar")) - 512)
    run("pack-run", space("many"), "--root", space("moved"), "--progress", "none")
    for name in ("train", "val"):
        check(fingerprint(space("many/" + name)) == fingerprint(space("one/" + name)), name)
        check(len(samples(space("many/" + name))) > 20, name)
    write_tar(space("a.tar.gz"), files, "w:gz")
    said = pack(space("a.tar.gz"), "-o", space("none"), "--plan", "2", expect=2)
    check("is read from a copy on this machine" in said and not os.path.exists(space("none/plan.json")), said)


def test_split_folders_of_shards(space):
    files = list(photos(space("photos"), 30).items())
    for folder, some in (("val", files[20:]), ("train", files[:20])):
        os.makedirs(space("imagenet/" + folder))
        for number in (0, 1):
            write_tar(space(f"imagenet/{folder}/{number}.tar"), labelled(dict(some[number::2])))
    pack(space("imagenet"), "-o", space("packs"), "--split-folders", "train,val")
    train, val = samples(space("packs/train")), samples(space("packs/val"))
    check(len(train) == 20 and len(val) == 10, len(train), len(val))
    check(all(name.startswith("train/") for name in train) and all(name.startswith("val/") for name in val), "rows")
    check("imagenet/test/: holds no tar" in pack(space("imagenet"), "-o", space("none"), "--split-folders", "test", expect=65), "none")


def test_shards_with_and_without_labels_are_an_error(space):
    files = photos(space("photos"), 12)
    write_tar(space("a.tar"), files)
    write_tar(space("b.tar"), labelled(files))
    said = pack(space("a.tar"), space("b.tar"), "-o", space("mixed"), expect=65)
    check("b.tar: 000000.cls is the label of an image, but a.tar has no labels beside its images" in said, said)


for test_name, test in list(globals().items()):
    if test_name.startswith("test_"):
        with Workspace() as workspace:
            test(workspace)
        print(test_name, "passed", flush=True)
