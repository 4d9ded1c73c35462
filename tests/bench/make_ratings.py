#!/usr/bin/python3
"""Makes a ratings.csv of MovieLens-20M's published shape: 138,493 users, 26,744 items, 20,000,263 half stars.

usage: make_ratings.py OUT.csv [SCALE]      (SCALE 1.0: 508 MB)
Users rate log-normally many items, at least 20; items are as popular as Zipf and Mandelbrot say; ids have gaps; rows are
grouped by user, as in the real file; times are whole seconds.
"""
import sys

import numpy as np

USERS, ITEMS, RATINGS = 138_493, 26_744, 20_000_263
STARS = np.arange(1, 11) / 2
STAR_SHARES = np.array([12, 34, 14, 72, 44, 214, 110, 278, 77, 145], float)


def main(path, scale=1.0):
    random = np.random.default_rng(1)
    users, items = int(USERS * scale), max(400, int(ITEMS * min(1, scale ** 0.5)))
    activity = np.exp(random.normal(4.2, 1.05, users))
    activity = np.clip(20 + activity / activity.sum() * (RATINGS - 20 * USERS) * scale, 20, items * 0.35).astype(int)
    popularity = np.cumsum((np.arange(items) + 12.0) ** -1.05)
    popularity /= popularity[-1]
    ids = np.sort(random.choice(np.arange(1, 5 * items), items, replace=False))
    random.shuffle(ids)
    shares = STAR_SHARES / STAR_SHARES.sum()
    with open(path, "w") as out:
        out.write("userId,movieId,rating,timestamp\n")
        for user in range(users):
            rated = np.unique(np.searchsorted(popularity, random.random(int(activity[user] * 1.6) + 8)))
            rated = np.sort(ids[random.permutation(rated)[:activity[user]]])
            stars = random.choice(STARS, len(rated), p=shares)
            times = 789_652_009 + random.integers(637_000_000) + np.cumsum(random.integers(0, 90, len(rated)))
            out.writelines(f"{user + 1},{i},{s:g},{t}\n" for i, s, t in zip(rated.tolist(), stars.tolist(), times.tolist()))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(sys.argv[1], *map(float, sys.argv[2:]))
