"""Plans from Python: packs that tasks write are those of one call, and loaders say what is missing."""
import os
import signal
import subprocess
import threading

import pytest

import chunkhit
from error_test import raised

HOW = dict(chunk_samples=7, part_bytes=2100, split={"train": 0.7, "val": 0.3})


def files_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != "run.json"}


def test_tasks_write_what_one_call_packs(packs, tmp_path):
    root, out = packs / "images", tmp_path / "out"
    whole = chunkhit.pack_images(root, tmp_path / "whole", **HOW)
    status = chunkhit.pack_images(root, out, plan=3, **HOW)
    assert status == chunkhit.plan_status(out)
    assert (status["tasks"], status["rows"], status["parts_done"], status["missing_tasks"]) == (3, 100, 0, [0, 1, 2])
    status = chunkhit.run_plan(out, task=1)
    assert status["missing_tasks"] == [0, 2] and status["parts_done"] > 0 and status["finished"] is False
    threads = [threading.Thread(target=chunkhit.run_plan, args=[out], kwargs=dict(task=[0, 2])) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert chunkhit.plan_status(out)["missing_tasks"] == []
    events = []
    info = chunkhit.run_plan(out, progress=events.append)
    assert sorted(info) == ["train", "val"] and info == chunkhit.pack_info(out)
    done = chunkhit.plan_status(out)
    assert done["finished"] and done["missing_tasks"] == [] and done["parts_done"] == done["parts"] == sum(
        len(each["parts"]) for each in info.values())
    assert files_of(out) == files_of(tmp_path / "whole") and sorted(whole) == sorted(info)
    assert chunkhit.run_plan(out) == info == chunkhit.pack_images(root, out, plan=5, **HOW)


def test_readers_of_a_plan_say_how_far_it_is(packs, tmp_path):
    out = tmp_path / "out"
    parts = chunkhit.pack_images(packs / "images", out, plan=100, **HOW)["parts"]
    chunkhit.run_plan(out, task=range(2))
    for path in (out, out / "train"):
        for reader in (chunkhit.ImageLoader, chunkhit.ImageDataset, chunkhit.SparseLoader):
            message = raised("bad_data", reader, path)
            assert f"{path}: no finished pack: planned, 2 of {parts} parts done: run pack-run {out}" in message
    (out / "plan.json").write_text("{}")
    assert f"planned: run pack-run {out}" in raised("bad_data", chunkhit.ImageLoader, out)


@pytest.mark.parametrize("arguments, message", [
    (dict(task=3), "task: found 3, expected 0 to 2"), (dict(task=[]), "task: expected at least one number"),
    (dict(task=-1), "task: expected a whole number"), (dict(task="0"), "task: expected a whole number"),
    (dict(memory_bytes=1000), "memory_bytes")])
def test_what_makes_no_sense_is_a_usage_error(packs, tmp_path, arguments, message):
    chunkhit.pack_images(packs / "images", tmp_path / "out", plan=3, **HOW)
    assert message in raised("usage", chunkhit.run_plan, tmp_path / "out", **arguments)


def test_a_folder_without_a_plan_and_a_dry_run_have_none(packs, tmp_path):
    assert raised("bad_data", chunkhit.plan_status, tmp_path).startswith(str(tmp_path))
    assert "holds no plan.json" in raised("bad_data", chunkhit.run_plan, tmp_path)
    assert "exclude each other" in raised("usage", chunkhit.pack_images, packs / "images", tmp_path / "out", plan=2, dry_run=True)
    assert "at least one task" in raised("usage", chunkhit.pack_images, packs / "images", tmp_path / "out", plan=0, **HOW)
    with pytest.raises(TypeError, match="^folder: expected a path"):
        chunkhit.run_plan(7)


def test_ctrl_c_ends_waiting_for_a_plan_that_is_not_there(tmp_path):
    """It was heard after three seconds, and the folder called bad."""
    command = [os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-run"), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
        while run.poll() is None:  # until it catches signals
            with open(f"/proc/{run.pid}/status") as status:
                caught = next(int(line.split()[1], 16) for line in status if line.startswith("SigCgt"))
            if caught >> (signal.SIGINT - 1) & 1:
                break
        run.send_signal(signal.SIGINT)
        assert "holds no plan" not in run.communicate(timeout=60)[1]
    assert run.returncode == 130
