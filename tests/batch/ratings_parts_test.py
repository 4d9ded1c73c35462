"""Parts of ratings that are packed alone, with the items that --count-items lists, and merged hold what one run over all holds.
The scripts of samples/jobs do so; sqlite3 runs the SQL of the one for DuckDB."""
import glob
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from packing import BIN, Workspace, check, run
from sparse_packs import Pack, SMALL, as_entries, pack, random_ratings, write_csv

JOBS = os.path.join(os.path.dirname(__file__), "../../samples/jobs")
HELD_OUT = ["train", "validation", "test"]
BY_ID = ["--split-by", "users-by-id", "--validation", "0.2", "--test", "0.1"]


def grouped(space, name, files=5, header="userId,movieId,rating,timestamp", **how):
    """Ratings in files, each user in one of them."""
    ratings = random_ratings(1, **how)
    os.makedirs(space(name))
    return [write_csv(space(f"{name}/part-{index}.csv"), [rating for rating in ratings if rating[0] // 7 % files == index], header)
            for index in range(files)], ratings


def merge_all(space, name, names):
    for split in names:
        packs = sorted(os.path.dirname(path) for path in glob.glob(os.path.join(space(f"{name}-packs"), "*", split, "manifest.json")))
        run("pack-merge", os.path.join(space(f"{name}-all"), split), *packs)
    return {split: Pack(os.path.join(space(f"{name}-all"), split)) for split in names}


def packed_in_parts(space, name, paths, names, flags, counted=()):
    pack(*paths, *flags, *counted, "--count-items", "-o", space(f"{name}-items.csv"))
    for index, path in enumerate(paths):
        pack(path, *SMALL, *flags, "--reuse-ids", space(f"{name}-items.csv"), "--values", "u8:0.5", "-o", space(f"{name}-packs/{index}"))
    return merge_all(space, name, names)


def packed_at_once(space, name, paths, names, flags):
    pack(*paths, *SMALL, *flags, "--values", "u8:0.5", "-o", space(name))
    return {split: Pack(os.path.join(space(name), split)) for split in names}


def check_same_rows(merged, plain, *what):
    for name in plain:
        check(merged[name].x == plain[name].x, *what, name, "other entries of X")
        check(merged[name].held_out == plain[name].held_out, *what, name, "other entries of held_out")
        check([item for item, _ in merged[name].items] == [item for item, _ in plain[name].items], *what, name, "other items")
        check(sorted(merged[name].users) == sorted(plain[name].users), *what, name, "other users")


# Flags of all commands; those of counting alone, which the items keep to; packs.
CASES = [
    ([], [], [""]),
    (["--duplicates", "sum", "--zeros", "keep"], [], [""]),
    (["--min-user", "11", "--above", "2"], [], [""]),
    (["--min-user", "15"], ["--min-item", "30"], [""]),
    ([], ["--min-item", "40"], [""]),
    ([], ["--id-order", "sorted"], [""]),
    (BY_ID, [], HELD_OUT),
    ([*BY_ID, "--fold-in", "0.5", "--seed", "3"], [], HELD_OUT),
    (["--split-by", "leave-one-out", "--split-order", "input", "--validation", "1"], [], HELD_OUT),
    (["--split-by", "time", "--before", "400"], [], ["train", "test"]),
]
# The same with many items that few users have: training lacks some, which the split holds out all the same.
COLD = [
    (["--split-by", "leave-one-out", "--validation", "1", "--min-user", "3"], [], HELD_OUT),
    (["--split-by", "leave-one-out", "--split-order", "input"], ["--min-item", "2"], ["train", "test"]),
    (["--split-by", "ratio", "--split-order", "time", "--test", "0.3", "--validation", "1"], [], HELD_OUT),
    (["--split-by", "time", "--before", "400", "--min-user", "4"], [], ["train", "test"]),
    ([*BY_ID, "--min-user", "6"], [], HELD_OUT),
]


def test_parts_with_counted_items_hold_what_one_run_holds(space):
    paths, _ = grouped(space, "same")
    for number, (flags, counted, names) in enumerate(CASES):
        merged = packed_in_parts(space, f"parts{number}", paths, names, flags, counted)
        plain = packed_at_once(space, f"once{number}", paths, names, [*flags, *counted])
        check_same_rows(merged, plain, flags, counted)
        with open(os.path.join(space(f"once{number}"), names[0], "items.csv")) as own, open(space(f"parts{number}-items.csv")) as counts:
            check(own.read() == counts.read(), flags, counted, "the list is not the items.csv of one pack")
        run("pack-verify", space(f"parts{number}-all"))


def test_parts_dropped_cold_items_before_the_split_and_held_out_others(space):
    paths, _ = grouped(space, "cold", users=200, items=3000, count=1500)
    for number, (flags, counted, names) in enumerate(COLD):
        merged = packed_in_parts(space, f"cold-parts{number}", paths, names, flags, counted)
        plain = packed_at_once(space, f"cold-once{number}", paths, names, [*flags, *counted])
        check_same_rows(merged, plain, flags, counted)
        for name in names:
            check(merged[name].manifest["stats"]["left_out"] == plain[name].manifest["stats"]["left_out"], flags, name, "left out")
        with open(os.path.join(space(f"cold-once{number}"), names[0], "items.csv")) as own, open(space(f"cold-parts{number}-items.csv")) as counts:
            columns, more = own.read(), counts.read()
        check(more.startswith(columns) and (counted or len(more) > len(columns)), flags, "the list lacks the items that training lacks")
        check(all(line.startswith(",0,") for line in more[len(columns):].splitlines()), flags, more[len(columns):])


def test_counts_of_parts_add_up_to_the_count_of_all(space):
    """Each part was to be read twice, first by one run over all."""
    paths, _ = grouped(space, "sums", users=200, items=3000, count=5000)
    for number, (flags, counted, _) in enumerate([*CASES, *COLD, ([], ["--min-item", "3"], [""])]):
        if "--id-order" in counted or ("--min-item" in counted and flags):
            continue
        lists = [space(f"sums{number}-{index}.csv") for index in range(len(paths))]
        for path, each in zip(paths, lists):
            pack(path, *flags, "--count-items", "-o", each)
        flags = [*flags, *counted]
        for order in ("sorted", "popularity"):
            pack(*paths, *flags, "--id-order", order, "--count-items", "-o", space(f"once-{order}{number}.csv"))
            said = pack(*lists, *flags, "--id-order", order, "--count-items", "-o", space(f"sum-{order}{number}.csv"))
            with open(space(f"once-{order}{number}.csv")) as once, open(space(f"sum-{order}{number}.csv")) as summed:
                rows = [[line.rstrip("\n").split(",") for line in file] for file in (once, summed)]
            if order == "sorted":  # items without a column may have another order
                columns = [[row for row in each if row[0]] for each in rows]
                check(columns[0] == columns[1], flags, "other counts")
            check(sorted(row[1:] for row in rows[0]) == sorted(row[1:] for row in rows[1]), flags, order, "other items")
            check([row[:2] for row in rows[0]] == [row[:2] for row in rows[1]], flags, order, "another order")
            check("--values TYPE" in said, said)
    text = pack(*lists, "--min-item", "3", "--min-user", "2", "--count-items", "-o", space("both.csv"), expect=2)
    check("count all parts in one run" in text, text)
    pack(*paths, "--split-by", "leave-one-out", "--split-order", "input", "--count-items", "-o", space("unseen.csv"))
    text = pack(space("unseen.csv"), "--min-item", "3", "--count-items", "-o", space("both.csv"), expect=2)
    check("an item without a column in" in text and "count all parts in one run" in text, text)
    text = pack(lists[0], paths[0], "--count-items", "-o", space("mixed.csv"), expect=65)
    check(f"{paths[0]}: is no list of items, as other inputs are" in text, text)
    check("no items are left" in pack(*lists, "--min-item", "99999", "--count-items", "-o", space("none.csv"), expect=65), "an empty list")


def test_the_sum_of_lists_is_held_to_memory(space):
    for part in range(6):
        with open(space(f"long{part}.csv"), "w") as file:
            file.write("column,ratings,item\n" + "".join(f"{at},1,item-{part}-{at:060}\n" for at in range(30_000)))
    lists = [space(f"long{part}.csv") for part in range(6)]
    sum_of = lambda lists, *more: run("pack-sparse", *lists, "--count-items", "-o", space("long-sum.csv"), "--threads", "1", *more, expect=(0, 2))
    code, said = sum_of(lists, "--memory-bytes", "48M")
    check(code == 2 and "--count-items" in said and "--memory-bytes" in said, said)
    check(sum_of(lists[:1], "--memory-bytes", "48M")[0] == 0, "one list alone fits")
    check(sum_of(lists, "--memory-bytes", "200M", "--force")[0] == 0, "all fit")


def test_users_are_split_by_their_ids_whatever_files_they_are_in(space):
    of_user = {}
    for files in (3, 7):
        paths, ratings = grouped(space, f"ids{files}", files=files, users=900, count=12000)
        packs = packed_in_parts(space, f"ids{files}", paths, HELD_OUT, BY_ID)
        split = {user: name for name, each in packs.items() for user, _ in each.users}
        check(of_user in ({}, split), "other files, another split")
        of_user = split
        entries = {}
        for each in packs.values():
            check(not entries.keys() & (each.x.keys() | each.held_out.keys()), "an entry twice")
            entries |= each.x | each.held_out
        missing = as_entries(ratings).items() - entries.items()
        check(len(missing) < 20 and entries.items() <= as_entries(ratings).items(), "entries", len(missing))
    share = {name: sum(1 for found in of_user.values() if found == name) / len(of_user) for name in HELD_OUT}
    check(0.15 < share["validation"] < 0.25 and 0.06 < share["test"] < 0.14, share)


def test_a_part_without_held_out_users_lacks_their_packs(space):
    ratings = [(user, item, 4.5, 0) for user in range(40) for item in range(8)]
    paths = [write_csv(space(f"few{index}.csv"), [rating for rating in ratings if (rating[0] < 2) == (index == 0)]) for index in (0, 1)]
    flags = ["--split-by", "users-by-id", "--test", "0.3", "--seed", "3"]
    pack(*paths, *flags, "--count-items", "-o", space("few-items.csv"))
    said = [pack(path, *flags, "--reuse-ids", space("few-items.csv"), "--values", "u8:0.5", "-o", space(f"few-packs/{index}"))
            for index, path in enumerate(paths)]
    parts = [space(f"few-items{index}.csv") for index in (0, 1)]
    for path, part in zip(paths, parts):  # counting the first, of test users alone, was an error
        pack(path, *flags, "--count-items", "-o", part)
    with open(parts[0]) as file:
        check([line for line in file][1].startswith(",0,"), "a part without training has columns")
    pack(*parts, "--count-items", "-o", space("few-sum.csv"))
    with open(space("few-sum.csv")) as summed, open(space("few-items.csv")) as once:
        check(sorted(summed) == sorted(once), "other counts")
    held = sorted(os.listdir(space("few-packs/0")))
    check(len(held) == 1 and "gets no rows of this input, and is not written" in said[0], held, said[0])
    check(sorted(os.listdir(space("few-packs/1"))) == ["test", "train"] and "gets no rows" not in said[1], said[1])
    check_same_rows(merge_all(space, "few", ["train", "test"]), packed_at_once(space, "few-once", paths, ["train", "test"], flags), flags)


def test_a_part_that_holds_nothing_out_lost_its_training_rows(space):
    ratings = [(user, (user + at) % 7, 4.5, 100 * at) for user in range(30) for at in range(1 if user < 10 else 5)]
    paths = [write_csv(space(f"lone{index}.csv"), [rating for rating in ratings if (rating[0] < 10) == (index == 0)]) for index in (0, 1)]
    for number, flags in enumerate((["leave-one-out", "--validation", "1"], ["ratio", "--split-order", "input", "--test", "0.2"],
                                    ["time", "--before", "300"])):
        names = HELD_OUT if "--validation" in flags else ["train", "test"]
        flags = ["--split-by", *flags]
        merged = packed_in_parts(space, f"lone{number}", paths, names, flags)
        check(os.listdir(space(f"lone{number}-packs/0")) == ["train"], flags, os.listdir(space(f"lone{number}-packs/0")))
        check_same_rows(merged, packed_at_once(space, f"lone-once{number}", paths, names, flags), flags)
    # Of one run over all it stays an error.
    said = pack(paths[0], "--split-by", "leave-one-out", "-o", space("lone"), expect=2)
    check("test gets no rows" in said, said)


def test_a_part_that_the_rules_left_nothing_crashed_beside_tables(space):
    path = write_csv(space("none.csv"), [(user, item, 4.5, 0) for user in range(9) for item in range(3)], "user,item,rating,time")
    for thing in ("item", "user"):
        with open(space(f"{thing}s.csv"), "w") as file:
            file.write(f"{thing},title\n1,x\n2,y\n")
        for more in (["-o", space("none")], ["--dry-run"]):
            said = pack(path, "--min-user", "9", *BY_ID, f"--{thing}-columns", space(f"{thing}s.csv"), *more, expect=65)
            check("no ratings are left, in any pack" in said, said)


def test_a_part_that_the_rules_leave_nothing_is_none(space):
    """It ended the chain of tasks. Items that are all of others, and one run over all, stay errors."""
    ratings = [(user, (user + at) % 7, 4.5, 0) for user in range(30) for at in range(2 if user < 10 else 5)]
    paths = [write_csv(space(f"less{index}.csv"), [rating for rating in ratings if (rating[0] < 10) == (index == 0)]) for index in (0, 1)]
    rules = ["--min-user", "3"]
    said = [run("pack-sparse", path, *rules, "--count-items", "-o", space(f"less-count{index}.csv")) for index, path in enumerate(paths)]
    check("no ratings are left: the list has no items" in said[0] and "no ratings" not in said[1], said)
    run("pack-sparse", space("less-count0.csv"), space("less-count1.csv"), "--count-items", "-o", space("less-items.csv"))
    run("pack-sparse", *paths, *rules, "--count-items", "-o", space("less-once.csv"))
    with open(space("less-items.csv")) as summed, open(space("less-once.csv")) as counted:
        of_items = lambda lines: sorted(line.split(",")[1:] for line in lines)  # equal counts may stand in another order
        check(of_items(summed) == of_items(counted), "the sum differs")
    with open(space("less-titles.csv"), "w") as file:
        file.write("item,title\n" + "".join(f"{item},x\n" for item in range(7)))
    known = [*rules, "--reuse-ids", space("less-items.csv"), "--values", "u8:0.5"]
    for number, more in enumerate(([], ["--item-columns", space("less-titles.csv")], ["--split-by", "leave-one-out", "--split-order", "input"])):
        said = pack(paths[0], *known, *more, "-o", space(f"less{number}"))
        check("gets no rows of this input, and is not written" in said, said)
        check(not glob.glob(space(f"less{number}/**/manifest.json"), recursive=True), "a pack without rows")
    pack(paths[1], *known, "-o", space("less-packed"))
    run("pack-merge", space("less-merged"), space("less-packed"))
    check("no ratings are left for training" in pack(paths[0], *rules, "-o", space("less-alone"), expect=65), "one run")
    other = write_csv(space("less-other.csv"), [(1, f"other{at}", 4.5, 0) for at in range(9)])
    check("no ratings are left" in pack(other, *known, "-o", space("less-other"), expect=65), "items of others")


def test_counting_and_packing_could_not_share_a_recipe(space):
    """What has no part in which items there are was an error; so were flags that only name columns and files."""
    (path, *_), _ = grouped(space, "shared")
    with open(space("users.csv"), "w") as file:
        file.write("user,age\n" + "".join(f"{user},3\n" for user in range(5000)))
    packing = ["--min-user", "5", "--split-by", "ratio", "--split-order", "input", "--test", "0.2", "--order", "input", "--codec", "none",
               "--container", "shard", "--chunk-rows", "8", "--part-bytes", "1M", "--user-columns", space("users.csv"), "--keep-times"]
    run("pack-sparse", path, *packing, "--dry-run", "--save-config", space("recipe.toml"))
    said = run("pack-sparse", path, "--config", space("recipe.toml"), "--count-items", "-o", space("shared.csv"))
    run("pack-sparse", path, *packing[:8], "--count-items", "-o", space("bare.csv"))
    with open(space("shared.csv")) as shared, open(space("bare.csv")) as bare:
        check(shared.read() == bare.read(), said)
    # A table beside a matrix, in ISO 8859-1.
    with open(space("m.mtx"), "w") as file:
        file.write("%%MatrixMarket matrix coordinate integer general\n2 3 3\n1 1 4\n1 3 2\n2 2 5\n")
    with open(space("titles.csv"), "wb") as file:
        file.write("item,title\n0,caf\u00e9\n".encode("latin-1"))
    run("pack-sparse", space("m.mtx"), "--item-columns", space("titles.csv"), "--encoding", "latin-1", "--count-items", "-o", space("m.csv"))


def test_what_counting_does_not_need_is_an_error(space):
    (path, *_), _ = grouped(space, "wrong")
    run("pack-sparse", path, "-o", space("items"), "--progress", "none")
    out = ["--count-items", "-o", space("list.csv")]
    for flags, said in (
            (["--reuse-ids", space("items")], "--count-items: does not take --reuse-ids"),
            (["--split-by", "users", "--test", "0.1"], "needs --split-by users-by-id, found users"),
            (["--split-by", "ratio", "--test", "0.1"], "--split-by ratio needs --split-order time or input"),
            (["--split-by", "time", "--test", "0.1"], "--split-by time needs --before"), (["--dry-run"], "exclude each other"),
            (["--split-by", "users-by-id", "--test", "5"], "with --split-by users-by-id expected shares below 1"),
            (["--min-item", "100000"], "no ratings are left")):
        text = run("pack-sparse", path, *flags, *out, "--progress", "none", expect=(2, 65))[1]
        check(said in text, flags, text)
    check(not os.path.exists(space("list.csv")), "a list beside an error")
    run("pack-sparse", path, *out)
    with open(space("list.csv")) as file:
        whole = file.read()
    check("is there already; --force replaces it" in run("pack-sparse", path, *out, expect=73), "replaced")
    run("pack-sparse", path, *out, "--force", "--min-item", "20")
    with open(space("list.csv")) as file:
        check(len(file.read()) < len(whole), "not replaced")
    check("is an input" in run("pack-sparse", path, "--count-items", "--force", "-o", path, expect=73), "the input replaced")


def engine(*command, **env):
    path = {"PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, **path, **env}, timeout=300)
    check(done.returncode == 0, command, done.stdout.decode(errors="replace"))
    return done.stdout.decode(errors="replace")


def test_the_tasks_of_the_slurm_array(space):
    paths, _ = grouped(space, "array", files=3)
    said = run("pack-sparse", *paths, *BY_ID, "--count-items", "-o", space("array-items.csv"))
    check(f"--reuse-ids {space('array-items.csv')} --values u8:0.5 " in said, said)
    for index in range(3):
        engine("bash", f"{JOBS}/slurm_ratings.sh", space("array"), space("array-packs"), "--reuse-ids", space("array-items.csv"), *BY_ID,
               "--values", "u8:0.5", SLURM_ARRAY_TASK_ID=str(index))
    check_same_rows(merge_all(space, "array", HELD_OUT), packed_at_once(space, "array-once", paths, HELD_OUT, BY_ID), "Slurm")


def test_the_dask_script(space):
    if subprocess.run(["/usr/bin/python3", "-c", "import dask.dataframe, distributed"], stderr=subprocess.DEVNULL).returncode != 0:
        return print("python3-dask or python3-distributed is not installed")
    ratings = random_ratings(5)
    halves = [write_csv(space(f"half{half}.csv"), ratings[half::2], "user,item,rating,time") for half in range(2)]
    flags = [*BY_ID, "--values", "u8:0.5"]
    engine("/usr/bin/python3", f"{JOBS}/dask_ratings.py", space("dask"), "4", *halves, "--", *flags, "--min-item", "5")
    check(len(glob.glob(space("dask/part-*.csv"))) == 4, os.listdir(space("dask")))
    merged = {name: Pack(space(f"dask/all/{name}")) for name in HELD_OUT}
    # Equally popular items are in the order of the input, which is the grouped files here.
    plain = packed_at_once(space, "dask-once", sorted(glob.glob(space("dask/part-*.csv"))), HELD_OUT, [*BY_ID, "--min-item", "5"])
    check_same_rows(merged, plain, "Dask")


DUCKDB = """#!/usr/bin/python3
import csv, os, re, sqlite3, sys
text = sys.stdin.read()
source = re.search(r"FROM '(.*)';", text).group(1)
tables = sqlite3.connect(":memory:")
tables.create_function("hash", 1, lambda user: sum(user.encode()))
tables.execute('CREATE TABLE ratings ("user" TEXT, item TEXT, rating TEXT)')
with open(source, newline="") as file:
    tables.executemany("INSERT INTO ratings VALUES (?, ?, ?)", [row[:3] for row in list(csv.reader(file))[1:]])
for query, to, how in re.findall(r"COPY \\((.*?)\\)\\s+TO '(.*?)' \\((.*?)\\);\\n", text, re.S):
    found = tables.execute(query)
    names = [column[0] for column in found.description]
    if "PARTITION_BY" in how:
        for *row, part in found:
            os.makedirs(f"{to}/part={part}", exist_ok=True)
            with open(f"{to}/part={part}/data_0.csv", "a", newline="") as file:
                csv.writer(file).writerow(row)
    else:
        with open(to, "w", newline="") as file:
            csv.writer(file).writerows([names, *found])
"""


def test_the_duckdb_script_whose_sql_runs_in_sqlite(space):
    """The stand-in for duckdb runs both queries; reading the source and COPY … TO are its own."""
    os.makedirs(space("bin"))
    with open(space("bin/duckdb"), "w") as file:
        file.write(DUCKDB)
    os.chmod(space("bin/duckdb"), 0o755)
    ratings = random_ratings(6)
    source = write_csv(space("source.csv"), ratings, "user,item,rating,time")
    path = f"{space('bin')}:{BIN}:{os.environ['PATH']}"
    engine("bash", f"{JOBS}/duckdb_ratings.sh", source, space("duck"), "3", "--values", "u8:0.5", PATH=path)
    check(len(glob.glob(space("duck/packs/*/manifest.json"))) == 3, os.listdir(space("duck")))
    merged = Pack(space("duck/all"))
    check(merged.x == as_entries(ratings), "entries")
    counts = merged.item_counts()
    check(merged.items == sorted(counts.items(), key=lambda each: (-each[1], each[0])), "items are not by popularity")


with Workspace() as workspace:
    for test in [each for name, each in list(globals().items()) if name.startswith("test_")]:
        test(workspace)
        print(test.__name__, "passed", flush=True)
