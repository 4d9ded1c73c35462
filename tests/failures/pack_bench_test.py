"""pack-bench: its JSON is complete and adds up, wrong use is named, and --tune ends with a loader that compiles."""
import json
import mmap
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
import sparse_packs
from packing import BIN, Workspace, check, make_images, pack, run

INCLUDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib/include")
PIXELS = 16 * 12 * 3  # values a sample, as packing.SMALL says
KEYS = {"samples_per_second", "bytes_per_second", "batch_seconds_median", "first_batch_seconds", "wait_fraction",
        "chunk_hits", "chunk_misses", "chunk_fetches", "peak_rss_bytes", "verdict", "settings"}


def bench(*arguments):
    return json.loads(run("pack-bench", *arguments, "--json"))


def compile_snippet(space, snippet):
    source = space("snippet.cpp")
    with open(source, "w") as file:
        file.write("#include <chunkhit/image_loader.h>\n#include <chunkhit/sparse_loader.h>\nvoid train() {\n" + snippet + "}\n")
    done = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", "-I", INCLUDE, source], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    check(done.returncode == 0, snippet, done.stdout.decode())


def check_numbers(train):
    for more in ([], ["--cold"]):
        found = bench(train, "--batch-size", 32, "--epochs", 3, *more)
        check(KEYS <= set(found), "keys that are missing:", KEYS - set(found))
        check([epoch["samples"] for epoch in found["epochs"]] == [400] * 3, found["epochs"])
        check([epoch["batches"] for epoch in found["epochs"]] == [13] * 3, found["epochs"])
        check(abs(found["bytes_per_second"] / found["samples_per_second"] - PIXELS) < 1e-6, found)
        # Batches of a whole pack need each of its 25 chunks; a cold loader fetches them anew.
        least = 25 * (3 if more else 1)
        check(found["chunk_fetches"] >= least and found["chunk_hits"] + found["chunk_misses"] >= 75, found)
        check(found["stats"]["samples"] == 1200 and found["stats"]["batch_bytes"] == 1200 * PIXELS, found["stats"])
        check(0 < found["wait_fraction"] <= 1 and found["utilization"] == 0, found)
        check(found["verdict"].startswith("no verdict: an empty loop"), "advice to an empty loop:", found["verdict"])
        check(found["peak_rss_bytes"] > 1 << 20 and found["batch_seconds_median"] > 0, found)
        check(found["settings"]["cold"] == bool(more) and found["settings"]["batch_size"] == 32, found["settings"])


def check_settings(train):
    found = bench(train, "--batch-size", 30, "--shuffle", "window", "--window-chunks", 4, "--cache", "none",
                  "--threads", 3, "--cache-bytes", "64M", "--prefetch", 2, "--dtype", "float32",
                  "--crop", "12x10", "--layout", "nchw", "--epochs", 1, "--step-ms", 1)
    wanted = {"batch_size": 30, "shuffle": "window", "window_chunks": 4, "cache": "none",
              "threads": 3, "cache_bytes": 64 << 20, "cache_dir": "", "prefetch": 2, "dtype": "float32",
              "resized_crop": None, "crop": "12x10",
              "layout": "nchw", "images": "images", "labels": None, "epochs": 1, "step_ms": 1, "cold": False,
              "paths": [train]}
    check(found["settings"] == wanted, found["settings"])
    check(found["stats"]["threads"] == 3 and found["stats"]["cache"] == "none", found["stats"])
    check("training waited" in found["verdict"], found["verdict"])
    check(found["stats"]["samples"] == 400, found["stats"])
    check(abs(found["bytes_per_second"] / found["samples_per_second"] - 4 * 12 * 10 * 3) < 1e-6, "four bytes a value", found)
    # A sleep is never shorter than was asked for.
    check(found["stats"]["step_seconds"] >= 0.001 * (found["stats"]["batches"] - 1), found["stats"])
    check(0 < found["utilization"] <= 1, found)


