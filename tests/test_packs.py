"""Packs by the toolset `kom`: chosen records in one encrypted file, from confined places, imported whole or not at all."""

from __future__ import annotations

import io
import json
import os
import tarfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyrage
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import CommonplaceError, PackRefused, UsageError
from commonplace.memory import Memory
from commonplace.packs import container, keys, places, selection, signing, trusted, unsigned
from commonplace.packs.transfer import export_encrypted, import_encrypted
from commonplace.where.home import Home
from fake_secrets import some
from histories import append, lesson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PASSPHRASE = "correct horse battery staple"
IDENTITY = pyrage.x25519.Identity.generate()
RECIPIENT = str(IDENTITY.to_public())
KEYS = keys.Keys(lambda: PASSPHRASE, lambda: [IDENTITY])
STANZA = b"-> X25519 TEiF0ypqr+bpvcqXNyCVJpL7OuwPdVwPL7KQEbFDOCc\n" + b"A" * 43 + b"\n"


@contextmanager
def open_memory(home: Path, **settings: Any) -> Iterator[Memory]:
    """A memory whose packs are encrypted for a key: a passphrase takes seconds."""
    key = home.parent / "key.txt"
    key.write_text(f"# mine\n{IDENTITY}\n")
    given = {
        "embedder.kind": "none",
        "packs.recipients": [RECIPIENT],
        "packs.identity_file": str(key),
        **{name.replace("__", "."): value for name, value in settings.items()},
    }
    with Memory.open(home, settings=given, background=False) as memory:
        yield memory


