"""Encryption as age has it: its published test vectors, and Debian's `age` where it is installed.

The vectors are those of C2SP/CCTV, whose licence lets them be copied: X25519, scrypt, armour, stream.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import warnings
import zlib
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pyrage
import pytest
from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from commonplace.errors import PackRefused
from commonplace.packs import age, container, signing
from commonplace.packs.keys import Keys, Seal
from commonplace.packs.shared_file import SharedFile

if TYPE_CHECKING:
    from collections.abc import Callable

VECTORS = Path(__file__).parent / "data" / "age-vectors"
# The library opens two files that `age` itself refuses. What is inside them is the same.
LENIENT = {"stanza_missing_body", "stanza_missing_final_line"}
STOCK = pytest.mark.skipif(
    not (shutil.which("age") and shutil.which("age-keygen")), reason="`age` is not installed"
)
FIELDS = {"id": "x", "name": "x", "version": "1.0", "created_at": "2026-11-16T00:00:00Z"}
LINES = [b'{"id":"%d"}' % number for number in range(20_000)]


def no_passphrase() -> str:
    raise PackRefused("x", "needs a passphrase")


@pytest.mark.parametrize("name", sorted(path.name for path in VECTORS.iterdir()))
def test_vectors_of_age(name: str) -> None:
    """Every file that age must open is opened, and no other one; its content is as it says."""
    head, _, content = (VECTORS / name).read_bytes().partition(b"\n\n")
    pairs = [line.split(": ", 1) for line in head.decode().split("\n")]
    given = {key: value for key, value in pairs if key not in ("identity", "passphrase")}
    if given.get("compressed") == "zlib":
        content = zlib.decompress(content)
    identities = [
        pyrage.x25519.Identity.from_str(value) for key, value in pairs if key == "identity"
    ]
    passphrases = [value for key, value in pairs if key == "passphrase"]
    keys = Keys(lambda: passphrases[0] if passphrases else "none", lambda: identities)
    # Space before the armour is allowed by age, and not by us: a pack begins with its format.
    is_ours = content.startswith(age.BEGINNINGS)
    if (given["expect"] == "success" and is_ours) or name in LENIENT:
        pieces = age.unseal(name, SharedFile(io.BytesIO(content)), keys).pieces()
        found = sha256(b"".join(pieces)).hexdigest()
        assert found == given.get("payload", found)
        return
    with pytest.raises(PackRefused):
        b"".join(age.unseal(name, SharedFile(io.BytesIO(content)), keys).pieces())


def write(path: Path, seal: Seal | None) -> bytes:
    """Write a pack, and return what it has inside: the same pack, not encrypted."""
    key = signing.generate()
    container.write(path, FIELDS, LINES, signer=key, seal=seal)
    plain = path.with_name("plain")
    container.write(plain, FIELDS, LINES, signer=key, seal=None)
    return plain.read_bytes()


def age_key(folder: Path) -> tuple[str, Path, list[object]]:
    file = folder / "key.txt"
    subprocess.run(["age-keygen", "-o", str(file)], check=True, capture_output=True)
    secret = file.read_text().split("\n")[2]
    identity = pyrage.x25519.Identity.from_str(secret)
    return str(identity.to_public()), file, [identity]


def ssh_key(folder: Path) -> tuple[str, Path, list[object]]:
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption())
    public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH)
    (folder / "id").write_bytes(private)
    (folder / "id").chmod(0o600)
    return public.decode(), folder / "id", [pyrage.ssh.Identity.from_buffer(private)]


@STOCK
@pytest.mark.parametrize("make", [age_key, ssh_key])
def test_the_stock_age_opens_our_packs(
    tmp_path: Path, make: Callable[[Path], tuple[str, Path, list[object]]]
) -> None:
    recipient, file, _identities = make(tmp_path)
    plain = write(tmp_path / "x.kpack", Seal((recipient,)))
    done = subprocess.run(
        ["age", "-d", "-i", str(file), str(tmp_path / "x.kpack")], capture_output=True, check=True
    )
    assert done.stdout == plain


@STOCK
@pytest.mark.parametrize("armour", [[], ["-a"]])
@pytest.mark.parametrize("make", [age_key, ssh_key])
def test_we_open_what_the_stock_age_encrypted(
    tmp_path: Path, make: Callable[[Path], tuple[str, Path, list[object]]], armour: list[str]
) -> None:
    recipient, _file, identities = make(tmp_path)
    write(tmp_path / "x.kpack", None)
    out = tmp_path / "y.kpack"
    subprocess.run(
        ["age", *armour, "-r", recipient, "-o", str(out), str(tmp_path / "x.kpack")], check=True
    )
    with container.opened(out, Keys(no_passphrase, lambda: identities)) as pack:
        assert (list(pack.lines()), pack.encryption) == (LINES, "recipients")


@STOCK
@pytest.mark.skipif(sys.platform == "win32", reason="`age` reads a passphrase from a terminal")
def test_a_passphrase_works_with_the_stock_age(tmp_path: Path) -> None:
    plain = write(tmp_path / "x.kpack", Seal(passphrase="correct horse"))
    in_a_terminal(["age", "-d", "-o", "out", "x.kpack"], tmp_path, ["correct horse"])
    assert (tmp_path / "out").read_bytes() == plain
    in_a_terminal(["age", "-p", "-o", "y.kpack", "plain"], tmp_path, ["battery staple"] * 2)
    with container.opened(tmp_path / "y.kpack", Keys(lambda: "battery staple", list)) as pack:
        assert (list(pack.lines()), pack.encryption) == (LINES, "passphrase")


def in_a_terminal(command: list[str], folder: Path, answers: list[str]) -> None:
    """Run *command* in a terminal of its own, and answer each of its prompts."""
    import pty  # Only where there are terminals.

    with warnings.catch_warnings():
        # Python warns of a fork beside threads; the child does nothing but start the program.
        warnings.simplefilter("ignore", DeprecationWarning)
        child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvp(command[0], command)
    shown = b""
    try:
        for answer in answers:
            shown = b""
            while b":" not in shown:
                shown += os.read(terminal, 1024)
            os.write(terminal, answer.encode() + b"\n")
        while chunk := os.read(terminal, 1024):
            shown += chunk
    except OSError:
        pass  # The terminal ends with the program.
    finally:
        os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, shown
