"""Every flipped bit, truncation, swap, stranger, edit and missing file of a pack is found by pack-verify."""
import json
import os
import random
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import OWN_SIZES, Workspace, check, draw_seed, make_images, pack, run
from shard_reader import xxh3

FLIPS_A_FILE = 25


def expect_error(folder, what):
    text = run("pack-verify", folder, expect=65)
    check("part-" in text or ".json" in text or ".csv" in text, what, text)
    return text


def pages(size):
    """Ends of pages, and a byte beside them; of many pages the first, the last and some between."""
    ends = list(range(4096, size, 4096))
    return [end + beside for end in sorted({*ends[:3], *ends[-3:], *ends[::40]}) for beside in (-1, 0, 1)]


def check_pages(good, path):
    """Cut at the ends of pages, a page of zeros, a page of rubbish behind the end."""
    data = open(path, "rb").read()
    for keep in pages(len(data)):
        if keep < len(data):
            open(path, "wb").write(data[:keep])
            expect_error(good, f"{path}: cut to {keep} bytes")
    for at in pages(len(data))[::3]:
        zeroed = data[:at] + bytes(4096) + data[at + 4096:]
        if zeroed[:len(data)] != data:
            open(path, "wb").write(zeroed[:len(data)])
            expect_error(good, f"{path}: zeros from {at}")
    open(path, "wb").write(data + random.Random(1).randbytes(4096))
    expect_error(good, f"{path}: a page behind the end")
    open(path, "wb").write(data)


def check_swaps(space, root, good, parts, arguments):
    """Parts in each other's place, under another name, or from a pack of another recipe."""
    first, second = (os.path.join(good, name) for name in parts[:2])
    other = space("other")
    pack(root, other, *arguments, "--max-errors", "10", "--seed", "5", "--force")
    stems = [name[:name.rindex(".")] for name in parts]
    saved = space("saved")
    shutil.copytree(good, saved)

    def restore():
        shutil.rmtree(good)
        shutil.copytree(saved, good)

    for with_sidecar in (False, True):
        for ending in (parts[0][parts[0].rindex("."):], *([".json"] if with_sidecar else [])):
            for a, b in ((stems[0], stems[1]), (stems[1], stems[0])):
                shutil.copy(f"{saved}/{a}{ending}", f"{good}/{b}{ending}")
        expect_error(good, f"two parts swapped, sidecars too: {with_sidecar}")
        restore()
        for ending in (parts[0][parts[0].rindex("."):], *([".json"] if with_sidecar else [])):
            shutil.copy(f"{other}/{stems[0]}{ending}", f"{good}/{stems[0]}{ending}")
        expect_error(good, f"a part of another recipe, its sidecar too: {with_sidecar}")
        restore()
    os.rename(first, first.replace("00000", "00100"))
    text = expect_error(good, "a part renamed")
    check("00000" in text and "00100" in text, text)
    restore()
    os.remove(second[:second.rindex(".")] + ".json")
    expect_error(good, "a sidecar missing")
    restore()
    shutil.copy(f"{other}/manifest.json", f"{good}/manifest.json")
    expect_error(good, "the manifest of another recipe")
    restore()
    shutil.rmtree(saved)


def seal(manifest):
    """The text of a manifest that someone edited with care: its own hash is right."""
    manifest.pop("xxh3")
    body = json.dumps(manifest, indent=2, ensure_ascii=False)[:-2] + ",\n"
    return body + f'  "xxh3": "{xxh3(body.encode()):016x}"\n}}\n'


