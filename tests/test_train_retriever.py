"""Pairs for our retriever: whole, from free sources, each once, and none of what is measured with."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.train_retriever.archives import File
from tools.train_retriever.clean import (
    balanced,
    development,
    for_figures,
    grams,
    is_held_out,
    merge,
    unique,
)
from tools.train_retriever.code import code_pairs
from tools.train_retriever.diagnostics import diagnostic_pairs
from tools.train_retriever.documents import document_pairs
from tools.train_retriever.manpages import manual_pairs
from tools.train_retriever.pair import (
    KINDS,
    POSITIVE_MAX,
    QUERY_MAX,
    Pair,
    pair,
    read_pairs,
    write_pairs,
)
from tools.train_retriever.sections import sections
from tools.train_retriever.sources import is_permissive, read_candidates, read_table
from tools.train_retriever.talk import talk_pairs
from tools.train_retriever.words import as_question, first_sentence, in_other_words
from tools.train_retriever.written import is_held_out as is_group_held_out
from tools.train_retriever.written import read_groups

np = pytest.importorskip("numpy")

from tools.train_retriever.batches import batches, group_batches, of_groups  # noqa: E402
from tools.train_retriever.evaluate import difference  # noqa: E402
from tools.train_retriever.measure import gains, ranks  # noqa: E402
from tools.train_retriever.neighbours import bm25_neighbours  # noqa: E402
from tools.train_retriever.packed import Packed  # noqa: E402

WORDS = st.lists(
    st.sampled_from(["red", "green", "blue", "one", "two", "three", "four", "cat", "dog", "bird"]),
    max_size=30,
)
TEXTS = WORDS.map(" ".join)
PAIRS = st.lists(
    st.builds(
        Pair, st.sampled_from(KINDS), TEXTS, TEXTS, st.sampled_from(["pypi:a", "npm:b", "deb:tmux"])
    ),
    max_size=30,
)


def chance() -> random.Random:
    return random.Random(1)


# --- Sources


def test_every_source_is_free_and_has_a_checksum() -> None:
    by_hand = {
        package: licence for registry, package, licence in read_candidates() if registry == "deb"
    }
    for source in read_table():
        assert len(source.sha256) == 64
        assert is_permissive(source.licence) or by_hand.get(source.package) == source.licence, (
            source
        )


@pytest.mark.parametrize(
    "licence",
    [
        "GPL-3.0",
        "LGPL-2.1-or-later",
        "MPL-2.0 AND MIT",
        "CC-BY-NC-4.0",
        "Apache-2.0 OR GPL-2.0",
        "",
        "Proprietary",
    ],
)
def test_other_licences_are_not_taken(licence: str) -> None:
    assert not is_permissive(licence)


@pytest.mark.parametrize(
    "licence",
    ["MIT", "BSD License", "Apache-2.0", "ISC", "PSF-2.0", "PostgreSQL", "0BSD", "CC0-1.0"],
)
def test_permissive_licences_are_taken(licence: str) -> None:
    assert is_permissive(licence)


# --- Pairs


@given(st.text(max_size=800), st.text(max_size=2_000))
def test_a_pair_keeps_to_its_lengths_and_can_be_written(query: str, positive: str) -> None:
    found = pair("error", query, positive, "pypi:a")

    if found:
        assert len(found.query) <= QUERY_MAX
        assert len(found.positive) <= POSITIVE_MAX
        assert found.query != found.positive
        json.dumps(found).encode("utf-8")


@given(PAIRS)
def test_no_pair_comes_twice_and_nothing_measured_comes_at_all(pairs: list[Pair]) -> None:
    measured = set(grams("one two three four cat dog bird red green"))
    kept = [one for one, _key in unique(pairs, measured)]

    assert [one for one, _key in unique(kept, measured)] == kept
    assert not any(measured & {*grams(one.query), *grams(one.positive)} for one in kept)


@given(PAIRS, st.integers(1, 5))
def test_kinds_are_in_balance(pairs: list[Pair], of_kind: int) -> None:
    kept = balanced(pairs, of_kind)

    for kind in KINDS:
        there = sum(one.kind == kind for one in pairs)
        assert sum(one.kind == kind for one in kept) == min(there, of_kind)


@given(PAIRS)
def test_pairs_that_steer_a_run_give_no_figures(pairs: list[Pair]) -> None:
    assert not {*development(pairs)} & {*for_figures(pairs)}


def test_held_out_sources_are_never_trained_on(tmp_path: Path) -> None:
    folder = tmp_path / "pairs"
    folder.mkdir()
    for source in ("deb:tmux", "pypi:requests", "pypi:flask"):
        texts = [
            f"{source} answer {n} " + " ".join(f"w{source}{n}{k}" for k in range(20))
            for n in range(9)
        ]
        write_pairs(
            [
                Pair(KINDS[n], f"question {n} to {source}", text, source)
                for n, text in enumerate(texts)
            ],
            folder / f"{source.replace(':', '+')}.jsonl",
        )
    merge(folder, None, tmp_path / "train.jsonl", tmp_path / "held.jsonl")

    assert {one.source for one in read_pairs(tmp_path / "held.jsonl")} >= {"deb:tmux"}
    assert not any(is_held_out(one.source) for one in read_pairs(tmp_path / "train.jsonl"))


# --- Where they come from


def test_sections_know_the_headings_above_them() -> None:
    markdown = "# Guide\nintro text\n## Install\n```\n# no heading\n```\ndo it\n"
    rst = "Guide\n=====\n\nintro text\n\nInstall\n-------\n\ndo it\n"
    html = "<html><body><h1>Guide</h1><p>intro text</p><h2>Install</h2><p>do it</p></body></html>"

    for path, text in (("a.md", markdown), ("a.rst", rst), ("a.html", html)):
        found = sections(path, text)
        assert [one.headings for one in found] == [("Guide",), ("Guide", "Install")], path
        assert found[1].body.endswith("do it")


def test_a_function_is_found_by_what_it_does_and_by_its_error() -> None:
    code = '''
def divide(parts, count):
    """Share the parts among all who are there. The rest is thrown away."""
    if not count:
        raise ValueError(f"cannot divide {parts} among nobody")
    return [parts // count for _number in range(count)]
'''
    functions: dict[str, str] = {}
    found = [*code_pairs([File("a.py", code)], "pypi:a", "a", chance(), functions)]

    assert {one.kind for one in found} & {"function", "docstring"}
    assert any(one.kind == "error" and one.query.endswith("among nobody") for one in found)
    assert "divide" in functions


def test_options_of_a_manual_page_are_found_by_what_they_do() -> None:
    page = ".SH NAME\nbake \\- make bread\n.SH OPTIONS\n.TP\n.B \\-\\-hot\nHeat the oven before the dough is put in. The door stays shut all the time, so that no warmth is lost.\n"
    found = [*manual_pairs([File("usr/share/man/man1/bake.1", page)], "deb:bake", chance())]

    assert any("--hot" in one.positive or "--hot" in one.query for one in found)


def test_a_rule_is_found_by_its_message() -> None:
    page = "# no-mud\n\nShoes with mud on them leave marks on the floor, which others have to clean.\n\n## Options\n\nThere is none. Take off the shoes before you come in.\n"
    rule = 'module.exports = { meta: { docs: { description: "disallow mud on shoes" }, messages: {\n  found: "Unexpected mud on {{shoe}}."\n } } }\n'
    files = [File("p/docs/rules/no-mud.md", page), File("p/lib/rules/no-mud.js", rule)]
    found = [*diagnostic_pairs(files, "npm:p", chance())]

    assert any(
        "Unexpected mud on" in one.query and "Take off the shoes" in one.positive for one in found
    )


def test_documents_and_talk_give_pairs_of_their_kinds() -> None:
    paragraphs = [
        f"Somebody has to water the {plant} each week, or they dry out. It takes a can or two of water."
        for plant in ("ferns", "roses", "herbs", "beans")
    ]
    text = (
        "# Garden\n\n"
        + "\n\n".join(paragraphs)
        + "\n\n## Why do leaves fall?\n\nTrees drop their leaves to save water through the cold months of a long winter.\n"
    )
    files = [File("a/guide.md", text)]

    assert any(one.kind == "question" for one in document_pairs(files, "pypi:a", "a", chance(), {}))
    assert {one.kind for one in talk_pairs(files, "pypi:a", "a", chance())} == {"talk"}


@given(st.text(max_size=200))
def test_a_first_sentence_and_the_rest_are_the_text(text: str) -> None:
    first, rest = first_sentence(text)

    assert "".join((first + rest).split()) == "".join(text.split())


@given(TEXTS, st.integers())
def test_other_words_are_the_same_for_the_same_chance(text: str, seed: int) -> None:
    assert in_other_words(text, random.Random(seed)) == in_other_words(text, random.Random(seed))


def test_a_heading_becomes_a_question() -> None:
    assert "install bread" in as_question("Installing bread", "", chance()).replace(
        "set up", "install"
    ).replace("deploy", "install")


# --- Training


@given(st.lists(st.lists(st.integers(1, 50), min_size=3, max_size=9), min_size=2, max_size=20))
def test_no_pair_is_its_own_neighbour(texts: list[list[int]]) -> None:
    pieces = [np.array(text, np.uint16) for text in texts]
    found = bm25_neighbours(pieces, pieces)

    assert all(number not in row for number, row in enumerate(found))


@given(st.integers(2, 200), st.integers(2, 16), st.integers(0, 9))
def test_a_pair_is_in_one_batch_at_most(count: int, size: int, seed: int) -> None:
    pieces = [np.ones(1 + number % 7, np.uint16) for number in range(count)]
    neighbours = np.random.default_rng(seed).integers(-1, count, (count, 4)).astype(np.int32)
    seen = [
        row
        for rows in batches(Packed(pieces, pieces, [], [], neighbours), size, seed)
        for row in rows
    ]

    assert len(seen) == len(set(seen))
    assert len(seen) >= count - size * 2


@given(st.integers(1, 30), st.integers(0, 9))
def test_a_vector_that_is_its_own_answer_is_found_first(count: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(count, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)

    assert gains(ranks(vectors, vectors)).tolist() == [1.0] * count


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50))
def test_a_model_does_not_differ_from_itself(values: list[float]) -> None:
    found = np.array(values)

    assert difference(found, found) == (0, 0, 0)


# --- Written pairs


def written_talk(folder: Path) -> None:
    session = {
        "group": "Ada and Bo",
        "date": "2024-05-03",
        "turns": [
            ["Ada", "I moved to Lund."],
            ["Bo", "When?"],
            ["Ada", "In May."],
            ["Bo", "Nice."],
        ],
        "questions": [{"ask": "where does she live now", "turn": 0}],
    }
    (folder / "talk-friends.jsonl").write_text(json.dumps(session) + "\n", "utf-8")


def test_a_turn_is_found_alone_with_its_date_and_beside_another(tmp_path: Path) -> None:
    written_talk(tmp_path)
    groups = read_groups({}, tmp_path)

    assert [group.pairs[0][1] for group in groups] == [
        "Ada: I moved to Lund.",
        "[2024-05-03] Ada: I moved to Lund.",
        "Ada: I moved to Lund.\nBo: When?",
    ]
    assert all(text not in group.others for group in groups for _ask, text in group.pairs)


def test_all_sessions_of_the_same_people_are_held_out_or_none(tmp_path: Path) -> None:
    written_talk(tmp_path)

    assert len({is_group_held_out(group.name) for group in read_groups({}, tmp_path)}) == 1


def test_the_passage_with_the_quote_answers_a_question_about_a_note(tmp_path: Path) -> None:
    long = " ".join(f"word{number}" for number in range(400))
    note = f"# Slow start\n\n{long}\n\n## Fix\n\nRaise the heap to two gigabytes."
    row = {"note": note, "ask": [{"ask": "how much memory", "quote": "Raise the heap to two"}]}
    (tmp_path / "notes-a.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    (group,) = read_groups({}, tmp_path)
    ((_ask, answer),) = group.pairs

    assert "two gigabytes" in answer
    assert group.others
    assert answer not in group.others


def test_texts_without_a_question_are_negatives_only() -> None:
    asked = [np.array(ids, np.uint16) for ids in ([1, 7, 2], [1, 2], [1, 8, 2], [1, 7, 2])]
    told = [np.array(ids, np.uint16) for ids in ([1, 30, 2], [1, 31, 2], [1, 32, 2], [1, 33, 2])]
    written = Packed(asked, told, ["memory"] * 4, ["a"] * 4, np.zeros((4, 0), np.int32))
    batch = of_groups(written, [0, 1, 2, 3], 16)

    assert len(batch.queries) == 3
    assert [int(text[1]) for text in batch.answers] == [30, 32, 33, 31]
    # Rows 0 and 3 ask the same: the answer of one is no negative of the other.
    assert batch.same().tolist() == [
        [False, False, True, False],
        [False, False, False, False],
        [True, False, False, False],
    ]


def test_a_group_is_never_divided() -> None:
    pieces = [np.ones(3, np.uint16)] * 6
    written = Packed(pieces, pieces, ["talk"] * 6, list("aabbcc"), np.zeros((6, 0), np.int32))
    found = group_batches(written, 3, 0)

    for _ in range(5):
        sources = [written.sources[row] for row in next(found)]
        assert all(sources.count(source) % 2 == 0 for source in set(sources))


def test_a_batch_has_groups_of_several_kinds() -> None:
    pieces = [np.ones(3, np.uint16)] * 6
    kinds = ["talk", "talk", "talk", "talk", "notes", "notes"]
    written = Packed(pieces, pieces, kinds, list("aabbcc"), np.zeros((6, 0), np.int32))

    assert {written.kinds[row] for row in next(group_batches(written, 4, 0))} == {"talk", "notes"}
