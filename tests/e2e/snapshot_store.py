# SPDX-License-Identifier: MIT
"""The daemon's part in snapshots, for tests of the kernel's part."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

# Run by the kernels' interpreter, which has xxhash: paths come in, hashes go out.
HASHES = """
import sys, xxhash
for path in sys.stdin.read().split("\\n"):
    print(xxhash.xxh3_128_hexdigest(open(path, "rb").read()))
"""
CHUNK = 1 << 20
Manifest = dict[str, Any]


class Store:
    """Adopts what a kernel puts into the spool, as the daemon's helper does."""

    def __init__(self, place: Path, python: str) -> None:
        self.python = python
        self.spool, self.store = place / "spool", place / "store"
        self.chunks, self.generations = self.store / "chunks", self.store / "generations"
        for directory in (self.spool, self.chunks, self.generations):
            directory.mkdir(parents=True, exist_ok=True)
        self.kept = 0

    def launch(self, restore: int | None = None, **changes: Any) -> dict[str, Any]:
        """The connection file's "snapshot"; restore: the generation to come back from."""
        skip = changes.pop("skip", [])
        older = [int(path.stem) for path in self.generations.glob("*.json")]
        manifest = str(self.generations / f"{restore}.json")
        back = {"manifest": manifest, "skip": skip, "older": older}
        return {
            "store": str(self.store),
            "spool": str(self.spool),
            "mode": "idle",
            "generation": self.kept,
            "namespace_max": 0,
            "restore": None if restore is None else back,
        } | changes

    def complete(self) -> list[int]:
        """The generations in the spool that say of themselves that they are whole."""
        return sorted(int(path.stem) for path in self.spool.glob("*.json"))

    def adopt(self) -> list[int]:
        """Take every complete generation; fails if one is not."""
        found = self.complete()
        for number in found:
            manifest = json.loads((self.spool / f"{number}.json").read_bytes())
            assert manifest["generation"] == number
            self.check(manifest)
            for name in chunk_names(manifest):
                if (self.spool / name).exists():
                    os.replace(self.spool / name, self.chunks / name)
            os.replace(self.spool / f"{number}.json", self.generations / f"{number}.json")
            self.kept = number
        return found

    def check(self, manifest: Manifest) -> None:
        """Every chunk is there, in spool or store, and is what its name says."""
        names = chunk_names(manifest)
        paths = [self.find(name) for name in names]
        text = "\n".join(map(str, paths))
        done = subprocess.run(
            [self.python, "-c", HASHES], input=text, capture_output=True, text=True, check=True
        )
        assert done.stdout.split() == names
        sizes = [path.stat().st_size for path in paths]
        for piece in (manifest["stream"], *manifest["buffers"]):
            own, sizes = sizes[: len(piece["chunks"])], sizes[len(piece["chunks"]) :]
            assert sum(own) == piece["size"]
            assert own[:-1] == [CHUNK] * (len(own) - 1)

    def find(self, name: str) -> Path:
        for directory in (self.spool, self.chunks):
            if (directory / name).exists():
                return directory / name
        raise AssertionError(f"chunk {name} is nowhere")

    def manifest(self, number: int | None = None) -> Manifest:
        """Of a kept generation; the newest, if none is named."""
        path = self.generations / f"{self.kept if number is None else number}.json"
        found: Manifest = json.loads(path.read_bytes())
        return found

    def written(self) -> set[str]:
        """Names of chunks in the spool."""
        return {path.name for path in self.spool.iterdir() if len(path.name) == 32}


def chunk_names(manifest: Manifest) -> list[str]:
    pieces = (manifest["stream"], *manifest["buffers"])
    return [name for piece in pieces for name in piece["chunks"]]


def entry(manifest: Manifest, name: str) -> Manifest:
    (found,) = [row for row in manifest["entries"] if row["name"] == name]
    row: Manifest = found
    return row
