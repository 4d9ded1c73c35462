"""Several fields beside the images, by name: packed, read, planned and refused."""
import functools
import json
import os
import shutil

import chunkhit
import h5py
import numpy as np
import pytest
from PIL import Image

from mask_tars_test import write_tar
from masks_test import smooth

COUNT, SIZE = 24, (48, 40)  # of samples: width, height
KINDS = ("images", "masks", "parts", "depth")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """images/, masks/, parts/ (255 - mask) and depth/ (255 - image)."""
    root = tmp_path_factory.mktemp("fields")
    random = np.random.default_rng(5)
    for number in range(COUNT):
        height, width = (int(side) for side in random.integers(60, 90, 2))
        image = np.stack([smooth(random, height, width, 256) for _ in range(3)], -1)
        mask = smooth(random, height, width, 6)
        for kind, array in zip(KINDS, (image, mask, 255 - mask, 255 - image)):
            path = root / kind / "ab"[number % 2] / f"{number:03}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(array).save(path)
    return root


def pairs(root):
    return {"mask": root / "masks", "parts": root / "parts", "depth": f"{root / 'depth'}:view"}


def pack(root, out, **options):
    report = chunkhit.pack_images(root / "images", out, progress=False, **{"pair": pairs(root), "resize": SIZE, **options})
    assert chunkhit.verify_pack(out)["problems"] == []
    return report


def parts_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name.startswith("part-") or path.name == "manifest.json"}


@pytest.mark.parametrize("container, codec", [("hdf5", "none"), ("hdf5", "deflate"), ("shard", "photo"), ("shard", "none")])
@pytest.mark.parametrize("layout", ["nhwc", "nchw"])
def test_each_field_is_that_of_pillow(folders, tmp_path, container, codec, layout):
    pack(folders, tmp_path / "out", container=container, codec=codec, layout=layout, chunk_samples=5)
    dataset = chunkhit.ImageDataset(tmp_path / "out", fields=["depth", "image", "parts", "mask"])
    assert dataset.info["fields"] == {"mask": "mask", "parts": "mask", "depth": "view"}
    for key, sample in zip(dataset.keys(), dataset):
        for kind, found in zip(("depth", "images", "parts", "masks"), sample):
            filter = Image.BILINEAR if kind in ("depth", "images") else Image.NEAREST
            expected = np.asarray(Image.open(folders / kind / key).resize(SIZE, filter))
            np.testing.assert_array_equal(found, expected.transpose(2, 0, 1) if layout == "nchw" and expected.ndim == 3 else expected)
    one = dataset.field("depth", [3])
    np.testing.assert_array_equal(one[0], dataset[3][0])


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_fields_have_the_crops_and_flips_of_their_images(folders, tmp_path, dtype):
    pack(folders, tmp_path / "out", container="shard")
    loader = chunkhit.ImageLoader(tmp_path / "out", batch_size=7, shuffle="global", dtype=dtype,
                                  augment=dict(flip_horizontal=0.5, crop_height=20, crop_width=30, random_crop=True),
                                  **({"normalize": dict(mean=[0.5] * 3, std=[1] * 3)} if dtype == "float32" else {}))
    seen = 0
    for batch in loader:
        images, labels = batch
        assert images.shape == (len(labels), 20, 30, 3) and batch["mask"].shape == (len(labels), 20, 30)
        np.testing.assert_array_equal(batch["mask"], batch.masks)
        np.testing.assert_array_equal(batch["parts"], 255 - batch["mask"])
        # Halves are rounded up, also those of the inverse.
        if dtype == "uint8":
            np.testing.assert_allclose(batch["depth"].astype(int), 255 - images.astype(int), atol=1)
        else:
            np.testing.assert_allclose(batch["depth"], -images, atol=1.01 / 255)
        assert set(batch.fields) == {"mask", "parts", "depth"} and batch.views is None
        with pytest.raises(KeyError, match="text: the batch has image, label, mask, parts, depth"):
            batch["text"]
        seen += len(labels)
    assert seen == COUNT


