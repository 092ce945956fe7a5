"""The file of a pack: what is written is read, and everything else is refused in one sentence."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pyrage
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import CommonplaceError, PackRefused, UsageError
from commonplace.packs import age, compression, container, signing, tar
from commonplace.packs.keys import Keys, Seal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

KEY = signing.generate()
IDENTITY = pyrage.x25519.Identity.generate()
SEAL = Seal((str(IDENTITY.to_public()),))
KEYS = Keys(lambda: "a passphrase", lambda: [IDENTITY])
FIELDS = {
    "id": "cpp-core",
    "name": "C++ core",
    "version": "1.0.0",
    "created_at": "2026-11-16T00:00:00Z",
    "domain_tags": ["cpp"],
    "counts": {"types": {"concept": 2}},
}
LINES = [b'{"id":"concept.cpp.raii"}', b'{"id":"concept.cpp.adl"}']
lines_of_bytes = st.lists(st.binary(min_size=1).map(lambda raw: raw.replace(b"\n", b"n")))


def read(path: Path, keys: Keys = KEYS) -> list[bytes]:
    with container.opened(path, keys) as pack:
        return list(pack.lines())


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write(path: Path, lines: list[bytes] = LINES, seal: Seal | None = None) -> bytes:
    container.write(path, FIELDS, lines, signer=KEY, seal=seal)
    return path.read_bytes()


# --- What is written is read ----------------------------------------------------------------------


@given(lines=lines_of_bytes, is_sealed=st.booleans())
def test_any_lines_come_back(tmp_path: Path, lines: list[bytes], *, is_sealed: bool) -> None:
    path = tmp_path / "x.kpack"
    written = container.write(
        path, FIELDS, iter(lines), signer=KEY, seal=SEAL if is_sealed else None
    )
    with container.opened(path, KEYS) as pack:
        assert list(pack.lines()) == lines
        assert list(pack.lines()) == lines
        assert pack.manifest == written
        assert (pack.signer, pack.manifest.records) == (KEY.public, len(lines))
        assert pack.encryption == ("recipients" if is_sealed else "")
    assert names_in(tmp_path) == ["x.kpack"]


@given(lines=lines_of_bytes)
def test_a_plain_pack_is_the_same_bytes_each_time(tmp_path: Path, lines: list[bytes]) -> None:
    assert write(tmp_path / "x.kpack", lines) == write(tmp_path / "x.kpack", lines)


def test_the_manifest_says_what_is_in_it(tmp_path: Path) -> None:
    counts: dict[str, Any] = {}

    def lines() -> Iterator[bytes]:
        for line in LINES:
            counts["types"] = {"concept": counts.get("types", {}).get("concept", 0) + 1}
            yield line

    container.write(
        tmp_path / "x.kpack", {**FIELDS, "counts": counts}, lines(), signer=KEY, seal=None
    )
    with container.opened(tmp_path / "x.kpack", KEYS) as pack:
        found = pack.manifest
    nodes = b"\n".join(LINES) + b"\n"
    assert (found.id, found.version, found.records, found.types) == (
        "cpp-core", "1.0.0", 2, {"concept": 2},
    )  # fmt: skip
    assert found.checksum == f"sha256:{sha256(nodes).hexdigest()}"
    assert found.fields["counts"]["bytes"] == len(nodes)
    assert found.fields["format"] == 2


def test_a_passphrase_opens_what_it_encrypted(tmp_path: Path) -> None:
    raw = write(tmp_path / "x.kpack", LINES, Seal(passphrase="a passphrase"))
    assert b"cpp" not in raw
    with container.opened(tmp_path / "x.kpack", KEYS) as pack:
        assert (list(pack.lines()), pack.encryption) == (LINES, "passphrase")
    with pytest.raises(PackRefused, match="the key is not the one"):
        read(tmp_path / "x.kpack", Keys(lambda: "another", list))


def test_a_pack_that_is_too_large_for_a_passphrase_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.kpack"
    lines = [os.urandom(500).hex().encode() for _ in range(3_000)]
    write(path, lines, Seal(passphrase="a passphrase"))
    monkeypatch.setattr(age, "PASSPHRASE_BYTES_MAX", 10_000)
    with pytest.raises(PackRefused, match="too large for a passphrase"):
        read(path)
    with pytest.raises(PackRefused, match="too large for a passphrase") as caught:
        write(path, lines, Seal(passphrase="a passphrase"))
    assert "recipient" in caught.value.hint
    write(path, lines, SEAL)
    assert read(path) == lines


@pytest.mark.skipif(not shutil.which("zstd"), reason="`zstd` is not installed")
def test_stock_programs_read_a_plain_pack(tmp_path: Path) -> None:
    write(tmp_path / "x.kpack")
    done = subprocess.run(
        ["zstd", "-dc", str(tmp_path / "x.kpack")], capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        assert archive.getnames() == ["pack.json", "pack.sig", "nodes.jsonl"]
        nodes = archive.extractfile("nodes.jsonl")
        assert nodes is not None
        assert nodes.read().splitlines() == LINES


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_a_new_pack_is_for_its_owner_only(tmp_path: Path) -> None:
    write(tmp_path / "x.kpack")
    assert (tmp_path / "x.kpack").stat().st_mode & 0o777 == 0o600


# --- Everything else is refused -------------------------------------------------------------------


def manifest(nodes: bytes, **changes: Any) -> bytes:
    counts = {"records": nodes.count(b"\n"), "bytes": len(nodes)}
    fields = {
        "format": 2, "embedding_model": "", "authors": [], "licence": "", **FIELDS,
        "counts": counts, "checksum": f"sha256:{sha256(nodes).hexdigest()}", **changes,
    }  # fmt: skip
    return json.dumps(fields).encode()


def sign(raw: bytes, key: signing.SigningKey = KEY) -> bytes:
    return f"{key.public} {key.sign(raw).hex()}\n".encode()


def member(
    name: str, content: bytes = b"", form: Any = tarfile.USTAR_FORMAT, **changes: Any
) -> bytes:
    """Return a file in an archive; *changes* are of its header."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), 0o600
    for field, value in changes.items():
        setattr(info, field, value)
    raw = info.tobuf(form)
    return raw + content + bytes(-len(content) % 512)


