#!/usr/bin/env python3
"""Reproduces the order of epochs from schemas/order.md and compares it with the library's. Usage: order_test.py ORDER_PROBE"""
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from described_order import BITS, Permutation, batches_of, order_of


def cases():
    """Pairs of a request and the numbers that must come back."""
    draw = random.Random(1)
    seed = lambda: draw.choice([0, 7, draw.getrandbits(64)])
    for count in [*range(1, 70), 127, 128, 129, 1000, 65535, 65537, 1_000_003, 1 << 33, (1 << 63) + 1, BITS]:
        key, indices = seed(), [draw.randrange(count) for _ in range(20)]
        yield f"permutation {count} {key} {' '.join(map(str, indices))}", list(map(Permutation(count, key), indices))
    for _ in range(300):
        shape = (draw.randrange(3), seed(), draw.choice([1, 2, 3, 64]), draw.randrange(4))
        usual = draw.randrange(1, 12)
        counts = [draw.choice([usual, usual, usual, draw.randrange(1, 20)]) for _ in range(draw.randrange(1, 20))]
        yield f"order {' '.join(map(str, shape + tuple(counts)))}", order_of(*shape, counts)
    for _ in range(500):
        samples, ranks = draw.randrange(1, 200), draw.randrange(1, 6)
        fields = (samples, draw.randrange(1, 12), draw.randrange(ranks), ranks, draw.randrange(2), draw.randrange(2),
                  draw.randrange(1, 4), seed(), draw.randrange(4), draw.choice([0, draw.randrange(samples)]))
        batches = batches_of(*fields)
        yield f"batches {' '.join(map(str, fields))}", [token for batch in batches for token in [*batch, "|"]]


def main():
    wanted = list(cases())
    requests = "\n".join(request for request, _ in wanted) + "\n"
    answers = subprocess.run([sys.argv[1]], input=requests, stdout=subprocess.PIPE, text=True, check=True).stdout
    lines = answers.splitlines()
    assert len(lines) == len(wanted), f"{len(lines)} answers, expected {len(wanted)}"
    for line, (request, expected) in zip(lines, wanted):
        assert line.split() == [str(token) for token in expected], f"{request}\n  found {line}\n  expected {expected}"
    print(f"{len(wanted)} orders are as schemas/order.md says")


main()
