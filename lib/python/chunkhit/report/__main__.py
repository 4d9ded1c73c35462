"""python3 -m chunkhit.report"""
import sys

from ._command import main

sys.exit(main())
