"""The commands about nodes: put, get, tree, graph, and what doctor says of links that lead nowhere."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.cli import main
from commonplace.graph.drawing import Drawing, DrawnLink, DrawnNode, to_dot, to_lines
from commonplace.memory import Memory
from fake_secrets import some

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]

RAII = {
    "id": "skill.cpp.raii",
    "type": "skill",
    "label": "RAII",
    "payload": {"definition": "A destructor releases what a constructor took."},
    "links": [{"to": "pattern.cpp.pimpl", "rel": "uses", "w": 0.6}],
    "children": {"intro": "skill.cpp.raii.intro"},
}
PIMPL = {"id": "pattern.cpp.pimpl", "type": "pattern", "label": "pImpl"}


@pytest.fixture
def put(commonplace: Run) -> Run:
    commonplace("node", "put", "-", stdin=json.dumps([RAII, PIMPL]))
    return commonplace


def test_nodes_are_put_in_any_form_and_read_back(commonplace: Run, tmp_path: Path) -> None:
    (tmp_path / "n.jsonl").write_text("\n".join(map(json.dumps, [RAII, PIMPL])), "utf-8")
    done = commonplace("node", "put", "n.jsonl")
    assert done.stdout == "created  skill.cpp.raii\ncreated  pattern.cpp.pimpl\n"
    for text in (json.dumps([RAII, PIMPL]), json.dumps({"nodes": [RAII, PIMPL]})):
        done = commonplace("node", "put", "-", "--merge", "--json", stdin=text)
        assert json.loads(done.stdout)["unchanged"] == [RAII["id"], PIMPL["id"]]
    (tmp_path / "bom.json").write_text(json.dumps(PIMPL), "utf-8-sig")
    assert commonplace("node", "put", "bom.json").stdout == "unchanged  pattern.cpp.pimpl\n"
    given = {"nodes": [{"id": RAII["id"], "type": "skill"}], "merge": True, "repo": "demo"}
    done = commonplace("node", "put", "-", stdin=json.dumps(given))
    assert done.stdout == "unchanged  skill.cpp.raii\n"
    done = commonplace("node", "put", "-", stdin=json.dumps({**PIMPL, "label": "Pimpl"}))
    assert done.stdout == "replaced  pattern.cpp.pimpl\n"
    found = json.loads(commonplace("node", "get", "skill.cpp", "--json").stdout)
    assert {name: found[name] for name in RAII} == RAII
    assert "A destructor releases" in commonplace("node", "get", "skill.cpp.raii").stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read"),
        ("{", "cannot be read"),
        ("3", "cannot be read"),
        ('{"nodes": 3}', "must be a list"),
        ('{"nodes": [], "merge": "yes"}', "must be true or false"),
        ('["a"]', "must be an object"),
        (json.dumps([RAII, {**PIMPL, "id": "note:x"}]), "belongs to files"),
        (json.dumps([RAII, {**PIMPL, "type": "lesson"}]), "not one of concept, skill"),
    ],
)
def test_a_mistake_is_a_sentence_and_writes_nothing(
    commonplace: Run, own_home: Path, text: str, said: str
) -> None:
    done = commonplace("node", "put", "-", stdin=text)
    assert done.returncode == 3
    assert said in done.stderr
    assert "hint: " in done.stderr
    assert "Traceback" not in done.stderr
    assert not (own_home / "log").exists()


def test_a_secret_given_as_an_id_is_not_repeated(commonplace: Run) -> None:
    token = "ghp_" + some(36)
    done = commonplace("node", "put", "-", stdin=json.dumps({**RAII, "id": token}))
    assert done.returncode == 3
    assert token not in done.stderr


def test_the_tree_is_nested_by_path(put: Run) -> None:
    assert put("node", "tree").stdout.splitlines() == [
        "pattern",
        "  cpp",
        "    pimpl  pImpl (pattern)",
        "skill",
        "  cpp",
        "    raii  RAII (skill)",
    ]
    assert put("node", "tree", "skill.cpp.raii").stdout == "skill.cpp.raii  RAII (skill)\n"
    found = json.loads(put("node", "tree", "skill", "--json").stdout)
    assert found["branches"]["cpp"]["branches"]["raii"]["node"]["label"] == "RAII"
    done = put("node", "tree", "skill.c")
    assert (done.returncode, done.stdout) == (4, "")


def test_the_graph_is_drawn_around_a_node_or_whole(put: Run) -> None:
    assert put("graph", "pattern.cpp.pimpl", "--depth", "2").stdout.splitlines() == [
        "pattern.cpp.pimpl  pImpl (pattern)",
        "└─ <- uses 0.6 skill.cpp.raii  RAII (skill)",
        "   └─ -> has_child skill.cpp.raii.intro  (no such node here)",
    ]
    assert put("graph").stdout.splitlines() == [
        "skill.cpp.raii  RAII (skill)",
        "├─ -> has_child skill.cpp.raii.intro  (no such node here)",
        "└─ -> uses 0.6 pattern.cpp.pimpl  pImpl (pattern)",
    ]
    found = json.loads(put("graph", "pattern.cpp.pimpl", "--json").stdout)
    assert found["links"] == [
        {"of": "skill.cpp.raii", "rel": "uses", "to": "pattern.cpp.pimpl", "w": 0.6}
    ]
    assert put("graph", "--dot", "--json").returncode == 2


def test_a_symmetric_link_is_drawn_once(put: Run) -> None:
    linked = [
        {"id": "concept.a", "type": "concept", "links": [{"to": "concept.b"}]},
        {"id": "concept.b", "type": "concept"},
    ]
    put("node", "put", "-", stdin=json.dumps(linked))
    assert put("graph").stdout.splitlines()[:2] == [
        "concept.a  a (concept)",
        "└─ -- related_to concept.b  b (concept)",
    ]


def test_doctor_lists_what_leads_nowhere_and_is_content(put: Run) -> None:
    done = put("doctor")
    assert done.returncode == 0
    assert "dangling link  skill.cpp.raii has_child skill.cpp.raii.intro" in done.stdout
    found = json.loads(put("doctor", "--json").stdout)["dangling"]
    assert found == [{"of": "skill.cpp.raii", "rel": "has_child", "to": "skill.cpp.raii.intro"}]
    intro = {"id": "skill.cpp.raii.intro", "type": "snippet", "label": "Intro"}
    put("node", "put", "-", stdin=json.dumps(intro))
    assert "dangling" not in put("doctor").stdout


def test_the_sources_of_what_was_learned_elsewhere_are_not_dangling(own_home: Path) -> None:
    with Memory.open(own_home, settings={"embedder.kind": "none"}) as memory:
        memory.log(kind="pattern", pattern="use npm ci", source_episodes=["ep-of-another-home"])
        lesson = memory.log(lesson="x", links=[{"to": "les-gone"}])
        assert [link.to for link in memory.dangling_links()] == ["les-gone"]
        assert memory.dangling_links()[0].of == lesson.id


def test_a_link_to_a_note_or_skill_leads_nowhere_without_its_file(
    own_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = ["note:../config.toml", "note:me/plan.md", "skill:../x", "skill:deploy"]
    with Memory.open(own_home, settings={"embedder.kind": "none"}) as memory:
        memory.log(lesson="x", links=[{"to": ident} for ident in ids])
        (own_home / "config.toml").touch()
        assert [link.to for link in memory.dangling_links()] == ids
        main(["doctor"])
        assert "skill:deploy: there is no such file" in " ".join(capsys.readouterr().out.split())
        for path in (memory.home.notes_folder / "me" / "plan.md", memory.home.skill("deploy")):
            path.parent.mkdir(parents=True)
            path.write_text("# It is here\n")
        assert [link.to for link in memory.dangling_links()] == [ids[0], ids[2]]


# --- Any text in a drawing ------------------------------------------------------------------------

texts = st.text(st.sampled_from('ab"\\ \n<>{}[];=|/*#%\u202e\u2028é🦉-.')) | st.text(max_size=8)
drawings = st.builds(
    lambda ids, ends, labels: Drawing(
        {
            ident: DrawnNode(ident, kind, label)
            for ident, (kind, label) in zip(ids, labels, strict=False)
        },
        [DrawnLink(ids[a % len(ids)], rel, ids[b % len(ids)], w) for a, rel, b, w in ends],
    ),
    st.lists(texts, min_size=4, max_size=4, unique=True),
    st.lists(
        st.tuples(
            st.integers(0, 3),
            texts | st.just("related_to"),
            st.integers(0, 3),
            st.floats(0, 1, allow_nan=False),
        ),
        max_size=5,
    ),
    st.lists(st.tuples(st.sampled_from(["", "concept"]), texts), min_size=4, max_size=4),
)
# The tokens of Graphviz' grammar, as far as a graph without HTML and ports uses them.
TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[A-Za-z_]\w*|->|[{}\[\];,=])', re.DOTALL)


def parse_dot(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Read a graph by the grammar of the language; return the nodes and the edges."""
    tokens: list[str] = []
    at = 0
    while text[at:].strip():
        match = TOKEN.match(text, at)
        assert match, text[at:]
        tokens.append(match.group(1))
        at = match.end()
    assert (tokens[:3], tokens[-1]) == (["digraph", "commonplace", "{"], "}")
    nodes, edges, statement = list[str](), list[tuple[str, str]](), list[str]()
    for token in tokens[3:-1]:
        if token != ";":
            statement.append(token)
            continue
        head = statement[: statement.index("[")] if "[" in statement else statement
        attributes = statement[len(head) :]
        if attributes:
            assert (attributes[0], attributes[-1]) == ("[", "]")
            for number, one in enumerate(attributes[1:-1]):
                assert (one == "=", one == ",") == (number % 4 == 1, number % 4 == 3)
        if "->" in head:
            assert (len(head), head[1]) == (3, "->")
            edges.append((head[0], head[2]))
        elif len(head) == 1 and head[0].startswith('"'):
            nodes.append(head[0])
        statement = []
    assert not statement
    return nodes, edges


@given(drawings)
def test_any_drawing_is_in_the_language_of_graphviz(drawing: Drawing) -> None:
    nodes, edges = parse_dot(to_dot(drawing))
    assert (len(nodes), len(edges)) == (len(drawing.nodes), len(drawing.links))
    assert {end for pair in edges for end in pair} <= set(nodes)


@given(drawings, st.integers(-1, 3))
def test_any_drawing_is_a_tree_that_ends(drawing: Drawing, start: int) -> None:
    ids = list(drawing.nodes)
    lines = list(to_lines(drawing._replace(start=ids[start] if start >= 0 else "")))
    assert all("\n" not in line for line in lines)
    assert len(lines) <= len(ids) + 2 * len(drawing.links)
