#!/usr/bin/python3
"""Draws the images per second of each way of reading as bars on a logarithmic scale.

usage: chart.py RATES.json CHART.svg [TITLE]
RATES.json is what own_sizes_bench.py writes.
"""
import json
import math
import sys

LEFT, WIDTH, BAR, GAP, TOP = 330, 420, 24, 12, 34
TITLE = "images/s delivered to an empty training loop"
SMALLEST = 100  # images per second at the left end of the scale


def draw(table, title):
    largest = 10 ** math.ceil(math.log10(max(table.values())))
    scale = WIDTH / math.log10(largest / SMALLEST)
    height = TOP + len(table) * (BAR + GAP)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 110}" height="{height}" '
             'font-family="sans-serif" font-size="14">',
             '<rect width="100%" height="100%" fill="white"/>',
             f'<text x="{LEFT}" y="20" fill="#555">{title}, logarithmic scale</text>']
    for number, (name, rate) in enumerate(table.items()):
        y = TOP + number * (BAR + GAP)
        length = max(1.0, math.log10(rate / SMALLEST) * scale)
        color = "#1f77b4" if name.startswith("chunkhit") else "#b0b0b0"
        lines += [f'<text x="{LEFT - 10}" y="{y + 17}" text-anchor="end">{name}</text>',
                  f'<rect x="{LEFT}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{color}"/>',
                  f'<text x="{LEFT + length + 8:.1f}" y="{y + 17}">{rate:,.0f}</text>']
    return "\n".join(lines + ["</svg>"]) + "\n"


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        table = {name: row["images_per_second"] for name, row in json.load(file).items()}
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(draw(table, sys.argv[3] if len(sys.argv) > 3 else TITLE))


if __name__ == "__main__":
    main()
