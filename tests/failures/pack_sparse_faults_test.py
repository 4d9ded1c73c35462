"""pack-sparse: what is there already, wrong use, damage, full disks, kills and signals end as documented."""
import gzip
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, SHIM, Workspace, check, fingerprint, make_images, run, run_tests
from sparse_packs import SMALL, Pack, pack, random_ratings, write_csv

ENOSPC, EIO = 28, 5


def test_what_is_there_already(space):
    source = space("ratings.csv")
    text = pack(source, "-o", space("plain"), *SMALL)
    check("already packed" in text, text)
    text = pack(source, "-o", space("plain"), *SMALL, "--seed", "3", expect=73)
    check("seed: 0 before, 3 now" in text, text)
    write_csv(space("other.csv"), random_ratings(5))
    check("input changed" in pack(space("other.csv"), "-o", space("plain"), *SMALL, expect=73), "another input")
    pack(space("other.csv"), "-o", space("forced"), *SMALL)
    pack(source, "-o", space("forced"), *SMALL, "--force")
    check(fingerprint(space("forced")) == fingerprint(space("plain")), "--force")
    os.makedirs(space("taken"))
    open(space("taken/thesis.tex"), "w").close()
    check("thesis.tex" in pack(source, "-o", space("taken"), expect=73), "a stranger's folder")
    make_images(space("photos"), 9)
    run("pack-images", space("photos"), "--labels", space("photos/labels.csv"), "--resize", "8x8", "-o", space("images"))
    check("images" in pack(source, "-o", space("images"), expect=73), "a pack of images")
    text = run("pack-images", space("photos"), "--labels", space("photos/labels.csv"), "--resize", "8x8", "-o", space("plain"), expect=73)
    check("matrices" in text, text)
    check("lies in the pack" in pack(source, "-o", space("plain/inside"), expect=2), "a pack in a pack")


def test_no_split_leaves_another_ones_packs(space):
    source, out = space("ratings.csv"), space("shares")
    both = ["--split-by", "ratio", "--validation", "0.1", "--test", "0.2"]
    pack(source, "-o", out, *both)
    text = pack(source, "-o", out, "--split-by", "ratio", "--test", "0.2", expect=73)
    check("shares/validation: holds" in text and "another split" in text and "--force" in text, text)
    text = pack(source, "-o", out, expect=73)
    check("of a split" in text and "--force" in text and os.path.exists(out + "/train/manifest.json"), text)
    pack(source, "-o", out, "--split-by", "ratio", "--test", "0.2", "--force")
    check(sorted(os.listdir(out)) == ["test", "train"], os.listdir(out))
    pack(source, "-o", out, "--force")
    check("manifest.json" in os.listdir(out) and not os.path.exists(out + "/train"), os.listdir(out))
    text = pack(source, "-o", out, *both, expect=73)
    check("--split-by" in text and "holds a pack of matrices itself" in text, text)
    check(not os.path.exists(out + "/train"), "was begun")
    pack(source, "-o", out, *both, "--force")
    check(sorted(os.listdir(out)) == ["test", "train", "validation"], os.listdir(out))
    open(out + "/validation/notes.txt", "w").close()
    for arguments in (["--split-by", "ratio", "--test", "0.2"], []):
        text = pack(source, "-o", out, *arguments, "--force", expect=73)
        check("validation: holds" in text and "and more" in text, text)
    check(sorted(os.listdir(out)) == ["test", "train", "validation"], "removed what is not only a pack")


def test_force_removes_what_a_killed_run_of_another_split_began(space):
    source, out = space("ratings.csv"), space("killed")
    pack(source, "-o", out, "--split-by", "ratio", "--validation", "0.1", "--test", "0.2")
    os.remove(out + "/validation/manifest.json")
    for name in os.listdir(out + "/test"):
        os.remove(f"{out}/test/{name}")
    text = pack(source, "-o", out, "--split-by", "ratio", "--test", "0.2", expect=73)
    check("validation: holds" in text and "--force" in text, text)
    pack(source, "-o", out, "--force")
    check("manifest.json" in os.listdir(out) and not {"train", "validation", "test"} & set(os.listdir(out)), os.listdir(out))


def written_tree(root):
    return {os.path.join(at, name): open(os.path.join(at, name), "rb").read() for at, _, names in os.walk(root) for name in names}


