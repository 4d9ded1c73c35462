"""Masks and other fields that a program has in memory."""
from __future__ import annotations

import importlib
import sys
from typing import Any, List, Mapping, Optional, Tuple

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


Field = Tuple[str, str, NDArray[Any]]  # name, role ("mask", "view"), and uint8 (height, width, channels), or a file (n,)


def field_arrays(mask: Any, fields: Mapping[str, Any], exif: Optional[str]) -> List[Field]:
    """Fields as a writer takes them. `NAME:view` is a view; without a role, a field called "view" is one, and so is each other one
    but "mask" that has (height, width, 2 to 4 channels), is the bytes of a file, or an image of Pillow in colors."""
    if not isinstance(fields, Mapping):
        raise ArgumentError(f"fields: expected a dict by names, found a {type(fields).__name__}")
    found = [] if mask is None else [("mask", "mask", mask_array(mask))]
    for text, value in fields.items():
        name, _, role = str(text).partition(":")
        role = role or (name if name in ("mask", "view") else "view" if is_view(value) else "mask")
        if role not in ("mask", "view"):
            raise Error(f"fields: expected NAME, NAME:mask or NAME:view, found '{name}:{role}'", "usage")
        if mask is not None and name == "mask":
            raise Error("fields: found mask, which is given as mask=, too", "usage")
        found.append((name, role, mask_array(value, name) if role == "mask" else image_array(value, exif, name)))
    return found


def is_view(value: Any) -> bool:
    pillow = sys.modules.get("PIL.Image")
    if pillow is not None and isinstance(value, pillow.Image):
        return value.mode not in ("1", "L", "P", "I", "I;16")
    return isinstance(value, (bytes, bytearray, memoryview)) or getattr(value, "ndim", 0) == 1 or tuple(getattr(value, "shape", ()))[2:] > (1,)


def mask_array(mask: Any, name: str = "mask") -> NDArray[Any]:
    """uint8 (height, width, 1)."""
    pillow = sys.modules.get("PIL.Image")
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(mask, torch.Tensor):
        mask = mask.detach().cpu().numpy()
    elif pillow is not None and isinstance(mask, pillow.Image):
        mask = np.asarray(mask)
    if not isinstance(mask, np.ndarray):
        raise ArgumentError(f"{name}: expected a NumPy array, a torch tensor or an image of Pillow, found a {type(mask).__name__}")
    shape = mask.shape[:2] if mask.ndim == 3 and mask.shape[2] == 1 else mask.shape
    if len(shape) != 2 or not mask.size:
        raise Error(f"{name}: expected class ids of shape (height, width), found {mask.shape}", "usage")
    return np.ascontiguousarray(class_ids(mask.reshape(shape), name)[:, :, np.newaxis])


def class_ids(mask: NDArray[Any], name: str) -> NDArray[np.uint8]:
    """A mask (height, width) of bool or integers as uint8; raises Error "usage" for the first value that does not fit."""
    if mask.dtype.kind not in "bui":
        raise Error(f"{name}: expected class ids, bool or integers, found {mask.dtype}; \"{name}:view\" takes uint8 pixels", "usage")
    if mask.dtype.kind != "b" and mask.dtype != np.uint8:
        is_misfit = (mask < 0) | (mask > 255)
        if is_misfit.any():
            y, x = divmod(int(is_misfit.argmax()), mask.shape[1])
            raise Error(f"{name}: value {mask[y, x]} at ({x}, {y}) does not fit 8 bits; map class ids to 0-255", "usage")
    return mask.astype(np.uint8, copy=False)


def image_array(image: Any, exif: Optional[str], name: str = "image") -> NDArray[Any]:
    """uint8 (height, width, channels), or an image file as uint8 (n,)."""
    if isinstance(image, (bytes, bytearray, memoryview)):
        return np.frombuffer(image, np.uint8)
    torch, pillow = sys.modules.get("torch"), sys.modules.get("PIL.Image")
    if torch is not None and isinstance(image, torch.Tensor):
        array = image.detach().cpu().numpy()
    elif pillow is not None and isinstance(image, pillow.Image):
        image.load()  # its size may change: Pillow turns a TIFF
        array = np.asarray(pillow_pixels(image if exif == "ignore" else upright(image), name))
    elif isinstance(image, np.ndarray):
        array = image
    else:
        raise ArgumentError(f"{name}: expected a NumPy array, a torch tensor, an image of Pillow or bytes, "
                        f"found a {type(image).__name__}")
    if array.dtype != np.uint8:
        raise Error(f"{name}: expected uint8, found {array.dtype}; add it before it is converted", "usage")
    if array.ndim == 2:
        array = array[:, :, np.newaxis]
    if array.ndim != 1 and not (array.ndim == 3 and 1 <= array.shape[2] <= 4 and array.size):
        is_planar = array.ndim == 3 and 1 <= array.shape[0] <= 4
        raise Error(f"{name}: expected shape (height, width) or (height, width, 1 to 4 channels), found "
                    f"{tuple(image.shape)}" + ("; permute(1, 2, 0) of a tensor, transpose(1, 2, 0) of an array, makes it so"
                                               if is_planar else ""), "usage")
    return np.ascontiguousarray(array)


def upright(image: Any) -> Any:
    """An image of Pillow turned as its EXIF says. Pillow has turned a TIFF when it loaded it."""
    try:
        is_turned = image.format != "TIFF" and image.getexif().get(0x112, 1) in range(2, 9)
    except Exception:  # what Pillow cannot read is no orientation
        return image
    if not is_turned:
        return image
    return importlib.import_module("PIL.ImageOps").exif_transpose(image)


def pillow_pixels(image: Any, name: str) -> Any:
    """The image in a mode of 8 bits a channel, as pack_images decodes it."""
    if image.mode in ("L", "LA", "RGB", "RGBA"):
        return image
    if image.mode in ("1", "P", "PA", "CMYK", "YCbCr"):
        has_alpha = image.mode == "PA" or "transparency" in image.info
        return image.convert("L" if image.mode == "1" else "RGBA" if has_alpha else "RGB")
    raise Error(f"{name}: expected 8 bits a channel, found Pillow's mode {image.mode}; convert it first", "usage")
