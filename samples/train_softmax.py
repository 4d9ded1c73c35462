#!/usr/bin/python3
"""Trains softmax regression on a pack, read with h5py, and prints its accuracy on another.

usage: train_softmax.py TRAIN_PACK TEST_PACK [--epochs N]
"""
import argparse
import glob
import json
import os
import time

import h5py
import numpy as np


def read_pack(folder):
    """Returns images (N, D) float32 in 0..1 and labels (N,) of all parts of an HDF5 pack."""
    with open(os.path.join(folder, "manifest.json")) as file:
        parts = [part["file"] for part in json.load(file)["parts"]]
    images, labels = [], []
    for part in parts:
        with h5py.File(os.path.join(folder, part), "r") as file:
            images.append(file["images"][:])
            labels.append(file["labels"][:])
    pixels = np.concatenate(images).astype(np.float32) / 255
    return pixels.reshape(len(pixels), -1), np.concatenate(labels)


def train(images, labels, epochs, batch=256, rate=0.15, decay=0.9):
    """Returns the weights (D + 1, classes) after mini-batch gradient descent with momentum."""
    rng = np.random.default_rng(0)
    inputs = np.hstack([images, np.ones((len(images), 1), np.float32)])
    weights = np.zeros((inputs.shape[1], labels.max() + 1), np.float32)
    momentum = np.zeros_like(weights)
    for epoch in range(epochs):
        order = rng.permutation(len(inputs))
        for first in range(0, len(order), batch):
            rows = order[first : first + batch]
            scores = inputs[rows] @ weights
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
            scores /= scores.sum(axis=1, keepdims=True)
            scores[np.arange(len(rows)), labels[rows]] -= 1
            momentum = decay * momentum + inputs[rows].T @ scores / len(rows)
            weights -= rate * (1 - decay) * momentum
    return weights


def accuracy(weights, images, labels):
    scores = images @ weights[:-1] + weights[-1]
    return float((scores.argmax(axis=1) == labels).mean())


arguments = argparse.ArgumentParser(description=__doc__)
arguments.add_argument("train")
arguments.add_argument("test")
arguments.add_argument("--epochs", type=int, default=15)
options = arguments.parse_args()
begin = time.perf_counter()
weights = train(*read_pack(options.train), options.epochs)
print(f"trained {options.epochs} epochs in {time.perf_counter() - begin:.1f} s; "
      f"test accuracy {accuracy(weights, *read_pack(options.test)):.1%}")
