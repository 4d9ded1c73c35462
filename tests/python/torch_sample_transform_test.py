"""sample_transform= of chunkhit.torch.ImageLoader: a function of one sample, on threads ahead of time."""
import re
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transforms = pytest.importorskip("torchvision").transforms

import chunkhit  # noqa: E402
import chunkhit.torch  # noqa: E402

from error_test import raised  # noqa: E402
from masks_test import save_pairs  # noqa: E402

OPTIONS = dict(batch_size=16, shuffle="window", seed=3)


def loader_of(packs, function=None, **options):
    return chunkhit.torch.ImageLoader(packs / "hdf5", sample_transform=function, **{**OPTIONS, **options})


def test_changes_each_image_and_leaves_all_else(packs):
    threads = set()

    def negative(image):
        threads.add(threading.current_thread().name)
        assert image.shape == (3, 6, 8) and image.dtype == torch.uint8
        return 255 - image

    changed, plain = loader_of(packs, negative), loader_of(packs)
    for epoch in range(2):
        for found, expected in zip(changed.epoch(epoch), plain.epoch(epoch), strict=True):
            assert torch.equal(found.images, 255 - expected.images)
            assert torch.equal(found.labels, expected.labels) and torch.equal(found.samples, expected.samples)
            assert (found.epoch, found.index, found.keys) == (epoch, expected.index, expected.keys)
    assert threads and all(name.startswith("chunkhit-sample") for name in threads)


def test_takes_over_a_pipeline_of_torchvision(packs):
    pipeline = [transforms.RandomHorizontalFlip(1.0), transforms.Resize((4, 5)), transforms.ToTensor(),
                transforms.Normalize([0.5] * 3, [0.25] * 3)]
    alone = transforms.Compose(pipeline)
    for found, plain in zip(loader_of(packs, transforms.Compose([transforms.ToPILImage(), *pipeline])), loader_of(packs), strict=True):
        assert found.images.dtype == torch.float32
        for image, original in zip(found.images, plain.images, strict=True):
            assert torch.equal(image, alone(transforms.functional.to_pil_image(original)))


def test_images_are_in_the_layout_that_was_asked_for(packs):
    for layout, shape in (("nchw", (3, 6, 8)), ("nhwc", (6, 8, 3)), (None, (6, 8, 3))):
        seen = set()
        loader = loader_of(packs, lambda image: seen.add(tuple(image.shape)) or image, layout=layout)
        for found, plain in zip(loader, loader_of(packs, layout=layout), strict=True):
            assert torch.equal(found.images, plain.images)
        assert seen == {shape} and loader.batch_shape == (16, *shape)


def test_draws_by_seed_epoch_and_sample(packs):
    """Whatever the batch size: the seed is the sample's."""
    def drawn(image, *, seed):
        return torch.tensor(np.random.default_rng(seed).integers(1 << 40))

    def numbers(epoch, **options):
        return {int(sample): int(image) for batch in loader_of(packs, drawn, **options).epoch(epoch)
                for sample, image in zip(batch.samples, batch.images)}

    first = numbers(0)
    assert len(set(first.values())) == 100
    assert numbers(0, batch_size=7) == first
    for other in (numbers(1), numbers(0, seed=4)):
        assert not set(other.values()) & set(first.values())


def test_runs_before_the_transform_of_the_batch(packs):
    for found, plain in zip(loader_of(packs, lambda image: image.float(), transform=lambda images: images / 255), loader_of(packs)):
        assert torch.equal(found.images, plain.images.float() / 255)


def test_a_state_continues_behind_the_batch_that_was_handed_out(packs):
    loader = loader_of(packs, lambda image: image[:1])
    batches = loader.epoch(0)
    next(batches)
    state = loader.state_dict()
    rest = [batch.samples.tolist() for batch in batches]
    again = loader_of(packs, lambda image: image[:1])
    again.load_state_dict(state)
    assert [batch.samples.tolist() for batch in again] == rest and len(rest) == 6


def test_what_it_raises_is_raised_where_the_batch_is_asked_for(packs):
    def fails(image):
        raise ValueError("no")

    batches = loader_of(packs, fails).epoch(0)
    for _ in range(2):
        with pytest.raises(ValueError, match="no") as caught:
            next(batches)
    notes = getattr(caught.value, "__notes__", ["sample_transform: sample"])
    assert any(note.startswith("sample_transform: sample") for note in notes)


