"""Time from start to the first lines of progress for a folder of 100,000 files, through a pipe.

Usage: first_progress.py BUILD_FOLDER [FILE_COUNT]; the files are links in /dev/shm. The aim is 0.5 s to the first line.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from PIL import Image

BUILD, COUNT = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
ROUNDS = 5


def make_folder(root):
    os.makedirs(root)
    Image.new("RGB", (64, 64), (90, 120, 30)).save(f"{root}/image.jpg")
    for index in range(COUNT):
        folder = f"{root}/class{index % 100:03d}"
        if index < 100:
            os.makedirs(folder)
        os.link(f"{root}/image.jpg", f"{folder}/{index:06d}.jpg")
    with open(f"{root}/labels.csv", "w") as file:
        file.write("file,label\n" + "".join(f"class{index % 100:03d}/{index:06d}.jpg,{index % 100}\n" for index in range(COUNT)))


def seconds_to_phases(root, output, arguments):
    """Seconds from start to the first event of each phase; the run is ended after the first of packing."""
    begin = time.perf_counter()
    process = subprocess.Popen([f"{BUILD}/tools/pack-images", root, *arguments, "--resize", "32x32", "--output", output,
                                "--progress", "json"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    seconds = {}
    for line in process.stderr:
        seconds.setdefault(json.loads(line)["phase"], time.perf_counter() - begin)
        if "packing" in seconds:
            break
    process.kill()
    process.wait()
    process.stderr.close()
    shutil.rmtree(output)
    return seconds


def main():
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="chunkhit-") as folder:
        make_folder(f"{folder}/root")
        for name, arguments in (("class folders", []), ("label CSV", ["--labels", f"{folder}/root/labels.csv"])):
            rounds = [seconds_to_phases(f"{folder}/root", f"{folder}/pack", arguments) for _ in range(ROUNDS)]
            for phase, what in (("listing", "first line"), ("packing", "first packed image")):
                times = sorted(seconds[phase] for seconds in rounds)
                print(f"{COUNT:,} files, {name}: {what} after {times[ROUNDS // 2]:.3f} s (of {ROUNDS}: {times[0]:.3f} to {times[-1]:.3f})")


main()
