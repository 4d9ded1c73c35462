"""Perceptual hashes: near-duplicates are images whose hashes differ in few bits."""
from __future__ import annotations

from functools import lru_cache
from typing import Any, Dict, Iterator, List, Tuple

import numpy as np

MAX_BITS = 10  # of 128 that differ between near-duplicates
FLAT = 4.0  # standard deviation, of 255, below which an image is of one color or nearly, and has no features to compare
BANDS = MAX_BITS + 1  # two hashes of at most MAX_BITS different bits agree in one of so many groups of bits
BLOCK = 512  # hashes that are compared with each other at once
PAIRS, FOURS, NIBBLES = (np.uint64(0xffffffffffffffff // divisor) for divisor in (3, 5, 17))  # bits 01, 0011, 00001111 repeated
BYTES = np.uint64(0x0101010101010101)


def shrink(gray: np.ndarray[Any, Any], height: int, width: int) -> np.ndarray[Any, Any]:
    """Means over areas: float32 (height, width). Smaller images are enlarged by repeating pixels."""
    if gray.shape[0] < height or gray.shape[1] < width:
        gray = np.repeat(np.repeat(gray, -(-height // gray.shape[0]), axis=0), -(-width // gray.shape[1]), axis=1)
    rows, columns, areas = grid(*gray.shape, height, width)
    return np.asarray(np.add.reduceat(np.add.reduceat(gray, rows, axis=0), columns, axis=1) / areas)


@lru_cache(64)
def grid(height: int, width: int, rows: int, columns: int) -> Tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Where areas begin, down and across, and how many pixels each has."""
    down, across = (np.linspace(0, side, count + 1).astype(int) for side, count in ((height, rows), (width, columns)))
    return down[:-1], across[:-1], np.outer(np.diff(down), np.diff(across))


def perceptual_hash(gray: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """uint64 (2,): whether each of 8 x 8 areas is darker than its right neighbor, and than the one below."""
    across, down = shrink(gray, 8, 9), shrink(gray, 9, 8)
    bits = np.concatenate([(across[:, 1:] > across[:, :-1]).ravel(), (down[1:] > down[:-1]).ravel()])
    return np.packbits(bits).view(np.uint64)


def different_bits(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Of each pair along the last axis but one. Counts of bits are added within words: pairs of bits, fours, bytes."""
    words = first ^ second
    words -= words >> np.uint64(1) & PAIRS
    words = (words & FOURS) + (words >> np.uint64(2) & FOURS)
    words = (words + (words >> np.uint64(4))) & NIBBLES
    return np.asarray(((words[..., 0] + words[..., 1]) * BYTES >> np.uint64(56)).astype(np.uint8))


def band_values(hashes: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    """The bits of each group as a number, by hash."""
    bits = np.unpackbits(np.ascontiguousarray(hashes).view(np.uint8), axis=1)
    for group in np.array_split(np.arange(bits.shape[1]), BANDS):
        packed = np.ascontiguousarray(np.packbits(bits[:, group], axis=1))
        yield packed.view(np.uint16)[:, 0]  # 11 or 12 bits


def near_pairs(hashes: np.ndarray[Any, Any], max_pairs: int) -> Tuple[List[Tuple[int, int, int]], bool]:
    """Pairs (first, second, different bits) of different hashes, those of fewest different bits first; and whether there
    were more than max_pairs, where the search ends."""
    found: Dict[Tuple[int, int], int] = {}
    for values in band_values(hashes):
        order = np.argsort(values, kind="stable")
        ends = np.flatnonzero(np.diff(values[order].astype(np.int32), append=-1)) + 1
        for begin, end in zip(np.concatenate([[0], ends[:-1]]), ends):
            if end - begin > 1:
                add_pairs(hashes, order[begin:end], found, max_pairs)
    pairs = sorted(((first, second, bits) for (first, second), bits in found.items()), key=lambda pair: (pair[2], pair))
    return pairs[:max_pairs], len(pairs) > max_pairs


def add_pairs(hashes: np.ndarray[Any, Any], members: np.ndarray[Any, Any], found: Dict[Tuple[int, int], int],
              max_pairs: int) -> None:
    """Adds near-duplicates among some hashes, until there are more than max_pairs in all."""
    for begin in range(0, len(members), BLOCK):
        rows = members[begin:begin + BLOCK]
        for start in range(begin, len(members), BLOCK):
            if len(found) > max_pairs:
                return
            columns = members[start:start + BLOCK]
            bits = different_bits(hashes[rows][:, None], hashes[columns][None])
            is_near = np.triu(bits <= MAX_BITS, 1) if start == begin else bits <= MAX_BITS
            for row, column in zip(*np.nonzero(is_near)):
                first, second = sorted((int(rows[row]), int(columns[column])))
                found[first, second] = int(bits[row, column])


def near_groups(hashes: np.ndarray[Any, Any], contrast: np.ndarray[Any, Any], digests: np.ndarray[Any, Any],
                max_pairs: int = 100_000) -> Tuple[List[Tuple[int, int, int]], int, bool]:
    """Near-duplicate pairs of images, each with its different bits, without equal images and those that are flat: the
    pairs, the number of flat images, and whether the search ended early."""
    order = np.lexsort((digests[:, 1], digests[:, 0]))
    is_first = np.ones(len(order), bool)
    is_first[1:] = (digests[order[1:]] != digests[order[:-1]]).any(axis=1)
    distinct = np.sort(order[is_first])
    is_flat = contrast[distinct] < FLAT
    kept = distinct[~is_flat]
    if len(kept) < 2:
        return [], int(is_flat.sum()), False
    pairs, is_cut = near_pairs(hashes[kept], max_pairs)
    return [(int(kept[a]), int(kept[b]), bits) for a, b, bits in pairs], int(is_flat.sum()), is_cut
