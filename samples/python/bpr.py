#!/usr/bin/python3
"""Trains matrix factorisation by BPR (Rendle et al., Bayesian Personalized Ranking from Implicit Feedback, 2009), and says how often
an item that was held out of each user is among the ten that the model would show, beside the ten most popular ones.

usage: bpr.py [RATINGS] [--epochs N] [--batch N] [--negatives N] [--power P] [--hidden N] [--device cpu|cuda] [--json]
RATINGS is a table of users and items, or a folder with the packs train and test of
`pack-sparse --split-by leave-one-out`; without it, users with a few tastes each draw items that suit them.
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


def write_tastes(path, users=1500, items=400, tastes=16, seed=1):
    """An item belongs to a taste. A user has two of them, and draws an item that does not suit every fifth time."""
    random = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, items + 1) ** 0.8
    taste_of = random.integers(0, tastes, items)
    with open(path, "w") as file:
        file.write("user,item,rating\n")
        for user in range(users):
            suits = np.isin(taste_of, random.choice(tastes, 2, replace=False))
            weights = popularity * np.where(suits, 4 / (popularity * suits).sum(), 1 / (popularity * ~suits).sum())
            drawn = random.choice(items, random.integers(8, 30), replace=False, p=weights / weights.sum())
            file.writelines(f"{user},{item},1\n" for item in drawn)


class Factors(nn.Module):
    def __init__(self, users, items, hidden):
        super().__init__()
        self.users, self.items = nn.Embedding(users, hidden), nn.Embedding(items, hidden)
        self.bias = nn.Embedding(items, 1)
        for table in (self.users, self.items):
            nn.init.normal_(table.weight, std=0.1)
        nn.init.zeros_(self.bias.weight)

    def forward(self, users, items):
        """Scores (pairs, items of each)."""
        return (self.items(items) @ self.users(users)[:, :, None] + self.bias(items))[..., 0]

    def of_all(self, users):
        return self.users(users) @ self.items.weight.T + self.bias.weight[:, 0]


def train(model, loader, epochs, rate, decay):
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=decay)
    for epoch in range(epochs):
        for batch in loader.epoch(epoch):
            users, items, _, negatives = batch.x
            loss = -functional.logsigmoid(model(users, items[:, None]) - model(users, negatives)).mean()
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
    return loss.item()


def hit_rate(loader, score):
    """The share of users whose held-out item is among the ten with the highest scores, items that they have left out."""
    hits = 0
    with torch.no_grad():
        for batch in loader:
            shown = score(batch.rows).masked_fill(batch.x != 0, -torch.inf).topk(SHOWN).indices
            hits += (batch.held_out.gather(1, shown) != 0).sum().item()
    return hits / loader.size


def pack(options, folder):
    """The folder of the packs train and test."""
    if options.ratings and os.path.isdir(f"{options.ratings}/train"):
        return options.ratings
    if not options.ratings:
        write_tastes(f"{folder}/tastes.csv")
    chunkhit.pack_sparse(options.ratings or f"{folder}/tastes.csv", f"{folder}/packs", split_by="leave-one-out", min_user=3,
                         split_order="auto" if options.ratings else "random")
    return f"{folder}/packs"


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("ratings", nargs="?")
    arguments.add_argument("--epochs", type=int, default=12)
    arguments.add_argument("--batch", type=int, default=512)
    arguments.add_argument("--negatives", type=int, default=4, help="items that are drawn with each rating")
    arguments.add_argument("--power", type=float, default=0, help="how popularity weighs them; 0: not at all")
    arguments.add_argument("--hidden", type=int, default=32)
    arguments.add_argument("--rate", type=float, default=0.01, help="of learning")
    arguments.add_argument("--decay", type=float, default=0.5, help="of the weights")
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        packs = pack(options, folder)
        loader = chunkhit.torch.SparseLoader(f"{packs}/train", format="pairs", shuffle="global", batch_size=options.batch,
                                             negatives=options.negatives, negatives_power=options.power, device=options.device)
        test = chunkhit.torch.SparseLoader(f"{packs}/test", batch_size=256, device=options.device)
        users = chunkhit.pack_info(f"{packs}/train")["rows"]
        model = Factors(users, loader.column_count, options.hidden).to(options.device)
        loss = train(model, loader, options.epochs, options.rate, options.decay)
        popularity = torch.from_numpy(loader.item_counts()).float().to(options.device)
        # The rows of the test are users of the training, which may have other numbers there.
        user_of = torch.from_numpy(loader.rows_of(test.row_ids())).to(options.device)
        if (user_of < 0).any():
            raise chunkhit.Error(f"{packs}/test: has users that train lacks; pack with --split-by leave-one-out", "bad_data")
        table = {"users": users, "items": loader.column_count, "ratings": loader.size, "loss": loss,
                 "hit_rate": hit_rate(test, lambda rows: model.of_all(user_of[rows])),
                 "hit_rate_of_popular": hit_rate(test, lambda rows: popularity.expand(len(rows), -1))}
    if options.json:
        return print(json.dumps(table))
    print(f"{table['users']:,} users, {table['items']:,} items, {table['ratings']:,} ratings: HR@{SHOWN} {table['hit_rate']:.3f}, of what "
          f"is popular {table['hit_rate_of_popular']:.3f}; loss {table['loss']:.2f}")


if __name__ == "__main__":
    try:
        main()
    except chunkhit.Error as error:
        sys.exit(f"bpr.py: {error}")
