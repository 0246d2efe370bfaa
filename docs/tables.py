"""Keeps the generated parts of the documents as the program prints them.

usage: tables.py PROGRAM [--write] [--tour FILE]

Without --write: says which documents are stale and fails if one is.  The tour is the
transcript of tests/demo.py; it is replaced only when --tour names a new one.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / name for name in ("README.md", "ARCHITECTURE.md", "docs/settings.md")]
BLOCK = re.compile(r"<!-- begin (?P<name>[a-z ]+) -->\n.*?<!-- end (?P=name) -->\n", re.S)


def printed(program: str) -> dict[str, str]:
    """Every block that the program knows, by name."""
    run = subprocess.run([program, "--help-markdown"], capture_output=True, text=True, check=True)
    return {match["name"]: match[0] for match in BLOCK.finditer(run.stdout)}


def main(arguments: list[str]) -> int:
    """Compare, or write, all blocks of all documents."""
    blocks, stale = printed(arguments[0]), []
    if "--tour" in arguments:
        tour = Path(arguments[arguments.index("--tour") + 1]).read_text()
        blocks["tour"] = f"<!-- begin tour -->\n{tour}<!-- end tour -->\n"
    for document in DOCUMENTS:
        old = document.read_text()
        new = BLOCK.sub(lambda match: blocks.get(match["name"], match[0]), old)
        if new != old and "--write" in arguments:
            document.write_text(new)
        elif new != old:
            stale.append(document.name)
    for name in stale:
        print(f"{name} is stale; run `make tables`")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
