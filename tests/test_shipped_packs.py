"""The packs in the wheel contain what their sources say, and are signed by the key beside them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tools import build_packs, pack_sources

from commonplace.cli import main
from commonplace.memory import Memory
from commonplace.packs import container, importing, installed, keys, shipped, trusted

if TYPE_CHECKING:
    from pathlib import Path

NO_KEYS = keys.Keys(lambda: "", list)
ABOUT = """\
name = "zig-core"
version = "1.2.3"
title = "Zig in two nodes"
domain_tags = ["zig"]
authors = ["The Commonplace authors"]
licence = "Apache-2.0"
"""
SOURCE = """\
# What this file is about

## concept.zig.defer: Run code at the end of a scope
tags: cleanup
links: related_to snippet.zig.defer.file 0.9

`defer` runs a statement when its scope ends, whatever ends it.

## snippet.zig.defer.file: Close a file with defer
unchecked: no compiler of Zig is in Debian

```zig
defer file.close();
```
"""


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pack of two nodes in place of those of the project."""
    folder = tmp_path / "packs" / "zig-core"
    folder.mkdir(parents=True)
    (folder / "pack.toml").write_text(ABOUT)
    (folder / "nodes.md").write_text(SOURCE)
    monkeypatch.setattr(pack_sources, "PACKS", tmp_path / "packs")
    return folder


def test_a_pack_is_built_installed_and_answers(
    sources: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "shipped"
    out.mkdir()
    assert build_packs.build(out) == ["zig-core"]
    monkeypatch.setattr(shipped, "FOLDER", out)
    monkeypatch.setattr(trusted, "SHIPPED_KEY", out / "KEY")
    with Memory.open(tmp_path / "home", settings={"embedder.kind": "none"}) as memory:
        done = shipped.add(memory, "zig-core")
        assert (done.added, done.place, done.flagged) == (2, importing.INSTALLED, 0)
        (pack,) = installed.list_packs(memory)
        assert (pack.version, pack.title) == ("1.2.3", "Zig in two nodes")
        (hit, *_) = memory.recall("run a statement when a scope ends").hits
        assert hit.id == "concept.zig.defer"
        assert hit.record.meta["source"] == "seedpack:zig-core"
        snippet = memory.get("snippet.zig.defer.file").fields["payload"]
        assert snippet == {"code": "defer file.close();\n", "language": "zig"}
        assert shipped.add(memory, "zig-core").unchanged == 2
        # What the next release no longer has is no longer found.
        text = SOURCE.replace("whatever ends it", "in reverse order").replace("1.2.3", "2.0.0")
        (sources / "nodes.md").write_text(text)
        build_packs.build(out)
        again = shipped.add(memory, "zig-core")
        assert (again.changed, again.unchanged) == (1, 1)


def test_a_shipped_pack_that_is_imported_as_a_file_is_installed(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "home", settings={"embedder.kind": "none"}) as memory:
        done = importing.import_pack(memory, shipped.FOLDER / "sql-core.kpack", NO_KEYS)
    assert done.place == importing.INSTALLED


def test_two_builds_have_the_same_records(sources: Path) -> None:
    assert list(build_packs.lines_of(sources.name)) == list(build_packs.lines_of(sources.name))


@pytest.mark.parametrize("name", pack_sources.names())
def test_the_built_pack_contains_what_its_source_says(name: str) -> None:
    hint = "run `make packs`"
    assert name in shipped.names(), hint
    with container.opened(shipped.FOLDER / f"{name}.kpack", NO_KEYS) as pack:
        assert pack.signer == trusted.shipped_key(), hint
        built = [json.loads(line) for line in pack.lines()]
        about = pack_sources.about(name)
        assert {field: pack.manifest.fields[field] for field in about} == about, hint
    assert built == [json.loads(line) for line in build_packs.lines_of(name)], hint


def test_every_shipped_pack_has_a_source() -> None:
    assert shipped.names() == pack_sources.names()


def test_lists_and_drawings_name_the_pack(
    own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Memory.open(own_home, settings={"embedder.kind": "none"}) as memory:
        shipped.add(memory, "git-core")
    asked = (
        ["list", "--all-repos", "--limit", "5"],
        ["graph", "concept.git.reflog"],
        ["history", "concept.git.reflog"],
    )
    for arguments in asked:
        assert main([*arguments, "--home", str(own_home)]) == 0
        assert "(pack git-core)" in capsys.readouterr().out