def test_force_removes_nothing_that_others_wrote(space):
    def write(name, text):
        os.makedirs(os.path.dirname(space(name)), exist_ok=True)
        with open(space(name), "w") as file:
            file.write(text)
    source, split = space("ratings.csv"), ["--split-by", "ratio", "--test", "0.2"]
    write("data/train/users.csv", "id,name\n1,Ada\n")
    write("data/train/items.csv", "id,title\n1,Heat\n")
    write("one/items.csv", "id,title\n1,Heat\n")
    write("web/manifest.json", '{"name": "a web app"}')
    write("lists/part-00000.json", '{"mine": 1}')
    for folder, named, arguments in (("data", "train", []), ("data", "items.csv", split), ("data/train", "items.csv", []),
                                     ("one", "items.csv", []), ("web", "manifest.json", []), ("lists", "part-00000.json", [])):
        before = written_tree(space(folder))
        for force in ([], ["--force"]):
            text = pack(source, "-o", space(folder), *arguments, *force, expect=73)
            check(f"holds {named}, which" in text, text)
            check(written_tree(space(folder)) == before, folder, "was changed")
    text = run("pack-images", space("photos"), "--labels", space("photos/labels.csv"), "--resize", "8x8", "-o", space("web"), "--force", expect=73)
    check("no pack command wrote" in text and os.path.exists(space("web/manifest.json")), text)


def test_a_refused_force_removes_nothing(space):
    source, out = space("ratings.csv"), space("d2")
    pack(source, "-o", out, "--split-by", "ratio", "--validation", "0.1", "--test", "0.2")
    os.remove(out + "/test/manifest.json")
    with open(out + "/notes.txt", "w") as file:
        file.write("mine")
    before = written_tree(out)
    check("holds notes.txt" in pack(source, "-o", out, "--force", expect=73), "a note beside packs")
    check(written_tree(out) == before, "was changed")
    with open(out + "/train/notes.txt", "w") as file:
        file.write("mine")
    before = written_tree(out)
    check("holds notes.txt" in pack(source, "-o", out, "--split-by", "ratio", "--test", "0.2", "--force", expect=73), "in train")
    check(written_tree(out) == before, "was changed")


def test_too_few_users_for_a_preset_name_the_flags(space):
    text = pack(space("ratings.csv"), "-o", space("few"), "--preset", "vae-cf", expect=2)
    check("--validation 10000 and --test 10000: the rules leave only" in text, text)
    check("a share of 0.1 holds out" in text and "comes from --preset vae-cf" in text, text)
    check("what was not given comes from --preset vae-cf\nTry " in text, "flags that nobody typed:", text)


def test_the_name_tells_where_the_content_does_not(space):
    def write(name, text):
        with open(space(name), "w") as file:
            file.write(text)
        return space(name)
    rows = write("labels-first.svm", "1\n" * 1200 + "2 1:3 4:5\n")
    pack(rows, "-o", space("svm"))
    text = pack(write("no-banner.mtx", "2 2 1\n1 1 5\n"), "-o", space("mtx"), expect=65)
    check("no-banner.mtx" in text and "read as matrix-market by its name" in text and "--format" in text, text)
    text = pack(write("bad.svm", "1 2:3\nx 1:1\n"), write("worse.svm", "1 1:1\n1 1:y\n"), "-o", space("bad-svm"),
                "--on-error", "skip", "--max-errors", "5")
    check("bad.svm:2:1: label" in text and "worse.svm:2:5: value" in text, text)
    inputs = Pack(space("bad-svm")).manifest["stats"]["inputs"]
    check([(each["file"], each["lines"], each["ratings"]) for each in inputs] ==
          [("bad.svm", 2, 1), ("worse.svm", 2, 1)], inputs)


def test_the_account_adds_up(space):
    path = space("stats.csv")
    text = "user,item,rating\n1,2,3\n\n# made by hand\n1,3,4.5\nuser,item,rating\n2,3,3\n"
    with open(path, "w") as file:
        file.write(text)
    said = pack(path, "-o", space("stats"), "--comment", "#")
    check([line.split() for line in said.splitlines() if line.startswith("   ")][-2:] == [["3", "2"], ["4.5", "1"]], said)
    found = Pack(space("stats")).manifest["stats"]["inputs"][0]
    check(found == {"file": "stats.csv", "bytes": len(text), "lines": 7, "blank_lines": 1, "comment_lines": 1,
                    "header_lines": 2, "ratings": 3}, found)


