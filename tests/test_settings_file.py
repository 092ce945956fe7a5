"""`commonplace config`: every setting can be shown and set, and the rest of the file stays."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace import settings_file
from commonplace.cli import main
from commonplace.errors import UsageError
from commonplace.settings import SETTINGS, parse
from commonplace.where.home import Home

if TYPE_CHECKING:
    from pathlib import Path


def value_for(name: str) -> st.SearchStrategy[Any]:
    """Values that the setting *name* may have."""
    setting = SETTINGS[name]
    lower = setting.minimum or 0
    upper = setting.maximum if setting.maximum is not None else lower + 10_000
    if setting.choices and isinstance(setting.default, list):
        return st.lists(st.sampled_from(setting.choices), max_size=3)
    if setting.choices:
        return st.sampled_from(setting.choices)
    if isinstance(setting.default, bool):
        return st.booleans()
    if isinstance(setting.default, int):
        return st.integers(int(lower), int(upper))
    if isinstance(setting.default, float):
        return st.floats(lower, upper).map(lambda number: round(number, 4))
    words = st.sampled_from(["core", "LEARNED:", 'say "so"', "a # b", "C:\\x", "é"])
    return st.lists(words, max_size=3) if isinstance(setting.default, list) else words


settings_and_values = st.sampled_from(sorted(SETTINGS)).flatmap(
    lambda name: st.tuples(st.just(name), value_for(name))
)
FILES = [
    "",
    "# mine\n",
    'fsync = "always" # why\n\n# rotation\n[rotation]  # small\nlines_max = 1000\n\nmove = 500\n',
    "recall.dense = 0.5\nrecall.same = false # dotted\n",
    '[hooks]\r\nprefixes = [\r\n  "A:", # one\r\n  "B:",\r\n]\r\nstart = false\r\n',
    "[tools]\nmemory.enabled = false\n[tools.other]\nx = 1\n[server]\n",
    "unknown = 1\n['recall']\n\"dense\" = 0.1",
    "recall = { dense = 0.2, same = true }\n",
]


@given(st.sampled_from(FILES), st.lists(settings_and_values, min_size=1, max_size=4))
def test_a_change_changes_one_setting_and_keeps_all_comments(
    text: str, changes: list[tuple[str, Any]]
) -> None:
    for name, value in changes:
        before = dict(parse("settings", text.encode()))
        edited = settings_file.edit(text, before, name, value)
        if edited is None:
            assert "{" in text, "only a table in one line is too hard"
            continue
        assert dict(parse("settings", edited.encode())) == {**before, name: value}
        for comment in (line.partition("#")[2] for line in text.splitlines() if "#" in line):
            # A comment inside of a list that was replaced goes with it.
            assert comment in edited or name == "hooks.prefixes" or '"' in comment
        kept = [line for line in text.splitlines() if line.strip() and "=" not in line]
        if name != "hooks.prefixes":
            assert [line for line in edited.splitlines() if line in kept] == kept
        text = edited


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_can_be_listed_got_and_set(
    name: str, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    default = SETTINGS[name].default
    typed = ",".join(default) or "core" if isinstance(default, list) else json.dumps(default)
    typed = default or "x" if isinstance(default, str) else typed
    assert main(["config", "set", name, "--", typed]) == 0
    capsys.readouterr()
    assert main(["config", "get", name, "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["origin"] == str(own_home / "config.toml")
    assert row["default"] == default
    assert row["value"] == (default or row["value"])
    assert main(["config", "list", "--json"]) == 0
    assert {one["name"] for one in json.loads(capsys.readouterr().out)} == set(SETTINGS)
    assert (own_home / "config.toml").stat().st_mode & 0o077 == 0


def test_comments_and_order_stay(own_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own_home.mkdir()
    (own_home / "config.toml").write_text(
        '# Ours.\nfsync = "always"  # a slow disk\n\n[recall] # tuned\ndense = 0.5 # more\nsame = true\n'
    )
    assert main(["config", "set", "recall.dense", "0.3"]) == 0
    assert main(["config", "set", "recall.priors", "false"]) == 0
    assert (own_home / "config.toml").read_text() == (
        '# Ours.\nfsync = "always"  # a slow disk\n\n[recall] # tuned\ndense = 0.3  # more\nsame = true\n'
        "priors = false\n"
    )


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("recall.dens", "0.3", "did you mean `recall.dense`?"),
        ("recall.dense", "much", "must be a number"),
        ("recall.dense", "2", "over 1"),
        ("fsync", "sometimes", "not one of never, batch, always"),
        ("tools.sets", '["kom", "bogus"]', "not one of core, notes, episodes, kom"),
        ("hooks.prompt", "maybe", "must be true or false"),
        ("embedder.model", "ghp_" + "a1B2" * 9, "looks like a secret"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    own_home: Path, capsys: pytest.CaptureFixture[str], name: str, value: str, said: str
) -> None:
    own_home.mkdir()
    (own_home / "config.toml").write_text("# mine\n")
    assert main(["config", "set", name, value]) == UsageError.exit_code
    assert said in capsys.readouterr().err
    assert (own_home / "config.toml").read_text() == "# mine\n"


def test_a_repository_cannot_set_what_is_the_users(
    tmp_path: Path, own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "app").mkdir()
    with pytest.raises(UsageError):
        settings_file.change(Home(tmp_path / "app", of_user=False), "server.host", "0.0.0.0")
    assert main(["config", "set", "embedder.kind", "none"]) == 0
    assert tomllib.loads((own_home / "config.toml").read_text()) == {"embedder": {"kind": "none"}}


def test_an_unknown_item_of_a_list_is_left_out_and_reported(
    own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own_home.mkdir()
    (own_home / "config.toml").write_text('[tools]\nsets = ["kom", "bogus"]\n')
    assert main(["config", "get", "tools.sets"]) == 0
    assert capsys.readouterr().out == '["kom"]\n'
    main(["doctor"])
    assert "unknown value  config.toml  `bogus` is no value of `tools.sets`" in (
        capsys.readouterr().out
    )
    assert main(["config", "list"]) == 0
    assert "`bogus` in " in capsys.readouterr().err
