#!/usr/bin/python3
"""Draws one epoch of a training as bars, what it trained and what it waited for data, beside the CPU time that it took. The
figures are those of the table under "One training on a GPU" in this folder's README.md; colors follow the reader's light or dark mode.

usage: epoch_chart.py CHART.svg [MODEL]
"""
import os
import re
import sys

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "README.md")
WAYS = {"files, DataLoader": "JPEG files, DataLoader", "h5py, chunks of 1 image": "h5py", "chunkhit, pixels, 256×256": "chunkhit, pixels",
        "chunkhit, JPEG, own sizes": "chunkhit, JPEG"}
LEFT, EPOCH, BETWEEN, CPU, BAR, GAP, TOP = 190, 300, 150, 120, 24, 12, 62
STYLE = """<style>
text { fill: #1f2328; } .muted { fill: #59636e; } .back { fill: #ffffff; }
.train { fill: #1f77b4; } .wait { fill: #d9730d; } .cpu { fill: #8c959f; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .muted { fill: #9198a1; } .back { fill: #0d1117; }
.train { fill: #4493f8; } .wait { fill: #f0883e; } .cpu { fill: #6e7681; }
}
</style>"""


def rows_of(page, model):
    """Seconds of a later epoch, the share of it that waited for data, and CPU seconds, of each way."""
    text = page[page.index("### One training on a GPU"):]
    table = re.search(r"^\| model \|.*\n\|[-| ]+\n((?:\|.*\n)+)", text, re.M)
    found = {}
    for line in table[1].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0] == model and cells[1] in WAYS:
            # Waiting is a difference of two measured times: what is below 0 is noise.
            found[cells[1]] = float(cells[4]), max(0.0, float(cells[6].rstrip("%")) / 100), float(cells[9])
    return found


def text(x, y, words, *attributes):
    return f'<text x="{x:.1f}" y="{y}" {" ".join(attributes)}>{words}</text>'


def bar(x, y, length, kind):
    return f'<rect x="{x:.1f}" y="{y}" width="{length:.1f}" height="{BAR}" class="{kind}"/>'


def draw(rows, model):
    height, right = TOP + len(rows) * (BAR + GAP), LEFT + EPOCH + BETWEEN
    per_second = EPOCH / max(seconds for seconds, _, _ in rows.values())
    per_cpu_second = CPU / max(cpu for _, _, cpu in rows.values())
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{right + CPU + 90}" height="{height}" font-family="sans-serif" font-size="14" '
             f'role="img" aria-label="One epoch of {model}: seconds trained and waited, and CPU seconds">', STYLE,
             '<rect width="100%" height="100%" class="back"/>',
             text(LEFT, 20, f"one epoch of {model} on an H200: seconds", 'font-weight="bold"'),
             bar(LEFT, 30, 12, "train").replace(f'height="{BAR}"', 'height="12"'), text(LEFT + 18, 41, "training", 'class="muted"'),
             bar(LEFT + 90, 30, 12, "wait").replace(f'height="{BAR}"', 'height="12"'),
             text(LEFT + 108, 41, "waiting for data", 'class="muted"'),
             text(right, 20, "CPU seconds", 'font-weight="bold"')]
    for number, (way, (seconds, share, cpu)) in enumerate(rows.items()):
        y, waited = TOP + number * (BAR + GAP), seconds * share * per_second
        trained = seconds * per_second - waited
        percent = f", {share:.0%} waiting".replace("%", " %") if share else ""
        lines += [text(LEFT - 10, y + 17, WAYS[way], 'text-anchor="end"'), bar(LEFT, y, trained, "train"),
                  *([bar(LEFT + trained, y, waited, "wait")] if waited else []),
                  text(LEFT + seconds * per_second + 6, y + 17, f"{seconds:.1f}{percent}"),
                  bar(right, y, cpu * per_cpu_second, "cpu"), text(right + cpu * per_cpu_second + 6, y + 17, f"{cpu:.1f}")]
    return "\n".join(lines + ["</svg>"]) + "\n"


def main():
    model = sys.argv[2] if len(sys.argv) > 2 else "resnet18"
    with open(PAGE, encoding="utf-8") as file:
        rows = rows_of(file.read(), model)
    if list(rows) != list(WAYS):
        sys.exit(f"{PAGE}: expected {model} by {', '.join(WAYS)}, found {', '.join(rows)}")
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(draw(rows, model))


if __name__ == "__main__":
    main()
