"""The README's tour: the official MCP client talks to a daemon of its own.

usage: demo.py PROGRAM [OUTPUT-DIRECTORY]

Prints the conversation as Markdown and saves the picture (figure.png) in
OUTPUT-DIRECTORY, a temporary one if none is named.
"""

import base64
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import anyio
import mcp_types as types
from mcp import Client

SALES = """month,region,amount
2026-01,north,120
2026-01,south,95
2026-02,north,132
2026-02,south,101
2026-03,north,128
2026-03,south,117
"""

CELLS = [
    "import pandas as pd\nsales = pd.read_csv('sales.csv')\nsales.shape",
    "by_region = sales.groupby('region').amount.sum()\nby_region",
    "ax = by_region.plot.bar(title='Sales by region', rot=0)",
]
AFTER_DEATH = "int(sales.amount.sum()), by_region.idxmax()"


def start(program: Path, place: Path) -> tuple[subprocess.Popen[str], str]:
    """Start a daemon on a free port; returns it and its MCP address."""
    env = dict(os.environ, XDG_STATE_HOME=str(place / "state"))
    work = place / "workspace"
    work.mkdir()
    (work / "sales.csv").write_text(SALES)
    daemon = subprocess.Popen(
        [program, "--port", "0", "--workdir", work], env=env, stderr=subprocess.PIPE, text=True
    )
    assert daemon.stderr
    for line in daemon.stderr:
        if " ready http" in line:
            return daemon, line.split()[-1]
    raise SystemExit("the daemon did not start")


def kernel_of(daemon: subprocess.Popen[str]) -> int:
    """The kernel's process id: below one supervisor, or two where it has its own namespaces."""

    def children(pid: int) -> list[int]:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        return [int(word) for word in text.split()]

    def is_supervisor(pid: int) -> bool:
        return Path(f"/proc/{pid}/comm").read_text() == "viv-supervisor\n"

    waiting = [pid for pid in children(daemon.pid) if is_supervisor(pid)]
    while waiting:
        below = children(waiting.pop())
        waiting += [pid for pid in below if is_supervisor(pid)]
        if below and not waiting:
            return below[0]
    raise SystemExit("there is no kernel")


def show(result: types.CallToolResult, place: Path) -> None:
    """Print a result as a chat client would show it."""
    print("\n```text")
    for item in result.content:
        if isinstance(item, types.TextContent):
            print(item.text)
        elif isinstance(item, types.ImageContent):
            picture = place / "figure.png"
            picture.write_bytes(base64.b64decode(item.data))
            print(f"[{item.mime_type}, {picture.stat().st_size} bytes]")
    print("```")


async def run(client: Client, code: str, place: Path) -> None:
    """Run one cell and print both sides."""
    print(f"\n```python\n{code}\n```")
    show(await client.call_tool("run_python", {"code": code}), place)


async def converse(url: str, daemon: subprocess.Popen[str], place: Path) -> None:
    """The tour itself."""
    async with Client(url) as client:
        tools = await client.list_tools()
        print("The client sees the tools", ", ".join(f"`{t.name}`" for t in tools.tools) + ".")
        print("There is a file `sales.csv` in the workspace. Each cell is one call:")
        for code in CELLS:
            await run(client, code, place)
        print("\nNow somebody kills the kernel (`kill -9`). The next call says so, and works:")
        await anyio.sleep(2)  # a person is slower than the saving of the state
        os.kill(kernel_of(daemon), signal.SIGKILL)
        await run(client, AFTER_DEATH, place)


def main() -> None:
    """Start a daemon, hold the conversation, stop the daemon."""
    with tempfile.TemporaryDirectory(prefix="vivarium-demo-") as made:
        place = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(made)
        daemon, url = start(Path(sys.argv[1]).absolute(), Path(made))
        try:
            anyio.run(converse, url, daemon, place)
        finally:
            daemon.terminate()
            daemon.wait()


if __name__ == "__main__":
    main()
