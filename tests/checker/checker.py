#!/usr/bin/env python3
"""Checks certificates of `nqueens first` and `nqueens beautiful`.

This program follows docs/certificates.md and shares no code with the checker in Rust. It is written
to be read, not to be fast. For each file it prints one line: the statement that is proved,
`refused: WHY`, or `undecided` if the check takes more than --limit operations.

Usage: checker.py [--limit OPERATIONS] FILE...
       checker.py --frames [--limit OPERATIONS] FILE    (many certificates in one file, each after
                                                         its length as 4 bytes, little-endian)
"""

import hashlib
import sys

from beautiful import beautiful
from first import first
from reading import Reader, Refused, Undecided, require


def check(data, limit):
    """Returns the statement that a certificate proves."""
    require(data[:8] == b"NQPROOF\n", "it is not a certificate")
    require(len(data) >= 40 and len(data) <= 1 << 30, "it is too short or too long")
    require(hashlib.sha256(data[:-32]).digest() == data[-32:], "its checksum is wrong")
    reader = Reader(data[8:-32], limit)
    require(reader.byte() in (1, 2), "it has an unknown version")
    kind = reader.byte()
    require(kind in (1, 2), "it proves an unknown kind of statement")
    return (first if kind == 1 else beautiful)(reader.number(128 if kind == 1 else 512), reader)


def verdict(data, limit):
    try:
        return check(data, limit)
    except Refused as error:
        return f"refused: {error}"
    except Undecided:
        return "undecided"


def main(arguments):
    sys.setrecursionlimit(20_000)
    limit, frames, files = 1 << 62, False, []
    arguments = iter(arguments)
    for argument in arguments:
        if argument == "--limit":
            limit = int(next(arguments))
        elif argument == "--frames":
            frames = True
        else:
            files.append(argument)
    for file in files:
        with open(file, "rb") as opened:
            data = opened.read()
        if not frames:
            print(verdict(data, limit), flush=True)
        while frames and data:
            end = 4 + int.from_bytes(data[:4], "little")
            print(verdict(data[4:end], limit), flush=True)
            data = data[end:]


if __name__ == "__main__":
    main(sys.argv[1:])