NODES = b"".join(line + b"\n" for line in LINES)
END = bytes(1024)


def archive(
    nodes: bytes = NODES,
    *,
    raw: bytes | None = None,
    signature: bytes | None = None,
    before: bytes = b"",
    after: bytes = b"",
    end: bytes = END,
    **changes: Any,
) -> bytes:
    """Return the archive of a pack, with something else than usual."""
    raw = manifest(nodes, **changes) if raw is None else raw
    signature = sign(raw) if signature is None else signature
    files = member(tar.MANIFEST, raw) + member(tar.SIGNATURE, signature) + member(tar.NODES, nodes)
    return before + files + after + end


def frame(plain: bytes) -> bytes:
    return b"".join(compression.compress("x", [plain]))


def with_hash(compressed: bytes) -> bytes:
    return compressed + b"\x50\x2a\x4d\x18\x20\0\0\0" + sha256(compressed).digest()


def dense(size: int) -> bytes:
    """Return lines of *size* bytes in all, compressed as far as zstd can."""
    zstd = compression._zstd()
    coder = zstd.ZstdCompressor(level=3)
    piece = b"x\n" * (1 << 19)
    head = member(tar.MANIFEST, raw := manifest(b"")) + member(tar.SIGNATURE, sign(raw))
    parts = [coder.compress(head + member(tar.NODES, size=size)[:512])]
    parts += [coder.compress(piece) for _ in range(size // len(piece))]
    return with_hash(b"".join([*parts, coder.flush()]))


def huge_window() -> bytes:
    zstd = compression._zstd()
    parameter = zstd.CompressionParameter
    coder = zstd.ZstdCompressor(options={parameter.window_log: 27, parameter.content_size_flag: 0})
    return with_hash(coder.compress(archive()) + coder.flush())


def tiny_members() -> bytes:
    """Return a million empty files in an archive, of 512 MB."""
    return with_hash(compression._zstd().compress(member("0") * 1_000_000, 1))


def link(name: str, kind: bytes, to: str = "/etc/passwd") -> bytes:
    return member(name, type=kind, linkname=to)


def size_field(text: bytes) -> bytes:
    """Return an archive whose first header has *text* as its size, and a valid checksum."""
    raw = bytearray(archive())
    raw[124:136] = text
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw[:512])
    return bytes(raw)


GOOD = archive()
OTHER = manifest(NODES, name="another")
PLAIN: dict[str, tuple[Callable[[], bytes], str]] = {
    "path traversal": (lambda: member("../../evil", b"x") + GOOD, r"holds `\.\./\.\./evil`"),
    "absolute path": (lambda: member("/tmp/evil", b"x") + GOOD, "holds `/tmp/evil`"),
    "path traversal at the end": (lambda: archive(after=member("../evil", b"x")), r"holds `\.\./evil`"),
    "another file": (lambda: archive(after=member("run.sh", b"x")), "holds `run.sh`"),
    "symbolic link": (lambda: link("pack.json", tarfile.SYMTYPE), "which is a link"),
    "hard link": (lambda: link("pack.json", tarfile.LNKTYPE), "which is a link"),
    "symbolic link at the end": (lambda: archive(after=link("x", tarfile.SYMTYPE)), "which is a link"),
    "character device": (lambda: link("pack.json", tarfile.CHRTYPE), "which is a device"),
    "block device": (lambda: link("pack.json", tarfile.BLKTYPE), "which is a device"),
    "pipe": (lambda: link("pack.json", tarfile.FIFOTYPE), "which is a pipe"),
    "folder": (lambda: link("pack.json", tarfile.DIRTYPE, ""), "which is a folder"),
    "sparse file": (lambda: link("pack.json", tarfile.GNUTYPE_SPARSE, ""), "which is a sparse file"),
    "contiguous file": (lambda: link("pack.json", tarfile.CONTTYPE, ""), "not written as packs write it"),
    "old plain file": (lambda: link("pack.json", tarfile.AREGTYPE, ""), "not written as packs write it"),
    "extended header": (lambda: member("é" * 200, form=tarfile.PAX_FORMAT) + GOOD, "an extended header"),
    "global extended header": (lambda: link("pack.json", tarfile.XGLTYPE, "") + GOOD, "an extended header"),
    "long name of GNU": (lambda: member("a" * 200, form=tarfile.GNU_FORMAT) + GOOD, "an extended header"),
    "the same name twice": (lambda: member(tar.MANIFEST, manifest(NODES)) + GOOD, "holds `pack.json` where `pack.sig`"),
    "records twice": (lambda: archive(after=member(tar.NODES, NODES)), "holds `nodes.jsonl` where `the end`"),
    "another order": (lambda: member(tar.NODES, NODES) + GOOD, "holds `nodes.jsonl` where `pack.json`"),
    "no signature": (lambda: member(tar.MANIFEST, manifest(NODES)) + member(tar.NODES, NODES) + END, "holds `nodes.jsonl` where `pack.sig`"),
    "owner in a header": (lambda: member(tar.MANIFEST, manifest(NODES), uid=1) + GOOD, "not written as packs write it"),
    "time in a header": (lambda: member(tar.MANIFEST, manifest(NODES), mtime=1) + GOOD, "not written as packs write it"),
    "size in base 256": (lambda: size_field(b"\x80" + bytes(10) + b"\x10"), "not written as packs|no valid header"),
    "negative size": (lambda: size_field(b"\xff" * 12), "not written as packs|no valid header"),
    "size with spaces": (lambda: size_field(b"        400 "), "not written as packs"),
    "declared size of the manifest": (lambda: size_field(b"77777777777\0"), "of over"),
    "declared size of the records": (lambda: archive()[:2048] + member(tar.NODES, size=8**11 - 1), "of over|valid header|cut off"),
    "nothing": (lambda: b"", "cut off"),
    "only the end": (lambda: END, "no valid header"),
    "no archive": (lambda: b"plain text" * 100, "no valid header"),
    "no end": (lambda: archive(end=b""), "is cut off"),
    "half an end": (lambda: archive(end=bytes(512)), "is cut off"),
    "bytes after the end": (lambda: archive(end=END + b"x"), "more bytes after its end"),
    "padding of tar": (lambda: archive(end=bytes(10240)), "more bytes after its end"),
    "padding that is not zero": (lambda: archive(NODES)[:-1024 - 1] + b"x" + END, "other bytes than zeros"),
    "manifest is no JSON": (lambda: archive(raw=b"{" * 100_000), "does not describe a pack"),
    "manifest is a list": (lambda: archive(raw=b"[]"), "does not describe a pack"),
    "manifest with a name twice": (lambda: archive(raw=manifest(NODES)[:-1] + b', "id": "y"}'), "does not describe a pack"),
    "manifest with half a character": (lambda: archive(more="\ud800"), "does not describe a pack"),
    "manifest of a huge number": (lambda: archive(raw=b'{"format":' + b"9" * 9000 + b"}"), "does not describe a pack"),
    "newer format": (lambda: archive(format=3), "has the format 3, and this version reads 2"),
    "older format": (lambda: archive(format=1), "has the format 1"),
    "id that is a path": (lambda: archive(id="../x"), "`id` is missing or not valid"),
    "id of dots": (lambda: archive(id=".."), "`id` is missing or not valid"),
    "name with a control character": (lambda: archive(name="x\x1b[2J"), "`name` is missing or not valid"),
    "name that runs backwards": (lambda: archive(name="x\u202egpj"), "`name` is missing or not valid"),
    "no version": (lambda: archive(version=None), "`version` is missing or not valid"),
    "authors that are none": (lambda: archive(authors="me"), "`authors` is missing or not valid"),
    "negative count": (lambda: archive(counts={"records": -1, "bytes": 0}), "`counts` is missing or not valid"),
    "wrong count": (lambda: archive(counts={"records": 3, "bytes": len(NODES)}), "has 2 records"),
    "wrong size": (lambda: archive(counts={"records": 2, "bytes": 1}), "says others"),
    "wrong hash of the records": (lambda: archive(checksum="sha256:" + "0" * 64), "does not have the hash"),
    "other records": (lambda: archive(NODES.replace(b"adl", b"sfi"), raw=manifest(NODES)), "does not have the hash"),
    "signature of another manifest": (lambda: archive(signature=sign(OTHER)), "its signature is not of its"),
    "signature by another key": (lambda: archive(signature=KEY.public.encode() + sign(manifest(NODES), signing.generate())[72:]), "its signature is not of its"),
    "signature of zeros": (lambda: archive(signature=f"{KEY.public} {'0' * 128}\n".encode()), "its signature is not of its"),
    "signature in capitals": (lambda: archive(signature=sign(manifest(NODES)).upper()), "is no signature"),
    "empty signature": (lambda: archive(signature=b""), "is no signature"),
    "empty line": (lambda: archive(NODES + b"\n"), "empty line"),
    "last line without an end": (lambda: archive(NODES + b"x"), "last line has no end"),
}  # fmt: skip
RAW: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty file": (lambda: b"", "is not a pack"),
    "text": (lambda: b"hello", "is not a pack"),
    "zip": (lambda: b"PK\x03\x04" + bytes(100), "is not a pack"),
    "archive that is not compressed": (lambda: GOOD, "is not a pack"),
    "compressed, without the hash": (lambda: frame(GOOD)[:-40], "is cut off"),
    "hash of other bytes": (lambda: frame(GOOD)[:-1] + b"x", "do not have the hash"),
    "two frames": (lambda: frame(GOOD)[:-40] + frame(b"more"), "more bytes after its end"),
    "a frame that is skipped first": (lambda: b"\x50\x2a\x4d\x18\0\0\0\0" + frame(GOOD), "is not a pack"),
    "bytes after the hash": (lambda: frame(GOOD) + b"x", "more bytes after its end"),
    "a million tiny files": (tiny_members, "holds `0` where"),
    "a window of 128 MiB": (huge_window, "cannot be decompressed"),
    "a bomb": (lambda: dense(256 << 20), "is too dense"),
    "an encrypted bomb": (lambda: encrypt(dense(256 << 20)), "is too dense"),
    "a bomb of zeros": (lambda: with_hash(compression._zstd().compress(bytes(128 << 20))), "no valid header"),
    "encrypted text": (lambda: encrypt(b"hello"), "is not a pack"),
    "encrypted, not compressed": (lambda: encrypt(GOOD), "is not a pack"),
    "encrypted twice": (lambda: encrypt(encrypt(frame(GOOD))), "is not a pack"),
    "encrypted for somebody else": (lambda: pyrage.encrypt(frame(GOOD), [pyrage.x25519.Identity.generate().to_public()]), "the key is not the one"),
    "no header of age": (lambda: b"age-encryption.org/v1\n", "no header of age"),
    "no recipient": (lambda: b"age-encryption.org/v1\n--- AAAA\n", "cannot be opened|no header"),
    "too many recipients": (lambda: b"age-encryption.org/v1\n" + b"-> X25519 AAAA\nAAAA\n" * 2000 + b"--- x\n", "too many recipients"),
    "a passphrase of much work": (lambda: b"age-encryption.org/v1\n-> scrypt AAAAAAAAAAAAAAAAAAAAAA 30\n" + b"A" * 43 + b"\n--- x\n", "too much memory"),
    "half an armour": (lambda: b"-----BEGIN AGE ENCRYPTED FILE-----\nAAAA", "no header of age"),
}  # fmt: skip


