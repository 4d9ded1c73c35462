"""Packs that many tasks write by a plan are, byte for byte, what one run writes, whatever happens to the tasks."""
import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, SHIM, SMALL, Workspace, check, draw_seed, files_of, make_images, run, run_tests
import jsonschema
from shard_reader import xxh3

EIO, ENOENT, EACCES, ENOTCONN, ESTALE = 5, 2, 13, 107, 116


def plan(root, out, tasks, *arguments, **how):
    return run("pack-images", root, *arguments, "--progress", "none", "--output", out, "--plan", tasks, **how)


def by_csv(root, *arguments):
    return ("--labels", os.path.join(root, "labels.csv"), *SMALL, *arguments)


def task(out, *arguments, **how):
    return run("pack-run", out, "--progress", "none", *arguments, **how)


def check_equal(out, golden, *what):
    found = files_of(out)
    check(found == golden, *what, "differ:", sorted(name for name in found.keys() | golden.keys() if found.get(name) != golden.get(name)))


def reseal(path, change):
    """Edits a sealed JSON file and seals it again."""
    with open(path) as file:
        body = file.read().rsplit('  "xxh3"', 1)[0]
    changed = change(body)
    check(changed != body, "the edit changed nothing", path)
    with open(path, "w") as file:
        file.write(changed + f'  "xxh3": "{xxh3(changed.encode()):016x}"\n}}\n')