def test_tensors_have_the_fields_too(folders, tmp_path):
    torch = pytest.importorskip("torch")
    from chunkhit.torch import ImageDataset, ImageLoader

    pack(folders, tmp_path / "out")

    def doubled(images, *, batch):
        return {"image": images * 2, "depth": batch["depth"] + 1}

    for batch in ImageLoader(tmp_path / "out", batch_size=6, dtype="float32", transform=doubled):
        plain = next(iter(ImageLoader(tmp_path / "out", batch_size=COUNT, dtype="float32")))
        numbers = batch.samples
        assert torch.equal(batch.images, plain.images[numbers] * 2) and torch.equal(batch["depth"], plain["depth"][numbers] + 1)
        assert torch.equal(batch["parts"], plain["parts"][numbers]) and batch["parts"].dtype == torch.uint8
    image, depth, parts = ImageDataset(tmp_path / "out", fields=["image", "depth", "parts"])[2]
    assert image.shape == depth.shape and parts.shape == (SIZE[1], SIZE[0])


def test_what_h5py_and_the_manifest_show(folders, tmp_path):
    pack(folders, tmp_path / "out", order="input")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["version"] == 5 and manifest["spec"]["pair"] == "mask=folder:mask,parts=folder:mask,depth=folder:view"
    assert manifest["sample"]["fields"] == [{"name": "mask", "role": "mask"}, {"name": "parts", "role": "mask"}, {"name": "depth", "role": "view"}]
    part = tmp_path / "out" / "part-00000.h5"
    single = chunkhit.ImageDataset(part)
    assert single.info["fields"] == {"mask": "mask", "parts": "mask", "depth": "view"}
    with h5py.File(part) as file:
        for name, dataset in (("images", "image"), ("masks", "mask"), ("parts", "parts"), ("depth", "depth")):
            expected = single[:][0] if dataset == "image" else single.field(dataset, range(COUNT))
            np.testing.assert_array_equal(file[name][:], expected)


def test_a_plan_packs_the_same_bytes_from_folders_elsewhere(folders, tmp_path):
    pack(folders, tmp_path / "whole", part_bytes=60_000)
    chunkhit.pack_images(folders / "images", tmp_path / "planned", pair=pairs(folders), resize=SIZE, part_bytes=60_000, plan=2)
    plan = json.loads((tmp_path / "planned" / "plan.json").read_text())
    assert plan["masks"] == [str(folders / kind) for kind in ("masks", "parts", "depth")]
    with pytest.raises(chunkhit.Error, match="the plan has no field 'text', but mask, parts, depth"):
        chunkhit.run_plan(tmp_path / "planned", task=0, pair={"text": folders / "depth"})
    with pytest.raises(chunkhit.Error, match="depth: is repeated"):
        chunkhit.run_plan(tmp_path / "planned", task=0, pair=[f"depth={folders}/depth", f"depth={folders}/parts"])
    with pytest.raises(chunkhit.Error, match="/parts: the mask of ./....png is another file than when it was planned; each field needs its own folder") as caught:
        chunkhit.run_plan(tmp_path / "planned", task=0, pair={"mask": folders / "parts", "parts": folders / "masks"})
    assert caught.value.code == "usage"
    shutil.copytree(folders / "depth", tmp_path / "deep")
    chunkhit.run_plan(tmp_path / "planned", task=0, pair={"depth": f"{tmp_path}/deep:view"})
    chunkhit.run_plan(tmp_path / "planned")
    assert parts_of(tmp_path / "planned") == parts_of(tmp_path / "whole")


@pytest.mark.parametrize("field, kind", [("mask", "masks"), ("parts", "parts"), ("depth", "depth")])
def test_a_changed_field_is_packed_again(folders, tmp_path, field, kind):
    """Also where an image is a reject for an earlier field."""
    shutil.copytree(folders, tmp_path / "in")
    os.remove(tmp_path / "in" / "masks" / "a" / "002.png")

    def packed():
        pack(tmp_path / "in", tmp_path / "out", order="input", max_errors=3)
        return (tmp_path / "out" / "part-00000.h5").stat().st_mtime_ns

    first = packed()
    assert packed() == first, "nothing changed"
    changed = tmp_path / "in" / kind / "b" / "003.png"
    pixels = 255 - np.asarray(Image.open(changed))
    Image.fromarray(pixels).save(changed)
    second = packed()
    assert second > first
    dataset = chunkhit.ImageDataset(tmp_path / "out")
    expected = np.asarray(Image.fromarray(pixels).resize(SIZE, Image.BILINEAR if field == "depth" else Image.NEAREST))
    np.testing.assert_array_equal(dataset.field(field, [dataset.keys().index("b/003.png")])[0], expected)
    of_reject = tmp_path / "in" / "depth" / "a" / "002.png"
    os.utime(of_reject, ns=(1, 1))
    third = packed()
    assert third > second and packed() == third