def encrypt(raw: bytes) -> bytes:
    return bytes(pyrage.encrypt(raw, [IDENTITY.to_public()]))


@contextmanager
def nothing_is_left(path: Path) -> Iterator[None]:
    threads = threading.active_count()
    before = names_in(path.parent)
    yield
    assert names_in(path.parent) == before
    assert threading.active_count() == threads


def check_refused(path: Path, raw: bytes, reason: str | None = None) -> None:
    path.write_bytes(raw)
    with (
        nothing_is_left(path),
        pytest.raises(PackRefused, match=reason) as caught,
        container.opened(path, KEYS),
    ):
        pytest.fail("it was opened")
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 62
    assert caught.value.hint


@pytest.mark.parametrize("what", PLAIN)
def test_an_archive_that_is_not_ours_is_refused(tmp_path: Path, what: str) -> None:
    make, reason = PLAIN[what]
    check_refused(tmp_path / "x.kpack", frame(make()), reason)
    check_refused(tmp_path / "x.kpack", encrypt(frame(make())), reason)


@pytest.mark.parametrize("what", RAW)
def test_a_file_that_is_not_ours_is_refused(tmp_path: Path, what: str) -> None:
    make, reason = RAW[what]
    check_refused(tmp_path / "x.kpack", make(), reason)


