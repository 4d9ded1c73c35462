"""Packs small inputs with many settings and compares the XXH3 of every part, of the packs' contents, and of epoch orders, with
recorded values: a change of the code must not change a byte that it writes, or an order that it reads in, without saying so.
Parts that a codec's library of another version compressed are compared by the packs' contents alone.
Usage: pinned_hashes_test.py BIN ORDER_PROBE [--record]; --record writes hashes.json anew."""
import base64
import glob
import hashlib
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
RECORDED = os.path.join(HERE, "hashes.json")
sys.path.insert(0, os.path.join(HERE, "../support"))
from shard_reader import xxh3  # noqa: E402

BIN, ORDER_PROBE = sys.argv[1], sys.argv[2]


def write(root, name, data):
    path = os.path.join(root, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def png(width, height, channels, pixels):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + pixels[y * width * channels:(y + 1) * width * channels] for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def smooth_pixels(generator, width, height, channels):
    """Gradients with some noise: neither constant nor incompressible."""
    slopes = [(generator.random() * 4, generator.random() * 4, generator.randrange(256)) for _ in range(channels)]
    return bytes(int(slope[0] * x + slope[1] * y + slope[2] + generator.randrange(6)) & 255
                 for y in range(height) for x in range(width) for slope in slopes)


def write_images(root):
    """Three classes of PNG (gray, RGB, RGBA), PNM and JPEG of several sizes, and labels.csv with a class and two numbers."""
    generator = random.Random(1)
    with open(os.path.join(HERE, "jpegs.json"), encoding="ascii") as file:
        jpegs = [base64.b64decode(text) for text in json.load(file)]
    lines = ["file,label,x,y"]
    for index in range(120):
        width, height = 24 + index % 17, 20 + index % 11
        label = ("ant", "bee", "cat")[index % 3]
        kind = index % 5
        if kind == 4:
            name, data = "jpg", jpegs[index // 5 % len(jpegs)]
        elif kind == 3:
            name = "ppm"
            data = b"P6\n%d %d\n255\n" % (width, height) + smooth_pixels(generator, width, height, 3)
        else:
            channels = (1, 3, 4)[kind]
            name, data = "png", png(width, height, channels, smooth_pixels(generator, width, height, channels))
        path = f"images/{label}/{index:04d}.{name}"
        write(root, path, data)
        lines.append(f"{path},{label},{index / 8},{-index / 4}")
    write(root, "labels.csv", "\n".join(lines).encode() + b"\n")


def write_ratings(root):
    """The same ratings with numbers and with text as ids, a matrix and svmlight lines; each pair once."""
    generator = random.Random(2)
    rows = []
    for user in range(300):
        for item in sorted({int(generator.paretovariate(0.6)) % 90 for _ in range(generator.randrange(3, 25))}):
            rows.append((user * 7 + 1, item * 3 + 2, generator.randrange(1, 11) / 2, 1_000_000_000 + generator.randrange(10**7)))
    generator.shuffle(rows)
    write(root, "numbers.csv", ("userId,movieId,rating,timestamp\n" + "".join(
        f"{user},{item},{value},{time}\n" for user, item, value, time in rows)).encode())
    write(root, "texts.tsv", ("user\titem\trating\n" + "".join(
        f"u{user}\titem \u00e9{item}\t{value}\n" for user, item, value, _ in rows)).encode())
    write(root, "matrix.mtx", ("%%MatrixMarket matrix coordinate real general\n" + f"2101 272 {len(rows)}\n" + "".join(
        f"{user} {item} {value}\n" for user, item, value, _ in rows)).encode())
    users = {}
    for user, item, value, _ in sorted(rows):
        users.setdefault(user, []).append(f"{item}:{value}")
    write(root, "lines.svm", "".join(f"{user % 5} {' '.join(entries)}\n" for user, entries in users.items()).encode())


IMAGES = ["pack-images", "{root}", "--part-bytes", "60000", "--chunk-samples", "16", "--seed", "3"]
LABELS = ["--labels", "{root}/labels.csv"]
FOLDERS = ["pack-images", "{root}/images", "--part-bytes", "60000", "--chunk-samples", "16", "--resize", "16x12"]
OWN_SIZES = ["pack-images", "{root}", *LABELS, "--sizes", "own", "--seed", "3", "--chunk-bytes", "20000", "--part-samples", "50"]
RATINGS = ["pack-sparse", "{root}/numbers.csv", "--seed", "3"]
CASES = {
    "images_hdf5": IMAGES + LABELS + ["--resize", "16x12"],
    "images_hdf5_deflate": IMAGES + LABELS + ["--resize", "16x12", "--codec", "deflate"],
    "images_hdf5_zstd": IMAGES + LABELS + ["--resize", "16x12", "--codec", "zstd"],
    "images_hdf5_nchw": IMAGES + LABELS + ["--resize", "16x12", "--layout", "nchw", "--resample", "bicubic"],
    "images_hdf5_input_order": IMAGES + LABELS + ["--fit", "20x20", "--pad-color", "1,2,3", "--order", "input"],
    "images_gray": IMAGES + LABELS + ["--resize", "20", "--crop", "16", "--channels", "gray", "--resample", "lanczos"],
    "images_rgba": IMAGES + LABELS + ["--resize", "16x12", "--channels", "rgba", "--exif", "ignore"],
    "images_numbers": IMAGES + LABELS + ["--resize", "16x12", "--label-column", "x", "--label-column", "y"],
    "images_shard_photo": IMAGES + LABELS + ["--resize", "16x12", "--container", "shard"],
    "images_shard_zstd": IMAGES + LABELS + ["--resize", "16x12", "--container", "shard", "--codec", "zstd:5"],
    "images_shard_none": IMAGES + LABELS + ["--resize", "16x12", "--container", "shard", "--codec", "none"],
    "images_split": IMAGES + LABELS + ["--resize", "16x12", "--split", "train=0.8,val=0.2"],
    "images_folders": FOLDERS,
    "images_folders_fast": FOLDERS + ["--decode", "fast", "--check", "region", "--crop", "8"],
    "own_sizes": OWN_SIZES,
    "own_sizes_zstd": OWN_SIZES + ["--store", "zstd", "--channels", "rgba"],
    "own_sizes_photo": OWN_SIZES + ["--store", "photo", "--short-side", "16"],
    "own_sizes_encoded": OWN_SIZES + ["--max-side", "20", "--quality", "80"],
    "own_sizes_files": OWN_SIZES + ["--jpeg-tile", "0"],
    "own_sizes_raw": OWN_SIZES + ["--store", "raw", "--channels", "gray"],
    "ratings_shard": RATINGS,
    "ratings_shard_raw": RATINGS + ["--codec", "none", "--chunk-rows", "40", "--part-bytes", "4000"],
    "ratings_hdf5": RATINGS + ["--container", "hdf5"],
    "ratings_rules": RATINGS + ["--above", "2", "--binarize", "--min-user", "5", "--min-item", "4", "--id-order", "sorted"],
    "ratings_vae_cf": RATINGS + ["--preset", "vae-cf", "--validation", "5", "--test", "6"],
    "ratings_ratio": RATINGS + ["--split-by", "ratio", "--validation", "0.1", "--test", "0.2", "--order", "input"],
    "ratings_leave_one_out": RATINGS + ["--split-by", "leave-one-out", "--container", "hdf5"],
    "ratings_time": RATINGS + ["--split-by", "time", "--test", "0.2"],
    "ratings_texts": ["pack-sparse", "{root}/texts.tsv", "--id-order", "first"],
    "ratings_matrix": ["pack-sparse", "{root}/matrix.mtx"],
    "ratings_svmlight": ["pack-sparse", "{root}/lines.svm", "--format", "svmlight"],
}
# SHUFFLE SEED WINDOW_CHUNKS EPOCH STREAMS UNIT SAMPLES_OF_CHUNK..., and SAMPLES BATCH RANK RANKS PAD DROP_LAST ECHO SEED EPOCH FIRST:
# tests/support/order_probe.cpp says what they are.
ORDERS = {
    "order_none": "order 0 7 4 2 1 1 16 16 16 16 9 16 16 5",
    "order_window": "order 1 7 3 0 1 1 16 16 16 16 9 16 16 5",
    "order_window_epoch_1": "order 1 7 3 1 1 1 16 16 16 16 9 16 16 5",
    "order_of_streams": "order 1 7 3 1 3 4 16 16 16 16 9 16 16 5",
    "order_global": "order 2 7 3 1 1 1 16 16 16 16 9 16 16 5",
    "batches_rank_1_of_3_padded": "batches 110 8 1 3 1 0 1 7 2 0",
    "batches_rank_2_of_3_dropped": "batches 110 8 2 3 0 1 1 7 2 0",
    "batches_of_streams": "batches 110 8 1 3 1 0 1 7 2 0 1",
    "batches_echo": "batches 110 8 0 2 0 0 3 7 2 0",
    "batches_resumed": "batches 110 8 0 2 0 0 1 7 2 31",
}


def xxh3_of(path):
    with open(path, "rb") as file:
        return f"{xxh3(file.read()):016x}"


def parts_of(folder):
    """The hash of every part by its path below `folder`."""
    return {os.path.relpath(os.path.join(at, name), folder): xxh3_of(os.path.join(at, name))
            for at, _, names in sorted(os.walk(folder)) for name in sorted(names)
            if name.startswith("part-") and name.endswith((".h5", ".zst"))}


def libraries_of(folder):
    """The codec libraries that the records of a pack's parts name."""
    found = set()
    for path in glob.glob(f"{folder}/**/part-*.json", recursive=True):
        with open(path, encoding="utf-8") as file:
            found |= set(json.load(file)["part"].get("codec_library", "").split(", ")) - {""}
    return found


def contents_of(folder):
    """A hash of all that the readers give of the packs below `folder`; None without the Python package."""
    try:
        from pack_contents import contents
    except ImportError:
        return None
    packs = sorted(os.path.dirname(path) for path in glob.glob(f"{folder}/**/manifest.json", recursive=True))
    return hashlib.sha256(json.dumps([contents(pack) for pack in packs], sort_keys=True).encode()).hexdigest()


def hashes_of_packs(root):
    parts, contents, libraries = {}, {}, {}
    for name, command in CASES.items():
        output = os.path.join(root, "packs", name)
        arguments = [word.format(root=root) for word in command[1:]]
        done = subprocess.run([os.path.join(BIN, command[0]), *arguments, "--output", output, "--progress", "none"],
                              capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{name}: exit code {done.returncode}\n{done.stderr}")
        parts |= {f"{name}/{part}": value for part, value in parts_of(output).items()}
        contents[name] = contents_of(output)
        libraries[name] = sorted(libraries_of(output))
    return {"parts": parts, "contents": contents, "libraries": libraries}


def hashes_of_orders(root):
    found = {}
    for name, question in ORDERS.items():
        answer = subprocess.run([ORDER_PROBE], input=question + "\n", check=True, capture_output=True, text=True).stdout
        assert len(answer.split()) > 20, f"{name}: {answer}"
        write(root, name, answer.encode())
        found[name] = xxh3_of(os.path.join(root, name))
    return found


def differences(found, recorded):
    """Lines for all that differs, but bytes that depend on a library of another version than the recorded one."""
    others = {name for name, libraries in found["libraries"].items() if libraries != recorded["libraries"].get(name)}
    raw = {name for name, libraries in found["libraries"].items() if not libraries}
    for name in sorted(others & raw | {name for name in others if not recorded["libraries"].get(name)}):
        yield f"{name}: compressed by {found['libraries'][name]}, recorded {recorded['libraries'].get(name)}"
    for kind in ("parts", "contents", "orders"):
        for name in sorted(found[kind].keys() | recorded[kind].keys()):
            is_bound = kind != "parts" or name.split("/")[0] not in others
            is_known = kind != "contents" or found[kind].get(name) or name in others
            if is_bound and is_known and found[kind].get(name) != recorded[kind].get(name):
                yield f"{kind}: {name}: {found[kind].get(name)}, recorded {recorded[kind].get(name)}"
    if others:
        print("compared by their contents alone, as their codec's library has another version:", *sorted(others))


def main():
    with tempfile.TemporaryDirectory(prefix="chunkhit-") as root:
        write_images(root)
        write_ratings(root)
        found = {**hashes_of_packs(root), "orders": hashes_of_orders(root)}
    if "--record" in sys.argv:
        with open(RECORDED, "w", encoding="ascii") as file:
            json.dump(found, file, indent=1)
            file.write("\n")
        return
    with open(RECORDED, encoding="ascii") as file:
        changed = list(differences(found, json.load(file)))
    print("\n".join(changed))
    sys.exit(1 if changed else 0)


if __name__ == "__main__":
    main()
