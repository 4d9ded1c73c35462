"""pack-sparse reads texts of ratings as they are meant, or says what is wrong: damage, quotes, headers, times, formats."""
import gzip
import json
import os
import random
import re
import subprocess
import sys
from datetime import datetime, timezone

import numpy as np
import pandas as pd
import scipy.sparse as sp

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from optional import optional
from packing import check, fingerprint, make_images, run, run_tests
from sparse_packs import Pack, pack, random_ratings, write_csv

anndata = optional("anndata")


def write(space, name, text):
    with open(space(name), "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return space(name)


def test_flipped_bits_and_cuts_of_gzip_are_found(space):
    text = open(write_csv(space("r.csv"), random_ratings(3, count=2000)), "rb").read()
    half = text.index(b"\n", len(text) // 2) + 1
    whole = gzip.compress(text[:half]) + gzip.compress(text[half:])
    pack(write(space, "whole.csv.gz", whole), "-o", space("whole"))
    draw = random.Random(1)
    for _ in range(40):
        bit = draw.randrange(16, len(whole) * 8)
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        code, _ = pack(write(space, "flipped.csv.gz", bytes(damaged)), "-o", space("flipped"), "--force", expect=(0, 65))
        check(code != 0 or fingerprint(space("flipped")) == fingerprint(space("whole")), "bit", bit, "was packed")
    first = len(gzip.compress(text[:half]))
    for cut in (first + 1, first + 9, first + 100, len(whole) - 1):
        said = pack(write(space, "cut.csv.gz", whole[:cut]), "-o", space("cut"), expect=65)
        check("gzip member 2: is truncated" in said, said)
    said = pack(write(space, "tail.csv.gz", whole + b"more"), "-o", space("tail"), expect=65)
    check("gzip member 2: is followed by bytes that begin no other member" in said, said)


def test_a_damaged_gzip_of_labels_is_found(space):
    make_images(space("photos"), 9)
    text = open(space("photos/labels.csv"), "rb").read()
    damaged = bytearray(gzip.compress(text))
    damaged[-8] ^= 1
    said = run("pack-images", space("photos"), "--labels", write(space, "labels.csv.gz", bytes(damaged)), "--resize", "8x8",
               "-o", space("images"), expect=65)
    check("incorrect data check" in said and "labels.csv.gz" in said, said)


def test_an_unused_column_without_a_name_is_numbered(space):
    path = write(space, "index.csv", ",user,item,rating\n0,1,a,3\n1,2,b,4\n")
    said = pack(path, "-o", space("index"))
    check("not used: column 1 (no name)\n" in said, said)


def test_quotes_behind_the_first_lines_are_not_taken_for_letters(space):
    """Whether fields stand in quotes was judged by the first lines alone: later ones became other items, and a line end
    inside one a rating."""
    plain = "user,item,title\n" + "".join(f"u{n % 500},i{n // 500},t\n" for n in range(20000))
    for late in ('u1,"Heat",t\n', 'u1,"He said ""hi""",t\n', 'u1,i77,"a\nu9,i99,b"\n'):
        path = write(space, "late.csv", plain + late)
        said = pack(path, "-o", space("late"), "--force", expect=1)
        check(":20002:" in said and "none of the first lines does; give --quote double" in said, said)
        pack(path, "-o", space("late"), "--quote", "double", "--force")
        pack(path, "-o", space("late"), "--quote", "none", "--force")


def test_quotes_mean_the_same_in_all_inputs_and_lines(space):
    """What quotes are was judged for each input, by the first field that begins with one: one item became two columns."""
    plain = "user,item,r\n" + "".join(f"u{n % 50},i{n // 50},{n % 5}\n" for n in range(3000))
    early = write(space, "early.csv", 'user,item,r\n"u1","x",3\n"u3","x",3\n')
    late = write(space, "late.csv", plain + 'u2,"x",3\n')
    names = write(space, "names.csv", 'user,item,r\nu1,"Weird Al" Yankovic,3\n' + plain[12:])
    pack(early, late, "-o", space("both"))
    check(sum(item == "x" for _, item in Pack(space("both")).x) == 3, "x is one item")
    for inputs, said in (((late, early), "late.csv:3002:4: quotes:"), ((names, early), "early.csv:2:1: quotes:"),
                         ((early, names), "names.csv:2:14: quotes:"), ((names, late), "late.csv:3002:4: quotes:")):
        text = pack(*inputs, "-o", space("several"), expect=1)
        check(said in text and "--quote" in text, text)
    pack(names, "-o", space("names"))
    pack(names, late, "-o", space("letters"), "--quote", "none", "--duplicates", "last")
    check(("u2", '"x"') in Pack(space("letters")).x, "letters as given")
    blanks = write(space, "blanks.txt", plain[12:].replace(",", " ") + 'u1 "x" 3\n')
    text = pack(blanks, "-o", space("blanks"), expect=1)
    check("blanks.txt:3001:4: quotes: a field stands in quotes between blanks" in text, text)


def test_a_table_cut_in_its_last_line_was_packed_without_a_word(space):
    cut, whole = write(space, "cut.csv", "user,item,r\n1,4,3.5\n2,4,3"), write(space, "whole.csv", "user,item,r\n3,4,3\n")
    said = pack(cut, whole, "-o", space("cut"))
    check(f"the last line of {cut} has no line break: is the file whole?" in said, said)
    check("line break" not in pack(whole, "-o", space("whole")), "whole")
    check("line break" in pack(write(space, "cut.gz", gzip.compress(b"1,2,3\n1,3,4")), "-o", space("cutgz")), "gzip")


def test_messages_that_did_not_say_what_to_do(space):
    table = write(space, "t.csv", ",user,item,rating,time\n0,a,x,0.05,01/01/2020\n1,b,y,1,01/02/2020\n")
    said = pack(table, "--dry-run")
    check("not used: column 1 (no name)" in said and "0.05 " in said and "0.0500000" not in said, said)
    check("nothing was written (--dry-run)" in said, said)
    twice = write(space, "twice.csv", "user,item,rating\na,x,1\na,x,2\na,x,3\nb,y,bad\n")
    rows = write(space, "rows.svm", "1 1:2 3:4\n0 2:1\n")
    for arguments, code, words in (
            ((table, "--test", "5"), 2, "--validation, --test: need --split-by"),
            ((table, "--split-by", "users", "--test", "5000"), 2, "--test 5000: the input has only 2 users"),
            ((table, "--split-by", "time", "--test", "0.5"), 2,
             'column "time" holds "01/01/2020", which is no number or YYYY-MM-DD'),
            ((table, "--user", "2", "--item", "2"), 2, "--user and --item both name column 2"),
            ((twice, "--on-error", "skip"), 65, "2 ratings repeat a user and item; choose --duplicates sum, last, first"),
            ((rows, "--format", "svmlight", "--dry-run"), 0,
             "the first column is taken as 1, because no index 0 occurs")):
        said = pack(*arguments, "-o", space("messages"), expect=code)
        check(words in said, words, said)
    said = pack(twice, "--on-error", "skip", "--duplicates", "last", "-o", space("skipped"))
    check(said.count("twice.csv:5:5") == 1, "bad lines were printed twice", said)
    layers = anndata.AnnData(sp.random(6, 5, 0.5, "csr", dtype="f4"))
    layers.layers["counts"] = layers.X.copy()
    layers.write_h5ad(space("layers.h5ad"))
    said = pack(space("layers.h5ad"), "--layer", "cnt", "-o", space("layer"), expect=65)
    check("has no /layers/cnt; it has /layers/counts" in said, said)


def test_quoted_commas_are_kept_as_pandas_wrote_them(space):
    titles = ["Heat", 'American President, The', 'a "quoted" one', "6\" nails, boxed", "plain"]
    table = pd.DataFrame({"user": [1, 1, 2, 2, 3], "item": titles, "rating": [5.0, 4, 3, 2, 1], "genre": "x", "note": "y"})
    table.to_csv(space("pandas.csv"), index=False)
    said = pack(space("pandas.csv"), "-o", space("pandas"))
    expected = {(str(row.user), row.item): row.rating for row in table.itertuples()}
    check(Pack(space("pandas")).x == expected, Pack(space("pandas")).x)
    check("fields stand in quotes (detected)" in said and said.count("not used: genre, note") == 1, said)
    said = pack(space("pandas.csv"), "-o", space("none"), "--quote", "none", expect=1)
    check("pandas.csv:3:" in said and "expected 5 columns" in said and "found 6" in said and "--quote double" in said, said)


def test_a_header_of_unknown_names_is_no_rating(space):
    said = pack(write(space, "two.csv", "buyer,thing\n1,2\n3,4\n"), "-o", space("two"), expect=65)
    check("--header yes" in said and "--header no" in said and "buyer" in said, said)
    said = pack(write(space, "three.csv", "buyer,thing,how\n1,2,\n3,4,5\n"), "-o", space("three"), expect=65)
    check("buyer" in said and "--header no" in said, said)
    pack(space("two.csv"), "-o", space("yes"), "--header", "yes", "--user", "buyer", "--item", "thing")
    check(set(Pack(space("yes")).x) == {("1", "2"), ("3", "4")}, Pack(space("yes")).x)
    pack(space("two.csv"), "-o", space("no"), "--header", "no")
    check(("buyer", "thing") in Pack(space("no")).x, Pack(space("no")).x)


def test_a_near_name_of_a_column_is_suggested_not_taken(space):
    source = write_csv(space("r.csv"), random_ratings(4, count=50))
    said = pack(source, "-o", space("near"), "--item", "movie_id", expect=65)
    check('did you mean "movieId"?' in said, said)
    said = pack(source, "-o", space("exact"), "--item", "movieId")
    check("item movieId," in said and "user userId (by name)" in said, said)
    make_images(space("photos"), 9)
    said = run("pack-images", space("photos"), "--labels", space("photos/labels.csv"), "--label-column", "Label", "-o", space("i"), expect=65)
    check('did you mean "label"?' in said, said)


def test_leaving_one_out_without_times_asks_for_an_order(space):
    source = write(space, "r.csv", "".join(f"{user},{(user + at) % 5},5\n" for user in range(9) for at in range(5)))
    said = pack(source, "-o", space("none"), "--split-by", "leave-one-out", expect=2)
    check("--time" in said and "--split-order random or input" in said, said)
    pack(source, "-o", space("input"), "--split-by", "leave-one-out", "--split-order", "input")
    check(set(Pack(space("input/test")).held_out) == {(str(user), str((user + 4) % 5)) for user in range(9)}, "not the last ones")
    pack(source, "-o", space("random"), "--split-by", "leave-one-out", "--split-order", "random")
    check(len(Pack(space("random/test")).held_out) == 9, "not one each")


def test_dates_and_milliseconds_are_split_as_seconds_are(space):
    ratings = [(user, item, value, 1_300_000_000 + 86_400 * time) for user, item, value, time in random_ratings(5, count=900)]
    cut = datetime.fromtimestamp(1_300_000_000 + 86_400 * 400, timezone.utc).isoformat()
    def as_date(time):
        return datetime.fromtimestamp(time, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    ways = {"seconds": lambda time: time, "milliseconds": lambda time: time * 1000 + 7, "microseconds": lambda time: time * 10**6,
            "dates": as_date}
    packs = {}
    for name, way in ways.items():
        source = write_csv(space(name + ".csv"), [(*rating[:3], way(rating[3])) for rating in ratings], "userId,movieId,stars,date")
        said = pack(source, "-o", space(name), "--split-by", "time", "--before", cut)
        packs[name] = {part: (Pack(space(f"{name}/{part}")).x, Pack(space(f"{name}/{part}")).held_out) for part in ("train", "test")}
        check(packs[name] == packs["seconds"] and packs[name]["test"][1], name)
        check((f"times are {name}" in said) == name.endswith("conds") - (name == "seconds") and "time date (by name)" in said, said)
    said = pack(space("seconds.csv"), space("milliseconds.csv"), "-o", space("both"), "--duplicates", "last", expect=65)
    check("milliseconds.csv: times are milliseconds" in said and "seconds.csv are seconds" in said, said)


def test_user_items_of_equally_long_lines_are_no_table(space):
    lists = {user: [10 * user + at for at in range(1, 6)] for user in range(2)}
    text = "".join(f"{user} {' '.join(map(str, items))}\n" for user, items in lists.items())
    pack(write(space, "long.txt", text), "-o", space("long"))
    expected = {(str(user), str(item)) for user, items in lists.items() for item in items}
    check(set(Pack(space("long")).x) == expected, Pack(space("long")).x)
    short = write(space, "short.txt", "0 1 2 3\n1 4 5 6\n")
    said = pack(short, "-o", space("short"), expect=65)
    check("--format text or user-items" in said, said)
    pack(short, "-o", space("items"), "--format", "user-items")
    check(len(Pack(space("items")).x) == 6, Pack(space("items")).x)
    pack(short, "-o", space("table"), "--format", "text")
    pack(short, "-o", space("named"), "--value", "3")
    check(Pack(space("table")).x == Pack(space("named")).x == {("0", "1"): 2, ("1", "4"): 5}, Pack(space("named")).x)


def test_values_that_no_float_holds_are_errors_unless_rounding_is_asked_for(space):
    def write_npz(name, values):
        sp.save_npz(space(name), sp.csr_matrix(np.array([[1, values[0]], [values[1], 2]])))
        return space(name)

    def write_h5ad(name, values):
        anndata.AnnData(sp.csr_matrix(np.array([[1, values[0]], [values[1], 2]], float)), dtype="f8").write_h5ad(space(name))
        return space(name)

    market = "%%MatrixMarket matrix coordinate real general\n2 2 4\n1 1 1\n1 2 16777217\n2 1 1e-60\n2 2 2\n"
    sources = {
        "r.csv": write(space, "r.csv", "user,item,value\n0,0,1\n0,1,16777217\n1,0,1e-60\n1,1,2\n"),
        "r.mtx": write(space, "r.mtx", market), "r.svm": write(space, "r.svm", "0 0:1 1:16777217\n0 0:1e-60 1:2\n"),
        "i8.npz": write_npz("i8.npz", np.array([16777217, 2**60 + 1])), "f8.npz": write_npz("f8.npz", [16777217.0, 1e-60]),
        "r.h5ad": write_h5ad("r.h5ad", [16777217.0, 1e-60])}
    for name, source in sources.items():
        code, said = pack(source, "-o", space(name + ".auto"), expect=(1, 65))
        check("16777217" in said and name in said and "--values f32" in said, name, said)
        check(code == 65 or f"{name}:3:" in said or f"{name}:4:" in said or f"{name}:1:" in said, said)
        pack(source, "-o", space(name + ".f32"), "--values", "f32")
        values = set(Pack(space(name + ".f32")).x.values())
        check({1, 2, 16777216} <= values, name, values)
    code, said = pack(sources["r.csv"], "-o", space("skip"), "--on-error", "skip", "--max-errors", "2", expect=(0,))
    check(set(Pack(space("skip")).x.values()) == {1, 2} and "2 bad lines" in said, said)
    plays = write(space, "plays.csv", "user,item,plays\n1,1,16777216\n1,1,1\n1,2,3\n")
    said = pack(plays, "-o", space("sum"), "--duplicates", "sum", expect=65)
    check("the sum 16777217" in said and "--values f32" in said, said)
    pack(plays, "-o", space("sum"), "--duplicates", "sum", "--values", "f32")


def test_a_frozen_type_of_values_stores_the_same_bytes_or_names_the_line_that_does_not_fit(space):
    ratings = random_ratings(5)
    source = write_csv(space("r.csv"), ratings)
    small = ["--chunk-rows", "16", "--part-bytes", "3000"]
    pack(source, "-o", space("detected"), *small)
    pack(source, "-o", space("frozen"), "--values", "u8:0.5", *small)
    before, after = (Pack(space(name)) for name in ("detected", "frozen"))
    check(after.manifest["values"] == before.manifest["values"] == {"type": "u8", "scale": 0.5}, after.manifest["values"])
    check(after.manifest["spec"]["values"] == "u8:0.5" and before.manifest["spec"]["values"] == "auto", after.manifest["spec"])
    check(all((a.chunks == b.chunks).all() for a, b in zip(after.shards, before.shards)), "chunks differ")
    for memory in ("2G", "40M"):
        pack(source, "-o", space("wide"), "--values", "u16:0.25", "--memory-bytes", memory, "--threads", "1", "--force", *small)
        wide = Pack(space("wide"))
        check(wide.manifest["values"] == {"type": "u16", "scale": 0.25} and wide.x == before.x, memory)
    ones = write(space, "ones.csv", "user,item\n" + "".join(f"{r[0]},{r[1]}\n" for r in ratings))
    pack(ones, "-o", space("ones"), "--values", "u8", *small)
    check(Pack(space("ones")).manifest["values"]["type"] == "u8" and set(Pack(space("ones")).x.values()) == {1}, "ones")


def test_a_value_that_does_not_fit_the_frozen_type_is_named_with_its_line(space):
    rows = [f"u{n},i{n % 7},{n % 5 + 1}" for n in range(300_000)]
    rows[250_000] = "u7,i7,300"
    said = pack(write(space, "late.csv", "user,item,value\n" + "\n".join(rows)), "-o", space("out"), "--values", "u8",
                "--on-error", "skip", expect=65)
    check("late.csv:250002: value: expected a whole number from 0 to 255 (--values u8), found 300" in said, said)
    quoted = write(space, "quoted.csv", 'user,item,value\n"a\nb",1,2\n"c",2,2.5\n')
    said = pack(quoted, "-o", space("out"), "--values", "u8", "--quote", "double", expect=65)
    check("quoted.csv:4: value:" in said and "found 2.5" in said, said)
    netflix = write(space, "n.txt", "1:\n5,3,2005-01-01\n2:\n5,4.5,2005-01-01\n")
    for flags in (["--value", "none"], ["--time", "none"]):
        text = pack(netflix, "-o", space("out"), *flags, "--format", "netflix", expect=2)
        check(f"{flags[0]}: has no meaning for netflix, only for text" in text, text)
    check("n.txt:4: value:" in pack(netflix, "-o", space("out"), "--values", "u8", "--format", "netflix", expect=65), netflix)
    sp.save_npz(space("m.npz"), sp.csr_matrix(np.array([[1, 2], [0, 2.5]])))
    said = pack(space("m.npz"), "-o", space("out"), "--values", "u8", expect=65)
    check("m.npz: user 1, item 1: value:" in said and "found 2.5" in said, said)
    plays = write(space, "plays.csv", "user,item,plays\nx,1,200\nx,1,100\n")
    said = pack(plays, "-o", space("out"), "--values", "u8", "--duplicates", "sum", expect=65)
    check("user x, item 1: rating: expected a whole number from 0 to 255 (--values u8), found 300" in said, said)
    dropped = write(space, "dropped.csv", "user,item,value\nx,1,0.5\nx,2,0\nx,3,4\n")
    pack(dropped, "-o", space("kept"), "--values", "u8", "--above", "0.9")
    check(Pack(space("kept")).x == {("x", "3"): 4}, Pack(space("kept")).x)
    said = pack(dropped, "-o", space("out"), "--values", "u8:half", expect=2)
    check("expected auto, none, u8, u16 or f32" in said and "found 'u8:half'" in said, said)
    check(not os.path.exists(space("out")), "an output was made")


def test_a_user_had_a_number_in_place_of_its_id(space):
    source = write(space, "sum.csv", "user,item,plays\nu7,i3,16777216\nu7,i3,1\n")
    said = pack(source, "-o", space("out"), "--duplicates", "sum", expect=65)
    check("user u7, item i3: the sum 16777217 is no 32-bit float; --values f32" in said, said)


def test_rows_of_two_matrices_with_one_name_became_one_user(space):
    head = "%%MatrixMarket matrix coordinate integer general\n3 4 2\n"
    files = []
    for sample in ("a", "b"):
        os.makedirs(space(sample))
        files.append(write(space, f"{sample}/m.mtx", f"{head}1 {'ab'.index(sample) + 1} 5\n{'ab'.index(sample) + 2} 4 1\n"))
    said = pack(*files, "-o", space("out"), expect=65)
    check("1 row has the name or number of a row in an earlier input, the first is 1; --shared-rows" in said, said)
    pack(*files, "-o", space("joined"), "--shared-rows", "join")
    check(Pack(space("joined")).x == {("1", "1"): 5, ("2", "4"): 1, ("1", "2"): 5, ("3", "4"): 1}, "joined")
    pack(*files, "-o", space("apart"), "--shared-rows", "file-name")
    apart = Pack(space("apart"))
    check(apart.x == {("a/m.mtx/1", "1"): 5, ("a/m.mtx/2", "4"): 1, ("b/m.mtx/1", "2"): 5, ("b/m.mtx/3", "4"): 1}, apart.x)
    check(apart.manifest["spec"]["shared-rows"] == "file-name", apart.manifest["spec"])


def test_tables_of_movielens_lost_their_first_row(space):
    write(space, "u.data", "".join(f"{user}\t{item}\t3\t88125094{user}\n" for user in range(1, 7) for item in range(1, 5)))
    users = write(space, "u.user", "".join(f"{user}|{20 + user}|M\n" for user in range(1, 7)))
    items = write(space, "u.item", "".join(f"{item}|Caf\xe9 {item}||0|0\n" for item in range(1, 5)).encode("latin-1"))
    said = pack(space("u.data"), "-o", space("out"), "--user-columns", users, "--item-columns", items, "--encoding", "latin-1",
                "--dry-run", expect=65)
    check("no name; --table-header no" in said or "two columns" in said, said)
    said = pack(space("u.data"), "-o", space("out"), "--user-columns", users, expect=65)
    check('its field of the ids is "1"' in said and "--table-header no" in said, said)
    pack(space("u.data"), "-o", space("out"), "--user-columns", users, "--item-columns", items, "--table-header", "no",
         "--encoding", "latin-1")
    check("1,21,M" in open(space("out/users.csv")).read() and "1,Caf\xe9 1,,0,0" in open(space("out/items.csv")).read(), "rows")


def json_lines(ratings):
    """Lines as Amazon's, whose reviews hold what ends fields elsewhere."""
    text = 'a "b", {c}\\n\n\u00e9 \U0001f600 ' * 40
    return "".join(json.dumps({"overall": value, "reviewerID": f"A{user}", "style": {"Size:": [1, {"x": "]"}]}, "asin": item,
                               "reviewText": text, "unixReviewTime": 10**9 + time}, ensure_ascii=item % 2 == 0) + "\n"
                   for user, item, value, time in ratings)


def test_json_lines_make_the_pack_of_the_same_table(space):
    ratings = random_ratings(7, count=3000)
    table = "".join(f"A{user},{item},{value},{10**9 + time}\n" for user, item, value, time in ratings)
    write(space, "r.csv", "reviewerID,asin,overall,unixReviewTime\n" + table)
    text = json_lines(ratings)
    write(space, "r.json", text)
    write(space, "r.jsonl.gz", gzip.compress(text.encode()))
    write(space, "lists", "\ufeff\n  \n" + text.replace("\n", "\r\n"))
    flags = ["--keep-times", "--split-by", "time", "--test", "0.2", "--chunk-rows", "16"]
    pack(space("r.csv"), "-o", space("csv"), *flags)
    expected = {name: Pack(space("csv/" + name)).x for name in ("train", "test")}
    for number, name in enumerate(("r.json", "r.jsonl.gz", "lists")):
        out = space(f"json{number}")
        said = pack(space(name), "-o", out, *flags, "--threads", str(number % 2 + 1), "--memory-bytes", "40M")
        check("columns: user reviewerID (by name), item asin (by name), value overall (by name), time unixReviewTime" in said, said)
        check({part: Pack(f"{out}/{part}").x for part in expected} == expected, name)
    counts = []
    for name in ("r.csv", "r.json"):
        pack(space(name), "--count-items", "-o", space("counts.csv"), "--force")
        with open(space("counts.csv")) as file:
            counts.append(file.read())
    check(counts[0] == counts[1] and len(counts[0].splitlines()) > 50, counts)
    said = pack(space("r.json"), "-o", space("named"), "--user", "reviewerID", "--item", "style.Size:", expect=1)
    check('r.json:1:' in said and 'item: expected an id, found "["' in said, said)
    said = pack(space("r.json"), "-o", space("dry"), "--item", "asni", "--dry-run", expect=65)
    check('no field "asni" for --item among "overall", "reviewerID", "style.Size:", "asin"' in said and '"asin"?' in said, said)
    titles = write(space, "titles.csv", "asin,title\n" + "".join(f"{item},T{item}\n" for item in {rating[1] for rating in ratings}))
    pack(space("r.json"), "-o", space("titles"), "--item-columns", titles, "--duplicates", "last")
    check(",T" in open(space("titles/items.csv")).read(), "titles")
    said = pack(space("r.json"), "-o", space("no"), "--item-columns", write(space, "meta.json", '{"asin": 7, "title": "x"}\n'), expect=65)
    check("meta.json: holds JSON, expected a table; of JSON lines: (echo asin,title; jq -r" in said, said)
    said = pack(space("r.json"), space("r.csv"), "-o", space("both"), expect=65)
    check("r.csv: is text, the inputs before are json-lines" in said, said)


def test_json_lines_that_give_no_rating_are_counted_by_reason(space):
    lines = json_lines(random_ratings(8, count=400)).splitlines(keepends=True)
    lines[3], lines[7], lines[9] = '{"overall": 5}\n', lines[7][:100] + "\n", lines[9].replace('"overall": ', '"overall": null, "x": ')
    path = write(space, "r.json", "".join(lines))
    said = pack(path, "-o", space("out"), expect=1)
    check('r.json:4:1: user: expected one field "reviewerID", found none' in said, said)
    said = pack(path, "-o", space("out"), "--on-error", "skip", "--max-errors", "3")
    check("3 bad lines" in said and len(Pack(space("out")).x) == 397, said)
    for flag in (["--delimiter", ","], ["--header", "no"], ["--quote", "none"]):
        check(f"{flag[0]}: has no meaning for json-lines, only for text" in pack(path, "-o", space("no"), *flag, expect=2), flag)
    cut = gzip.compress("".join(lines[20:]).encode())
    check("is truncated" in pack(write(space, "cut.json.gz", cut[:-20]), "-o", space("no"), expect=65), "cut")
    late = "".join(lines[20:]) + lines[20].replace("A", "\0", 1)
    code, said = pack(write(space, "nul.json", late), "-o", space("no"), expect=(1,))
    check("a control character in a text" in said, said)
    said = pack(write(space, "latin.json", "".join(lines[20:]).encode() + b'{"overall": "\xe9"}\n'), "-o", space("no"), expect=1)
    check("line: expected UTF-8; --encoding latin-1" in said, said)


def test_json_that_has_no_object_on_each_line_names_the_way(space):
    for name, text, way in (("array.json", '[{"user": 1, "item": 2}]', "jq -c '.[]' FILE"),
                            ("pretty.json", '{\n "user": 1\n}\n', "jq -c . FILE"),
                            ("text.json", "user,item\n1,2\n", 'expected a JSON object, found "user,item"')):
        said = pack(write(space, name, text), "-o", space("out"), expect=65)
        check(name in said and way in said, said)
    steam = write(space, "steam.json",
                  "{u'username': u'Chaos \\'Syren\\'', u'product_id': u'725280', u'hours': 0.1, u'early_access': False}\n")
    said = pack(steam, "-o", space("out"), expect=65)
    command = re.search(r"(python3 -c '.*) < FILE \| pack-sparse - \.\.\.", said)
    with open(steam) as file:
        converted = subprocess.run(command[1], shell=True, stdin=file, stdout=subprocess.PIPE, text=True, check=True).stdout
    pack(write(space, "converted.json", converted), "-o", space("steam"), "--value", "hours")
    check(set(Pack(space("steam")).x) == {("Chaos 'Syren'", "725280")}, Pack(space("steam")).x)


if __name__ == "__main__":
    run_tests(globals())
