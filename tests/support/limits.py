"""Running a command under limits, and what it took."""
import os
import resource
import signal
import subprocess

from packing import BIN


class Outcome:
    """How a command ended: `code` (negative: by that signal), `text` of stdout and stderr, `peak_bytes` held."""

    def __init__(self, code, text, peak_bytes):
        self.code, self.text, self.peak_bytes = code, text, peak_bytes

    def __str__(self):
        return f"exit {self.code}, peak {self.peak_bytes >> 20} MiB\n{self.text[-2000:]}"


def run_limited(command, *arguments, address_bytes=None, cgroup=None, seconds=120):
    """Runs a command with a limit on its address space, or inside a memory cgroup's folder."""
    def enter():
        if cgroup:
            with open(os.path.join(cgroup, "cgroup.procs"), "w") as file:
                file.write(str(os.getpid()))
        if address_bytes:
            resource.setrlimit(resource.RLIMIT_AS, (address_bytes, address_bytes))
        # A command that hangs ends here, whatever it waits for or computes.
        signal.alarm(seconds)

    process = subprocess.Popen([os.path.join(BIN, command), *map(str, arguments)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=enter)
    text = process.stdout.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    return Outcome(process.returncode, text, usage.ru_maxrss * 1024)


class MemoryGroup:
    """A cgroup (version 1 or 2) that holds at most so many bytes; `path` is empty where none can be made."""

    def __init__(self, limit_bytes):
        self.path = ""
        for parent, name in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
            path = f"{parent}/chunkhit-test-{os.getpid()}"
            try:
                os.mkdir(path)
                with open(f"{path}/{name}", "w") as file:
                    file.write(str(limit_bytes))
                self.path = path
                return
            except OSError:
                if os.path.isdir(path):
                    os.rmdir(path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.path:
            os.rmdir(self.path)
