"""Little memory: --memory-bytes is kept; where there is less, a clear error or a whole pack, never a wrong one."""
import csv
import os
import re
import shutil
import signal
import struct
import subprocess
import sys

import numpy as np
from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../decode"))
from image_files import png_chunk, raw_png
from limits import MemoryGroup, run_limited
from packing import BIN, SMALL, Workspace, check, fingerprint, make_images, pack, run, run_tests, sanitizer_runtimes

MIB = 1 << 20
LIMIT = ("--max-decode-bytes", "8M")
# Both give every class two rows at least, one for each share of the split.
FEW_ROWS, LIST_ROWS, LIST_BYTES = 2_000, 200_000, 200
# Runs a command and prints its peak in KiB. The peak of a process counts what it was before it became the command, so a
# command with a small peak must be started by a small process.
PEAK = """import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"""
# Exit codes that a lack of memory may have: rejects over the limit, bad input, not written, try again.
CLEAN = (1, 65, 73, 75)


def make_large_images(root):
    """Eight images of 64 megapixels; a whole one is 192 MB."""
    os.makedirs(f"{root}/x")
    coarse = np.random.default_rng(1).integers(0, 256, (80, 80, 3), dtype=np.uint8)
    Image.fromarray(coarse).resize((8000, 8000), Image.BICUBIC).save(f"{root}/x/0.jpg", quality=80)
    Image.open(f"{root}/x/0.jpg").save(f"{root}/x/1.jpg", quality=80, progressive=True)
    for index in range(2, 8):
        os.link(f"{root}/x/{index % 2}.jpg", f"{root}/x/{index}.jpg")


def test_what_is_packed_and_the_memory_do_not_depend_on_threads(space):
    """--memory-bytes was passed by each thread's buffers, and more images were rejected the more threads there were."""
    make_large_images(space("large"))
    for memory, decode, threads, packed in ((1024, 512, 4, 8), (512, 256, 1, 4), (512, 256, 32, 4), (256, 128, 4, 0)):
        out = space(f"large{memory}-{threads}")
        done = run_limited("pack-images", space("large"), "--resize", "64x64", "--threads", threads, "--memory-bytes", f"{memory}M",
                           "--max-decode-bytes", f"{decode}M", "--max-errors", "100%", "--output", out)
        check(done.code == 0, memory, done)
        check(done.peak_bytes <= memory * MIB, memory, done)
        with open(f"{out}/rejects.csv", newline="") as file:
            reasons = [row["reason"] for row in csv.DictReader(file)]
        check(len(reasons) == 8 - packed, memory, reasons)
        check(all("max_decode_bytes" in reason for reason in reasons), reasons)
        print(f"  --memory-bytes {memory}M, {threads} threads: {8 - len(reasons)} of 8 packed, peak {done.peak_bytes // MIB} MiB")


