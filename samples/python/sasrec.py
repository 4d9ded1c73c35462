#!/usr/bin/python3
"""Trains SASRec (Kang and McAuley, Self-Attentive Sequential Recommendation, 2018) on ratings with times, and says how often the
item that a user took last is among the ten that the model would show, beside the ten most popular ones.

usage: sasrec.py [RATINGS] [--repeats] [--epochs N] [--batch N] [--length N] [--hidden N] [--device cpu|cuda] [--json]
RATINGS is a table with a column of times, or a folder with the packs train and test of
`pack-sparse --keep-times --split-by leave-one-out`; without it, users walk through items of which each leads to a few others.
With --repeats users may take an item again, as with plays and purchases: all of it is packed, and seen items are shown, too.
"""
import argparse
import json
import os
import sys
import tempfile

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import chunkhit
import chunkhit.torch

SHOWN = 10


def write_walks(path, repeats, users=1500, items=400, seed=1):
    """Popular items come often, and after each item one of three comes as a rule."""
    random = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, items + 1) ** 0.8
    popularity /= popularity.sum()
    following = random.integers(0, items, (items, 3))
    with open(path, "w") as file:
        file.write("user,item,rating,timestamp\n")
        for user in range(users):
            item, seen = int(random.choice(items, p=popularity)), set()
            for step in range(random.integers(8, 40)):
                if repeats or item not in seen:
                    file.write(f"{user},{item},1,{1_600_000_000 + step // 4 * 86_400}\n")  # days: the lines' order counts
                seen.add(item)
                item = int(random.choice(following[item]) if random.random() < 0.8 else random.choice(items, p=popularity))


class SasRec(nn.Module):
    def __init__(self, items, length, hidden, layers=2, heads=2, dropout=0.2):
        super().__init__()
        self.padding = items  # the number that fills sequences on the left
        self.items = nn.Embedding(items + 1, hidden, padding_idx=items)
        self.positions = nn.Embedding(length, hidden)
        nn.init.normal_(self.items.weight, std=hidden ** -0.5)
        layer = nn.TransformerEncoderLayer(hidden, heads, hidden, dropout, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers)
        self.norm, self.dropout = nn.LayerNorm(hidden), nn.Dropout(dropout)
        self.register_buffer("later", torch.ones(length, length, dtype=torch.bool).triu(1))

    def forward(self, sequences):
        """A vector for each position, which scores the item that comes next."""
        length = sequences.shape[1]
        # Positions count from the right, as the padding is on the left.
        x = self.dropout(self.items(sequences) + self.positions.weight[-length:])
        later = self.later[:length, :length]
        hidden = sequences == self.padding
        # A position of padding sees itself, or its softmax would be of nothing.
        mask = (later | hidden[:, None, :]) & ~torch.eye(length, dtype=torch.bool, device=x.device)
        return self.norm(self.layers(x, mask=mask.repeat_interleave(self.layers.layers[0].self_attn.num_heads, 0)))

    def scores(self, vectors):
        return vectors @ self.items.weight[:-1].T


def train(model, loader, epochs, rate):
    optimizer = torch.optim.Adam(model.parameters(), rate)
    model.train()
    for epoch in range(epochs):
        for batch in loader.epoch(epoch):
            inputs, targets = batch.x[:, :-1], batch.x[:, 1:]
            known = inputs != model.padding
            loss = functional.cross_entropy(model.scores(model(inputs)[known]), targets[known])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
    return loss.item()


def hit_rate(loader, seen, score):
    """The share of users whose held-out item is among the ten with the highest scores, all items that are `seen` left out
    (None: none)."""
    hits = 0
    with torch.no_grad():
        for batch in loader:
            scores = score(batch.x).clone()
            if seen is not None:
                rows = seen[batch.rows.cpu().numpy()]  # batch.x has the last ones alone
                users = np.repeat(np.arange(len(scores)), np.diff(rows.indptr))
                scores[torch.from_numpy(users), torch.from_numpy(rows.indices).long()] = -torch.inf
            shown = scores.topk(SHOWN).indices
            hits += (shown == batch.held_out[:, -1:]).sum().item()
    return hits / loader.size


def pack(options, folder):
    """The folder of the packs train and test."""
    if options.ratings and os.path.isdir(f"{options.ratings}/train"):
        return options.ratings
    if not options.ratings:
        write_walks(f"{folder}/walks.csv", options.repeats)
    chunkhit.pack_sparse(options.ratings or f"{folder}/walks.csv", f"{folder}/packs", keep_times=True, split_by="leave-one-out", min_user=3,
                         duplicates="keep" if options.repeats else "last")
    return f"{folder}/packs"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("ratings", nargs="?")
    arguments.add_argument("--repeats", action="store_true", help="keep an item that a user took again")
    arguments.add_argument("--epochs", type=int, default=12)
    arguments.add_argument("--batch", type=int, default=64)
    arguments.add_argument("--length", type=int, default=50, help="items of a user that the model sees")
    arguments.add_argument("--hidden", type=int, default=48)
    arguments.add_argument("--rate", type=float, default=0.005, help="of learning")
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        packs = pack(options, folder)
        common = dict(format="sequences", times=False, device=options.device, batch_size=options.batch)
        # One item more than the model sees: each position's target is the item behind it.
        loader = chunkhit.torch.SparseLoader(f"{packs}/train", length=options.length + 1, cut="sliding", shuffle="global", **common)
        test = chunkhit.torch.SparseLoader(f"{packs}/test", length=options.length, **common)
        seen = None if options.repeats else chunkhit.SparseDataset(f"{packs}/test", format="csr", held_out=False)
        model = SasRec(loader.column_count, options.length, options.hidden).to(options.device)
        loss = train(model, loader, options.epochs, options.rate)
        model.eval()
        popularity = torch.from_numpy(loader.item_counts()).float().to(options.device)
        table = {"users": loader.size, "items": loader.column_count, "loss": loss,
                 "hit_rate": hit_rate(test, seen, lambda x: model.scores(model(x)[:, -1])),
                 "hit_rate_of_popular": hit_rate(test, seen, lambda x: popularity.expand(len(x), -1))}
    if options.json:
        return print(json.dumps(table))
    print(f"{table['users']:,} users, {table['items']:,} items: HR@{SHOWN} {table['hit_rate']:.3f}, of what is popular "
          f"{table['hit_rate_of_popular']:.3f}; loss {table['loss']:.2f}")


if __name__ == "__main__":
    try:
        main()
    except chunkhit.Error as error:
        sys.exit(f"sasrec.py: {error}")
