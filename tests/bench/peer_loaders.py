#!/usr/bin/python3
"""MosaicML Streaming, LitData and WebDataset beside chunkhit: CPU time and images a second of a local epoch.

usage: PYTHONPATH=BUILD/lib/python:PEERS peer_loaders.py BUILD PHOTOS WORK [ROUNDS [FORMS [MILLISECONDS]]]
PHOTOS is made by make_photos.py. Peers that cannot be imported are named and left out. Formats are written below WORK.
Peers read by a DataLoader with 2 workers, whose start counts; chunkhit by 2 threads, its opening counts. Batches of 64.
Each turn is a new process that reads EPOCHS epochs; CPU seconds are those of the process and its workers, after imports.
Cases: raw 64x64 and 224x224, of `pack-images`, and JPEG of 512x384 as the files are; in order and shuffled.
FORMS: of raw64,raw224,jpeg (all). With MILLISECONDS, packs come from nginx on this machine, which waits so long before each answer
(libnginx-mod-http-echo), a turn begins with an empty folder for copies, and each batch is followed by a step of ResNet-18 on an H200:
a sleep. Streaming and LitData have no client for http: theirs for S3 is replaced by urllib, whole shards at a time.
Samples that a turn gave are compared with the stored pixels by their sum, so that nobody leaves a sample out unseen.
"""
import glob
import importlib
import io
import multiprocessing
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import numpy as np
import PIL.Image
import psutil
import torch

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from servers import Nginx  # noqa: E402

STEP_SECONDS = 64 / 13029  # of a batch
BATCH, EPOCHS, WORKERS, SHARD_BYTES = 64, 3, 2, 1 << 26
COPIES = {"raw64": 16, "raw224": 4, "jpeg": 1}
WHOLE = {"resize_short": 384, "crop_height": 384, "crop_width": 512}  # of photos of this size
PEERS = {"mosaic": "streaming", "litdata": "litdata", "webdataset": "webdataset"}


def decoded(data):
    return np.array(PIL.Image.open(io.BytesIO(data)))


def samples_of(pack, form, photos):
    """(bytes or array, number) of each sample; numbers are labels, by which a turn's samples are compared."""
    if form == "jpeg":
        return [(pathlib.Path(path).read_bytes(), at) for at, path in enumerate(sorted(glob.glob(f"{photos}/images/*/*.jpg")))]
    import chunkhit
    with chunkhit.ImageLoader(str(pack), batch_size=BATCH, shuffle="none", cache="none", threads=1) as loader:
        return [(image.copy(), int(at)) for batch in loader.epoch(0) for image, at in zip(batch.images, batch.labels)]


def write_mosaic(samples, form, folder):
    from streaming.base import MDSWriter
    kind = "bytes" if form == "jpeg" else "ndarray:uint8:{},{},{}".format(*samples[0][0].shape)
    with MDSWriter(out=folder, columns={"image": kind, "label": "int"}, size_limit=SHARD_BYTES) as writer:
        for image, label in samples:
            writer.write({"image": image, "label": label})


def write_litdata(samples, form, folder):
    from litdata.streaming import Cache
    cache = Cache(folder, chunk_bytes=SHARD_BYTES)
    for at, (image, label) in enumerate(samples):
        cache[at] = (image, label)
    cache.done()
    cache.merge()


