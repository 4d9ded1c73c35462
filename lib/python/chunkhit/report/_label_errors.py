"""Probable label errors: images whose neighbors by small features, and a linear probe of these, agree on another class."""
from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, List, NamedTuple, Tuple

import numpy as np

from ._perceptual import shrink

Array = np.ndarray[Any, Any]

FEATURES = 240
AXES = 32  # principal axes of the features, along which neighbors are looked for
NEIGHBORS = 10
FOLDS = 5  # of the probe: an image is judged by one that has not seen it
MIN_OF_CLASS = 2 * NEIGHBORS  # images of a class, below which its neighbors must be others
MIN_LIFT = 0.25  # how much of what the largest class leaves neighbors must agree with, or features say nothing of labels
MIN_SCORE = 0.5
ROWS = 512  # whose distances are in memory at once


class Suspect(NamedTuple):
    """An image whose label is probably wrong, by positions among the features."""

    at: int
    better: int  # the class that its neighbors have
    score: float  # 0 to 1
    neighbors: List[int]  # of that class, the nearest first


class LabelCheck(NamedTuple):
    """What was found; `agreement` is the share of images whose neighbors agree with their labels."""

    suspects: List[Suspect]  # the most probable first
    agreement: float
    checked: int


def features(image: Array, gray: Array) -> Array:
    """float32 (FEATURES,) of (height, width, channels) and its brightness: histograms of gradients in 4 x 4 areas, brightness of 8 x 8,
    colors of 4 x 4."""
    small = shrink(gray, 32, 32)
    down, across = np.gradient(small)
    length = np.hypot(down, across)
    turn = (np.arctan2(down, across) % np.pi * (8 / np.pi)).astype(int) % 8
    area = np.arange(32) // 8
    histogram = np.sqrt(np.bincount((turn * 16 + area[:, None] * 4 + area).ravel(), length.ravel(), 128))
    step = max(1, int(np.sqrt(image.shape[0] * image.shape[1] / 16384)))
    some = image[::step, ::step].astype(np.float32)
    colors = [shrink(some[..., channel if image.shape[2] >= 3 else 0], 4, 4).ravel() for channel in range(3)]
    return np.asarray(np.concatenate([histogram / (np.linalg.norm(histogram) + 1e-3), (shrink(small, 8, 8).ravel() / 255 - 0.5) / 4,
                                      np.concatenate(colors) * (0.35 / 255)]), np.float32)


def principal(points: Array) -> Array:
    """Their parts along the principal axes: float32 (n, AXES)."""
    centered = points - points.mean(axis=0)
    axes = np.linalg.eigh((centered.T @ centered).astype(np.float64))[1][:, ::-1][:, :AXES]
    return np.asarray(centered @ axes.astype(np.float32))


def nearest(points: Array, count: int) -> Array:
    """Positions of the `count` nearest other points of each, the nearest first: (n, count)."""
    squares = (points * points).sum(axis=1)

    def of_rows(begin: int) -> Array:
        distances = squares - 2 * (points[begin:begin + ROWS] @ points.T)
        own = np.arange(len(distances))
        distances[own, begin + own] = np.inf
        picks = np.argpartition(distances, count - 1, axis=1)[:, :count]
        order = np.argsort(np.take_along_axis(distances, picks, axis=1), axis=1, kind="stable")
        return np.asarray(np.take_along_axis(picks, order, axis=1))

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return np.concatenate(list(pool.map(of_rows, range(0, len(points), ROWS))))


def probe(points: Array, labels: Array, classes: int) -> Array:
    """Shares of classes (n, classes) by ridge regression; of each image by one that was fitted without its fold."""
    scaled = (points - points.mean(axis=0)) / (points.std(axis=0) + 0.05)
    inputs = np.hstack([scaled, np.ones((len(points), 1))]).astype(np.float64)
    wanted = np.eye(classes)[labels]
    fold = np.random.default_rng(0).integers(0, FOLDS, len(points))
    gram, moments = inputs.T @ inputs, inputs.T @ wanted
    ridge = 0.01 * len(points) * np.eye(inputs.shape[1])
    shares = np.zeros((len(points), classes))
    for own in (fold == number for number in range(FOLDS)):
        mine = inputs[own]
        shares[own] = mine @ np.linalg.solve(gram - mine.T @ mine + ridge, moments - mine.T @ wanted[own])
    shares = np.clip(shares, 0, 1)
    return np.asarray(shares / (shares.sum(axis=1, keepdims=True) + 1e-9))


def ranked(points: Array, labels: Array) -> Tuple[Array, Array, Array, float]:
    """A score of each image, the class that fits better, its neighbors, and the share of labels that neighbors agree with.

    The score is how much more the better class has than the label's. Pairs of classes that are often confused count less."""
    named, labels = np.unique(labels, return_inverse=True)
    counts = np.bincount(labels)
    # Classes that are too small to be judged are one: numbers of images by classes are held, by thousands of classes.
    small = counts < MIN_OF_CLASS
    new = np.where(small, 0, np.cumsum(~small) - 1 + small.any())
    labels, named = new[labels], np.concatenate([named[:0] if not small.any() else [-1], named[~small]])
    classes = len(named)
    rows = np.arange(len(labels))
    neighbors = nearest(principal(points), NEIGHBORS)
    votes = np.zeros((len(labels), classes))
    np.add.at(votes, (np.repeat(rows, NEIGHBORS), labels[neighbors].ravel()), 1 / NEIGHBORS)
    shares = (votes + probe(points, labels, classes)) / 2
    confused = np.zeros((classes, classes))
    np.add.at(confused, labels, shares)
    confused /= np.maximum(np.bincount(labels, minlength=classes), 1)[:, None]
    others = shares.copy()
    others[rows, labels] = -1
    better = others.argmax(axis=1)
    scores = (others[rows, better] - shares[rows, labels]) * (1 - confused[labels, better]) ** 8
    if small.any():
        scores[(labels == 0) | (better == 0)] = -1
    return scores, named[better], neighbors, float((votes.argmax(axis=1) == labels).mean())


def find_label_errors(points: Array, labels: Array, min_score: float = MIN_SCORE) -> LabelCheck:
    """Suspects among images of these features (n, FEATURES) and labels (n,), 0 to the number of classes. None where there are few
    images or their features do not tell the classes apart."""
    if len(labels) < 2 * MIN_OF_CLASS or len(np.unique(labels)) < 2:
        return LabelCheck([], 0.0, 0)
    scores, better, neighbors, agreement = ranked(points, labels)
    largest = float(np.bincount(labels).max()) / len(labels)
    if agreement < largest + MIN_LIFT * (1 - largest):
        return LabelCheck([], agreement, 0)
    order = np.argsort(-scores, kind="stable")
    suspects = [Suspect(int(at), int(better[at]), float(scores[at]),
                        [int(other) for other in neighbors[at] if labels[other] == better[at]])
                for at in order[:int((scores > min_score).sum())]]
    return LabelCheck(suspects, agreement, len(labels))
