"""A remote pack beside curl and a local pack: bytes a second of the same ranges, samples a second with latency, and from
the disk cache. Servers are nginx on this machine.

usage: remote_bench.py BUILD PACK [ROUNDS]     PACK: photo shards, as tests/bench/README.md makes them
needs nginx, libnginx-mod-http-echo (for latency) and curl
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

build, pack = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
sys.path[:0] = [str(build / "lib" / "python"), str(pathlib.Path(__file__).resolve().parents[1] / "support")]
os.environ["no_proxy"] = "*"
import chunkhit  # noqa: E402
from servers import Nginx  # noqa: E402

# The module that makes nginx wait takes CPU time itself: 1 ms shows how much.
LATENCIES = {"1 ms": 0.001, "20 ms": 0.02}


def one_epoch(path, epoch=0, **options):
    """Seconds of an epoch, from a loader that is new."""
    loader = chunkhit.ImageLoader(str(path), batch_size=256, cache="none", shuffle="window", **options)
    begin = time.perf_counter()
    samples = sum(len(batch.samples) for batch in loader.epoch(epoch))
    seconds = time.perf_counter() - begin
    return seconds, samples, loader.stats()


def ranges_of(server):
    """The ranges that an epoch asks for, larger than an index's head."""
    return sorted({(path, asked[6:]) for status, path, asked, count in server.requests()
                   if status == 206 and "part-" in path and not path.endswith(".json")})


def curl_seconds(url, ranges, folder):
    lines = [f'url = "{url}{path}"\nrange = {asked}\noutput = "/dev/null"\n' for path, asked in ranges]
    config = pathlib.Path(folder) / "ranges.txt"
    config.write_text("next\n".join(lines))
    begin = time.perf_counter()
    subprocess.run(["curl", "--parallel", "--parallel-max", "64", "-s", "-K", config], check=True,
                   stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


def row(name, values, unit, over=None):
    ratio = "" if over is None else f"  {statistics.median(a / b for a, b in zip(over, values)):.2f} of the limit's speed"
    print(f"{name:45} {statistics.median(values):8.3f} {unit}{ratio}", flush=True)


with tempfile.TemporaryDirectory() as work:
    work = pathlib.Path(work)
    with Nginx(pack.parent, work / "fast") as fast:
        url = f"{fast.url}/{pack.name}"
        fast.forget_requests()
        _, samples, stats = one_epoch(url)
        ranges = ranges_of(fast)
        times = {name: [] for name in ("local", "remote", "curl", *LATENCIES, "first with disk", "disk")}
        late = {name: Nginx(pack.parent, work / name.replace(" ", "-"), latency=seconds)
                for name, seconds in LATENCIES.items()} if os.path.exists(Nginx.ECHO) else {}
        for server in late.values():
            server.start()
        for number in range(rounds):
            times["local"].append(one_epoch(pack)[0])
            times["remote"].append(one_epoch(url)[0])
            times["curl"].append(curl_seconds(fast.url, ranges, work))
            for name, server in late.items():
                times[name].append(one_epoch(f"{server.url}/{pack.name}")[0])
            with tempfile.TemporaryDirectory() as cache:
                times["first with disk"].append(one_epoch(url, cache_dir=cache)[0])
                times["disk"].append(one_epoch(url, cache_dir=cache, epoch=1)[0])
        for server in late.values():
            server.stop()
    print(f"{samples} samples, {stats.remote_bytes / 1e6:.0f} MB in {len(ranges)} ranges, {rounds} rounds")
    row("local pack, an epoch", times["local"], "s")
    row("curl --parallel, the same ranges", times["curl"], "s")
    row("remote pack (limit: curl)", times["remote"], "s", times["curl"])
    row("remote pack (limit: local)", times["remote"], "s", times["local"])
    for name in late:
        row(f"remote, {name} latency (limit: local)", times[name], "s", times["local"])
    if late:
        row("20 ms latency (limit: 1 ms)", times["20 ms"], "s", times["1 ms"])
    row("remote, filling cache_dir (limit: local)", times["first with disk"], "s", times["local"])
    row("remote, from cache_dir (limit: local)", times["disk"], "s", times["local"])
