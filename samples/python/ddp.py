#!/usr/bin/python3
"""Trains one model in several processes, each of which gets its own samples; stops in the middle of an epoch and goes on
with other numbers of processes. Says what it proved; the exit code is 1 where something does not hold.

usage: torchrun --nproc_per_node 2 samples/python/ddp.py [PACK] [--batch N] [--checkpoint FILE]
(Debian 12: /usr/bin/torchrun --redirects 9:1 --tee 9:1 ...; its Python is too new for its torchrun's defaults.) Without PACK it
packs small images of its own.
With --checkpoint the first run ends in the middle of an epoch, and the next one, of any number of processes, goes on there;
without it, each process plays those of other numbers for the rest of that epoch.
"""
import argparse
import itertools
import os
import random
import sys
import tempfile

import torch
import torch.distributed as distributed
from torch.nn.parallel import DistributedDataParallel

import chunkhit
import chunkhit.torch

OWN_IMAGES = 1003  # no multiple of anything
ORDER = dict(shuffle="window", window_chunks=4, seed=7)
EPOCH = 1  # the one that is left in its middle


class Proof:
    """What was claimed, and whether all of it holds; every rank comes to the same result."""

    def __init__(self):
        self.holds = True

    def claim(self, holds, text):
        self.holds &= bool(holds)
        if distributed.get_rank() == 0:
            print("ok  " if holds else "NOT ", text, flush=True)

    def claim_equal(self, found, what):
        self.claim(all(each == found[0] for each in found), what)

    def claim_each_once(self, samples, size, ranks, what):
        more = len(samples) - len(set(samples))
        twice = f", but for {more} that give all ranks equally many" if more else ""
        self.claim(set(samples) == set(range(size)) and more < ranks, f"{what}: each of {size:,} samples once{twice}")


def gathered(found):
    """What the ranks found, in their order."""
    all_found = [None] * distributed.get_world_size()
    distributed.all_gather_object(all_found, found)
    return all_found


def all_samples(ranks):
    """The samples of ranks' batches."""
    return [sample for batches in ranks for samples in batches for sample in samples]


def own_pack(folder):
    """A pack of random images."""
    draw = random.Random(1)
    for number in range(OWN_IMAGES):
        os.makedirs(f"{folder}/images/{number % 3}", exist_ok=True)
        with open(f"{folder}/images/{number % 3}/{number}.ppm", "wb") as file:
            file.write(b"P6 8 8 255\n" + draw.randbytes(8 * 8 * 3))
    chunkhit.pack_images(f"{folder}/images", f"{folder}/pack", chunk_samples=50, progress=False)
    return f"{folder}/pack"


class Training:
    """A linear model, the same in all ranks: DistributedDataParallel gives each the mean of all gradients."""

    def __init__(self, path, options):
        # rank and world_size are those of torch.distributed.
        self.loader = chunkhit.torch.ImageLoader(path, dtype="float32", batch_size=own_batch(options, distributed.get_world_size()),
                                                 **ORDER)
        torch.manual_seed(0)
        pixels, classes = torch.Size(self.loader.batch_shape[1:]).numel(), len(self.loader.info["classes"])
        self.model = DistributedDataParallel(torch.nn.Linear(pixels, classes))
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.01)

    def train(self, batches, most=None):
        """The samples of each batch, of all batches or the first `most`."""
        found = []
        for batch in itertools.islice(batches, most):
            images, labels = batch
            self.optimizer.zero_grad()
            torch.nn.functional.cross_entropy(self.model(images.flatten(1)), labels).backward()
            self.optimizer.step()
            found.append(batch.samples.tolist())
        return found

    def weights(self):
        return self.model.module.weight.detach().numpy().tobytes()


def own_batch(options, ranks):
    return max(1, options.batch // ranks)


def left_of_epoch(path, options, state, rank, ranks):
    """The samples of each batch that one of so many ranks gets after the state."""
    loader = chunkhit.torch.ImageLoader(path, batch_size=own_batch(options, ranks), rank=rank, world_size=ranks, **ORDER)
    loader.load_state_dict(state)
    return [batch.samples.tolist() for batch in loader]


def prove_whole_epoch(training, proof):
    found = gathered(training.train(training.loader.epoch(0)))
    size, ranks = training.loader.size, len(found)
    proof.claim_equal([len(batches) for batches in found], f"{ranks} ranks took {len(found[0])} steps each")
    proof.claim_each_once(all_samples(found), size, ranks, f"{ranks} ranks together")
    proof.claim_equal(gathered(training.weights()), "all ranks have the same weights")


def prove_other_ranks(training, path, options, proof):
    """Leaves the epoch in its middle, and goes on with each number of ranks: every process plays some of them."""
    own_ranks = distributed.get_world_size()
    before = gathered(training.train(training.loader.epoch(EPOCH), len(training.loader) // 2))
    state = training.loader.state_dict()
    proof.claim_equal(gathered(state), f"{own_ranks} ranks stopped after {len(before[0])} steps with one state")
    for ranks in sorted({1, own_ranks, 2 * own_ranks}):
        played = range(distributed.get_rank(), ranks, own_ranks)
        after = sum(gathered([left_of_epoch(path, options, state, rank, ranks) for rank in played]), [])
        proof.claim_equal([len(batches) for batches in after], f"{ranks} went on for {len(after[0])} steps each")
        proof.claim_each_once(all_samples(before + after), training.loader.size, ranks, f"{own_ranks}, then {ranks}")


def save(checkpoint, training, samples):
    if distributed.get_rank() == 0:
        torch.save({"loader": training.loader.state_dict(), "model": training.model.module.state_dict(),
                    "samples": samples}, f"{checkpoint}.new")
        os.replace(f"{checkpoint}.new", checkpoint)
        print(f"stopped in the middle of the epoch; the same command goes on from {checkpoint}")


def go_on(training, options, proof):
    """Trains a part of the epoch, from where the checkpoint says."""
    samples, most = [], options.steps or len(training.loader) // 2
    if os.path.exists(options.checkpoint):
        left = torch.load(options.checkpoint)
        training.loader.load_state_dict(left["loader"])
        training.model.module.load_state_dict(left["model"])
        samples, most = left["samples"], options.steps
    else:
        training.loader.set_epoch(EPOCH)
    found = gathered(training.train(training.loader, most))
    samples = samples + all_samples(found)
    proof.claim_equal([len(batches) for batches in found], f"{len(found)} ranks took {len(found[0])} steps each")
    proof.claim_equal(gathered(training.weights()), "all ranks have the same weights")
    if most is not None and len(found[0]) == most:
        return save(options.checkpoint, training, samples)
    proof.claim_each_once(samples, training.loader.size, len(found), "all runs together")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("pack", nargs="?")
    arguments.add_argument("--batch", type=int, default=60, help="samples a step, of all ranks together")
    arguments.add_argument("--checkpoint")
    arguments.add_argument("--steps", type=int, help="with --checkpoint: of this run; else half of an epoch, then what is left")
    options = arguments.parse_args()
    distributed.init_process_group("gloo")
    proof = Proof()
    with tempfile.TemporaryDirectory() as folder:
        path = gathered(options.pack or (own_pack(folder) if distributed.get_rank() == 0 else None))[0]
        training = Training(path, options)
        if options.checkpoint:
            go_on(training, options, proof)
        else:
            prove_whole_epoch(training, proof)
            prove_other_ranks(training, path, options, proof)
        distributed.barrier()  # the pack is one rank's
    distributed.destroy_process_group()
    sys.exit(0 if proof.holds else 1)


if __name__ == "__main__":
    main()
