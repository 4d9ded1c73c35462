#!/usr/bin/env python3
"""The code of README.md and lib/python/README.md does what the pages say: Python blocks, and the lines that call the commands,
are run over small inputs of the names that they use. Lines that install or build are only parsed by bash.
Usage: code_blocks_test.py ROOT TOOLS_FOLDER; PYTHONPATH has the package."""
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

from PIL import Image

ROOT, TOOLS = map(os.path.abspath, sys.argv[1:3])
PAGES = ["README.md", "lib/python/README.md"]
# Blocks of Python that download a dataset, ask a database, or need a torchvision that Debian 12 has not, are only compiled.
COMPILED = re.compile(r"load_dataset|read_sql|import v2")
# Begin a line that is only parsed.
PARSED = re.compile(r"(bash|cmake|apt|pip) ")
USERS = 20_200  # vae-cf holds out 10,000 twice


def check(holds, *what):
    if not holds:
        sys.exit("FAILED: " + " ".join(map(str, what)))


def blocks(page):
    """Pairs of language and code; shell where a block names no language."""
    with open(os.path.join(ROOT, page)) as file:
        found = re.findall(r"^```(\w*)\n(.*?)^```", file.read(), re.M | re.S)
    return [(language or "shell", code) for language, code in found]


def write_images(folder, names):
    for name in names:
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Image.effect_noise((300, 280), 60).convert("RGB").save(path)


def write_inputs():
    """photos/, imagenet/, streets/, shards/ and ratings.csv, as the pages name them."""
    names = [f"{label}/{index}.jpg" for label in ("ant", "bee") for index in range(6)]
    write_images("photos", names)
    with open("photos/labels.csv", "w") as table:
        table.write("file,label\n")
        table.writelines(f"{name},{name[:3]}\n" for name in names)
    for part in ("train", "val"):
        write_images("imagenet", [f"{part}/{name}" for name in names])
    write_images("streets/images", [f"{index}.jpg" for index in range(16)])
    os.mkdir("streets/masks")
    for index in range(16):
        Image.new("P", (300, 280)).save(f"streets/masks/{index}.png")
    os.mkdir("shards")
    with tarfile.open("shards/000.tar", "w") as tar:
        for name in names:
            tar.add(f"photos/{name}", name)
    draw = random.Random(1)
    with open("ratings.csv", "w") as table:
        table.write("user,item,rating\n")
        for user in range(USERS):
            table.writelines(f"{user},{item},5\n" for item in draw.sample(range(40), 6))


def run_shell(code):
    """Runs the lines that call commands, each without the output of an earlier one."""
    run = parsed = 0
    for line in code.splitlines():
        done = subprocess.run(["bash", "-n", "-c", line], stderr=subprocess.PIPE, text=True)
        check(done.returncode == 0, line, done.stderr)
        if PARSED.match(line):
            parsed += 1
            continue
        check(line.startswith("pack-"), "neither run nor parsed:", line)
        for output in re.findall(r"(?:--output|-o) (\S+)", line):
            shutil.rmtree(output, ignore_errors=True)
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", line.replace(";", "&&")], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        check(done.returncode == 0, line, "exit", done.returncode, done.stdout)
        run += 1
    return run, parsed


def run_python(code):
    """Runs a program whose `train` takes whatever it is given, and counts its batches."""
    prelude = "given = []\ndef train(*batch):\n    given.append(batch)\n"
    program = prelude + code + "\nprint('batches:', len(given))"
    done = subprocess.run([sys.executable, "-W", "error::SyntaxWarning", "-c", program], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    check(done.returncode == 0, code, done.stdout)
    return done.stdout


def main():
    run = parsed = python = 0
    inputs = set(os.listdir())
    for page in PAGES:
        for output in set(os.listdir()) - inputs:
            shutil.rmtree(output) if os.path.isdir(output) else os.remove(output)
        # The blocks of a page belong together: what one imports, the next one uses.
        programs = [code for language, code in blocks(page) if language == "python"]
        for code in programs:
            compile(code, page, "exec")
        programs = [code for code in programs if not COMPILED.search(code)]
        for language, code in blocks(page):
            if language == "shell" and re.match(r"\w+-|bash |cmake ", code):
                more = run_shell(code)
                run, parsed = run + more[0], parsed + more[1]
        said = run_python("\n".join(programs))
        check(int(said.split("batches: ")[1]) > 0, page, said)
        python += len(programs)
    check(run >= 6 and python >= 3, run, "lines,", python, "Python blocks")
    print(f"run: {run} lines of shell, {python} blocks of Python; only parsed: {parsed} lines")


with tempfile.TemporaryDirectory() as scratch:
    os.chdir(scratch)
    os.environ["PATH"] = TOOLS + ":" + os.environ["PATH"]
    write_inputs()
    main()
    os.chdir("/")
