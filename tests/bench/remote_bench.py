"""A remote pack beside curl and a local pack, over http on this machine: epochs in window order, first batches, and the disk cache.

usage: remote_bench.py BUILD PACK [ROUNDS]     PACK as tests/bench/README.md makes it
needs curl and nginx

Aims: an epoch takes at most 1.2 times what curl takes for the pack's files and a local epoch takes of CPU time, and a first batch
comes within 50 ms of curl's time for the chunks of its window. The servers with latency sleep before each answer, curl's as well.
"""
import asyncio
import contextlib
import multiprocessing
import os
import pathlib
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile
import time

build, pack = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
sys.path[:0] = [str(build / "lib" / "python"), str(pathlib.Path(__file__).resolve().parents[1] / "support")]
os.environ["no_proxy"] = "*"
import numpy  # noqa: E402

import chunkhit  # noqa: E402
from servers import Nginx  # noqa: E402

LATENCIES = {"5 ms": 0.005, "20 ms": 0.02}
WINDOW_CHUNKS = 64  # the loader's default
EPOCHS = 3


class SleepingServer:
    """Files of a folder by range requests over kept connections, on one thread: sleeps before each answer, and sends by sendfile."""

    def __init__(self, root, latency):
        self.root, self.latency, self.socket = pathlib.Path(root), latency, socket.create_server(("127.0.0.1", 0), backlog=128)
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"

    def start(self):
        self.process = multiprocessing.Process(target=lambda: asyncio.run(self.run()), daemon=True)
        self.process.start()

    def stop(self):
        self.process.terminate()
        self.process.join()

    async def run(self):
        server = await asyncio.start_server(self.answer_all, sock=self.socket)
        await server.serve_forever()

    async def answer_all(self, reader, writer):
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                await asyncio.sleep(self.latency)
                await self.answer(head.decode("latin-1"), writer)
        writer.close()

    async def answer(self, head, writer):
        with open(self.root / re.match(r"GET /(\S+)", head)[1], "rb") as file:
            size = os.fstat(file.fileno()).st_size
            asked = re.search(r"(?i)\nrange: bytes=(\d+)-(\d*)", head)
            first, last = (int(asked[1]), min(int(asked[2] or size), size - 1)) if asked else (0, size - 1)
            writer.write(f"HTTP/1.1 {'206 Partial Content' if asked else '200 OK'}\r\nETag: \"{size}\"\r\nContent-Range: bytes "
                         f"{first}-{last}/{size}\r\nContent-Length: {last + 1 - first}\r\n\r\n".encode())
            await writer.drain()
            if size:
                await asyncio.get_running_loop().sendfile(writer.transport, file, first, last + 1 - first)


def cpu_seconds(who=resource.RUSAGE_SELF):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def run_epochs(result, path, epochs, options):
    """Sends the seconds until the first batch; of each epoch its seconds and CPU seconds; and the samples."""
    cpu, begin, first, turns = cpu_seconds(), time.perf_counter(), None, []
    loader = chunkhit.ImageLoader(str(path), batch_size=256, cache="none", shuffle="window", **options)
    for epoch in range(epochs):
        samples = 0
        for batch in loader.epoch(epoch):
            first = first or time.perf_counter() - begin
            samples += len(batch.samples)
        turns.append((time.perf_counter() - begin, cpu_seconds() - cpu))
        cpu, begin = cpu_seconds(), time.perf_counter()
    result.send((first, turns, samples))


def epochs_of(path, epochs=EPOCHS, **options):
    """The same in a new process: {"first", "epoch", "cpu", "later", "later cpu"}, of which the later epochs are means, and the samples."""
    receiver, sender = multiprocessing.Pipe(False)
    process = multiprocessing.Process(target=run_epochs, args=(sender, path, epochs, options))
    process.start()
    first, turns, samples = receiver.recv()
    process.join()
    found = {"first": first, "epoch": turns[0][0], "cpu": turns[0][1]}
    for index, name in enumerate(("later", "later cpu")):
        found[name] = statistics.mean(turn[index] for turn in turns[1:] or turns)
    return found, samples