def test_the_archive_of_these_tests_is_a_pack(tmp_path: Path) -> None:
    (tmp_path / "x.kpack").write_bytes(frame(GOOD))
    assert read(tmp_path / "x.kpack") == LINES


@pytest.mark.parametrize("seal", [None, SEAL], ids=["plain", "encrypted"])
def test_every_changed_bit_is_noticed(tmp_path: Path, seal: Seal | None) -> None:
    raw = write(tmp_path / "x.kpack", LINES, seal)
    for at in range(len(raw)):
        for bit in range(8):
            changed = bytearray(raw)
            changed[at] ^= 1 << bit
            check_refused(tmp_path / "y.kpack", bytes(changed))


@pytest.mark.parametrize("seal", [None, SEAL], ids=["plain", "encrypted"])
def test_a_file_that_is_cut_off_anywhere_is_refused(tmp_path: Path, seal: Seal | None) -> None:
    raw = write(tmp_path / "x.kpack", LINES, seal)
    for at in range(len(raw)):
        check_refused(tmp_path / "y.kpack", raw[:at])


@given(at=st.integers(0, len(GOOD)), cut=st.integers(0, 600), put=st.binary(max_size=600))
def test_no_other_archive_passes(tmp_path: Path, at: int, cut: int, put: bytes) -> None:
    """Headers, padding and end have one form, the manifest is signed, the records are hashed."""
    changed = GOOD[:at] + put + GOOD[at + cut :]
    if changed != GOOD:
        check_refused(tmp_path / "x.kpack", frame(changed))


