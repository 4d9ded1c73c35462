"""Contact sheets of packs of images, for notebooks."""
from __future__ import annotations

import os
from html import escape
from typing import Any, Callable, List, Optional

import numpy as np

from ._error import Error, counted
from ._figures import Figure, fields_below, figures_in, label_text
from ._pages import page_path, shown, write_page
from ._paths import Path

SIDE = 96  # CSS pixels of an image
IN_REPR = 16  # images


class Sheet:
    """Images of a pack as they are stored, with their classes: what `chunkhit.show` returns. A notebook shows it where it is
    the last value of a cell; `display(sheet)` shows it elsewhere."""

    def __init__(self, title: str, html: str) -> None:
        self._title = title
        self._html = html

    def _repr_html_(self) -> str:
        return self._html

    def __repr__(self) -> str:
        return f'<Sheet: {self._title}; a notebook shows it, save("sheet.html") writes it>'

    def save(self, path: Path) -> None:
        """Writes the sheet as a page, FILE.html; one that is there is replaced. Raises Error "usage" for another ending, or
        "cannot_write"."""
        write_page(page_path("path", path), f'<!DOCTYPE html>\n<meta charset="utf-8">\n{self._html}'.encode())


def figure_html(figure: Figure, caption: str) -> str:
    """HTML of an image in a square; a mask lies over it, further fields stand below it."""
    scaling = "image-rendering:pixelated;" if max(figure.width, figure.height) < SIDE else ""
    box = f"width:{SIDE}px;height:{SIDE}px;object-fit:contain;margin:0;{scaling}"
    mask = f'<img src="{figure.mask}" alt="" style="{box}position:absolute;left:0;top:0;opacity:0.55">' if figure.mask else ""
    below = "".join(f'<img src="{source}" alt="{escape(field)}" title="{escape(field)}" style="{box}display:block;margin-top:2px">'
                    for field, source in figure.fields)
    title = escape(" ".join(filter(None, (figure.caption, figure.file, f"({figure.detail})"))))
    return (f'<figure title="{title}" style="margin:0;width:{SIDE}px"><div style="position:relative"><img src="{figure.source}" '
            f'alt="{escape(caption)}" style="{box}">{mask}</div>{below}<figcaption style="font-size:11px;overflow:hidden;'
            f'text-overflow:ellipsis;white-space:nowrap">{escape(caption)}</figcaption></figure>')


def captions_of(dataset: Any, samples: List[int]) -> List[str]:
    """Names of the samples' classes, or their numbers; no image is read."""
    labels = dataset.labels()[samples]
    if labels.ndim == 2:
        return [label_text(row, dataset.classes) for row in labels]
    names = {label: name for name, label in dataset.class_to_idx.items()}
    return [shown(names.get(label, "")) for label in labels.tolist()]


def sheet_of(dataset: Any, n: int) -> Sheet:
    """A sheet of `n` images, evenly spread over the dataset."""
    total = len(dataset)
    samples = np.unique(np.linspace(0, total - 1, min(n, total)).astype(int)).tolist() if total else []
    info: Any = dataset.info
    name = shown(os.path.basename(str(info["path"]).rstrip("/")))
    kinds = counted(len(dataset.classes), "class")
    if info["labels"]["kind"] == "numbers":
        kinds = counted(len(info["labels"]["columns"]), "label column")
    title = f"{name}: {len(samples)} of {counted(total, 'image')}, {kinds}"
    if fields := fields_below(info):
        title += f"; below each: {', '.join(fields)}"
    figures = figures_in(name, dataset, info, samples, "")
    cells = [figure_html(figure, caption) for figure, caption in zip(figures, captions_of(dataset, samples))]
    return Sheet(title, f'<div>{escape(title)}<div style="display:flex;flex-wrap:wrap;gap:8px;margin-top:6px">'
                        f'{"".join(cells)}</div></div>')


def html_of(paths: List[str], dataset_of: Callable[[List[str]], Any]) -> Optional[str]:
    """What a notebook shows of packs; None, for their `repr`, where they are not local, damaged, or Pillow is missing."""
    if any("://" in path for path in paths):
        return None
    try:
        return sheet_of(dataset_of(paths), IN_REPR)._repr_html_()
    except (Error, ModuleNotFoundError):
        return None