def check_automatic(train):
    found = bench(train, "--batch-size", 20, "--threads", "auto", "--prefetch", "auto", "--epochs", 350, "--step-ms", 3)
    settings = found["settings"]
    check((settings["threads"], settings["prefetch"]) == ("auto", "auto"), settings)
    # 7,000 batches take 22 s, in which every loader settles.
    check(any("settled on threads" in text for text in found["stats"]["tuning"]), found["stats"])
    check(found["verdict"].endswith("tuning: " + found["stats"]["tuning"][-1]), found["verdict"])
    check(1 <= found["stats"]["threads"] and 1 <= found["stats"]["prefetch"] <= 64, found["stats"])


def check_wrong_use(space, train):
    for arguments, words in (([], "PATH is required"), ([train, "--nonsense"], "nonsense"), ([train, "--batch-size", 0], "--batch-size"),
                             ([train, "--shuffle", "well"], "--shuffle"), ([train, "--window-chunks", 0], "--window-chunks"),
                             ([train, "--resized-crop", "0"], "--resized-crop"), ([train, "--resized-crop", 24, "--crop", 24], "--crop"),
                             ([train, "--dtype", "f16"], "--dtype"),
                             ([train, "--layout", "chwn"], "--layout"), ([train, "--cache-bytes", "lots"], "--cache-bytes"),
                             ([train, "--step-ms", "nan"], "--step-ms"), ([train, "--step-ms", -1], "--step-ms"),
                             ([train, "--cache", "decoded", "--cache-bytes", "1K"], "--cache-bytes: cache decoded needs"),
                             ([train, "--threads", "automatic"], "--threads"), ([train, "--threads", 4097], "--threads"),
                             ([train, "--prefetch", 0], "--prefetch"), ([train, "--prefetch", 4097], "--prefetch"),
                             ([train, "--tune", "--epochs", 2], "--epochs"),
                             ([train, "--tune", "--threads", 2, "--prefetch", 2], "give one of them at most")):
        text = run("pack-bench", *arguments, expect=2)
        check(words in text, arguments, text)
    for path in (space("nowhere"), space("photos"), space("photos/labels.csv")):
        for more in ([], ["--cold"], ["--tune"]):
            check(path in run("pack-bench", path, *more, expect=65), path)
    text = run("pack-bench", "--help")
    check(text.count("\n  pack-bench ") == 2 and len(text.splitlines()) <= 42, "two examples on one screen", text)


