"""Times of a training: its epochs, how much of them it waited for data, and the same steps on data that is there."""
import itertools
import os
import time

import torch


def use_all_cpus():
    """torch takes one thread for two hardware threads; on few CPUs the second one is worth having."""
    torch.set_num_threads(len(os.sched_getaffinity(0)))


def synchronize(device):
    """Waits until the device has done what it was given; the CPU does at once."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize()


def time_epoch(batches, step, device):
    """Seconds of the epoch, seconds of them that it waited for a batch, and steps."""
    waited, steps = 0.0, 0
    synchronize(device)
    begin = asked = time.perf_counter()
    for batch in batches:
        waited += time.perf_counter() - asked
        step(batch)
        steps += 1
        asked = time.perf_counter()
    waited += time.perf_counter() - asked
    synchronize(device)
    return time.perf_counter() - begin, waited, steps


def mean_epoch(epochs, step, device):
    """The means of `time_epoch` over the epochs after the first, which fills caches. Means, because batches are also
    made ahead for the next epoch."""
    found = [time_epoch(batches, step, device) for batches in epochs]
    counted = found[1:] or found
    return [sum(column) / len(counted) for column in zip(*counted)]


def training_times(epochs, step, resident, device):
    """One row of a table: `epochs` are iterables of batches, `resident` is a batch that is on the device."""
    seconds, waited, steps = mean_epoch(epochs, step, device)
    alone, _, _ = time_epoch(itertools.repeat(resident, round(steps)), step, device)
    return {"epoch_seconds": seconds, "wait_seconds": waited, "wait_fraction": waited / seconds,
            "step_seconds": seconds / steps, "resident_step_seconds": alone / round(steps),
            "utilisation": alone / seconds}
