#!/usr/bin/env python3
"""The site of the pages: it is built without a warning, each link inside of it leads to a file and an anchor that are there,
and nothing is loaded from elsewhere. Usage: site_test.py BUILD_FOLDER"""
import html.parser
import json
import os
import subprocess
import sys
import urllib.parse

BUILD = os.path.abspath(sys.argv[1])
SITE = os.path.join(BUILD, "site")
# The site has these pages at least.
EXPECTED = ["index.html", "tools/index.html", "tools/images.html", "tools/ratings.html", "tools/pack-images.html", "tools/pack-export.html",
            "lib/index.html", "lib/tuning.html", "lib/CHANGELOG.html", "lib/python/index.html", "lib/python/training.html", "lib/python/frameworks.html",
            "samples/index.html",
            "schemas/order.html", "tests/bench/index.html", "api/python.html", "api/cpp/annotated.html"]


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loaded = set(), [], []
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors |= {found[key] for key in ("id", "name") if found.get(key)}
        for key in ("href", "src"):
            if found.get(key):
                is_loaded = key == "src" or (tag == "link" and "stylesheet" in found.get("rel", ""))
                (self.loaded if is_loaded else self.links).append(found[key])


def errors_of(path, page, pages):
    for link in page.links + page.loaded:
        scheme, host, name, _, fragment = urllib.parse.urlsplit(link)
        if scheme or host:
            if link in page.loaded and scheme not in ("data", "javascript"):
                yield f"loads {link}"
            continue
        # The page of an error, which a server shows anywhere, begins at the top.
        folder = SITE if name.startswith("/") else os.path.dirname(path)
        target = os.path.normpath(os.path.join(folder, urllib.parse.unquote(name).lstrip("/"))) if name else path
        if os.path.isdir(target):
            target = os.path.join(target, "index.html")
        if not os.path.exists(target):
            yield f"links to {link}, which is not there"
        # Doxygen 1.9 links to headings of private classes that it leaves out.
        elif fragment and "/api/cpp/" not in path and urllib.parse.unquote(fragment) not in pages[target].anchors:
            yield f"links to {link}, an anchor that is not there"


def errors_of_site():
    """What the theme must have made of mkdocs.yml in both releases of Debian."""
    with open(os.path.join(SITE, "search/search_index.json"), encoding="utf-8") as file:
        found = {each["location"] for each in json.load(file)["docs"] if "channels_last" in each["text"]}
    if not any(name.startswith("lib/python/frameworks.html") for name in found):
        yield "the search does not find a word of a page"
    with open(os.path.join(SITE, "lib/python/training.html"), encoding="utf-8") as file:
        text = file.read()
    with open(os.path.join(SITE, "api/python.html"), encoding="utf-8") as file:
        reference = file.read()
    for expected in ('id="chunkhit.ImageLoader.epoch"', "<dt><code>batch_size=256</code></dt>"):
        if expected not in reference:
            yield f"api/python.html lacks {expected}"
    for expected in ('data-md-color-scheme="slate"', 'rel="next"', 'rel="prev"', "sources/lib/python/training.md.txt", "site.css"):
        if expected not in text:
            yield f"lib/python/training.html lacks {expected}"


def main():
    done = subprocess.run(["cmake", "--build", BUILD, "--target", "docs"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if done.returncode:
        sys.exit("FAILED: " + done.stdout)
    paths = [os.path.join(folder, name) for folder, _, names in os.walk(SITE) for name in names if name.endswith(".html")]
    pages = {path: Page(path) for path in paths}
    missing = [name for name in EXPECTED if os.path.join(SITE, name) not in pages]
    errors = [f"{os.path.relpath(path, SITE)} {error}" for path, page in pages.items()
              for error in errors_of(path, page, pages)] + list(errors_of_site())
    print("\n".join(errors + [f"{name} is missing" for name in missing]))
    links = sum(len(page.links) for page in pages.values())
    print(f"{len(pages)} pages, {links} links, {len(errors)} errors")
    sys.exit(1 if errors or missing or links < 1000 else 0)


main()