def interrupted(train, *arguments):
    """What pack-bench prints that is stopped while it runs."""
    bench = subprocess.Popen([os.path.join(BIN, "pack-bench"), train, *map(str, arguments)], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    # Its threads are those of a loader: batches are on their way.
    while bench.poll() is None and len(os.listdir(f"/proc/{bench.pid}/task")) < 2:
        pass
    bench.send_signal(signal.SIGINT)
    text = bench.communicate(timeout=60)[0].decode()
    check(bench.returncode == 130, arguments, bench.returncode, text)
    return text


def snippets(text, loader):
    """The C++ and the Python that --tune prints."""
    python = text.index(f"loader = chunkhit.{loader}(")
    return text[text.index(f"chunkhit::{loader} loader("):python], text[python:]


def run_snippet(snippet):
    """The Python of --tune makes a loader that gives a batch."""
    package = os.path.join(os.path.dirname(BIN), "lib/python")
    if not os.path.isdir(package):  # a build without the Python package
        compile(snippet, "snippet", "exec")
        return
    done = subprocess.run(["/usr/bin/python3", "-c", "import chunkhit\n" + snippet + "next(iter(loader.epoch(0)))"],
                          env=os.environ | {"PYTHONPATH": package}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check(done.returncode == 0, snippet, done.stdout.decode())


def check_interrupt(train):
    endless = ["--epochs", 1000000, "--step-ms", 1, "--batch-size", 8]
    text = interrupted(train, *endless)
    check("epoch 0" in text and "samples/s" in text and "stopped by a signal" in text, text)
    found = json.loads(interrupted(train, *endless, "--json"))
    check(any("signal" in warning for warning in found["warnings"]) and found["samples_per_second"] > 0, found)
    text = interrupted(train, "--tune", "--step-ms", 100)
    check("stopped by a signal before the loader settled" in text and "0 samples" not in text, text)


def check_warnings(space, train):
    text = run("pack-bench", train, "--batch-size", 200, "--prefetch", 4)
    check("rates say nothing" in text and "samples/s" not in text, "two batches are always ready", text)
    text = run("pack-bench", train, "--batch-size", 8, "--prefetch", 4)
    check("samples/s" in text and "  waited" not in text and "no verdict: an empty loop only waits" in text, text)
    text = run("pack-bench", train, "--batch-size", 8, "--prefetch", 4, "--step-ms", 1)
    check("  waited" in text and "no verdict before a second of data: in 0." in text, text)
    check(bench(train, "--batch-size", 20)["warnings"] == [], "20 batches are not")
    with open(os.path.join(train, "part-00000.h5"), "rb") as file, \
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        check(sum(mapped[::4096]) > 0, "its pages are there, and mapped")
        check("stayed in the page cache" in run("pack-bench", train, "--cold"), "what is mapped cannot be dropped")


def check_damage(space, train):
    part = os.path.join(train, "part-00003.h5")
    with open(part, "r+b") as file:
        file.seek(os.path.getsize(part) // 2)
        damaged = bytes(byte ^ 0xFF for byte in file.read(64))
        file.seek(-64, os.SEEK_CUR)
        file.write(damaged)
    check("part-00003.h5" in run("pack-bench", train, expect=65), "a damaged part is named")
    check("part-00003.h5" in run("pack-bench", train, "--tune", expect=65), "also while tuning")


def check_tune(space, train):
    arguments = [train, "--tune", "--batch-size", 20, "--shuffle", "window", "--resized-crop", "24x20"]
    text = run("pack-bench", *arguments)
    check("settled on threads" in text and " samples/s" in text and "neighbours from one chunk" in text, text)
    cpp, python = snippets(text, "ImageLoader")
    compile_snippet(space, cpp)
    run_snippet(python)

    found = bench(*arguments, "--dtype", "float32", "--layout", "nchw", "--threads", 2)
    compile_snippet(space, found["snippet"]["cpp"])
    run_snippet(found["snippet"]["python"])
    check(found["has_settled"] and "settled on threads 2, prefetch " in found["tuning"][-1], found["tuning"])
    check((found["settings"]["threads"], found["settings"]["prefetch"]) == (2, "auto"), found["settings"])
    check(found["threads"] == 2 and 1 <= found["prefetch"] <= 64 and found["samples_per_second"] > 0, found)
    for key, cpp, python in (("threads", found["threads"], found["threads"]), ("prefetch", found["prefetch"], found["prefetch"]),
                             ("cache", f"chunkhit::Cache::{found['cache']}", f'"{found["cache"]}"')):
        check(f".{key} = {cpp}" in found["snippet"]["cpp"], key, found["snippet"])
        check(f" {key}={python}" in found["snippet"]["python"], key, found["snippet"])
    check(found["cache"] == bench(train)["stats"]["cache"], "another cache than the loader's own choice", found["cache"])


def make_matrices(space):
    """Packs of ratings: one to train, one with held-out ratings."""
    source = sparse_packs.write_csv(space("ratings.csv"), sparse_packs.random_ratings(1))
    sparse_packs.pack(source, "-o", space("ratings"), *sparse_packs.SMALL, "--split-by", "ratio", "--test", "0.2")
    return space("ratings/train"), space("ratings/test")


def csr_bytes(rows, nnz):
    """Of a block of indptr, indices and values, each at a multiple of 64 bytes."""
    def round_up(count):
        return (count + 63) // 64 * 64
    return round_up(4 * (rows + 1)) + round_up(4 * nnz) + 4 * nnz


def check_matrices(path):
    with open(os.path.join(path, "manifest.json")) as file:
        manifest = json.load(file)
    rows, columns = manifest["rows"], manifest["columns"]
    entries = [matrix["nnz"] for matrix in manifest["matrices"]]
    bytes_of = {f"dense_{name}": len(entries) * rows * columns * width for name, width in (("f32", 4), ("f16", 2), ("u8", 1))}
    bytes_of["csr"] = sum(csr_bytes(rows, nnz) for nnz in entries)
    for form, size in bytes_of.items():
        found = bench(path, "--format", form, "--epochs", 3)
        check(KEYS | {"ratings_per_second"} <= set(found), "keys that are missing:", KEYS - set(found))
        check(found["settings"]["format"] == form and found["settings"]["batch_size"] == 500, found["settings"])
        check([(epoch["samples"], epoch["batches"], epoch["ratings"]) for epoch in found["epochs"]]
              == [(rows, 1, sum(entries))] * 3, "rows, and entries of all matrices", found["epochs"])
        check(found["stats"]["batch_bytes"] == 3 * size, form, found["stats"], "expected", size, "each epoch")
        check(abs(found["ratings_per_second"] / found["samples_per_second"] - sum(entries) / rows) < 1e-6, found)
        check(abs(found["bytes_per_second"] / found["samples_per_second"] - size / rows) < 1e-6, found)


def check_matrix_settings(path):
    found = bench(path, "--batch-size", 30, "--shuffle", "window", "--window-chunks", 4, "--cache", "none",
                  "--threads", 3, "--cache-bytes", "64M", "--prefetch", 2, "--format", "csr", "--epochs", 2, "--step-ms", 1, "--cold")
    wanted = {"batch_size": 30, "shuffle": "window", "window_chunks": 4, "cache": "none",
              "threads": 3, "cache_bytes": 64 << 20, "cache_dir": "", "prefetch": 2, "format": "csr", "epochs": 2, "step_ms": 1, "cold": True, "paths": [path]}
    check(found["settings"] == wanted, found["settings"])
    check(found["stats"]["threads"] == 3 and found["stats"]["cache"] == "none", found["stats"])
    check(0 < found["utilization"] <= 1, found)
    check(bench(path)["settings"]["format"] == "dense_f32", "by default")
    check(" a second; a sample is a row" in run("pack-bench", path, "--batch-size", 4), "people are told of ratings, too")
    # A pair is two int64, a float and its negatives.
    found = bench(path, "--format", "pairs", "--negatives", 3, "--batch-size", 64, "--epochs", 1)
    check(found["settings"]["negatives"] == 3 and "length" not in found["settings"], found["settings"])
    check(found["bytes_per_second"] / found["samples_per_second"] >= 20 + 3 * 8, found)
    check(" a second; a sample is a rating" in run("pack-bench", path, "--format", "pairs"), "of pairs it is a rating")
    text = run("pack-bench", path, "--negatives", 3, expect=2)
    check("negatives: are drawn for format pairs" in text, text)


def check_kinds(images, matrices):
    for arguments, words in (([matrices, "--dtype", "float32"], "--dtype: is for images"),
                             ([matrices, "--layout", "nchw"], "--layout: is for images"),
                             ([matrices, "--resized-crop", 20], "--resized-crop: is for images"),
                             ([images, "--format", "csr"], "--format: is for matrices"),
                             ([images, "--negatives", 3], "--negatives: is for matrices"),
                             ([matrices, "--format", "dense"], "--format")):
        text = run("pack-bench", *arguments, expect=2)
        check(words in text, arguments, text)
    for paths in ([images, matrices], [matrices, images]):
        check("expected" in run("pack-bench", *paths, expect=65), "images and rows make no batch:", paths)


def check_tune_of_matrices(space, path):
    text = run("pack-bench", path, "--tune", "--batch-size", 20, "--shuffle", "window", "--format", "dense_f16")
    cpp, python = snippets(text, "SparseLoader")
    check(".format = chunkhit::SparseFormat::dense_f16" in cpp, cpp)
    compile_snippet(space, cpp)
    run_snippet(python)


with Workspace() as space:
    root, train = space("photos"), space("train \"1\"")
    make_images(root, 400)
    pack(root, train)
    check_numbers(train)
    check_settings(train)
    check_automatic(train)
    check_wrong_use(space, train)
    check_interrupt(train)
    check_warnings(space, train)
    print("numbers, settings and wrong use passed")
    ratings, with_held_out = make_matrices(space)
    check_matrices(ratings)
    check_matrices(with_held_out)
    check_matrix_settings(ratings)
    check_kinds(train, ratings)
    print("matrices passed")
    check_tune(space, train)
    check_tune_of_matrices(space, ratings)
    print("tune passed")
    check_damage(space, train)
    print("damage passed")
