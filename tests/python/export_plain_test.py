"""Exported tables that spreadsheets open."""
import csv

import chunkhit
from export_test import command


def test_names_that_spreadsheets_would_compute_are_plain_on_request(tmp_path):
    (tmp_path / "ratings.csv").write_text("user,item,rating\n=1+2,@a,1\n-3,+b,2\n-c,d,3\n")
    chunkhit.pack_sparse(tmp_path / "ratings.csv", tmp_path / "pack")
    for plain, expected in ((False, {"=1+2", "-3", "-c", "@a", "+b", "d"}), (True, {"'=1+2", "-3", "'-c", "'@a", "'+b", "d"})):
        chunkhit.export_pack(tmp_path / "pack", tmp_path / "out.csv", plain=plain, force=True)
        with open(tmp_path / "out.csv", newline="") as file:
            rows = list(csv.reader(file))[1:]
        assert {cell for row in rows for cell in row[:2]} == expected
    assert command(tmp_path / "pack", "-o", tmp_path / "out.npz", "--plain").returncode == 0
    assert "'=1+2" in (tmp_path / "out.users.csv").read_text()
