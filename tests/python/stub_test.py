"""The type stubs say what the binding has, and signatures all that may be asked for."""
import importlib.util
import inspect
import subprocess
import sys

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
    names = "ImageDataset|ImageLoader|ImageWriter|PopularitySampler|RatingWriter|SparseDataset|SparseLoader|(LoaderStats|MixingInfo)(.__init__)?"
    (tmp_path / "allowed").write_text(f"chunkhit._chunkhit.({names})")
    mypy("mypy.stubtest", "chunkhit._chunkhit", "--allowlist", "allowed", "--ignore-unused-allowlist", folder=tmp_path)


def test_everything_public_is_documented():
    for name in set(chunkhit.__all__) - {"__version__"}:
        public = getattr(chunkhit, name)
        assert inspect.getdoc(public), name
        for own, member in vars(public).items() if inspect.isclass(public) else ():
            if inspect.isfunction(member) and not own.startswith("_"):
                assert inspect.signature(member).return_annotation is not inspect.Signature.empty, f"{name}.{own}"


@pytest.mark.parametrize("name", ["ImageLoader", "SparseLoader"])
def test_loaders_of_tensors_have_the_options_and_defaults_of_those_of_arrays(name):
    torch = pytest.importorskip("chunkhit.torch")
    arrays, tensors = ({each.name: (each.annotation, each.default) for each in inspect.signature(kind).parameters.values()}
                       for kind in (getattr(chunkhit, name), getattr(torch, name)))
    differing = {option for option, found in tensors.items() if arrays.get(option) != found}
    assert differing == {"device", "rank", "world_size"} | {
        "ImageLoader": {"layout", "transform", "transform_ahead"}, "SparseLoader": {"writable"}}[name]
    assert not set(arrays) - set(tensors)


def test_every_option_of_the_binding_is_a_keyword(packs, ratings):
    """The binding refuses options that it does not know, and the classes pass on all that they have."""
    for kind, path in ((chunkhit.ImageLoader, packs / "hdf5"), (chunkhit.SparseLoader, ratings[0] / "whole"),
                       (chunkhit.ImageDataset, packs / "hdf5"), (chunkhit.SparseDataset, ratings[0] / "whole")):
        defaults = {name: parameter.default for name, parameter in inspect.signature(kind).parameters.items()
                    if parameter.kind is inspect.Parameter.KEYWORD_ONLY}
        assert len(defaults) >= 5
        kind(path, **defaults)
