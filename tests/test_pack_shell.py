"""The packs `git-core` and `shell-core`: every snippet in a scratch folder, and what checks them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tools import check_pack_shell, pack_sources
from tools.pack_sources import Code, SourceNode

from knowledge_packs import needs_linux

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("pack", check_pack_shell.CHECKED)
def test_shellcheck_has_nothing_to_say(pack: str) -> None:
    assert check_pack_shell.shellcheck(pack_sources.read(pack)) == []


@needs_linux
@pytest.mark.parametrize(
    "node",
    [node for pack in check_pack_shell.CHECKED for node in check_pack_shell.checked_nodes(pack)],
    ids=lambda node: str(node.id),
)
def test_a_snippet_does_what_its_node_says(node: SourceNode) -> None:
    assert check_pack_shell.problems(node) == []


def _node(code: str, check: str, expected: str = "") -> SourceNode:
    return SourceNode(
        "here:1",
        "snippet.shell.x",
        "x",
        fields={"check": f"shellcheck {expected}"} if expected else {},
        codes=[Code("bash", code)],
        checks=[Code("bash", check)],
    )


@needs_linux
@pytest.mark.parametrize(
    ("code", "check", "reason"),
    [
        ("echo a\n", 'same "$(snippet)" b\n', "got [a], expected [b]"),
        ("exit 3\n", "snippet\n", "exit code 3"),
        ("echo a\n", "snippet\n", "the check passes without the code"),
        ("echo a\n", "true\n", "the check passes without the code"),
        ("echo $undefined\n", 'set -- "$(. "$SNIPPET")"; false\n', "unbound variable"),
    ],
)
def test_the_checker_sees_what_is_wrong(code: str, check: str, reason: str) -> None:
    found = check_pack_shell.problems(_node(code, check))
    assert reason in "".join(found)


@needs_linux
def test_a_check_runs_with_a_clean_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    monkeypatch.setenv("SECRET", "x")
    check = """
same "${SECRET-}${GIT_DIR-}" ""
case $HOME in "$(dirname "$PWD")"/*) ;; *) fail "HOME is $HOME" ;; esac
fails git config --get-regexp . 2>/dev/null
fails git rev-parse --git-dir 2>/dev/null
fails git ls-remote https://127.0.0.1:9/x 2>err
has "$(cat err)" "transport 'https' not allowed"
"""
    assert check_pack_shell.run(_node("", check), tmp_path) == ""


def test_shellcheck_must_say_what_an_anti_pattern_expects() -> None:
    wrong = _node("cat $1\n", "")
    assert "SC2086" in check_pack_shell.shellcheck([wrong])[0]
    assert not check_pack_shell.shellcheck([_node("cat $1\n", "", expected="SC2086")])
    (found,) = check_pack_shell.shellcheck([_node("cat x\n", "", expected="SC2086")])
    assert "does not report SC2086" in found
