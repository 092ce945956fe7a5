"""How long redaction takes: the quick test of a clean line, and a megabyte of the worst texts.

python bench/redaction.py [megabytes]
"""

from __future__ import annotations

import sys
import time

from commonplace.redaction import table
from commonplace.redaction.places import PLACES, REGIONS, Place, Region
from commonplace.redaction.suspicion import may_hold_secret
from commonplace.redaction.text import redact_text

LINE = (
    "The recall path reads the index once and then scores every line; a long text of plain "
    "technical prose without anything special in it, and the next sentence goes on like that. "
) * 5
SHOWN = 15
# Texts that repeat names, quotes, brackets and the beginnings of values.
UNITS = [
    *("://a:a@", "password", "password=a", "password: a1 ", "password for a b c d ", "pass "),
    *("pass:a1b2c3d4 ", "key=", "x_key=aB1xaB1xaB1xaB1x ", "--a-token ", "-password a", 'secret="'),
    *("password='a\\", '{"password":"', "<password>", "name: password value: ", '("password", "'),
    *("[[[[", "((((", "{{{{", '""""', "''''", "\\", "\n", "a", "aB1", "-", "_", "$1$a$", "密码"),
    *("<private>", "-----BEGIN RSA PRIVATE KEY-----\n", "mnemonic abc def ", "senha a b c: "),
]


def units() -> set[str]:
    found = set(UNITS)
    rows: list[Place | Region] = [*PLACES, *REGIONS]
    for row in rows:
        example = row.example.replace("«", "").replace("»", "")
        found |= {example, f"{example} ", example[: len(example) // 2]}
        found |= {key + end for key in row.keys for end in ("", "a ", "1", '"', "'", "\n")}
    for rule in (*table.ACCESS_TOKENS, *table.PREFIXED, *table.LINES, *table.COOKIES, *table.URLS):
        found |= {key + end for key in rule.keys for end in ("", "a1", "aB1x" * 12 + " ")}
    for command in table.COMMANDS:
        found |= {f"{command.key} -p", f"{command.key} -p a1b2c3 ", f"{command.key} -u a:b "}
    return found


def main() -> None:
    size = int(float(sys.argv[1] if sys.argv[1:] else "0.1") * 1_000_000)
    rounds = 5000
    began = time.process_time()
    for _ in range(rounds):
        may_hold_secret(LINE[:850])
    print(
        f"{(time.process_time() - began) / rounds * 1e6:.0f} µs: the quick test of 850 characters"
    )
    times = []
    for unit in sorted(units()):
        began = time.process_time()
        redact_text((unit * (size // len(unit) + 1))[:size])
        times.append((time.process_time() - began, unit))
    for seconds, unit in sorted(times, reverse=True)[:SHOWN]:
        print(f"{seconds * 1_000_000 / size:.2f} s for a megabyte of {unit!r}")


if __name__ == "__main__":
    main()
