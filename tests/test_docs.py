"""The docs are tested: every command, flag, setting, exit code and kind occurs in them."""

from __future__ import annotations

import json
import re
import tomllib

import pytest

import commonplace
from commonplace.cli.program import program_parser
from commonplace.records import EVENT_TYPES, KINDS, OUTCOMES, RELATIONS
from commonplace.settings import SETTINGS
from conftest import ROOT
from test_cli import all_errors
from test_parser import GROUPS, LEAVES, PARSERS

README = (ROOT / "README.md").read_text("utf-8")
CLI = (ROOT / "docs" / "CLI.md").read_text("utf-8")
FORMAT = (ROOT / "docs" / "FORMAT.md").read_text("utf-8")
ARCHITECTURE = (ROOT / "docs" / "ARCHITECTURE.md").read_text("utf-8")
SOURCE = ROOT / "src" / "commonplace"
# Commands that are another one by another name.
OTHER_NAMES = {"search": "recall"}
DOCS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def section(heading: str) -> str:
    """What docs/CLI.md says below *heading*, up to the next one."""
    found = re.search(rf"^#+ `{re.escape(heading)}`$(.*?)(?=^#|\Z)", CLI, re.MULTILINE | re.DOTALL)
    assert found, f"docs/CLI.md has no heading `{heading}`"
    return found[1]


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_is_documented_with_its_flags_and_defaults(name: str) -> None:
    text = section(f"commonplace {name}")

    assert f"    commonplace {name}" in text
    if name in OTHER_NAMES:
        assert f"`commonplace {OTHER_NAMES[name]}`, with the same flags" in text
        return
    for action in PARSERS[name]._actions:
        for flag in action.option_strings or [str(action.metavar)]:
            assert flag in ("-h", "--help", "--home", "--json") or flag in text, flag
        if action.default not in (None, False, True, "", [], "==SUPPRESS=="):
            assert re.search(rf"default: {action.default}\b", text), action.option_strings


def test_every_group_and_what_all_commands_share_is_documented() -> None:
    for name in GROUPS:
        section(f"commonplace {name}")
    shared = CLI[: CLI.index("\n## ")]
    for action in (*PARSERS["where"]._actions, *program_parser()._actions):
        assert [flag for flag in action.option_strings if flag not in shared] == []


def test_the_page_of_commands_fits_a_terminal() -> None:
    assert max(len(line) for line in CLI.splitlines()) <= 100


def test_every_setting_is_documented_with_its_default() -> None:
    text = (ROOT / "docs" / "SETTINGS.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `([a-z_.]+)` \| `([^`]+)` \|", text, re.MULTILINE))

    assert {name: tomllib.loads(f"x = {value}")["x"] for name, value in rows.items()} == {
        name: setting.default for name, setting in SETTINGS.items()
    }


def test_every_exit_code_is_documented_with_its_error() -> None:
    for error in all_errors():
        named = "" if error.exit_code == 2 else f"`{error.__name__}`"
        assert re.search(rf"^\| {error.exit_code} \|.*{named}", CLI, re.MULTILINE), error


def test_every_kind_and_its_fields_are_in_the_format() -> None:
    for kind, cls in KINDS.items():
        assert f"`{kind}`" in FORMAT
        assert [name for name in cls.known if f"`{name}" not in FORMAT] == [], kind
    assert [word for word in (*EVENT_TYPES, *OUTCOMES, *RELATIONS) if word not in FORMAT] == []


# Folders with one module for each agent, command, format or part of an engine.
SUMMARISED = ("agents", "cli", "exchange/formats", "index/embedded", "integrations")


def test_the_architecture_names_every_module() -> None:
    table = ARCHITECTURE.partition("## Layout")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `([\w/]+?)/` \| (.*) \|$", table, re.MULTILINE))
    top = "".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `"))
    for path in SOURCE.rglob("*.py"):
        folder, name = path.parent.relative_to(SOURCE).as_posix(), path.name
        if not name.startswith("__") and folder not in SUMMARISED:
            assert f"`{name}`" in (top if folder == "." else rows[folder]), path


def test_the_functions_that_the_architecture_names_exist() -> None:
    named = re.findall(r"`([\w/]+\.py): ([\w.]+)`", ARCHITECTURE)
    embedded = "index/embedded/"
    for file, name in named:
        path = next(one for one in (SOURCE / file, SOURCE / embedded / file) if one.exists())
        for part in name.split("."):
            assert re.search(rf"\b(def|class) {part}\b", path.read_text("utf-8")), (file, name)
    assert len(named) > 30


def test_every_word_of_the_glossary_is_used_in_the_code() -> None:
    code = " ".join(path.read_text("utf-8").lower() for path in SOURCE.rglob("*.py"))
    code = re.sub(r"[_\s]+", " ", code)
    text = (ROOT / "docs" / "GLOSSARY.md").read_text("utf-8")
    words = [
        word
        for row in re.findall(r"^\| \*\*(.+?)\*\*", text, re.MULTILINE)
        for word in row.split(", ")
    ]

    assert [word for word in words if word not in code] == []
    assert len(words) == len(set(words))


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_links_between_the_docs_lead_somewhere(path: object) -> None:
    from pathlib import Path

    assert isinstance(path, Path)
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text("utf-8")):
        assert target.startswith("https://") or (path.parent / target).exists(), target


def test_the_registry_is_told_what_the_package_is() -> None:
    told = json.loads((ROOT / "server.json").read_text("utf-8"))
    (package,) = told["packages"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert told["version"] == package["version"] == commonplace.__version__
    assert package["identifier"] == project["name"]
    assert len(told["description"]) <= 100
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", told["name"])
    # The registry looks for this in the README of the released package.
    assert f"mcp-name: {told['name']} -->" in (ROOT / project["readme"]).read_text("utf-8")


def test_what_the_registry_starts_is_the_server() -> None:
    (package,) = json.loads((ROOT / "server.json").read_text("utf-8"))["packages"]
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    arguments = [argument["value"] for argument in package["packageArguments"]]
    environment = (ROOT / "docs" / "SETTINGS.md").read_text("utf-8")

    assert package["identifier"] in scripts  # `uvx NAME` runs the script of that name.
    assert arguments == ["mcp"]
    assert "mcp" in LEAVES
    assert all(
        f"`{variable['name']}`" in environment for variable in package["environmentVariables"]
    )


def test_every_figure_in_the_readme_comes_from_a_benchmark() -> None:
    figures = (ROOT / "docs" / "BENCHMARKS.md").read_text("utf-8")
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| (`bench/[^|]+) \|$", README, re.MULTILINE)
    assert len(rows) > 5
    for claim, figure, scripts in rows:
        for script in re.findall(r"`(bench/\w+\.py)`", scripts):
            assert f"python {script}" in figures, (claim, script)
        quoted = re.findall(r"`([^`]+)`", figure)
        assert quoted
        assert [one for one in quoted if one not in re.sub(" +", " ", figures)] == [], claim
