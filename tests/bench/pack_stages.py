#!/usr/bin/python3
"""Where pack-images spends its CPU time: µs a sample in each stage, and on how many cores its serial stages would be busy all the time.

usage: pack_stages.py BUILD PHOTOS ROWS.csv   (PHOTOS as make_photos.py makes them; needs perf)

Each stack that perf samples belongs to the filter of the pipeline that it is in. A part has three serial filters, which run beside each
other and beside the parallel ones: the longest of them ends what more cores can do for one part. A part is packed at once for every
THREADS_PER_PART threads; all of them share two locks, of the HDF5 library and of the progress, which end what more cores can do at all.
Storage is not in it: files come from the page cache. A run before warms that and the memory of the machine, which a virtual one gets
from its host at the first touch."""
import collections
import os
import re
import subprocess
import sys
import tempfile
import threading
import time

build, photos, rows = sys.argv[1:4]
THREADS_PER_PART = 4  # kThreadsPerPart of lib/pack/images/memory_plan.cpp
CORES = 64
# The serial filters of FixedPipeline::run_steps, by what they take.
SERIAL = {"list rows": r"concrete_filter<void, ", "assemble chunks": r"concrete_filter<[^,]*Block, std::vector<chunkhit::FilledChunk",
          "write chunks": r"concrete_filter<std::vector<[^,]*StoredSamples"}
KINDS = [  # by the innermost frame that says something
    ("write", r"sys_pwrite|sys_write|sys_fsync|sys_fdatasync|vfs_write|sys_rename"),
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


def lock_of(frames):
    """The lock of all parts that a thread holds: HDF5 is used by one thread at a time, also while a part's columns are read back."""
    text = " ".join(frames)
    finishes = "Hdf5PartWriter::complete" in text and not re.search(r"encode_index|append_hdf5_index|check_written_part|flush", text)
    if "libhdf5" in text and "_dl_" not in text or finishes:
        return "HDF5 library"
    return "progress" if re.search(r"PackWriter::write_part.*Reject const\*", text) else None


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
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-F", str(frequency), "--call-graph", "dwarf,32768", "-o", data, *command],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    found, locked = collections.Counter(), collections.Counter()
    for frames in stacks(data):
        found[stage_of(frames)] += 1
        locked.update([lock] if (lock := lock_of(frames)) else [])
    with open(rows) as file:
        samples = sum(1 for _ in file) - 1
    micros = {stage: count / frequency * 1e6 / samples for stage, count in found.items()}
    total = sum(micros.values())
    serial = max(micros.get("serial: " + name, 0) for name in SERIAL)
    print(f"{side}x{side} {container}: {total:.0f} µs a sample, {total * samples / 1e6:.1f} s in all")
    for stage, value in sorted(micros.items(), key=lambda entry: -entry[1]):
        print(f"  {stage:40s} {value:8.1f} µs {value / total:7.2%}")
    lock = max(locked.values(), default=0) / frequency * 1e6 / samples
    of_part, of_all = (total / value if value else float("inf") for value in (serial, lock))
    parts = max(1, CORES // THREADS_PER_PART)
    for name, count in locked.items():
        print(f"  while it holds the lock of the {name}: {count / frequency * 1e6 / samples:.2f} µs")
    print(f"  longest serial stage of a part {serial:.2f} µs: busy all the time on {of_part:.0f} cores, on {of_part * parts:.0f} with {parts} parts at once;"
          f" longest lock {lock:.2f} µs: on {of_all:.0f} cores\n")


def write_together(folder, files, writers=2, pieces=200, piece=bytes(1_200_000)):
    """GB/s of threads that write pieces into so many files: Linux takes the writes to a file from one thread at a time."""
    opened = [os.open(f"{folder}/{index}", os.O_RDWR | os.O_CREAT) for index in range(files)]

    def write(writer):
        for index in range(pieces):
            os.pwrite(opened[writer % files], piece, (index * writers + writer) * len(piece))

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(writers)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - begun
    for index, fd in enumerate(opened):
        os.close(fd)
        os.unlink(f"{folder}/{index}")
    return writers * pieces * len(piece) / seconds / 1e9


with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
    for files, writers in ((1, 1), (1, 2), (2, 2)):
        speed = max(write_together(folder, files, writers) for _ in range(20))
        print(f"{writers} threads write {files} files: {speed:.1f} GB/s")
    for side in (64, 224):
        for container in ("hdf5", "shard"):
            measure(folder, side, container)
