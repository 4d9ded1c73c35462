#!/usr/bin/python3
"""What samplers and mixtures cost: CPU time a sample beside the same loader without one, in interleaved rounds.

usage: sampler_bench.py BUILD RAW_HDF5_PACK SHARD_PACK [ROUNDS]   (7); prints medians of microseconds and ratios of medians
CPU time depends less on what else the machine does than samples a second. Each case is a process of its own: cache decoded and order global show the cost of draws, cache none and order window that of
chunks that are read for fewer samples."""
import os
import statistics
import subprocess
import sys

ONE = """
import sys, time, chunkhit
paths, options, seconds = eval(sys.argv[1]), eval(sys.argv[2]), float(sys.argv[3])
loader = chunkhit.ImageLoader(paths, batch_size=256, seed=1, **options)
for _ in loader.epoch(0):
    pass
begin, samples, epoch = time.process_time(), 0, 1
while time.process_time() - begin < seconds:
    samples += sum(len(batch.samples) for batch in loader.epoch(epoch))
    epoch += 1
print((time.process_time() - begin) / samples * 1e6)
"""
SAMPLERS = {
    "none": "",
    "balanced": ", sampler='balanced'",
    "subset, the first quarter": ", subset=range({count} // 4)",
    "half without replacement": ", replacement=False, epoch_samples={count} // 2",
}


def cases(raw, shard, count):
    """Names, the case that each is compared with, paths and options."""
    for order, pack in (("shuffle='global', cache='decoded'", raw), ("shuffle='window', cache='none'", shard)):
        for name, options in SAMPLERS.items():
            yield f"{order}: {name}", f"{order}: none", repr(pack), f"dict({order}{options.format(count=count)})"
        twice = [pack, os.path.join(os.path.dirname(pack), ".", os.path.basename(pack))]
        yield f"{order}: two packs", None, repr(twice), f"dict({order})"
        yield f"{order}: a mixture of two", f"{order}: two packs", repr(dict(zip(twice, (0.7, 0.3)))), f"dict({order})"


def main():
    build, raw, shard = sys.argv[1:4]
    environment = {**os.environ, "PYTHONPATH": os.path.join(build, "lib/python")}

    def output(*arguments):
        return subprocess.run(["/usr/bin/python3", "-c", *arguments], env=environment, stdout=subprocess.PIPE, text=True,
                              check=True).stdout

    count = int(output("import sys, chunkhit; print(chunkhit.pack_info(sys.argv[1])['samples'])", raw))
    found = {}
    for _ in range(int(sys.argv[4]) if len(sys.argv) > 4 else 7):
        for name, _, paths, options in cases(raw, shard, count):
            found.setdefault(name, []).append(float(output(ONE, paths, options, "1")))
    medians = {name: statistics.median(rates) for name, rates in found.items()}
    for name, compared, _, _ in cases(raw, shard, count):
        ratio = f"{medians[name] / medians[compared]:.2f}" if compared else "1.00"
        print(f"{name:65} {medians[name]:7.2f} µs  {ratio}  ({min(found[name]):.2f} to {max(found[name]):.2f})")


main()
