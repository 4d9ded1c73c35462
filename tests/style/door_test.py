#!/usr/bin/env python3
"""The files that GitHub, editors and pre-commit read parse, and name what exists. Usage: door_test.py ROOT"""
import configparser
import os
import pathlib
import re
import sys

import yaml

ROOT = pathlib.Path(sys.argv[1])


def check(holds, *what):
    if not holds:
        sys.exit("FAILED: " + " ".join(map(str, what)))


def load(name):
    return yaml.safe_load((ROOT / name).read_text())


def check_files_exist(command):
    """Arguments that are paths exist, and begin with what runs them."""
    paths = [word for word in re.findall(r"[\w./]+", command) if "/" in word and not word.startswith("/")]
    check(paths and all((ROOT / path).exists() for path in paths), command, "names no file")


def check_workflow():
    """Two distributions; each step is a command of tests/README.md, which was run before it was written there."""
    workflow = load(".github/workflows/tests.yml")
    job = workflow["jobs"]["tests"]
    check(job["strategy"]["matrix"]["distribution"] == ["debian:12", "debian:13"], job)
    check("distribution" in job["container"]["image"], job["container"])
    runs = [step["run"] for step in job["steps"] if "run" in step]
    known = (ROOT / "tests/README.md").read_text()
    check(runs == ["bash tests/run.sh"] and all(run in known for run in runs), runs)
    check(set(workflow[True]) == {"push", "pull_request"}, "on:", workflow[True])  # YAML 1.1 reads `on` as a bool


def check_form(name):
    """GitHub shows no form that lacks a field, has one that it does not know, or repeats an id."""
    form = load(name)
    check(set(form) == {"name", "description", "labels", "body"}, name, set(form))
    ids = [field["id"] for field in form["body"]]
    check(len(ids) == len(set(ids)) >= 4, name, ids)
    for field in form["body"]:
        check(set(field) <= {"type", "id", "attributes", "validations"} and field["type"] in ("input", "textarea"), name, field)
        check(set(field["attributes"]) <= {"label", "description", "render"} and field["attributes"]["label"], name, field)
        check(field["type"] == "textarea" or "render" not in field["attributes"], name, field)


def check_hooks():
    """Each hook is a style test of CMakeLists.txt; nothing is downloaded."""
    repositories = load(".pre-commit-config.yaml")["repos"]
    check([each["repo"] for each in repositories] == ["local"], repositories)
    hooks = repositories[0]["hooks"]
    for hook in hooks:
        check(hook["language"] == "system" and not hook["pass_filenames"], hook)
        check_files_exist(hook["entry"])
    tests = set(re.findall(r"add_test\(NAME style_(\w+)", (ROOT / "tests/style/CMakeLists.txt").read_text()))
    check({hook["id"] for hook in hooks} == tests - {"binaries", "door"} | {"include_order"}, tests)


def check_citation():
    citation = load("CITATION.cff")
    check({"cff-version", "message", "title", "authors"} <= set(citation), citation)
    version = re.search(r"project\(chunkhit VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    heading = f"## {citation['version']} ({citation['date-released']})"
    check(citation["version"] == version and heading in (ROOT / "lib/CHANGELOG.md").read_text(), heading, version)


def check_editorconfig():
    config = configparser.ConfigParser()
    config.read_string("[top]\n" + (ROOT / ".editorconfig").read_text())
    width = re.search(r"ColumnLimit: (\d+)", (ROOT / ".clang-format").read_text())[1]
    check(config["*.{c,cpp,cu,h}"]["max_line_length"] == width, width)


def check_links(page):
    folder = (ROOT / page).parent
    links = re.findall(r"\]\(([^):#]+)", (ROOT / page).read_text())
    check(links and all((folder / link).exists() for link in links), page, links)


def main():
    os.chdir(ROOT)
    check_workflow()
    forms = sorted(path.relative_to(ROOT) for path in (ROOT / ".github/ISSUE_TEMPLATE").iterdir())
    check(len(forms) == 2, forms)
    for form in forms:
        check_form(form)
    check_hooks()
    check_citation()
    check_editorconfig()
    for page in (".github/CONTRIBUTING.md", ".github/SECURITY.md"):
        check_links(page)
    print(f"{len(forms)} forms, a workflow, hooks, a citation and two pages")


main()
