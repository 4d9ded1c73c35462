"""Standard input and output that are closed, full or gone: nothing is lost in silence, nothing is spoilt."""
import errno
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, SMALL, Workspace, check, fingerprint, make_images, pack, run, run_tests


def shell(line, space):
    """Runs a shell line with B as the commands' folder; returns the exit codes of its pipeline and what was said."""
    done = subprocess.run(["bash", "-c", f"{line}; echo ${{PIPESTATUS[*]}} >&2"], cwd=space.path, timeout=60,
                          env={**os.environ, "B": BIN, "SMALL": " ".join(SMALL)}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    *said, codes = done.stderr.decode().splitlines(keepends=True)
    return [int(code) for code in codes.split()], done.stdout.decode() + "".join(said)


def test_a_full_disk_behind_stdout_is_a_failure(space):
    for command in ("pack-info pack", "pack-info --json many", "pack-verify pack", "pack-images --help",
                    "pack-run --version", "pack-bench pack --json", "pack-merge merged pack",
                    "pack-images photos --labels photos/labels.csv $SMALL -o full"):
        codes, text = shell(f"$B/{command} > /dev/full", space)
        check(codes == [73], command, codes)
        check(f"standard output cannot be written: {os.strerror(errno.ENOSPC)}" in text, command, text)
    codes, text = shell("$B/pack-images photos -o none --save-config /dev/full", space)
    check(codes == [73] and f"--save-config: /dev/full: cannot write: {os.strerror(errno.ENOSPC)}" in text, codes, text)
    run("pack-verify", space("full"))  # only the report is lost


def test_closed_streams_do_not_end_up_in_a_part(space):
    for number, streams in enumerate((">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-")):
        out = f"closed{number}"
        codes, _ = shell(f"$B/pack-images photos --labels photos/labels.csv $SMALL --progress json -o {out} {streams}", space)
        check(codes == [0], streams, codes)
        check(fingerprint(space(out)) == fingerprint(space("pack")), streams, "differs")
    codes, text = shell("$B/pack-images photos --labels - -o none <&-", space)
    check(codes == [65] and "stdin: is empty" in text, codes, text)


def test_a_reader_that_goes_away_ends_a_listing_quietly(space):
    for command in ("pack-info pack", "pack-info --json many", "pack-images --help"):
        codes, text = shell(f"$B/{command} | head -n 1", space)
        check(codes[0] in (0, 128 + signal.SIGPIPE) and text.count("\n") == 1, command, codes, text)
    codes, text = shell("$B/pack-info --json many | true", space)
    check(codes[0] in (0, 128 + signal.SIGPIPE) and not text, codes, text)


def test_a_run_goes_on_when_its_progress_has_no_reader(space):
    codes, _ = shell("$B/pack-images photos --labels photos/labels.csv $SMALL --progress json -o unread 2>&1 | true", space)
    check(codes == [0, 0], codes)
    check(fingerprint(space("unread")) == fingerprint(space("pack")), "differs")


def test_progress_as_json_tells_every_phase(space):
    _, text = shell("$B/pack-images photos --labels photos/labels.csv $SMALL --progress json -o told 2>&1 >/dev/null", space)
    events = [json.loads(line) for line in text.splitlines()]
    phases = [event["phase"] for event in events]
    check(phases[0] == "listing" and phases[1] == "packing" and phases[-1] == "finishing", phases)
    check(events[-1]["rows_done"] == events[-1]["rows_total"] == 120, events[-1])


with Workspace() as workspace:
    make_images(workspace("photos"), 120)
    pack(workspace("photos"), workspace("pack"))
    with open(workspace("many.csv"), "w") as file:
        file.write("file,label\n" + "".join(f"images/ant/00000.png,class number {index}\n" for index in range(20_000)))
    run("pack-images", workspace("photos"), "--labels", workspace("many.csv"), "--resize", "4x4", "--output", workspace("many"))
    run_tests(globals(), workspace)
