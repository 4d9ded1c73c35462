"""transform= of chunkhit.torch.ImageLoader: where batches are asked for, and ahead on a thread."""
import gc
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transforms = pytest.importorskip("torchvision").transforms

import chunkhit  # noqa: E402
import chunkhit.torch  # noqa: E402
from chunkhit._torch_feed import HostFeed  # noqa: E402
from torch_feed_test import stand_in  # noqa: E402, F401

OPTIONS = dict(batch_size=16, shuffle="window", seed=3)
AHEAD = [0, 1, 3]


def loader_of(packs, transform=None, ahead=0, **options):
    return chunkhit.torch.ImageLoader(packs / "hdf5", transform=transform, transform_ahead=ahead, **{**OPTIONS, **options})


def own_threads():
    return [each for each in threading.enumerate() if each.name.startswith("chunkhit-transform")]


def wait_until(is_so):
    deadline = time.monotonic() + 60
    while not is_so() and time.monotonic() < deadline:
        time.sleep(0.005)
    assert is_so()


def noise(images, *, batch):
    random = torch.Generator().manual_seed(int(np.random.default_rng([7, batch.epoch, batch.index]).integers(1 << 63)))
    return images + torch.randint(0, 9, images.shape, generator=random, dtype=torch.uint8)


@pytest.mark.parametrize("device", [None, "cuda"])
@pytest.mark.parametrize("ahead", AHEAD)
def test_changes_the_images_and_leaves_all_else(packs, stand_in, ahead, device):  # noqa: F811
    streams = []

    def negative(images):
        streams.append(torch.cuda.current_stream(None))
        return 255 - images

    changed = loader_of(packs, negative, ahead, device=device)
    for epoch in range(3):
        for found, expected in zip(changed.epoch(epoch), loader_of(packs).epoch(epoch), strict=True):
            images, labels = found
            assert torch.equal(images, 255 - expected.images) and torch.equal(labels, expected.labels)
            assert torch.equal(found.samples, expected.samples)
            assert (found.epoch, found.index) == (epoch, expected.index)
    # Ahead, it runs on another stream, which waits for the copies; and the caller's waits for what was made there.
    assert len(stand_in.waited_for) == (3 * 7 if device else 0)
    if device:
        assert {stream is stand_in for stream in streams} == {ahead == 0}
        assert all(event.stream is not stand_in for event in stand_in.waited_for)
        if ahead:
            assert {event.stream for event in stand_in.waited_for} == set(streams)
            assert len(streams[0].waited_for) == 3 * 7 and set(streams[0].waited_for).isdisjoint(stand_in.waited_for)


@pytest.mark.parametrize("ahead", AHEAD)
def test_changes_the_labels_where_it_takes_them(packs, ahead):
    def mixup(images, labels):
        hot = torch.nn.functional.one_hot(labels, 2).float()
        return 0.75 * images + 0.25 * images.flip(0), 0.75 * hot + 0.25 * hot.flip(0)

    for (images, labels), (plain, classes) in zip(loader_of(packs, mixup, ahead), loader_of(packs), strict=True):
        assert torch.equal(images, 0.75 * plain + 0.25 * plain.flip(0))
        assert torch.equal(labels.sum(1), torch.ones(len(plain)))
        assert torch.equal(labels.argmax(1), classes)


@pytest.mark.parametrize("ahead", AHEAD)
@pytest.mark.parametrize("position", [0, 3, 6])
def test_noise_seeded_by_the_position_is_the_same_after_resuming(packs, ahead, position):
    expected = [images for epoch in range(2) for images, _ in loader_of(packs, noise).epoch(epoch)]
    assert not torch.equal(expected[0], expected[7])
    loader = loader_of(packs, noise, ahead)
    batches = loader.epoch(1)
    for _ in range(position):
        next(batches)
    other = loader_of(packs, noise, ahead)
    other.load_state_dict(loader.state_dict())
    for found, wanted in zip(other, expected[7 + position :], strict=True):
        assert torch.equal(found.images, wanted)