def chunk_ranges(server):
    """The ranges of parts that a first epoch has asked for, in its order, without the heads."""
    asked = [(path, ranges[6:]) for status, path, ranges, count in server.requests()
             if status == 206 and "part-" in path and not path.endswith(".json")]
    return [each for each in asked if not each[1].startswith("0-")]


def curl_seconds(url, wanted, folder):
    """Seconds and CPU seconds of curl for (path, range) over up to 64 connections."""
    lines = [f'url = "{url}{path}"\noutput = "/dev/null"\n' + (f"range = {asked}\n" if asked else "") for path, asked in wanted]
    config = pathlib.Path(folder) / "ranges.txt"
    config.write_text("next\n".join(lines))
    cpu, begin = cpu_seconds(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(["curl", "--parallel", "--parallel-max", "64", "-s", "-K", config], check=True, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin, cpu_seconds(resource.RUSAGE_CHILDREN) - cpu


def span(values, factor=1.0, digits=2):
    low, middle, high = (f"{value * factor:.{digits}f}" for value in (min(values), statistics.median(values), max(values)))
    return f"{middle} ({low}–{high})"


def measure(name, server, wanted, work, times):
    """One turn: curl of the files, of the chunks and of the window, and epochs."""
    files = [(f"/{pack.name}/{path.name}", None) for path in sorted(pack.iterdir())]
    numpy.ones(1 << 30, dtype=numpy.uint8)  # a virtual machine gets memory from its host, which is not the loader's time
    times.setdefault(name, []).append(
        {"files": curl_seconds(server.url, files, work), "chunks": curl_seconds(server.url, wanted, work),
         "window": curl_seconds(server.url, wanted[:WINDOW_CHUNKS], work),
         "remote": epochs_of(f"{server.url}/{pack.name}")[0], "local": epochs_of(pack)[0]})


def report(name, turns):
    def of(what, which):
        return span([turn[what][which] for turn in turns])

    def ratio(epoch, cpu):
        return span([turn["remote"][epoch] / (turn["files"][0] + turn["local"][cpu]) for turn in turns])

    cpu = [turn["remote"]["cpu"] / (turn["files"][1] + turn["local"]["cpu"]) for turn in turns]
    late = [turn["remote"]["first"] - turn["window"][0] for turn in turns]
    print(name)
    for what in ("files", "chunks", "window"):
        print(f"  curl, {what:8} {of(what, 0)} s, CPU {of(what, 1)}")
    for what in ("local", "remote"):
        print(f"  {what + ' pack':14} first epoch {of(what, 'epoch')} s, CPU {of(what, 'cpu')}; later {of(what, 'later')}, CPU {of(what, 'later cpu')};"
              f" first batch {of(what, 'first')}")
    print(f"  first epoch of curl's files and local CPU {ratio('epoch', 'cpu')}, later ones {ratio('later', 'later cpu')} (aim 1.2);"
          f" of its CPU time {span(cpu)}")
    print(f"  first batch after curl's window {span(late, 1000, 0)} ms (aim 50)", flush=True)


def main():
    times, disk = {}, {"filling cache_dir": [], "from cache_dir": []}
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        with Nginx(pack.parent, work / "log") as server:
            _, samples = epochs_of(f"{server.url}/{pack.name}", 1)
            time.sleep(0.2)
            wanted = chunk_ranges(server)
        servers = {"no latency": Nginx(pack.parent, work / "fast")}
        servers.update((name, SleepingServer(pack.parent, latency)) for name, latency in LATENCIES.items())
        with contextlib.ExitStack() as running:
            for server in servers.values():
                server.start()
                running.callback(server.stop)
            for _ in range(rounds):
                for name, server in servers.items():
                    measure(name, server, wanted, work, times)
                with tempfile.TemporaryDirectory() as cache:
                    url = f"{servers['no latency'].url}/{pack.name}"
                    disk["filling cache_dir"].append(epochs_of(url, 1, cache_dir=cache)[0]["epoch"])
                    disk["from cache_dir"].append(epochs_of(url, 1, cache_dir=cache)[0]["epoch"])
    print(f"{samples} samples in {len(wanted)} ranges, {rounds} rounds: median (least–most)")
    for name, turns in times.items():
        report(name, turns)
    for name, values in disk.items():
        print(f"{name:20} {span(values)} s")


if __name__ == "__main__":
    main()
