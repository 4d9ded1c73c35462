"""Small inputs of the names that README.md and the guides use."""
import gzip
import os
import random
import shutil
import struct
import tarfile

import h5py
import numpy as np
from PIL import Image

NAMES = [f"{label}/{index}.jpg" for label in ("ant", "bee") for index in range(6)]
USERS = 1_200
ITEMS = 40


def write_images(folder, names, mode="RGB"):
    for name in names:
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Image.effect_noise((300, 280), 60).convert(mode).save(path)


def write_table(path, header, rows):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as table:
        table.writelines(line + "\n" for line in ([header] if header else []) + list(rows))


def write_photos():
    """photos/, tags.csv, icons/, scans/, imagenet/, streets/, segmented/, noisy/, clean/, rooms/, shards/, MNIST's files and train.h5."""
    write_images("photos", NAMES)
    write_table("photos/labels.csv", "file,label,age,city", (f"{name},{name[:3]},{index},Rome" for index, name in enumerate(NAMES)))
    write_table("tags.csv", "file,tags", (f"{name},{('ant', 'bee', 'ant bee wasp')[index % 3]}" for index, name in enumerate(NAMES)))
    write_images("icons", ["ant/0.png", "bee/0.png"], "RGBA")
    for label in ("ant", "bee"):
        os.makedirs(f"scans/{label}")
        Image.fromarray((np.arange(80 * 80, dtype=np.uint16) % 4096).reshape(80, 80)).save(f"scans/{label}/0.png")
    for part in ("train", "val"):
        write_images("imagenet", [f"{part}/{name}" for name in NAMES])
    write_images("streets/images", [f"{index}.jpg" for index in range(16)])
    os.mkdir("streets/masks")
    for index in range(16):
        Image.new("P", (300, 280)).save(f"streets/masks/{index}.png")
    write_table("streets/train.csv", "image,mask", (f"images/{index}.jpg,masks/{index}.png" for index in range(16)))
    write_images("noisy", [f"{index}.jpg" for index in range(16)])
    write_images("clean", [f"{index}.png" for index in range(16)])
    shutil.copytree("streets/images", "rooms/images")
    shutil.copytree("streets/images", "rooms/depth")
    for masks in ("classes", "instances"):
        shutil.copytree("streets/masks", f"rooms/{masks}")
    os.mkdir("segmented")
    with tarfile.open("segmented/000.tar", "w") as tar:
        for index in range(16):
            tar.add(f"streets/images/{index}.jpg", f"{index}.jpg")
            tar.add(f"streets/masks/{index}.png", f"{index}.seg.png")
    os.mkdir("shards")
    with tarfile.open("shards/000.tar", "w") as tar:
        for name in NAMES:
            tar.add(f"photos/{name}", name)
    for name, shape in (("train-images-idx3-ubyte.gz", (20, 28, 28)), ("train-labels-idx1-ubyte.gz", (20,))):
        with gzip.open(name, "wb") as file:
            file.write(struct.pack(f">I{len(shape)}I", 0x800 + len(shape), *shape) + bytes(int(np.prod(shape))))
    with h5py.File("train.h5", "w") as file:
        file["images"] = np.random.default_rng(1).integers(0, 255, (20, 64, 64, 3), dtype=np.uint8)
        file["labels"] = np.arange(20) % 2


def write_ratings():
    """ratings.csv, also as review.json and reviews.json.gz, a matrix of cells, its parts by user, tables of its items and users, and files as those of MovieLens 100K."""
    draw = random.Random(1)
    rows = [f"{user},{item},{draw.randint(4, 5)},{1_600_000_000 + draw.randrange(10**7)}"
            for user in range(USERS) for item in draw.sample(range(ITEMS), 12)]
    write_table("ratings.csv", "user,item,rating,timestamp", rows)
    write_table("review.json", "", ('{"author": {"id": "%s"}, "user_id": "%s", "business_id": "%s", "stars": %s, "useful": 1, "date": %s}'
                                    % (user, user, *rest) for user, *rest in (row.split(",") for row in rows)))
    with open("review.json", "rb") as plain, gzip.open("reviews.json.gz", "wb") as packed:
        packed.write(plain.read())
    with h5py.File("filtered_feature_bc_matrix.h5", "w") as file:
        for name, values in (("data", np.ones(400, "i4")), ("indices", np.tile(np.arange(4), 100)), ("indptr", np.arange(0, 401, 4)),
                             ("shape", [5, 100]), ("barcodes", np.array([f"AC{cell}-1" for cell in range(100)], "S")),
                             ("features/id", np.array([f"ENSG{gene}" for gene in range(5)], "S")),
                             ("features/feature_type", np.array(["Gene Expression"] * 4 + ["Antibody Capture"], "S"))):
            file["matrix/" + name] = values
    for part in range(2):
        write_table(f"parts/part-{part}.csv", "user,item,rating,timestamp", (row for row in rows if int(row.split(",")[0]) % 2 == part))
    write_table("movies.csv", "item,title,genres", (f"{item},Title {item},Comedy" for item in range(ITEMS)))
    write_table("users.csv", "user,age", (f"{user},{20 + user % 50}" for user in range(USERS)))
    write_table("u.data", "", (row.replace(",", "\t") for row in rows[:600]))
    write_table("u.item", "", (f"{item}|Title {item}||0|0" for item in range(ITEMS)))
    write_table("u.user", "", (f"{user}|24|M|writer|85711" for user in range(100)))


def write_inputs():
    write_photos()
    write_ratings()
