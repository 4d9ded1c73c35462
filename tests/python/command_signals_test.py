"""Signals that end pack-export and pack-report: nothing is left of an output, whatever their threads do."""
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import chunkhit


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    path = tmp_path_factory.mktemp("pack") / "pack"
    with chunkhit.ImageWriter(path, classes=["a", "b"]) as writer:
        for number in range(6):
            writer.add(np.full((4, 4, 3), 40 * number, np.uint8), number % 2)
    return path


HELD = """
import sys, threading
from chunkhit import _export_images, export
_export_images.png = lambda pixels: threading.Event().wait()
sys.exit(export.main(sys.argv[1:]))
"""
LATE = """
import signal, sys
from chunkhit import _export_images, export
class Late:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)  # an exception that its handler raised would be lost here
stem_of = _export_images.stem_of
_export_images.stem_of = lambda *key: Late() and stem_of(*key)
sys.exit(export.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("output", ["out.tar", "out"])
def test_a_signal_leaves_nothing(pack, tmp_path, output, number):
    run = subprocess.Popen([sys.executable, "-c", HELD, pack, "-o", tmp_path / output], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not os.listdir(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.01)
    run.send_signal(number)
    assert run.communicate(timeout=60)[1] == b"" and run.returncode == 128 + number
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("output", ["out.tar", "out"])
def test_a_signal_within_a_finalizer_leaves_nothing(pack, tmp_path, output):
    done = subprocess.run([sys.executable, "-c", LATE, pack, "-o", tmp_path / output], stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr, os.listdir(tmp_path)) == (128 + signal.SIGTERM, b"", [])


@pytest.mark.parametrize("output", ["out.tar", "out"])
def test_what_a_killed_export_left_is_removed_by_the_next(pack, tmp_path, output):
    run = subprocess.Popen([sys.executable, "-c", HELD, pack, "-o", tmp_path / output], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not os.listdir(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.01)
    another = tmp_path / f".{output}.another-machine-1-1.partial"
    another.write_text("may be written")
    chunkhit.export_pack(pack, tmp_path / output)
    assert len([name for name in os.listdir(tmp_path) if name.endswith(".partial")]) == 2  # that run lives
    run.kill()
    run.wait()
    run.stderr.close()
    chunkhit.export_pack(pack, tmp_path / output, force=True)
    assert sorted(os.listdir(tmp_path)) == sorted([another.name, output])


def test_long_names_are_written_aside(pack, tmp_path):
    """A name that is as long as file systems take could not be written under a longer one."""
    page = tmp_path / ("目" * 80 + ".html")
    chunkhit.show(pack).save(page)
    chunkhit.export_pack(pack, tmp_path / ("目" * 80 + ".tar"))
    assert page.stat().st_size > 0 and len(os.listdir(tmp_path)) == 2


@pytest.mark.parametrize("name", ["pack-export", "pack-report"])
def test_ctrl_c_while_modules_are_imported_is_no_traceback(tmp_path, name):
    (tmp_path / "numpy.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = subprocess.run([os.path.join(os.environ["CHUNKHIT_TOOLS"], name), "--help"], stderr=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stderr, done.stdout) == (130, "", "")


def test_a_signal_leaves_no_page(pack, tmp_path):
    """It comes while the page is written aside."""
    script = ("import os, signal, sys\nfrom chunkhit.report import _command\n"
              "os.fsync = lambda file: os.kill(os.getpid(), signal.SIGINT)\nsys.exit(_command.main(sys.argv[1:]))")
    done = subprocess.run([sys.executable, "-c", script, pack, "-o", tmp_path / "page.html"],
                          stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    assert (done.returncode, done.stderr, done.stdout) == (128 + signal.SIGINT, b"", b"")
    assert os.listdir(tmp_path) == []