@given(raw=st.binary(), start=st.sampled_from([b"", b"\x28\xb5\x2f\xfd", *age.BEGINNINGS]))
def test_no_other_bytes_pass(tmp_path: Path, raw: bytes, start: bytes) -> None:
    check_refused(tmp_path / "x.kpack", start + raw)


@given(fields=st.dictionaries(st.sampled_from([*FIELDS, "format", "checksum"]), st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda some: st.lists(some) | st.dictionaries(st.text(), some))))  # fmt: skip
def test_a_signed_manifest_of_anything_is_valid_or_refused(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    (tmp_path / "x.kpack").write_bytes(frame(archive(**fields)))
    with suppress(PackRefused):
        assert read(tmp_path / "x.kpack") == LINES


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is of Linux")
@pytest.mark.parametrize("what", ["a bomb", "an encrypted bomb", "a bomb of zeros"])
def test_a_bomb_is_refused_in_little_memory(tmp_path: Path, what: str) -> None:
    (tmp_path / "x.kpack").write_bytes(RAW[what][0]())
    (tmp_path / "key").write_text(str(IDENTITY))
    program = (
        "import resource, sys; from pathlib import Path; import pyrage\n"
        "from commonplace.errors import PackRefused; from commonplace.packs import container\n"
        "from commonplace.packs.keys import Keys; from cryptography.hazmat.primitives import ciphers\n"
        "identity = pyrage.x25519.Identity.from_str(Path('key').read_text())\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n"
        "    with container.opened(Path('x.kpack'), Keys(str, lambda: [identity])): pass\n"
        "except PackRefused: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, check=True
    )
    assert int(done.stdout) < 64 << 10, "kilobytes"


# --- Writing is a whole or nothing ----------------------------------------------------------------


def test_what_fails_while_it_is_written_leaves_the_old_pack(tmp_path: Path) -> None:
    path = tmp_path / "x.kpack"
    before = write(path)

    def fail() -> Iterator[bytes]:
        yield LINES[0]
        raise KeyboardInterrupt

    with nothing_is_left(path):
        with pytest.raises(KeyboardInterrupt):
            container.write(path, FIELDS, fail(), signer=KEY, seal=SEAL)
        for lines in ([b"a\nb"], [b""]):
            with pytest.raises(PackRefused, match="a record that is no line"):
                container.write(path, FIELDS, lines, signer=KEY, seal=None)
        with pytest.raises(PackRefused, match="`id` is missing or not valid"):
            container.write(path, {**FIELDS, "id": "A B"}, LINES, signer=KEY, seal=None)
        for seal in (None, SEAL):
            with pytest.raises(PackRefused, match="too dense"):
                container.write(path, FIELDS, [b"x" * (1 << 20)] * 100, signer=KEY, seal=seal)
        with pytest.raises(UsageError, match="is no recipient"):
            container.write(path, FIELDS, LINES, signer=KEY, seal=Seal(("age1x",)))
        with pytest.raises(UsageError, match="there is no key"):
            container.write(path, FIELDS, LINES, signer=KEY, seal=Seal())
    assert path.read_bytes() == before


@pytest.mark.parametrize("seal", [None, SEAL], ids=["plain", "encrypted"])
def test_an_interrupt_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seal: Seal | None
) -> None:
    def interrupt(*_arguments: object) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "x.kpack"
    lines = [os.urandom(500).hex().encode() for _ in range(5_000)]
    before = write(path, lines, seal)
    with nothing_is_left(path):
        with (
            pytest.raises(KeyboardInterrupt),
            container.opened(path, KEYS, progress=interrupt),
        ):
            pass
        monkeypatch.setattr(compression, "is_too_dense", interrupt)  # It is asked at the end.
        with pytest.raises(KeyboardInterrupt):
            write(path, LINES, seal)
    assert path.read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is of POSIX")
