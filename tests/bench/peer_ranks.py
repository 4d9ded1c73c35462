"""What 4 ranks on one machine read and spend in an epoch: chunkhit beside MosaicML Streaming and LitData.

usage: peer_ranks.py BUILD PACK_RAW PACK_PHOTO WORK
PEERS names folders, as PYTHONPATH does, of both peers and what they import. REPEATS is 3, CASES a part of a case's name.
Needs nginx, python3-torch, python3-psutil and Pillow.
Each rank is a process, with the environment that torchrun gives it. Ranks take each batch together.
Peers have a worker each that lives as long as the loader. They write their samples, in the packs' order, below WORK once.
Shards of peers have 64 MB, which is the default of MosaicML. PNG is lossless, as the photo codec is.
Peers ask nginx as an S3 server, since neither knows http. Their cache folder is new for each run.
Counts come from /proc: CPU seconds and rchar of each rank and its workers. They are taken between epochs.
So start-up counts for nothing. The first epoch stands alone, later ones are the mean of two.
Files that are mapped are not in rchar. Bytes of a server are those in its log.
"""
import io
import multiprocessing
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import time

RANKS, BATCH, EPOCHS, SIDE, SHARD_BYTES = 4, 64, 3, 64, 1 << 26


def cases(raw, photo):
    """(name, library, stored form, folder, from a server, with a cache folder), those of a form beside each other."""
    for server in (False, True):
        place = "server" if server else "local"
        for form, pack in (("raw", raw), ("png", photo)):
            own = "raw" if form == "raw" else "photo"
            yield f"chunkhit {own} {place}", "chunkhit", form, pack, server, False
            yield from ((f"chunkhit {own} {place}, cache_dir", "chunkhit", form, pack, True, True) for _ in range(server))
            yield from ((f"{peer} {form} {place}", peer, form, f"{peer}-{form}", server, True) for peer in ("mosaic", "litdata"))


def usage():
    """CPU seconds and rchar of this process, its children and those that ended."""
    import psutil
    me = psutil.Process()
    every = [me, *me.children(recursive=True)]
    return sum(sum(each.cpu_times()[:4]) for each in every), sum(each.io_counters().read_chars for each in every)


def open_mosaic(form, path, url, cache):
    import numpy as np
    import torch.utils.data
    from streaming.base import StreamingDataset

    class Images(StreamingDataset):
        def __getitem__(self, at):
            sample = super().__getitem__(at)
            return np.array(sample["image"]), sample["label"]

    dataset = Images(shuffle=True, batch_size=BATCH, **({"remote": f"s3://{path}", "local": cache} if url else {"local": str(path)}))
    return torch.utils.data.DataLoader(dataset, batch_size=BATCH, num_workers=1, persistent_workers=True)


def open_litdata(form, path, url, cache):
    import litdata.streaming.dataset
    import numpy as np
    import PIL.Image
    import torch.distributed
    litdata.streaming.dataset._check_version_and_prompt_upgrade = lambda version: None  # asks the internet
    torch.distributed.init_process_group("gloo")

    class Images(litdata.StreamingDataset):
        def __getitem__(self, at):
            image, label = super().__getitem__(at)
            return (np.array(PIL.Image.open(io.BytesIO(image))) if form == "png" else image), label

    keys = {"endpoint_url": url, "aws_access_key_id": "none", "aws_secret_access_key": "none", "region_name": "us-east-1"}
    place = {"input_dir": f"s3://{path}", "cache_dir": cache, "storage_options": keys} if url else {"input_dir": str(path)}
    return litdata.StreamingDataLoader(Images(shuffle=True, **place), batch_size=BATCH, num_workers=1, persistent_workers=True)


def run_rank(rank, port, case, path, url, work, step, result):
    multiprocessing.set_start_method("fork", force=True)  # of workers, as Linux has it
    _, library, form, _, _, cached = case
    os.environ.update({"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS), "LOCAL_WORLD_SIZE": str(RANKS),
                       "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1", "S3_ENDPOINT_URL": url or "",
                       "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none", "AWS_DEFAULT_REGION": "us-east-1"})
    log, cache = work.parent / "nginx" / "access.log", str(work / "cache")
    if library == "chunkhit":
        import chunkhit
        loader = chunkhit.ImageLoader(f"{url}/{path}" if url else str(path), batch_size=BATCH, shuffle="window", cache="none", threads=1,
                                      rank=rank, world_size=RANKS, cache_dir=cache if cached else None)
    else:
        loader = {"mosaic": open_mosaic, "litdata": open_litdata}[library](form, path, url, cache)

    def mark():
        stored = loader.stats().stored_bytes if library == "chunkhit" else 0
        sent = sum(int(line.split()[-1]) for line in log.read_text().splitlines()) if url and rank == 0 else 0
        return [*usage(), stored, sent, time.monotonic() if rank == 0 else 0, samples]

    samples, marks = 0, []
    for epoch in range(-1, EPOCHS):
        for images, _ in () if epoch < 0 else loader.epoch(epoch) if library == "chunkhit" else loader:
            samples += len(images)
            step.wait(120)
        step.wait(120)
        marks.append(mark())
        step.wait(120)
    result.put(marks)


