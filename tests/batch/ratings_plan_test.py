"""Packs of ratings that many tasks make by a plan hold what one run of pack-sparse packs, and their bytes depend on no task."""
import fcntl
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, SHIM, Workspace, check, draw_seed, files_of, run
import jsonschema
from sparse_packs import Pack, SMALL, as_entries, random_ratings, write_csv


def task(out, *arguments, **how):
    return run("pack-run", out, "--progress", "none", *arguments, **how)


def plan(inputs, out, tasks, *arguments, **how):
    return run("pack-sparse", *inputs, *arguments, "--progress", "none", "--output", out, "--plan", tasks, **how)


def grouped(space, name, seed=1, files=5, header="userId,movieId,rating,timestamp", **how):
    """Ratings in files, each user in one of them; the ratings of all in the order of the files."""
    ratings = random_ratings(seed, **how)
    os.makedirs(space(name), exist_ok=True)
    paths, order = [], []
    for index in range(files):
        own = [rating for rating in ratings if rating[0] // 7 % files == index]
        order += own
        paths.append(write_csv(space(f"{name}/{index}.csv"), own, header))
    return paths, order


def packs_of(folder, names):
    return {name: Pack(os.path.join(folder, name) if name else folder) for name in names}


def check_same_entries(planned, plain, *what):
    for name in plain:
        ours, other = planned[name], plain[name]
        check(ours.x == other.x and ours.held_out == other.held_out, *what, name, "another entry than the plain pack")
        check(ours.items == other.items, *what, name, "other items, counts or order than the plain pack's")
        check(sorted(ours.users) == sorted(other.users), *what, name, "other users than the plain pack's")
        check(ours.manifest["spec"] == other.manifest["spec"], *what, name, ours.manifest["spec"], other.manifest["spec"])
        for key in ("values", "bad_lines", "reasons"):
            check(ours.manifest["stats"][key] == other.manifest["stats"][key], *what, name, key, ours.manifest["stats"][key])


CASES = [
    ([], [""]),
    (["--duplicates", "sum", "--zeros", "keep"], [""]),
    (["--min-item", "30"], [""]),
    (["--min-user", "11", "--above", "2"], [""]),
    (["--binarize", "--id-order", "first"], [""]),
    (["--id-order", "sorted", "--values", "f32"], [""]),
    (["--split-by", "leave-one-out"], ["train", "test"]),
    (["--split-by", "leave-one-out", "--split-order", "input", "--validation", "1"], ["train", "validation", "test"]),
    (["--split-by", "time", "--before", "400"], ["train", "test"]),
    (["--split-by", "ratio", "--test", "0.3", "--split-order", "input"], ["train", "test"]),
]


def test_a_planned_pack_holds_what_a_plain_one_holds(space):
    paths, _ = grouped(space, "same")
    for flags, names in CASES:
        plain, planned = space("same-plain"), space("same-planned")
        run("pack-sparse", *paths, *SMALL, *flags, "--progress", "none", "--output", plain)
        plan(paths, planned, 3, *SMALL, *flags)
        task(planned)
        check_same_entries(packs_of(planned, names), packs_of(plain, names), flags)
        check(not [name for name in os.listdir(planned) if name.startswith("plan")], "what is left of the plan", os.listdir(planned))
        run("pack-verify", planned)
        shutil.rmtree(plain), shutil.rmtree(planned)


def test_values_too_many_to_be_listed_are_counted_in_the_same_ranges(space):
    """Of some inputs all values can be listed, of others not."""
    rng = random.Random(1)
    paths = []
    for name, values in (("few", [-3.0, 1.5, 6.0]), ("more", range(-700, 200)), ("many", [index / 7 - 90 for index in range(3000)])):
        ratings = [(f"{name}{index % 50}", index, rng.choice(values) if len(values) < 9 else values[index], index) for index in range(len(values))]
        paths.append(write_csv(space(f"{name}.csv"), ratings))
    for some, flags in ((paths, []), (paths[:2], []), (paths[:1], ["--values", "f32"]), (paths[1:], [])):
        plain, planned = space("values-plain"), space("values-planned")
        run("pack-sparse", *some, *SMALL, *flags, "--zeros", "keep", "--progress", "none", "--output", plain)
        plan(some, planned, 3, *SMALL, *flags, "--zeros", "keep")
        task(planned)
        check_same_entries(packs_of(planned, [""]), packs_of(plain, [""]), len(some))
        shutil.rmtree(plain), shutil.rmtree(planned)


def test_given_columns(space):
    paths, ratings = grouped(space, "given")
    few = sorted({item for _, item, *_ in ratings})[::3]
    run("pack-sparse", write_csv(space("few.csv"), [rating for rating in ratings if rating[1] in few]), *SMALL, "--output", space("few"))
    for out, how in (("given-plain", []), ("given-planned", ["--plan", "2"])):
        run("pack-sparse", *paths, *SMALL, "--reuse-ids", space("few"), "--progress", "none", "--output", space(out), *how)
    task(space("given-planned"))
    ours, plain = Pack(space("given-planned")), Pack(space("given-plain"))
    check_same_entries({"": ours}, {"": plain})
    check([item for item, _ in ours.items] == [item for item, _ in Pack(space("few")).items], "the given columns")


def test_users_are_split_by_their_ids(space):
    """A user's pack depends on seed and id alone; the shares are met on average."""
    of_user, flags = {}, [*SMALL, "--split-by", "users", "--validation", "0.2", "--test", "0.1"]
    for files, name in ((3, "ids3"), (7, "ids7")):
        paths, ratings = grouped(space, name, files=files, users=900, count=12000)
        plan(paths, space(name + "-pack"), files, *flags)
        task(space(name + "-pack"))
        packs = packs_of(space(name + "-pack"), ["train", "validation", "test"])
        split = {user: name for name, pack in packs.items() for user, _ in pack.users}
        check(of_user in ({}, split), "other files, another split")
        of_user = split
        entries = {}
        for pack in packs.values():
            check(not entries.keys() & (pack.x.keys() | pack.held_out.keys()), "an entry twice")
            entries |= pack.x | pack.held_out
        missing = as_entries(ratings).items() - entries.items()
        check(len(missing) < 20 and entries.items() <= as_entries(ratings).items(), "entries", len(missing))
    share = {name: sum(1 for found in of_user.values() if found == name) / len(of_user) for name in ("validation", "test")}
    check(0.15 < share["validation"] < 0.25 and 0.06 < share["test"] < 0.14, share)


def test_the_dask_recipe_groups_users(space):
    if subprocess.run(["/usr/bin/python3", "-c", "import dask.dataframe"], stderr=subprocess.DEVNULL).returncode != 0:
        return print("python3-dask is not installed")
    ratings = random_ratings(5)
    halves = [write_csv(space(f"half{half}.csv"), ratings[half::2], "user,item,rating,time") for half in range(2)]
    samples = os.path.join(os.path.dirname(__file__), "../../samples/jobs")
    done = subprocess.run(["/usr/bin/python3", f"{samples}/group_dask.py", space("grouped"), "6", *halves], stderr=subprocess.PIPE)
    check(done.returncode == 0, done.stderr.decode(errors="replace"))
    files = [space(f"grouped/{name}") for name in sorted(os.listdir(space("grouped")))]
    check(len(files) == 6, files)
    plan(files, space("grouped-pack"), 6, *SMALL)
    task(space("grouped-pack"))
    check(Pack(space("grouped-pack")).x == as_entries(ratings), "entries")


def run_stage(out, stage, tasks, draw):
    """Runs the tasks of a stage in some order: some twice, some twice at once, some killed, some not at all."""
    order = [index for index in range(tasks) for _ in range(draw.choice([0, 1, 1, 1, 2]))]
    draw.shuffle(order)
    for index in order:
        arguments = ["--stage", stage, "--task", index]
        how = draw.randrange(4)
        if how == 0:
            fault = f"{draw.choice(['pwrite', 'write', 'rename', 'fsync'])}:{draw.randrange(1, 12)}:kill"
            task(out, *arguments, expect=(0, -signal.SIGKILL), env={"LD_PRELOAD": SHIM, "FAULT": fault, "FAULT_PATH": out})
        elif how == 1:
            pair = [subprocess.Popen([f"{BIN}/pack-run", out, *map(str, arguments), "--progress", "none"], stdout=subprocess.DEVNULL)
                    for _ in range(2)]
            check([one.wait(60) for one in pair] == [0, 0], "two tasks of one index at once")
        else:
            task(out, *arguments)


def test_bytes_depend_on_no_task(space):
    draw = random.Random(draw_seed())
    for case in range(6):
        paths, _ = grouped(space, f"bytes{case}", seed=case, files=draw.randrange(1, 9))
        flags = [*SMALL, *draw.choice(CASES)[0], "--seed", draw.randrange(5)] if case % 2 else \
            ["--container", "hdf5", "--split-by", "users", "--test", "0.2"]
        alone, shared = space(f"alone{case}"), space(f"shared{case}")
        plan(paths, alone, 1, *flags)
        task(alone, "--threads", "1")
        tasks = draw.choice([1, 2, 7])
        plan(paths, shared, tasks, *flags)
        tasks = min(tasks, len(paths))
        run_stage(shared, "count", tasks, draw)
        task(shared, "--stage", "columns")
        run_stage(shared, "pack", tasks, draw)
        task(shared)
        found, golden = files_of(shared), files_of(alone)
        check(found == golden, flags, sorted(name for name in found.keys() | golden.keys() if found.get(name) != golden.get(name)))
        task(shared)  # finished: nothing to do
        task(shared, "--stage", "pack", "--task", "0")


def test_several_finish_at_once(space):
    paths, _ = grouped(space, "several")
    golden = space("several-golden")
    plan(paths, golden, 2, *SMALL, "--split-by", "leave-one-out")
    task(golden)
    for draw in range(8):
        out = space(f"several-{draw}")
        plan(paths, out, 2, *SMALL, "--split-by", "leave-one-out")
        for stage in (["--stage", "columns"], ["--stage", "pack"]):
            task(out, *stage)
        runs = [subprocess.Popen([f"{BIN}/pack-run", out, "--progress", "none"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                for _ in range(3)]
        said = [one.communicate(timeout=60)[0].decode() for one in runs]
        check([one.returncode for one in runs] == [0, 0, 0], said)
        check(files_of(out) == files_of(golden), "differs")
    # One that is about to publish holds the lock for longer than the other needs.
    plan(paths, space("slow"), 2, *SMALL)
    folder = os.open(space("slow"), os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    waiting = subprocess.Popen([f"{BIN}/pack-run", space("slow"), "--progress", "none"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    time.sleep(2)
    check(waiting.poll() is None, "a finish did not wait for another", waiting.returncode)
    os.close(folder)
    text = waiting.communicate(timeout=60)[0].decode()
    check(waiting.returncode == 0, text)


def test_a_run_killed_at_any_call(space):
    paths, _ = grouped(space, "killed", files=3)
    plan(paths, space("killed-golden"), 2, *SMALL)
    task(space("killed-golden"))
    out = space("killed-pack")
    plan(paths, out, 2, *SMALL)
    for op in ("rename", "fsync", "link", "unlink", "write", "pwrite"):
        for nth in (1, 2, 3, 5, 8, 13, 21):
            env = {"LD_PRELOAD": SHIM, "FAULT": f"{op}:{nth}:kill", "FAULT_PATH": out}
            task(out, expect=(0, -signal.SIGKILL), env=env)
            if not os.path.exists(f"{out}/plan.json"):
                task(out)
                check(files_of(out) == files_of(space("killed-golden")), op, nth)
                shutil.rmtree(out)
                plan(paths, out, 2, *SMALL)
    task(out)
    check(files_of(out) == files_of(space("killed-golden")), "at the end")


def test_what_a_plan_cannot_do_is_refused(space):
    paths, _ = grouped(space, "refused", files=2)
    for flags, words in ((["--min-user", "5", "--min-item", "5"], "--reuse-ids"), (["--preset", "vae-cf"], "shares of the users"),
                         (["--split-by", "time", "--test", "0.1"], "--before"), (["--split-by", "users", "--test", "50"], "as 0.1"),
                         (["--split-by", "ratio", "--test", "0.1", "--min-item", "5"], "only without"), (["--dry-run"], "exclude"),
                         (["--split-by", "given"], "given")):
        text = plan(paths, space("none"), 2, *flags, expect=2)
        check(words in text and not os.path.exists(space("none")), flags, text)
    check("expected a file" in plan(["-"], space("none"), 2, expect=2), "stdin")
    check("is repeated" in plan([paths[0], paths[0]], space("none"), 2, expect=2), "twice")
    out = space("refused-pack")
    check("most tasks" in plan(paths, out, 50), "more tasks than inputs")
    for arguments, words in ((["--task", "0"], "--stage"), (["--stage", "count", "--task", "2"], "expected 0 to 1"),
                             (["--stage", "columns", "--task", "0"], "once")):
        check(words in task(out, *arguments, expect=2), arguments)
    check("run --stage columns first" in task(out, "--stage", "pack", "--task", "0", expect=75), "pack before columns")


def test_inputs_that_are_not_as_planned(space):
    paths, ratings = grouped(space, "moved", files=3)
    out = space("moved-pack")
    plan(paths, out, 3, *SMALL)
    os.rename(space("moved"), space("elsewhere"))
    check("mounted" in task(out, "--stage", "count", "--task", "1", expect=75), "a root that is not there")
    task(out, "--stage", "count", "--task", "1", "--root", space("elsewhere"))
    with open(space("elsewhere/2.csv"), "a") as file:
        file.write("9999,9999,1,1\n")
    check("when it was planned" in task(out, "--root", space("elsewhere"), expect=65), "another size")
    # A user of two files: found when the packs are merged.
    shared = space("shared-user")
    other = write_csv(space("other.csv"), [(ratings[0][0], 50, 1, 1), (5, 50, 1, 1)])
    plan([space("elsewhere/0.csv"), other], shared, 2, *SMALL)
    text = task(shared, expect=65)
    check("0.csv" in text and "other.csv" in text and "users in common" in text, text)
    # A file whose columns are found elsewhere.
    swapped = write_csv(space("swapped.csv"), [(item, user, 1, 1) for user, item, *_ in ratings[:50]], "item,user,rating,timestamp")
    plan([space("elsewhere/0.csv"), swapped], space("swapped"), 2, *SMALL)
    text = task(space("swapped"), expect=65)
    check("swapped.csv" in text and "expected the same" in text, text)


def test_bad_lines_count_over_all_inputs(space):
    paths, _ = grouped(space, "bad", files=3)
    for path in paths:
        with open(path, "a") as file:
            file.write("7,7,many,1\n" * 3)
    plan(paths, space("bad-pack"), 3, "--on-error", "skip", "--max-errors", "8")
    check("9 bad lines" in task(space("bad-pack"), expect=1), "the sum")
    check("may be running" in plan(paths, space("bad-pack"), 3, "--on-error", "skip", "--max-errors", "9", expect=73), "another plan")
    plan(paths, space("bad-pack"), 3, "--on-error", "skip", "--max-errors", "9", "--force")
    task(space("bad-pack"))
    plan(paths, space("bad-fail"), 3)
    check("many" in task(space("bad-fail"), "--stage", "count", "--task", "0", expect=1), "fails at once")


def stages(out, tasks):
    for stage in ("count", "pack"):
        task(out, "--stage", stage, "--task", ",".join(map(str, range(tasks))))
        if stage == "count":
            task(out, "--stage", "columns")


def test_rules_and_split_see_items_that_no_training_has(space):
    """An item that is held out by its only rating still counts for --min-user and the split, as in a plain pack."""
    rows = {"a": [("a", "x", 1, 1), ("a", "y", 2, 2), ("a", "only", 3, 3)], "b": [("b", "x", 1, 1), ("b", "y", 5, 9), ("b", "x2", 2, 1)]}
    paths = [write_csv(space(f"rare-{user}.csv"), own) for user, own in rows.items()]
    for flags in (["--split-by", "leave-one-out"], ["--split-by", "time", "--before", "3", "--min-user", "2"]):
        plain, planned = space("rare-plain"), space("rare-planned")
        run("pack-sparse", *paths, *flags, "--progress", "none", "--output", plain)
        plan(paths, planned, 2, *flags)
        task(planned)
        check_same_entries(packs_of(planned, ["train", "test"]), packs_of(plain, ["train", "test"]), flags)
        shutil.rmtree(plain), shutil.rmtree(planned)


def test_inputs_of_which_nothing_is_left(space):
    """And a value that the rules drop, which the type of the packed ones cannot hold."""
    paths = [write_csv(space("much.csv"), [(user, item, 1 + (user + item) % 3, 1) for user in range(9) for item in range(4)]),
             write_csv(space("little.csv"), [(100, 77, 0.37, 1)])]
    run("pack-sparse", *paths, "--min-user", "2", "--progress", "none", "--output", space("left-plain"))
    plan(paths, space("left"), 2, "--min-user", "2")
    task(space("left"))
    ours = Pack(space("left"))
    check_same_entries({"": ours}, {"": Pack(space("left-plain"))})
    check("no item is left" in task(plan_of_one(space, paths[1]), expect=65), "nothing at all is left")


def plan_of_one(space, path):
    plan([path], space("nothing"), 1, "--above", "9")
    return space("nothing")


def test_inputs_that_change_at_equal_size(space):
    paths, _ = grouped(space, "changed", files=2)
    out = space("changed-pack")
    plan(paths, out, 2, *SMALL)
    task(out, "--stage", "count", "--task", "0-1")
    task(out, "--stage", "columns")
    with open(paths[1]) as file:
        text = file.read()
    line = text.splitlines()[5]
    with open(paths[1], "w") as file:
        file.write(text.replace(line, line.replace(line.split(",")[1], "9" * len(line.split(",")[1]), 1)))
    check("changed since it was counted" in task(out, "--stage", "pack", "--task", "1", expect=65), "a new item")
    check("inputs that changed" in plan(paths, out, 2, *SMALL, expect=73), "planned again")
    plan(paths, out, 2, *SMALL, "--force")
    task(out)
    check(any(item.startswith("99") for item, _ in Pack(out).items), "the new item")


def test_damaged_stages_are_never_left_out(space):
    paths, _ = grouped(space, "damaged", files=3)
    golden, out = space("damaged-golden"), space("damaged-pack")
    plan(paths, golden, 1, *SMALL)
    task(golden)
    for name, change in (("pack-00001/manifest.json", lambda path: open(path, "w").close()), ("pack-00001/manifest.json", os.remove),
                         ("items.csv", lambda path: flip(path)), ("count-00001.csv", lambda path: flip(path)),
                         ("columns.json", lambda path: flip(path))):
        plan(paths, out, 3, *SMALL)
        stages(out, 3)
        folder = [name for name in os.listdir(out) if name.startswith("plan-")][0]
        change(f"{out}/{folder}/{name}")
        _, text = run("pack-run", out, "--progress", "none", expect=(0, 65))
        check(name.startswith("pack-") == ("pack-00001" in text) and os.path.exists(f"{out}/plan.json") == name.startswith("pack-"), name, text)
        if not name.startswith("pack-"):
            check(files_of(out) == files_of(golden), name)
        shutil.rmtree(out)


def flip(path):
    with open(path, "r+b") as file:
        file.seek(40)
        byte = file.read(1)
        file.seek(40)
        file.write(bytes([byte[0] ^ 1]))


def test_inputs_without_ids_are_refused_when_they_are_planned(space):
    """Their users are row numbers, so that all inputs seem to have users in common."""
    for name, text in (("a.svm", "1 1:1 3:1\n0 2:1\n"), ("b.svm", "1 1:1 2:1\n"), ("a.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 3\n")):
        with open(space(name), "w") as file:
            file.write(text)
    for inputs, kind in ((["a.svm", "b.svm"], "svmlight"), (["a.mtx", "b.svm"], "matrix-market")):
        text = plan([space(name) for name in inputs], space("no-ids"), 2, expect=2)
        check(kind in text and "names or numbers of one file" in text and not os.path.exists(space("no-ids")), text)
    plan([space("a.svm")], space("one-svm"), 1)
    task(space("one-svm"))


def test_what_a_killed_task_left_is_not_said_to_be_begun(space):
    paths, _ = grouped(space, "left", files=3)
    out = space("left-pack")
    plan(paths, out, 3, *SMALL)
    killed = {"LD_PRELOAD": SHIM, "FAULT": "rename:1:kill", "FAULT_PATH": out}
    task(out, "--stage", "count", "--task", "1", expect=(-signal.SIGKILL,), env=killed)
    text = run("pack-info", out, expect=75)
    check(": left over" in text, text)


def test_messages_name_what_the_user_typed(space):
    paths, _ = grouped(space, "words", files=3)
    said = plan(paths, space("words-pack"), 3)
    for words in ("sbatch --parsable --array=0-2 slurm.sh", "kubernetes_ratings.sh", "parallel.sh", "dask_run.py"):
        check(words in said and space("words-pack") in said, words, said)
    text = task(space("words-pack"))
    check("3 inputs in" in text, "counted and packed are 3 inputs", text)
    with open(paths[0], "a") as file:
        file.write("bad\n")
    plan(paths, space("words-bad"), 3)
    text = task(space("words-bad"), expect=1)
    check("--on-error belongs to the command that planned" in text, text)
    for command in ("pack-sparse", "pack-images"):
        check("--plan: expected a value" in run(command, space("words"), "--output", space("no"), "--plan", expect=2), command)


def test_status(space):
    paths, _ = grouped(space, "status", files=4)
    out = space("status-pack")
    plan(paths, out, 3, *SMALL)
    schemas = os.path.join(os.path.dirname(__file__), "../../schemas")
    with open(f"{schemas}/ratings-plan.schema.json") as file:
        schema = json.load(file)
    with open(f"{out}/plan.json") as file:
        jsonschema.validate(json.load(file), schema)
    found = []
    for arguments in (["--stage", "count", "--task", "1"], ["--stage", "count", "--task", "0,2"], ["--stage", "columns"],
                      ["--stage", "pack", "--task", "0"], ["--stage", "pack", "--task", "1-2"]):
        task(out, *arguments)
        status = json.loads(run("pack-info", out, "--json", expect=75))
        found.append((status["stage"], status["missing_tasks"], status["parts_done"], status["parts"]))
        check(status["stage"] in run("pack-info", out, expect=75), "as text")
    check(found == [("count", [0, 2], 1, 4), ("columns", [], 4, 4), ("pack", [0, 1, 2], 0, 4), ("pack", [1, 2], 2, 4),
                    ("pack", [], 4, 4)], found)
    check("may be running" in plan(paths[:3], out, 3, *SMALL, expect=73), "another plan")
    check("holds a plan" in run("pack-sparse", *paths, "--output", out, expect=73), "a plain pack")
    plan(paths[:3], out, 3, *SMALL, "--force")  # what the first one made is gone
    check(len([name for name in os.listdir(out) if name.startswith("plan-")]) == 0, os.listdir(out))


if __name__ == "__main__":
    with Workspace() as space:
        for name, test in list(globals().items()):
            if name.startswith("test_"):
                test(space)
                print(name, flush=True)
