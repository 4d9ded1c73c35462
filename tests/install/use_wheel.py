"""What a wheel must do in a bare system with NumPy: reads the packs that its commands made. Usage: use_wheel.py FOLDER"""
import os
import sys

import numpy

import chunkhit

os.chdir(sys.argv[1])
images = numpy.concatenate([batch[0] for batch in chunkhit.ImageLoader("train", batch_size=7, shuffle="window", seed=1)])
assert images.shape == (180, 8, 8, 3) and images.dtype == numpy.uint8 and images.std() > 20, (images.shape, images.std())
ratings = numpy.concatenate([batch.x for batch in chunkhit.SparseLoader("ratings", batch_size=3)])
assert ratings.shape == (4, 3) and ratings.sum() == 23, ratings
chunkhit.pack_images("types", "again", resize=16, crop=(16, 16))
same = [open(f"{pack}/part-00000.h5", "rb").read() for pack in ("again", "types-pack")]
assert same[0] == same[1], "pack_images and the command differ"
# An HDF5 file that no pack-* wrote is opened by a child process first: the command must be found.
external = chunkhit.ImageLoader("external.h5", images="images", labels="labels", batch_size=5)
assert sum(len(batch[0]) for batch in external) == 5
with open("/proc/self/maps") as file:
    loaded = {os.path.basename(line.split()[-1]) for line in file if ".so" in line}
own = {name for name in loaded if "chunkhit" in name}
assert any(name.startswith("libtbb-chunkhit") for name in own), own
print(f"chunkhit {chunkhit.__version__}, NumPy {numpy.__version__}, Python {sys.version.split()[0]}: {len(own)} own libraries")
