#!/usr/bin/python3
"""Makes JSON lines as Amazon's reviews of 2018: 760 bytes a line, with texts, escapes and a nested object.

usage: make_reviews.py OUT.json [BYTES]      (1e9: 1.3 million lines)
"""
import json
import random
import sys

WORDS = ("the a and great product I love it works well not as expected battery good quality price would buy again recommend \"best\" movie "
         "ever he's book story character plot sound case phone screen size fit color bought for my wife son daughter don't waste money "
         "excellent five stars caf\u00e9 it\u2019s\nreally/truly disappointed returned shipped fast").split(" ")
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


def main(path, size=1e9):
    draw = random.Random(1)
    texts = [" ".join(draw.choices(WORDS, k=int(min(600, draw.lognormvariate(3.9, 0.9))))) for _ in range(20_000)]
    users, items = (["".join([begin, *draw.choices(LETTERS, k=length)]) for _ in range(count)]
                    for begin, length, count in (("A", 13, 300_000), ("B0", 8, 60_000)))
    written = 0
    with open(path, "w") as out:
        while written < size:
            text = draw.choice(texts)
            written += out.write(json.dumps({
                "overall": float(draw.randint(1, 5)), "verified": draw.random() < 0.8, "reviewTime": "09 13, 2009",
                "reviewerID": users[int(len(users) * draw.random() ** 2)], "asin": items[int(len(items) * draw.random() ** 2)],
                "style": {"Size:": " Large", "Color:": " Black"}, "reviewerName": "J. McDonald", "reviewText": text, "summary": text[:30],
                "unixReviewTime": 1_300_000_000 + draw.randrange(200_000_000)}) + "\n")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main(sys.argv[1], *map(float, sys.argv[2:]))
