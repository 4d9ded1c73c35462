#!/usr/bin/python3
"""Trains Mult-VAE (Liang and others, Variational Autoencoders for Collaborative Filtering, 2018) on user-item ratings,
fed in three ways, and says how long each epoch took, how much of it waited for data, and what the model learnt.

usage: recommender.py [RATINGS] [--epochs N] [--batch N] [--hidden N] [--latent N] [--held-out N] [--device cpu|cuda] [--json]
RATINGS is a file for `pack-sparse --preset vae-cf`, or a folder with the packs train and test of `pack-sparse --split-by users`;
without it, Debian's packages are the users and what they depend on is their items. The ways, which train the same model on
the same batches: mat[rows].toarray(); the same in a thread that is some batches ahead; and chunkhit.
"""
import argparse
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading

import numpy as np
import torch
from torch.nn import functional
from training_clock import training_times, use_all_cpus

import chunkhit
import chunkhit.torch

SHOWN = 20
MAX_KL = 0.2  # weight of the divergence, reached at the end
AHEAD = 4  # batches


class MultVae(torch.nn.Module):
    def __init__(self, items, hidden, latent):
        super().__init__()
        self.encoder = torch.nn.Sequential(torch.nn.Linear(items, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, 2 * latent))
        self.decoder = torch.nn.Sequential(torch.nn.Linear(latent, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, items))

    def forward(self, x):
        """Scores of all items, and the divergence of the codes from the normal distribution."""
        known = functional.dropout(functional.normalize(x), 0.5, self.training)
        mean, log_variance = self.encoder(known).chunk(2, 1)
        code = mean + torch.exp(log_variance / 2) * torch.randn_like(mean) if self.training else mean
        divergence = (mean.square() + log_variance.exp() - 1 - log_variance).sum(1).mean() / 2
        return self.decoder(code), divergence


class Training:
    """A model, and what a step of its training does."""

    def __init__(self, items, options, steps):
        use_all_cpus()
        torch.manual_seed(0)
        self.model = MultVae(items, options.hidden, options.latent).to(options.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), options.rate)
        self.steps, self.done, self.loss = steps, 0, None

    def step(self, x):
        scores, divergence = self.model(x)
        weight = min(MAX_KL, MAX_KL * self.done / self.steps)
        self.loss = -(functional.log_softmax(scores, 1) * x).sum(1).mean() + weight * divergence
        self.optimizer.zero_grad(set_to_none=True)
        self.loss.backward()
        self.optimizer.step()
        self.done += 1


def recall(scores, batch):
    """The sum over users of the share of their held-out items that are among the 20 which they would be shown."""
    held_out = batch.held_out > 0
    shown = scores.masked_fill(batch.x > 0, -torch.inf).topk(min(SHOWN, scores.shape[1])).indices
    return (held_out.gather(1, shown).sum(1) / held_out.sum(1).clamp(1, SHOWN)).sum().item()


def tested(test, device, score):
    loader = chunkhit.torch.SparseLoader(test, device=device, binarize=True, writable=False)
    with torch.no_grad():
        return sum(recall(score(batch.x), batch) for batch in loader) / loader.size


def read_ahead(batches):
    """The same batches, made by a thread."""
    ready = queue.Queue(AHEAD)

    def make():
        for batch in batches:
            ready.put(batch)
        ready.put(None)

    threading.Thread(target=make, daemon=True).start()
    return iter(ready.get, None)


class Ways:
    """For each way, a function that gives the batches of an epoch, on the device: the same rows in each of them."""

    def __init__(self, train, options):
        self.device = torch.device(options.device)
        common = dict(batch_size=min(options.batch, chunkhit.pack_info(train)["rows"]), shuffle="global", seed=1,
                      drop_last=True, binarize=True)
        rows = chunkhit.SparseLoader(train, format="csr", **common)
        self.orders = [[batch.rows.copy() for batch in rows.epoch(epoch)] for epoch in range(options.epochs)]
        self.matrix = chunkhit.SparseDataset(train, format="csr")[:].to_scipy()
        self.matrix.data[:] = 1
        self.loader = chunkhit.torch.SparseLoader(train, device=options.device, writable=False, **common)

    def toarray(self, epoch):
        for rows in self.orders[epoch]:
            yield torch.from_numpy(self.matrix[rows].toarray()).to(self.device)

    def toarray_ahead(self, epoch):
        made = (torch.from_numpy(self.matrix[rows].toarray()) for rows in self.orders[epoch])
        pinned = (x.pin_memory() for x in made) if self.device.type == "cuda" else made
        return (x.to(self.device, non_blocking=True) for x in read_ahead(pinned))

    def chunkhit(self, epoch):
        return (batch.x for batch in self.loader.epoch(epoch))


