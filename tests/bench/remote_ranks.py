"""What ranks on simulated machines ask a server for: window order without a cache, and global order with the samples in memory.

usage: remote_ranks.py BUILD PACK [MACHINES RANKS]     4 machines of 2 ranks each; PACK as tests/bench/README.md makes it
needs nginx

Machines have a TMPDIR of their own, so that their processes do not find each other. Ranks take each batch together, as in training.
Counts are the server's own, by its log. Aims: in window order all ranks ask for at most 1.1 of the pack's chunks an epoch, in global
order each machine for 1; manifest and indexes come once a machine.
"""
import collections
import multiprocessing
import os
import pathlib
import resource
import sys
import tempfile

build, pack = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
machines, ranks = (int(text) for text in sys.argv[3:5] or (4, 2))
sys.path[:0] = [str(build / "lib" / "python"), str(pathlib.Path(__file__).resolve().parents[1] / "support")]
os.environ["no_proxy"] = "*"
import chunkhit  # noqa: E402
from servers import Nginx  # noqa: E402

EPOCHS = 9
CASES = {"window order, no cache": {"shuffle": "window", "cache": "none"},
         "global order, decoded": {"shuffle": "global", "cache": "decoded"},
         "global order, compressed": {"shuffle": "global", "cache": "compressed"}}


def run_rank(rank, url, options, folder, step, result):
    os.environ["TMPDIR"] = str(folder)
    os.environ["LOCAL_WORLD_SIZE"] = str(ranks)
    loader = chunkhit.ImageLoader(url, batch_size=64, rank=rank, world_size=machines * ranks, threads=1, **options)
    for epoch in range(EPOCHS):
        for _ in loader.epoch(epoch):
            step.wait()
        step.wait()
    usage, stats = resource.getrusage(resource.RUSAGE_SELF), loader.stats()
    result.put((usage.ru_utime + usage.ru_stime, stats.remote_bytes, stats.shared_chunks, list(stats.notices)))


def run_ranks(url, options, work):
    count = machines * ranks
    step, result = multiprocessing.Barrier(count), multiprocessing.Queue()
    processes = []
    for rank in range(count):
        folder = work / f"machine-{rank // ranks}"
        folder.mkdir(exist_ok=True)
        processes.append(multiprocessing.Process(target=run_rank, args=(rank, url, options, folder, step, result)))
        processes[-1].start()
    found = [result.get() for _ in processes]
    for process in processes:
        process.join()
    return found


def kind_of(path, ranges, chunks):
    """What a request was for: the manifest, a chunk, or what opening a part reads."""
    if "part-" not in path:
        return "manifest"
    first = int(ranges[6:].split("-")[0]) if ranges.startswith("bytes=") else 0
    return "chunks" if first in chunks.get(path, ()) else "heads and indexes"


def chunk_offsets(server):
    """Where the chunks of each part begin, as one rank asks for all of them."""
    loader = chunkhit.ImageLoader(f"{server.url}/{pack.name}", batch_size=64, shuffle="none", cache="none", threads=1)
    server.forget_requests()
    for _ in loader.epoch(0):
        pass
    chunks, total = collections.defaultdict(set), 0
    for _, path, ranges, count in server.requests():
        first = int(ranges[6:].split("-")[0])
        if first not in chunks[path]:
            chunks[path].add(first)
            total += count
    return chunks, total


def main():
    with tempfile.TemporaryDirectory() as work, Nginx(pack.parent, pathlib.Path(work) / "log") as server:
        chunks, pack_bytes = chunk_offsets(server)
        print(f"{machines} machines of {ranks} ranks, {EPOCHS} epochs; chunks of the pack: {sum(map(len, chunks.values()))}, {pack_bytes / 1e6:.1f} MB")
        for name, options in CASES.items():
            server.forget_requests()
            found = run_ranks(f"{server.url}/{pack.name}", options, pathlib.Path(work))
            asked = collections.defaultdict(lambda: [0, 0])
            for _, path, ranges, count in server.requests():
                of_kind = asked[kind_of(path, ranges, chunks)]
                of_kind[0] += 1
                of_kind[1] += count
            share = EPOCHS if options["cache"] == "none" else machines
            unit = "an epoch" if options["cache"] == "none" else "a machine"
            print(f"{name}: {asked['chunks'][1] / pack_bytes / share:.3f} of the chunks' bytes {unit}; CPU of all {sum(each[0] for each in found):.1f} s; "
                  f"from other ranks {sum(each[2] for each in found)} chunks")
            for kind, (count, byte_count) in sorted(asked.items()):
                print(f"  {kind:18} {count:6} requests {byte_count / 1e6:9.2f} MB")
            for notice in {notice for each in found for notice in each[3]}:
                print(f"  {notice}")


if __name__ == "__main__":
    main()
