#!/usr/bin/python3
"""Measures pack-sparse and the loader beside pandas and scipy, in one run.

usage: sparse_scipy.py BUILD_FOLDER RATINGS.csv [ROUNDS]      (make_ratings.py makes the CSV; 3 rounds)
Prints medians: seconds to read and pack the CSV beside pandas' read_csv and scipy's CSR, as most write it and as fast as it goes
(typed columns, factorize), a batch of 500 shuffled rows beside mat[rows].toarray(), the bytes of a rating, and the share of a
simulated training that waits for data. CPU time of a dense batch in Python, one thread, beside toarray(out=buffer): NumPy arrays,
torch tensors that may be written, and those that may not.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import pandas as pd
import scipy.sparse as sp

SMALL_PARENT = "import os, sys; pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ); " \
               "_, status, usage = os.wait4(pid, 0); print(usage.ru_maxrss); sys.exit(status != 0)"

build, csv = sys.argv[1:3]
rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
sys.path.insert(0, os.path.join(build, "lib/python"))
import chunkhit  # noqa: E402
import chunkhit.torch  # noqa: E402

folder = tempfile.mkdtemp(prefix="chunkhit-sparse-")


def seconds(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def read_with_pandas():
    global matrix
    table = pd.read_csv(csv)
    users, user = np.unique(table.userId.values, return_inverse=True)
    items, item = np.unique(table.movieId.values, return_inverse=True)
    matrix = sp.csr_matrix((table.rating.values.astype(np.float32), (user, item)), shape=(len(users), len(items)))


def read_typed_columns():
    table = pd.read_csv(csv, usecols=["userId", "movieId", "rating"],
                        dtype={"userId": np.int32, "movieId": np.int32, "rating": np.float32})
    user, users = pd.factorize(table.userId)
    item, items = pd.factorize(table.movieId)
    sp.csr_matrix((table.rating.to_numpy(), (user, item)), shape=(len(users), len(items)))


def pack(name, *flags):
    output = os.path.join(folder, name)
    shutil.rmtree(output, ignore_errors=True)
    command = [f"{build}/tools/pack-sparse", csv, "--user", "userId", "--item", "movieId", "--value", "rating",
               "--output", output, "--progress", "none", *flags]
    # By way of a small process: what a process is forked from counts as its own peak.
    said = subprocess.run([sys.executable, "-c", SMALL_PARENT, *command], check=True, stdout=subprocess.PIPE).stdout
    return int(said.split()[-1]) / 1e6


def bytes_a_rating(name):
    files = [entry for entry in os.scandir(os.path.join(folder, name)) if entry.name.endswith(".zst")]
    return sum(entry.stat().st_size for entry in files) / matrix.nnz


def toarray_ms():
    rows = np.random.default_rng(0).permutation(matrix.shape[0])[:500 * 40].reshape(40, 500)
    return 1e3 / 40 * seconds(lambda: [matrix[batch].toarray() for batch in rows])


def buffer_cpu_ms():
    """CPU time of a batch: of scipy into one buffer, and of loaders, the first epoch left out."""
    rows = np.random.default_rng(1).permutation(matrix.shape[0])[:500 * 100].reshape(100, 500)
    buffer = np.empty((500, matrix.shape[1]), np.float32)

    def cpu_ms(count, work):
        begin = time.process_time()
        work()
        return 1e3 / count * (time.process_time() - begin)

    found = {"buffer_cpu_ms": cpu_ms(len(rows), lambda: [matrix[batch].toarray(out=buffer) for batch in rows])}
    for name, kind, options in (("numpy", chunkhit.SparseLoader, {}), ("torch", chunkhit.torch.SparseLoader, {}),
                                ("torch_read_only", chunkhit.torch.SparseLoader, {"writable": False})):
        loader = kind(os.path.join(folder, "shards"), batch_size=500, shuffle="global", threads=1, **options)
        epochs = iter(range(3))
        run = lambda: [batch.index for batch in loader.epoch(next(epochs))]  # noqa: E731
        run()
        found[name + "_cpu_ms"] = cpu_ms(2 * len(loader), lambda: (run(), run()))
    return found


def medians(of):
    return {name: statistics.median(each[name] for each in of) for name in of[0]}


def one_round():
    pandas_s = seconds(read_with_pandas)
    typed_s = seconds(read_typed_columns)
    memory = []
    pack_s = seconds(lambda: memory.append(pack("shards")))
    found = {"pandas_scipy_s": pandas_s, "typed_columns_s": typed_s, "pack_sparse_s": pack_s, "pack_sparse_gb": memory[0],
             "toarray_ms": toarray_ms()} | buffer_cpu_ms()
    return found | json.loads(subprocess.check_output([f"{build}/tests/sparse_bench", os.path.join(folder, "shards")]))


def report(found):
    def line(what, value, aim):
        print(f"{what:75} {value:12} aim {aim}")
    line("reading and packing, beside pandas + scipy", f"{found['pandas_scipy_s'] / found['pack_sparse_s']:.1f} times", 8)
    megabytes = os.path.getsize(csv) / 1e6
    line(f"the same, beside typed columns and factorize ({megabytes / found['typed_columns_s']:.0f} MB/s)",
         f"{found['typed_columns_s'] / found['pack_sparse_s']:.1f} times", 4.5)
    line("reading and packing", f"{megabytes / found['pack_sparse_s']:.0f} MB/s", 300)
    line("its peak memory", f"{found['pack_sparse_gb']:.2f} GB", "1.5 GB")
    line("shards, bytes a rating", f"{bytes_a_rating('shards'):.3f}", 1.25)
    line("shards, binarised, bytes a rating", f"{bytes_a_rating('binary'):.3f}", 0.85)
    line("dense f32 batch, one thread, beside toarray", f"{found['toarray_ms'] / found['dense_f32_ms']:.0f} times", 25)
    for name, what in (("numpy", "NumPy"), ("torch", "torch"), ("torch_read_only", "torch, writable=False")):
        line(f"the same in Python, beside toarray(out=buffer), CPU: {what}",
             f"{found['buffer_cpu_ms'] / found[name + '_cpu_ms']:.1f} times", 5)
        line(f"CPU time of {what}", f"{found[name + '_cpu_ms']:.2f} ms", "")
    line("CPU time of toarray(out=buffer)", f"{found['buffer_cpu_ms']:.2f} ms", "")
    line("dense f32 / f16 / u8 batch, one thread",
         f"{found['dense_f32_ms']:.2f} / {found['dense_f16_ms']:.2f} / {found['dense_u8_ms']:.2f} ms", "1.3 ms")
    line("CSR batch, one thread, beside toarray", f"{found['toarray_ms'] / found['csr_ms']:.0f} times", 300)
    line("page faults a dense batch", f"{found['dense_faults_per_batch']:.3f}", 0)
    line("an epoch of dense batches, two threads", f"{found['dense_epoch_2_threads_s']:.2f} s", "0.6 s")
    line("CSR from shards, stream, a thread", f"{found['stream_csr_rows_per_second'] / 1e6:.2f} M rows/s", 0.8)
    line("waiting beside a step of 19.7 ms", f"{100 * found['wait_fraction']:.2f} %", "1 %")


try:
    found = medians([one_round() for _ in range(rounds)])
    pack("binary", "--binarize")
    report(found)
finally:
    shutil.rmtree(folder, ignore_errors=True)
