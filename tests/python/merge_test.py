"""Merged packs are read like any pack: labels by name, ratings by their ids, orders and states as of several packs."""
import shutil

import numpy as np
import pytest

import chunkhit
from classes_test import GRAYS, assert_labels_are_those_of_pixels, write_images


def pack_classes(folder, name, classes, **options):
    images = write_images(folder / f"{name}-images", classes)
    chunkhit.pack_images(images, folder / name, channels="gray", **options)
    return folder / name


@pytest.fixture(params=["hdf5", "shard"])
def day_packs(request, tmp_path):
    """Three packs of other classes and other sizes of chunks."""
    classes = {"a": ("cat", "dog"), "b": ("ant", "dog", "eel"), "c": ("bee", "cat")}
    return [pack_classes(tmp_path, name, classes[name], container=request.param, chunk_samples=size)
            for name, size in zip("abc", (4, 3, 7))]


@pytest.mark.parametrize("shuffle", ["none", "window", "global"])
def test_labels_are_those_of_the_pixels(day_packs, tmp_path, shuffle):
    info = chunkhit.merge_packs(day_packs, tmp_path / "all")
    assert [each["name"] for each in info["classes"]] == ["cat", "dog", "ant", "eel", "bee"]
    assert [each["samples"] for each in info["sources"]] == [12, 18, 12]
    for cache in ("none", "decoded"):
        loader = chunkhit.ImageLoader(tmp_path / "all", batch_size=5, shuffle=shuffle, cache=cache)
        assert_labels_are_those_of_pixels(loader)
        seen = sorted(gray for images, _ in loader.epoch(1) for gray in images[:, 0, 0, 0].tolist())
        assert seen == sorted(6 * [GRAYS[name] for name in ("cat", "dog", "ant", "dog", "eel", "bee", "cat")])
    assert chunkhit.verify_pack(tmp_path / "all")["problems"] == []


def test_a_dataset_gives_the_samples_of_the_packs_in_order(day_packs, tmp_path):
    chunkhit.merge_packs(day_packs, tmp_path / "all")
    merged = chunkhit.ImageDataset(tmp_path / "all")
    names = {each["id"]: each["name"] for each in merged.info["classes"]}
    pixels, labels = [], []
    for pack in day_packs:
        dataset = chunkhit.ImageDataset(pack)
        own = {each["id"]: each["name"] for each in dataset.info["classes"]}
        pixels.append(dataset[:][0])
        labels += [own[label] for label in dataset.labels().tolist()]
    assert np.array_equal(merged[:][0], np.concatenate(pixels))
    assert [names[label] for label in merged.labels().tolist()] == labels


def test_a_merged_pack_is_read_beside_another(day_packs, tmp_path):
    chunkhit.merge_packs(day_packs[1:], tmp_path / "two")
    loader = chunkhit.ImageLoader([day_packs[0], tmp_path / "two"], batch_size=7, shuffle="global")
    assert_labels_are_those_of_pixels(loader)
    loader = chunkhit.ImageLoader([tmp_path / "two", day_packs[0]], batch_size=7, shuffle="global")
    assert_labels_are_those_of_pixels(loader)


def test_a_state_from_before_an_append_is_refused(day_packs, tmp_path):
    train = day_packs[0]
    loader = chunkhit.ImageLoader(train, batch_size=2)
    before = next(iter(loader))[0].copy()
    state = loader.state_dict()
    chunkhit.merge_packs([train, day_packs[1]], train)
    assert np.array_equal(next(iter(loader.epoch(0)))[0], before)  # what is open stays
    appended = chunkhit.ImageLoader(train, batch_size=2)
    assert len(appended.info["sources"]) == 2
    with pytest.raises(chunkhit.Error, match="state"):
        appended.load_state_dict(state)
    assert_labels_are_those_of_pixels(appended)


