"""The command that pack-export prints: it packs a tar or a folder again with the same labels in the same order."""
import os
import shlex
import subprocess

import numpy as np
import pytest

import chunkhit


def packed_again(text, tmp_path):
    """The pack that the printed command makes."""
    arguments = shlex.split(text)
    assert arguments[0] == "pack-images" and arguments[-1] == "PACK"
    pack = tmp_path / f"again-{len(list(tmp_path.iterdir()))}"
    subprocess.run([os.path.join(os.environ["CHUNKHIT_TOOLS"], arguments[0]), *arguments[1:-1], pack, "--progress", "none"], check=True,
                   stdout=subprocess.DEVNULL)
    return chunkhit.ImageDataset(pack)


@pytest.mark.parametrize("header, row, options", [
    ("file,x,y", "{n},1", dict(label_column="x,y")),
    ("file,label,age", "{name},{n}", dict(keep_columns="age")),
    ("file,label", "{n}", {}),
    ("file,label", "0{n}", dict(label_type="numbers")),
    ("file,a b,c-d", "{n},{blank}", dict(label_column=["a b", "c-d"], missing="nan")),
    ("file,other", "1", dict(label_type="none", keep_columns="other")),
])
@pytest.mark.parametrize("ending", [".tar", ""])
def test_the_printed_command_packs_it_again(packs, tmp_path, header, row, options, ending):
    files = sorted(str(path.relative_to(packs / "images")) for path in (packs / "images").rglob("*.png"))[:20]
    rows = [f"{file}," + row.format(n=n % 7, name=("bee", "ant", "10")[n % 3], blank=n % 2 or "") for n, file in enumerate(files)]
    (tmp_path / "rows.csv").write_text("\n".join([header, *rows]) + "\n")
    chunkhit.pack_images(packs / "images", tmp_path / "pack", labels=tmp_path / "rows.csv", **options)
    report = chunkhit.export_pack(tmp_path / "pack", tmp_path / f"out{ending}")
    before, after = chunkhit.ImageDataset(tmp_path / "pack"), packed_again(report["command"], tmp_path)
    np.testing.assert_array_equal(before.labels(), after.labels())
    np.testing.assert_array_equal(before[:][0], after[:][0])
    assert before.classes == after.classes
    assert [each["name"] for each in before.info.get("columns") or []] == [each["name"] for each in after.info.get("columns") or []]
    assert "command" not in chunkhit.export_pack(tmp_path / "pack", tmp_path / "out.npz")


def test_images_without_labels_were_in_a_folder_named_after_their_class_id(packs, tmp_path):
    chunkhit.pack_images(packs / "images", tmp_path / "pack", label_type="none")
    report = chunkhit.export_pack(tmp_path / "pack", tmp_path / "out")
    assert not [path for path in (tmp_path / "out").iterdir() if path.is_dir()]
    assert (tmp_path / "out/labels.csv").read_text().splitlines()[1].split(",")[1] == ""
    assert len(packed_again(report["command"], tmp_path)) == 100
