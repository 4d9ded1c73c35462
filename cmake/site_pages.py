#!/usr/bin/env python3
"""Writes what MkDocs makes the site of: the repository's pages as they are linked, the files that they link as pages of their
own, the commands' flags, and the Python package's docstrings. Usage: site_pages.py ROOT PAGES DOXYGEN_HTML FLAGS; PYTHONPATH has
the built package, FLAGS the commands' pages.

Pages stay as GitHub shows them: headings get GitHub's anchors, lists and tables the blank line that Python-Markdown needs.
Where a page says `pack-images --help`, the site links to that command's flags."""
import importlib.util
import inspect
import os
import pathlib
import re
import shutil
import sys

ROOT, PAGES, DOXYGEN, FLAGS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:5])
# Whatever is reached by links from here.
FIRST = ["README.md", "schemas/README.md", "samples/README.md", "lib/CHANGELOG.md", "tests/failures/README.md"]
LINK = re.compile(r"(\[[^\]]*\]\()([^)\s]+)(\))")
IMAGE = re.compile(r'(<img src=")([^"]+)(")')
LANGUAGES = {".cpp": "cpp", ".h": "cpp", ".cu": "cpp", ".py": "python", ".sh": "bash", ".yaml": "yaml", ".json": "json"}
IMAGES = (".svg", ".png")
HELP = re.compile(r"`(pack-[a-z]+) --help`")


def anchor(heading, known):
    """GitHub's anchor of a heading."""
    text = re.sub(r"\]\([^)]*\)", "", heading)
    slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
    known[slug] = known.get(slug, -1) + 1
    return f"{slug}-{known[slug]}" if known[slug] else slug


# Code wraps instead of being cut; wide screens show pages as wide as their tables.
STYLE = """.md-typeset pre > code { white-space: pre-wrap; overflow-wrap: anywhere; }
.md-grid { max-width: 70rem; }
.md-typeset dl dd { margin: 0 0 0.4em 1.5em; }
"""


def kind(line):
    return "table" if line.startswith("|") else "list" if re.match(r"([-*]|\d+\.) ", line) else "text"


class Site:
    def __init__(self):
        self.waiting = list(FIRST)
        self.written = set()

    def linked(self, page, target):
        """The target of a link as the site has it; what it names is written, too."""
        if re.match(r"[a-z]+:|#", target):
            return target
        name, _, fragment = target.partition("#")
        path = (ROOT / page).parent.joinpath(name).resolve()
        if not path.exists() or ROOT not in path.parents:
            sys.exit(f"{page}: links to {target}, which is not there")
        if path.is_dir():
            path = path / "README.md"
        own = str(path.relative_to(ROOT))
        if path.suffix in IMAGES:
            self.write(own, path.read_bytes())
        else:
            own += "" if path.suffix == ".md" else ".md"
            self.waiting.append(own)
        found = os.path.relpath(own, os.path.dirname(page))
        return found + ("#" + fragment if fragment else "")

    def flags(self, page, command):
        """The page of a command's flags, which the repository does not have."""
        return os.path.relpath(f"tools/{command}.md", os.path.dirname(page))

    def write(self, name, content):
        path = PAGES / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        self.written.add(name)

    def page(self, name):
        """A page of the repository, a folder's files, or a file as a page."""
        path = ROOT / name
        if path.exists():
            text = path.read_text()
            self.write(f"sources/{name}.txt", text)
            source = os.path.relpath(f"sources/{name}.txt", os.path.dirname(name))
            return self.markdown(name, text) + f"\n<p><small><a href=\"{source}\">Source: {name}</a></small></p>\n"
        if path.name == "README.md":
            files = sorted(entry.name for entry in path.parent.iterdir() if entry.is_file())
            listed = "".join(f"- [{each}]({each})\n" for each in files)
            return self.markdown(name, f"# {path.parent.relative_to(ROOT)}\n{listed}")
        source = path.with_suffix("")
        return f"# {name[:-3]}\n````{LANGUAGES.get(source.suffix, 'text')}\n{source.read_text()}\n````\n"

    def markdown(self, name, text):
        lines, anchors, fence, before = [], {}, None, ""
        for line in text.splitlines():
            mark = re.match(r"\s*(```+)", line)
            if mark:
                fence = None if fence else mark[1]
            elif fence is None:
                heading = re.match(r"#+ (.*)", line)
                line = IMAGE.sub(lambda image: image[1] + self.linked(name, image[2]) + image[3], line)
                line = LINK.sub(lambda link: link[1] + self.linked(name, link[2]) + link[3], line)
                line = HELP.sub(lambda shown: f"[{shown[0]}]({self.flags(name, shown[1])})", line)
                if heading:
                    line += f" {{#{anchor(heading[1], anchors)}}}"
                # A line that only continues an item is indented.
                if kind(line) != "text" and before and kind(before) != kind(line) and not before.startswith(" "):
                    lines.append("")
            lines.append(line)
            before = "" if mark and fence is None else line
            if mark and fence is None:
                lines.append("")
        return "\n".join(lines) + "\n"

    def write_all(self):
        while self.waiting:
            name = self.waiting.pop()
            if name not in self.written:
                self.write(name, self.page(name))


