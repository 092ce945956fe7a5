"""Laws of the edits to other people's files: what is put in comes out again, and nothing else moves."""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from commonplace import agents
from commonplace.agents.opencode import plugin_source
from commonplace.agents.parts import INSTRUCTIONS, Scope
from commonplace.files import marked_section
from commonplace.files.marked_section import NotEditable
from commonplace.setup import jsonc, launch
from commonplace.setup.edits import (
    Edit,
    HooksEdit,
    InstructionsEdit,
    OwnFileEdit,
    ServerEdit,
    TomlServerEdit,
    edit_for,
)

if TYPE_CHECKING:
    from collections.abc import Callable
from pathlib import Path

OURS = launch.Programs("/opt/a b/bin/commonplace", "/opt/a b/bin/commonplace-hook")
SENTINEL = "a thing the user changes later"


def parts_of(name: str, programs: launch.Programs = OURS) -> dict[str, Edit]:
    agent = agents.find(name)
    parts = agent.parts(Scope(Path("/r"), False, {}))
    return {part.what: edit_for(agent, part, programs) for part in parts}


JSON_EDITS = {
    f"{agent.name} {what}": edit
    for agent in agents.all()
    for what, edit in parts_of(agent.name).items()
    if isinstance(edit, HooksEdit | ServerEdit)
}
EVENTS = ["Stop", "SessionStart", "stop", "Other"]


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A settings file as somebody may have left it: any layout, comments, trailing commas, our keys or not."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    space = st.sampled_from(["", " ", "\t", newline, newline + "  ", newline + "\t", " " + newline])
    comment = st.sampled_from(
        [
            "/* note */",
            "/**/",
            f"// note{newline}",
            f" // {SENTINEL}{newline}  ",
            f"/* a{newline} b */",
        ]
    )
    plain = draw(st.booleans())
    gap = space if plain else st.one_of(space, comment, st.tuples(space, comment).map("".join))
    scalar = st.sampled_from(
        [
            "1",
            "-2.5e3",
            "true",
            "null",
            '""',
            '"text, { [ // no comment"',
            '"\\u00fc \\" \\\\"',
            '"ü 文"',
            json.dumps(SENTINEL),
        ]
    )

    def joined(opens: str, inner: list[str], closes: str) -> str:
        text = opens + draw(gap)
        for number, one in enumerate(inner):
            text += one + draw(gap)
            if number < len(inner) - 1 or (not plain and draw(st.booleans())):
                text += "," + draw(gap)
        return text + closes

    def member(key: str, value: str) -> str:
        return json.dumps(key, ensure_ascii=False) + draw(gap) + ":" + draw(gap) + value

    def object_of(keys: list[str], value: Callable[[str], str]) -> str:
        return joined("{", [member(key, value(key)) for key in keys], "}")

    def anything(depth: int) -> str:
        match draw(st.integers(0, 2 if depth < 2 else 0)):
            case 1:
                return joined(
                    "[", [anything(depth + 1) for _ in range(draw(st.integers(0, 2)))], "]"
                )
            case 2:
                return object_of(
                    draw(st.lists(st.sampled_from(["a", "b c", "hooks"]), max_size=2)),
                    lambda _: anything(depth + 1),
                )
        return draw(scalar)

    def handlers(_: str) -> str:
        return joined(
            "[",
            [
                object_of(
                    ["hooks"],
                    lambda _: joined(
                        "[", [object_of(["type", "command"], lambda _: draw(scalar))], "]"
                    ),
                )
                for _ in range(draw(st.integers(0, 2)))
            ],
            "]",
        )

    def value(key: str) -> str:
        if key == "hooks":
            return object_of(draw(st.lists(st.sampled_from(EVENTS), max_size=3)), handlers)
        if key in ("mcpServers", "servers", "mcp"):
            return object_of(
                draw(st.lists(st.sampled_from(["github", "files"]), max_size=2)),
                lambda _: anything(1),
            )
        return anything(0)

    keys = st.sampled_from(["model", "hooks", "mcpServers", "servers", "mcp", "version", "env"])
    root = object_of(draw(st.lists(keys, max_size=4)), value)
    return draw(
        st.one_of(
            st.just(root),
            gap.map(lambda before: before + root),
            gap.map(lambda behind: root + behind),
        )
    )


blank = st.sampled_from([None, "", "\n", "\r\n\r\n", "  \n\t"])
texts = st.one_of(blank, documents())


def value_of(text: str | None) -> Any:
    root = jsonc.parse(text) if text else None
    return root.value if root else {}


def contains(more: Any, less: Any) -> bool:
    if isinstance(less, dict):
        return isinstance(more, dict) and all(
            key in more and contains(more[key], one) for key, one in less.items()
        )
    if isinstance(less, list):
        return isinstance(more, list) and len(more) >= len(less) and all(map(contains, more, less))
    return bool(more == less)