def test_mean_and_std_are_those_of_all_pixels(day_packs, tmp_path):
    info = chunkhit.merge_packs(day_packs, tmp_path / "all")
    pixels = chunkhit.ImageDataset(tmp_path / "all")[:][0] / 255
    assert np.allclose(info["mean"], pixels.mean(), atol=1e-12) and np.allclose(info["std"], pixels.std(), atol=1e-9)


def test_validation_of_a_merged_split_is_normalised_like_its_training(tmp_path):
    for day, classes in (("a", ("cat", "dog")), ("b", ("dog", "eel"))):
        images = write_images(tmp_path / f"{day}-images", classes, count=20)
        chunkhit.pack_images(images, tmp_path / day, channels="gray", split={"train": 0.7, "val": 0.3})
    for name in ("train", "val"):
        chunkhit.merge_packs([tmp_path / "a" / name, tmp_path / "b" / name], tmp_path / "all" / name)
    train, val = (chunkhit.pack_info(tmp_path / "all" / name) for name in ("train", "val"))
    assert val["normalize"] == {"from": "train", "mean": train["mean"], "std": train["std"]} == train["normalize"]
    for name in ("train", "val"):
        assert chunkhit.verify_pack(tmp_path / "all" / name)["problems"] == []


def test_ratings_of_merged_packs(ratings, tmp_path):
    folder, _ = ratings
    lines = (folder / "ratings.csv").read_text().splitlines()
    for part in (0, 1):
        rows = [line for line in lines[1:] if int(line.split(",")[0][1:]) % 2 == part]
        (tmp_path / f"{part}.csv").write_text("\n".join([lines[0], *rows]) + "\n")
        reuse = dict(reuse_ids=folder / "whole")
        chunkhit.pack_sparse(tmp_path / f"{part}.csv", tmp_path / str(part), values="u8:0.5", chunk_rows=8 << part, **reuse)
    chunkhit.merge_packs([tmp_path / "0", tmp_path / "1"], tmp_path / "all")
    merged, whole = chunkhit.SparseDataset(tmp_path / "all"), chunkhit.SparseDataset(folder / "whole")
    assert len(merged) == len(whole) and list(merged.column_ids()) == list(whole.column_ids())
    for loader in (chunkhit.SparseLoader(tmp_path / "all", batch_size=9, shuffle="window"),
                   chunkhit.SparseLoader(tmp_path / "all", batch_size=50, shuffle="global")):
        for batch in loader.epoch(0):
            own = whole.rows_of([loader.row_id(int(row)) for row in batch.rows])
            assert np.array_equal(batch.x, whole[own.tolist()])
    counts = chunkhit.SparseLoader(folder / "whole").item_counts()
    assert np.array_equal(chunkhit.SparseLoader(tmp_path / "all").item_counts(), counts)
    chunkhit.merge_packs([tmp_path / "feed", tmp_path / "0"], tmp_path / "feed")  # the first day of a feed
    chunkhit.merge_packs([tmp_path / "feed", tmp_path / "1"], tmp_path / "feed")
    assert len(chunkhit.SparseDataset(tmp_path / "feed")) == len(whole)
    state = chunkhit.SparseLoader(tmp_path / "0", batch_size=3).state_dict()
    shutil.copytree(tmp_path / "0", tmp_path / "grown")
    chunkhit.merge_packs([tmp_path / "grown", tmp_path / "1"], tmp_path / "grown")
    with pytest.raises(chunkhit.Error, match="state"):
        chunkhit.SparseLoader(tmp_path / "grown", batch_size=3).load_state_dict(state)


def test_a_pack_merged_into_itself_stays_as_it_is(tmp_path):
    pack_classes(tmp_path, "a", ["cat", "dog"])
    before = (tmp_path / "a/manifest.json").read_bytes()
    chunkhit.merge_packs([tmp_path / "a"], tmp_path / "a")
    assert (tmp_path / "a/manifest.json").read_bytes() == before


