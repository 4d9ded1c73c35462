"""external HDF5 files: the commands say what they are, and claim no more than was checked."""
import json
import os
import shutil
import signal
import subprocess
import sys
import zlib

import h5py
import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from optional import optional
from packing import BIN, SHIM, Workspace, check, make_images, outcome, pack, run
from shard_reader import xxh3

anndata = optional("anndata")


def write_external(path, images="images"):
    with h5py.File(path, "w") as file:
        file.create_dataset(images, data=np.arange(60 * 8 * 8 * 3, dtype=np.uint8).reshape(60, 8, 8, 3), chunks=(10, 8, 8, 3),
                            compression="gzip")
        file["kinds"] = np.arange(60) % 3
        file["huge"] = np.full(60, 2**63 + 5, "u8")
        file["pairs"] = np.arange(120).reshape(60, 2) + 2**24
    return path


def check_claims(space):
    external = write_external(space("external.h5"))
    text = run("pack-info", external, "--labels=")
    check("an external HDF5 file" in text and "no hashes" in text, text)
    check("pack 0000" not in text and "single part" not in text, "it is no part of a pack:", text)
    check(json.loads(run("pack-info", external, "--labels=", "--json"))["external"] is True, "also in JSON")
    text = run("pack-verify", external, "--labels=")
    check("60 samples" in text and "every chunk can be decoded" in text and "no hashes" in text, text)
    check(not text.rstrip().endswith("whole"), "nobody knows whether it is:", text)

    make_images(space("photos"), 40)
    pack(space("photos"), space("train"))
    for path in (space("train"), space("train/part-00000.h5")):
        check("external HDF5 file" not in run("pack-info", path), path)
        check(run("pack-verify", path).rstrip().endswith("whole"), path)


