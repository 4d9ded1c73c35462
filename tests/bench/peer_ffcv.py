"""FFCV beside own_sizes_bench.py's loaders: writes its files and reads them with random resized crops to 224."""
import os

import cv2
import numpy as np
import torchvision
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.decoders import IntDecoder, RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.reader import Reader
from ffcv.transforms import RandomHorizontalFlip, ToTensor
from ffcv.writer import DatasetWriter

WAYS = {"jpg, max side 512": dict(write_mode="jpg", max_resolution=512, jpeg_quality=90),
        "half jpg, max side 512": dict(write_mode="proportion", compress_probability=0.5, max_resolution=512, jpeg_quality=90),
        "raw, max side 512": dict(write_mode="raw", max_resolution=512),
        "raw, short side 256": dict(write_mode="raw")}


class Images:
    def __init__(self, files, short_side):
        self.files = files
        self.shrink = torchvision.transforms.Resize(256) if short_side else lambda image: image

    def __len__(self):
        return len(self.files)

    def __getitem__(self, number):
        image = torchvision.datasets.folder.pil_loader(self.files[number])
        return self.shrink(image) if min(image.size) > 256 else image, 0


def write(name, files, path):
    """Returns the bytes of the samples alone, and of the file, whose last page of 8 MiB of each writer is not full."""
    fields = {"image": RGBImageField(**WAYS[name]), "label": IntField()}
    DatasetWriter(path, fields, num_workers=2).from_indexed_dataset(Images(files, "short" in name))
    return int(Reader(path).alloc_table["size"].sum()), os.path.getsize(path)


def make_loader(path, count, epochs):
    """A function that reads `epochs` epochs as one, so that what FFCV allocates anew for each does not count; compiled."""
    cv2.setNumThreads(1)
    loader = Loader(path, batch_size=32, num_workers=2, order=OrderOption.RANDOM, os_cache=True, drop_last=False,
                    indices=np.tile(np.arange(count), epochs),
                    pipelines={"image": [RandomResizedCropRGBImageDecoder((224, 224)), RandomHorizontalFlip(), ToTensor()],
                               "label": [IntDecoder(), ToTensor()]})

    def run():
        assert sum(len(images) for images, _ in loader) == epochs * count
        return epochs
    run()
    return run
