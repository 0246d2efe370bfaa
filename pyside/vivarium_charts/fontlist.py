# SPDX-License-Identifier: MIT
"""Matplotlib's list of fonts, made once for all kernels.

Matplotlib makes one for each home directory, by opening every font: half a second and more that
the first chart of a workspace would take longer.  Set-up runs `python -m vivarium_charts.fontlist`
in pyside; where a kernel imports matplotlib and has no list in its home, it gets a copy, so that
its own stays writable.
"""

import contextlib
import os
import sys
import tempfile
from pathlib import Path

SHARED = Path(__file__).parent / "fontlists"  # kernels may read all of pyside


def home_cache() -> Path:
    """Where matplotlib looks, by its own rules."""
    own = os.environ.get("MPLCONFIGDIR")
    if own:
        return Path(own)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "matplotlib"


class AtImport:
    """Stands among the finders of modules until matplotlib is looked for."""

    done = False

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        if name == "matplotlib" and not self.done:
            self.done = True
            provide()


def provide_at_import() -> None:
    sys.meta_path.insert(0, AtImport())


def provide() -> None:
    """Give this kernel's home the lists that set-up made, unless it has newer ones of its own."""
    with contextlib.suppress(OSError, RuntimeError):  # matplotlib then makes its own
        for shared in SHARED.glob("fontlist-*.json"):
            own = home_cache() / shared.name
            if not own.exists() or (own.stat().st_mtime < shared.stat().st_mtime and no_own()):
                own.parent.mkdir(parents=True, exist_ok=True)
                replace(own, shared.read_bytes())


def no_own() -> bool:
    """Whether the list needs no fonts from the home directory."""
    places = (".fonts", ".local/share/fonts")
    return not any((Path.home() / place).is_dir() for place in places)


def replace(path: Path, content: bytes) -> None:
    """Whole or not at all: another kernel may read it now."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def make(directory: Path) -> None:
    """The list of this interpreter's matplotlib, of system fonts only."""
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(HOME=home, MPLCONFIGDIR=home, XDG_DATA_HOME=home)
        from matplotlib import font_manager

        font_manager.findfont("DejaVu Sans")
        for made in Path(home).glob("fontlist-*.json"):
            directory.mkdir(parents=True, exist_ok=True)
            replace(directory / made.name, made.read_bytes())
            (directory / made.name).chmod(0o644)


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else SHARED)