def numbers_csv(root, rows, draw):
    """A list with two columns of numbers, names with commas and quotes, and a few rows without a label."""
    odd = "images/ant/a, \"quoted\"\nname.jpg"
    shutil.copy(os.path.join(root, next(name for name, _ in rows if name.endswith("jpg"))), os.path.join(root, odd))
    with open(os.path.join(root, "labels.csv"), "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["file", "x", "y"])
        for name, _ in [*rows, (odd, "ant")]:
            table.writerow([name, draw.choice(["0.1", "-7", "1e-30", "3.4028235e38"]), "" if draw.random() < 0.01 else "2"])


def a_case(draw, root):
    """Draws a list and the flags of a pack."""
    rows = make_images(root, draw.randrange(60, 260), bad=draw.choice([0, 0, 2]), seed=draw.randrange(1000), odd=draw.random() < 0.3)
    kind = draw.choice(["csv", "folders", "numbers", "split-folders"])
    flags = [*SMALL, "--container", draw.choice(["hdf5", "shard"]), "--seed", draw.randrange(5), "--max-errors", "20%"]
    if draw.random() < 0.3:
        flags += ["--order", "input"]
    if kind == "numbers":
        numbers_csv(root, rows, draw)
        flags += ["--label-column", "x", "--label-column", "y"]
    if kind in ("csv", "numbers"):
        flags += ["--labels", os.path.join(root, "labels.csv")]
    if kind == "split-folders":
        for share in ("train", "val"):
            shutil.copytree(os.path.join(root, "images"), os.path.join(root, "shares", share))
        return os.path.join(root, "shares"), [*flags, "--split-folders", "train,val"]
    if kind != "numbers" and draw.random() < 0.5:
        flags += ["--split", "train=0.7,val=0.3"]
    return (os.path.join(root, "images") if kind == "folders" else root), flags


def run_tasks(out, tasks, draw):
    """Runs the tasks in some order: some twice, some twice at once, some killed, some not at all."""
    order = [index for index in range(tasks) for _ in range(draw.choice([0, 1, 1, 1, 2]))]
    draw.shuffle(order)
    for index in order:
        how = draw.randrange(4)
        if how == 0:
            fault = f"{draw.choice(['pwrite', 'write', 'rename', 'fsync'])}:{draw.randrange(1, 12)}:kill"
            task(out, "--task", index, expect=(0, -signal.SIGKILL), env={"LD_PRELOAD": SHIM, "FAULT": fault, "FAULT_PATH": out})
        elif how == 1:
            pair = [subprocess.Popen([f"{BIN}/pack-run", out, "--task", str(index), "--progress", "none"], stdout=subprocess.DEVNULL)
                    for _ in range(2)]
            check([one.wait(60) for one in pair] == [0, 0], "two tasks of one index at once")
        else:
            task(out, "--task", index)


def test_planned_packs_equal_plain_ones(space):
    draw = random.Random(draw_seed())
    for case in range(8):
        root, plain, planned = space(f"root{case}"), space(f"plain{case}"), space(f"planned{case}")
        images, flags = a_case(draw, root)
        run("pack-images", images, *flags, "--progress", "none", "--output", plain)
        tasks = draw.choice([1, 2, 7, 100])
        plan(images, planned, tasks, *flags)
        with open(f"{planned}/plan.json") as file:
            tasks = json.load(file)["tasks"]
        run_tasks(planned, tasks, draw)
        task(planned)
        check_equal(planned, files_of(plain), flags)
        run("pack-verify", planned)
        for folder in (root, plain, planned):
            shutil.rmtree(folder)


def begin(space, name, count=150, tasks=3, **how):
    """Images, a plan, and what a plain run writes."""
    root, out = space(name), space(name + "-pack")
    make_images(root, count, **how)
    run("pack-images", root, *by_csv(root), "--progress", "none", "--output", out + "-plain")
    plan(root, out, tasks, *by_csv(root))
    return root, out, files_of(out + "-plain")


def test_a_task_killed_at_any_call(space):
    root, out, golden = begin(space, "killed")
    for op in ("openat2", "pwrite", "write", "fsync", "rename"):
        for nth in (1, 2, 3, 5, 8, 13):
            env = {"LD_PRELOAD": SHIM, "FAULT": f"{op}:{nth}:kill", "FAULT_PATH": root if op == "openat2" else out}
            task(out, "--task", 1, expect=(0, -signal.SIGKILL), env=env)
            for name in os.listdir(out):
                if name.endswith(".json") and name != "plan.json":
                    os.remove(f"{out}/{name}")
    for nth in range(1, 9):
        env = {"LD_PRELOAD": SHIM, "FAULT": f"rename:{nth}:kill", "FAULT_PATH": out}
        task(out, expect=(0, -signal.SIGKILL), env=env)
    task(out)
    check_equal(out, golden)


def test_several_finish_at_once(space):
    for no_flock in ({}, {"LD_PRELOAD": SHIM, "NO_FLOCK": "1"}):
        _, out, golden = begin(space, "at-once" + str(len(no_flock)))
        runs = [subprocess.Popen([f"{BIN}/pack-run", out, "--progress", "none", *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 env={**os.environ, **no_flock}) for flags in ([], [], [], ["--task", "1"], ["--task", "1"])]
        for one in runs:
            text = one.communicate(timeout=60)[0].decode()
            check(one.returncode in (0, 75), one.returncode, text)
        task(out)
        check_equal(out, golden)


def test_a_finished_plan_to_which_packs_were_appended_stays_finished(space):
    """pack-run train && …, in a script that is run again after other packs were appended to train."""
    for split in ([], ["--split", "train=0.8,val=0.2"]):
        root = space(f"grown-photos{len(split)}")
        make_images(root, 60, seed=3)
        flags = by_csv(root, *split)
        out, more = space(f"grown{len(split)}"), space(f"grown-more{len(split)}")
        plan(root, out, 3, *flags)
        task(out)
        run("pack-images", root, *flags, "--seed", "7", "--progress", "none", "--output", more)
        for name in (["/train", "/val"] if split else [""]):
            run("pack-merge", out + name, out + name, more + name)
            before = files_of(out)
            for arguments in ([], ["--task", "1"]):
                text = task(out, *arguments)
                check("nothing to do" in text and files_of(out) == before, arguments, text)
        run("pack-info", out)


def test_what_the_machine_cannot_read_is_no_reject(space):
    root, out, golden = begin(space, "faults")
    for number in (EIO, ESTALE, ENOTCONN):
        for op, nth in (("read", 20), ("openat2", 2)):
            env = {"LD_PRELOAD": SHIM, "FAULT": f"{op}:{nth}:{number}:sticky", "FAULT_PATH": root}
            text = task(out, "--task", 0, expect=75, env=env)
            check("pack" in text, text)
    with open(f"{out}/plan.json") as file:
        check(json.load(file)["root"] == os.path.realpath(root), "root")
    task(out)
    check_equal(out, golden)


def test_images_that_are_not_mounted(space):
    root, out, golden = begin(space, "unmounted")
    os.rename(root, root + "-away")
    check("its file system mounted" in task(out, "--task", 0, expect=75), "no root")
    os.mkdir(root)
    check("its file system mounted" in task(out, "--task", 0, expect=75), "an empty root")
    os.rmdir(root)
    task(out, "--task", 0, "--root", root + "-away")
    os.rename(root + "-away", root)
    task(out)
    check_equal(out, golden)


def test_rejects_count_over_all_tasks(space):
    root, out = space("rejects"), space("rejects-pack")
    make_images(root, 200, bad=9)
    run("pack-images", root, *by_csv(root), "--max-errors", "8", "--progress", "none", "--output", out + "-plain", expect=1)
    plan(root, out, 3, *by_csv(root), "--max-errors", "8")
    for index in range(3):
        task(out, "--task", index)
    check(not os.path.exists(f"{out}/rejects.csv"), "a task wrote rejects.csv")
    status = json.loads(run("pack-info", out, "--json", expect=75))
    check(status["rejected"] == 9 and status["max_rejected"] == 8, status)
    check("allows 8" in task(out, expect=1), "too many")
    check(os.path.exists(f"{out}/rejects.csv") and not os.path.exists(f"{out}/manifest.json"), os.listdir(out))
    plan(root, out + "2", 3, *by_csv(root), "--max-errors", "2")
    codes = {task(out + "2", "--task", index, expect=(0, 1))[0] for index in range(3)}
    check(1 in codes, "a task alone passes the limit")


def test_another_version_packs_nothing(space):
    root, out, _ = begin(space, "version")
    reseal(f"{out}/plan.json", lambda body: body.replace('"tool": "pack-images ', '"tool": "pack-images 9'))
    text = task(out, "--task", 0, expect=65)
    check("in the plan: contents could differ" in text and not any(n.startswith("part-") for n in os.listdir(out)), text)


def test_another_library_is_named(space):
    root, out, golden = begin(space, "library")
    reseal(f"{out}/plan.json", lambda body: body.replace('"zstd": "', '"zstd": "9'))
    text = task(out)
    check("in the plan: compressed chunks may have other bytes, with the same contents" in text, text)
    check_equal(out, golden)


def test_parts_of_another_codec_library_are_kept_and_named(space):
    root, out = space("codec-root"), space("codec-out")
    make_images(root, 400)
    arguments = ("pack-images", root, *by_csv(root), "--container", "shard", "--progress", "none", "--output", out)
    run(*arguments)
    os.remove(f"{out}/manifest.json")
    reseal(f"{out}/part-00000.json", lambda body: body.replace('"codec_library": "zstd ', '"codec_library": "zstd 9'))
    text = run(*arguments)
    check("1 part compressed by zstd 9" in text and "not the bytes of one build" in text, text)


def test_parts_of_an_older_plan_are_packed_again(space):
    root, out, golden = begin(space, "older", count=400)
    other = space("other-pack")
    plan(root, other, 1, *by_csv(root, "--seed", "7"))
    task(other, "--task", 0)
    for name in os.listdir(other):
        if name.startswith("part-0000"):
            shutil.copy(f"{other}/{name}", out)
    status = json.loads(run("pack-info", out, "--json", expect=75))
    check(status["parts_done"] == 0 and status["missing_tasks"] == [0, 1, 2], status)
    task(out, "--task", 0)
    for name, damage in (("part-00000.json", lambda b: b[:40] + b"!" + b[41:]), ("part-00003.h5", lambda b: b[:-5])):
        with open(f"{out}/{name}", "rb") as file:
            data = file.read()
        with open(f"{out}/{name}", "wb") as file:
            file.write(damage(data))
    task(out)
    check_equal(out, golden)


def test_damaged_plans(space):
    root, out, _ = begin(space, "damaged")
    for name in ("plan.json", "plan.rows"):
        with open(f"{out}/{name}", "rb") as file:
            whole = file.read()
        for at in random.Random(draw_seed()).sample(range(len(whole)), 60):
            with open(f"{out}/{name}", "wb") as file:
                file.write(whole[:at] + bytes([whole[at] ^ 0x21]) + whole[at + 1:])
            if name == "plan.json" or at >= len(whole) - 24 * 4:
                run("pack-run", out, "--task", 0, "--progress", "none", expect=65)
                check(not any(n.startswith("part-") for n in os.listdir(out)), os.listdir(out))
        with open(f"{out}/{name}", "wb") as file:
            file.write(whole[: len(whole) // 2])
        run("pack-run", out, "--progress", "none", expect=65)
        with open(f"{out}/{name}", "wb") as file:
            file.write(whole)
    for edit in (('"tasks": 3', '"tasks": 0'), ('"tasks": 3', '"tasks": 4000000000'), ('"samples": 150', '"samples": 151'),
                 ('"name": ""', '"name": "../elsewhere"'), ('"resample": "bilinear"', '"resample": "sinc"')):
        saved = open(f"{out}/plan.json").read()
        reseal(f"{out}/plan.json", lambda body: body.replace(*edit))
        task(out, expect=65)
        with open(f"{out}/plan.json", "w") as file:
            file.write(saved)
    os.remove(f"{out}/plan.rows")
    check("plan.rows" in task(out, expect=65), "no plan.rows")


def test_damaged_rejects_of_a_plan_are_an_error_and_no_crash(space):
    _, out, golden = begin(space, "damaged-rejects")
    with open(f"{out}/plan.rows", "rb") as file:
        whole = file.read()
    with open(f"{out}/plan.json") as file:
        frames = json.load(file)["packs"][0]["parts"] + 1
    at = len(whole) - 24 * frames - 8 - 1  # the last byte of the rejects, before the index
    with open(f"{out}/plan.rows", "wb") as file:
        file.write(whole[:at] + bytes([whole[at] ^ 0x21]) + whole[at + 1:])
    for flags in ([], ["--task", 0]):
        check("plan.rows" in task(out, *flags, expect=65), "says where")
    with open(f"{out}/plan.rows", "wb") as file:
        file.write(whole)
    task(out)
    check_equal(out, golden)


def test_other_runs_over_a_plan(space):
    root, out, golden = begin(space, "over")
    before = files_of(out)
    for flags in (["--seed", "3"], ["--force"], ["--seed", "3", "--plan", "2"], ["--force", "--plan", "3"]):
        text = run("pack-images", root, *by_csv(root, *flags), "--progress", "none", "--output", out, expect=73)
        check("remove" in text and "plan.json first" in text, text)
    check(files_of(out) == before, "a refused run changed the plan")
    task(out, "--task", 2)
    plan(root, out, 5, *by_csv(root))
    check(json.loads(run("pack-info", out, "--json", expect=75))["parts_done"] > 0, "planned again")
    run("pack-images", root, *by_csv(root), "--progress", "none", "--output", out)
    check_equal(out, golden)
    check("nothing to do" in task(out, "--task", 4), "a late task")
    check("nothing to plan" in plan(root, out, 5, *by_csv(root)), "planned when finished")


def test_a_part_that_another_process_published_meanwhile_counts(space):
    """It had rejected an image that this process could read: the manifest's rows and rejects.csv were this process's."""
    root, out, _ = begin(space, "meanwhile", count=1500)
    with open(f"{out}/plan.json") as file:
        parts = json.load(file)["packs"][0]["parts"]
    slow = subprocess.Popen([f"{BIN}/pack-run", out, "--threads", "1", "--progress", "none"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    while not os.path.exists(f"{out}/part-00001.json"):
        check(slow.poll() is None, "ended before it could be stopped")
    slow.send_signal(signal.SIGSTOP)
    rows = subprocess.run(["zstd", "-dc"], stdin=open(f"{out}/plan.rows", "rb"), stdout=subprocess.PIPE, check=True).stdout.decode()
    last = os.path.join(root, rows.strip().split("\n")[-1].split(",")[1])
    os.rename(last, last + ".away")
    with open(last, "wb") as file:
        file.write(b"no image")
    for index in range(3):
        task(out, "--task", index)
    os.rename(last + ".away", last)
    slow.send_signal(signal.SIGCONT)
    text = slow.communicate(timeout=60)[0].decode()
    check(slow.returncode == 0, text)
    run("pack-verify", out)
    with open(f"{out}/manifest.json") as file:
        manifest = json.load(file)
    with open(f"{out}/rejects.csv") as file:
        listed = file.read().count("\n") - 1
    check((manifest["rows"], manifest["samples"], manifest["rejected"], listed) == (1500, 1499, 1, 1), manifest["rows"], listed)
    check(len(manifest["parts"]) == parts, "parts")


def test_most_images_vanish_while_a_task_runs(space):
    root, out = space("vanish"), space("vanish-pack")
    make_images(root, 200)
    plan(f"{root}/images", out, 2, *SMALL)
    os.mkdir(f"{root}/away")
    for name in ("bee", "cat"):
        os.rename(f"{root}/images/{name}", f"{root}/away/{name}")
    for flags in (["--task", 0], ["--task", 1], []):
        task(out, *flags, expect=75)
    os.rename(f"{root}/images", f"{root}/gone")
    text = task(out, expect=75)
    check("--root names the folder of the images" in text and "ROOT" not in text, text)
    os.rename(f"{root}/gone", f"{root}/images")
    check(not any(name.startswith("part-") for name in os.listdir(out)), os.listdir(out))
    for name in ("bee", "cat"):
        os.rename(f"{root}/away/{name}", f"{root}/images/{name}")
    check("200 of 200 rows packed" in task(out), "packed once they are back")


def test_another_finished_pack_in_a_folder_of_a_split(space):
    root, out = space("foreign"), space("foreign-pack")
    make_images(root, 200)
    plan(root, out, 2, *by_csv(root, "--split", "train=0.6,val=0.4"))
    run("pack-images", root, *by_csv(root, "--seed", "9"), "--progress", "none", "--output", f"{out}/val")
    golden = files_of(f"{out}/val")
    for flags in ([], ["--task", "1"]):
        check("is not the plan's" in task(out, *flags, expect=65), flags)
    check(files_of(f"{out}/val") == golden, "another pack was changed")


def test_folders_without_a_plan(space):
    root, out, _ = begin(space, "no-plan")
    os.makedirs(space("above"))
    shutil.copytree(out + "-plain", space("above") + "/some-pack")
    check("holds no plan.json" in task(space("above"), "--task", "99", expect=65), "a folder above a pack")
    task(out)
    check("nothing to do" in task(out), "finished")
    os.rename(f"{out}/part-00001.h5", space("taken.h5"))
    check("part-00001.h5: is missing" in task(out, expect=65), "a finished pack without a part")
    split = space("split-pack")
    run("pack-images", root, *by_csv(root, "--split", "train=0.5,val=0.5"), "--progress", "none", "--output", split)
    check("nothing to do" in task(split), "a finished split")
    shutil.rmtree(f"{split}/val")
    check("holds no plan.json" in task(split, expect=65), "half a split")


def test_a_kill_while_the_plan_is_removed(space):
    _, out, golden = begin(space, "removing")
    os.makedirs(space("saved"))
    for name in ("plan.json", "plan.rows"):
        shutil.copy(f"{out}/{name}", space("saved"))
    task(out)
    shutil.copy(space("saved") + "/plan.json", out)
    run("pack-info", out)
    check("nothing to do" in task(out), "finished")
    check_equal(out, golden)


def test_what_killed_plans_left_above_a_split(space):
    root, out = space("killed-plans"), space("killed-plans-pack")
    make_images(root, 60)
    flags = by_csv(root, "--split", "train=0.5,val=0.5")
    for op in ("write", "fsync", "rename"):
        env = {"LD_PRELOAD": SHIM, "FAULT": f"{op}:1:kill", "FAULT_PATH": out}
        plan(root, out, 2, *flags, expect=(0, -signal.SIGKILL), env=env)
    check(any(name.endswith(".tmp") for name in os.listdir(out)), "nothing was left")
    plan(root, out, 2, *flags)
    task(out)
    check(sorted(os.listdir(out)) == ["train", "val"], os.listdir(out))


def test_status_looks_at_the_parts_themselves(space):
    _, out, _ = begin(space, "status")
    task(out, "--task", "0-2")
    status = lambda: json.loads(run("pack-info", out, "--json", expect=75))
    check(status()["missing_tasks"] == [], "all are there")
    os.remove(f"{out}/part-00001.h5")
    check(status()["missing_tasks"] == [1], status())


def test_plan_rows_is_a_zstd_stream_of_the_list(space):
    root, out = space("stream"), space("stream-pack")
    rows = make_images(root, 100)
    plan(root, out, 2, *by_csv(root, "--order", "input"))
    text = subprocess.run(["zstd", "-dc"], stdin=open(f"{out}/plan.rows", "rb"), stdout=subprocess.PIPE, check=True).stdout.decode()
    names = ("ant", "bee", "cat")
    check(text == "".join(f"{row},{name},{names.index(label)}\n" for row, (name, label) in enumerate(rows)), text[:200])


def test_plan_json_is_as_its_schema_says(space):
    root, out = space("schema"), space("schema-pack")
    make_images(root, 100)
    plan(root, out, 2, *by_csv(root, "--split", "train=0.5,val=0.5"))
    schemas = os.path.realpath(os.path.join(os.path.dirname(__file__), "../../schemas"))
    with open(f"{schemas}/plan.schema.json") as file:
        schema = json.load(file)
    with open(f"{out}/plan.json") as file:
        found = json.load(file)
    resolver = jsonschema.RefResolver(f"file://{schemas}/plan.schema.json", schema)
    jsonschema.Draft7Validator(schema, resolver=resolver).validate(found)
    try:
        jsonschema.Draft7Validator(schema, resolver=resolver).validate({**found, "tasks": 0})
    except jsonschema.ValidationError:
        return
    check(False, "the schema takes a plan without tasks")


def test_usage(space):
    root, out, _ = begin(space, "usage")
    for flags, words in ((["--task", "3"], "expected 0 to 2"), (["--task", ""], "tasks as 3,17"), (["--task", "1-"], "found '1-'"),
                         (["--task", "2-1"], "found '2-1'"), (["--task", "0,"], "as 3,17"), (["--memory-bytes", "10M"], "--memory-bytes")):
        check(words in run("pack-run", out, *flags, expect=2), flags)
    check("the packs have 3 parts" in plan(root, out + "3", 9, *by_csv(root)), "capped")
    check("holds no plan.json" in run("pack-run", root, expect=65), "no plan")
    check("exclude each other" in plan(root, out + "4", 2, *by_csv(root, "--dry-run"), expect=2), "a dry run writes nothing")
    check("whole number" in plan(root, out + "2", 0, *by_csv(root), expect=2), "no tasks")
    text = run("pack-info", out, expect=75)
    check("missing    tasks 0-2" in text and "pack-run" in text, text)


def test_plan_json_names_its_folder_and_a_watch_prints_a_line_of_json_each_time(space):
    _, out, golden = begin(space, "named")
    watch = subprocess.Popen([f"{BIN}/pack-info", f"{out}/plan.json", "--watch", "--json"], stdout=subprocess.PIPE)
    first = json.loads(watch.stdout.readline())
    check(first["finished"] is False and first["missing_tasks"] == [0, 1, 2] and first["path"] == out, first)
    task(f"{out}/plan.json", "--task", "0")
    second = json.loads(watch.stdout.readline())
    check(second["missing_tasks"] in ([0, 1, 2], [1, 2]), second)
    task(f"{out}/plan.json")
    rest = [json.loads(line) for line in watch.stdout]
    check(watch.wait(30) == 0 and rest and rest[-1]["samples"] > 0 and rest[-1]["path"] == out, rest[-1:])
    check_equal(out, golden)
    check("nothing to do" in task(f"{out}/plan.json"), "finished")


def test_a_terminated_task_ends_within_its_part_and_goes_on(space):
    root, out, golden = begin(space, "terminated", count=300)
    held = {**os.environ, "LD_PRELOAD": SHIM, "FAULT": "openat2:100:halt", "FAULT_PATH": root}  # in the second part
    slow = subprocess.Popen([f"{BIN}/pack-run", out, "--threads", "1", "--progress", "none"], env=held, stdout=subprocess.PIPE)
    _, status = os.waitpid(slow.pid, os.WUNTRACED)
    check(os.WIFSTOPPED(status), "it did not halt", status)
    slow.send_signal(signal.SIGTERM)
    slow.send_signal(signal.SIGCONT)
    slow.communicate(timeout=120)
    check(slow.returncode == 143 and not os.path.exists(f"{out}/part-00001.json"), slow.returncode, os.listdir(out))
    task(out)
    check_equal(out, golden)


with Workspace() as workspace:
    run_tests(globals(), workspace)
