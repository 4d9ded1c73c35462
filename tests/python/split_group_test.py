"""Splits by groups: all images of a patient in one pack, and a warning where they are not."""
import os
import subprocess

import numpy as np
import pytest
from PIL import Image

import chunkhit
from chunkhit.report import write_report
from error_test import raised


@pytest.fixture(scope="module")
def scans(tmp_path_factory):
    """300 images of 40 patients, whose shares of two classes differ."""
    folder = tmp_path_factory.mktemp("scans")
    random = np.random.default_rng(5)
    patients = np.sort(random.integers(0, 40, 300))
    with open(folder / "scans.csv", "w") as file:
        file.write("file,label,patient,age,sex\n")
        for number, patient in enumerate(patients):
            Image.new("RGB", (8, 8), (number % 256, patient, 0)).save(folder / f"{number:03}.png")
            label = "sick" if random.random() < patient / 50 else "well"
            file.write(f"{number:03}.png,{label},P{patient:03},{20 + patient},{'fm'[patient % 2]}\n")
    return folder


def pack(scans, out, **options):
    return chunkhit.pack_images(scans, out, labels=scans / "scans.csv", split={"train": 0.7, "val": 0.3}, **options)


def patients_of(pack):
    dataset = chunkhit.ImageDataset(pack)
    return dataset.column("patient"), dataset.labels()


def test_a_split_put_one_patient_into_both_packs(scans, tmp_path):
    for container in ("hdf5", "shard"):
        pack(scans, tmp_path / container, split_group="patient", container=container)
        (train, train_labels), (val, val_labels) = (patients_of(tmp_path / container / name) for name in ("train", "val"))
        assert not set(train) & set(val) and len(train) + len(val) == 300
        assert abs(len(val) / 300 - 0.3) < 0.03  # as well as whole patients allow
        assert abs(val_labels.mean() - train_labels.mean()) < 0.1  # and each class
    again = patients_of(tmp_path / "hdf5" / "val")[0]
    assert sorted(again) == sorted(val)  # by seed alone
    pack(scans, tmp_path / "other", split_group="patient", seed=9)
    assert sorted(patients_of(tmp_path / "other" / "val")[0]) != sorted(val)


def command(scans, *arguments):
    return subprocess.run([os.path.join(os.environ["CHUNKHIT_TOOLS"], "pack-images"), scans, "--labels", scans / "scans.csv",
                           "--split", "train=0.7,val=0.3", "--progress", "none", *map(str, arguments)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def test_nothing_said_that_packs_share_patients(scans, tmp_path):
    said = command(scans, "--keep-columns", "patient,age,sex", "-o", tmp_path / "leaks")
    assert 'column "patient": ' in said and " in several packs of the split, as P0" in said
    assert "--split-group patient keeps the images of a value in one pack" in said
    assert 'column "age"' not in said and 'column "sex"' not in said  # no ids
    said = command(scans, "--keep-columns", "patient", "--split-group", "patient", "-o", tmp_path / "apart")
    assert "in several packs" not in said
    assert "--split-group patient keeps groups whole: " in said and " %, not 70.0 %" in said


def test_a_plan_has_the_same_packs(scans, tmp_path):
    pack(scans, tmp_path / "at-once", split_group="patient")
    pack(scans, tmp_path / "planned", split_group="patient", plan=3)
    chunkhit.run_plan(tmp_path / "planned")
    for name in ("train", "val"):
        for file in sorted(os.listdir(tmp_path / "at-once" / name)):
            if file.startswith(("part", "manifest")) and not file.endswith(".inputs"):
                assert (tmp_path / "at-once" / name / file).read_bytes() == (tmp_path / "planned" / name / file).read_bytes()


def test_images_without_a_group_are_groups_of_their_own(tmp_path):
    for number in range(40):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(tmp_path / f"{number}.png")
    rows = "".join(f"{n}.png,a,{'' if n % 2 else 'same'}\n" for n in range(40))
    (tmp_path / "list.csv").write_text("file,label,group\n" + rows)
    chunkhit.pack_images(tmp_path, tmp_path / "out", labels=tmp_path / "list.csv", split={"train": 0.5, "val": 0.5},
                         split_group="group")
    columns = [list(chunkhit.ImageDataset(tmp_path / "out" / name).column("group")) for name in ("train", "val")]
    assert sorted(column.count("same") for column in columns) == [0, 20]
    assert [len(column) for column in columns] == [20, 20]


def test_says_what_it_is_for(scans, tmp_path):
    assert "split_group: is for split" in raised("usage", chunkhit.pack_images, scans, tmp_path / "out",
                                                 labels=scans / "scans.csv", split_group="patient")
    assert "nobody" in raised("bad_data", pack, scans, tmp_path / "out", split_group="nobody")


def test_the_report_found_nothing_odd_in_packs_that_share_patients(scans, tmp_path):
    pack(scans, tmp_path / "leaks", keep_columns=["patient", "age", "sex"])
    pack(scans, tmp_path / "apart", keep_columns=["patient", "age", "sex"], split_group="patient")
    found = {name: " ".join(write_report([tmp_path / name / "train", tmp_path / name / "val"], tmp_path / f"{name}.html"))
             for name in ("leaks", "apart")}
    assert "Column patient: " in found["leaks"] and "in several packs of the split" in found["leaks"]
    assert "Column age" not in found["leaks"] and "Column sex" not in found["leaks"]
    assert "Column" not in found["apart"]