def test_uncounted_copies_of_a_tiny_file_stay_within_memory(space):
    """A GIF of 43 bytes and a canvas of 12 megapixels: with alpha, resizing copies the whole region."""
    os.makedirs(space("canvas/x"))
    gif = b"GIF89a" + struct.pack("<HHBBB", 4000, 3000, 0x80, 0, 0) + bytes(6)
    gif += b"\x2c" + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x4c\x01\x00\x3b"
    for index in range(4):
        open(space(f"canvas/x/{index}.gif"), "wb").write(gif)
    done = run_limited("pack-images", space("canvas"), "--resize", "64x64", "--channels", "rgba", "--threads", 4, "--memory-bytes",
                       "512M", "--max-decode-bytes", "400M", "--output", space("canvas-out"))
    check(done.code == 0 and done.peak_bytes <= 512 * MIB, done)
    print("  4 GIFs of 12 megapixels: peak", done.peak_bytes // MIB, "MiB")


def decoder_forms():
    """Images of 6 megapixels in every form that decoders take memory of their own for: name -> bytes, or what saves them."""
    noise = np.random.default_rng(2).integers(0, 256, (400, 3000, 4), dtype=np.uint8)
    rgba = np.concatenate([noise, np.repeat(noise[:1], 1600, axis=0)])
    image, rgb, gray = Image.fromarray(rgba), np.ascontiguousarray(rgba[..., :3]), np.ascontiguousarray(rgba[..., 0])
    palette = png_chunk(b"PLTE", noise.tobytes()[:768])
    for interlaced in (False, True):
        kind = " interlaced" if interlaced else ""
        yield f"rgba{kind}.png", raw_png(rgba, 8, 6, interlaced=interlaced)
        yield f"rgb 16{kind}.png", raw_png(rgb.astype(np.uint16) * 257, 16, 2, interlaced=interlaced)
        yield f"gray{kind}.png", raw_png(gray[..., None], 8, 0, interlaced=interlaced)
        yield f"palette{kind}.png", raw_png(gray[..., None], 8, 3, palette, interlaced)
    for name, options in (("a.jpg", {}), ("b.jpg", {"progressive": True}), ("c.jpg", {"subsampling": 0}), ("a.bmp", {}), ("a.tif", {}),
                          ("a.tga", {}), ("a.gif", {}), ("b.tif", {"compression": "tiff_adobe_deflate"}), ("a.webp", {"method": 0}),
                          ("b.webp", {"method": 0, "lossless": True, "quality": 0})):
        yield name, lambda path, options=options: image.convert("RGB").save(path, **options)
    yield "c.webp", lambda path: image.save(path, method=0)


def test_images_needed_a_third_of_the_memory_that_was_expected(space):
    """A PNG of 45 megapixels was rejected at the defaults. What is expected is enough, and at most 1.6 times what is taken."""
    def pack_one(name, *options):
        """Packs one image, or rejects it; returns the peak in bytes."""
        command = [f"{BIN}/pack-images", space(f"forms/{name}"), "--threads", "1", "--memory-bytes", "2G", "--max-errors", "100%", "--output",
                   space("one"), "--force", *options]
        return int(subprocess.check_output([sys.executable, "-ISc", PEAK, *command], stderr=subprocess.DEVNULL).split()[-1]) * 1024

    def rejects():
        return open(space("one/rejects.csv")).read()

    os.makedirs(space("forms/base/x"))
    Image.new("RGB", (64, 48)).save(space("forms/base/x/1.png"))
    for options in (("--sizes", "own"), ("--resize", "256", "--crop", "224")):
        base = pack_one("base", *options)
        for name, content in decoder_forms():
            path = space(f"forms/{name}/x/{name}")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if isinstance(content, bytes):
                open(path, "wb").write(content)
            else:
                content(path)
            pack_one(name, "--max-decode-bytes", str(os.path.getsize(path) + 1), *options)
            needed = int(re.search(r"needs (\d+)M of memory", rejects()).group(1))
            pack_one(name, "--max-decode-bytes", f"{needed - 1}M", *options)
            check(f"needs {needed}M of memory to decode, over the limit of {needed - 1}M" in rejects(), name, rejects())
            peak = pack_one(name, "--max-decode-bytes", f"{needed}M", *options)
            check(rejects().count("\n") == 1, name, rejects())
            if sanitizer_runtimes():
                continue
            taken = (peak - base) / MIB
            print(f"  {options[0]} {name}: needs {needed} MiB, takes {taken:.0f}")
            check(taken - 4 <= needed <= (2 if name.endswith("webp") else 1.6) * taken + 12, name, options, needed, taken)


def test_memory_of_a_gigabyte_was_refused_at_the_defaults(space):
    """1.1 GB could not hold 1.1 GB. An image that needs more than is left ends the run, which more memory resumes."""
    os.makedirs(space("wide/x"))
    os.makedirs(space("narrow/x"))
    Image.new("RGB", (8000, 5625)).save(space("wide/x/1.bmp"))
    Image.new("RGB", (2000, 1500)).save(space("narrow/x/1.bmp"))
    for folder, memory in (("wide", "1G"), ("narrow", "150M")):
        done = run_limited("pack-images", space(folder), "--sizes", "own", "--memory-bytes", memory, "--output", space(folder + "-pack"))
        check(done.code == 0, done)
    out = ("--output", space("wide-own"), "--sizes", "own")
    done = run_limited("pack-images", space("wide"), "--memory-bytes", "300M", *out)
    check(done.code == 2 and re.search(r"--memory-bytes: x/1.bmp needs \d+M to decode, \d+M are left for it", done.text), done)
    check(run_limited("pack-images", space("wide"), "--memory-bytes", "1G", *out).code == 0, "was not resumed")
    done = run_limited("pack-images", space("wide"), "--memory-bytes", "256M", "--max-decode-bytes", "900M", "--output", space("none"))
    check(done.code == 2 and "--memory-bytes: 256M cannot hold one image of --max-decode-bytes (900M)" in done.text, done)


def test_memory_that_no_chunk_fits_is_refused(space):
    text = run("pack-images", space("photos"), "--labels", space("photos/labels.csv"), *SMALL, "--memory-bytes", "1K",
               "--output", space("none"), expect=2)
    check("memory" in text and "need at least" in text, text)
    check(not os.path.exists(space("none")), "left an output")


def bytes_a_row(space, listed):
    """What listing `listed(rows)` takes for each row more: the peak of many rows over that of a few."""
    peaks = []
    for rows in (FEW_ROWS, LIST_ROWS):
        command = [f"{BIN}/pack-images", *listed(rows), "--resize", "16x12", "--split", "a=0.5,b=0.5", "--dry-run",
                   "--output", space("none")]
        *text, peak = subprocess.check_output([sys.executable, "-ISc", PEAK, *command]).decode().splitlines()
        check(f"{rows:,} rows" in text[0], text)
        peaks.append(int(peak) * 1024)
    return (peaks[1] - peaks[0]) / (LIST_ROWS - FEW_ROWS)


def test_a_list_takes_no_more_than_200_bytes_a_file(space):
    """File names as long as ImageNet's; labels that are class names, integers or different for every two rows; class folders."""
    def name(index):
        return f"train/n{index % 1000:08d}/n{index % 1000:08d}_{index:07d}.JPEG"

    def labels(text):
        def listed(rows):
            with open(space("list.csv"), "w") as file:
                file.write(f"file,label\nimages/ant/00000.png,{text(0)}\n")
                file.writelines(f"{name(index)},{text(index)}\n" for index in range(1, rows))
            return [space("photos"), "--labels", space("list.csv")]
        return listed

    def folders(rows):
        for index in range(rows):
            folder = space(f"listed{rows}/{index % 10}/{index // 10 % 100}")
            if index < 1000:
                os.makedirs(folder, exist_ok=True)
                os.link(space("photos/images/ant/00000.png"), f"{folder}/n{index:08d}_{index:07d}.png")
            else:
                os.symlink("nothing", f"{folder}/n{index:08d}_{index:07d}.png")
        return [space(f"listed{rows}")]

    for kind, listed in (("names", labels(lambda index: f"class {index % 1000}")), ("integers", labels(lambda index: index % 1000)),
                         ("pairs", labels(lambda index: f"label {index // 2:07d}")), ("folders", folders)):
        found = bytes_a_row(space, listed)
        print(f"  {kind}: {found:.0f} bytes a file")
        check(16 < found <= LIST_BYTES, kind, found)


def arguments(space, out):
    return [space("photos"), "--labels", space("photos/labels.csv"), *SMALL, "--memory-bytes", "64M", *LIMIT, "--threads", 2,
            "--on-error", "fail", "--output", out]


def finish(space, out):
    """The same command without a limit makes the pack whole."""
    pack(space("photos"), out, *LIMIT)
    check(fingerprint(out) == fingerprint(space("golden")), out, "differs from a pack made with enough memory")
    shutil.rmtree(out)


def test_a_limit_on_the_address_space_ends_in_a_message_or_a_whole_pack(space):
    if sanitizer_runtimes():
        return print("  not run: the address sanitizer takes terabytes of addresses")
    ended = []
    for mebibytes in (48, 64, 80, 96, 112, 128, 160, 192, 256, 512):
        out = space(f"address{mebibytes}")
        done = run_limited("pack-images", *arguments(space, out), address_bytes=mebibytes * MIB)
        # Where the libraries do not fit, the dynamic loader (127) or a library's constructor ends it before main.
        loads = run_limited("pack-images", "--version", address_bytes=mebibytes * MIB).code == 0
        check(done.code in ((0, *CLEAN) if loads else (127, -signal.SIGABRT)) and done.text, mebibytes, done)
        ended.append((mebibytes, done.code))
        if done.code == 0:
            check(fingerprint(out) == fingerprint(space("golden")), mebibytes, "exit 0, but other bytes")
        finish(space, out)
    print(" ", ended)
    check(ended[-1][1] == 0, "512 MiB are enough", ended)
    check(any(code in CLEAN for _, code in ended), "no limit was felt", ended)


def test_a_memory_cgroup_is_survived(space):
    with MemoryGroup(96 * MIB) as group:
        if not group.path:
            print("  no memory cgroup can be made here: the limit on the address space stands for it")
            return
        done = run_limited("pack-images", *arguments(space, space("group")), cgroup=group.path)
        check(done.code == 0, "96 MiB are enough for --memory-bytes 64M", done)
        finish(space, space("group"))
    with MemoryGroup(8 * MIB) as group:
        done = run_limited("pack-images", *arguments(space, space("group")), cgroup=group.path)
        check(done.code in (0, -signal.SIGKILL, *CLEAN), done)
        print("  8 MiB: exit", done.code)
        finish(space, space("group"))


with Workspace() as workspace:
    make_images(workspace("photos"), 300)
    pack(workspace("photos"), workspace("golden"), *LIMIT)
    run_tests(globals(), workspace)