def check_errors_in_json(space):
    """A plain HDF5 file that cannot be read was said not to be external; what cannot be found printed no JSON."""
    report = json.loads(run("pack-verify", space("external.h5"), "--json", expect=65))
    check(report["external"] is True and "; `images` and `labels` name those to read" in report["problems"][0], report)
    for command in ("pack-verify", "pack-info"):
        done = subprocess.run([f"{BIN}/{command}", space("gone"), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        check(done.returncode == 65 and b"gone: No such file" in done.stderr, command, done)
        check("gone: No such file" in json.loads(done.stdout)["error"], command, done)


def check_files_in_datasets(space):
    """JPEG files in a dataset of variable length were called pixels of a wrong type."""
    with h5py.File(space("files.h5"), "w") as file:
        images = file.create_dataset("images", 2, h5py.vlen_dtype(np.uint8))
        images[0] = images[1] = np.frombuffer(b"\xff\xd8\xff", np.uint8)
        file["labels"] = [0, 1]
    text = run("pack-info", space("files.h5"), expect=65)
    check("/images holds bytes instead of pixels" in text and "ImageWriter" in text, text)


def check_bench(space):
    named = write_external(space("named.h5"), "train/small")
    text = run("pack-bench", named, expect=65)
    check("train/small" in text, "what there is is listed:", text)
    found = json.loads(run("pack-bench", named, "--images", "train/small", "--labels", "kinds", "--batch-size", 10, "--json"))
    check(found["stats"]["samples"] == 120 and found["settings"]["images"] == "train/small", found)
    tuned = run("pack-bench", named, "--images", "train/small", "--labels", "kinds", "--batch-size", 10, "--tune")
    check('.images = "train/small"' in tuned and '.labels = "kinds"' in tuned, tuned)


def check_names(space):
    named = write_external(space("named.h5"), "train/small")
    names = ("--images", "train/small", "--labels", "kinds")
    found = json.loads(run("pack-info", named, *names, "--json"))
    check(found["samples"] == 60 and [each["samples"] for each in found["classes"]] == [20, 20, 20], found)
    report = json.loads(run("pack-verify", named, *names, "--json"))
    check(report["external"] is True and report["problems"] == [] and report["samples"] == 60, report)
    for command in ("pack-info", "pack-verify", "pack-bench"):
        text = run(command, named, "--images", "train/small", expect=65 if command != "pack-verify" else (1, 65))
        check("has no dataset /train/labels" in str(text) and "--labels=" in str(text), command, text)
        run(command, named, "--images", "train/small", "--labels=")
    for labels, words in (("huge", "class id 9223372036854775813"), ("pairs", "number 16777217, which no 32-bit float is")):
        text = run("pack-info", named, "--images", "train/small", "--labels", labels, expect=65)
        check(words in text, text)
    pack(space("photos"), space("shards"), "--container", "shard")
    for command in ("pack-info", "pack-verify", "pack-bench"):
        for path, what in ((space("train"), "is a pack"), (space("shards/part-00000.zst"), "is a shard")):
            text = run(command, path, "--images", "pixels", expect=2)
            check(what in text, command, text)


def check_manifests(space):
    """A damaged manifest is named, and once it is removed the same command writes it again."""
    manifest = space("train/manifest.json")
    with open(manifest, "rb") as file:
        whole = file.read()
    for damaged in (whole[:300], b""):
        with open(manifest, "wb") as file:
            file.write(damaged)
        report = json.loads(run("pack-verify", space("train"), "--json", expect=65))
        check(len(report["problems"]) == 1 and report["remove_to_rebuild"] == [manifest], report)
        text = pack(space("photos"), space("train"), expect=65)
        check("remove this file" in text, text)
        os.remove(manifest)
        pack(space("photos"), space("train"))
        with open(manifest, "rb") as file:
            check(file.read() == whole, "another manifest")


def check_other_manifests(space):
    """Of another program, or of a later version: nobody is told to remove them."""
    os.makedirs(space("website"))
    with open(space("website/manifest.json"), "w") as file:
        file.write("{}")
    shutil.copytree(space("train"), space("later"))
    with open(space("later/manifest.json")) as file:
        body = file.read().replace('"version": 1', '"version": 3').rsplit('  "xxh3"', 1)[0]
    with open(space("later/manifest.json"), "w") as file:
        file.write(body + f'  "xxh3": "{xxh3(body.encode()):016x}"\n}}\n')
    for folder in ("website", "later"):
        text = run("pack-verify", space(folder), expect=65)
        check("remove" not in text, text)
    check("version: expected 1 or 2, found 3" in text, text)
    text = pack(space("photos"), space("later"), expect=65)
    check("version: expected 1" in text and "remove" not in text, text)


def check_sizes(space):
    """What is finished by its manifest, but not in the folder."""
    part = space("train/part-00000.h5")
    whole = os.path.getsize(part)
    os.truncate(part, whole // 2)
    text = run("pack-info", space("train"), expect=65)
    check("a damaged pack" in text and f"has {whole // 2} bytes, expected {whole}" in text, text)
    os.remove(part)
    found = json.loads(run("pack-info", space("train"), "--json", expect=65))
    check(len(found["problems"]) == 1 and "part-00000.h5" in found["problems"][0], found["problems"])
    report = json.loads(run("pack-verify", space("train"), "--json", expect=65))
    check(report["problems"] and report["remove_to_rebuild"], report)


def run_beside(folder, checker, path, **options):
    """Exit code and text of pack-info, beside a pack-verify of these lines, or none."""
    os.makedirs(folder, exist_ok=True)
    command = os.path.join(folder, "pack-info")
    shutil.copy(os.path.join(BIN, "pack-info"), command)
    if checker is not None:
        with open(os.path.join(folder, "pack-verify"), "w") as file:
            file.write("#!/bin/sh\n" + checker)
        os.chmod(os.path.join(folder, "pack-verify"), 0o755)
    done = subprocess.run([command, path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
                          env={**os.environ, "PATH": "/usr/bin:/bin"}, **options)
    return done.returncode, done.stdout.decode()


def check_checker(space):
    """What happens to the program that opens a file first decides, and nothing where there is none."""
    external = write_external(space("checked.h5"))
    with h5py.File(external, "a") as file:
        file["labels"] = np.arange(60)
    ignored = dict(preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    for name, checker, code, words in (
            ("none", None, 0, "60"), ("old", "echo usage; exit 2", 0, "60"), ("fine", "echo fine", 0, "60"),
            ("crash", "kill -SEGV $$", 65, "crashes over it"), ("slow", "kill -XCPU $$", 65, "to open it"),
            ("memory", "kill -ABRT $$", 65, "MiB of memory"), ("killed", "kill -KILL $$", 75, "signal 9")):
        found, text = run_beside(space(name), checker, external)
        check(found == code and words in text, name, found, text)
        if code != 75:
            found, text = run_beside(space(name), checker, external, **ignored)
            check(found == code, name, "where SIGCHLD is ignored:", found, text)


def check_names_of_gigabytes(space):
    """40,000 names of 64 KiB in a file of 3 MB: named damaged, where it was said to try again."""
    path = space("claims.h5ad")
    anndata.AnnData(np.ones((40_000, 2), np.float32), dtype=np.float32).write_h5ad(path)
    with h5py.File(path, "a") as file:
        del file["obs/_index"]
        names = file["obs"].create_dataset("_index", (40_000,), "S65536", chunks=(16,), compression="gzip")
        chunk = zlib.compress(b"a" * (16 << 16), 9)
        for first in range(0, 40_000, 16):
            names.id.write_direct_chunk((first,), chunk)
    for command in (("pack-info",), ("pack-sparse", "--dry-run", "--progress", "none", "--output", space("pack"))):
        text = run(*command, path, expect=65)
        # A busy machine reaches the limit of time first.
        check("MiB of memory" in text or "takes more than 5 s to open it" in text, text)


with Workspace() as space:
    check_checker(space)
    if ":" not in SHIM:  # the sanitizers take terabytes of addresses
        print("names of gigabytes", outcome(check_names_of_gigabytes, space))
    check_claims(space)
    check_errors_in_json(space)
    check_names(space)
    check_manifests(space)
    check_other_manifests(space)
    check_sizes(space)
    check_bench(space)
    check_files_in_datasets(space)
