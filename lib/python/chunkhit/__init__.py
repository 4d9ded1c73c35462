"""Batches of training data that are always ready, from packs of pack-images and pack-sparse.

    import chunkhit
    loader = chunkhit.ImageLoader("train", batch_size=100, shuffle="window", seed=7)
    for epoch in range(10):
        for images, labels in loader.epoch(epoch):
            ...

chunkhit.torch has the same loaders, which give tensors.
"""
import importlib
from typing import TYPE_CHECKING, Any, List

from ._batches import CsrRows, ImageBatch, Pairs, SparseBatch
from ._chunkhit import LoaderStats, MixingInfo, __version__
from ._datasets import ImageDataset, SparseDataset
from ._error import Error
from ._info import ImageInfo, PackInfo, RatingInfo
from ._loader import Epoch
from ._loaders import ImageLoader, SparseLoader
from ._sampling import PopularitySampler
from ._types import EpochRecord

if TYPE_CHECKING:
    from ._export import export_pack
    from ._pack_dataset import pack_dataset
    from ._pack_ratings import pack_ratings
    from ._packing import count_items, merge_packs, pack_images, pack_info, pack_sparse, plan_status, run_plan, verify_pack
    from ._sheet import Sheet
    from ._show import show
    from ._writers import ImageWriter, RatingWriter

# What training does not need is loaded once it is named.
_MODULES = {"_export": ["export_pack"], "_pack_dataset": ["pack_dataset"], "_pack_ratings": ["pack_ratings"], "_sheet": ["Sheet"],
           "_show": ["show"],
           "_packing": ["count_items", "merge_packs", "pack_images", "pack_info", "pack_sparse", "plan_status", "run_plan", "verify_pack"],
           "_writers": ["ImageWriter", "RatingWriter"]}

__all__ = [
    "CsrRows", "Epoch", "EpochRecord", "Error", "ImageBatch", "ImageDataset", "ImageInfo", "ImageLoader", "ImageWriter",
    "LoaderStats", "MixingInfo", "PackInfo", "Pairs", "PopularitySampler", "RatingInfo", "RatingWriter", "Sheet", "SparseBatch", "SparseDataset",
    "SparseLoader", "__version__", "count_items", "export_pack", "merge_packs", "pack_dataset", "pack_images", "pack_info", "pack_ratings",
    "pack_sparse", "plan_status", "run_plan", "show", "verify_pack",
]


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            value = globals()[name] = getattr(importlib.import_module(f".{module}", __name__), name)
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__})
