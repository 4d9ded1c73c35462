"""Measures the figures of README.md's table, and prints them beside what stands there. Run by readme.sh, which makes the inputs.

usage: readme.py WORK [ROW...]
"""
import dataclasses
import os
import platform
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = "build/release"
NUMBER = r"\**([\d.,]*\d)"
CROPS = r"{} +(\d+) us CPU an image, "


@dataclasses.dataclass
class Row:
    """Figures that one command measures. `printed` finds them in README.md, `found` in what the command prints, in one order."""

    printed: str
    names: list
    command: list
    found: list
    per_second: bool = False  # the command prints us a sample, README.md samples a second


def bench(name, *arguments):
    return ["/usr/bin/python3", f"{HERE}/{name}", BUILD, *arguments]


def rows(work):
    crops = bench("own_sizes_bench.py", f"{work}/varied", "3", "2")
    sparse = bench("sparse_scipy.py", f"{work}/ratings.csv")
    encoded = "JPEG q90, max side 512"
    return {
        "pack": Row(rf"one process: {NUMBER} images/s \| {NUMBER} images/s", ["Pillow and h5py, images/s", "chunkhit"],
                    bench("pack_images_bench.py", f"{work}/photos", "3"),
                    [r"Pillow \+ h5py .*?(\d+) img/s", r"96x128 crop 64, hdf5 .*?(\d+) img/s"]),
        "deflate": Row(rf"h5py: {NUMBER} samples/s; with a tuned cache {NUMBER} \| {NUMBER} samples/s",
                       ["h5py, samples/s", "h5py, tuned cache", "chunkhit"], bench("reader_h5py.py", f"{work}/hdf5/part-00000.h5"),
                       [r"shuffled samples, untuned +(\d+)", r"1 GiB cache +(\d+)", r"pack-bench, window, stream +(\d+)"]),
        "crops": Row(rf"in a DataLoader: {NUMBER} in a second of CPU time \| {NUMBER}\**; with decoded photos in memory {NUMBER}",
                     ["torchvision, crops a CPU second", "chunkhit", "chunkhit, decoded in memory"], crops,
                     [CROPS.format(name) for name in ("torchvision DataLoader", "chunkhit JPEG", "chunkhit JPEG, decoded in memory")], True),
        "peer-crops": Row(rf"FFCV: {NUMBER}; {NUMBER} \| {NUMBER}\**; {NUMBER}",
                          ["FFCV, JPEG, crops a CPU second", "FFCV, raw", "chunkhit, JPEG", "chunkhit, raw"], crops,
                          [CROPS.format(name) for name in ("FFCV jpg, max side 512", "FFCV raw, max side 512", f"chunkhit {encoded}",
                                                           "chunkhit pixels, max side 512")], True),
        "ratings": Row(rf"and scipy: {NUMBER} MB/s \| {NUMBER} MB/s", ["pandas and scipy, MB/s", "chunkhit"], sparse,
                       [r"columns and factorize .*\((\d+) MB/s\)", r"reading and packing +(\d+) MB/s"]),
        "batch": Row(rf"toarray\(out=buffer\)`: {NUMBER} ms \| {NUMBER} ms\**; torch tensors that may be written {NUMBER}",
                     ["scipy, ms", "chunkhit", "chunkhit, torch"], sparse,
                     [r"CPU time of toarray\(out=buffer\) +([\d.]+) ms", r"CPU time of NumPy +([\d.]+) ms", r"CPU time of torch +([\d.]+) ms"]),
        "sizes": Row(rf"512×384 take {NUMBER} MB so \(their files {NUMBER}\), and {NUMBER} as fixed 224×224",
                     ["own sizes, MB", "files", "fixed 224×224"], [sys.executable, f"{HERE}/readme.py", work, "--sizes"],
                     [r"own (\d+)", r"files (\d+)", r"fixed (\d+)"]),
    }


def print_sizes(work):
    """The megabytes of the photos' files, and of their packs."""
    import chunkhit
    files = sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(f"{work}/photos/images") for name in names)
    own = chunkhit.pack_images(f"{work}/photos/images", f"{work}/own", sizes="own", progress=False, force=True)
    fixed = chunkhit.pack_images(f"{work}/photos/images", f"{work}/fixed", resize=256, crop=224, progress=False, force=True)
    for name, value in (("own", own["stored_bytes"]), ("files", files), ("fixed", fixed["stored_bytes"])):
        print(name, round(value / 1e6))


def number(text):
    return float(text.replace(",", ""))


def measured(row, said):
    """The figures of a row in what its command printed; None for a peer that is not there."""
    found = [re.search(each, said, re.MULTILINE) for each in row.found]
    values = [each and number(each[1]) for each in found]
    return [each and (1e6 / each if row.per_second else each) for each in values]


def main():
    work, wanted = sys.argv[1], sys.argv[2:]
    if wanted == ["--sizes"]:
        return print_sizes(work)
    table = rows(work)
    if unknown := [name for name in wanted if name not in table]:
        sys.exit(f"readme.sh: unknown row: {unknown[0]}; expected {', '.join(table)}")
    with open("README.md", encoding="utf-8") as file:
        readme = file.read()
    outputs, differing = {}, []
    print(f"{platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} CPUs, load {os.getloadavg()[0]:.1f}\n"
          f"{'':44}{'README.md':>12}{'measured':>12}{'ratio':>8}")
    for name in wanted or table:
        row = table[name]
        printed = re.search(row.printed, readme)
        if not printed:
            sys.exit(f"readme.sh: README.md has no row like {row.printed}")
        command = tuple(row.command)
        if command not in outputs:
            outputs[command] = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        for what, text, value in zip(row.names, printed.groups(), measured(row, outputs[command])):
            if value is None:
                print(f"{name + ': ' + what:44}{text:>12}{'not here':>12}")
                continue
            ratio = value / number(text)
            print(f"{name + ': ' + what:44}{text:>12}{value:>12,.{0 if value >= 20 else 2}f}{ratio:>8.2f}", flush=True)
            if not 1 / 1.1 <= ratio <= 1.1:
                differing.append(f"{name}: {what}")
    print("not measured here: ResNet-18 on a GPU (tests/gpu/run.sh --training)")
    print("differ by more than a tenth: " + ("; ".join(differing) or "none"))


if __name__ == "__main__":
    main()
