"""Clang's compile commands of lib/, tools/ and samples/, and running a command for each."""
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor


def configured(root, build, *options):
    """The compile commands of a build folder that is only configured, the longest sources first."""
    done = subprocess.run(["cmake", "--preset", "clang", "-B", build, "-DCHUNKHIT_TESTS=OFF", "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON",
                           *options], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        sys.exit(done.stdout)
    entries = json.loads((build / "compile_commands.json").read_text())
    return sorted(entries, key=lambda entry: -os.path.getsize(entry["file"]))


def run_all(commands, **how):
    """Runs commands side by side, prints the output of those that fail, and returns how many did."""
    def failure(command):
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **how)
        return (run.stdout or str(command)) if run.returncode else ""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        texts = [text for text in pool.map(failure, commands) if text]
    print("\n".join(texts))
    return len(texts)
