#!/usr/bin/env python3
"""Reproduces the order of epochs from schemas/order.md and compares it with the library's. Usage: order_test.py ORDER_PROBE"""
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../support"))
from described_order import (BITS, GLOBAL, Permutation, batches_of, choice_of, draws_of, mixed_order_of, order_of, sampled_order_of,
                             streamed)


def cases():
    """Pairs of a request and the numbers that must come back."""
    draw = random.Random(1)
    seed = lambda: draw.choice([0, 7, draw.getrandbits(64)])
    for count in [*range(1, 70), 127, 128, 129, 1000, 65535, 65537, 1_000_003, 1 << 33, (1 << 63) + 1, BITS]:
        key, indices = seed(), [draw.randrange(count) for _ in range(20)]
        yield request("permutation", count, key, *indices), list(map(Permutation(count, key), indices))
    for _ in range(300):
        shape = (draw.randrange(3), seed(), draw.choice([1, 2, 3, 64]), draw.randrange(4))
        usual = draw.randrange(1, 12)
        counts = [draw.choice([usual, usual, usual, draw.randrange(1, 20)]) for _ in range(draw.randrange(1, 20))]
        division = streams(draw, shape[0])
        yield request("order", *shape, *division, *counts), streamed(lambda stream: order_of(*shape, counts, stream), *division)
    yield from sampled_cases(draw, seed)
    yield from mixed_cases(draw, seed)
    for _ in range(500):
        samples, ranks = draw.randrange(1, 200), draw.randrange(1, 6)
        fields = (samples, draw.randrange(1, 12), draw.randrange(ranks), ranks, draw.randrange(2), draw.randrange(2),
                  draw.randrange(1, 4), seed(), draw.randrange(4), draw.choice([0, draw.randrange(samples)]), draw.randrange(2))
        batches = batches_of(*fields)
        yield request("batches", *fields), [token for batch in batches for token in [*batch, "|"]]


def request(*words):
    return " ".join(map(str, words))


def streams(draw, shuffle):
    """How many streams an epoch has, and how many positions of each are a turn."""
    return (1, 1) if shuffle == GLOBAL else draw.choice([(1, 1), (draw.randrange(2, 9), draw.randrange(1, 9))])


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
        division = streams(draw, shape[0])
        expected = streamed(lambda stream: sampled_order_of(*shape, counts, chosen, stream), *division)
        yield (request("sampled", *shape, *division, kind, len(chosen), len(counts), *counts, *map(repr, given)),
               [number for entry in expected for number in entry])


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
        division = streams(draw, shape[0])
        fields = [*shape[:4], *division, shape[4], length, len(sources)]
        for weight, counts in sources:
            fields += [repr(weight), len(counts), *counts]
        expected = streamed(lambda stream: mixed_order_of(*shape, length, sources, stream=stream), *division)
        yield request("mixed", *fields), [number for entry in expected for number in entry]


def check_ranks():
    """What ranks have of an epoch in streams: each sample once, each its own chunks, and with other ranks the same batches."""
    draw = random.Random(2)
    for _ in range(100):
        ranks, own, unit = draw.randrange(1, 9), draw.randrange(1, 4), draw.randrange(1, 6)
        count, echo = ranks * own, draw.choice([1, 1, 2])
        size = own * unit
        shape = (draw.randrange(2), draw.getrandbits(64), draw.choice([1, 2, 7, 64]), draw.randrange(3))
        counts = [draw.choice([9, 9, 9, draw.randrange(1, 30)]) for _ in range(draw.randrange(1, 40))]
        samples = sum(counts)
        chunk_of = [chunk for chunk, each in enumerate(counts) for _ in range(each)]
        order = streamed(lambda stream: order_of(*shape, counts, stream), count, unit * echo)
        of_ranks = lambda ranks, size, first, pad: [
            batches_of(samples, size, rank, ranks, pad, 0, echo, *shape[1::2], first, 1) for rank in range(ranks)]
        used = lambda batches: [order[position] for batch in batches for position in batch]
        assert sorted(order) == list(range(samples))

        padded = [used(batches) for batches in of_ranks(ranks, size, 0, 1)]
        assert len({len(each) for each in padded}) == 1, "ranks have as many samples"
        times = [sum(padded, []).count(sample) for sample in range(samples)]
        assert set(times) <= {echo, 2 * echo} and sum(times) == echo * -(-samples // ranks) * ranks
        dropped = [used(batches) for batches in of_ranks(ranks, size, 0, 0)]
        times = [sum(dropped, []).count(sample) for sample in range(samples)]
        assert set(times) <= {0, echo} and times.count(0) == samples % ranks

        visits = sum(len({chunk_of[sample] for sample in each}) for each in padded)
        if samples >= count:
            assert visits <= len(counts) + count - 1, f"{visits} visits of {len(counts)} chunks by {ranks} ranks"

        # Other ranks that divide the streams, with the same batch of all ranks.
        turns = samples // (unit * echo * count)
        for others in (other for other in range(1, count + 1) if count % other == 0):
            mine, theirs = (of_ranks(number, size * ranks // number, 0, 1) for number in (ranks, others))
            for turn in range(turns):
                batch = lambda of: sorted(used(each for batches in of for each in batches[turn * echo * echo:(turn + 1) * echo * echo]))
                assert batch(mine) == batch(theirs), f"batch {turn} of {ranks} and {others} ranks"

        # Others go on in mid-epoch.
        done = draw.randrange(turns + 1) * unit * echo * count
        others = draw.randrange(1, 7)
        left = sum((used(batches) for batches in of_ranks(others, draw.randrange(1, 9), done, 1)), [])
        assert set(order[done:]) <= set(left) and len(left) < echo * (samples - done + others)


def main():
    check_ranks()
    wanted = list(cases())
    requests = "\n".join(asked for asked, _ in wanted) + "\n"
    answers = subprocess.run([sys.argv[1]], input=requests, stdout=subprocess.PIPE, text=True, check=True).stdout
    lines = answers.splitlines()
    assert len(lines) == len(wanted), f"{len(lines)} answers, expected {len(wanted)}"
    for line, (asked, expected) in zip(lines, wanted):
        assert line.split() == [str(token) for token in expected], f"{asked}\n  found {line}\n  expected {expected}"
    print(f"{len(wanted)} orders are as schemas/order.md says")


main()