def test_dry_run_writes_nothing(space):
    text = pack(space("ratings.csv"), "-o", space("dry"), "--split-by", "ratio", "--test", "0.2", "--dry-run")
    check("dry/train" in text and "dry/test" in text and "6,000" in text, text)
    check(not os.path.exists(space("dry")), "the output is there")


def test_wrong_use(space):
    source = space("ratings.csv")
    for arguments, words in (([], "INPUT"), ([source], "--output"), (["-o", space("x")], "INPUT"), (["--nonsense"], "nonsense"),
                             ([source, "-o", space("x"), "--split-by", "half"], "leave-one-out"),
                             ([source, "-o", space("x"), "--split-by", "users"], "validation"),
                             ([source, "-o", space("x"), "--test", "0.2"], "need --split-by"),
                             ([source, "-o", space("x"), "--split-by", "ratio"], "expected --validation or --test"),
                             ([source, "-o", space("x"), "--fold-in", "0.5"], "--fold-in: only for --split-by users and users-by-id, found none"),
                             ([source, "-o", space("x"), "--codec", "photo"], "zstd"),
                             ([source, "-o", space("x"), "--above", "much"], "--above"),
                             ([source, "-o", space("x"), "--split-by", "leave-one-out", "--test", "0.2"], "--test"),
                             ([source, "-o", space("x"), "--split-by", "leave-one-out", "--validation", "2"], "--validation"),
                             ([source, "-o", space("x"), "--split-by", "time", "--test", "0.2", "--split-order", "time"], "--split-order"),
                             ([source, "-o", space("x"), "--split-by", "leave-one-out", "--time", "none"], "--split-order random or input"),
                             ([source, "-o", space("x"), "--split-by", "ratio", "--test", "0.2", "--fold-in", "0.5"], "--split-by users"),
                             ([source, "-o", space("x"), "--table-quote", "none"], "are for --item-columns and --user-columns"),
                             ([source, "-o", space("x"), "--shared-rows", "join"], "--shared-rows: has no meaning for text, only for matrices"),
                             ([source, "-o", space("x"), "--max-errors", "5"], "--on-error skip")):
        text = run("pack-sparse", *arguments, expect=2)
        check(words in text, arguments, text)
    pack(space("nowhere.csv"), "-o", space("x"), expect=65)
    check("movieId" in pack(source, "-o", space("x"), "--user", "name", expect=65), "a column that is not there")
    pack(source, "-o", "/proc/nowhere", expect=73)
    text = run("pack-sparse", "--help")
    check("Examples" in text and len(text.splitlines()) < 85 and max(map(len, text.splitlines())) <= 100, text)
    pack(source, "-o", space("recipe"), "--save-config", space("r.toml"), "--preset", "vae-cf", "--validation", "3", "--test", "3")
    pack(source, "-o", space("recipe2"), "--config", space("r.toml"))
    check(fingerprint(space("recipe/train")) == fingerprint(space("recipe2/train")), "a recipe gives another pack")


def test_messages_blamed_the_preset_or_named_seconds_alone(space):
    source = write_csv(space("dated.csv"), [(user, item, 5, 1_500_000_000 + user) for user in range(20) for item in range(6)])
    text = pack(source, "--preset", "vae-cf", "--validation", "1.0", "-o", space("x"), expect=2)
    check("--validation: expected a count or a share below 1, found a share of 1\n" in text, text)
    text = pack(source, "--split-by", "time", "--before", "2030-01-01", "-o", space("x"), expect=2)
    check("--before 1893456000 (2030-01-01); the latest time, 1500000019 (2017-07-14T02:40:19), has 6 ratings" in text, text)


def test_a_split_that_failed_left_a_finished_pack(space):
    source = write_csv(space("short.csv"), [(user, item, 5, 1_500_000_000 + (user + item) % 6) for user in range(20) for item in range(6)])
    pack(source, "--split-by", "time", "--before", "2030-01-01", "-o", space("again"), expect=2)
    pack(source, "--split-by", "time", "--before", "1500000004", "-o", space("again"))
    run("pack-verify", space("again"))