def pack(options, folder):
    """The folder of the packs train and test."""
    if options.ratings and os.path.isdir(options.ratings):
        return options.ratings
    held_out = dict(validation=options.held_out, test=options.held_out)
    if options.ratings:
        chunkhit.pack_sparse(options.ratings, f"{folder}/packs", preset="vae-cf", **held_out)
        return f"{folder}/packs"
    export = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../export_dependencies.py")
    subprocess.run([sys.executable, export, f"{folder}/dependencies.csv"], check=True)
    chunkhit.pack_sparse(f"{folder}/dependencies.csv", f"{folder}/packs", user="package", item="dependency", min_user=8,
                         min_item=20, split_by="users", **held_out)
    return f"{folder}/packs"


def measure(ways, name, test, options):
    steps = sum(len(order) for order in ways.orders)
    training = Training(ways.matrix.shape[1], options, steps)
    epochs = (getattr(ways, name)(epoch) for epoch in range(options.epochs))
    resident = torch.from_numpy(ways.matrix[ways.orders[0][0]].toarray()).to(ways.device)
    found = {}

    def all_epochs():
        yield from epochs
        found["loss"] = training.loss.item()
        training.model.eval()
        found[f"recall_at_{SHOWN}"] = tested(test, options.device, lambda x: training.model(x)[0])
        training.model.train()

    times = training_times(all_epochs(), training.step, resident, options.device)
    return {**times, **found}


def show(table):
    print(f"{table['users']:,} users, {table['items']:,} items, {table['ratings']:,} ratings; {table['steps']} steps an epoch; "
          f"recall@{SHOWN} of what is popular {table['recall_of_popular']:.3f}")
    print(f"{'':22}{'epoch':>9}{'waited':>9}{'share':>8}{'a step':>10}{'utilisation':>13}{'loss':>9}{'recall':>8}")
    for name, row in table["ways"].items():
        print(f"{name:22}{row['epoch_seconds']:8.2f}s{row['wait_seconds']:8.3f}s{row['wait_fraction']:8.2%}"
              f"{1e3 * row['step_seconds']:8.1f}ms{row['utilisation']:13.1%}{row['loss']:9.2f}{row[f'recall_at_{SHOWN}']:8.3f}")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("ratings", nargs="?")
    arguments.add_argument("--epochs", type=int, default=8)
    arguments.add_argument("--batch", type=int, default=500)
    arguments.add_argument("--hidden", type=int, default=200, help="600 in the paper")
    arguments.add_argument("--latent", type=int, default=64, help="200 in the paper")
    arguments.add_argument("--rate", type=float, default=0.005, help="of learning; 0.001 in the paper")
    arguments.add_argument("--held-out", type=int, default=500, help="users to test on, and as many to validate on")
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        packs = pack(options, folder)
        ways = Ways(f"{packs}/train", options)
        popularity = torch.from_numpy(ways.loader.item_counts()).float().to(ways.device)
        table = {"users": ways.matrix.shape[0], "items": ways.matrix.shape[1], "ratings": ways.matrix.nnz,
                 "steps": len(ways.orders[0]),
                 "recall_of_popular": tested(f"{packs}/test", options.device, lambda x: popularity.expand(len(x), -1)),
                 "ways": {label: measure(ways, name, f"{packs}/test", options) for label, name in (
                     ("toarray", "toarray"), ("toarray in a thread", "toarray_ahead"), ("chunkhit", "chunkhit"))}}
    if options.json:
        return print(json.dumps(table))
    show(table)


if __name__ == "__main__":
    try:
        main()
    except chunkhit.Error as error:
        sys.exit(f"recommender.py: {error}")