def test_the_first_append_takes_a_missing_output_as_empty(tmp_path, day_packs, caplog):
    day, feed = day_packs[0], tmp_path / "feed"
    chunkhit.merge_packs([feed, day], feed)
    assert "holds no pack yet: it is taken as empty" in caplog.text
    assert chunkhit.pack_info(feed)["samples"] == chunkhit.pack_info(day)["samples"]
    chunkhit.merge_packs([feed, day], feed)  # the same command again: nothing is left to do
    assert chunkhit.pack_info(feed)["samples"] == chunkhit.pack_info(day)["samples"]
    with pytest.raises(chunkhit.Error, match="no such folder"):
        chunkhit.merge_packs([tmp_path / "feeed", day], feed)


def test_says_which_classes_a_merge_adds(tmp_path, logs):
    pack_classes(tmp_path, "a", ["cat", "dog"])
    pack_classes(tmp_path, "b", ["ant", "dog"])
    with logs("2 classes of .*a become 3: it does not have ant"):
        chunkhit.merge_packs([tmp_path / "a", tmp_path / "b"], tmp_path / "all")


def test_counted_items_let_parts_be_packed_one_by_one(tmp_path):
    parts = []
    for part in range(3):
        parts.append(tmp_path / f"{part}.csv")
        parts[-1].write_text("user,item,rating\n" + "".join(f"{part}-{user},{item},{item % 4 + 0.5}\n" for user in range(9)
                                                            for item in range(user, user + part + 4)))
    found = chunkhit.count_items(parts, tmp_path / "items.csv", min_user=4)
    assert found == {"items": 14, "values": "u8:0.5"}
    for part, path in enumerate(parts):
        assert chunkhit.count_items(path, tmp_path / f"items-{part}.csv", min_user=4)["values"] == "u8:0.5"
    summed = chunkhit.count_items([tmp_path / f"items-{part}.csv" for part in range(3)], tmp_path / "sum.csv")
    assert summed == {"items": 14, "values": None}
    assert sorted((tmp_path / "sum.csv").read_text().split()[1:]) == sorted((tmp_path / "items.csv").read_text().split()[1:])
    for part, path in enumerate(parts):
        chunkhit.pack_sparse(path, tmp_path / f"{part}", min_user=4, reuse_ids=tmp_path / "items.csv", values=found["values"])
    chunkhit.merge_packs([tmp_path / f"{part}" for part in range(3)], tmp_path / "merged")
    # A part that the rules leave nothing: the run ended with an error of a pack that is missing.
    assert chunkhit.pack_sparse(parts[0], tmp_path / "none", min_user=10_000, reuse_ids=tmp_path / "items.csv", values=found["values"]) == {}
    assert not (tmp_path / "none" / "manifest.json").exists()
    chunkhit.pack_sparse(parts, tmp_path / "whole", min_user=4)
    assert (tmp_path / "whole/items.csv").read_text() == (tmp_path / "merged/items.csv").read_text()
    merged, whole = chunkhit.SparseDataset(tmp_path / "merged"), chunkhit.SparseDataset(tmp_path / "whole")
    assert {merged.row_id(row): merged[row].tolist() for row in range(len(merged))} == {
        whole.row_id(row): whole[row].tolist() for row in range(len(whole))}


def test_own_sizes_do_not_merge_with_one_shape(packs, tmp_path):
    """The advice was to give images of their own sizes the container of the others, which they cannot have."""
    chunkhit.pack_images(packs / "images", tmp_path / "own", sizes="own")
    chunkhit.pack_images(packs / "images", tmp_path / "fixed", resize=8)
    with pytest.raises(chunkhit.Error, match="samples are of one shape, expected of their own sizes as in .*/own: pack one of them again with "
                                             "the other's sizes"):
        chunkhit.merge_packs([tmp_path / "own", tmp_path / "fixed"], tmp_path / "all")
