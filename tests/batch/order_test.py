#!/usr/bin/env python3
"""Reproduces the order of epochs from schemas/order.md and compares it with the library's. Usage: order_test.py ORDER_PROBE"""
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from described_order import BITS, Permutation, batches_of, choice_of, draws_of, mixed_order_of, order_of, sampled_order_of


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
    yield from sampled_cases(draw, seed)
    yield from mixed_cases(draw, seed)
    for _ in range(500):
        samples, ranks = draw.randrange(1, 200), draw.randrange(1, 6)
        fields = (samples, draw.randrange(1, 12), draw.randrange(ranks), ranks, draw.randrange(2), draw.randrange(2),
                  draw.randrange(1, 4), seed(), draw.randrange(4), draw.choice([0, draw.randrange(samples)]))
        batches = batches_of(*fields)
        yield f"batches {' '.join(map(str, fields))}", [token for batch in batches for token in [*batch, "|"]]


def sampled_cases(draw, seed):
    """Orders of subsets and of draws; weights that are close to nothing, or far from it."""
    for _ in range(400):
        kind, shape = draw.randrange(3), (draw.randrange(3), seed(), draw.choice([1, 2, 3, 64]), draw.randrange(4))
        counts = [draw.choice([5, 5, 5, draw.randrange(1, 20)]) for _ in range(draw.randrange(1, 20))]
        samples = sum(counts)
        if kind == 0:
            given = chosen = sorted(draw.sample(range(samples), draw.randrange(1, samples + 1)))
        else:
            odd = draw.choice([1e-300, 1e-9, 1e9, 1e280])
            given = [draw.choice([0, 1, 1, 2, draw.random(), odd]) for _ in range(samples)]
            given[draw.randrange(samples)] = 1
            most = sum(weight > 0 for weight in given) if kind == 2 else 3 * samples
            chosen = (draws_of if kind == 1 else choice_of)(given, draw.randrange(1, most + 1), shape[1], shape[3])
        fields = (*shape, kind, len(chosen), len(counts), *counts, *map(repr, given))
        expected = sampled_order_of(*shape, counts, chosen)
        yield f"sampled {' '.join(map(str, fields))}", [number for entry in expected for number in entry]


def mixed_cases(draw, seed):
    """Mixtures whose sources are used several times an epoch, or partly."""
    for number in range(300):
        shape = (draw.randrange(3), seed(), draw.choice([1, 2, 3, 64]), draw.randrange(4), draw.randrange(2))
        sources = []
        for _ in range(draw.randrange(1, 5)):
            counts = [draw.choice([5, 5, 5, draw.randrange(1, 20)]) for _ in range(draw.randrange(1, 8))]
            weight = draw.choice([1, 1, 2, 0.3, 0.7]) if number % 10 else draw.random() + 0.01
            sources.append((weight, counts))
        length = draw.choice([0, draw.randrange(1, 300), draw.randrange(1, 300), 9000 if number % 20 == 0 else 1])
        fields = [*shape, length, len(sources)]
        for weight, counts in sources:
            fields += [repr(weight), len(counts), *counts]
        expected = mixed_order_of(*shape, length, sources)
        yield f"mixed {' '.join(map(str, fields))}", [number for entry in expected for number in entry]


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
