#!/usr/bin/env python3
"""The code of README.md and of the guides does what the pages say: Python blocks, and the lines that call the commands, are run
over small inputs of the names that they use. Lines that install, build, or need a scheduler or a server are only parsed by bash,
C++ is compiled. Usage: code_blocks_test.py ROOT TOOLS_FOLDER; PYTHONPATH has the package."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

from page_inputs import write_inputs

ROOT, TOOLS = map(os.path.abspath, sys.argv[1:3])
GUIDES = [os.path.relpath(path, ROOT) for folder in ("tools", "lib", "lib/python") for path in glob.glob(f"{ROOT}/{folder}/*.md")]
PAGES = ["README.md", *sorted(set(GUIDES) - {"lib/README.md", "lib/CHANGELOG.md"})]
# Blocks of Python that download a dataset, ask a database or a server, or need a GPU or libraries that Debian 12 has not, are only compiled.
COMPILED = re.compile(r"load_dataset|read_sql|pyarrow|duckdb|import v2|device=\"cuda\"|s3://|import (lightning|jax|tensorflow)|from (accelerate|transformers) ")
# Begin a block of shell.
SHELL = re.compile(r"pack-|bash |cmake |aws |for |jq |tasks=|parts=")
# A line that is only parsed; a loop, whose block is.
PARSED = re.compile(r"(bash|cmake|apt|pip|aws|rsync|jq|awk|sbatch) |(tasks|parts)=|pack-bench .* --tune|pack-\w+ (.*://|/data/)")
LOOP = re.compile(r"for ")
# Packs that pages about packs name, and what makes them.
PACKS = {
    "train": "pack-images photos --resize 64 --crop 64 -o train",
    "packs": "pack-images photos --resize 64 --crop 64 --split train=0.5,val=0.5 -o packs",
    "monday": "pack-images photos --include '0.jpg' --resize 64 --crop 64 -o monday",
    "tuesday": "pack-images photos --include '1.jpg' --resize 64 --crop 64 -o tuesday",
    "wednesday": "pack-images photos --include '2.jpg' --resize 64 --crop 64 -o wednesday",
    "vae": "pack-sparse ratings.csv --preset vae-cf --validation 200 --test 200 -o vae",
}
CPP = """#include <chunkhit/pack.h>
void train(auto&&...) {}
void evaluate(auto&&...) {}
int main() {
std::vector<std::uint8_t> pixels(80 * 90 * 3);
"""


def check(holds, *what):
    if not holds:
        sys.exit("FAILED: " + " ".join(map(str, what)))


def blocks(page):
    """Pairs of language and code; shell where a block names no language."""
    with open(os.path.join(ROOT, page)) as file:
        found = re.findall(r"^```(\w*)\n(.*?)^```", file.read(), re.M | re.S)
    return [(language or "shell", code) for language, code in found]


def parse(code):
    done = subprocess.run(["bash", "-n", "-c", code], stderr=subprocess.PIPE, text=True)
    check(done.returncode == 0, code, done.stderr)
    return 1


def run_line(line):
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", line.replace(";", "&&")], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    # 75: a pack that is planned, and not finished yet.
    waits = line.startswith("pack-info") and done.returncode == 75
    check(done.returncode == 0 or waits, line, "exit", done.returncode, done.stdout)
    return 1


def run_shell(code):
    """Runs the lines that call commands, each without the output of an earlier one."""
    if LOOP.match(code):
        return 0, parse(code)
    run = parsed = 0
    for line in code.splitlines():
        parse(line)
        if PARSED.match(line):
            parsed += 1
            continue
        check(line.startswith("pack-"), "neither run nor parsed:", line)
        for output in re.findall(r"(?:--output|-o) (\S+)", line):
            if "--dry-run" not in line and "--force" not in line:
                shutil.rmtree(output, ignore_errors=True)
        run += run_line(line)
    return run, parsed


def run_python(code):
    """Runs a program whose `train` takes whatever it is given, and counts its batches."""
    prelude = "given = []\ndef train(*batch):\n    given.append(batch)\n"
    program = prelude + code + "\nprint('batches:', len(given))"
    done = subprocess.run([sys.executable, "-W", "error::SyntaxWarning", "-c", program], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    check(done.returncode == 0, code, done.stdout)
    return done.stdout


def compile_cpp(page, code):
    """Compiles a page's blocks as one function, against the public headers."""
    includes = re.findall(r"^#include.*$", code, re.M)
    program = "\n".join(includes) + "\n" + CPP + re.sub(r"^#include.*$", "", code, flags=re.M) + "}\n"
    strict = ["-Wall", "-Wconversion", "-Wsign-conversion", "-Werror"]
    done = subprocess.run(["c++", "-std=c++20", "-fsyntax-only", *strict, f"-I{ROOT}/lib/include", "-x", "c++", "-"], input=program,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(done.returncode == 0, page, done.stdout)


def run_page(page):
    """Runs a page's blocks, which belong together: what one imports or packs, the next one uses."""
    run = parsed = 0
    found = blocks(page)
    programs = [code for language, code in found if language == "python"]
    for code in programs:
        compile(code, page, "exec")
    programs = [code for code in programs if not COMPILED.search(code)]
    for language, code in found:
        if language == "shell" and SHELL.match(code):
            more = run_shell(code)
            run, parsed = run + more[0], parsed + more[1]
    if programs:
        said = run_python("\n".join(programs))
        check("train(" not in "".join(programs) or int(said.split("batches: ")[1]) > 0, page, said)
    if any(language == "cpp" for language, _ in found):
        compile_cpp(page, "\n".join(code for language, code in found if language == "cpp"))
    return run, parsed, len(programs)


def check_readme():
    """A rewrite left its second command out. The page stays short."""
    commands = {line.split("#")[0].strip() for _, code in blocks("README.md") for line in code.splitlines()}
    for command in ("bash samples/quickstart.sh", "bash tests/run.sh"):
        check(command in commands and os.path.exists(f"{ROOT}/{command.split()[1]}"), "README.md: expected the command", command)
    with open(os.path.join(ROOT, "README.md")) as file:
        check(len(file.readlines()) <= 140, "README.md: more than 140 lines")


def main():
    check_readme()
    inputs = set(os.listdir())
    with tempfile.TemporaryDirectory() as packs:
        for name, line in PACKS.items():
            run_line(line)
            shutil.move(name, packs)
        run_line("pack-images streets/images --pair streets/masks --sizes own -o streets/train")
        run_line("pack-images rooms/images --pair mask=rooms/classes --pair instances=rooms/instances --pair depth=rooms/depth:view "
                 "--fit 256 -o rooms/train")
        totals = [0, 0, 0]
        for page in PAGES:
            for output in set(os.listdir()) - inputs:
                shutil.rmtree(output) if os.path.isdir(output) else os.remove(output)
            if page.startswith("tools/"):
                shutil.copytree(packs, ".", dirs_exist_ok=True)
            totals = [total + more for total, more in zip(totals, run_page(page))]
    run, parsed, python = totals
    check(len(PAGES) >= 25 and run >= 60 and python >= 30, len(PAGES), "pages,", run, "lines,", python, "Python blocks")
    print(f"{len(PAGES)} pages; run: {run} lines of shell, {python} blocks of Python; only parsed: {parsed} lines")


with tempfile.TemporaryDirectory() as scratch:
    os.chdir(scratch)
    os.environ["PATH"] = TOOLS + ":" + os.environ["PATH"]
    write_inputs()
    main()
    os.chdir("/")
