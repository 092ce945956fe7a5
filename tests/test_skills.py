"""Skills: what is checked is what the reference validator checks, and what is exported passes it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from skills_ref.parser import parse_frontmatter
from skills_ref.validator import validate, validate_metadata

from commonplace import inbox, skills
from commonplace.errors import FolderRefused, SkillRefused
from commonplace.index.document import SKILL_PLACEHOLDERS
from commonplace.maintenance import runner
from commonplace.memory import Memory
from commonplace.records import make
from commonplace.sessions.intents import intents
from commonplace.skills.export import DIGEST
from commonplace.skills.format import SECTIONS, describe, left_out_fields, valid_name, valid_text
from commonplace.skills.proposals import EPISODES_MIN, sequences, skill_text
from commonplace.skills.wording import describe_step, shared_words
from conftest import make_repository

if TYPE_CHECKING:
    from collections.abc import Callable

    from commonplace.records import Record

    Run = Callable[..., subprocess.CompletedProcess[str]]

LOKI = """# Skill: API Endpoint Implementation

## Prerequisites
- OpenAPI spec exists at .loki/specs/openapi.yaml
- Database schema defined

## Steps
1. Read endpoint spec from openapi.yaml

## Common Errors & Fixes
- Missing return type: Add `: void` to handler

## Exit Criteria
- All contract tests pass
"""
# As the package calls it; `make venv` copies it to `skills-ref`, as its guide calls it.
VALIDATOR = Path(sys.executable).with_name("agentskills")
BODY = "\n".join(f"## {section}\n- x\n" for section in SECTIONS)
any_text = st.text(st.characters(codec="utf-8"), max_size=40)
near_names = st.text("ab0-_ A.é", max_size=8) | st.from_regex(r"[a-z0-9-]{1,70}", fullmatch=True)
# Lines that a person or a program could write into front matter.
front_lines = st.lists(
    st.builds("{}{}: {}".format, st.sampled_from(["", "  "]), st.sampled_from(["name", "description", "metadata", "license", "compatibility", "x", '"a b"']),
              st.text("ab: #'\"[]{}-|>&*!%@`\\,?~=<\t", max_size=12) | any_text.filter(str.isprintable))
    | st.sampled_from(["description: fine", "name: ab", "metadata:", "# a comment", "- a", "---", "", "..."]),
    max_size=6,
)  # fmt: skip


def refuses(folder: str, text: str) -> bool:
    return any(one.is_error for one in skills.check(folder, text))


# --- The format -----------------------------------------------------------------------------------


@given(near_names)
def test_every_name_that_the_validator_refuses_is_refused(name: str) -> None:
    metadata = {"name": name, "description": "x"}
    is_valid = not validate_metadata(metadata, Path(name)) and name == name.strip()

    # The validator also takes letters of other alphabets, which the format does not have.
    assert (not skills.why_no_name(name)) == (is_valid and name.isascii())


@given(front_lines, st.sampled_from(["ab", "other"]))
def test_what_passes_our_check_passes_the_validator(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], folder: str
) -> None:
    text = "\n".join(["---", *lines, "---", "", BODY])
    if refuses(folder, text):
        return
    fields, _body = parse_frontmatter(text)

    assert validate_metadata(fields, Path(folder)) == []


@given(any_text, st.one_of(any_text, front_lines.map("\n".join)), any_text)
def test_whatever_is_exported_is_valid(folder: str, front: str, body: str) -> None:
    for text in (body, f"---\n{front}\n---\n{body}", front):
        valid = valid_text(folder, text, {DIGEST: "ab"})
        fields, _body = parse_frontmatter(valid)

        assert validate_metadata(fields, Path(valid_name(folder))) == []
        assert not refuses(valid_name(folder), valid)
        # A second export says the same.
        assert valid_text(valid_name(folder), valid, {DIGEST: "ab"}) == valid


@given(any_text)
def test_a_description_comes_back_as_it_was_given(description: str) -> None:
    text = skills.template("a", description)
    expected = describe(text)[1]

    assert parse_frontmatter(text)[0]["description"] == expected
    if description.isascii() and description.isprintable() and description.strip():
        assert expected == " ".join(description.split()).replace("---", "—").replace("—-", "—")


@pytest.mark.parametrize(
    ("front", "reason"),
    [
        ("name: a\ndescription: x\nwhen_to_use: y", "`when_to_use`"),
        ("name: A\ndescription: x", "only a-z"),
        ("name: b\ndescription: x", "its folder"),
        ("name: a", "no `description`"),
        ("description: x", "no `name`"),
        ("name: a\ndescription: use it: always", "needs quotes"),
        ("name: a\nname: a\ndescription: x", "twice"),
        ("name: a\ndescription: [x, y]", "quotes"),
        ("name: a\ndescription: x\nmetadata: y", "metadata"),
        (f"name: a\ndescription: {'x' * 1025}", "1,025"),
        (f"name: a\ndescription: x\ncompatibility: {'x' * 501}", "compatibility"),
        ("name: a\ndescription: a --- b", "---"),
    ],
)
def test_check_says_what_is_wrong(front: str, reason: str) -> None:
    found = [one.text for one in skills.check("a", f"---\n{front}\n---\n{BODY}") if one.is_error]

    assert any(reason in text for text in found), found


def test_check_advises_the_sections_of_a_skill() -> None:
    found = skills.check("a", "---\nname: a\ndescription: x\n---\n## Steps\n1. x\n")

    assert [one.is_error for one in found] == [False] * 3
    assert refuses("a", LOKI)
    (unfilled,) = skills.check("a", skills.template("a", "x"))
    assert not unfilled.is_error


def test_a_plain_text_is_described_by_its_title_and_first_lines() -> None:
    title, description = describe(LOKI)

    assert title == "API Endpoint Implementation"
    assert description.startswith(
        "API Endpoint Implementation. Prerequisites: OpenAPI spec exists at .loki/specs/openapi.yaml"
    )
    assert len(description) <= 300
    assert describe("---\ndescription: given\n---\n" + LOKI)[1] == "given"
    assert describe("") == ("", "")


# --- In homes -------------------------------------------------------------------------------------


def test_create_writes_once_redacted_and_only_into_the_folder(memory: Memory) -> None:
    path = skills.create(memory.home, "a", "# a\ntoken ghp_0123456789abcdefghijABCDEFGHIJ012345\n")

    assert path == memory.home.skill("a")
    assert "ghp_0123" not in path.read_text()
    with pytest.raises(SkillRefused, match="already"):
        skills.create(memory.home, "a", "other")
    skills.create(memory.home, "a", "other", overwrite=True)
    assert path.read_text() == "other"
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
    for name in ("", "..", "../a", "a/b", "A", "con", "a" * 65):
        with pytest.raises(SkillRefused):
            skills.create(memory.home, name, "x")
    for text in ("", "\x00", "x" * (300 << 10), "\ud800"):
        with pytest.raises(SkillRefused):
            skills.create(memory.home, "b", text)
    assert [one.name for one in memory.skills()] == ["a"]


@pytest.mark.skipif(os.name != "posix", reason="links")
def test_a_link_is_no_skill_and_is_not_written_through(memory: Memory, tmp_path: Path) -> None:
    skills.create(memory.home, "a", "x")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "SKILL.md").write_text("mine")
    (memory.home.skills_folder / "b").symlink_to(tmp_path / "elsewhere")

    assert [one.name for one in memory.skills()] == ["a"]
    with pytest.raises(SkillRefused, match="link"):
        skills.create(memory.home, "b", "x", overwrite=True)
    assert (tmp_path / "elsewhere" / "SKILL.md").read_text() == "mine"


def test_skills_are_found_by_keyword_and_by_recall(memory: Memory) -> None:
    skills.create(memory.home, "api-implementation", LOKI)
    skills.create(
        memory.home, "debugging", "# Skill: Debugging\n\nfind what a flaky test waits for"
    )

    assert memory.skills("flaky tests")[0].name == "debugging"
    assert [one.name for one in memory.skills("implement an API endpoint")] == [
        "api-implementation"
    ]
    assert memory.skills("payroll") == []
    assert "skill:debugging" in [hit.id for hit in memory.recall("why is this test flaky").hits]


# --- Export ---------------------------------------------------------------------------------------


def test_recall_shows_what_a_skill_is_for_and_its_lines(memory: Memory) -> None:
    about = 'How to: deploy the "shop" to fly'
    memory.create_skill("deploy-shop", skills.template("deploy-shop", about))
    answer = memory.recall("deploy the shop to fly")

    assert f"Skill: Deploy shop: {about} [skill:deploy-shop]" in answer.text
    assert "first step" not in answer.text
    assert not memory.recall("how to see that it worked, what fixes an error").hits

    text = skills.template("deploy-shop", about).replace(
        SKILL_PLACEHOLDERS[1], "1. Stop the workers\n2. Deploy the shop: `fly deploy`"
    )
    memory.create_skill("deploy-shop", text, overwrite=True)
    lines = memory.recall("deploy the shop to fly").text.split("\n")
    assert lines[2].endswith(f"Skill: Deploy shop: {about}")
    assert any(line.strip().startswith("2. Deploy the shop: `fly deploy`") for line in lines)
    brief = memory.before_task("deploy the shop to fly")
    assert f"] {about} [skill:deploy-shop]" in brief.text


def test_exported_skills_pass_the_reference_validator(memory: Memory, tmp_path: Path) -> None:
    memory.home.skills_folder.mkdir(parents=True)
    given = {
        "loki": LOKI,
        "Odd Name": 'just a line with: a colon, "quotes" and --- hyphens',
        "extras": "---\nname: extras\ndescription: >\n  folded\n  text\nwhen_to_use: always\nallowed-tools: [Bash, Read]\nmetadata:\n  a b: c\n---\nbody",
        "123": "---\nname: 123\ndescription: yes\n---\nbody",
        "empty-front": "---\n---\nbody",
    }  # fmt: skip
    for name, text in given.items():
        memory.home.skill(name).parent.mkdir()
        memory.home.skill(name).write_text(text)

    done = memory.export_skills(tmp_path / "out")

    assert sorted(one.name for one in done) == ["123", "empty-front", "extras", "loki", "odd-name"]
    for one in done:
        assert validate(one.path.parent) == []
        run = [str(VALIDATOR), "validate", str(one.path.parent)]
        assert subprocess.run(run, capture_output=True, check=False).returncode == 0
    assert left_out_fields(given["extras"]) == ["when_to_use"]
    assert "OpenAPI spec exists" in (tmp_path / "out" / "loki" / "SKILL.md").read_text()


@pytest.mark.parametrize("name", ["log", "skills", "new/folder"])
def test_skills_are_not_exported_into_a_home(memory: Memory, own_home: Path, name: str) -> None:
    before = sorted(path for path in own_home.rglob("*"))
    with pytest.raises(FolderRefused, match="in a home"):
        memory.export_skills(own_home / name, force=True)
    assert sorted(path for path in own_home.rglob("*")) == before


def test_an_export_replaces_only_what_nobody_changed(memory: Memory, tmp_path: Path) -> None:
    skills.create(memory.home, "a", skills.template("a", "first"))
    beside = memory.home.skill("a").parent / "scripts" / "run.sh"
    beside.parent.mkdir()
    beside.write_text("echo\n")
    out = tmp_path / "out"
    target = out / "a" / "SKILL.md"

    def results(*, force: bool = False) -> list[str]:
        return [one.result for one in memory.export_skills(out, force=force)]

    assert results() == ["written"]
    assert (out / "a" / "scripts" / "run.sh").read_text() == "echo\n"
    assert results() == ["unchanged"]
    skills.create(memory.home, "a", skills.template("a", "second"), overwrite=True)
    beside.unlink()
    assert results() == ["written"]
    assert "second" in target.read_text()
    assert not (out / "a" / "scripts" / "run.sh").exists()
    target.write_text(target.read_text() + "mine\n")
    assert results() == ["left"]
    assert target.read_text().endswith("mine\n")
    assert results(force=True) == ["written"]
    (out / "a" / "notes.md").write_text("mine")
    skills.create(memory.home, "a", skills.template("a", "third"), overwrite=True)
    assert results() == ["left"]


def test_skills_of_an_untrusted_home_are_marked_and_stay_there(
    tmp_path: Path, commonplace: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COMMONPLACE_HOME")
    repo = make_repository(tmp_path / "clone")
    (repo / ".commonplace" / "skills" / "evil").mkdir(parents=True)
    (repo / ".commonplace" / "skills" / "evil" / "SKILL.md").write_text(LOKI)

    (one,) = json.loads(commonplace("skill", "list", "--json", cwd=repo).stdout)
    assert one["trusted"] is False
    assert "not trusted" in commonplace("skill", "list", cwd=repo).stdout
    everything = commonplace("skill", "export", "--to", "out", cwd=repo)
    assert (everything.returncode, everything.stdout) == (0, "")
    assert "not exported" in everything.stderr
    assert commonplace("skill", "export", "evil", "--to", "out", cwd=repo).returncode == 46
    assert not (repo / "out").exists()
    made = commonplace("skill", "new", "mine", "--description", "x", "--json", cwd=repo)
    assert json.loads(made.stdout)["path"].startswith(str(tmp_path / ".commonplace"))


# --- The command ----------------------------------------------------------------------------------


def test_the_commands_as_a_user_types_them(
    commonplace: Run, tmp_path: Path, own_home: Path
) -> None:
    done = commonplace("skill", "new", "write-tests", "--description", "How to: write tests")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"Wrote {own_home / 'skills' / 'write-tests' / 'SKILL.md'}\n"
    assert commonplace("skill", "list").stdout == "write-tests  How to: write tests\n"
    assert "## Exit Criteria" in commonplace("skill", "show", "write-tests").stdout
    checked = commonplace("skill", "check").stdout
    assert "advice: it has lines that are still the template's" in checked
    assert "`1. The first step`" in checked
    exported = commonplace("skill", "export", "--to", ".agents/skills")
    assert exported.returncode == 0
    assert "left out the lines of the template" in exported.stderr
    assert validate(tmp_path / ".agents" / "skills" / "write-tests") == []
    text = (tmp_path / ".agents" / "skills" / "write-tests" / "SKILL.md").read_text()
    assert "## Steps" in text
    assert "first step" not in text
    path = own_home / "skills" / "write-tests" / "SKILL.md"
    filled = path.read_text()
    for line in SKILL_PLACEHOLDERS:
        filled = filled.replace(line, "- Filled in")
    path.write_text(filled)
    assert commonplace("skill", "check").stdout == "write-tests  ok\n"
    exported = commonplace("skill", "export", "--to", ".agents/skills")
    assert "template" not in exported.stderr

    done = commonplace("skill", "new", "api", "--from", "-", stdin=LOKI)
    assert done.returncode == 0, done.stderr
    assert "Read endpoint spec" in commonplace("skill", "show", "api").stdout
    (own_home / "skills" / "api" / "SKILL.md").write_text(LOKI)
    done = commonplace("skill", "check")
    assert done.returncode == 9
    assert "no front matter" in done.stdout
    assert "1 skill of 2 not valid: api" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (["new", "Bad", "--description", "x"], 46, "only a-z"),
        (["new", "a"], 2, "--description"),
        (["new", "a", "--description", "x" * 1025], 2, "1,025"),
        (["new", "a", "--from", "nowhere.md"], 2, "nowhere.md"),
        (["show", "a"], 47, "no skill `a`"),
        (["check", "a"], 47, "no skill `a`"),
        (["export"], 2, "--to"),
        (["export", "a", "--to", "out"], 47, "no skill `a`"),
    ],
)
def test_a_mistake_is_a_sentence_and_costs_nothing(
    words: list[str], code: int, reason: str, commonplace: Run, memory: Memory, tmp_path: Path
) -> None:
    memory.log(lesson="a home that is there")
    done = commonplace("skill", *words)

    assert done.returncode == code
    assert reason in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
    assert memory.skills() == []


# --- Proposals ------------------------------------------------------------------------------------


def episode(number: int, commands: list[str], outcome: str = "success", **more: Any) -> Record:
    actions = [
        {"t": at, "action": "run", "target": one, "result": "pass"}
        for at, one in enumerate(commands)
    ]
    fields = {"kind": "episode", "id": f"ep-{number}", "task_id": f"t-{number}", "timestamp": "2026-01-01T00:00:00Z", "outcome": outcome,
              "context": {"goal": f"release the app, part {number}", "constraints": ["No downtime", f"c{number}"]}, "action_log": actions,
              "errors_encountered": [{"type": "npm publish", "message": "E401 not logged in", "resolution": "npm login"}], **more}  # fmt: skip
    return make(fields, now=None, repo="app", agent_id="a")  # type: ignore[arg-type]


RELEASE = ["npm ci", "npm test", "npm version patch", "npm publish"]


def test_what_three_episodes_did_in_order_is_proposed() -> None:
    noise = [["ls", "git status"], ["make lint"], ["cat x", "docker ps"]]
    found = sequences((episode(n, [*noise[n], "cd app && " + RELEASE[0], "ls -la", *RELEASE[1:]]) for n in range(3)), intents)  # fmt: skip

    (one,) = found
    assert one.keys == ("npm install", "npm test", "npm version", "npm publish")
    assert [each.id for each in one.episodes] == ["ep-0", "ep-1", "ep-2"]
    text = skill_text(one, one.name)
    assert not skills.check(one.name, text)
    for word in (
        "`npm version patch`",
        "release the app",
        "npm publish: E401 not logged in (in 3 episodes): npm login",
        "# Skill: Release the app, part\n",
        "No downtime",
        "ep-1",
    ):
        assert word in text
    assert "c1" not in text


@pytest.mark.parametrize(
    "episodes",
    [
        [episode(n, RELEASE) for n in range(2)],
        [episode(n, RELEASE, "success" if n else "failure") for n in range(3)],
        [episode(n, RELEASE, "unknown") for n in range(3)],
        [episode(n, ["npm ci", "npm test", "npm ci", "npm test"]) for n in range(3)],
        [episode(n, ["ls", "cat a", "git status", "git diff", "pwd"]) for n in range(3)],
        [episode(n, RELEASE[n:] + RELEASE[:n]) for n in range(3)],
        [episode(n, [], action_log=[{"action": "run", "target": c, "result": "fail"} for c in RELEASE]) for n in range(3)],
        [episode(n, [], action_log=["x", {"action": 1}, None, {}]) for n in range(3)],
    ],
)  # fmt: skip
def test_less_than_that_is_not_proposed(episodes: list[Record]) -> None:
    assert sequences(episodes, intents) == []


def test_a_gap_in_a_long_session_is_no_step() -> None:
    looks = ["ls"] * 18
    cut: dict[str, Any] = {"meta": {"actions_left_out": 7}}
    assert not sequences(
        [episode(n, [*looks, *RELEASE[:2], "make a"], **cut) for n in range(3)], intents
    )
    assert sequences([episode(n, [*looks, *RELEASE[:2], "make a"]) for n in range(3)], intents)


def test_a_long_sequence_is_cut_into_skills_that_are_not_alike() -> None:
    long = [f"tool{number} go" for number in range(50)]
    found = sequences([episode(n, [*long, f"other{n} go"]) for n in range(3)], intents)

    assert len(found[0].keys) == 20
    assert all(len(set(one.keys) & set(found[0].keys)) < 17 for one in found[1:])


steps = st.lists(st.sampled_from(["a b", "c d", "e f", "g h", "i j"]), max_size=8)


@given(st.lists(steps, max_size=6))
def test_a_sequence_is_in_each_of_its_episodes_and_none_is_missed(rows: list[list[str]]) -> None:
    found = sequences((episode(n, row) for n, row in enumerate(rows)), intents)

    def runs(row: list[str], size: int) -> set[tuple[str, ...]]:
        short = [step for at, step in enumerate(row) if not at or row[at - 1] != step]
        return {tuple(short[at : at + size]) for at in range(len(short) - size + 1)}

    for one in found:
        inside = [n for n, row in enumerate(rows) if one.keys in runs(row, len(one.keys))]
        assert [each.id for each in one.episodes] == [f"ep-{n}" for n in inside]
        assert len(inside) >= EPISODES_MIN
        assert len(set(one.keys)) >= 3
    shared = {
        run
        for size in (3, 4, 5)
        for row in rows
        for run in runs(row, size)
        if len(set(run)) >= 3 and sum(run in runs(other, size) for other in rows) >= EPISODES_MIN
    }
    for run in shared:
        assert any(len(set(run) & set(one.keys)) / len({*run, *one.keys}) > 0.6 or set(run) <= set(one.keys) for one in found)  # fmt: skip
    if shared:
        assert len(found[0].keys) >= max(map(len, shared))


def deploy(number: int, branch: str, file: str, **more: Any) -> Record:
    actions = [
        {"action": "edit_file", "target": file},
        {"action": "run", "target": f"git add -A && git commit -m 'work; on {branch}'"},
        {"action": "run", "target": f"git push origin {branch}", "result": "fail"},
        {"action": "run", "target": "git pull --rebase"},
        {"action": "run", "target": f"git push origin {branch}"},
        *more.pop("more", []),
    ]
    errors = [{"type": "git push", "message": f"! [rejected] {branch} -> {branch} (fetch first)"}]
    return episode(number, [], action_log=actions, errors_encountered=errors, **more)


BRANCHES = [("fix/cart", "src/cart.txt"), ("feat/coupon", "coupon.txt"), ("docs/log", "log.txt")]


def test_a_proposed_skill_says_only_what_all_episodes_share() -> None:
    goals = ["Fix the cart", "Add a coupon", "Write the changelog"]
    last = [{"action": "run", "target": "fly deploy --app shop"}, {"action": "run", "target": "fly status"}]  # fmt: skip
    given = [
        deploy(n, *pair, more=last, context={"goal": goals[n]}) for n, pair in enumerate(BRANCHES)
    ]

    (one,) = sequences(given, intents)

    assert one.name == "fly-deploy-status"
    text = skill_text(one, one.name)
    assert not skills.check(one.name, text)
    lines = text.split("\n")
    for line in (
        "# Skill: fly deploy, status",
        "1. Edit a file `*.txt`, for example `src/cart.txt` or `coupon.txt`",
        "4. `git pull --rebase`",
        "5. `git push origin …`, for example `git push origin fix/cart` or `git push origin feat/coupon`",
        "6. `fly deploy --app shop`",
        "- git push: ! [rejected] fix/cart -> fix/cart (fetch first) (in 3 episodes): no fix is recorded",
        "- `fly status` succeeds, as in 3 episodes",
    ):  # fmt: skip
        assert line in lines


def test_what_all_work_has_in_common_is_no_skill() -> None:
    tests = [{"action": "run", "target": "npm test"}, {"action": "run", "target": "pytest -q"}]
    given = [deploy(n, *pair, more=tests) for n, pair in enumerate(BRANCHES)]

    assert sequences(given, intents) == []
    # Unless it is always the same file.
    same = [deploy(n, pair[0], "CHANGELOG.md") for n, pair in enumerate(BRANCHES)]
    assert len(sequences(same, intents)) == 1


commands = st.lists(st.sampled_from(["npm", "run", "a", "b", "--x", "ä"]), min_size=1, max_size=5)


@given(st.lists(commands.map(" ".join), min_size=1, max_size=4, unique=True))
def test_the_words_of_a_step_are_the_beginning_of_every_command(targets: list[str]) -> None:
    words = describe_step("key", targets)

    first, _comma, rest = words.partition(", for example ")
    common = first.strip("`").removesuffix("…").strip()
    assert bool(rest) == (len(targets) > 1)
    assert common == "key" or all(f"{one} ".startswith(f"{common} ") for one in targets)


@given(st.lists(st.text("ab .,", max_size=12), min_size=1, max_size=4))
def test_a_title_is_in_every_goal(goals: list[str]) -> None:
    title = shared_words(goals)
    for goal in goals:
        plain = [word.strip(".,") for word in goal.lower().split()]
        assert " ".join(word.strip(".,") for word in title.lower().split()) in " ".join(plain)


# --- Proposed in the inbox ------------------------------------------------------------------------


def log_release(memory: Memory, number: int, **more: Any) -> None:
    fields = episode(number, RELEASE, **more).fields
    memory.log(
        **{name: value for name, value in fields.items() if name not in ("repo", "agent_id")}
    )


def maintain(memory: Memory) -> dict[str, Any]:
    return runner.run(memory, ["skills"]).steps["skills"]


def test_maintenance_proposes_a_skill_once(memory: Memory) -> None:
    for number in range(2):
        log_release(memory, number)
    assert maintain(memory) == {"proposed": 0}
    log_release(memory, 2)
    assert runner.run(memory, ["skills"], dry_run=True).steps["skills"]["found"]
    assert memory.candidates() == []
    assert maintain(memory) == {"proposed": 1}
    (one,) = memory.candidates("skill")
    before = one.record["text"]
    assert maintain(memory) == {"proposed": 0}
    assert [each.record["text"] for each in memory.candidates()] == [before]
    # One more episode is more evidence, not another candidate.
    log_release(memory, 3)
    maintain(memory)
    (again,) = memory.candidates()
    assert again.id == one.id
    assert again.evidence == ["ep-0", "ep-1", "ep-2", "ep-3"]

    (written,) = memory.accept(one.id)
    name = written["id"].removeprefix("skill:")
    assert not skills.check(name, memory.skill(name).text)
    log_release(memory, 4)
    assert maintain(memory) == {"proposed": 0}
    assert memory.candidates() == []


def test_the_name_of_another_skill_is_not_taken(memory: Memory) -> None:
    memory.create_skill("release-the-app-part", "# Something else")
    for number in range(3):
        log_release(memory, number)
    maintain(memory)

    (one,) = memory.candidates()
    assert one.record["name"].startswith("release-the-app-part-")
    memory.accept(one.id)


def test_what_was_dropped_is_not_proposed_again(memory: Memory) -> None:
    for number in range(3):
        log_release(memory, number)
    maintain(memory)
    memory.drop(*(one.id for one in memory.candidates()))
    for number in range(3, 6):
        log_release(memory, number)

    assert maintain(memory) == {"proposed": 0}
    assert memory.candidates() == []


def test_an_edited_name_is_the_name_of_the_skill(memory: Memory) -> None:
    for number in range(3):
        log_release(memory, number)
    maintain(memory)
    (one,) = memory.candidates()
    inbox.edit(memory, one.id, fields={"name": "release"})

    memory.accept(one.id)

    assert [skill.name for skill in memory.skills()] == ["release"]
    assert not any(each.is_error for each in skills.check("release", memory.skill("release").text))
    # What was accepted does not come back, also when an episode has a step more.
    for number in range(3, 6):
        log_release(memory, number)
    assert maintain(memory) == {"proposed": 0}
    more = [{"action": "run", "target": one} for one in [*RELEASE, "npm deprecate x"]]
    for number in range(6, 9):
        log_release(memory, number, action_log=more)
    assert maintain(memory) == {"proposed": 0}


def test_an_edit_of_a_skill_prints_one_short_line(memory: Memory, commonplace: Run) -> None:
    for number in range(3):
        log_release(memory, number)
    maintain(memory)
    (one,) = memory.candidates()

    done = commonplace("inbox", "edit", one.id, "--field", "name=release")

    assert done.stdout.startswith(f"{one.id}  Writes the skill `release`,")
    assert len(done.stdout) < 250


def test_nothing_is_learned_from_a_home_that_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COMMONPLACE_HOME")
    repo = make_repository(tmp_path / "clone")
    (repo / ".commonplace" / "log").mkdir(parents=True)
    lines = "".join(json.dumps(episode(n, RELEASE).fields) + "\n" for n in range(3))
    (repo / ".commonplace" / "log" / "app.jsonl").write_text(lines)
    with Memory.open(cwd=repo) as memory:
        assert not memory.trusts(memory.home)
        assert maintain(memory) == {"proposed": 0}
