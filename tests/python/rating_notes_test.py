"""What pack-sparse says of tables that it may read in another way than was meant."""
import lzma
import os
import subprocess
import zipfile

import h5py
import numpy as np
import pytest

import chunkhit


def said(*arguments, code=0):
    done = subprocess.run([os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-sparse"), *map(str, arguments), "--progress", "none"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == code, done.stdout
    return done.stdout


AMAZON = [("B00004YUTF", "A2SUAM1J3GNN3B"), ("0151004714", "AAP7PPBU72QFM1"), ("B0000AQRSU", "A3S5KWSXVJ7XQ2")]


def test_users_and_items_of_amazon_were_swapped_with_a_note_by_order_only(tmp_path):
    (tmp_path / "2018.csv").write_text("".join(f"{item},{user},{n}.0,12345678{n:02}\n" for n, (item, user) in enumerate(AMAZON, 1)))
    (tmp_path / "2014.csv").write_text("".join(f"{user},{item},{n}.0,12345678{n:02}\n" for n, (item, user) in enumerate(AMAZON, 1)))
    text = said(tmp_path / "2018.csv", "-o", tmp_path / "swapped")
    assert "warning: column 1 is read as users, but looks like products (0151004714)" in text
    assert "--user 2 --item 1 takes them the other way" in text
    assert "looks like products" not in said(tmp_path / "2018.csv", "--user", 2, "--item", 1, "-o", tmp_path / "right")
    assert "looks like products" not in said(tmp_path / "2014.csv", "-o", tmp_path / "other")


def test_notes_were_printed_by_the_command_alone(tmp_path, caplog):
    (tmp_path / "table.csv").write_text("userId,itemId,rating\n" + "".join(f"u{n % 3}, i{n},{n % 5 + 1}\n" for n in range(9)))
    with caplog.at_level("INFO", logger="chunkhit.pack"):
        chunkhit.pack_sparse(tmp_path / "table.csv", tmp_path / "out", progress=False)
    notes = [record.getMessage() for record in caplog.records if record.levelname == "INFO"]
    assert notes[0].startswith("columns: user userId (by name), item itemId (by name)")
    assert any("9 item ids begin or end with blanks" in note for note in notes), notes
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_a_rule_that_left_nothing_had_no_name(tmp_path):
    (tmp_path / "table.csv").write_text("user,item\n" + "".join(f"u{n % 7},i{n}\n" for n in range(40)))
    text = said(tmp_path / "table.csv", "--preset", "vae-cf", "--validation", "0.1", "--test", "0.1", "-o", tmp_path / "out", code=65)
    assert "--above 3.5 leaves 0 of 40 ratings (those without values are 1): no ratings are left for training" in text


def test_of_several_inputs_the_note_showed_only_the_last(tmp_path):
    (tmp_path / "a.csv").write_text("item,user,rating\n" + "".join(f"i{n},u{n % 3},{n % 5}\n" for n in range(9)))
    (tmp_path / "b.csv").write_text("user,item,rating\n" + "".join(f"v{n % 3},i{n},{n % 5}\n" for n in range(9)))
    text = said(tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "a.csv", "--duplicates", "last", "-o", tmp_path / "out")
    assert "columns: user user (by name), item item (by name), value rating (by name)" in text
    (tmp_path / "d.csv").write_text("".join(f"w{n % 3},i{n},{n % 5}\n" for n in range(9)))
    text = said(tmp_path / "d.csv", tmp_path / "b.csv", "-o", tmp_path / "mixed")
    assert "columns: user 1 (by order)" in text and f"{tmp_path / 'b.csv'}: columns: user user (by name)" in text


def test_an_input_without_ratings_became_ones_among_ratings(tmp_path):
    rated, bare, empty = tmp_path / "rated.csv", tmp_path / "bare.csv", tmp_path / "empty.csv"
    rated.write_text("user,item,rating\na,1,5\nb,2,3\n")
    bare.write_text("user,item\nc,1\nc,2\n")
    empty.write_text("")
    for inputs, what in (((rated, bare), "no column of values, expected one"), ((bare, rated), "a column of values, expected none")):
        text = said(*inputs, "-o", tmp_path / "out", code=65)
        assert f"{inputs[1]}: line 1: {what} as in the input before; give --value" in text
    said(rated, bare, "--value", "none", "-o", tmp_path / "ones")
    assert chunkhit.pack_info(tmp_path / "ones")["matrices"][0]["nnz"] == 4
    said(empty, rated, empty, "-o", tmp_path / "beside")
    text = said("--split-by", "given", "--train-file", rated, "--test-file", bare, "-o", tmp_path / "given", code=65)
    assert "no column of values" in text
    (tmp_path / "a.mtx").write_text("%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 1 4\n2 2 2\n")
    (tmp_path / "b.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 1\n2 2\n")
    text = said(tmp_path / "a.mtx", tmp_path / "b.mtx", "--shared-rows", "file-name", "-o", tmp_path / "m", code=65)
    assert "b.mtx: is a pattern, without values, expected values as in the input before" in text


def test_fractions_of_a_second_before_1970_did_not_order(tmp_path):
    (tmp_path / "old.csv").write_text("user,item,rating,time\n" + "".join(
        f"u{user},i{item},1,-200000000.{9 - (item + user) % 8}\n" for user in range(8) for item in range(8)))
    said(tmp_path / "old.csv", "--split-by", "leave-one-out", "-o", tmp_path / "out")
    held = chunkhit.SparseDataset(tmp_path / "out" / "test", format="csr")
    items, users = held.column_ids(), held.row_ids()
    rows = held[list(range(8))][1]
    for row, user in enumerate(users):  # -200000000.2 is later than -200000000.9
        latest = items[rows.indices[rows.indptr[row]]]
        assert (int(latest[1:]) + int(user[1:])) % 8 == 7


@pytest.mark.parametrize("limit, advised", [(0, True), (4, False), (20, False)])
def test_the_advice_of_min_item_came_back_where_it_was_followed(tmp_path, limit, advised):
    random = np.random.default_rng(3)
    lines = [f"u{user},i{item},1\n" for user in range(60) for item in random.integers(0, 30, 12)]
    lines += [f"u{user},new{user}-{item},1\n" for user in range(60) for item in range(9)]  # most are one user's alone
    (tmp_path / "table.csv").write_text("user,item,rating\n" + "".join(sorted(set(lines))))
    text = said(tmp_path / "table.csv", "--split-by", "users", "--test", 20, "--min-item", limit, "-o", tmp_path / "out")
    assert ("--min-item 5, say" in text) == advised, text


def test_a_split_by_time_in_which_no_test_user_trained_named_no_way_out(tmp_path):
    (tmp_path / "table.csv").write_text("user,item,rating,time\n" + "".join(
        f"{'old' if day < 50 else 'new'}{day},i{day % 7},1,{1_500_000_000 + day * 86400}\n" for day in range(100)))
    text = said(tmp_path / "table.csv", "--split-by", "time", "--test", "0.5", "-o", tmp_path / "out", code=2)
    assert "test gets no rows" in text and "--split-by ratio tests users that train" in text


def test_ids_with_blanks_around_them_were_other_ids_without_a_word(tmp_path):
    (tmp_path / "table.csv").write_text("user,item,rating\n1,2,1\n1, 2,2\n2,nan ,3\n2,two words,4\n")
    text = said(tmp_path / "table.csv", "-o", tmp_path / "out")
    assert 'note: 2 item ids begin or end with blanks, as " 2": with and without them, ids are different' in text
    assert "user id" not in text


def test_a_second_file_with_another_separator_was_not_split(tmp_path):
    (tmp_path / "train.tsv").write_text("user\titem\trating\n" + "".join(f"{n % 3}\ti{n}\t{n % 5 + 1}\n" for n in range(9)))
    (tmp_path / "test.csv").write_text("user,item,rating\n" + "".join(f"{n % 3},j{n},{n % 5 + 1}\n" for n in range(9)))
    said(tmp_path / "train.tsv", tmp_path / "test.csv", "-o", tmp_path / "out")
    assert chunkhit.pack_info(tmp_path / "out")["matrices"][0]["nnz"] == 18
    assert {"i1", "j1"} <= set(chunkhit.SparseDataset(tmp_path / "out").column_ids())


def test_a_bad_value_of_a_line_with_quotes_was_at_column_1(tmp_path):
    for line, at in (('"a,b","c","x"', 11), ('"a","d""e",y', 12)):
        (tmp_path / "table.csv").write_text(f'user,item,rating\n"a","b",1\n{line}\n')
        assert f":3:{at}: value: expected a number" in said(tmp_path / "table.csv", "-o", tmp_path / "out", code=1)


def test_a_zip_of_a_table_was_called_no_npz(tmp_path):
    with zipfile.ZipFile(tmp_path / "table.zip", "w") as file:
        file.writestr("table.csv", "user,item,rating\n1,2,3\n")
    text = said(tmp_path / "table.zip", "-o", tmp_path / "out", code=65)
    assert "is a zip of table.csv, which is not read; unpack it: unzip -p" in text


def test_a_cut_xz_named_no_reason_but_no_progress(tmp_path):
    packed = lzma.compress("".join(f"{n * 7919 % 100003},{n * 104729 % 99991},3\n" for n in range(20000)).encode())
    (tmp_path / "table.csv.xz").write_bytes(packed[:len(packed) // 2])
    assert "the file ends inside its compressed data" in said(tmp_path / "table.csv.xz", "-o", tmp_path / "out", code=65)


def test_one_type_of_features_of_a_10x_file(tmp_path):
    types = ["Gene Expression", "Antibody Capture", "Gene Expression"]
    with h5py.File(tmp_path / "cells.h5", "w") as file:
        for name, values in (("data", [1, 2, 3, 4]), ("indices", [0, 1, 2, 1]), ("indptr", [0, 2, 4]), ("shape", [3, 2]),
                             ("barcodes", [b"c1", b"c2"]), ("features/id", [b"g1", b"ab", b"g2"]),
                             ("features/feature_type", [name.encode() for name in types])):
            file[f"matrix/{name}"] = np.array(values)
    text = said(tmp_path / "cells.h5", "-o", tmp_path / "all")
    assert "features of several types: Antibody Capture (1), Gene Expression (2); --feature-type takes one" in text
    text = said(tmp_path / "cells.h5", "--feature-type", "Gene Expression", "-o", tmp_path / "genes")
    info = chunkhit.pack_info(tmp_path / "genes")
    assert "several types" not in text and info["rows"] == 2 and info["columns"] == 2
    assert info["spec"]["feature-type"] == "Gene Expression" and "feature-type" not in chunkhit.pack_info(tmp_path / "all")["spec"]
    items = (tmp_path / "genes/items.csv").read_text()
    assert "g1" in items and "g2" in items and "ab" not in items
    text = said(tmp_path / "cells.h5", "--feature-type", "gene", "-o", tmp_path / "out", code=65)
    assert "--feature-type gene: found Antibody Capture (1), Gene Expression (2)" in text
    (tmp_path / "table.csv").write_text("user,item\n1,2\n")
    text = said(tmp_path / "table.csv", "--feature-type", "x", "-o", tmp_path / "out", code=2)
    assert "--feature-type: has no meaning for text, only for hdf5" in text


def test_genes_of_a_loom_file_became_users(tmp_path):
    with h5py.File(tmp_path / "cells.loom", "w") as file:
        file["matrix"] = np.array([[1, 0], [0, 2], [3, 4]], np.float32)  # genes × cells
        file["row_attrs/Gene"], file["col_attrs/CellID"] = np.array([b"g1", b"g2", b"g3"]), np.array([b"c1", b"c2"])
    text = said(tmp_path / "cells.loom", "-o", tmp_path / "out", code=65)
    assert "is a loom file, whose rows are genes" in text and "--layer /matrix and --transpose" in text
    said(tmp_path / "cells.loom", "--layer", "/matrix", "--transpose", "-o", tmp_path / "out")
    assert chunkhit.pack_info(tmp_path / "out")["rows"] == 2


def test_a_table_with_letters_as_quotes_did_not_name_the_way_out(tmp_path):
    (tmp_path / "table.csv").write_text("user,item,rating\n1,a,3\n1,b,2\n")
    (tmp_path / "items.csv").write_text('item,title\na,"Heat" of the night\nb,other\n')
    text = said(tmp_path / "table.csv", "--item-columns", tmp_path / "items.csv", "-o", tmp_path / "out", code=65)
    assert "text behind a closing quote; double a quote inside a quoted field, or give --table-quote none" in text
    said(tmp_path / "table.csv", "--item-columns", tmp_path / "items.csv", "--table-quote", "none", "-o", tmp_path / "out")


def test_an_output_with_the_name_of_a_file_became_a_folder_without_a_word(tmp_path):
    (tmp_path / "table.csv").write_text("user,item,rating\n1,a,3\n1,b,2\n")
    assert "would be a folder, whose parts are the files: leave out .h5" in said(tmp_path / "table.csv", "-o", tmp_path / "q.h5", code=2)
    assert not (tmp_path / "q.h5").exists()


def test_dropped_zeros_are_said(tmp_path, caplog):
    """Of clicks of 0 and 1 the zeros were gone without a word in Python."""
    (tmp_path / "clicks.csv").write_text("user,item,value\na,x,0\na,y,1\nb,x,1\nb,y,0\n")
    chunkhit.pack_sparse(tmp_path / "clicks.csv", tmp_path / "clicks")
    assert "2 ratings of 0 left out; zeros keep stores them" in caplog.text
    caplog.clear()
    chunkhit.pack_sparse(tmp_path / "clicks.csv", tmp_path / "kept", zeros="keep")
    assert "of 0" not in caplog.text
