"""Masks that a program has in memory."""
from __future__ import annotations

import sys
from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

from ._error import ArgumentError, Error


def is_mask(label: Any) -> bool:
    """Whether what stands beside an image is a class map."""
    pillow = sys.modules.get("PIL.Image")
    return (pillow is not None and isinstance(label, pillow.Image)) or getattr(label, "ndim", 0) == 2


def may_be_mask(value: Any, image: Any) -> bool:
    """Whether what a sample has beside image and label looks like a class map: boxes and embeddings have other types, or
    other sizes than the image."""
    if not is_mask(value):
        return False
    dtype = str(getattr(value, "dtype", "uint8")).rsplit(".", 1)[-1]
    if dtype in ("uint8", "bool"):
        return True
    pillow = sys.modules.get("PIL.Image")
    is_pillow = pillow is not None and isinstance(image, pillow.Image)
    sides = image.size[::-1] if is_pillow else tuple(getattr(image, "shape", ()))[:2]
    return dtype.lstrip("u").startswith("int") and tuple(value.shape) == tuple(sides)


def mask_array(mask: Any) -> Optional[NDArray[Any]]:
    """uint8 (height, width, 1), or None."""
    pillow = sys.modules.get("PIL.Image")
    torch = sys.modules.get("torch")
    if mask is None:
        return None
    if torch is not None and isinstance(mask, torch.Tensor):
        mask = mask.detach().cpu().numpy()
    elif pillow is not None and isinstance(mask, pillow.Image):
        mask = np.asarray(mask)
    if not isinstance(mask, np.ndarray):
        raise ArgumentError(f"mask: expected a NumPy array, a torch tensor or an image of Pillow, found a {type(mask).__name__}")
    shape = mask.shape[:2] if mask.ndim == 3 and mask.shape[2] == 1 else mask.shape
    if len(shape) != 2 or not mask.size:
        raise Error(f"mask: expected class ids of shape (height, width), found {mask.shape}", "usage")
    return np.ascontiguousarray(class_ids(mask.reshape(shape))[:, :, np.newaxis])


def class_ids(mask: NDArray[Any]) -> NDArray[np.uint8]:
    """A mask (height, width) of bool or integers as uint8; raises Error "usage" for the first value that does not fit."""
    if mask.dtype.kind not in "bui":
        raise Error(f"mask: expected class ids, bool or integers, found {mask.dtype}", "usage")
    if mask.dtype.kind != "b" and mask.dtype != np.uint8:
        is_misfit = (mask < 0) | (mask > 255)
        if is_misfit.any():
            y, x = divmod(int(is_misfit.argmax()), mask.shape[1])
            raise Error(f"mask: value {mask[y, x]} at ({x}, {y}) does not fit 8 bits; map class ids to 0-255", "usage")
    return mask.astype(np.uint8, copy=False)
