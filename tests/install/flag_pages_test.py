#!/usr/bin/env python3
"""The man pages and the completions that the build makes of the commands' flags: man, groff and mandoc have no warning
about a page, it and the site's table have the flags of --help and no others, and bash, zsh and fish complete flags, their words, files and folders.
Usage: flag_pages_test.py TOOLS_FOLDER"""
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import time

TOOLS = os.path.abspath(sys.argv[1])
COMMANDS = ["pack-bench", "pack-export", "pack-images", "pack-info", "pack-merge", "pack-report", "pack-run", "pack-sparse",
            "pack-verify"]
# What is typed, and all that may follow; the working folder has the file labels.csv and the folder photos.
CASES = {
    "pack-images --cont": {"--container"},
    "pack-images --container ": {"hdf5", "shard"},
    "pack-images photos --container s": {"shard"},
    "pack-images --labels ": {"labels.csv", "photos"},
    "pack-images --output ": {"photos"},
    "pack-images -o ": {"photos"},
    "pack-images --seed ": set(),
    "pack-images ": {"photos"},
    "pack-sparse ": {"labels.csv", "photos"},
    "pack-sparse --duplicates ": {"error", "sum", "max", "last", "first", "keep"},
    "pack-bench --shuffle ": {"none", "window", "global"},
    "pack-run --ta": {"--task"},
    "pack-verify --qu": {"--quick"},
    "pack-export --cl": {"--classes"},
    "pack-export ": {"photos"},
    "pack-report --near": {"--near-duplicates"},
    "pack-report --bench ": {"labels.csv", "photos"},
}
SET_UP = {
    "bash": ["--norc", "--noprofile", "-i"],
    "zsh": ["-f", "-i"],
}


def check(holds, *what):
    if not holds:
        sys.exit("FAILED: " + " ".join(map(str, what)))


def run(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, **options)


def check_man(command):
    page = f"{TOOLS}/man/{command}.1"
    for tool in (["man", "-l", "--warnings", "-E", "UTF-8", page],
                 ["groff", "-man", "-ww", "-z", "-K", "utf8", "-T", "utf8", page],
                 ["mandoc", "-T", "lint", "-W", "warning", page]):
        done = run(*tool, env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"})
        said = done.stderr + ("" if tool[0] == "man" else done.stdout)
        check(done.returncode == 0 and not said, *tool, said)
    help_text = run(f"{TOOLS}/{command}", "--help").stdout
    with open(page) as file:
        entries = re.findall(r"^\.TP\n(.*)", file.read().replace("\\-", "-"), re.MULTILINE)
    flags = set(re.findall(r"^ +(?:-\w(?: [A-Z]\S*)?, ?)?(--[a-z-]+)", help_text, re.MULTILINE))
    in_page = set(re.findall(r"\\fB(--[a-z-]+)", "\n".join(entries)))
    check(flags and flags == in_page, command, "--help and page differ in", *(flags ^ in_page))
    with open(f"{TOOLS}/markdown/{command}.md") as file:
        in_table = set(re.findall(r"^\| (?:`-\w`, )?`(--[a-z-]+)", file.read(), re.MULTILINE))
    check(flags == in_table, command, "--help and table differ in", *(flags ^ in_table))


def bash_words(line):
    """What the function for bash gives, asked as bash asks it."""
    words = line.split(" ")
    script = f"""source {TOOLS}/bash/{words[0]}; compopt() {{ :; }}
    COMP_WORDS=({" ".join(f"'{word}'" for word in words)}); COMP_CWORD={len(words) - 1}
    _{words[0].replace("-", "_")}; printf '%s\\n' "${{COMPREPLY[@]}}" """
    done = run("bash", "-c", script)
    check(not done.stderr, line, done.stderr)
    return set(done.stdout.split())


def fish_words(line):
    done = run("fish", "--no-config", "-c", f"set -p fish_complete_path {TOOLS}/fish; complete -C '{line}'",
               env={**os.environ, "PATH": TOOLS + ":" + os.environ["PATH"]})
    check(done.returncode == 0 and not done.stderr, line, done.stderr)
    return {entry.split("\t")[0].rstrip("/") for entry in done.stdout.splitlines()}


def shown_by(shell, set_up, typed, expected):
    """Types into a shell at a terminal, and waits until it shows what is expected; returns what it shows."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="dumb", PS1="", INPUTRC="/dev/null", HISTFILE="/dev/null",
                          PATH=TOOLS + ":" + os.environ["PATH"])
        os.execvp(shell, [shell, *SET_UP[shell]])
    shown = ""

    def wait_for(pattern):
        nonlocal shown
        end = time.monotonic() + 30
        while not re.search(pattern, shown) and time.monotonic() < end:
            if select.select([terminal], [], [], 0.2)[0]:
                shown += os.read(terminal, 4096).decode(errors="replace")
        check(re.search(pattern, shown), shell, repr(typed), "shows", repr(shown), "expected", pattern)

    try:
        os.write(terminal, (set_up + "; echo RE''ADY\n").encode())
        wait_for("READY\r\n")
        shown = ""
        os.write(terminal, typed.encode())
        wait_for(expected)
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        os.close(terminal)


def check_terminals():
    """Tabs in real shells at a terminal."""
    bash = f"bind 'set show-all-if-ambiguous on'; bind 'set enable-bracketed-paste off'; source {TOOLS}/bash/pack-images"
    zsh = f"fpath=({TOOLS}/zsh $fpath); autoload -U compinit; compinit -u -D; unsetopt zle_bracketed_paste; LISTMAX=100"
    words = r"hdf5\s+shard"
    for shell, set_up in (("bash", bash), ("zsh", zsh)):
        shown_by(shell, set_up, "pack-images --cont\t", "--container")
        shown_by(shell, set_up, "pack-images --container \t", words)
        shown_by(shell, set_up, "pack-images --container=\t", words)
        shown_by(shell, set_up, "pack-images --output p\t", "--output photos/")
        shown_by(shell, set_up, "pack-images --labels l\t", "--labels labels.csv")


def main():
    for command in COMMANDS:
        check_man(command)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir("photos")
        with open("labels.csv", "w"):
            pass
        for line, expected in CASES.items():
            # fish shows words that begin with a dot only behind a dot.
            shown = expected - {"."}
            for shell, words, wanted in (("bash", bash_words(line), expected), ("fish", fish_words(line), shown)):
                check(words == wanted, shell, repr(line), "offers", words, "expected", wanted)
        check_terminals()
        os.chdir("/")
    print(f"{len(COMMANDS)} pages, {2 * len(CASES)} completions")


main()