def test_a_killed_writer_leaves_nothing_that_stays(tmp_path: Path) -> None:
    program = (
        "import os, signal; from pathlib import Path; from commonplace.packs import container, signing\n"
        "def lines():\n"
        "    yield from [os.urandom(500).hex().encode()] * 10_000\n"
        "    ACTION\n"
        "kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "container.compression.is_too_dense = kill\n"
        f"container.write(Path('x.kpack'), {FIELDS!r}, lines(), signer=signing.generate(), seal=None)\n"
    )
    for action, left in (("kill()", 0), ("", 1)):
        done = subprocess.run(
            [sys.executable, "-c", program.replace("ACTION", action)], cwd=tmp_path, check=False
        )
        assert done.returncode == -signal.SIGKILL
        assert len(names_in(tmp_path)) == left
    write(tmp_path / "x.kpack")
    assert names_in(tmp_path) == ["x.kpack"]


def test_a_disk_that_refuses_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CommonplaceError, match="cannot be written"):
        write(tmp_path / "file" / "x.kpack")


@pytest.mark.skipif(os.name != "posix", reason="links need rights on Windows")
def test_a_confined_path_leads_through_no_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    path = tmp_path / "link" / "x.kpack"
    with pytest.raises(PackRefused, match="cannot be written"):
        container.write(path, FIELDS, LINES, signer=KEY, seal=None, confined=True)
    write(path)
    assert container.is_pack(path)
    assert read(path) == LINES
    with pytest.raises(PackRefused, match="a link"):
        container.is_pack(path, confined=True)
    with pytest.raises(PackRefused, match="a link"), container.opened(path, KEYS, confined=True):
        pass


