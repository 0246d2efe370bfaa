# SPDX-License-Identifier: MIT
"""A program: SVG from standard input to PNG on standard output, by the package it is told.

A process of its own because what draws is native code that aborts on a picture it finds too
large, and that must not be the end of the kernel.  Imports nothing of ours.
"""

import resource
import sys
from collections.abc import Callable
from importlib import import_module

MEMORY_MAX = 2 << 30  # bytes of address space; resvg asks for four a pixel


def resvg(text: str, fonts: list[str]) -> bytes:
    package = import_module("resvg_py")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    # Its own default of dpi makes sizes in points nothing.
    return bytes(package.svg_to_bytes(svg_string=text, font_dirs=fonts, dpi=96))


def vl_convert(text: str, _fonts: list[str]) -> bytes:
    return bytes(import_module("vl_convert").svg_to_png(text))


def cairosvg(text: str, _fonts: list[str]) -> bytes:
    return bytes(import_module("cairosvg").svg2png(bytestring=text.encode()))


DRAWERS: dict[str, Callable[[str, list[str]], bytes]] = {
    "resvg_py": resvg,
    "vl_convert": vl_convert,
    "cairosvg": cairosvg,
}


def main() -> None:
    """Arguments: the package, and directories with fonts."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    package, fonts = sys.argv[1], sys.argv[2:]
    try:
        png = DRAWERS[package](sys.stdin.buffer.read().decode(), fonts)
    except Exception as error:
        sys.exit(str(error) or type(error).__name__)
    sys.stdout.buffer.write(png)


if __name__ == "__main__":
    main()
