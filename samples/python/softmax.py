#!/usr/bin/python3
"""Trains softmax regression on a pack with NumPy alone, and says how many images of another pack it names rightly.

usage: softmax.py TRAIN TEST [EPOCHS]
"""
import sys

import numpy as np

import chunkhit

BATCH = 100
RATE = 0.02


def as_rows(images):
    """Pixels as rows, with a one for the bias behind them."""
    return np.concatenate([images.reshape(len(images), -1), np.ones((len(images), 1), np.float32)], axis=1)


def step(weights, rows, labels):
    """One step of gradient descent; returns the mean cross-entropy before it."""
    scores = rows @ weights
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    own = np.arange(len(labels)), labels
    loss = -np.log(np.maximum(shares[own], 1e-30)).mean()
    shares[own] -= 1
    weights -= RATE / len(labels) * (rows.T @ shares)
    return loss


def names_of(pack):
    return [(entry["id"], entry["name"]) for entry in chunkhit.pack_info(pack)["classes"]]


def main(train, test, epochs=10):
    classes = names_of(train)
    if classes != names_of(test):
        sys.exit("softmax.py: the packs have other classes, expected the same")
    options = {"batch_size": BATCH, "dtype": "float32", "normalize_like": train}
    loader = chunkhit.ImageLoader(train, shuffle="window", seed=7, **options)
    weights = None
    for epoch in range(int(epochs)):
        losses = []
        for images, labels in loader.epoch(epoch):
            rows = as_rows(images)
            if weights is None:
                weights = np.zeros((rows.shape[1], len(classes)), np.float32)
            losses.append(step(weights, rows, labels))
        print(f"epoch {epoch}: loss {np.mean(losses):.4f}")
    right = [(as_rows(images) @ weights).argmax(axis=1) == labels for images, labels in chunkhit.ImageLoader(test, **options)]
    print(f"test accuracy {100 * np.mean(np.concatenate(right)):.1f} %")
    print(loader.stats())


if __name__ == "__main__":
    main(*sys.argv[1:])