@pytest.mark.parametrize("device", [None, "cuda"])
@pytest.mark.parametrize("ahead", AHEAD)
@pytest.mark.parametrize("position", range(8))
def test_a_state_is_that_of_the_batch_handed_out(packs, stand_in, position, ahead, device):  # noqa: F811
    expected = [batch.samples.tolist() for batch in loader_of(packs)]
    loader = loader_of(packs, torch.clone, ahead, device=device)
    epoch = loader.epoch(0)
    for _ in range(position):
        next(epoch)
    other = loader_of(packs, torch.clone, ahead, device=device)
    other.load_state_dict(loader.state_dict())
    assert [batch.samples.tolist() for batch in other] == expected[position:]


@pytest.mark.parametrize("device", [None, "cuda"])
@pytest.mark.parametrize("ahead", AHEAD)
@pytest.mark.parametrize("position", [0, 1, 6, 7])
def test_a_state_that_is_refused_takes_no_batch_away(packs, stand_in, position, ahead, device):  # noqa: F811
    other = loader_of(packs, seed=4).state_dict()
    loader = loader_of(packs, torch.clone, ahead, device=device)
    epoch = loader.epoch(2)
    found = [next(epoch).index for _ in range(position)]
    with pytest.raises(chunkhit.Error, match="seed: 4, expected 3"):
        loader.load_state_dict(other)
    assert found + [batch.index for batch in epoch] == list(range(7))


@pytest.mark.parametrize("ahead", [1, 3])
def test_is_ahead_by_as_many_batches_as_it_may_be(packs, ahead):
    begun = []

    def transform(images, *, batch):
        begun.append(batch.index)
        return images

    epoch = loader_of(packs, transform, ahead).epoch(0)
    for index in range(3):
        next(epoch)
        wait_until(lambda: len(begun) == index + 1 + ahead)
        time.sleep(0.02)
        assert begun == list(range(index + 1 + ahead))
    assert [batch.index for batch in epoch] == list(range(3, 7))
    assert begun == list(range(7))


@pytest.mark.parametrize("device", [None, "cuda"])
@pytest.mark.parametrize("ahead", AHEAD)
def test_what_it_raises_comes_with_its_batch_which_is_not_lost(packs, stand_in, ahead, device):  # noqa: F811
    calls = []

    def failing(images, *, batch):
        calls.append(batch.index)
        if calls.count(4) in (1, 2) and batch.index == 4:
            raise ValueError("no such image")
        return images

    expected = [batch.samples.tolist() for batch in loader_of(packs)]
    loader = loader_of(packs, failing, ahead, device=device)
    epoch = loader.epoch(0)
    assert [next(epoch).index for _ in range(4)] == [0, 1, 2, 3]
    for _ in range(2):
        with pytest.raises(ValueError, match="no such image") as caught:
            next(epoch)
        if sys.version_info >= (3, 11):
            assert caught.value.__notes__ == ["transform: batch 4 of epoch 0"]
        other = loader_of(packs)
        other.load_state_dict(loader.state_dict())
        assert [batch.samples.tolist() for batch in other] == expected[4:]
    assert [batch.samples.tolist() for batch in epoch] == expected[4:]
    assert calls == [0, 1, 2, 3, 4, 4, 4, 5, 6]


@pytest.mark.parametrize("ahead", AHEAD)
def test_an_error_of_the_loader_passes_through(packs, tmp_path, ahead):
    part = bytearray((packs / "hdf5" / "part-00000.h5").read_bytes())
    part[part.find(chunkhit.ImageDataset(packs / "hdf5")[50][0].tobytes())] ^= 1
    (tmp_path / "part-00000.h5").write_bytes(part)
    loader = chunkhit.torch.ImageLoader(tmp_path / "part-00000.h5", batch_size=7, transform=torch.clone, transform_ahead=ahead)
    epoch = loader.epoch(0)
    assert [next(epoch).index for _ in range(7)] == list(range(7))
    for _ in range(2):
        with pytest.raises(chunkhit.Error, match="checksum") as caught:
            next(epoch)
        assert caught.value.code == "bad_data"


def test_another_epoch_forgets_the_batches_that_are_ahead(packs):
    loader = loader_of(packs, torch.clone, 3)
    next(loader.epoch(0))
    assert [batch.index for batch in loader.epoch(5)] == list(range(7))
    for batch in loader:
        assert batch.epoch == 6
        break
    assert {batch.epoch for batch in loader} == {6}
    assert {batch.epoch for batch in loader} == {7}


