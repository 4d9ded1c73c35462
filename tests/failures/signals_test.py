"""Signals: the first one stops cleanly, the second at once; a hangup under nohup and a pause change nothing."""
import io
import os
import signal
import subprocess
import sys
import time

from PIL import Image

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, SMALL, Workspace, check, fingerprint, make_images, pack, run_tests


class HeldRun:
    """A run that waits for its list on stdin, so that a signal surely meets it before its first image."""

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
        check(held.process.wait(timeout=60) == code, "it must not wait for the rest of its list:", held.process.returncode)
        text = held.process.stdout.read().decode()
        check("nothing was packed yet, rerun the same command" in text, text)
        check("every row was rejected" not in text, "stopped before the first part", text)
        left = os.listdir(space("stopped")) if os.path.isdir(space("stopped")) else []
        check(not any(name.endswith(".tmp") or name == "manifest.json" for name in left), left)
    again = HeldRun(space, space("stopped"))
    check(again.finish()[0] == 0, "the same command goes on")
    check(fingerprint(space("stopped")) == space.golden, "differs from an undisturbed run")


def test_parts_that_were_not_finished_were_said_to_be_kept(space):
    """Stopped while the first part is packed: 300 large images in one part."""
    os.makedirs(space("large/a"))
    Image.effect_noise((2000, 2000), 80).save(space("large/a/0.jpg"))
    for number in range(1, 300):
        os.link(space("large/a/0.jpg"), space(f"large/a/{number}.jpg"))
    process = subprocess.Popen([f"{BIN}/pack-images", space("large"), "--crop", "32", "--threads", "1", "--progress", "json",
                                "--output", space("none")], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while b'"packing"' not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    text = process.communicate(timeout=60)[0].decode()
    check(process.returncode == 130 and "nothing was packed yet, rerun the same command" in text, process.returncode, text)
    check("kept" not in text and not os.path.exists(space("none/part-00000.h5")), text)


def test_a_signal_waited_for_a_list_that_never_came(space):
    """From a FIFO without a writer, and from one whose writer says nothing more."""
    os.mkfifo(space("fifo"))
    os.makedirs(space("nothing"))
    for command in (["pack-images", space("photos"), "--labels", space("fifo")], ["pack-sparse", space("fifo")]):
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
            for said in (None, b"file,label\nimages/ant/00000.png,a\n"):
                process = subprocess.Popen([f"{BIN}/{command[0]}", *command[1:], "--output", space("nothing/out")],
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                check(b"input" in process.stderr.readline(), "the handlers are set")
                if said:
                    writer = open(space("fifo"), "wb", buffering=0)
                    writer.write(said)
                time.sleep(0.2)
                process.send_signal(number)
                check(process.wait(timeout=60) == code, command, said, "exit", process.returncode)
                text = process.stdout.read()
                check(b"nothing was packed yet" in text and b"the same command" in text, command, text)
                if said:
                    writer.close()
                check(not os.listdir(space("nothing")), os.listdir(space("nothing")))


def test_a_fifo_is_read_to_its_end(space):
    process = subprocess.Popen([f"{BIN}/pack-images", space("photos"), "--labels", space("fifo"), *SMALL, "--progress", "none",
                                "--output", space("by-fifo")], stdout=subprocess.PIPE)
    time.sleep(0.3)
    with open(space("photos/labels.csv"), "rb") as source, open(space("fifo"), "wb", buffering=0) as writer:
        for line in source.read().splitlines(keepends=True):
            writer.write(line)
    check(process.wait(timeout=60) == 0, process.stdout.read())
    check(fingerprint(space("by-fifo")) == space.golden, "differs from the same list in a file")


def test_second_signal_ends_at_once(space):
    # A JPEG of many scans, which takes long to decode.
    os.makedirs(space("slow/x"))
    data = io.BytesIO()
    Image.effect_noise((3000, 3000), 50).convert("RGB").save(data, "JPEG", progressive=True)
    data = data.getvalue()
    last = data.rindex(b"\xff\xda")
    with open(space("slow/x/scans.jpg"), "wb") as file:
        file.write(data[:-2] + data[last:-2] * 150 + data[-2:])
    for first, second, code in ((signal.SIGINT, signal.SIGINT, 130), (signal.SIGTERM, signal.SIGINT, 130),
                                (signal.SIGINT, signal.SIGTERM, 143)):
        process = subprocess.Popen([f"{BIN}/pack-images", space("slow"), "--resize", "8x8", "--max-seconds-per-image", "0",
                                    "--accept-warnings", "--output", space("twice")], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        check(process.stderr.readline().startswith(b"listing"), "the handlers are set")
        while cpu_seconds(process.pid) < 0.3:  # by then it decodes
            time.sleep(0.01)
        process.send_signal(first)
        while b"once more to stop at once" not in process.stderr.readline():
            pass
        process.send_signal(second)
        check(process.wait(timeout=60) == code, "exit", process.returncode)


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
    make_images(workspace("photos"), 200)
    subprocess.run([f"{BIN}/pack-images", workspace("photos"), "--labels", "-", *SMALL, "--output", workspace("golden")],
                   stdin=open(workspace("photos/labels.csv")), check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    workspace.golden = fingerprint(workspace("golden"))
    pack(workspace("photos"), workspace("by-name"))
    check(fingerprint(workspace("by-name")) == workspace.golden, "a list on stdin gives another pack than a file")
    run_tests(globals(), workspace)
