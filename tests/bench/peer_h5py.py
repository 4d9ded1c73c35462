#!/usr/bin/python3
"""What users do today: Pillow and h5py, one process. usage: peer_h5py.py CORPUS OUT.h5; prints images per second."""
import csv
import sys
import time

import h5py
import numpy as np
from PIL import Image

corpus, out = sys.argv[1:]
rows = list(csv.DictReader(open(f"{corpus}/datapath_with_label.csv")))
begin = time.perf_counter()
with h5py.File(out, "w", rdcc_nslots=11213, rdcc_nbytes=1024**3, rdcc_w0=1) as file:
    images = file.create_dataset("images", (len(rows), 64, 64, 3), np.uint8, chunks=(100, 64, 64, 3))
    labels = file.create_dataset("labels", (len(rows),), np.uint8, chunks=(min(20000, len(rows)),))
    batch = []
    for index, row in enumerate(rows):
        image = Image.open(f"{corpus}/{row['file']}").convert("RGB").resize((96, 128), Image.BILINEAR)
        batch.append(np.asarray(image.crop((16, 32, 80, 96))))
        labels[index] = int(row["label"])
        if len(batch) == 100 or index + 1 == len(rows):
            images[index + 1 - len(batch) : index + 1] = np.stack(batch)
            batch = []
print(round(len(rows) / (time.perf_counter() - begin)))
