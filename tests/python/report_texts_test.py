"""What pages of pack-report are made with: hashes that images are compared by, samples that are drawn, texts."""
import types

import numpy as np
import pytest

from chunkhit._pages import shown
from chunkhit.report import write_report
from chunkhit.report._image_scan import spread_samples
from chunkhit.report._page import bytes_text, short_name
from chunkhit.report._perceptual import MAX_BITS, different_bits, near_pairs, perceptual_hash

from report_test import command, photos  # noqa: F401: a fixture


def test_near_pairs_end_at_the_most_that_are_wanted():
    pairs, is_cut = near_pairs(np.zeros((3000, 2), np.uint64), 1000)
    assert len(pairs) == 1000 and is_cut


def test_near_pairs_are_those_of_all_pairs():
    random = np.random.default_rng(4)
    hashes = random.integers(0, 1 << 63, (400, 2)).astype(np.uint64)
    hashes = np.concatenate([hashes, hashes[:100] ^ (np.uint64(1) << random.integers(0, 62, (100, 2)).astype(np.uint64))])
    hashes[450:, 0] ^= random.integers(0, 1 << 9, 50).astype(np.uint64)
    bits = different_bits(hashes[:, None], hashes[None])
    expected = sorted((int(a), int(b), int(bits[a, b])) for a, b in zip(*np.nonzero(np.triu(bits <= MAX_BITS, 1))))
    assert len(expected) >= 100
    assert sorted(near_pairs(hashes, 10_000)[0]) == expected


def test_perceptual_hash_compares_areas_with_their_neighbors():
    ramp = np.tile(np.arange(90, dtype=np.float32), (72, 1))
    assert np.unpackbits(perceptual_hash(ramp).view(np.uint8)).tolist() == [1] * 64 + [0] * 64
    assert np.unpackbits(perceptual_hash(ramp.T[:, :50]).view(np.uint8)).tolist() == [0] * 64 + [1] * 64


@pytest.mark.parametrize("total, wanted", [(1_281_167, 10_000), (1000, 999), (100, 0), (17, 16), (5, 9)])
def test_samples_are_spread_over_the_pack(total, wanted):
    samples = spread_samples(total, wanted, 3)
    assert np.all(np.diff(samples) > 0) and samples[0] >= 0 and samples[-1] < total
    assert len(samples) == total if wanted == 0 or wanted >= total else 0.95 * wanted <= len(samples) <= wanted
    assert np.diff(samples, prepend=0, append=total).max() <= 2 * max(16, 16 * total // max(wanted, 1)) + 1


@pytest.mark.parametrize("count", [0, 7, 999, 1000, 999_949, 999_951, 31_100_000, 5e9, 999_949_000_000, 1e12, 2.5e15])
def test_bytes_are_written_as_pack_info_writes_them(count):
    expected = {0: "0 B", 7: "7 B", 999: "999 B", 1000: "1.0 kB", 999_949: "999.9 kB", 999_951: "1.0 MB", 31_100_000: "31.1 MB",
                5e9: "5.0 GB", 999_949_000_000: "999.9 GB", 1e12: "1.0 TB", 2.5e15: "2,500.0 TB"}
    assert bytes_text(count) == expected[count]


def test_long_names_lose_their_middle():
    names = ("a/b/04.png", "n01440764/ILSVRC2012_val_00000293.JPEG", "cardboard_train_IMG-20260001_original.jpg", "c/")
    assert [short_name(name) for name in names] == \
        ["04.png", "ILSVRC2012_val_00000293.JPEG", "cardboard_tra…001_original.jpg", "c/"]


def test_names_are_shown_without_what_would_change_the_page():
    assert shown("a\x1b[2J\u202egnp.\udcff é日") == "a\\x1b[2J\\u202egnp.\\xff é日"


def test_progress_says_how_long_reading_takes(packs, tmp_path, monkeypatch):
    clock = iter(range(0, 10_000, 2))
    # The module's own clock: other threads of the process ask the real one.
    monkeypatch.setattr("chunkhit.report._image_scan.time", types.SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr("chunkhit.report._image_scan.GROUP_BYTES", 10 * 8 * 6 * 3)
    events = []
    write_report(packs / "hdf5", tmp_path / "report.html", progress=events.append)
    assert [event["rows_done"] for event in events] == list(range(10, 101, 10))
    assert events[0] == {"phase": "reading hdf5", "rows_done": 10, "rows_total": 100, "rejected": 0, "seconds_left": 18.0}
    assert events[-1]["seconds_left"] == 0


def test_command_prints_the_worst_findings_and_where_the_page_is(photos, tmp_path):  # noqa: F811
    page = tmp_path / "report.html"
    code, text = command(photos / "packs", "-o", page)
    expected = write_report(photos / "packs", tmp_path / "again.html")
    lines = text.splitlines()
    assert code == 0 and lines[0] == f"{page}: {len(expected)} findings, the worst:" and len(expected) > 3
    assert lines[1:] == [f"  {line}" for line in expected[:3]]
    code, text = command(photos / "packs", "-o", page, LC_ALL="C", PYTHONIOENCODING="ascii")
    assert code == 0 and len(text.splitlines()) == 4
