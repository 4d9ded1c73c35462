"""Two builds, of another compiler or for another machine, are the same to those who use them: from the same inputs their
commands write the same bytes; of packs that earlier versions wrote their readers give the same.
Usage: same_packs_test.py BUILD OTHER_BUILD; what runs by an emulator is in OTHER_BUILD/emulated."""
import os
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.dirname(HERE)
BUILDS = [os.path.abspath(path) for path in sys.argv[1:3]]
sys.dont_write_bytecode = True  # the folder of the sources stays as it is

from pinned_hashes_test import CASES, ORDERS, write, write_images, write_ratings  # noqa: E402

PLAN_BYTES = 8  # before each file of the corpora
# Files of every type, many of them damaged: what each build rejects, and why, is compared, too.
TYPES = ["pack-images", "{root}/types", "--labels", "{root}/types/labels.csv", "--max-errors", "100%", "--seed", "3"]
MORE_CASES = {
    "types": TYPES + ["--fit", "40", "--resample", "lanczos", "--channels", "rgba"],
    "types_as_decoded": TYPES + ["--sizes", "own", "--store", "zstd", "--channels", "rgba"],
    "types_shrunk": TYPES + ["--sizes", "own", "--max-side", "30"],
    "planned": CASES["images_folders"] + ["--plan", "9"],
}


def check(holds, *what):
    if not holds:
        sys.exit("FAILED: " + " ".join(map(str, what)))


def write_types(root):
    lines = ["file,label"]
    for corpus in ("decode", "jpeg"):
        files = os.path.join(TESTS, "fuzz/corpus", corpus)
        for name in sorted(os.listdir(files)):
            with open(os.path.join(files, name), "rb") as file:
                write(root, f"types/{corpus}/{name}", file.read()[PLAN_BYTES:])
            lines.append(f"{corpus}/{name},{name.split('-')[0]}")
    write(root, "types/labels.csv", "\n".join(lines).encode() + b"\n")


def must(build, name, *arguments, folder, **options):
    """Runs a program that must succeed; returns what it prints."""
    path = next((path for kind in ("emulated", "tools", "tests")
                 if os.path.exists(path := os.path.join(build, kind, name))), os.path.join(build, "tools", name))
    done = subprocess.run([path, *arguments], cwd=folder, capture_output=True, **options)
    check(done.returncode == 0, path, *arguments, "exit code", done.returncode, done.stderr.decode())
    return done.stdout


def write_packs(build, root, folder):
    os.makedirs(folder)
    for name, command in {**CASES, **MORE_CASES}.items():
        arguments = [word.format(root=root) for word in command[1:]]
        must(build, command[0], *arguments, "--output", name, "--progress", "none", folder=folder)
        if "--plan" in command:
            must(build, "pack-run", name, "--progress", "none", folder=folder)


def read_packs(build, golden, folder):
    """Writes what a build's readers say and give of recorded packs, and its orders of samples."""
    os.makedirs(folder)
    packs = [os.path.relpath(at, golden) for at, _, names in os.walk(golden) if "manifest.json" in names]
    check(len(packs) > 10, packs)
    for pack in packs:
        out = os.path.join(folder, pack.replace("/", "-"))
        manifest = must(build, "pack-info", "--json", pack, folder=golden)
        write(folder, out + ".json", manifest)
        must(build, "pack-verify", pack, folder=golden)
        if b'"matrices"' in manifest:
            must(build, "sparse_loader_probe", "2 7 3 5 0 2 0 2", out, pack, folder=golden)
            continue
        write(folder, out + ".list", must(build, "pack-info", "--list", pack, folder=golden))
        if "own-sizes" not in pack:  # a batch of them needs a crop: the packs are compared as they are written
            must(build, "loader_probe", "1 7 3 5 0 2 1 2", out, "", "", pack, folder=golden)
    for name, question in ORDERS.items():
        write(folder, name, must(build, "order_probe", folder=golden, input=question.encode() + b"\n"))


def files_of(folder):
    found = {}
    for at, _, names in os.walk(folder):
        for name in names:
            if name != "run.json":  # times and threads
                with open(os.path.join(at, name), "rb") as file:
                    found[os.path.relpath(os.path.join(at, name), folder)] = file.read()
    return found


def main():
    with tempfile.TemporaryDirectory(prefix="chunkhit-") as root:
        write_images(root)
        write_ratings(root)
        write_types(root)
        golden, results = os.path.join(root, "golden"), []
        for name in os.listdir(os.path.join(TESTS, "golden")):
            if name.endswith(".tar.xz"):
                with tarfile.open(os.path.join(TESTS, "golden", name)) as tar:
                    tar.extractall(os.path.join(golden, name))
        for number, build in enumerate(BUILDS):
            folder = os.path.join(root, f"build-{number}")
            write_packs(build, root, folder + "/written")
            read_packs(build, golden, folder + "/read")
            results.append(files_of(folder))
        first, second = results
        differ = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
        check(not differ, len(differ), "of", len(first), "files differ:", *differ[:20])
    print(f"{len(first)} files are the same")


main()