def run_case(case, path, url, work):
    """Of all ranks, for the first epoch and a later one: CPU seconds, rchar, stored bytes, bytes sent, seconds, samples."""
    shutil.rmtree(work, ignore_errors=True)
    (work / "tmp").mkdir(parents=True)
    os.environ["TMPDIR"] = str(work / "tmp")
    context = multiprocessing.get_context("spawn")
    step, result, port = context.Barrier(RANKS), context.Queue(), free_port()
    processes = [context.Process(target=run_rank, args=(rank, port, case, path, url, work, step, result)) for rank in range(RANKS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        sys.exit(f"{case[0]}: a rank failed")
    found = [result.get() for _ in processes]
    total = [[sum(rank[at][of] for rank in found) for of in range(6)] for at in range(EPOCHS + 1)]
    return [[(total[to][of] - total[at][of]) / (to - at) for of in range(6)] for at, to in ((0, 1), (1, EPOCHS))]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def start_nginx(root, work):
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    port = free_port()
    (work / "nginx.conf").write_text(f"""
        {"user root;" if os.getuid() == 0 else ""} worker_processes 1; daemon off; pid {work}/pid; error_log {work}/error.log;
        events {{ }} http {{ log_format sent '$status $request $body_bytes_sent'; access_log {work}/access.log sent; sendfile on;
        server {{ listen 127.0.0.1:{port}; root {root}; }} }}""")
    process = subprocess.Popen([shutil.which("nginx") or "/usr/sbin/nginx", "-p", work, "-c", work / "nginx.conf", "-e", work / "error.log"])
    time.sleep(1)
    return process, f"http://127.0.0.1:{port}"


def write_peers(pack, root):
    """The samples of a pack, as each peer stores them."""
    import chunkhit
    import PIL.Image
    from litdata.streaming import Cache
    from streaming.base import MDSWriter
    with chunkhit.ImageLoader(pack, batch_size=BATCH, shuffle="none", cache="none", threads=1) as loader:
        samples = [(image.copy(), int(label)) for batch in loader.epoch(0) for image, label in zip(batch.images, batch.labels)]
    for form, encoding in (("raw", f"ndarray:uint8:{SIDE},{SIDE},3"), ("png", "png")):
        with MDSWriter(out=str(root / f"mosaic-{form}"), columns={"image": encoding, "label": "int"}, size_limit=SHARD_BYTES) as writer:
            cache = Cache(str(root / f"litdata-{form}"), chunk_bytes=SHARD_BYTES)
            for at, (image, label) in enumerate(samples):
                writer.write({"image": image if form == "raw" else PIL.Image.fromarray(image), "label": label})
                PIL.Image.fromarray(image).save(png := io.BytesIO(), "PNG")
                cache[at] = (image if form == "raw" else png.getvalue(), label)
        cache.done()
        cache.merge()


def main():
    build, raw, photo, work = (pathlib.Path(text).resolve() for text in sys.argv[1:5])
    os.environ.update({"PYTHONPATH": f"{build}/lib/python:{os.environ.get('PEERS', '')}", "no_proxy": "*"})
    sys.path[:0] = os.environ["PYTHONPATH"].split(":")
    root = work / "served"
    if not (root / "done").exists():
        shutil.rmtree(root, ignore_errors=True)
        write_peers(raw, root)
        for pack in (raw, photo):
            (root / pack.name).symlink_to(pack)
        (root / "done").touch()
    for folder in sorted(root.glob("*/")):
        print(f"{folder.name}: {sum(file.stat().st_size for file in folder.glob('*')) / 1e6:.1f} MB, {len(list(folder.glob('*')))} files")
    found, (server, url) = {}, start_nginx(root, work / "nginx")
    try:
        for repeat in range(int(os.environ.get("REPEATS", "3"))):
            for case in cases(raw.name, photo.name):
                if os.environ.get("CASES", "") in case[0]:
                    remote = url if case[4] else None
                    parts = run_case(case, case[3] if remote else root / case[3], remote, work / "run")
                    for epoch, values in zip(("first", "later"), parts):
                        found.setdefault((case[0], epoch), []).append(values)
                    print(f"  run {repeat}: {case[0]}: CPU {parts[0][0]:.2f} {parts[1][0]:.2f} s", file=sys.stderr, flush=True)
    finally:
        server.terminate()
    print("case | epoch | CPU s (from - to) | s (from - to) | rchar MB | stored MB | from the server MB | samples")
    for (name, epoch), runs in found.items():
        cpu, read, stored, sent, seconds, samples = ([run[of] for run in runs] for of in range(6))
        times = (f"{statistics.median(values):.2f} ({min(values):.2f} - {max(values):.2f})" for values in (cpu, seconds))
        counts = (f"{statistics.median(values) / 1e6:.1f}" for values in (read, stored, sent))
        print(f"{name} | {epoch} | {' | '.join(times)} | {' | '.join(counts)} | {statistics.median(samples):.0f}")


if __name__ == "__main__":
    main()