def signature(named, name):
    try:
        text = re.sub(r"ForwardRef\('([^']*)'\)", r"\1", str(inspect.signature(named)))
        text = name + re.sub(r"""(: |-> )["']+([^"'=]+)["']+""", r"\1\2", text).replace("'", '"')
    except (TypeError, ValueError):
        return name
    return text if len(text) < 100 else re.sub(r", (?=[a-z_]+:|\*)", ",\n    ", text)


def fenced(language, text):
    return f"````{language}\n{text}\n````\n"


def prose(text):
    """Lines as text that Markdown leaves alone, but for what stands in backticks."""
    return re.sub(r"`[^`]+`|[\\*_\[\]<>#|]", lambda found: found[0] if len(found[0]) > 1 else "\\" + found[0], text)


def described(doc):
    """A docstring as Markdown: `name=value` with lines that are indented below it become a list of definitions, code and tables
    stay as they are, and all else is text."""
    parts = []
    for block in doc.split("\n\n"):
        lines = block.splitlines()
        if re.fullmatch(r"\w[\w, ]*(=.*)?", lines[0]) and len(lines) > 1 and lines[1].startswith("    "):
            for line in lines:
                if not line.startswith("    "):
                    parts.append(f"\n`{line}`\n:   ")
                else:
                    parts[-1] += prose(line.strip()) + "\n    "
        elif any(re.search(r"\S {2,}\S|^ {4}", line) for line in lines):
            parts.append("\n" + fenced("text", block))
        else:
            parts.append("\n" + prose(block) + "\n")
    return "\n".join(part.rstrip(" ") for part in parts) + "\n"


def members(each, path):
    """The public methods and properties of a class, with their docstrings."""
    own = {name for base in each.__mro__ if base.__module__.startswith("chunkhit") for name in vars(base)}
    for name, value in inspect.getmembers(each):
        words = inspect.getdoc(value) or ""
        is_member = callable(value) or isinstance(value, property)
        if name.startswith("_") or name not in own or not words or not is_member:
            continue
        head = fenced("python", signature(value, name)) if callable(value) else ""
        yield f"#### {each.__name__}.{name} {{#{path}.{name}}}\n" + head + described(words)


def python_page():
    """What the package says about itself. The options' texts are made when it is loaded, so that it is asked, not its sources."""
    page = "# Python API\n`help()` says the same. How things go together: [the package](../lib/python/README.md).\n\n"
    public = importlib.import_module("chunkhit").__all__
    for module in ("chunkhit", *(["chunkhit.torch"] if importlib.util.find_spec("torch") else [])):
        package = importlib.import_module(module)
        names = [name for name in public if getattr(getattr(package, name, None), "__module__", "").startswith(module)]
        page += f"## {module}\n" + described(inspect.getdoc(package))
        for name in sorted(names, key=str.lower):  # chunkhit.torch has loaders of the same names
            named, path = getattr(package, name), f"{module}.{name}"
            page += f"### {path} {{#{path}}}\n" + fenced("python", signature(named, name))
            page += described(inspect.getdoc(named) or "") + ("".join(members(named, path)) if inspect.isclass(named) else "")
    return page


def main():
    shutil.rmtree(PAGES, ignore_errors=True)
    site = Site()
    site.write_all()
    for page in FLAGS.iterdir():
        site.write(f"tools/{page.name}", page.read_bytes())
    site.write("api/python.md", python_page())
    site.write("site.css", STYLE)
    site.write("api/cpp.md", "# C++ API\nThe headers' comments: [files](cpp/files.html), [classes](cpp/annotated.html).\n")
    shutil.copytree(DOXYGEN, PAGES / "api/cpp")
    print(f"{len(site.written)} pages and images")


main()
