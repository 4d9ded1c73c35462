#!/usr/bin/python3
"""Where pack-images spends its CPU time: µs a sample in each stage, and on how many cores its serial stages would be busy all the time.

usage: pack_stages.py BUILD PHOTOS ROWS.csv   (PHOTOS as make_photos.py makes them; needs perf)

Each stack that perf samples belongs to the filter of the pipeline that it is in. The three serial filters run beside each
other and beside the parallel ones, so that the longest of them ends what more cores can do. Storage is not in it: files come from the
page cache."""
import collections
import os
import re
import subprocess
import sys
import tempfile

build, photos, rows = sys.argv[1:4]
# The serial filters of PartPipeline::run_steps, by what they take.
SERIAL = {"list rows": r"concrete_filter<void, ", "assemble chunks": r"concrete_filter<[^,]*Block, std::vector<chunkhit::FilledChunk",
          "write chunks": r"concrete_filter<std::vector<[^,]*StoredSamples"}
KINDS = [  # by the innermost frame that says something
    ("write", r"sys_pwrite|sys_write|sys_fsync|sys_fdatasync|sys_fallocate|vfs_write|sys_rename"),
    ("read", r"sys_open|sys_pread|sys_read|sys_close|sys_newfstat|sys_statx|vfs_read|RootFolder::open"),
    ("decode", r"jpeg|jsimd|decode_jpeg|JpegDecoder"),
    ("codec", r"ZSTD|HUF_|FSE_|libdeflate|deflate_|predict_photo|encode_photo|for_each_sample"),
    ("hash", r"XXH3"),
    ("transform", r"resample|Resample|transform|convert|crop"),
]


def kind_of(frames):
    for frame in frames:
        for kind, pattern in KINDS:
            if re.search(pattern, frame):
                return kind
    return "other"


def stage_of(frames):
    text = " ".join(frames)
    for name, pattern in SERIAL.items():
        if re.search(pattern, text):
            return "serial: " + name
    if "_dl_relocate" in text or "_dl_start" in text or "dl_main" in text:
        return "start of the program"
    kind = kind_of(frames)  # of libjpeg's SIMD code, which has no callers in its stacks, too
    return kind if "concrete_filter<" in text or kind in ("decode", "codec", "transform") else "beside the pipeline: " + kind


def stacks(data):
    text = subprocess.run(["perf", "script", "-i", data, "-F", "ip,sym,dso"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    for block in text.stdout.decode(errors="replace").split("\n\n"):
        frames = [line.strip() for line in block.splitlines() if line.strip()]
        if frames:
            yield frames


def measure(at, side, container):
    data = f"{at}/perf.data"
    frequency = 2000
    command = [f"{build}/tools/pack-images", photos, "--labels", rows, "--resize", f"{side * 3 // 2}x{side * 2}", "--crop", str(side), "--container",
               container, "--progress", "none", "--force", "--output", f"{at}/pack"]
    subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", str(frequency), "--call-graph", "dwarf,32768", "-o", data, *command],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    found = collections.Counter(stage_of(frames) for frames in stacks(data))
    with open(rows) as file:
        samples = sum(1 for _ in file) - 1
    micros = {stage: count / frequency * 1e6 / samples for stage, count in found.items()}
    total = sum(micros.values())
    serial = max(micros.get("serial: " + name, 0) for name in SERIAL)
    print(f"{side}x{side} {container}: {total:.0f} µs a sample, {total * samples / 1e6:.1f} s in all")
    for stage, value in sorted(micros.items(), key=lambda entry: -entry[1]):
        print(f"  {stage:40s} {value:8.1f} µs {value / total:7.2%}")
    print(f"  longest serial stage {serial:.2f} µs: busy all the time on {total / serial if serial else float('inf'):.0f} cores\n")


with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
    for side in (64, 224):
        for container in ("hdf5", "shard"):
            measure(folder, side, container)
