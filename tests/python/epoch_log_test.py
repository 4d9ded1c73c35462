"""log_epochs: a record of each epoch, of that epoch alone."""
import ast
import importlib.util
import inspect
import itertools
import json
import pathlib
import time
import typing

import pytest

import chunkhit

from error_test import raised

KEYS = list(typing.get_type_hints(chunkhit.EpochRecord))


def test_a_function_gets_a_record_of_each_epoch(packs):
    loader, records = chunkhit.ImageLoader(packs / "hdf5", batch_size=16, rank=1, world_size=2), []
    assert len(list(loader.epoch(0))) == 4
    loader.log_epochs(records.append)
    for epoch, pause in ((1, 0.2), (2, 0)):
        begin = time.monotonic()
        for _ in loader.epoch(epoch):
            time.sleep(pause)
        seconds = time.monotonic() - begin
        assert list(records[-1]) == KEYS and [records[-1][key] for key in KEYS[:5]] == [epoch, 1, True, 4, 50]
        assert 4 * pause <= records[-1]["seconds"] <= seconds and records[-1]["wait_seconds"] <= seconds - 4 * pause
        assert records[-1]["wait_fraction"] == records[-1]["wait_seconds"] / records[-1]["seconds"]
        assert records[-1]["samples_per_second"] == 50 / records[-1]["seconds"]
    assert len(records) == 2 and all("training waited" in record["verdict"] for record in records)


def test_what_comes_between_epochs_does_not_count(packs):
    loader, records = chunkhit.ImageLoader(packs / "hdf5"), []
    loader.log_epochs(records.append)
    for epoch in range(2):
        begin = time.monotonic()
        list(loader.epoch(epoch))
        assert records[epoch]["seconds"] <= time.monotonic() - begin
        time.sleep(0.5)


def test_an_epoch_that_is_left_is_recorded_when_another_begins_or_the_loader_is_closed(packs):
    loader, records = chunkhit.ImageLoader(packs / "hdf5", batch_size=16), []
    loader.log_epochs(records.append)
    for epoch in range(2):
        assert len(list(itertools.islice(loader.epoch(epoch), 3))) == 3
    loader.epoch(2)  # of which nothing is taken
    list(loader.epoch(3))
    next(loader.epoch(4))
    loader.close()
    loader.close()
    assert [(record["epoch"], record["complete"], record["batches"]) for record in records] == [
        (0, False, 3), (1, False, 3), (3, True, 7), (4, False, 1)]


def test_statistics_that_are_reset_meanwhile_count_from_there(packs):
    loader, records = chunkhit.ImageLoader(packs / "hdf5", batch_size=16), []
    loader.log_epochs(records.append)
    list(loader.epoch(0))
    for index, _ in enumerate(loader.epoch(1)):
        if index == 2:
            loader.reset_stats()
    assert records[1]["batches"] == 4


def test_a_file_gets_lines_of_json_and_keeps_those_that_it_has(packs, tmp_path):
    for run in range(2):
        loader = chunkhit.ImageLoader(packs / "hdf5", batch_size=16)
        loader.log_epochs(tmp_path / "epochs.jsonl")
        for epoch in range(3):
            list(loader.epoch(epoch))
    records = [json.loads(line) for line in (tmp_path / "epochs.jsonl").read_text().splitlines()]
    assert [record["epoch"] for record in records] == [0, 1, 2, 0, 1, 2] and all(list(record) == KEYS for record in records)
    if importlib.util.find_spec("pandas"):
        import pandas
        table = pandas.read_json(tmp_path / "epochs.jsonl", lines=True)
        assert (list(table), table["batches"].tolist()) == (KEYS, [7] * 6)
    loader.log_epochs(tmp_path / "gone" / "epochs.jsonl")
    assert str(tmp_path / "gone") in raised("cannot_write", list, loader.epoch(3))


def test_standard_error_gets_a_line(ratings, capfd):
    loader = chunkhit.SparseLoader(ratings[0] / "whole", batch_size=25)
    loader.log_epochs("stderr")
    list(loader.epoch(7))
    loader.log_epochs(None)
    list(loader.epoch(8))
    text, = capfd.readouterr().err.splitlines()
    assert text.startswith("epoch 7: 9 batches, 211 samples in ") and "training waited" in text


class Writer:
    """Takes what torch.utils.tensorboard.SummaryWriter takes."""

    def __init__(self):
        self.found = []

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        self.found.append((tag, global_step, scalar_value >= 0))


@pytest.mark.parametrize("target_of", [lambda writer: writer, lambda writer: writer.add_scalar])
def test_a_summary_writer_gets_scalars_by_epoch(packs, target_of):
    loader, writer = chunkhit.ImageLoader(packs / "hdf5"), Writer()
    loader.log_epochs(target_of(writer))
    for epoch in (3, 4):
        list(loader.epoch(epoch))
    names = ("seconds", "wait_seconds", "wait_fraction", "transform_seconds", "samples_per_second")
    assert writer.found == [(f"chunkhit/{name}", epoch, True) for epoch in (3, 4) for name in names]


@pytest.mark.parametrize("ahead", [0, 2])
def test_counts_what_training_waited_for_a_transform(packs, ahead):
    pytest.importorskip("torch")
    import chunkhit.torch
    pauses = []

    def slow(images):
        if not pauses:  # longer than all before, however slow the machine is
            pauses.append(max(1, 3 * (time.monotonic() - begin)))
            time.sleep(pauses[0])
        return images

    loader, records = chunkhit.torch.ImageLoader(packs / "hdf5", batch_size=100, transform=slow, transform_ahead=ahead), []
    loader.log_epochs(records.append)
    for epoch in range(2):
        begin = time.monotonic()
        assert [len(labels) for _, labels in loader.epoch(epoch)] == [100] and records[epoch]["complete"]
        assert records[epoch]["transform_seconds"] <= time.monotonic() - begin
    assert records[0]["transform_seconds"] >= pauses[0] and records[0]["wait_fraction"] > 0.5
    assert "the transform takes longest" in records[0]["verdict"]


def test_the_writer_of_torch_takes_what_the_one_here_takes():
    """TensorBoard, which torch's SummaryWriter needs to be imported, is not in Debian 12: its source says what it takes."""
    torch = pytest.importorskip("torch")
    path = pathlib.Path(torch.__file__).parent / "utils/tensorboard/writer.py"
    writer, = (each for each in ast.walk(ast.parse(path.read_text()))
               if isinstance(each, ast.ClassDef) and each.name == "SummaryWriter")
    method, = (each for each in writer.body if getattr(each, "name", "") == "add_scalar")
    assert [each.arg for each in method.args.args] == list(inspect.signature(Writer.add_scalar).parameters)


@pytest.mark.parametrize("target", [5, [], object()])
def test_says_what_nothing_can_be_written_to(packs, target):
    with pytest.raises(TypeError, match="log_epochs: expected"):
        chunkhit.ImageLoader(packs / "hdf5").log_epochs(target)