@given(st.sampled_from(sorted(JSON_EDITS)), texts)
def test_what_is_put_into_json_comes_out_again_and_the_rest_is_untouched(
    name: str, text: str | None
) -> None:
    edit = JSON_EDITS[name]

    once = edit.add(text)

    assert edit.remove(once) == text
    assert edit.add(once) == once
    assert contains(value_of(once), value_of(text))
    assert edit.presence(once) == "ours"
    assert edit.presence(text) == ""
    assert edit.remove(text) == text


@given(text=texts)
def test_two_agents_in_one_file_come_out_in_either_order(text: str | None) -> None:
    hooks, server = (parts_of("gemini")[what] for what in ("hooks", "MCP server"))

    both = server.add(hooks.add(text))

    assert hooks.remove(server.remove(both)) == text
    assert server.remove(hooks.remove(both)) == text


@given(st.sampled_from(sorted(JSON_EDITS)), documents())
def test_what_the_user_changes_in_between_stays_changed(name: str, text: str) -> None:
    assume(SENTINEL in text)
    edit = JSON_EDITS[name]
    put = edit.add(text)
    assert put is not None

    assert edit.remove(put.replace(SENTINEL, "something else")) == text.replace(
        SENTINEL, "something else"
    )


@given(st.sampled_from(sorted(JSON_EDITS)), texts)
def test_an_older_installation_is_brought_up_to_date_and_still_comes_out(
    name: str, text: str | None
) -> None:
    agent, _, what = name.partition(" ")
    older = parts_of(agent, launch.BARE)[what]
    edit = JSON_EDITS[name]

    once = edit.add(older.add(text))

    assert value_of(once) == value_of(edit.add(text))
    assert edit.remove(once) == text


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
    st.sampled_from([None, 0, 2, "\t"]),
)
def test_plain_json_is_read_as_python_reads_it(value: Any, indent: int | str | None) -> None:
    root = jsonc.parse(json.dumps(value, indent=indent))

    assert root is not None
    assert root.value == value


@given(st.text('{}[]",:01ab \n\\', max_size=30))
def test_nothing_that_is_not_json_is_taken_for_it(text: str) -> None:
    strict = re.sub(r",(?=[ \n]*[\]}])", "", text)
    try:
        root = jsonc.parse(text)
    except NotEditable:
        with pytest.raises(ValueError):
            json.loads(text)
        return
    if root and '"' not in text:
        assert json.loads(strict) == root.value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"hooks": {', "at its end"),
        ('{"a": 1}}', "after its end, in line 1"),
        ('{\n"a" 1}', "a colon is missing in line 2"),
        ('{"a": 1 "b": 2}', "a comma or `}` is missing"),
        ("{'a': 1}", "a key is missing"),
        ('{"a": "\n"}', "a text is damaged in line 1"),
        ("[1]", "does not hold an object"),
        ("// nothing yet\n", "comments alone"),
        ("[" * 200, "levels deep"),
        ('{"hooks": null}', "`hooks` is not an object"),
        ('{"hooks": {"SessionStart": {}}}', "`hooks.SessionStart` is not a list"),
    ],
)
def test_a_file_that_cannot_be_edited_says_why(text: str, reason: str) -> None:
    with pytest.raises(NotEditable, match=re.escape(reason)):
        JSON_EDITS["claude-code hooks"].add(text)


def test_a_group_that_somebody_else_joined_loses_our_handler_alone() -> None:
    edit = JSON_EDITS["claude-code hooks"]
    put = edit.add(None)
    assert put is not None
    theirs = {"type": "command", "command": "say done"}
    joined = jsonc.with_member(put, ("hooks", "Stop", 0, "hooks"), None, theirs)

    assert value_of(edit.remove(joined)) == {"hooks": {"Stop": [{"hooks": [theirs]}]}}


def test_an_entry_that_is_not_ours_is_left_as_it_is() -> None:
    text = '{"mcpServers": {"commonplace": {"command": "uvx", "args": ["commonplace", "mcp"]}}}'
    edit = JSON_EDITS["claude-code MCP server"]

    assert edit.presence(text) == "other"
    assert edit.add(text) == text
    assert edit.remove(text) == text


def test_what_the_user_added_to_our_entry_survives_an_update() -> None:
    edit = JSON_EDITS["claude-code MCP server"]
    text = '{"mcpServers": {"commonplace": {"command": "commonplace", "args": ["mcp", "--agent", "claude-code"], "env": {"A": "b"}}}}'

    entry = value_of(edit.add(text))["mcpServers"]["commonplace"]

    assert entry["env"] == {"A": "b"}
    assert entry["command"] == OURS.main


lines = st.lists(
    st.sampled_from(["# Rules", "Be kind.", "", "ü 文", "<!-- other -->", " \t", "\r"]), max_size=5
)
prose = st.one_of(
    st.none(),
    st.tuples(lines, st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "\n", "\r\n"])).map(
        lambda one: one[1].join(one[0]) + one[2]
    ),
)


