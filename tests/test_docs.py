"""The docs are tested: every command, flag, setting, exit code and kind occurs in them."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
import typer.main

import commonplace
from commonplace.cli.app import app
from commonplace.records import EVENT_TYPES, KINDS, OUTCOMES, RELATIONS
from commonplace.settings import SETTINGS
from conftest import ROOT
from test_cli import all_errors

CLI = (ROOT / "docs" / "CLI.md").read_text("utf-8")
FORMAT = (ROOT / "docs" / "FORMAT.md").read_text("utf-8")
DOCS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
COMMANDS = {
    f"{name} {inner}".strip(): found
    for name, group in typer.main.get_command(app).commands.items()  # type: ignore[attr-defined]
    for inner, found in getattr(group, "commands", {"": group}).items()
}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_its_flags_are_documented(name: str) -> None:
    flags = {
        flag
        for parameter in COMMANDS[name].params
        for flag in parameter.opts
        if flag.startswith("--")
    }

    assert f"`commonplace {name}" in CLI
    assert [flag for flag in flags if flag not in CLI] == []


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
    assert "mcp" in COMMANDS
    assert all(
        f"`{variable['name']}`" in environment for variable in package["environmentVariables"]
    )