def test_a_sample_without_a_field_is_a_reject(folders, tmp_path):
    shutil.copytree(folders, tmp_path / "in")
    os.remove(tmp_path / "in" / "depth" / "a" / "000.png")
    Image.new("L", (9, 9)).save(tmp_path / "in" / "parts" / "b" / "001.png")
    pack(tmp_path / "in", tmp_path / "out", max_errors=5)
    rejects = (tmp_path / "out" / "rejects.csv").read_text()
    assert "has no depth: expected a/000.png, or of another extension" in rejects
    assert "its parts b/001.png: has 9 x 9 pixels, expected" in rejects
    assert len(chunkhit.ImageDataset(tmp_path / "out")) == COUNT - 2


@pytest.mark.parametrize("pair, words", [
    (["{0}/masks", "{0}/parts"], "mask: is repeated"),
    (["label={0}/masks"], "label: is the name of something else"),
    (["Depth={0}/depth"], "'Depth': expected a name of up to 32 lower-case letters"),
    (["view={0}/masks:mask"], "view: is the name of a view, found a mask"),
    (["seed={0}/masks"], "seed: is the name of something else"),
    (["depth="], r"expected \[NAME=\]FOLDER\[:view\], found"),
    ([f"m{number}={{0}}/masks" for number in range(9)], "9 fields, expected at most 8"),
])
def test_pairs_that_mean_nothing_are_errors(folders, tmp_path, pair, words):
    with pytest.raises(chunkhit.Error, match=words) as error:
        chunkhit.pack_images(folders / "images", tmp_path / "out", resize=SIZE, pair=[each.format(folders) for each in pair])
    assert error.value.code == "usage"


def test_readers_name_the_fields_that_there_are(folders, tmp_path):
    pack(folders, tmp_path / "out")
    with pytest.raises(chunkhit.Error, match="fields: the samples have image, label, mask, parts, depth, not view"):
        chunkhit.ImageDataset(tmp_path / "out", fields=["image", "view"])
    with pytest.raises(chunkhit.Error, match="read_field: the samples have no field 'view', but mask, parts, depth"):
        chunkhit.ImageDataset(tmp_path / "out").views([0])
    pack(folders, tmp_path / "other", pair={"mask": folders / "masks", "pieces": folders / "parts", "depth": f"{folders / 'depth'}:view"})
    with pytest.raises(chunkhit.Error, match=r"with masks and pieces and depth \(views\), expected .* with masks and parts and depth \(views\)"):
        chunkhit.ImageDataset([tmp_path / "out", tmp_path / "other"])
    before = parts_of(tmp_path / "out")
    for other in ("other", "masked"):
        if other == "masked":
            pack(folders, tmp_path / other, pair=folders / "masks")
        with pytest.raises(chunkhit.Error, match=r"samples of .* with masks.*, .*pack one of them again with the shape, layout and fields"):
            chunkhit.merge_packs([tmp_path / "out", tmp_path / other], tmp_path / "out")
    assert parts_of(tmp_path / "out") == before


def test_a_column_names_the_masks_and_a_folder_has_the_views(folders, tmp_path):
    files = sorted(str(path.relative_to(folders / "images")) for path in (folders / "images").rglob("*.png"))
    (tmp_path / "list.csv").write_text("file,drawn\n" + "".join(f"{file},{file}\n" for file in files))
    pack(folders, tmp_path / "out", labels=tmp_path / "list.csv", mask_column="drawn",
         pair={"depth": f"{folders / 'depth'}:view", "mask": folders / "masks"})
    pack(folders, tmp_path / "folders", pair={"depth": f"{folders / 'depth'}:view", "mask": folders / "masks"})
    named, found = (chunkhit.ImageDataset(tmp_path / name) for name in ("out", "folders"))
    for field in ("mask", "depth"):
        by_key = dict(zip(found.keys(), found.field(field, range(COUNT))))
        for key, pixels in zip(named.keys(), named.field(field, range(COUNT))):
            np.testing.assert_array_equal(pixels, by_key[key])


def stem(key):
    return key.rsplit("/", 1)[-1].split(".")[0]


def rows(root):
    """Of each image: its name, and the paths of what it has."""
    names = sorted(path.relative_to(root / "images") for path in (root / "images").rglob("*.png"))
    return [(str(name), *(root / kind / name for kind in KINDS)) for name in names]


