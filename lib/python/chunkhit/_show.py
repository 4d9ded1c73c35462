"""Images of a pack to look at: chunkhit.show."""
from __future__ import annotations

from typing import Union

from ._datasets import ImageDataset
from ._error import Error, whole_number
from ._paths import Paths
from ._sheet import Sheet, sheet_of


def show(pack: Union[Paths, ImageDataset], n: int = 16) -> Sheet:
    """A contact sheet of a pack, for a notebook: `n` images as they are stored, evenly spread over the pack, with their
    classes. It needs Pillow.

    pack  a path or URL, several, an ImageDataset or an ImageLoader

    Raises what ImageDataset raises, and Error "usage" where Pillow is missing.
    """
    if whole_number("n", n) == 0:
        raise Error("n: expected a whole number from 1, found 0", "usage")
    try:
        return sheet_of(pack if isinstance(pack, ImageDataset) else ImageDataset(getattr(pack, "_paths", pack)), n)
    except ModuleNotFoundError as error:
        raise Error(f"show needs Pillow (apt-get install python3-pil, or pip install Pillow): {error}", "usage") from None