@pytest.mark.skipif(os.name != "posix", reason="modes and pipes are those of POSIX")
def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with (
            pytest.raises(PackRefused, match="cannot be read"),
            container.opened(tmp_path / name, KEYS),
        ):
            pass


@pytest.mark.skipif(os.name != "posix", reason="limits of files are those of POSIX")
@pytest.mark.parametrize("seal", [None, SEAL], ids=["plain", "encrypted"])
@pytest.mark.parametrize("limit", [10_000, 300_400], ids=["before", "while it is written"])
def test_a_full_disk_is_a_sentence(tmp_path: Path, seal: Seal | None, limit: int) -> None:
    """The records take 300,300 bytes until they are written, and cannot be compressed."""
    program = (
        "import os, resource, signal; from pathlib import Path\n"
        "from commonplace.errors import PackRefused; from commonplace.packs import container, signing\n"
        "from commonplace.packs.keys import Seal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
        "lines = [os.urandom(1000).replace(b'\\n', b'n') for _ in range(300)]\n"
        f"try: container.write(Path('x.kpack'), {FIELDS!r}, lines, signer=signing.generate(), seal={seal!r})\n"
        "except PackRefused as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, check=True, text=True
    )
    assert "cannot be written: File too large" in done.stdout
    assert not names_in(tmp_path)


# --- Reading --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seal", [None, SEAL], ids=["plain", "encrypted"])
def test_nothing_runs_on_after_a_pack_was_read_in_part(tmp_path: Path, seal: Seal | None) -> None:
    path = tmp_path / "x.kpack"
    write(path, [os.urandom(500).hex().encode() for _ in range(5_000)], seal)
    with nothing_is_left(path), container.opened(path, KEYS) as pack:
        found = [pack.lines(), pack.lines(), pack.lines()]
        assert next(found[0]) == next(found[1])


def test_an_error_of_the_reader_stays_what_it_is(tmp_path: Path) -> None:
    write(tmp_path / "x.kpack")
    with pytest.raises(FileNotFoundError), container.opened(tmp_path / "x.kpack", KEYS):
        (tmp_path / "missing").read_bytes()


def test_a_pack_that_is_changed_after_it_was_verified_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.kpack"
    write(path, [os.urandom(500).hex().encode() for _ in range(5_000)])
    with container.opened(path, KEYS) as pack:
        with path.open("r+b") as stream:
            stream.seek(path.stat().st_size - 100_000)
            stream.write(b"changed")
        with pytest.raises(PackRefused):
            list(pack.lines())


def test_a_pack_is_known_by_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "x.kpack"
    assert not container.is_pack(path)
    for seal in (None, SEAL):
        write(path, LINES, seal)
        assert container.is_pack(path)
        assert container.is_pack(path, confined=True)
    path.write_text("mine")
    assert not container.is_pack(path)


def test_progress_is_told_in_bytes_of_the_file(tmp_path: Path) -> None:
    size = len(write(tmp_path / "x.kpack"))
    seen: list[int] = []
    with container.opened(tmp_path / "x.kpack", KEYS, progress=seen.append):
        assert sum(seen) == size