def pack_columns(root, out, **options):
    table = out.with_suffix(".csv")
    table.write_text("file,drawn,bits,deep\n" + "".join(f"{name},{name},{name},depth/{name}\n" for name, *_ in rows(root)))
    chunkhit.pack_images(root / "images", out, labels=table, pair={"mask": root / "masks", "parts": root / "parts", "depth": f"{root}:view"},
                         mask_column={"mask": "drawn", "parts": "bits", "depth": "deep:view"}, progress=False, **options)


def pack_tar(root, out, **options):
    extensions = ("png", "seg.png", "parts.png", "depth.png")
    members = [(f"{name[:-4]}.{extension}", path.read_bytes())
               for name, *paths in rows(root) for extension, path in zip(extensions, paths)]
    write_tar(out.with_suffix(".tar"), members)
    chunkhit.pack_images(out.with_suffix(".tar"), out, mask_column=["seg.png", "parts=parts.png", "depth=depth.png:view"],
                         progress=False, **options)


def pack_written(root, out, **options):
    with chunkhit.ImageWriter(out, **options) as writer:
        for number, (name, image, mask, parts, depth) in enumerate(rows(root)):
            array = np.asarray(Image.open(depth))
            fields = {"parts": np.asarray(Image.open(parts)).astype(np.int64), "depth": depth.read_bytes() if number % 2 else array}
            writer.add(image.read_bytes(), key=name, mask=Image.open(mask), fields=fields)


def pack_samples(root, out, workers=0, **options):
    samples = [dict(image=Image.open(image), label=-1, key=name, drawn=np.asarray(Image.open(mask)),
                    parts=Image.open(parts), deep=np.asarray(Image.open(depth))) for name, image, mask, parts, depth in rows(root)]
    chunkhit.pack_dataset(samples, out, key="key", mask="drawn", fields={"parts": "parts", "depth:view": "deep"}, workers=workers, **options)


def pack_tuples(root, out, **options):
    samples = [(np.asarray(Image.open(image)), -1, name, {"mask": Image.open(mask), "parts": Image.open(parts), "depth": Image.open(depth)})
               for name, image, mask, parts, depth in rows(root)]
    chunkhit.pack_dataset(samples, out, fields=["mask", "parts", "depth"], **options)


def run_planned(make):
    def pack_in_tasks(root, out, **options):
        make(root, out, plan=3, part_bytes=100_000, **options)
        chunkhit.run_plan(out)
    return pack_in_tasks


@pytest.mark.parametrize("make", [
    pack_columns, pack_tar, pack_written, pack_samples, functools.partial(pack_samples, workers=2), pack_tuples, run_planned(pack_columns),
    run_planned(pack_tar)], ids=["columns", "tar", "writer", "dicts", "workers", "tuples", "planned columns", "planned tar"])
def test_all_sources_have_several_fields(folders, tmp_path, make):
    if getattr(make, "keywords", None):
        pytest.importorskip("torch")
    make(folders, tmp_path / "out", resize=SIZE)
    assert chunkhit.verify_pack(tmp_path / "out")["problems"] == []
    pack(folders, tmp_path / "folders")
    names = ["image", "mask", "parts", "depth"]
    made, found = (chunkhit.ImageDataset(tmp_path / name, fields=names) for name in ("out", "folders"))
    assert list(made.info["fields"].items()) == list(found.info["fields"].items()) and len(made) == COUNT
    expected = {stem(key): sample for key, sample in zip(found.keys(), found)}
    for key, sample in zip(made.keys(), made):
        for pixels, other in zip(sample, expected[stem(key)]):
            np.testing.assert_array_equal(pixels, other)


def test_images_of_their_own_sizes_have_several_masks(folders, tmp_path):
    chunkhit.pack_images(folders / "images", tmp_path / "out", pair={"mask": folders / "masks", "parts": folders / "parts"},
                         sizes="own", progress=False)
    assert chunkhit.verify_pack(tmp_path / "out")["problems"] == []
    dataset = chunkhit.ImageDataset(tmp_path / "out", fields=["parts", "mask", "image"])
    for key, sample in zip(dataset.keys(), dataset):
        for kind, pixels in zip(("parts", "masks", "images"), sample):
            np.testing.assert_array_equal(pixels, np.asarray(Image.open(folders / kind / key)))
    crop = dict(resized_crop=dict(height=20, width=24), flip_horizontal=0.5)
    with chunkhit.ImageLoader(tmp_path / "out", batch_size=8, shuffle="window", seed=4, augment=crop, threads=2) as loader:
        for batch in loader:
            assert batch["mask"].shape == (len(batch.samples), 20, 24) and batch["mask"].max() > 0
            np.testing.assert_array_equal(batch["parts"], 255 - batch["mask"])