def test_a_delimiter_that_no_line_has_was_not_named(space):
    text = pack(space("dated.csv"), "--delimiter", ";", "-o", space("cut"), expect=65)
    check('line 1: found no ";" (--delimiter) in "' in text and "without --delimiter it is detected" in text, text)
    text = pack(space("dated.csv"), "--delimiter", "tab", "-o", space("cut"), expect=65)
    check('line 1: found no "\\t" (--delimiter)' in text, text)


def test_damage_is_found_and_mended(space):
    golden = fingerprint(space("plain"))
    for name in ("part-00001.zst", "users.csv", "items.csv", "manifest.json"):
        path = space(f"plain/{name}")
        with open(path, "rb") as file:
            good = file.read()
        for at in range(7, len(good), max(1, len(good) // 9)):
            with open(path, "wb") as file:
                file.write(good[:at] + bytes([good[at] ^ 16]) + good[at + 1:])
            text = run("pack-verify", space("plain"), expect=65)
            check(name in text, text)
        with open(path, "wb") as file:
            file.write(good[:len(good) // 2])
        check(name in run("pack-verify", space("plain"), expect=65), name)
        if name != "manifest.json":
            text = pack(space("ratings.csv"), "-o", space("plain"), *SMALL)
            check(fingerprint(space("plain")) == golden, name, "was not mended", text)
        with open(path, "wb") as file:
            file.write(good)
    os.remove(space("plain/part-00002.zst"))
    run("pack-verify", space("plain"), expect=65)
    pack(space("ratings.csv"), "-o", space("plain"), *SMALL)
    check(fingerprint(space("plain")) == golden, "was not mended")


def test_lone_parts(space):
    check("matrices" in run("pack-info", space("plain/part-00000.zst")), "pack-info of a shard")
    check("whole" in run("pack-verify", space("plain/part-00000.zst")), "pack-verify of a shard")
    check("matrices" in run("pack-info", space("h5/part-00000.h5")), "pack-info of HDF5")
    check("whole" in run("pack-verify", space("h5/part-00000.h5")), "pack-verify of HDF5")


def test_a_missing_input_was_named_after_the_output(space):
    for inputs in ([space("gone.csv")], [space("ratings.csv"), space("gone.csv")]):
        text = pack(*inputs, "-o", space("photos"), expect=65)
        check("gone.csv: cannot be opened: No such file" in text, text)


def test_a_split_that_failed_left_an_empty_folder(space):
    text = pack(space("ratings.csv"), "-o", space("failed"), "--split-by", "users", "--validation", "5", "--test", "5000", expect=2)
    check("users" in text and not os.path.exists(space("failed")), text)
    process = subprocess.Popen([f"{BIN}/pack-sparse", "-", "-o", space("failed/deep"), "--split-by", "ratio", "--test", "0.2"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    check(process.stderr.readline().startswith(b"reading"), "the first line of progress")
    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)
    check(process.returncode == 130 and not os.path.exists(space("failed")), process.communicate())


def test_full_disk_and_kill(space):
    golden = fingerprint(space("plain"))
    for nth in (1, 2, 4, 7, 12):
        for error, codes in ((f"pwrite:{nth}:{ENOSPC}:sticky", (0, 73)), (f"pwrite:{nth}:kill", (0, -signal.SIGKILL)),
                             (f"rename:{nth}:kill", (0, -signal.SIGKILL)), (f"fsync:{nth}:{EIO}", (0, 73))):
            out = space("bad")
            code, text = pack(space("ratings.csv"), "-o", out, *SMALL, expect=codes,
                              env={"LD_PRELOAD": SHIM, "FAULT": error, "FAULT_PATH": out})
            check(code != 73 or out in text, error, text)
            check(code == 0 or not os.path.exists(out + "/manifest.json"), "a manifest of an unfinished pack")
            pack(space("ratings.csv"), "-o", out, *SMALL)
            check(fingerprint(out) == golden, error, "differs")
            subprocess.run(["rm", "-rf", out], check=True)


def test_a_failed_write_left_items(space):
    for container in ("shard", "hdf5"):
        for nth in (1, 2, 3, 5, 9):
            out = space("failed/write")
            code, _ = pack(space("ratings.csv"), "-o", out, *SMALL[2:], "--container", container, expect=(0, 73),
                           env={"LD_PRELOAD": SHIM, "FAULT": f"pwrite:{nth}:{ENOSPC}:sticky", "FAULT_PATH": out})
            left = os.listdir(out) if os.path.isdir(space("failed")) else []
            check(code == 73 and (not left or "part-00000.json" in left), container, nth, code, left)
            shutil.rmtree(space("failed"), ignore_errors=True)


def test_a_spill_file_of_a_killed_run_blocked_the_folder(space):
    out = space("spilled")
    os.makedirs(out)
    for name in (".chunkhit-spill-AbCdEf", ".spill.nowhere-1-2-0123abcd.tmp"):
        open(f"{out}/{name}", "w").close()
        os.utime(f"{out}/{name}", (1, 1))
    pack(space("ratings.csv"), "-o", out, *SMALL)
    check(fingerprint(out) == fingerprint(space("plain")), os.listdir(out))


def test_a_planted_link_was_written_through(space):
    out = space("planted")
    os.makedirs(out)
    with open(space("precious"), "w") as file:
        file.write("precious")
    for name in (".part-00000.zst.tmp", ".items.csv.tmp", ".manifest.json.tmp"):
        os.link(space("precious"), f"{out}/{name}")
    pack(space("ratings.csv"), "-o", out, *SMALL)
    check(open(space("precious")).read() == "precious" and os.stat(space("precious")).st_nlink == 1, "a link's target")
    check(fingerprint(out) == fingerprint(space("plain")), os.listdir(out))


def test_finished_parts_are_kept(space):
    """A pack without its manifest and last part: the others are kept, untouched, and the rest has the same bytes."""
    out = space("begun")
    shutil.copytree(space("plain"), out)
    parts = sorted(name for name in os.listdir(out) if name.endswith(".zst"))
    check(len(parts) > 2, parts)
    for name in ("manifest.json", "users.csv", parts[-1], parts[-1].replace(".zst", ".json")):
        os.remove(f"{out}/{name}")
    kept = {name: os.stat(f"{out}/{name}").st_mtime_ns for name in parts[:-1]}
    text = run("pack-info", out, expect=75)
    check("unfinished" in text and f"{len(parts) - 1} finished" in text, text)
    text = pack(space("ratings.csv"), "-o", out, *SMALL)
    check(f"{len(parts) - 1} parts kept from earlier runs" in text, text)
    check(kept == {name: os.stat(f"{out}/{name}").st_mtime_ns for name in kept}, "parts were written again")
    check(fingerprint(out) == fingerprint(space("plain")), os.listdir(out))
    os.remove(f"{out}/manifest.json")
    text = run("pack-sparse", space("ratings.csv"), "-o", out, *SMALL, "--binarize", expect=73)
    check("holds another pack (binarize: " in text, text)
    make_images(space("few"), 3)
    text = run("pack-images", space("few"), "-o", out, expect=73)
    check("a pack of matrices" in text, text)


def test_a_signal_stops_it(space):
    with open(space("ratings.csv"), "rb") as file:
        text = file.read()
    # Nothing comes; a beginning comes; what is compressed is cut off; a matrix is.
    beginnings = (b"", text[:999], gzip.compress(text)[:-9], b"%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 3\n")
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        for beginning in beginnings:
            process = subprocess.Popen([f"{BIN}/pack-sparse", "-", "-o", space("stopped"), *SMALL], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            check(process.stderr.readline().startswith(b"reading"), "the first line of progress")
            process.stdin.write(beginning)
            process.stdin.flush()
            process.send_signal(number)
            process.wait(timeout=60)  # stdin stays open
            out = process.stdout.read()
            process.stdin.close()
            check(process.returncode == code, process.returncode, out, process.stderr.read())
            check(b"nothing was packed yet, rerun the same command" in out, out)
            left = os.listdir(space("stopped")) if os.path.isdir(space("stopped")) else []
            check(not left, left)


with Workspace() as workspace:
    write_csv(workspace("ratings.csv"), random_ratings(1))
    pack(workspace("ratings.csv"), "-o", workspace("plain"), *SMALL)
    pack(workspace("ratings.csv"), "-o", workspace("h5"), "--container", "hdf5")
    run_tests(globals(), workspace)
