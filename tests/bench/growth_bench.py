#!/usr/bin/python3
"""How a loader grows with its samples and its parts: packing, opening, first batches, and memory, in new processes.

usage: growth_bench.py BUILD [ROUNDS]     (5 rounds; samples of 4×4 gray pixels; nginx for parts over http)
Prints medians of CPU time, which other programs hardly change, with the least and the most. Memory is the process's own after the
loader was opened, less that of a loader of 1,000 samples. 10 million samples are the pack of a million ten times. Packs lie in /dev/shm."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

build = pathlib.Path(sys.argv[1]).resolve()
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
os.environ.update(PYTHONPATH=str(build / "lib" / "python"), no_proxy="*")
from servers import Nginx  # noqa: E402

ORDERS = {"none": "dict(shuffle='none')", "window": "dict(shuffle='window')", "global": "dict(shuffle='global')",
          "balanced": "dict(shuffle='global', sampler='balanced')"}
PACK = """
import json, resource, sys, numpy, chunkhit
path, count, options = sys.argv[1], int(sys.argv[2]), eval(sys.argv[3])
pixels = numpy.random.default_rng(1).integers(0, 255, (4096, 4, 4, 1), dtype=numpy.uint8)
with chunkhit.ImageWriter(path, **options) as writer:
    for index in range(count):
        writer.add(pixels[index % 4096], index % 8)
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024]))
"""
OPEN = """
import json, re, sys, time, chunkhit
def own():
    return int(re.search(r"RssAnon:\\s*(\\d+)", open("/proc/self/status").read())[1]) * 1024
clock, cpu = time.perf_counter(), time.process_time()
loader = chunkhit.ImageLoader(json.loads(sys.argv[1]), batch_size=256, cache="none", threads=1, prefetch=1, **eval(sys.argv[2]))
seconds, opened, own_bytes = time.perf_counter() - clock, time.process_time() - cpu, own()
next(iter(loader.epoch(0)))
print(json.dumps([opened, time.process_time() - cpu, own_bytes, seconds]))
"""


def output(program, *arguments):
    return json.loads(subprocess.run(["/usr/bin/python3", "-c", program, *map(str, arguments)], check=True, stdout=subprocess.PIPE).stdout)


def span(values, factor=1e3):
    return f"{statistics.median(values) * factor:8.2f} ({min(values) * factor:.2f}–{max(values) * factor:.2f})"


def opened(cases):
    """The columns of OPEN of each (name, paths, order), in turns, by name and order."""
    found = {}
    for _ in range(rounds):
        for name, paths, order in cases:
            found.setdefault((name, order), []).append(output(OPEN, json.dumps(paths), ORDERS[order]))
    return {key: list(zip(*rows)) for key, rows in found.items()}


def samples_grow(folder):
    counts = (1_000, 10_000, 100_000, 1_000_000)
    print("samples: packing, CPU µs a sample, and its peak memory")
    for count in counts:
        cpu, peak = output(PACK, folder / str(count), count, "dict(container='shard')")
        print(f"{count:10,} {cpu / count * 1e6:7.2f} µs {peak / 2**20:7.0f} MiB", flush=True)
    paths = {count: [str(folder / str(count))] for count in counts}
    paths[10_000_000] = [f"{folder}/{'./' * index}1000000" for index in range(10)]
    found = opened([(count, paths[count], order) for count in paths for order in ORDERS])
    print("samples, order: opened, CPU ms; first batch, CPU ms; memory, bytes a sample")
    for (count, order), (opens, firsts, own, _) in found.items():
        grown = (statistics.median(own) - statistics.median(found[1_000, order][2])) / count
        print(f"{count:10,} {order:9} {span(opens)} {span(firsts)}   {grown:6.1f}", flush=True)


def parts_grow(folder):
    packs = {parts: folder / f"parts-{parts}" for parts in (1, 10, 100, 1_000)}
    for parts, pack in packs.items():
        output(PACK, pack, 100_000, f"dict(container='shard', chunk_samples=100, part_bytes={1_600_000 // parts})")
    with tempfile.TemporaryDirectory() as work, Nginx(folder, work) as server:
        found = opened([(f"{parts}{where}", [f"{root}/{pack.name}"], "window") for parts, pack in packs.items()
                        for where, root in (("", folder), (" over http", server.url))])
    print("100,000 samples in parts: opened, CPU ms; by the clock, ms; first batch, CPU ms")
    for (name, _), (opens, firsts, _, seconds) in found.items():
        print(f"{name:16} {span(opens)} {span(seconds)} {span(firsts)}", flush=True)


with tempfile.TemporaryDirectory(dir="/dev/shm") as at:
    parts_grow(pathlib.Path(at))
    samples_grow(pathlib.Path(at))