@pytest.mark.parametrize("words, add", [
    (r"fields: found mask, expected none as before", [dict(), dict(mask=np.zeros((6, 8), np.uint8))]),
    (r"fields: found none, expected mask, depth \(a view\) as before",
     [dict(mask=np.zeros((6, 8), np.uint8), fields={"depth": np.zeros((6, 8, 3), np.uint8)}), dict()]),
    (r"ids: expected class ids, bool or integers, found float32", [dict(fields={"ids": np.zeros((6, 8), np.float32)})]),
    (r"depth: expected uint8, found float32", [dict(fields={"depth": np.zeros((6, 8, 3), np.float32)})]),
    (r"fields: label: is the name of something else", [dict(fields={"label": np.zeros((6, 8), np.uint8)})]),
    (r"fields: expected NAME, NAME:mask or NAME:view, found 'ids:map'", [dict(fields={"ids:map": np.zeros((6, 8), np.uint8)})])])
def test_fields_that_a_writer_refuses(tmp_path, words, add):
    with pytest.raises(chunkhit.Error, match=words), chunkhit.ImageWriter(tmp_path / "out") as writer:
        for keywords in add:
            writer.add(np.zeros((6, 8, 3), np.uint8), **keywords)
    assert not (tmp_path / "out").exists()


def test_sources_say_what_is_wrong_with_fields(folders, tmp_path):
    def raises(words, make, *arguments, **options):
        with pytest.raises(chunkhit.Error, match=words):
            make(*arguments, progress=False, **options)
    raises("sizes own: found the view 'depth'; images of their own sizes have masks alone", chunkhit.pack_images, folders / "images",
           tmp_path / "own", pair=pairs(folders), sizes="own")
    (tmp_path / "list.csv").write_text("file,mask\na/000.png,a/000.png\n")
    table = dict(labels=tmp_path / "list.csv")
    raises("depth is a view here, and a mask by pair", chunkhit.pack_images, folders / "images", tmp_path / "out",
           mask_column="depth=mask:view", pair={"depth": folders / "masks"}, **table)
    raises("pair: 'depth=scans:veiw': expected :mask or :view at the end; did you mean \"view\"", chunkhit.pack_images, folders / "images",
           tmp_path / "out", pair="depth=scans:veiw")
    raises("mask_column: expected names without a comma", chunkhit.pack_images, folders / "images", tmp_path / "out",
           mask_column="mask,depth", **table)
    raises("sample 0: has no 'depth', only 'image', 'label'; fields= names what it has", chunkhit.pack_dataset,
           [dict(image=np.zeros((6, 8, 3), np.uint8), label=0)], tmp_path / "out", fields=["depth"])
    write_tar(tmp_path / "a.tar", [("a.png", (folders / "images" / "a" / "000.png").read_bytes()),
                                   ("a.seg.png", (folders / "masks" / "a" / "000.png").read_bytes())])
    raises("has no depth: expected a.depth.png beside it", chunkhit.pack_images, tmp_path / "a.tar", tmp_path / "out",
           mask_column=["seg.png", "depth=depth.png:view"])


def test_a_second_equal_writer_packs_nothing_again(tmp_path):
    """In which order a dict has the fields says nothing."""
    image = np.arange(144, dtype=np.uint8).reshape(6, 8, 3)
    fields = {"depth": image, "ids": np.ones((6, 8, 1), np.uint8)}
    inodes = []
    for given in (fields, {"ids:mask": fields["ids"], "depth:view": image}):
        with chunkhit.ImageWriter(tmp_path / "out") as writer:
            for number in range(5):
                writer.add(image + number, number, fields=given if number else fields)
        inodes.append({path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in (tmp_path / "out").glob("part-*")})
    assert inodes[0] == inodes[1] != {} and chunkhit.ImageDataset(tmp_path / "out").info["fields"] == {"depth": "view", "ids": "mask"}