def test_the_thread_ends_with_the_epoch_the_loader_and_its_last_reference(packs):
    loader = loader_of(packs, torch.clone, 2)
    assert not own_threads()
    for _ in loader:
        assert len(own_threads()) == 1
    assert not own_threads()
    next(iter(loader))
    assert len(own_threads()) == 1
    loader.close()
    assert not own_threads()
    with pytest.raises(chunkhit.Error, match="closed"):
        next(iter(loader))
    loader = loader_of(packs, torch.clone, 2)
    next(iter(loader))
    gc.disable()  # without its help
    try:
        del loader
        wait_until(lambda: not own_threads())
    finally:
        gc.enable()


def test_one_thread_at_a_time_takes_batches(packs):
    is_in = threading.Event()
    go_on = threading.Event()

    def slow(images):
        is_in.set()
        go_on.wait(60)
        return images

    for ahead in (0, 1):
        is_in.clear(), go_on.clear()
        epoch = loader_of(packs, slow, ahead).epoch(0)
        first = threading.Thread(target=next, args=(epoch,))
        first.start()
        is_in.wait(60)
        with pytest.raises(chunkhit.Error, match="another thread is using this loader"):
            next(epoch)
        go_on.set()
        first.join()
        assert [batch.index for batch in epoch] == list(range(1, 7))


INTERRUPTED = """
import os, signal, sys, threading
import chunkhit.torch

def slow(images, *, batch):
    if batch.index == 2:
        is_due.wait()
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        has_ended.wait()
    return images

loader = chunkhit.torch.ImageLoader(sys.argv[1], batch_size=16, transform=slow, transform_ahead=int(sys.argv[2]))
seen, is_due, has_ended = [], threading.Event(), threading.Event()
try:
    for batch in loader:
        seen.append(batch.index)
        if batch.index == 1:
            is_due.set()
except KeyboardInterrupt:
    print("interrupted behind", seen)
    has_ended.set()
has_ended.clear()
try:
    print([batch.index for batch in loader])
finally:
    has_ended.set()
"""


@pytest.mark.parametrize("ahead", AHEAD)
def test_ctrl_c_ends_the_loop_and_the_program_goes_on(packs, ahead):
    run = subprocess.run([sys.executable, "-c", INTERRUPTED,
                          packs / "hdf5", str(ahead)], stdout=subprocess.PIPE, text=True, timeout=100)
    # So is the second loop, which nothing catches.
    assert run.stdout == "interrupted behind [0, 1]\n" and run.returncode == -2


FORGOTTEN = """
import sys, time
import chunkhit.torch

loader = chunkhit.torch.ImageLoader(sys.argv[1], batch_size=1, transform_ahead=5,
                                    transform=lambda images: time.sleep(0.01) or images)
epoch = iter(loader)
next(epoch)
print("done")
"""