def write_webdataset(samples, form, folder):
    import webdataset
    os.makedirs(folder)
    with webdataset.ShardWriter(f"{folder}/%06d.tar", maxsize=SHARD_BYTES // 4, verbose=0) as writer:
        for at, (image, label) in enumerate(samples):
            writer.write({"__key__": f"{at:08d}", ("jpg" if form == "jpeg" else "bin"): bytes(image), "cls": str(label).encode()})


def fetch(remote, local):
    """Copies a file of `s3://HOST:PORT/...` by http."""
    with urllib.request.urlopen(remote.replace("s3://", "http://"), timeout=60) as source, \
            tempfile.NamedTemporaryFile(dir=os.path.dirname(local), delete=False) as out:
        shutil.copyfileobj(source, out, 1 << 20)
    os.replace(out.name, local)


def open_mosaic(form, folder, shuffle, shape, copies):
    from streaming.base import StreamingDataset
    from streaming.base.storage import download

    class Client(download.S3Downloader):
        def _download_file_impl(self, remote, local, timeout):
            fetch(remote, local)

    class Images(StreamingDataset):
        def __getitem__(self, at):
            sample = super().__getitem__(at)
            return decoded(sample["image"]) if form == "jpeg" else np.array(sample["image"]), sample["label"]

    download.DOWNLOADER_MAPPINGS["s3"] = Client
    place = dict(local=copies, remote=folder.replace("http://", "s3://")) if copies else dict(local=folder)
    return torch.utils.data.DataLoader(Images(shuffle=shuffle, batch_size=BATCH, **place), batch_size=BATCH,
                                       num_workers=WORKERS, persistent_workers=True)


def open_litdata(form, folder, shuffle, shape, copies):
    import litdata
    import litdata.streaming.dataset
    from litdata.streaming import downloader
    litdata.streaming.dataset._check_version_and_prompt_upgrade = lambda version: None  # asks the internet

    class Client(downloader.Downloader):
        def download_file(self, remote, local):
            if not os.path.exists(local):
                fetch(remote, local)

    class Images(litdata.StreamingDataset):
        def __getitem__(self, at):
            image, label = super().__getitem__(at)
            return (decoded(image) if form == "jpeg" else image), label

    downloader.register_downloader("s3://", Client, overwrite=True)
    place = dict(input_dir=folder.replace("http://", "s3://"), cache_dir=copies) if copies else dict(input_dir=folder)
    return litdata.StreamingDataLoader(Images(shuffle=shuffle, **place), batch_size=BATCH, num_workers=WORKERS, persistent_workers=True)


def open_webdataset(form, folder, shuffle, shape, copies):
    import webdataset
    shards = [f"{folder}/{name}" for name in sorted(shape["shards"])]
    data = webdataset.WebDataset(shards, shardshuffle=100 if shuffle else False, empty_check=False)
    data = data.shuffle(1000) if shuffle else data

    def sample(each):
        image = decoded(each["jpg"]) if form == "jpeg" else np.frombuffer(each["bin"], np.uint8).reshape(shape["shape"])
        return torch.from_numpy(image.copy()), int(each["cls"])

    data = data.map(sample).batched(BATCH)
    return webdataset.WebLoader(data, batch_size=None, num_workers=WORKERS, persistent_workers=True)


def open_chunkhit(form, folder, shuffle, shape, copies):
    import chunkhit
    options = {"augment": WHOLE} if form == "jpeg" else {}
    if copies:
        options["cache_dir"] = copies
    return chunkhit.ImageLoader(folder, batch_size=BATCH, shuffle="window" if shuffle else "none", cache="none", threads=WORKERS, **options)


def read(result, library, form, folder, shuffle, shape):
    """Sends samples an epoch, the sums of some images by label, whether they were mixed, seconds, and CPU seconds."""
    multiprocessing.set_start_method("fork", force=True)
    torch.set_num_threads(1)
    importlib.import_module(PEERS.get(library, library))
    remote = folder.startswith("http://")
    with tempfile.TemporaryDirectory() as copies:
        begin, cpu = time.perf_counter(), cpu_seconds()
        loader = OPEN[library](form, folder, shuffle, shape, copies if remote else None)
        counts, sums, moved = [], {}, False
        for epoch in range(EPOCHS):
            labels = []
            for batch in loader.epoch(epoch) if library == "chunkhit" else loader:
                images, numbers = (batch.images, batch.labels) if library == "chunkhit" else batch
                labels += [int(each) for each in numbers]
                sums[int(numbers[0])] = int(np.asarray(images[0]).sum(dtype=np.int64))
                if remote:
                    time.sleep(STEP_SECONDS)
            counts.append(len(set(labels)))
            moved = moved or labels != sorted(labels)
        result.send((counts, sums, moved, time.perf_counter() - begin, cpu_seconds() - cpu))
        result.close()
        del loader


WRITE = {"mosaic": write_mosaic, "litdata": write_litdata, "webdataset": write_webdataset}
OPEN = {"chunkhit": open_chunkhit, "mosaic": open_mosaic, "litdata": open_litdata, "webdataset": open_webdataset}


def cpu_seconds():
    """CPU seconds of this process, of its children that ended, and of those that live."""
    ended = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    living = psutil.Process().children(recursive=True)
    return ended + sum(sum(each.cpu_times()[:4]) for each in living)


def turn(truth, name, *case):
    """CPU us an image and images a second; what was read is compared with `truth`, the sums by label."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(False)
    process = context.Process(target=read, args=(sender, name, *case))
    process.start()
    sender.close()
    counts, sums, moved, seconds, cpu = receiver.recv()
    process.join()
    wrong = [label for label, value in sums.items() if truth[label] != value]
    if wrong:
        sys.exit(f"{name} {case}: other pixels in samples {wrong[:5]}")
    images = EPOCHS * len(truth)
    return cpu / images * 1e6, images / seconds, min(counts), moved


def span(values):
    return f"{statistics.median(values):8.0f} ({min(values):.0f}-{max(values):.0f})"


def pack_options(form):
    return {"raw64": ["--resize", "96x128", "--crop", "64"], "raw224": ["--resize", "256", "--crop", "224"], "jpeg": ["--sizes", "own"]}[form]


def measure(form, truth, peers, place, facts, rounds):
    """Prints the turns of all libraries, in order and shuffled; `place`: the folder or the address of the packs."""
    for shuffle in (False, True):
        found = {}
        for _ in range(rounds):
            for name in ["chunkhit", *peers]:
                found.setdefault(name, []).append(turn(truth, name, form, f"{place}/{name}-{form}", shuffle, facts))
        print(f"{form}, {'shuffled' if shuffle else 'in order'}: {len(truth)} samples, {rounds} rounds, medians (least-most)")
        for name, turns in found.items():
            cpu, rate, counts, moved = zip(*turns)
            print(f"  {name:12} {span(cpu)} us CPU an image, {span(rate)} images/s, {min(counts)} samples an epoch,"
                  f" {'mixed' if any(moved) else 'in order'}", flush=True)


def main():
    build, photos, work = (pathlib.Path(text).resolve() for text in sys.argv[1:4])
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 5
    forms = sys.argv[5].split(",") if len(sys.argv) > 5 else list(COPIES)
    latency = float(sys.argv[6]) / 1e3 if len(sys.argv) > 6 else None
    peers = []
    for name, module in PEERS.items():
        try:
            importlib.import_module(module)
            peers.append(name)
        except (ImportError, AttributeError) as error:
            print(f"{name} is not measured: {error}")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    files = sorted(glob.glob(f"{photos}/images/*/*.jpg"))
    for form in forms:
        rows = work / f"{form}.csv"
        rows.write_text("file,label\n" + "".join(f"{os.path.relpath(path, photos)},{turn * len(files) + at}\n"
                                                 for turn in range(COPIES[form]) for at, path in enumerate(files)))
        subprocess.run([build / "tools" / "pack-images", photos, "--labels", rows, *pack_options(form), "--label-type", "numbers",
                        "--order", "input", "--progress", "none", "--threads", "2", "--output", work / f"chunkhit-{form}"],
                       check=True, stdout=subprocess.DEVNULL)
        samples = samples_of(work / f"chunkhit-{form}", form, photos)
        for name in list(peers):
            WRITE[name](samples, form, str(work / f"{name}-{form}"))
        truth = {label: int((decoded(image) if form == "jpeg" else image).sum(dtype=np.int64)) for image, label in samples}
        tars = work / f"webdataset-{form}"
        facts = {"shape": samples[0][0].shape if form != "jpeg" else None, "shards": os.listdir(tars) if tars.exists() else []}
        if latency is None:
            measure(form, truth, peers, work, facts, rounds)
            continue
        with Nginx(work, work / "nginx", latency=latency) as server:
            print(f"over http, {latency * 1e3:g} ms before each answer")
            measure(form, truth, peers, server.url, facts, rounds)


if __name__ == "__main__":
    main()