def test_columns_say_the_order_of_fields_however_they_are_spelt(folders, tmp_path):
    files = [name for name, *_ in rows(folders)]
    (tmp_path / "list.csv").write_text("file,a,d\n" + "".join(f"{file},{file},{file}\n" for file in files))
    inodes = []
    for columns in (["a", "depth=d:view"], {"mask": "a", "depth": "d:view"}):
        chunkhit.pack_images(folders / "images", tmp_path / "out", labels=tmp_path / "list.csv", mask_column=columns, resize=SIZE,
                             pair={"depth": f"{folders / 'depth'}:view", "mask": folders / "masks"}, progress=False)
        inodes.append({path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in (tmp_path / "out").glob("part-*")})
    assert inodes[0] == inodes[1] != {} and list(chunkhit.ImageDataset(tmp_path / "out").info["fields"]) == ["mask", "depth"]


def test_what_samples_of_datasets_have_in_dicts(tmp_path):
    image, mask = np.zeros((6, 8, 3), np.uint8), np.full((6, 8), 3, np.uint8)
    chunkhit.pack_dataset([(image, 1, {"seg": mask})], tmp_path / "one", mask="seg")
    np.testing.assert_array_equal(chunkhit.ImageDataset(tmp_path / "one").masks(), mask[np.newaxis])
    chunkhit.pack_dataset([(image, 1, {"seg": mask, "scan": image})], tmp_path / "tuples", mask="seg", fields={"depth": "scan"})
    chunkhit.pack_dataset([{"image": image, "seg": mask, "depth": image}], tmp_path / "dicts", label=None, mask="seg", fields="depth")
    for name, label in (("tuples", 1), ("dicts", -1)):
        dataset = chunkhit.ImageDataset(tmp_path / name)
        assert dataset.info["fields"] == {"mask": "mask", "depth": "view"} and dataset.labels().tolist() == [label]
        np.testing.assert_array_equal(dataset.masks(), mask[np.newaxis])
    for words, sample, options in (
            ("has no 'sag', only 'seg'; mask= names what it has", (image, 1, {"seg": mask}), dict(mask="sag", fields=["seg"])),
            ("has no 'sag', only 'image', 'label', 'seg'; fields= names", dict(image=image, label=1, seg=mask), dict(fields={"mask": "sag"})),
            ("fields: found mask, and another mask stands beside it", (image, 1, mask, {"mask": mask}), dict(fields=["mask"]))):
        with pytest.raises(chunkhit.Error, match=words):
            chunkhit.pack_dataset([sample], tmp_path / "wrong", **options)
    with pytest.raises(chunkhit.Error, match="fields: found mask, which is given as mask="), chunkhit.ImageWriter(tmp_path / "wrong") as writer:
        writer.add(image, mask=mask, fields={"mask": mask})
    with pytest.raises(chunkhit.Error, match="sizes own: found the view 'depth'"), chunkhit.ImageWriter(tmp_path / "wrong", sizes="own") as writer:
        writer.add(image, fields={"depth": image})


def test_other_folders_are_said(folders, tmp_path, logs):
    """Masks that changed places were packed again as if images had changed."""
    swapped = {"mask": folders / "parts", "parts": folders / "masks"}
    chunkhit.pack_images(folders / "images", tmp_path / "out", pair={"mask": folders / "masks", "parts": folders / "parts"}, resize=SIZE)
    said = rf"{COUNT} images or files beside them changed since packed \(.*\), or other folders of pair were given: 1 part packed again"
    with logs(said):
        chunkhit.pack_images(folders / "images", tmp_path / "out", pair=swapped, resize=SIZE)
    mask = chunkhit.ImageDataset(tmp_path / "out", fields=["mask", "parts"])[0]
    np.testing.assert_array_equal(mask[0], 255 - mask[1])


def test_the_sheet_shows_each_mask(tmp_path):
    for kind in ("images", "left", "right"):
        (tmp_path / kind).mkdir()
        pixels = np.full((40, 40), 0 if kind == "images" else 3, np.uint8)
        pixels[:, slice(20, 40) if kind == "left" else slice(0, 20)] = 0
        Image.fromarray(pixels).save(tmp_path / kind / "a.png")
    chunkhit.pack_images(tmp_path / "images", tmp_path / "out", pair={"left": tmp_path / "left", "right": tmp_path / "right"}, dry_run=True,
                         sheet=tmp_path / "sheet.png")
    sheet = np.asarray(Image.open(tmp_path / "sheet.png").convert("RGB"))
    sample = sheet[14 : 14 + 128, 14 + 128 + 4 : 14 + 256 + 4]
    assert sample[64, 30].any() and (sample[64, 30] == sample[64, 98]).all(), "both halves have the color of a mask"