@pytest.mark.parametrize("function, error", [
    (transforms.Compose([transforms.ToTensor()]), "pic should be PIL Image or ndarray"),
    (lambda image: image.convert("L"), "'Tensor' object has no attribute 'convert'"),
])
def test_a_pipeline_of_pillow_images_says_what_it_was_given(packs, function, error):
    """torchvision's own error says nothing of the loader."""
    with pytest.raises(TypeError) as caught:
        next(iter(loader_of(packs, function)))
    assert caught.value.code == "usage"
    said = str(caught.value)
    assert said.startswith(f"sample_transform: {error}") and "as a uint8 tensor of (3, " in said
    advice = "Compose([ToPILImage(), ...]) makes an image of Pillow of it first"
    assert said.endswith(advice)
    with pytest.raises(TypeError, match=f"^transform: {re.escape(error)}.*{re.escape(advice)}$"):
        chunkhit.torch.ImageDataset(packs / "hdf5", transform=function)[0]


@pytest.mark.parametrize("function, message", [
    (lambda image: None, "sample_transform: expected a tensor or an array, found NoneType"),
    (lambda image: image[:, :1 + int(image[0, 0, 0]) % 2], "sample_transform: expected images of one shape and type, found (3, ")])
def test_results_that_make_no_batch_are_an_error(packs, function, message):
    assert message in raised("usage", list, loader_of(packs, function))


def test_what_makes_no_sense_is_said(packs):
    with pytest.raises(TypeError, match="sample_transform: expected a function, found 5"):
        loader_of(packs, 5)
    assert 'sample_transform: is for dtype="uint8"' in raised("usage", loader_of, packs, abs, dtype="float32")
    assert "chunkhit.torch.ImageLoader is in its place" in raised("usage", chunkhit.ImageLoader, packs / "hdf5", sample_transform=abs)


def test_a_notice_says_what_draws_once_for_a_whole_batch(packs):
    jitter = transforms.ColorJitter(0.4)
    once = transforms.Compose([torch.nn.Sequential(transforms.RandomErasing()), jitter, transforms.Grayscale(3), jitter])
    draws = "of torchvision draws once for all images of a batch; sample_transform= draws for each"
    assert loader_of(packs, transform=once).stats().notices == [f"transform: RandomErasing {draws}", f"transform: ColorJitter {draws}"]
    assert f"ColorJitter {draws}" in str(loader_of(packs, transform=jitter).stats())
    for function, options in ((jitter, {}), (None, dict(transform=transforms.Grayscale(3))), (None, {})):
        assert loader_of(packs, function, **options).stats().notices == []


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """Packs whose masks are the red channel of their images, and whose views are these, inverted."""
    folder = tmp_path_factory.mktemp("pairs")
    save_pairs(folder, np.random.default_rng(6).integers(0, 256, (30, 6, 8, 3), np.uint8), 0)
    for kind in ("mask", "view"):
        chunkhit.pack_images(folder / "images", folder / kind, pair={kind: folder / f"{kind}s"}, chunk_samples=7, progress=False)
    return folder


def test_an_image_is_not_changed_without_its_mask_or_view(packs, pairs):
    """Images were changed and their masks were not, without a word."""
    for kind in ("mask", "view"):
        message = raised("usage", chunkhit.torch.ImageLoader, pairs / kind, sample_transform=lambda image, *, seed: image)
        assert f"without their {kind}: give it a keyword-only parameter {kind}, as def change(image, *, {kind}, seed)" in message
        function = eval(f"lambda image, *, {kind}: image")
        assert raised("usage", loader_of, packs, function) == f"sample_transform: takes {kind}, and the samples have no field {kind}"
        optional = eval(f"lambda image, *, {kind}=None: image")
        assert torch.equal(next(iter(loader_of(packs, optional))).images, next(iter(loader_of(packs))).images)


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
@pytest.mark.parametrize("kind", ["mask", "view"])
def test_all_fields_of_a_sample_are_changed_by_one_seed(pairs, kind, layout):
    rows = 1 if layout == "nchw" else 0
    seen = {}

    def shifted(array, seed, axis):
        return array.roll(np.random.default_rng(seed).integers(1, 6).item(), axis)

    def shift(image, pair, seed):
        seen[seed] = np.random.default_rng(seed).integers(1, 6).item()
        return {"image": shifted(image, seed, rows), kind: shifted(pair, seed, 0 if kind == "mask" else rows)}

    function = {"mask": lambda image, *, mask, seed: shift(image, mask, seed), "view": lambda image, *, view, seed: shift(image, view, seed)}
    augment = dict(flip_horizontal=0.5)
    options = dict(layout=layout, augment=augment, **OPTIONS)
    changed = chunkhit.torch.ImageLoader(pairs / kind, sample_transform=function[kind], **options)
    plain = chunkhit.torch.ImageLoader(pairs / kind, **options)
    for epoch in range(2):
        for found, expected in zip(changed.epoch(epoch), plain.epoch(epoch), strict=True):
            assert torch.equal(found.labels, expected.labels) and found.samples.tolist() == expected.samples.tolist()
            red = found.images[:, 0] if layout == "nchw" else found.images[..., 0]
            assert torch.equal(found[kind], red if kind == "mask" else 255 - found.images)
            assert not torch.equal(found.images, expected.images)
            assert torch.equal(found.images.sum((1, 2, 3)), expected.images.sum((1, 2, 3)))
    assert len(seen) == 60 and set(seen.values()) == set(range(1, 6))


