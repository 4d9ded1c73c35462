"""The command pack-report: flags, packs by their kind, sections, page."""
from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from typing import Any, Dict, List, Optional, Sequence, Tuple

from .. import __version__
from .._error import Error, counted, parse_flags, print_error, whole_number
from .._packing import Progress, pack_info, packs_in, with_progress
from .._pages import page_path, shown, write_page
from .._paths import Path, Paths, native_path, path_list
from .._publish import end_on_signals
from ._card import card_path, draw_card
from ._image_scan import LABEL_IMAGES, NEAR_IMAGES, LookOptions, Report, scan_images
from ._page import Section, all_findings, page_text

DEFAULT_SAMPLES = 10_000
SPLITS = ("train", "validation", "val", "test")
SHOWN_FINDINGS = 3  # on the terminal
FINDING_TEXT = 240  # letters of each
DUPLICATES = ("auto", "all", "none")


def split_order(path: str) -> Tuple[str, int, str]:
    """By folder, in each training first, whatever the alphabet says."""
    folder, name = os.path.split(path)
    return (folder, SPLITS.index(name) if name in SPLITS else len(SPLITS), name)


def named_packs(paths: Paths) -> List[Tuple[str, str]]:
    """Names and paths of packs; folders of splits give all of theirs. A name is as much of the path's end as tells it
    from the others."""
    found: List[str] = []
    for path in path_list(paths, "packs"):
        inside = packs_in(path)
        found += [os.path.join(path, name) for name in sorted(inside, key=split_order)] if inside else [path]
    if not found:
        raise Error("packs: expected at least one, found none", "usage")
    names = short_names(found)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise Error(f"packs: {shown(twice)} is repeated", "usage")
    return [(shown(name), path) for name, path in zip(names, found)]


def short_names(paths: Sequence[str], is_title: bool = False) -> List[str]:
    """The last part of each path, with as many before it as tell it from the others; in a title the folder of a split, too."""
    trimmed = [path[:-len("/manifest.json")] if path.endswith("/manifest.json") else path.rstrip("/") or path for path in paths]
    parts = [(path if "://" in path else os.path.abspath(path)).split("/") for path in trimmed]
    names = []
    for own in parts:
        count = 2 if is_title and own[-1] in SPLITS else 1
        while count < len(own) and sum(other[-count:] == own[-count:] for other in parts) > 1:
            count += 1
        names.append("/".join(own[-count:]))
    return names


def check_libraries() -> None:
    missing = []
    for library in ("matplotlib", "jinja2"):
        try:
            importlib.import_module(library)
        except ImportError:
            missing.append(library)
    if missing:
        packages = " ".join("python3-" + library for library in missing)
        raise Error(f"a report needs {' and '.join(missing)}, which {sys.executable} does not find: apt-get install "
                    f"{packages}, or pip install {' '.join(missing)}", "usage")


def image_sections(packs: Sequence[Tuple[str, str]], options: LookOptions) -> List[Section]:
    from . import _column_section, _duplicate_sections, _image_findings, _image_sections, _mask_section, _size_section

    scans = [scan_images(name, path, options) for name, path in packs]
    sections = [_image_sections.overview(scans), _image_sections.class_section(scans), _column_section.label_section(scans),
                _column_section.column_section(scans), *_mask_section.mask_sections(scans),
                _image_sections.sheet_section(scans, options.seed),
                _size_section.size_section(scans), _image_sections.brightness_section(scans),
                _image_sections.reject_section(scans), _image_findings.look_section(scans), _image_findings.suspect_section(scans)]
    sections.append(_duplicate_sections.duplicate_section(scans) if options.duplicates != "none" else
                    Section("duplicates", "Exact duplicates", unchecked=["equal images"]))
    sections.append(_duplicate_sections.near_section(scans) if options.near_duplicates else
                    _duplicate_sections.without_near(sum(scan.total for scan in scans)))
    return sections + [_image_sections.chunk_section(scans)]


def rating_sections(packs: Sequence[Tuple[str, str]], samples: int, seed: int) -> List[Section]:
    from . import _rating_sections as ratings
    from ._rating_findings import rating_findings
    from ._rating_scan import scan_ratings

    scans = [scan_ratings(name, path, samples, seed) for name, path in packs]
    return [ratings.overview(scans), ratings.value_section(scans), ratings.activity_section(scans), ratings.time_section(scans),
            ratings.step_section(scans), rating_findings(scans)]


