#!/usr/bin/env python3
"""The same work in PyTorch: a batch copied and normalised.

Usage: torch_figures.py                 a batch
       torch_figures.py PACK REPEATS    chunkhit.torch's loader, whose pack is read REPEATS times an epoch"""
import sys
import time

import torch

DEVICE = torch.device("cuda")
SHAPE = (256, 224, 224, 3)
EPOCHS = 5  # after one that fills the caches


def median_microseconds(work):
    times = []
    for run in range(23):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        if run >= 3:
            times.append(begin.elapsed_time(end) * 1e3)
    return sorted(times)[10]


def print_work():
    mean = torch.tensor([0.485, 0.456, 0.406], device=DEVICE).view(1, 3, 1, 1)
    std = torch.tensor([0.229, 0.224, 0.225], device=DEVICE).view(1, 3, 1, 1)
    pinned = torch.zeros(SHAPE, dtype=torch.uint8, pin_memory=True)
    pageable = torch.zeros(SHAPE, dtype=torch.uint8)
    there = pinned.to(DEVICE)

    def normalize(batch):
        planes = batch.permute(0, 3, 1, 2).contiguous()
        return planes.float().div_(255).sub_(mean).div_(std)

    print("| torch " + torch.__version__ + ", " + torch.cuda.get_device_name() + " | µs |\n|---|---|")
    for what, work in (("`.to(device, non_blocking=True)`, pinned", lambda: pinned.to(DEVICE, non_blocking=True)),
                       ("the same, pageable", lambda: pageable.to(DEVICE, non_blocking=True)),
                       ("`.permute.contiguous().float().div_().sub_().div_()`", lambda: normalize(there)),
                       ("both, pinned", lambda: normalize(pinned.to(DEVICE, non_blocking=True)))):
        print(f"| {what} | {median_microseconds(work):.0f} |")


def print_loader(pack, repeats):
    import chunkhit.torch
    loader = chunkhit.torch.ImageLoader([pack] * repeats, batch_size=256, shuffle="window", seed=7, device="cuda",
                                        dtype="float32", normalize=dict(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225]))
    samples = 0
    for epoch in range(EPOCHS + 1):
        if epoch == 1:
            begin, samples = time.perf_counter(), 0
        for images, _ in loader.epoch(epoch):
            samples += len(images)
        torch.cuda.synchronize()
    rate = samples / (time.perf_counter() - begin)
    print(f"| chunkhit.torch | images/s | batches/s |\n|---|---|---|\n| ImageLoader, f32, normalized | {rate:.0f} | {rate / 256:.0f} |")


if len(sys.argv) == 3:
    print_loader(sys.argv[1], int(sys.argv[2]))
else:
    print_work()
