"""Signals: the first one stops cleanly, the second at once; a hangup under nohup and a pause change nothing."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, SMALL, Workspace, check, fingerprint, make_pictures, pack


class HeldRun:
    """A run that waits for its list on stdin, so that a signal surely meets it at work."""

    def __init__(self, space, out, ignored=()):
        def ignore():
            for number in ignored:
                signal.signal(number, signal.SIG_IGN)

        self.space = space
        self.process = subprocess.Popen(
            [f"{BIN}/pack-images", space("photos"), "--labels", "-", *SMALL, "--output", out], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=ignore)
        # The handlers are set before the listing is announced.
        check(self.process.stderr.readline().startswith(b"listing"), "the first line of progress")

    def send(self, number):
        self.process.send_signal(number)

    def said(self, words):
        """Reads stderr up to a line with these words."""
        for line in self.process.stderr:
            if words in line.decode():
                return
        raise SystemExit(f"never said: {words}")

    def finish(self):
        """Gives the list and returns the exit code and stdout."""
        with open(self.space("photos/labels.csv"), "rb") as file:
            out, _ = self.process.communicate(file.read(), timeout=60)
        return self.process.returncode, out.decode()


def test_first_signal_stops_cleanly(space):
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)):
        held = HeldRun(space, space("stopped"))
        held.send(number)
        held.said("once more to stop at once")
        found, text = held.finish()
        check(found == code, number, "exit", found, text)
        check("the same command goes on" in text, text)
        check("every row was rejected" not in text, "stopped before the first part", text)
        left = os.listdir(space("stopped")) if os.path.isdir(space("stopped")) else []
        check(not any(name.endswith(".tmp") or name == "manifest.json" for name in left), left)
    again = HeldRun(space, space("stopped"))
    check(again.finish()[0] == 0, "the same command goes on")
    check(fingerprint(space("stopped")) == space.golden, "differs from an undisturbed run")


def test_second_signal_ends_at_once(space):
    for first, second, code in ((signal.SIGINT, signal.SIGINT, 130), (signal.SIGTERM, signal.SIGINT, 130),
                                (signal.SIGINT, signal.SIGTERM, 143)):
        held = HeldRun(space, space("twice"))
        held.send(first)
        held.said("once more to stop at once")
        held.send(second)
        check(held.process.wait(timeout=60) == code, "exit", held.process.returncode)  # its list never came


def test_hangup_under_nohup_is_no_signal(space):
    held = HeldRun(space, space("nohup"), ignored=[signal.SIGHUP])
    held.send(signal.SIGHUP)
    code, text = held.finish()
    check(code == 0, code, text)
    check(fingerprint(space("nohup")) == space.golden, "differs")


def test_a_pause_changes_nothing(space):
    # Not SIGTSTP: the system keeps it from processes that no shell could wake again, such as a batch job's.
    held = HeldRun(space, space("paused"))
    held.send(signal.SIGSTOP)
    while open(f"/proc/{held.process.pid}/stat").read().rsplit(")", 1)[1].split()[0] != "T":
        time.sleep(0.01)
    held.send(signal.SIGCONT)
    code, text = held.finish()
    check(code == 0, code, text)
    check(fingerprint(space("paused")) == space.golden, "differs")


with Workspace() as workspace:
    make_pictures(workspace("photos"), 200)
    subprocess.run([f"{BIN}/pack-images", workspace("photos"), "--labels", "-", *SMALL, "--output", workspace("golden")],
                   stdin=open(workspace("photos/labels.csv")), check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    workspace.golden = fingerprint(workspace("golden"))
    pack(workspace("photos"), workspace("by-name"))
    check(fingerprint(workspace("by-name")) == workspace.golden, "a list on stdin gives another pack than a file")
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test(workspace)
            print(name, "passed")