def test_fields_that_are_left_out_stay_as_they_are(pairs):
    def count(image, *, mask, label, seed):
        assert int(label) == -1 and mask.shape == (6, 8) and mask.dtype == torch.uint8
        return {"label": int(mask.sum()), "mask": (mask > 127)[::2].to(torch.int64)}

    changed = chunkhit.torch.ImageLoader(pairs / "mask", sample_transform=count, **OPTIONS)
    for found, plain in zip(changed, chunkhit.torch.ImageLoader(pairs / "mask", **OPTIONS), strict=True):
        assert torch.equal(found.images, plain.images)
        assert found.labels.dtype == torch.int64 and found.labels.tolist() == plain.masks.sum((1, 2)).tolist()
        assert torch.equal(found.masks, (plain.masks > 127)[:, ::2].to(torch.int64))
    alone = chunkhit.torch.ImageLoader(pairs / "view", sample_transform=lambda image, *, view: 255 - image, **OPTIONS)
    for found, plain in zip(alone, chunkhit.torch.ImageLoader(pairs / "view", **OPTIONS), strict=True):
        assert torch.equal(found.images, found.views) and torch.equal(found.views, plain.views)


@pytest.mark.parametrize("function, message", [
    (lambda image, *, mask: {"image": image, "mask": None}, "sample_transform: expected a tensor or an array as mask, found NoneType"),
    (lambda image, *, mask: {"mask": mask[:1 + int(mask[0, 0]) % 2]}, "sample_transform: expected masks of one shape and type, found ("),
    (lambda image, *, mask: {"mask": mask, **({"image": image} if mask[0, 0] % 2 else {})},
     "sample_transform: expected the same fields of each sample, found ")])
def test_fields_that_make_no_batch_are_an_error(pairs, function, message):
    assert message in raised("usage", list, chunkhit.torch.ImageLoader(pairs / "mask", sample_transform=function, **OPTIONS))


def test_a_field_that_samples_do_not_have_is_named(packs):
    with pytest.raises(chunkhit.Error, match="sample_transform: returns the field mask; the samples have image, label"):
        next(iter(loader_of(packs, lambda image: {"mask": image})))


@pytest.mark.parametrize("options", [dict(sampler={"a": 1, "b": 9}), dict(echo=2), dict(sampler=[1 + 9 * (n == 3) for n in range(100)])])
def test_repeats_of_a_sample_in_an_epoch_had_one_seed(packs, options):
    seen = []

    def draw(image, *, seed):
        seen.append(seed)
        return image

    loader = loader_of(packs, draw, **options)
    samples = [int(each) for batch in loader.epoch(0) for each in batch.samples]
    assert len(set(samples)) < len(samples) and len(set(seen)) == len(seen) == len(samples)
    first, seen = list(seen), []
    for _ in loader.epoch(0):
        pass
    assert sorted(seen) == sorted(first)  # the same in the same epoch again


def test_a_stop_iteration_of_a_transform_ended_the_epoch(packs):
    def stop(image):
        raise StopIteration("mine")

    for loader in (loader_of(packs, stop), loader_of(packs, transform=stop), loader_of(packs, transform=stop, transform_ahead=2)):
        with pytest.raises(RuntimeError) as caught:
            list(loader)
        assert isinstance(caught.value.__cause__, StopIteration) and "mine" in str(caught.value.__cause__)
