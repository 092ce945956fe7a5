"""The keys of a home: made once, for its owner only, and never taken along."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING

import pyrage
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import HomeUnusable, PackRefused, UsageError
from commonplace.memory import Memory
from commonplace.packs import container, inspection, keys, signing
from commonplace.transfer import backup
from commonplace.where.home import Home

if TYPE_CHECKING:
    from pathlib import Path

FIELDS = {"id": "x", "name": "x", "version": "1", "created_at": "2026-11-16T00:00:00Z"}


@given(message=st.binary(), other=st.binary())
def test_a_signature_is_of_one_message_by_one_key(message: bytes, other: bytes) -> None:
    key, another = signing.generate(), signing.generate()
    signature = key.sign(message)
    assert signing.is_signed(key.public, signature, message)
    assert signing.is_signed(key.public, signature, other) == (other == message)
    assert not signing.is_signed(another.public, signature, message)
    assert not signing.is_signed(key.public, other, message)


def test_a_home_has_one_key(tmp_path: Path) -> None:
    first = signing.key_of(Home(tmp_path / "a"))
    assert signing.key_of(Home(tmp_path / "a")).public == first.public
    assert signing.key_of(Home(tmp_path / "b")).public != first.public
    assert signing.parse_public(f" {first.public.upper()}\n") == first.public
    path = Home(tmp_path / "a").signing_key_file
    assert os.name != "posix" or path.stat().st_mode & 0o777 == 0o600


def test_processes_that_need_the_first_key_at_once_get_the_same(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from commonplace.packs import keys, signing\n"
        "from commonplace.where.home import Home; home = Home(Path(sys.argv[1]))\n"
        "print(signing.key_of(home).public, keys.make_identity(home, 'now'))\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE)
        for _ in range(6)
    ]
    assert len({one.communicate()[0] for one in running}) == 1


@pytest.mark.parametrize("raw", [b"nonsense", b"-----BEGIN PRIVATE KEY-----\nAAAA\n"])
def test_a_damaged_key_is_a_sentence_and_stays(tmp_path: Path, raw: bytes) -> None:
    home = Home(tmp_path)
    signing.key_of(home)
    home.signing_key_file.write_bytes(raw)
    with pytest.raises(HomeUnusable, match="holds no Ed25519 key"):
        signing.key_of(home)
    assert home.signing_key_file.read_bytes() == raw


@pytest.mark.parametrize("text", ["", "ed25519:", "ed25519:" + "g" * 64, "age1x", "0" * 64])
def test_a_public_key_that_is_none_is_a_sentence(text: str) -> None:
    with pytest.raises(UsageError, match="is no public key"):
        signing.parse_public(text)


def test_a_fingerprint_is_short_and_belongs_to_one_key() -> None:
    first, second = signing.generate().public, signing.generate().public
    assert signing.fingerprint(first) == signing.fingerprint(first)
    assert signing.fingerprint(first) != signing.fingerprint(second)
    assert [len(group) for group in signing.fingerprint(first).split("-")] == [4] * 8


def test_private_keys_are_in_no_backup_and_no_repository(tmp_path: Path) -> None:
    path = tmp_path / "home"
    with Memory.open(path, settings={"embedder.kind": "none"}, background=False) as memory:
        memory.log(repo="app", lesson="one")
        made = inspection.make_keys(memory)
        home = memory.homes[0]
    private = [home.signing_key_file, home.identity_file]
    assert all(file.is_file() for file in private)
    backup.create(home, tmp_path / "b.tar.gz", "2026-11-16T00:00:00Z", lambda _count: None)
    with tarfile.open(tmp_path / "b.tar.gz") as archive:
        names = {name.rpartition("/")[2] for name in archive.getnames()}
    assert names.isdisjoint(file.name for file in private)
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=path, check=True)
    added = subprocess.run(
        ["git", "ls-files"], cwd=path, check=True, capture_output=True, text=True
    )
    assert "log/app.jsonl" in added.stdout
    assert not any(file.name in added.stdout for file in private)
    assert made.signer == signing.key_of(home).public


def test_packs_for_the_key_that_keygen_made_are_opened_without_a_setting(tmp_path: Path) -> None:
    with Memory.open(tmp_path, settings={"embedder.kind": "none"}, background=False) as memory:
        home = memory.homes[0]
        with pytest.raises(UsageError, match="no identity is set"):
            keys.keys_from(memory.settings, home).identities()
        made = inspection.make_keys(memory)
        assert inspection.make_keys(memory) == made
        file = tmp_path / "x.kpack"
        container.write(
            file, FIELDS, [b"{}"], signer=signing.generate(), seal=keys.Seal((made.recipient,))
        )
        found = inspection.inspect(file, keys.keys_from(memory.settings, home))
    assert (found.encryption, found.records, found.manifest["id"]) == ("recipients", 1, "x")
    assert found.bytes == file.stat().st_size
    assert found.fingerprint == signing.fingerprint(found.signer)
    # The file is as `age-keygen` writes it.
    secret = home.identity_file.read_text().split("\n")[2]
    assert str(pyrage.x25519.Identity.from_str(secret).to_public()) == made.recipient


def test_inspect_refuses_what_is_no_pack(tmp_path: Path) -> None:
    with pytest.raises(PackRefused, match="is not there"):
        inspection.inspect(tmp_path / "x.kpack", keys.Keys(str, list))


def test_a_home_that_is_not_trusted_gets_no_key(tmp_path: Path) -> None:
    clone = tmp_path / "clone" / ".commonplace"
    (clone / "log").mkdir(parents=True)
    (clone / "log" / "app.jsonl").write_text("")
    with (
        Memory.open(clone, settings={"embedder.kind": "none"}, background=False) as memory,
        pytest.raises(Exception, match="not trusted"),
    ):
        inspection.make_keys(memory)
