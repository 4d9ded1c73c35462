"""The command pack-export: python -m chunkhit.export PACK -o OUTPUT."""
import argparse
import sys
from typing import List, Optional

from ._chunkhit import __version__
from ._error import Error, TryAgainError, parse_flags, print_error
from ._export import export_pack
from ._pages import shown
from ._publish import end_on_signals


def parser() -> argparse.ArgumentParser:
    flags = argparse.ArgumentParser(
        prog="pack-export", description="Writes a pack, in its order, as files that other tools read.",
        epilog="Exit codes: 0 done; 2 usage; 65 bad input data; 73 output cannot be written; 75 try again later.")
    flags.add_argument("pack", metavar="PACK", help="folder or URL of a pack, a part, or an HDF5 file")
    flags.add_argument("-o", "--output", metavar="OUTPUT", required=True, help=(
        "images: FILE.tar (WebDataset), FILE.npz, or a folder (CLASS/NAME.png and labels.csv; "
        "with fields images/CLASS/NAME.png, masks/CLASS/NAME.png, FIELD/CLASS/NAME.png); "
        "ratings: FILE.npz (scipy.sparse.load_npz) or FILE.csv (user,item,value, and time where it is kept)"))
    flags.add_argument("--classes", metavar="NAME,...", help="only the samples of these classes")
    flags.add_argument("--force", action="store_true", help="replace an existing output")
    flags.add_argument("--plain", action="store_true", help="tables: put ' before what a spreadsheet would compute")
    flags.add_argument("--threads", metavar="N", type=int, help="threads that encode images (all CPUs)")
    flags.add_argument("--images", metavar="DATASET", default="images", help="dataset of an external HDF5 file (images)")
    flags.add_argument("--labels", metavar="DATASET", help="its label dataset (labels, next to the images)")
    flags.add_argument("--quiet", action="store_true", help="show no progress")
    flags.add_argument("--version", action="version", version=f"pack-export {__version__}")
    return flags


def main(arguments: Optional[List[str]] = None) -> int:
    given = parse_flags(parser(), arguments)
    end_on_signals()
    try:
        report = export_pack(given.pack, given.output, classes=given.classes.split(",") if given.classes else None,
                             force=given.force, plain=given.plain, threads=given.threads, progress=False if given.quiet else None,
                             images=given.images, labels=given.labels)
    except Error as error:
        print_error("pack-export", shown(error._flag_text), error.code)
        return error.exit_code
    except MemoryError:
        print("pack-export: out of memory; fewer --threads need less", file=sys.stderr)
        return TryAgainError.exit_code
    kind = "samples" if "samples" in report else "rows"
    print(f"{report[kind]:,} {kind} → {shown(', '.join(report['files']))}")
    if "command" in report:
        print(f"to pack it again: {shown(report['command'])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
