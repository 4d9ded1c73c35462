"""Odd and hostile label files: packed right, rejected row by row, or refused with the line and what is wrong."""
import csv
import gzip
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from limits import run_limited
from packing import BIN, Workspace, check, make_images, run, run_tests

A, B, C = "images/ant/00000.png", "images/bee/00001.jpg", "images/cat/00002.jpg"
HEAD = b"file,label\n"
ROW = f"{A},a\n".encode()

# What must be refused as a whole: bytes of the file, words that the message must have.
REFUSED = {
    "empty": (b"", ["empty"]),
    "header only": (HEAD, ["no rows"]),
    "missing column": (b"file,class\n" + ROW, ["label", "class", "line 1"]),
    "duplicate column": (b"file,label,label\n" + ROW, ["two columns", "label"]),
    "open quote": (HEAD + ROW + b'"images,a\n' + ROW, ["line 3", "quote"]),
    "text behind a quote": (HEAD + b'"a.png"x,a\n', ["line 2"]),
    "UTF-16": ("file,label\na.png,a\n".encode("utf-16"), ["UTF-16"]),
    "UTF-16 without a mark": ("file,label\na.png,a\n".encode("utf-16-le"), ["UTF-16"]),
    "NUL in a name": (HEAD + ROW + b"images\0.png,a\n", ["line 3", "NUL"]),
    "long field": (HEAD + b"x" * (2 << 20) + b",a\n", ["line 2", "1 MiB"]),
    "truncated gzip": (gzip.compress(HEAD + ROW * 5000)[:-30], ["cannot be read"]),
    "an image": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20, ["file"]),
    "no usable row": (HEAD + b"only-one-field\n", ["none of its 1 rows"]),
}

# What is packed: bytes of the file, labels of the samples packed, reasons of the rejects by file.
PACKED = {
    "mark, CRLF, no last line end": (b"\xef\xbb\xbffile,label\r\n" + f"{A},a\r\n{B},b".encode(), ["a", "b"], {}),
    "quotes": (HEAD + f'"{A}","a ""b"", c"\n{B},"line\nline"\n'.encode(), ['a "b", c', "line\nline"], {}),
    "blank lines": (b"\n\n" + HEAD + b"\n" + ROW + b"\n\n", ["a"], {}),
    "name that is not UTF-8": (HEAD + ROW + b"\xff\xfe.png,a\n", ["a"], {"": "UTF-8"}),
    "short row": (HEAD + ROW + b"lonely.png\n", ["a"], {"lonely.png": "1 field"}),
    "a comma without quotes": (HEAD + ROW + f"{B},New York, NY\n{C},b,,\n".encode(), ["a", "b"], {B: "3 fields, expected 2"}),
    "missing label": (HEAD + ROW + f"{B},\n".encode(), ["a"], {B: "missing"}),
    "the same file twice": (HEAD + ROW + ROW, ["a", "a"], {}),
    "unknown columns": (",".join(["file", *map(str, range(10_000)), "label"]).encode() + b"\n"
                        + f"{A}{',' * 10_000},a\n".encode(), ["a"], {}),
    "tabs": (f"file\tlabel\n{A}\ta,b\n".encode(), ["a,b"], {}),
    "semicolons": (f"file;label\n{A};a|b\n".encode(), ["a|b"], {}),
    "bars": (f"file|label\n{A}|a,b\n".encode(), ["a,b"], {}),
    "gzip": (gzip.compress(HEAD + ROW), ["a"], {}),
    "formulas": (HEAD + ROW + b"=cmd,a\n+1,a\n-1,a\n@x,a\n", ["a"],
                 {"./=cmd": "no such", "./+1": "no such", "./-1": "no such", "./@x": "no such"}),
}


def pack_list(space, data, out, **how):
    with open(space("list.csv"), "wb") as file:
        file.write(data)
    return run("pack-images", space("photos"), "--labels", space("list.csv"), "--resize", "8x8", "--order", "input",
               "--max-errors", "100%", "--output", out, "--force", "--progress", "none", **how)


def test_refused(space):
    for name, (data, words) in REFUSED.items():
        text = pack_list(space, data, space("none"), expect=65)
        check(all(word in text for word in ["list.csv", *words]), name, text)
        check(not os.path.exists(space("none")), name, "left an output")
        check(len(text) < 1500, name, "a message of", len(text), "bytes")


def test_packed(space):
    for name, (data, labels, rejects) in PACKED.items():
        out = space("out")
        pack_list(space, data, out)
        manifest = json.load(open(f"{out}/manifest.json"))
        found = sorted(entry["name"] for entry in manifest["classes"] for _ in range(entry["samples"]))
        check(found == sorted(labels), name, "labels", found)
        with open(f"{out}/rejects.csv", newline="", errors="replace") as file:
            reasons = [(row["file"], row["reason"]) for row in csv.DictReader(file)]
        check(len(reasons) == len(rejects), name, reasons)
        for file, words in rejects.items():
            check(any(file in found and words in reason for found, reason in reasons), name, reasons)


def test_labels_out_of_range(space):
    text = pack_list(space, HEAD + f"{A},{2**63 - 1}\n{B},{-2**63}\n".encode(), space("out"))
    ids = [entry["id"] for entry in json.load(open(space("out/manifest.json")))["classes"]]
    check(sorted(ids) == [-2**63, 2**63 - 1], ids, text)
    # One more is no integer any more, so the column holds names: never a number that wrapped around.
    pack_list(space, HEAD + f"{A},{2**63}\n{B},1\n".encode(), space("out"))
    names = [entry["name"] for entry in json.load(open(space("out/manifest.json")))["classes"]]
    check(names == ["1", str(2**63)], names)


def test_a_line_without_end_is_refused_while_it_comes(space):
    """A gigabyte without a line end through a pipe: refused after the first megabyte."""
    process = subprocess.Popen([f"{BIN}/pack-images", space("photos"), "--labels", "-", "--output", space("none")],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    sent = 0
    try:
        process.stdin.write(HEAD)
        for _ in range(1024):
            process.stdin.write(b"x" * (1 << 20))
            sent += 1
    except BrokenPipeError:
        pass
    text = process.stdout.read().decode()
    check(process.wait() == 65 and "line 2" in text, process.returncode, text)
    check(sent < 64, "read", sent, "MiB before it refused")


def test_a_compressed_bomb_is_read_in_bounded_memory(space):
    with gzip.open(space("bomb.csv.gz"), "wb", 1) as file:
        file.write(HEAD + ROW)
        for _ in range(200):
            file.write(b"\n" * (1 << 20))
        file.write(b"x" * (200 << 20))
    done = run_limited("pack-images", space("photos"), "--labels", space("bomb.csv.gz"), "--resize", "8x8", "--output", space("none"))
    check(done.code == 65 and "1 MiB" in done.text, done)
    check(done.peak_bytes < 128 << 20, done)


with Workspace() as workspace:
    make_images(workspace("photos"), 3)
    run_tests(globals(), workspace)