def test_a_program_ends_while_batches_are_being_transformed(packs):
    run = subprocess.run([sys.executable, "-c", FORGOTTEN, packs / "hdf5"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True, timeout=60)
    assert (run.returncode, run.stdout, run.stderr) == (0, "done\n", "")


class Inputs(torch.nn.Module):
    """Takes what is given, as torchvision's v2 transforms do."""

    def forward(self, *inputs):
        images, labels = inputs
        return images.flip(-1), labels + 1


def test_modules_are_called_by_what_forward_takes(packs):
    plain = next(iter(loader_of(packs)))
    images, labels = next(iter(loader_of(packs, Inputs())))
    assert torch.equal(images, plain.images.flip(-1)) and torch.equal(labels, plain.labels + 1)
    for transform in (transforms.RandomHorizontalFlip(1), torch.nn.Sequential(transforms.RandomHorizontalFlip(1)),
                      transforms.Compose([transforms.RandomHorizontalFlip(1)])):
        images, labels = next(iter(loader_of(packs, transform)))
        assert torch.equal(images, plain.images.flip(-1)) and torch.equal(labels, plain.labels)


def test_torchvision_draws_once_a_batch_and_a_loop_once_an_image(packs):
    flip = transforms.RandomHorizontalFlip(0.5)

    def flipped(transform):
        """Which images of a batch are mirrored."""
        torch.manual_seed(1)
        images, plain = (next(iter(loader_of(packs, each, batch_size=100))).images for each in (transform, None))
        return [torch.equal(image, expected.flip(-1)) for image, expected in zip(images, plain)]

    assert len(set(flipped(flip))) == 1
    assert 30 < sum(flipped(lambda images: torch.stack([flip(image) for image in images]))) < 70


UINT8_TRANSFORMS = ["RandomHorizontalFlip(1)", "RandomCrop(5)", "RandomResizedCrop(5)", "RandomAffine(20)", "ColorJitter(0.4, 0.4, 0.4)",
                    "RandomErasing(1)", "AutoAugment()", "RandAugment()", "TrivialAugmentWide()", "GaussianBlur(3)", "Grayscale(3)"]


@pytest.mark.parametrize("dtype, text", [*(("uint8", text) for text in UINT8_TRANSFORMS), ("float32", "Normalize((0, 0, 0), (2, 2, 2))"),
                                         ("float32", "RandomErasing(1)"), ("float32", "ColorJitter(0.4)")])
def test_torchvision_takes_batches_and_parts_of_them(packs, dtype, text):
    transform = eval(f"transforms.{text}", {"transforms": transforms})
    for each in (transform, lambda images: torch.cat([transform(part) for part in images.split(16)])):
        images, labels = next(iter(loader_of(packs, each, batch_size=40, dtype=dtype, normalize=(
            dict(mean=[0, 0, 0], std=[1, 1, 1]) if dtype == "float32" else None))))
        assert images.shape[:2] == (40, 3) and str(images.dtype) == f"torch.{dtype}" and labels.shape == (40,)


def test_transforms_v2_take_batches_and_mix_labels(packs):
    v2 = pytest.importorskip("torchvision.transforms.v2")  # torchvision 0.15, which Debian 12 has not
    plain = next(iter(loader_of(packs)))
    images, labels = next(iter(loader_of(packs, v2.Compose([v2.RandomHorizontalFlip(1), v2.ColorJitter(0)]))))
    assert torch.equal(images, plain.images.flip(-1)) and torch.equal(labels, plain.labels)
    mixes = getattr(v2, "MixUp", None) or v2.Mixup, getattr(v2, "CutMix", None) or v2.Cutmix
    for mix, dtype in zip(mixes, ("float32", "uint8")):
        images, labels = next(iter(loader_of(packs, mix(alpha=1.0, num_classes=2), dtype=dtype)))
        assert str(images.dtype) == f"torch.{dtype}" and images.shape == plain.images.shape
        torch.testing.assert_close(labels.sum(1), torch.ones(len(images)))


def test_vmap_draws_once_an_image(packs):
    vmap = pytest.importorskip("functorch").vmap
    factors = vmap(lambda image: (image.float() + 1) * torch.rand(()), randomness="different")
    images, plain = (next(iter(loader_of(packs, each))).images for each in (factors, None))
    factor = images / (plain.float() + 1)
    torch.testing.assert_close(factor, factor[:, :1, :1, :1].expand_as(factor))
    assert len(set(factor[:, 0, 0, 0].tolist())) == len(plain)


@pytest.mark.parametrize("options, kind, words", [
    (dict(transform=5), TypeError, "transform: expected a function, found 5"),
    (dict(transform=lambda: 1), chunkhit.Error, r"transform: expected a function of \(images\) or \(images, labels\)"),
    (dict(transform=lambda a, b, c: a), chunkhit.Error, "found one of 3 arguments"),
    (dict(transform_ahead=2), chunkhit.Error, "transform_ahead: is for transform, which is None"),
    (dict(transform=abs, transform_ahead=-1), chunkhit.Error, "transform_ahead: expected a whole number"),
    (dict(transform=abs, transform_ahead=True), chunkhit.Error, "transform_ahead: expected a whole number"),
])
def test_says_what_is_no_transform(packs, options, kind, words):
    with pytest.raises(kind, match=words):
        chunkhit.torch.ImageLoader(packs / "hdf5", **options)


@pytest.mark.parametrize("ahead", AHEAD)
@pytest.mark.parametrize("transform, found", [
    (lambda images: None, "expected a tensor of images, found NoneType"),
    (lambda images, labels: images, r"expected \(images, labels\) or a dict, found Tensor"),
    (lambda images, labels: (images.numpy(), labels), "expected a tensor of images, found ndarray"),
])
def test_says_what_a_transform_ought_to_return(packs, transform, found, ahead):
    with pytest.raises(chunkhit.Error, match=f"transform: {found}"):
        next(iter(loader_of(packs, transform, ahead)))


def outlasting(begin):
    """A function that takes three times as long as all that came before it, however slow the machine is."""
    def sleep(*_):
        time.sleep(max(0.1, 3 * (time.perf_counter() - begin)))
    return sleep


@pytest.mark.parametrize("ahead, advice", [(0, "or run it ahead of training on a thread (transform_ahead=2)"),
                                           (2, "or leave its thread a CPU that training does not take")])
def test_the_verdict_blames_a_transform_that_takes_longest(packs, ahead, advice):
    sleep = outlasting(time.perf_counter())
    loader = loader_of(packs, lambda images: sleep() or images, ahead, batch_size=40)
    assert len(list(loader)) == 3
    stats = loader.stats()
    assert stats.transform_seconds >= 0.1 + 0.3 + 1.2 and stats.transform_seconds > stats.transform_wait_seconds > 0
    assert stats.wait_fraction > 0.5 and stats.transform_ahead == ahead
    assert abs(stats.seconds - stats.wait_seconds - stats.step_seconds) < 1e-9
    assert re.match(r"highly input-bound: training waited [\d.]+ % of the time for data; the transform takes longest \(.* s, .* ms a batch; "
                        r".* s of waiting for the loader\): if it loops over images, .*" + re.escape(advice), stats.verdict())
    assert f"\ntransform: busy {stats.transform_seconds:.3f} s, waited for the loader " in str(stats)
    loader.reset_stats()
    assert [getattr(loader.stats(), name) for name in ("seconds", "transform_seconds", "transform_wait_seconds")] == [0, 0, 0]


@pytest.mark.parametrize("ahead", [0, 2])
def test_the_verdict_blames_no_transform_that_waits_for_the_loader(packs, ahead, monkeypatch):
    take, sleep = HostFeed.take, outlasting(time.perf_counter())
    monkeypatch.setattr(HostFeed, "take", lambda self, core: sleep() or take(self, core))
    loader = loader_of(packs, torch.clone, ahead, batch_size=40)
    assert len(list(loader)) == 3
    stats = loader.stats()
    assert stats.transform_wait_seconds >= 0.1 + 0.3 + 1.2 and stats.wait_fraction > 0.5
    assert stats.verdict().startswith("highly input-bound") and "transform" not in stats.verdict()


@pytest.mark.parametrize("ahead", [0, 2])
def test_the_verdict_blames_no_transform_that_training_does_not_wait_for(packs, ahead):
    step = outlasting(time.perf_counter())
    loader = loader_of(packs, torch.clone, ahead, batch_size=40)
    for _ in loader:
        step()
    stats = loader.stats()
    assert stats.transform_seconds > 0 and stats.wait_fraction < 0.5 and stats.notices == []
    assert loader_of(packs).stats().transform_seconds == 0


@pytest.mark.parametrize("ahead", [0, 1])
def test_what_a_failing_transform_took_counts(packs, ahead):
    def failing(images):
        time.sleep(0.02)
        raise ValueError

    loader = loader_of(packs, failing, ahead)
    with pytest.raises(ValueError):
        next(iter(loader))
    assert loader.stats().transform_seconds >= 0.02


@pytest.mark.parametrize("name", ["ToPILImage", "ToTensor", "PILToTensor"])
def test_a_transform_of_single_images_is_named_with_what_takes_its_place(packs, name):
    transforms = pytest.importorskip("torchvision.transforms")
    with pytest.raises(chunkhit.Error, match=f"transform: {name} takes one image, .*leave it out.*sample_transform=Compose") as error:
        chunkhit.torch.ImageLoader(packs / "hdf5", transform=transforms.Compose([getattr(transforms, name)()]))
    assert error.value.code == "usage"
