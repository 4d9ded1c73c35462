"""The type stubs say what the binding has, and signatures all that may be asked for."""
import importlib.util
import inspect
import pydoc
import re
import shutil
import subprocess
import sys
import typing

import numpy as np
import pytest

import chunkhit

needs_mypy = pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")


def mypy(*arguments, folder):
    run = subprocess.run([sys.executable, "-m", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         cwd=folder)
    assert run.returncode == 0, run.stdout


@needs_mypy
def test_stubs_say_what_the_binding_has(tmp_path):
    # Classes of pybind11 have a metaclass of its own; those that Python cannot make have the constructor of all objects.
    names = "ArrowTable|ImageDataset|ImageLoader|ImageWriter|PopularitySampler|RatingWriter|SparseDataset|SparseLoader|(LoaderStats|MixingInfo)(.__init__)?"
    (tmp_path / "allowed").write_text(f"chunkhit._chunkhit.({names})")
    mypy("mypy.stubtest", "chunkhit._chunkhit", "--allowlist", "allowed", "--ignore-unused-allowlist", folder=tmp_path)


def test_everything_public_is_documented():
    for name in set(chunkhit.__all__) - {"__version__"}:
        public = getattr(chunkhit, name)
        assert inspect.getdoc(public), name
        for own, member in vars(public).items() if inspect.isclass(public) else ():
            if inspect.isfunction(member) and not own.startswith("_"):
                assert inspect.signature(member).return_annotation is not inspect.Signature.empty, f"{name}.{own}"


def test_training_loads_what_it_names_alone():
    program = "import sys, chunkhit; print(*sys.modules); chunkhit.pack_info, chunkhit.show; print(*sys.modules); print(*dir(chunkhit))"
    first, second, names = subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    packing = {f"chunkhit.{module}" for module in chunkhit._MODULES}
    assert not packing & set(first.split()) and {"chunkhit._packing", "chunkhit._show"} <= set(second.split())
    assert set(chunkhit.__all__) <= set(names.split())
    with pytest.raises(AttributeError, match="module 'chunkhit' has no attribute 'pack_imagse'"):
        chunkhit.pack_imagse


@pytest.mark.parametrize("name", ["ImageLoader", "SparseLoader"])
def test_loaders_of_tensors_have_the_options_and_defaults_of_those_of_arrays(name):
    torch = pytest.importorskip("chunkhit.torch")
    arrays, tensors = ({each.name: (each.annotation, each.default) for each in inspect.signature(kind).parameters.values()}
                       for kind in (getattr(chunkhit, name), getattr(torch, name)))
    differing = {option for option, found in tensors.items() if arrays.get(option) != found}
    assert differing == {"device", "rank", "world_size"} | {
        "ImageLoader": {"dtype", "layout", "transform", "sample_transform", "transform_ahead"}, "SparseLoader": {"writable"}}[name]
    assert not set(arrays) - set(tensors)


LOADERS = ["ImageLoader", "SparseLoader"]


@pytest.mark.parametrize("module, name", [*(("chunkhit", each) for each in [*LOADERS, "ImageDataset", "SparseDataset"]),
                                          *(("chunkhit.torch", each) for each in LOADERS)])
def test_help_explains_every_option_with_its_default(module, name):
    kind = getattr(pytest.importorskip(module), name)
    entries = re.findall(r"^(\w+(?:=.*?)?(?:, \w+=.*?)*)\n((?:    .*\n)+)", inspect.getdoc(kind) + "\n", re.M)
    heads = [head for line, _ in entries for head in line.split(", ")]
    parameters = inspect.signature(kind).parameters.values()
    assert heads == [each.name + ("" if each.default is each.empty else f"={each.default!r}".replace("'", '"'))
                     for each in parameters]
    assert all(len(text.split()) >= 3 for _, text in entries)
    page = pydoc.render_doc(kind, renderer=pydoc.plaintext)
    assert all(f" |  {line}\n" in page for line, _ in entries)


def test_help_names_every_word_that_an_option_takes():
    for kind in (chunkhit.ImageLoader, chunkhit.SparseLoader, chunkhit.ImageDataset, chunkhit.SparseDataset):
        texts = dict(re.findall(r"^(\w+)=.*\n((?:    .*\n)+)", inspect.getdoc(kind) + "\n", re.M))
        for name, hint in typing.get_type_hints(kind.__init__).items():
            for literal in (hint, *typing.get_args(hint)):
                if typing.get_origin(literal) is typing.Literal:
                    assert all(f'"{word}"' in texts[name] for word in typing.get_args(literal)), (kind, name)


@pytest.mark.parametrize("options, hint", [
    (dict(shufle="window"), 'shufle: no such option; did you mean "shuffle"?'),
    (dict(batchsize=8), 'batchsize: no such option; did you mean "batch_size"?'),
    (dict(Cache="none"), 'Cache: no such option; did you mean "cache"?'),
    (dict(banana=1), "banana: no such option; help({name}) lists what there is")])
def test_a_misspelt_option_is_told_what_was_meant(tmp_path, options, hint):
    torch = pytest.importorskip("chunkhit.torch")
    for kind in (chunkhit.ImageLoader, chunkhit.SparseLoader, torch.ImageLoader, torch.SparseLoader):
        for error in (TypeError, chunkhit.Error):  # both may be caught
            with pytest.raises(error) as caught:
                kind(tmp_path, **options)
            assert (str(caught.value), caught.value.code) == (hint.format(name=kind.__name__), "usage")


@pytest.mark.parametrize("kind, option, place", [
    (chunkhit.ImageLoader, "num_workers", "threads="), (chunkhit.ImageLoader, "device", "a loader of chunkhit.torch"),
    (chunkhit.ImageLoader, "transform", "chunkhit.torch.ImageLoader"), (chunkhit.SparseLoader, "dtype", "format="),
    (chunkhit.SparseLoader, "transform", "a function of your own, on batch.x,"),
    (chunkhit.SparseLoader, "collate_fn", "a function of your own, on each batch,"),
    (chunkhit.ImageLoader, "collate_fn", "transform= of chunkhit.torch, a function of whole batches,"),
    (chunkhit.ImageLoader, "masks", "pair= of pack_images, whose masks every batch has,"),
    (chunkhit.ImageDataset, "masks", "pair= of pack_images, whose masks every batch has,"),
    (chunkhit.ImageDataset, "transform", "chunkhit.torch.ImageDataset")])
def test_an_option_of_another_loader_is_named_as_here(tmp_path, kind, option, place):
    with pytest.raises(chunkhit.Error, match=f"^{option}: no such option; {re.escape(place)} is in its place$"):
        kind(tmp_path, **{option: None})


def test_the_statistics_are_explained_by_help():
    text = inspect.getdoc(chunkhit.ImageLoader.stats)
    fields = [name for name, each in vars(chunkhit.LoaderStats).items() if isinstance(each, property)]
    assert len(fields) > 20 and [name for name in fields if not re.search(rf"\b{name}\b", text)] == []


def test_a_misspelt_option_of_a_function_is_told_what_was_meant(tmp_path):
    for call, options, meant in (
            (chunkhit.pack_images, dict(reszie=8), "resize"), (chunkhit.pack_sparse, dict(splitby="users"), "split_by"),
            (chunkhit.ImageDataset, dict(cach="none"), "cache"), (chunkhit.pack_info, dict(label="x"), "labels"),
            (chunkhit.verify_pack, dict(quik=True), "quick"), (chunkhit.run_plan, dict(tasks=3), "task"),
            (chunkhit.ImageWriter, dict(reszie=8), "resize"), (chunkhit.RatingWriter, dict(splitby="users"), "split_by"),
            (chunkhit.pack_dataset, dict(worker=2), "workers")):
        with pytest.raises(chunkhit.Error, match=f'no such option; did you mean "{meant}"'):
            call(tmp_path, **options)


def test_infos_have_the_keys_that_help_explains(packs, ratings, tmp_path):
    chunkhit.pack_images(packs / "images", tmp_path / "own", sizes="own")
    chunkhit.pack_images(packs / "images", tmp_path / "split", split={"a": 0.5, "b": 0.5})
    chunkhit.pack_images(packs / "images", tmp_path / "kept", labels=packs / "numbers.csv", label_column="x", keep_columns=["y"])
    chunkhit.merge_packs([packs / "hdf5", tmp_path / "split/a"], tmp_path / "merged")
    for kind in ("item", "user"):
        (tmp_path / f"{kind}s.csv").write_text(f"{kind},age\n" + "".join(f"{kind[0]}{number},{number}\n" for number in range(300)))
    chunkhit.pack_sparse(ratings[0] / "ratings.csv", tmp_path / "ages", item_columns=tmp_path / "items.csv",
                         user_columns=tmp_path / "users.csv")
    (tmp_path / "timed.csv").write_text("user,item,rating,time\na,b,1,1500000000\n")
    chunkhit.pack_sparse(tmp_path / "timed.csv", tmp_path / "timed", keep_times=True, duplicates="keep")
    with chunkhit.ImageWriter(tmp_path / "masked") as writer:
        writer.add(np.zeros((4, 4, 3), np.uint8), mask=np.zeros((4, 4), np.uint8))
    with chunkhit.ImageWriter(tmp_path / "labels", label_column=["a", "b"]) as writer:
        writer.add(np.zeros((4, 4, 3), np.uint8), [0, 1])
    shutil.copytree(packs / "images", tmp_path / "images")
    chunkhit.pack_images(packs / "images", tmp_path / "viewed", pair={"view": tmp_path / "images"})
    images = [tmp_path / "labels", tmp_path / "masked", tmp_path / "viewed", packs / "hdf5", packs / "shard", packs / "hdf5/part-00000.h5", tmp_path / "own", tmp_path / "split/a",
              tmp_path / "kept", tmp_path / "merged"]
    for paths, info, reader in ((images, chunkhit.ImageInfo, chunkhit.ImageDataset),
                                ([ratings[0] / "whole", ratings[0] / "split/test", tmp_path / "ages", tmp_path / "timed"],
                                 chunkhit.RatingInfo, chunkhit.SparseDataset)):
        documented = typing.get_type_hints(info)
        found = {key for path in paths for key in chunkhit.pack_info(path)}
        assert found - set(documented) == set()
        # Of ratings nothing is merged here.
        assert set(documented) - found == (set() if info is chunkhit.ImageInfo else {"sources"})
        text = inspect.getdoc(info) + inspect.getdoc(chunkhit.PackInfo)
        assert [key for key in documented if not re.search(rf"\b{key}\b", text)] == []
        assert reader(paths[0]).info == chunkhit.pack_info(paths[0])
    classes = chunkhit.ImageLoader(packs / "hdf5").info["classes"]
    assert classes == [{"id": 0, "name": "a", "samples": 50}, {"id": 1, "name": "b", "samples": 50}]


def test_every_option_of_the_binding_is_a_keyword(packs, ratings):
    """The binding refuses options that it does not know, and the classes pass on all that they have."""
    for kind, path in ((chunkhit.ImageLoader, packs / "hdf5"), (chunkhit.SparseLoader, ratings[0] / "whole"),
                       (chunkhit.ImageDataset, packs / "hdf5"), (chunkhit.SparseDataset, ratings[0] / "whole")):
        defaults = {name: parameter.default for name, parameter in inspect.signature(kind).parameters.items()
                    if parameter.kind is inspect.Parameter.KEYWORD_ONLY}
        assert len(defaults) >= 5
        kind(path, **defaults)