def write_report(packs: Paths, output: Path, *, bench: Optional[Path] = None, samples: Optional[int] = None, seed: int = 0,
                 duplicates: str = "auto", near_duplicates: Optional[bool] = None, progress: Progress = False,
                 card: Optional[Path] = None) -> List[str]:
    """Writes a page of what packs hold, of images, of ratings, or of both. Returns its findings, the worst first.

    packs            packs, parts, folders of splits or HDF5 files, one or several; URLs, too
    output           the HTML file, FILE.html; one that is there is replaced
    bench            a file that `pack-bench --json` wrote: its speed and waiting are shown, too
    samples          images (10,000 by default) or users (as many as have 50 million ratings) that are looked at in each
                     pack; 0: all. Class counts are always of all
    seed             draws them; equal seeds draw the same
    duplicates       whose images are compared for equal pixels: "auto", all of a pack with at most 10 GB of pixels, else
                     those that are looked at; "all", whatever that takes; "none"
    near_duplicates  whether to look for images that are alike, by a perceptual hash, among those that are compared; None: where all packs
                     have at most 200,000 images
    card             a PNG file of 1200 x 630 pixels to write, too: title, images, the three worst findings
    progress         True: a line on stderr, None: where that is a terminal; or a function, as of `pack_images`

    Raises Error "usage", where matplotlib or jinja2 is missing, too; "bad_data", "cannot_write" or "try_again".
    """
    target = page_path("output", output)
    card_target = None if card is None else card_path(os.fsdecode(native_path(card, "card")))
    named = named_packs(packs)
    if samples is not None:
        whole_number("`samples`", samples)
    whole_number("`seed`", seed)
    if duplicates not in DUPLICATES or (duplicates == "none" and near_duplicates):
        expected = "auto or all, as near-duplicates are wanted" if duplicates == "none" else ", ".join(DUPLICATES)
        raise Error(f"`duplicates`: expected {expected}, found {duplicates!r}", "usage")
    check_libraries()
    kinds: Dict[bool, List[Tuple[str, str]]] = {False: [], True: []}
    for name, path in named:
        kinds["matrices" in pack_info(path)].append((name, path))
    sections: List[Section] = []
    if kinds[False]:
        most = DEFAULT_SAMPLES if samples is None else samples

        total = sum(int(pack_info(path)["samples"]) for _, path in kinds[False])
        is_near = total <= NEAR_IMAGES and duplicates != "none" if near_duplicates is None else near_duplicates

        def look(report: Report) -> List[Section]:
            return image_sections(kinds[False], LookOptions(most, seed, duplicates, is_near, report, LABEL_IMAGES // len(kinds[False])))

        sections += with_progress(progress, look)
    if kinds[True]:
        sections += rating_sections(kinds[True], -1 if samples is None else samples, seed)
    if bench is not None:
        from ._bench_section import bench_section

        sections.append(bench_section(os.fsdecode(bench)))
    note = subtitle(bool(kinds[False]), bool(kinds[True]), samples, seed)
    title = page_title([path for _, path in named])
    write_page(target, page_text(title, note, sections, __version__).encode())
    if card_target is not None:
        write_page(card_target, draw_card(title, sections, all_findings(sections)))
    return [f"{section.title}: {finding.text}" for section, finding in all_findings(sections)]


def page_title(paths: Sequence[str]) -> str:
    """Names of the packs; of many the first."""
    names = [shown(name) for name in short_names(paths, is_title=True)]
    return ", ".join(names) if len(names) < 5 else f"{names[0]} and {len(names) - 1} others"


def subtitle(has_images: bool, has_ratings: bool, samples: Optional[int], seed: int) -> str:
    if samples == 0:
        return "All samples of each pack are looked at."
    limits = [f"at most {DEFAULT_SAMPLES if samples is None else samples:,} images"] if has_images else []
    users = "as many users as have 50 million ratings" if samples is None else f"at most {samples:,} users"
    limits += [users] if has_ratings else []
    return f"Looked at in each pack: {' and '.join(limits)}, drawn by seed {seed}. The table of packs counts all samples."


def parser() -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser(
        prog="pack-report", description="Writes a page of what packs hold, and what is odd about it: one HTML file.",
        epilog="Exit codes: 0 done; 2 usage; 65 bad input data; 73 output cannot be written; 75 try again.")
    flags.add_argument("packs", metavar="PACK", nargs="+", help="pack, part, folder of a split or HDF5 file; or the URL of a pack")
    flags.add_argument("-o", "--output", metavar="FILE.html", required=True, help="HTML file to write; one that exists is replaced")
    flags.add_argument("--bench", metavar="FILE.json", help="show what pack-bench --json measured, too")
    flags.add_argument("--samples", metavar="N", type=int,
                       help="images, or users, to look at in each pack; 0: all (10,000 images; users with 50 million ratings)")
    flags.add_argument("--seed", metavar="N", type=int, default=0, help="seed of the choice of --samples (0)")
    flags.add_argument("--duplicates", choices=DUPLICATES, default="auto",
                       help="images compared for equal pixels: auto is all of packs with up to 10 GB of pixels, else those "
                            "looked at (auto)")
    flags.add_argument("--near-duplicates", action="store_true", default=None,
                       help="look for images that are nearly equal among these, also of more than 200,000 in all")
    flags.add_argument("--card", metavar="FILE.png", help="write title, images and the three worst findings as PNG of 1200 x 630, too")
    flags.add_argument("--version", action="version", version=f"pack-report {__version__}")
    return flags


def summary(page: str, found: Sequence[str]) -> str:
    """What the terminal shows: where the page is, and the worst findings."""
    lines = [f"{page}: {counted(len(found), 'finding')}{', the worst:' if len(found) > SHOWN_FINDINGS else ':' if found else ''}"]
    lines += [f"  {text if len(text) <= FINDING_TEXT else text[:FINDING_TEXT - 1] + '…'}" for text in found[:SHOWN_FINDINGS]]
    return "\n".join(lines)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the command; returns the exit code."""
    options = parse_flags(parser(), arguments)
    end_on_signals()
    try:
        found = write_report(options.packs, options.output, bench=options.bench, samples=options.samples, seed=options.seed,
                             duplicates=options.duplicates, near_duplicates=options.near_duplicates, progress=None,
                             card=options.card)
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may not have the letters of names
        print(summary(shown(options.output), found), flush=True)
    except Error as error:
        print_error("pack-report", shown(error._flag_text), error.code)
        return error.exit_code
    except OSError as error:
        print(f"pack-report: standard output cannot be written: {error.strerror}", file=sys.stderr)
        return 73
    return 0
