"""Packs of ratings that are read as one: their items must be the same, their counts are those of all."""
import os
import subprocess

import numpy as np
import pytest

import chunkhit


def pack(folder, name, ratings, **options):
    (folder / f"{name}.csv").write_text("user,item,rating\n" + "".join(f"{u},{i},1\n" for u, i in ratings))
    chunkhit.pack_sparse(folder / f"{name}.csv", folder / name, **options)
    return folder / name


FIRST = [("u1", "ant"), ("u1", "bee"), ("u2", "ant"), ("u2", "cat"), ("u3", "ant"), ("u3", "bee")]


def test_packs_with_other_items_were_read_into_the_same_columns(tmp_path):
    first = pack(tmp_path, "first", FIRST)
    other = pack(tmp_path, "other", [("u4", "ant"), ("u4", "dog"), ("u5", "ant"), ("u5", "eel"), ("u6", "dog")])
    for reader in (chunkhit.SparseLoader, chunkhit.SparseDataset):
        with pytest.raises(chunkhit.Error, match='other: column 1 has item "dog", expected item "bee" as in .*first.*reuse_ids'):
            reader([first, other])
    same = pack(tmp_path, "same", [("u4", "cat"), ("u5", "cat"), ("u5", "bee")], reuse_ids=first)
    assert len(chunkhit.SparseDataset([first, same])) == 5


def test_counts_of_items_were_those_of_the_first_pack_alone(tmp_path):
    first = pack(tmp_path, "first", FIRST)
    second = pack(tmp_path, "second", [("u4", "cat"), ("u5", "cat"), ("u5", "bee")], reuse_ids=first)
    loader = chunkhit.SparseLoader([first, second])
    counts = {loader.column_id(column): int(count) for column, count in enumerate(loader.item_counts())}
    assert counts == {"ant": 3, "bee": 3, "cat": 3}
    drawn = chunkhit.PopularitySampler(loader.item_counts()).draw([], 3000, seed=1)
    assert np.bincount(drawn).min() > 800


def test_packs_of_a_split_have_the_counts_of_one_training_matrix(ratings, tmp_path):
    chunkhit.pack_sparse(ratings[0] / "ratings.csv", tmp_path / "split", split_by="users", test=40, validation=40)
    train = chunkhit.SparseLoader(tmp_path / "split" / "train").item_counts()
    both = chunkhit.SparseLoader([tmp_path / "split" / "validation", tmp_path / "split" / "test"])
    np.testing.assert_array_equal(both.item_counts(), train)


def test_the_steps_of_a_split_are_shown_once(ratings, tmp_path):
    """Each pack of a split showed the same table."""
    chunkhit.pack_sparse(ratings[0] / "ratings.csv", tmp_path / "split", split_by="users", test=40, validation=40, min_user=2)
    command = [os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-info"), tmp_path / "split"]
    shown = subprocess.check_output(command, text=True)
    assert shown.count("users        items        ratings\n") == 1 and shown.count("steps      as above\n") == 2, shown
    alone = subprocess.check_output([command[0], tmp_path / "split/test"], text=True)
    assert alone.count("users        items        ratings\n") == 1 and "as above" not in alone