@given(
    prose,
    st.permutations(["codex", "cursor", "opencode"]),
    st.permutations(["codex", "cursor", "opencode"]),
)
def test_a_section_that_agents_share_goes_with_the_last_of_them(
    text: str | None, came: list[str], went: list[str]
) -> None:
    now = text
    for agent in came:
        now = InstructionsEdit(agent, INSTRUCTIONS).add(now)
        assert InstructionsEdit(agent, INSTRUCTIONS).add(now) == now
    for agent in went:
        assert now is not None
        assert now.count("commonplace:start") == 1
        now = InstructionsEdit(agent, INSTRUCTIONS).remove(now)

    assert now == text


@given(prose)
def test_an_older_text_of_ours_is_replaced_in_place(text: str | None) -> None:
    before = InstructionsEdit("codex", "older words").add(text)

    assert InstructionsEdit("codex", INSTRUCTIONS).add(before) == InstructionsEdit(
        "codex", INSTRUCTIONS
    ).add(text)


@pytest.mark.parametrize(
    "text", ["<!-- commonplace:start -->\nx\n", "x\n<!-- commonplace:end (codex) -->\n"]
)
def test_half_a_section_is_left_alone(text: str) -> None:
    with pytest.raises(NotEditable, match="mark our section"):
        InstructionsEdit("codex", INSTRUCTIONS).add(text)


tables = st.lists(
    st.sampled_from(
        [
            "# a comment\n",
            "\n",
            "[a]\nb = 1 # why\n",
            "[[items]]\nname = 'x'\n",
            '[mcp_servers.github]\ncommand = "gh"\nargs = []\n',
            "inline = { x = 1, y = [1, 2] }\n",
            'text = """\n[mcp_servers]\n"""\n',
        ]
    ),
    max_size=5,
    unique=True,
).map(lambda found: "".join(sorted(found, key=lambda one: "[" in one[:1])))
toml_texts = st.one_of(
    st.none(),
    tables,
    tables.map(lambda text: text.removesuffix("\n")),
    tables.map(lambda text: text.replace("\n", "\r\n")),
)


@given(toml_texts)
def test_what_is_put_into_toml_comes_out_again(text: str | None) -> None:
    edit = parts_of("codex")["MCP server"]

    once = edit.add(text)

    assert once is not None
    assert edit.remove(once) == text
    assert edit.add(once) == once
    assert contains(tomllib.loads(once), tomllib.loads(text or ""))
    assert tomllib.loads(once)["mcp_servers"]["commonplace"] == {
        "command": OURS.main,
        "args": ["mcp", "--agent", "codex"],
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [("a = [", "not TOML"), ('mcp_servers = { github = { command = "gh" } }\n', "inline table")],
)
def test_toml_that_cannot_be_edited_says_why(text: str, reason: str) -> None:
    with pytest.raises(NotEditable, match=reason):
        parts_of("codex")["MCP server"].add(text)


def test_a_server_in_toml_that_is_not_ours_is_left_as_it_is() -> None:
    text = '[mcp_servers.commonplace]\ncommand = "uvx"\n'
    edit = parts_of("codex")["MCP server"]

    assert isinstance(edit, TomlServerEdit)
    assert (edit.presence(text), edit.add(text), edit.remove(text)) == ("other", text, text)


def test_a_whole_file_is_ours_by_its_first_line_only() -> None:
    edit = OwnFileEdit(plugin_source(OURS.hook))

    assert edit.remove(edit.add(None)) is None
    assert edit.add(plugin_source("older")) == edit.content
    assert edit.remove("export const Mine = 1\n") == "export const Mine = 1\n"
    with pytest.raises(NotEditable):
        edit.add("export const Mine = 1\n")


@pytest.mark.parametrize(
    "program",
    [
        "commonplace-hook",
        "/opt/a b/it's/commonplace-hook",
        r"C:\Program Files\x\commonplace-hook.exe",
    ],
)
@pytest.mark.parametrize("ensure", [False, True])
def test_our_line_is_recognised_wherever_we_are_installed(program: str, ensure: bool) -> None:
    arguments = launch.hook_arguments("codex", ensure=ensure)
    for windows in (False, True):
        for powershell in (False, True):
            line = launch.shell_line(program, arguments, powershell=powershell, windows=windows)
            assert launch.is_hook({"command": line}, "codex")
    assert launch.is_hook({"command": program, "args": arguments}, "codex")


@pytest.mark.parametrize(
    "handler",
    [
        {"command": "commonplace-hook cursor"},
        {"command": "commonplace-hook codex check-completion"},
        {"command": "not-commonplace-hook codex"},
        {"command": "commonplace-hook", "args": ["codex", "more"]},
        {"command": "echo commonplace-hook codex >> log"},
        {"url": "http://127.0.0.1/commonplace-hook codex"},
        "commonplace-hook codex",
    ],
)
def test_what_only_looks_like_our_line_is_not_ours(handler: Any) -> None:
    assert not launch.is_hook(handler, "codex")


def test_marks_name_their_agents_in_order() -> None:
    assert marked_section.MARKDOWN.end({"b", "a"}) == "<!-- commonplace:end (a, b) -->"