def node(ident: str, **more: Any) -> dict[str, Any]:
    return {
        "id": ident,
        "kind": "concept",
        "label": ident,
        "payload": {"definition": ident},
        **more,
    }


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A home with some records to choose from."""
    home = tmp_path / "source"
    with open_memory(home) as memory:
        memory.append(
            [
                node("skill.cpp.raii", links=[{"to": "skill.cpp.hidden", "rel": "uses"}]),
                node("skill.rust.drop", tags=["CPP"]),
                node("skill.python.gil", tags=["python"]),
                node("skill.cpp.hidden", tags=["Private"]),
                {"kind": "lesson", "event_type": "error", "id": "les-a", "lesson": "a", "repo": "app"},
                {"kind": "lesson", "event_type": "error", "id": "les-b", "lesson": "b", "repo": "app"},
                {"kind": "lesson", "event_type": "error", "id": "les-old", "lesson": "old",
                 "timestamp": "2020-01-01T00:00:00Z"},
                {"kind": "ledger", "id": "led-other", "agent_id": "other", "active_task": {"goal": "x"}},
            ]
        )  # fmt: skip
        memory.link("les-a", "related_to", "les-b")
        memory.link("les-a", "related_to", "skill.python.gil")
        memory.forget("les-old")
    return home


def exported_ids(home: Path, chosen: str) -> set[str]:
    with open_memory(home) as memory:
        done = export_encrypted(memory, chosen, "packs/x.kpack")
    with container.opened(home / "packs" / "x.kpack", KEYS) as pack:
        nodes = list(pack.lines())
    assert done.manifest["counts"]["records"] == len(nodes)
    return {json.loads(line)["id"] for line in nodes if json.loads(line)["kind"] != "link"}


# --- Which records --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "ids"),
    [
        ("domain:cpp", {"skill.cpp.raii", "skill.rust.drop"}),
        ("domain:cpp,python", {"skill.cpp.raii", "skill.rust.drop", "skill.python.gil"}),
        ("tag:python", {"skill.python.gil"}),
        ("kind:lesson", {"les-a", "les-b"}),
        ("type:fact repo:app", {"les-a", "les-b"}),
        ("type:concept since:1d tag:cpp", {"skill.rust.drop"}),
        ("*", {"skill.cpp.raii", "skill.rust.drop", "skill.python.gil", "les-a", "les-b"}),
        ("", {"skill.cpp.raii", "skill.rust.drop", "skill.python.gil", "les-a", "les-b"}),
    ],
)
def test_a_selection_chooses(source: Path, chosen: str, ids: set[str]) -> None:
    assert exported_ids(source, chosen) == ids


def test_links_are_in_it_only_between_what_is_in_it(source: Path) -> None:
    with open_memory(source) as memory:
        found = selection.select(memory, selection.parse("kind:lesson"), selection.LeftOut())
        assert [record.fields["to"] for record in found if record.kind == "link"] == ["les-b"]
        (raii, *_) = selection.select(memory, selection.parse("domain:cpp"), selection.LeftOut())
    # The id of a private record is nobody's business either.
    assert raii.fields["links"] == []


def test_a_home_with_skills_and_notes_makes_a_pack_that_can_be_imported(
    source: Path, tmp_path: Path
) -> None:
    with open_memory(source) as memory:
        memory.create_skill(
            "write-tests", "---\nname: write-tests\ndescription: How we test\n---\nRun pytest.\n"
        )
        memory.notes().write("plan.md", "first the reader")
        done = export_encrypted(memory, "*", "x.kpack")
        with pytest.raises(PackRefused, match="1 that are left out"):
            export_encrypted(memory, "type:skill", "skills.kpack")
    into = tmp_path / "into"
    (into / "packs").mkdir(parents=True)
    (source / "packs/x.kpack").rename(into / "packs/x.kpack")

    with open_memory(into) as memory:
        imported = import_encrypted(memory, "x.kpack")

    assert done.left_out == {"private": 1, "of_other_agents": 1, "files": 2}
    assert imported.added == done.manifest["counts"]["records"]


@pytest.mark.parametrize(
    "wrong", ["cpp", "colour:red", "kind:", "kind:nothing", "type:nothing", "since:x"]
)
def test_a_selection_that_is_not_understood_is_an_error(source: Path, wrong: str) -> None:
    with open_memory(source) as memory, pytest.raises(CommonplaceError):
        export_encrypted(memory, wrong, "x.kpack")
    assert not (source / "packs").exists()


def test_secrets_that_somebody_wrote_by_hand_are_left_behind(tmp_path: Path) -> None:
    token = "ghp_" + some(36)
    append(Home(tmp_path / "home"), "app", lesson("les-a", f"the token is {token}"))
    with open_memory(tmp_path / "home") as memory:
        export_encrypted(memory, "*", "x.kpack")
    with container.opened(tmp_path / "home/packs/x.kpack", KEYS) as pack:
        plain = b"".join(pack.lines())
    assert token.encode() not in plain
    assert b"REDACTED" in plain.upper()


# --- Where ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "out",
    [
        "../x.kpack", "packs/../../x.kpack", "/etc/x.kpack", "~/x.kpack", "packs/.hidden.kpack", "x.txt",
        "packs/", "", ".kpack", "a:b.kpack", "a\\b.kpack", "packs/log/../../log/app.jsonl", "x\n.kpack",
        "link/x.kpack", "link.kpack",
    ],
)  # fmt: skip
def test_out_names_nothing_but_a_pack_in_a_folder_for_packs(
    source: Path, tmp_path: Path, out: str
) -> None:
    (source / "packs").mkdir()
    (source / "packs" / "link").symlink_to(tmp_path)
    (source / "packs" / "link.kpack").symlink_to(tmp_path / "target.kpack")
    before = sorted(tmp_path.rglob("*"))
    with open_memory(source) as memory:
        with pytest.raises(PackRefused):
            export_encrypted(memory, "*", out)
        with pytest.raises(PackRefused):
            import_encrypted(memory, out)
    without_index = [
        path
        for path in sorted(tmp_path.rglob("*"))
        if ".index" not in str(path) and ".state" not in str(path)
    ]
    assert [path for path in without_index if path not in before and path.name != "key.txt"] == []


@given(name=st.text(max_size=30))
def test_whatever_is_given_the_file_is_in_the_folder(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    home = Home(tmp_path_factory.getbasetemp() / "home")
    try:
        found = places.find(home, (), name)
    except PackRefused:
        return
    assert home.packs_folder in found.parents
    assert ".." not in found.parts


def test_folders_that_the_user_allowed_and_the_mode_of_the_file(
    source: Path, tmp_path: Path
) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "shared")
    with open_memory(source, packs__folders=[str(tmp_path / "link")]) as memory:
        done = export_encrypted(memory, "*", str(tmp_path / "link" / "sub" / "a.kpack"))
        assert import_encrypted(memory, str(tmp_path / "shared" / "sub" / "a.kpack")).added == 0
    path = tmp_path / "shared" / "sub" / "a.kpack"
    assert done.path == str(path)
    assert os.name != "posix" or path.stat().st_mode & 0o777 == 0o600


def test_only_a_pack_is_replaced(source: Path) -> None:
    (source / "packs").mkdir()
    (source / "packs" / "mine.kpack").write_text("not a pack")
    with open_memory(source) as memory:
        with pytest.raises(PackRefused, match="is a file that is no pack"):
            export_encrypted(memory, "*", "mine.kpack")
        export_encrypted(memory, "*", "other.kpack")
        export_encrypted(memory, "kind:lesson", "other.kpack")
    assert (source / "packs" / "mine.kpack").read_text() == "not a pack"


# --- Keys -----------------------------------------------------------------------------------------


def test_by_passphrase_from_the_environment_or_a_file(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_memory(source, packs__recipients=[]) as memory:
        with pytest.raises(UsageError, match="no key"):
            export_encrypted(memory, "*", "x.kpack")
        monkeypatch.setenv(keys.VARIABLE, PASSPHRASE)
        assert export_encrypted(memory, "*", "x.kpack").encrypted_for == "passphrase"
        monkeypatch.setenv(keys.VARIABLE, "another")
        with pytest.raises(PackRefused, match="the key is not the one"):
            import_encrypted(memory, "x.kpack")
        monkeypatch.delenv(keys.VARIABLE)
        with pytest.raises(UsageError, match="there is none"):
            import_encrypted(memory, "x.kpack")
    (tmp_path / "pass").write_text(f"{PASSPHRASE}\r\n# the rest is ignored\n")
    with open_memory(
        tmp_path / "other",
        packs__passphrase_file=str(tmp_path / "pass"),
        packs__folders=[str(source)],
    ) as other:
        assert import_encrypted(other, str(source / "packs" / "x.kpack")).added == 7


def test_by_keys_of_ssh(source: Path, tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption())
    public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH)
    (tmp_path / "id").write_bytes(private)
    with open_memory(source, packs__recipients=[public.decode(), RECIPIENT]) as memory:
        assert export_encrypted(memory, "*", "x.kpack").encrypted_for == "2 recipients"
        import_encrypted(memory, "x.kpack")
    with open_memory(source, packs__identity_file=str(tmp_path / "id")) as memory:
        import_encrypted(memory, "x.kpack")


@pytest.mark.parametrize(
    "settings",
    [
        {"packs__recipients": ["age1nonsense"]},
        {"packs__recipients": ["ssh-ed25519 AAAA"]},
        {"packs__recipients": [], "packs__passphrase_file": "/no/such/file"},
        {"packs__recipients": [], "packs__passphrase_file": os.devnull},
    ],
)
def test_a_key_that_is_none_is_one_sentence(source: Path, settings: dict[str, Any]) -> None:
    with open_memory(source, **settings) as memory, pytest.raises(UsageError):
        export_encrypted(memory, "*", "x.kpack")


@pytest.mark.parametrize("key", ["", "/no/such/file", "nonsense"])
def test_an_identity_that_is_none_is_one_sentence(source: Path, tmp_path: Path, key: str) -> None:
    (tmp_path / "nonsense").write_text("nonsense\n")
    file = str(tmp_path / key) if key == "nonsense" else key
    with open_memory(source, packs__identity_file=file) as memory:
        export_encrypted(memory, "*", "x.kpack")
        with pytest.raises(UsageError):
            import_encrypted(memory, "x.kpack")


# --- Importing ------------------------------------------------------------------------------------


def move(source: Path, target: Path) -> None:
    (target / "packs").mkdir(parents=True, exist_ok=True)
    (target / "packs" / "x.kpack").write_bytes((source / "packs" / "x.kpack").read_bytes())


def trust(memory: Memory, source: Path) -> None:
    """Trust the key that the packs of *source* are signed with."""
    trusted.trust(memory.home, signing.key_of(Home(source)).public, "", "2026-01-01T00:00:00Z")


def test_a_pack_of_an_unknown_signer_goes_to_quarantine(source: Path, tmp_path: Path) -> None:
    exported_ids(source, "*")
    move(source, tmp_path / "target")
    with open_memory(tmp_path / "target") as memory:
        done = import_encrypted(memory, "x.kpack")
        assert (done.place, done.added) == ("quarantined", 7)
        assert not memory.recall("what is skill.cpp.raii").hits
        (candidate,) = memory.candidates()
        assert candidate.kind == "pack"
        assert memory.accept(candidate.id)[0]["records"] == 7
        assert memory.get("skill.cpp.raii").meta["origin"] == "pack:x"


def test_a_pack_is_imported_once_and_says_where_it_came_from(source: Path, tmp_path: Path) -> None:
    exported_ids(source, "*")
    target = tmp_path / "target"
    move(source, target)
    with open_memory(target) as memory:
        memory.log(id="les-a", repo="app", lesson="my own words")
        trust(memory, source)

        first = import_encrypted(memory, "packs/x.kpack")
        second = import_encrypted(memory, "x.kpack")

        assert (first.added, first.kept, second.added) == (6, 1, 0)
        assert memory.get("les-a").fields["lesson"] == "my own words"
        assert memory.get("skill.cpp.raii").meta["origin"] == "pack:x"
        memory.forget("les-b")
        assert import_encrypted(memory, "x.kpack").added == 0
        assert first.manifest["name"] == "x"


def write_pack(
    home: Path,
    change: Callable[[dict[str, Any], list[bytes]], None] = lambda *_: None,
    more: dict[str, bytes] | None = None,
) -> None:
    """Write a pack of one record to *home*, as *change* has it."""
    lines = [b'{"id":"les-1","kind":"lesson","event_type":"error","lesson":"one"}']
    nodes = b"\n".join(lines)
    manifest = {
        "format": 1, "id": "x", "name": "x", "version": "1", "embedding_model": "", "created_at": "",
        "checksum": unsigned.checksum(nodes),
    }  # fmt: skip
    change(manifest, lines)
    write_archive(
        home,
        {
            "pack.json": json.dumps(manifest).encode(),
            "nodes.jsonl": b"\n".join(lines),
            **(more or {}),
        },
    )


def write_archive(home: Path, files: dict[str, bytes] | list[tarfile.TarInfo]) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name in files:
            member = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            content = b"" if isinstance(files, list) else files[member.name]
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    put(home, stream.getvalue())


def put(home: Path, plain: bytes) -> None:
    put_raw(home, pyrage.encrypt(plain, [IDENTITY.to_public()]))


def put_raw(home: Path, raw: bytes) -> None:
    (home / "packs").mkdir(parents=True, exist_ok=True)
    (home / "packs" / "x.kpack").write_bytes(raw)


def link(name: str, kind: bytes, to: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, to
    return member


def twice() -> list[tarfile.TarInfo]:
    return [tarfile.TarInfo("pack.json"), tarfile.TarInfo("pack.json")]


BAD: dict[str, tuple[Callable[[Path], None], str]] = {
    "path traversal": (lambda home: write_pack(home, more={"../../log/app.jsonl": b"x"}), "no file of a pack"),
    "another file": (lambda home: write_pack(home, more={"run.sh": b"x"}), "no file of a pack"),
    "symbolic link": (lambda home: write_archive(home, [link("pack.json", tarfile.SYMTYPE, "/etc/passwd")]), "not a plain file"),
    "hard link": (lambda home: write_archive(home, [link("pack.json", tarfile.LNKTYPE, "nodes.jsonl")]), "not a plain file"),
    "device": (lambda home: write_archive(home, [link("pack.json", tarfile.CHRTYPE, "")]), "not a plain file"),
    "the same name twice": (lambda home: write_archive(home, twice()), "twice"),
    "no manifest": (lambda home: write_archive(home, {"nodes.jsonl": b""}), "has no `pack.json`"),
    "no nodes": (lambda home: write_archive(home, {"pack.json": b'{"format":1}'}), "lacks"),
    "manifest is no JSON": (lambda home: write_archive(home, {"pack.json": b"{" * 100_000}), "does not describe"),
    "newer format": (lambda home: write_pack(home, lambda manifest, _lines: manifest.update(format=2)), "format 2"),
    "wrong checksum": (lambda home: write_pack(home, lambda _manifest, lines: lines.append(b"{}")), "checksum"),
    "no archive": (lambda home: put(home, b"plain text" * 100), "no valid archive"),
    "empty": (lambda home: put(home, b""), "no valid archive|has no"),
    "header of a sparse file": (lambda home: write_archive(home, [link("a", tarfile.GNUTYPE_SPARSE, "")]), "no valid archive|plain"),
    "not encrypted": (lambda home: put_raw(home, b"PK\x03\x04"), "is not a pack"),
    "too many recipients": (lambda home: put_raw(home, b"age-encryption.org/v1\n" + STANZA * 1000 + b"--- x\n"), "too many recipients"),
    "missing": (lambda home: None, "is not there"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_a_bad_pack_is_refused_in_a_sentence_and_changes_nothing(tmp_path: Path, what: str) -> None:
    make, reason = BAD[what]
    home = tmp_path / "home"
    home.mkdir()
    make(home)
    with open_memory(home) as memory, pytest.raises(PackRefused, match=reason):
        import_encrypted(memory, "x.kpack")
    assert not (home / "log").exists()


def with_line(line: bytes) -> Callable[[dict[str, Any], list[bytes]], None]:
    def change(manifest: dict[str, Any], lines: list[bytes]) -> None:
        lines.append(line)
        manifest["checksum"] = unsigned.checksum(b"\n".join(lines))

    return change


@pytest.mark.parametrize(
    "line",
    [
        b"no json",
        b"[]",
        b'{"kind":"lesson","event_type":"error"}',
        b'{"kind":"nothing"',
        b"\xff" * 20,
        b"[" * 10_000,
    ],
)
def test_one_record_that_is_not_valid_keeps_all_out(tmp_path: Path, line: bytes) -> None:
    home = tmp_path / "home"
    write_pack(home, with_line(line))
    with open_memory(home) as memory, pytest.raises(PackRefused, match="line 2"):
        import_encrypted(memory, "x.kpack")
    assert not (home / "log").exists()


def test_a_pack_judges_and_hides_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with open_memory(home) as memory:
        memory.log(id="les-mine", repo="app", lesson="mine")
        write_pack(home, with_line(b'{"id":"f","kind":"forget","of":"les-mine"}'))
        assert import_encrypted(memory, "x.kpack").skipped == 1
        write_pack(
            home,
            with_line(
                b'{"id":"n","kind":"fact","label":"n","links":[{"to":"les-mine","rel":"supersedes"}]}'
            ),
        )
        assert import_encrypted(memory, "x.kpack").added == 1
        assert {record.id for record in memory.records()} == {"les-mine", "les-1", "n"}


@given(at=st.integers(0, 10**6), flip=st.integers(1, 255), cut=st.booleans())
def test_a_changed_or_cut_off_file_is_refused(
    tmp_path_factory: pytest.TempPathFactory, at: int, flip: int, *, cut: bool
) -> None:
    home = tmp_path_factory.mktemp("changed") / "home"
    write_pack(home)
    file = home / "packs" / "x.kpack"
    raw = bytearray(file.read_bytes())
    raw[at % len(raw)] ^= flip
    file.write_bytes(raw[: at % len(raw)] if cut else raw)
    with open_memory(home) as memory, pytest.raises(CommonplaceError):
        import_encrypted(memory, "x.kpack")
    assert not (home / "log").exists()


def test_a_home_that_is_not_trusted_gives_nothing_and_takes_nothing(tmp_path: Path) -> None:
    clone = tmp_path / "clone" / ".commonplace"
    append(Home(clone), "app", lesson("les-a"))
    with open_memory(clone) as memory:
        for action in (
            lambda: export_encrypted(memory, "*", "x.kpack"),
            lambda: import_encrypted(memory, "x.kpack"),
        ):
            with pytest.raises(CommonplaceError, match="not trusted"):
                action()


def test_a_pack_of_the_version_before_is_still_imported(tmp_path: Path) -> None:
    """The file was written by that version: encrypted, neither compressed nor signed."""
    data = Path(__file__).parent / "data" / "packs"
    home = tmp_path / "home"
    put_raw(home, (data / "format1.kpack").read_bytes())
    with open_memory(home, packs__identity_file=str(data / "identity.txt")) as memory:
        done = import_encrypted(memory, "x.kpack")
        assert (done.added, done.manifest["format"]) == (1, 1)
        assert memory.get("les-1").meta["origin"] == "pack:format1"
    # Where signatures are wanted, it is no pack.
    identity = pyrage.x25519.Identity.from_str((data / "identity.txt").read_text().strip())
    with (
        pytest.raises(PackRefused, match="is not a pack, or not one that is signed"),
        container.opened(data / "format1.kpack", keys.Keys(str, lambda: [identity])),
    ):
        pass