def edits():
    """What may be changed in a manifest."""
    def change(*keys, by=None, to=None):
        def edit(manifest):
            for key in keys[:-1]:
                manifest = manifest[key]
            manifest[keys[-1]] = to if by is None else manifest[keys[-1]] + by
        return edit

    def move_a_sample(manifest):
        manifest["classes"][0]["samples"] += 1
        manifest["classes"][1]["samples"] -= 1

    def pretend_a_reject(manifest):
        manifest["rows"] += 1
        manifest["rejected"] += 1

    return {"one sample more": change("samples", by=1), "one part less": lambda manifest: manifest["parts"].pop(),
            "parts in another order": lambda manifest: manifest["parts"].reverse(),
            "no parts": change("parts", to=[]), "a mean": change("mean", 0, by=0.01), "a deviation": change("std", 1, by=-0.01),
            "a class's count": change("classes", 0, "samples", by=1), "a sample to another class": move_a_sample,
            "a reject that there is not": pretend_a_reject, "a class's name": change("classes", 1, "name", to="wasp"),
            "another pack's id": change("pack_id", to="0123456789abcdef"), "a taller sample": change("sample", "height", by=1),
            "another filter": change("codec", to="zstd"), "another layout": change("sample", "layout", to="nchw"),
            "a longer part": change("parts", 0, "bytes", by=1), "another hash": change("parts", 0, "xxh3", to="0123456789abcdef"),
            "a path out of the folder": change("parts", 0, "file", to="../other/part-00000.h5"),
            "an absolute path": change("parts", 0, "file", to="/etc/passwd"), "more chunks": change("parts", 0, "chunks", by=1),
            "more stored bytes": change("parts", 0, "stored_bytes", by=1), "other chunks": change("chunk_samples", by=1),
            "other rejects": change("rejects", "bytes", by=1), "a warning that there is not": change("warned", by=1),
            "other warnings": change("warnings", "bytes", by=1), "no warnings": lambda manifest: manifest.pop("warnings"),
            "another version": change("version", by=1),
            "another format": change("format", to="other"), "nested deep": change("tool", to=json.loads("[" * 400 + "]" * 400)),
            "a number as text": change("samples", to="many"), "a negative count": change("samples", to=-1)}


def check_edits(good):
    path = os.path.join(good, "manifest.json")
    data = open(path, encoding="utf-8").read()
    check(seal(json.loads(data)) == data, "this test seals otherwise than pack-images")
    missed = []
    for name, edit in edits().items():
        manifest = json.loads(data)
        edit(manifest)
        open(path, "w", encoding="utf-8").write(seal(manifest))
        code, text = run("pack-verify", good, expect=(0, 65))
        if code == 0:
            missed.append(name)
    open(path, "w", encoding="utf-8").write(data)
    check(not missed, "edits of the manifest that were not found:", missed)


with Workspace() as space:
    root = space("photos")
    make_images(root, 160, bad=2)
    seed = draw_seed()
    rng = random.Random(seed)
    for arguments in (["--container", "hdf5"], ["--container", "hdf5", "--codec", "deflate"], ["--container", "shard"],
                      ["--container", "shard", *OWN_SIZES]):
        good = space("pack")
        has_own_sizes = "--sizes" in arguments
        pack(root, good, *arguments, "--max-errors", "10", "--force")
        for name in sorted(os.listdir(good)):
            if name == "run.json" or name.endswith(".inputs"):  # a pack is whole without them
                continue
            path = os.path.join(good, name)
            data = open(path, "rb").read()
            size = len(data)
            # The beginning and the end hold the structure; the rest is sampled.
            places = {0, size // 2, size - 1, *(rng.randrange(min(size, 4096)) for _ in range(FLIPS_A_FILE // 2)),
                      *(rng.randrange(size) for _ in range(FLIPS_A_FILE // 2))}
            for place in places:
                damaged = bytearray(data)
                damaged[place] ^= 1 << rng.randrange(8)
                open(path, "wb").write(damaged)
                expect_error(good, f"{name}: byte {place} flipped")
            for keep in (0, 1, size // 3, size - 1):
                open(path, "wb").write(data[:keep])
                expect_error(good, f"{name}: cut to {keep} bytes")
            open(path, "wb").write(data + b"\0")
            expect_error(good, f"{name}: a byte appended")
            open(path, "wb").write(data)
        parts = sorted(name for name in os.listdir(good) if name.startswith("part-") and not name.endswith((".json", ".inputs")))
        a, b = (os.path.join(good, name) for name in parts[:2])
        shutil.copy(a, space("kept"))
        shutil.copy(b, a)
        expect_error(good, "a part twice")
        os.remove(a)
        check("part-00000" in expect_error(good, "a part missing"), "names the missing part")
        shutil.copy(space("kept"), a)
        shutil.copy(a, os.path.join(good, parts[0].replace("00000", "00099")))
        check("00099" in expect_error(good, "a stranger"), "names the stranger")
        os.remove(os.path.join(good, parts[0].replace("00000", "00099")))
        for name in (parts[0], "manifest.json", parts[-1]):
            check_pages(good, os.path.join(good, name))
        check_swaps(space, root, good, parts, arguments)
        if not has_own_sizes:
            check_edits(good)
        check("whole" in run("pack-verify", good), "whole again")
        print(*arguments, "passed")
