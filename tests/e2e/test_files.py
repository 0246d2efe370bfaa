# SPDX-License-Identifier: MIT
"""The files of a workspace as tools and resources show and take them."""

from __future__ import annotations

import base64
import json
import os
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import mcp_types as types
import pytest
from conftest import any_python, require_plots, type_of_start
from harness import NEWEST, PNG_MAGIC, Client, Daemon, RpcError, wait_until
from mcp import Client as SdkClient

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
START = "workspace:///"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


@pytest.fixture
def work(shared: Daemon) -> Iterator[Path]:
    """The directory of the shared daemon's workspace, emptied before and after."""

    def empty() -> None:
        for entry in shared.work.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    empty()
    yield shared.work
    empty()


@pytest.fixture
def client(shared: Daemon, work: Path) -> Client:
    return shared.client()


def read(client: Client, path: str) -> dict[str, str]:
    (item,) = client.request("resources/read", {"uri": START + quote(path)})["contents"]
    return dict(item)


def stateless(client: Client, method: str, name: str = "", **params: object) -> dict[str, Any]:
    """A request of 2026-07-28: its whole answer."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": method}
    if name:
        headers["Mcp-Name"] = name
    plain = Client(client.port)
    reply = plain.post(plain.message(method, {**params, "_meta": meta}), **headers)
    (answer,) = reply.messages()
    return dict(answer)


# ---- write_file ----


def test_what_is_written_is_there_for_cells_and_for_tools(client: Client, work: Path) -> None:
    wrote = client.call("write_file", path="in/süd.csv", content="a,b\n1,ü\n")
    assert wrote.text == "Wrote in/süd.csv, 9 bytes."
    assert wrote.data["created"] is True
    assert (work / "in/süd.csv").read_text() == "a,b\n1,ü\n"
    assert client.run("open('in/süd.csv').read()").data["result"] == repr("a,b\n1,ü\n")
    assert client.call("read_text_file", path="in/süd.csv").text == "a,b\n1,ü\n"
    assert read(client, "in/süd.csv")["text"] == "a,b\n1,ü\n"
    again = client.call("write_file", path="in/süd.csv", content="")
    assert again.text == "Replaced in/süd.csv, 0 bytes."
    assert again.data["created"] is False


def test_bytes_come_as_base64(client: Client, work: Path) -> None:
    every = bytes(range(256)) * 5
    lines = base64.encodebytes(every).decode()
    client.call("write_file", path="b", content=lines, encoding="base64")
    assert (work / "b").read_bytes() == every
    for wrong in ("Y", "Y!==", "YQ==YQ==", "ü"):
        result = client.call("write_file", path="b", content=wrong, encoding="base64")
        assert result.is_error
        assert "no base64" in result.text
    assert (work / "b").read_bytes() == every
    unknown = client.call("write_file", path="b", content="x", encoding="latin-1")
    assert "it must be utf-8 or base64" in unknown.text


def test_a_text_is_written_as_it_is(client: Client, work: Path) -> None:
    odd = "a\0b\r\n\ufeff\U0001f600\u2028"
    client.call("write_file", path="t", content=odd)
    assert (work / "t").read_bytes() == odd.encode()


def test_two_megabytes_are_written_and_more_is_refused_in_words(client: Client, work: Path) -> None:
    full = base64.b64encode(os.urandom(2 << 20)).decode()
    assert not client.call("write_file", path="b", content=full, encoding="base64").is_error
    assert (work / "b").stat().st_size == 2 << 20
    over = client.call("write_file", path="c", content="x" * ((2 << 20) + 1))
    assert over.is_error
    assert "over the limit of 2097152" in over.text
    assert "run_python" in over.text
    assert not (work / "c").exists()


@pytest.mark.parametrize(
    "path",
    [
        "", ".", "..", "/etc/x", "../x", "a/../../x", "out/x", "link", "fifo", "folder", "file/x",
        "folder/", "a\0b", "x" * 256, "x/" * 3000 + "x", "/proc/self/fd/1", "cwd/x",
    ],
)  # fmt: skip
def test_nothing_is_written_elsewhere(
    client: Client, work: Path, tmp_path: Path, path: str
) -> None:
    (work / "out").symlink_to(tmp_path)
    (work / "link").symlink_to(tmp_path / "new")
    (work / "cwd").symlink_to("/proc/self/cwd")
    (work / "folder").mkdir()
    (work / "file").touch()
    os.mkfifo(work / "fifo")
    before = sorted(work.iterdir())
    result = client.call("write_file", path=path, content="x")
    assert result.is_error
    assert result.text.startswith("Error: ")
    assert list(tmp_path.iterdir()) == []
    assert sorted(work.iterdir()) == before


def test_files_are_written_and_read_while_a_cell_runs(client: Client, work: Path) -> None:
    with ThreadPoolExecutor() as pool:
        held = pool.submit(
            client.run, "import os, time\nwhile not os.path.exists('go/now'): time.sleep(0.01)"
        )
        wait_until(lambda: client.request("ping") == {})
        assert not held.done()
        client.call("write_file", path="a.csv", content="a\n1\n")
        assert read(client, "a.csv")["text"] == "a\n1\n"
        client.call("write_file", path="go/now", content="")
        assert held.result(20).exit_code == 0


# ---- read_text_file ----


@pytest.mark.parametrize(
    ("coding", "named"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8"),
        ("utf-16", "utf-16le"),
        ("utf-16-be", "utf-16be"),
        ("utf-16-le", "utf-16le"),
        ("utf-32", "utf-32le"),
        ("cp1252", "windows-1252"),
        ("latin-1", "windows-1252"),
    ],
)
def test_a_text_is_read_in_the_code_that_it_has(
    client: Client, work: Path, coding: str, named: str
) -> None:
    text = "Größe;Straße\r\n1,5;Köln\r\n" * 500
    (work / "t.csv").write_bytes(text.encode(coding))
    result = client.call("read_text_file", path="t.csv", max_chars=100_000)
    assert result.text == text
    assert result.data["encoding"] == named
    part = client.call("read_text_file", path="t.csv", max_chars=50, offset=6001)
    assert part.data["text"] == text[6001:6051]
    assert part.data["next"] == 6051
    assert "call again with offset=6051" in part.text


def test_pages_make_the_whole_file(client: Client, work: Path) -> None:
    text = "".join(f"{i} \u20ac \U0001f600\n" for i in range(5000))
    (work / "t").write_text(text)
    pages, at, cut = [], 0, True
    while cut:
        page = client.call("read_text_file", path="t", offset=at).data
        pages.append(page["text"])
        at, cut = page["next"], page["cut"]
    assert "".join(pages) == text
    assert at == len(text)
    behind = client.call("read_text_file", path="t", offset=len(text) + 1)
    assert f'"t" has only {len(text)} characters' in behind.text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (PNG_MAGIC + b"\0\0\0\rIHDR", "a PNG picture of 16 bytes: read it with run_python (PIL."),
        (b"%PDF-1.7\n%\xe2\xe3", "a PDF document"),
        (b"SQLite format 3\0", "an SQLite database of 16 bytes: read it with run_python (sqlite3."),
        (b"\x7fELF\2\1\1\0", "an ELF program"),
        (b"\x1f\x8b\x08\0", "gzip data"),
        (b"PK\3\4\x14\0\0\0\0\0", "a ZIP archive"),
        (b"\x80\x04\x95\0\0", "a binary file of 5 bytes"),
    ],
)
def test_a_binary_file_is_called_by_its_name(
    client: Client, work: Path, content: bytes, words: str
) -> None:
    (work / "data.txt").write_bytes(content)
    result = client.call("read_text_file", path="data.txt")
    assert result.is_error
    assert words in result.text


def test_a_notebook_is_read_as_its_cells(client: Client, work: Path) -> None:
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Sales"]},
        {
            "cell_type": "code",
            "execution_count": 2,
            "metadata": {},
            "source": "1 + 1",
            "outputs": [{"output_type": "execute_result", "data": {"text/plain": ["2"]}}],
        },
    ]
    (work / "n.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}))
    result = client.call("read_text_file", path="n.ipynb")
    assert "--- cell 1, markdown ---\n# Sales\n--- cell 2, code, In [2] ---\n1 + 1\n" in result.text
    assert result.text.endswith("--- output ---\n2\n")
    assert result.data["view"] == "notebook"
    part = client.call("read_text_file", path="n.ipynb", offset=9, max_chars=10)
    assert part.data["text"] == result.text[9:19]
    for broken in ("{", "[1]", '{"cells": 1}'):
        (work / "n.ipynb").write_text(broken)
        assert client.call("read_text_file", path="n.ipynb").text == broken


def test_a_file_that_changes_is_read_in_one_state_or_refused(client: Client, work: Path) -> None:
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            for letter in "ab":
                (work / "new").write_text(letter * 5000)
                (work / "new").rename(work / "t")

    (work / "t").write_text("a" * 5000)
    changer = threading.Thread(target=change)
    changer.start()
    try:
        for _ in range(100):
            result = client.call("read_text_file", path="t")
            assert result.text in ("a" * 5000, "b" * 5000) or "changes while" in result.text
    finally:
        stop.set()
        changer.join()


# ---- tables ----

MAKE_BOOK = """
import openpyxl
book = openpyxl.Workbook()
book.active.append(['city', 'GBP'])
for i in range(ROWS): book.active.append([f'Köln, {i}', i / 2])
book.create_sheet('notes').append(['a note'])
book.save('sales.xlsx')
"""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon whose kernels have the data stack."""
    daemon = Daemon(tmp_path_factory.mktemp("tables"), env={"VIVARIUM_PYTHON": str(any_python())})
    try:
        if "Error" in daemon.client().run("import openpyxl, pandas").text:
            pytest.skip("this interpreter has no openpyxl")
        yield daemon
        daemon.stop()
    finally:
        daemon.clean_up()


def test_a_workbook_is_read_as_csv_and_no_name_is_left(tables: Daemon) -> None:
    client = tables.client()
    made = client.run(MAKE_BOOK.replace("ROWS", "3"))
    assert "sales.xlsx" in made.footer_line("wrote:")
    result = client.call("read_text_file", path="sales.xlsx")
    assert result.text == (
        "--- sheet Sheet: 4 x 2 ---\n"
        'city,GBP\n"Köln, 0",0\n"Köln, 1",0.5\n"Köln, 2",1\n'
        "--- sheet notes: 1 x 1 ---\na note\n"
    )
    assert result.data["view"] == "excel"
    after = client.run("sorted(name for name in globals() if 'sales' in name or 'view' in name)")
    assert after.data["result"] == "[]"
    assert after.data["execution_count"] == made.data["execution_count"] + 1


def test_a_cell_of_many_lines_is_read_whole(tables: Daemon) -> None:
    client = tables.client()
    client.run(
        "import openpyxl; book = openpyxl.Workbook()\n"
        "book.active.append(['one\\r\\ntwo', 'x\\ty', None, True])\nbook.save('lines.xlsx')"
    )
    shown = client.call("read_text_file", path="lines.xlsx").text
    assert shown == '--- sheet Sheet: 1 x 4 ---\n"one\ntwo",x\ty,,True\n'


def test_a_parquet_table_is_read_with_its_types(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_PYTHON": str(require_plots())})
    client = daemon.client()
    client.run(
        "import pandas as pd\n"
        "pd.DataFrame({'n': [1, 2], 'city': ['Köln', 'a,b']}).to_parquet('t.parquet')"
    )
    shown = client.call("read_text_file", path="t.parquet").text
    assert shown.startswith("--- 2 x 2 ---\n# n: int64\n# city: ")
    assert shown.endswith('\nn,city\n1,Köln\n2,"a,b"\n')
    wait_until(lambda: daemon.log_contains("viewer/k2: kernel has shown its file: ended"))


def test_a_large_workbook_costs_its_beginning_and_is_paged(tables: Daemon) -> None:
    client = tables.client()
    client.run(MAKE_BOOK.replace("ROWS", "20000"))
    first = client.call("read_text_file", path="sales.xlsx", max_chars=100).data
    assert first["cut"] is True
    assert len(first["text"]) == 100
    second = client.call("read_text_file", path="sales.xlsx", max_chars=100, offset=100).data
    both = client.call("read_text_file", path="sales.xlsx", max_chars=200).data
    assert first["text"] + second["text"] == both["text"]
    far = client.call("read_text_file", path="sales.xlsx", max_chars=100, offset=1 << 20)
    assert far.is_error
    assert "run_python" in far.text


def test_a_workbook_is_read_while_a_cell_runs(tables: Daemon) -> None:
    client = tables.client()
    client.run(MAKE_BOOK.replace("ROWS", "3"))
    with ThreadPoolExecutor() as pool:
        held = pool.submit(
            client.run, "import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)"
        )
        assert "Köln" in client.call("read_text_file", path="sales.xlsx").text
        assert not held.done()
        client.call("write_file", path="go", content="")
        assert held.result(20).exit_code == 0
    wait_until(lambda: tables.health()["kernels"] == 1)


def test_what_cannot_be_shown_is_said_in_words(tables: Daemon) -> None:
    client = tables.client()
    (tables.work / "bad.xlsx").write_bytes(b"PK\3\4\0\0\0\0")
    (tables.work / "bad.parquet").write_bytes(b"PAR1\0\0\0\0PAR1")
    bad = client.call("read_text_file", path="bad.xlsx")
    assert bad.is_error
    assert "BadZipFile" in bad.text
    parquet = client.call("read_text_file", path="bad.parquet")
    assert parquet.is_error
    assert "pyarrow" in parquet.text or "Parquet" in parquet.text
    assert client.call("list_files").data["count"] >= 2


def test_the_kernels_of_views_count_and_go(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_MAX_KERNELS": "1"})
    client = daemon.client()
    client.run("1")
    (daemon.work / "a.xlsx").write_bytes(b"PK\3\4\0\0\0\0")
    full = client.call("read_text_file", path="a.xlsx")
    assert full.is_error
    assert "call again" in full.text


def test_a_view_ends_with_who_asked_for_it(start: type_of_start) -> None:
    """Cancelled, and at the daemon's end; the fixture looks for what is left."""
    daemon = start()
    client = daemon.client()
    (daemon.work / "a.xlsx").write_bytes(b"PK\3\4\0\0\0\0")
    with ThreadPoolExecutor() as pool:
        call = client.message(
            "tools/call", {"name": "read_text_file", "arguments": {"path": "a.xlsx"}}
        )
        held = pool.submit(client.post, call)
        wait_until(lambda: daemon.log_contains("viewer/k1: kernel process"))
        client.notify("notifications/cancelled", {"requestId": call["id"]})
        assert "cancelled" in str(held.result(20).messages())
        wait_until(lambda: daemon.health()["kernels"] == 0)
        ended = "viewer/k1: kernel shows its file no longer: ended"
        wait_until(lambda: daemon.log_contains(ended))
        again = pool.submit(client.call, "read_text_file", path="a.xlsx")
        wait_until(lambda: daemon.log_contains("viewer/k2: kernel process"))
        daemon.process.terminate()
        assert "stopping" in again.result(20).text
        assert daemon.process.wait(25) == 0


# ---- list_files ----


def test_files_are_listed_the_newest_first_and_folders_after(client: Client, work: Path) -> None:
    for age, name in enumerate(["new", "sub/middle", "old"]):
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text(name)
        os.utime(work / name, (1e9 - age, 1e9 - age))
    (work / "empty").mkdir()
    result = client.call("list_files")
    assert [row["path"] for row in result.data["files"]] == ["new", "sub/middle", "old"]
    assert result.data["files"][1]["uri"] == START + "sub/middle"
    assert result.data["folders"] == [{"path": "empty", "files": 0}, {"path": "sub", "files": 1}]
    assert result.text.splitlines()[0] == "new  3B  2001-09-09 01:46:40Z"
    assert result.text.endswith("\nfolders: empty/ (0 files), sub/ (1 file)")


# ---- resources ----


def pages_of(client: Client) -> list[list[dict[str, Any]]]:
    pages: list[list[dict[str, Any]]] = []
    cursor = None
    while True:
        result = client.request("resources/list", {"cursor": cursor} if cursor else {})
        pages.append(result["resources"])
        cursor = result.get("nextCursor")
        if not cursor:
            return pages


@pytest.mark.parametrize("revision", REVISIONS)
def test_files_are_resources(shared: Daemon, work: Path, revision: str) -> None:
    client = Client(shared.port, revision)
    assert client.initialize()["capabilities"]["resources"] == {
        "subscribe": True,
        "listChanged": True,
    }
    (work / "t.csv").write_text("a\n")
    (work / "p.png").write_bytes(PNG_MAGIC + b"\0")
    (work / "b").write_bytes(b"\xff\0")
    (work / ".hidden").touch()
    ((binary, picture, text),) = pages_of(client)
    assert text["uri"] == START + "t.csv"
    assert (text["name"], text["mimeType"], text["size"]) == ("t.csv", "text/csv", 2)
    assert ("annotations" in text) == (revision >= "2025-06-18")
    assert picture["mimeType"] == "image/png"
    assert "mimeType" not in binary
    assert read(client, "t.csv") == {"uri": START + "t.csv", "mimeType": "text/csv", "text": "a\n"}
    assert read(client, "p.png")["mimeType"] == "image/png"
    assert base64.b64decode(read(client, "b")["blob"]) == b"\xff\0"
    assert read(client, "b")["mimeType"] == "application/octet-stream"
    (template,) = client.request("resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"] == START + "{+path}"
    with pytest.raises(RpcError) as caught:
        read(client, "none")
    assert caught.value.code == -32002
    for result in (client.request("resources/list"), client.request("resources/templates/list")):
        assert not {"ttlMs", "resultType"} & set(result)


def test_files_are_resources_of_the_stateless_revision(client: Client, work: Path) -> None:
    (work / "a b.txt").write_text("text")
    uri = START + "a%20b.txt"
    listed = stateless(client, "resources/list")["result"]
    assert [row["uri"] for row in listed["resources"]] == [uri]
    got = stateless(client, "resources/read", uri, uri=uri)["result"]
    assert got["contents"] == [{"uri": uri, "mimeType": "text/plain", "text": "text"}]
    templates = stateless(client, "resources/templates/list")["result"]
    for result in (listed, got, templates):
        assert result["resultType"] == "complete"
    assert [(r["ttlMs"], r["cacheScope"]) for r in (listed, got)] == [(0, "private")] * 2
    assert templates["cacheScope"] == "public"
    error = stateless(client, "resources/read", START + "no", uri=START + "no")["error"]
    assert error["code"] == -32602
    assert error["data"] == {"uri": START + "no"}


@pytest.mark.parametrize(
    "uri",
    [
        "", "t", "file:///etc/passwd", "workspace://t", START, START + ".", START + "..",
        START + "../secret", START + "%2e%2e/secret", START + "/etc/passwd",
        START + "%2Fetc%2Fpasswd", START + "out", START + "folder", START + "fifo",
        START + "root/etc/passwd", START + "a%00b", START + "%zz", START + "x" * 5000,
        START + "fd/0",
    ],
)  # fmt: skip
def test_no_uri_leads_out(client: Client, work: Path, uri: str) -> None:
    secret = work.parent / "secret"
    secret.write_text("secret")
    (work / "out").symlink_to(secret)
    (work / "root").symlink_to("/")
    (work / "fd").symlink_to("/proc/self/fd")
    (work / "folder").mkdir()
    os.mkfifo(work / "fifo")
    reply = client.post(client.message("resources/read", {"uri": uri})).json()
    assert reply["error"]["code"] == -32002
    assert reply["error"]["data"] == {"uri": uri}
    assert "root:" not in json.dumps(reply)


@pytest.mark.parametrize("params", [{}, {"uri": 5}, {"uri": None}, {"uri": ["x"]}])
def test_a_read_without_a_uri_is_invalid_params(client: Client, params: object) -> None:
    with pytest.raises(RpcError) as caught:
        client.request("resources/read", params)
    assert caught.value.code == -32602


@pytest.mark.parametrize("cursor", ["", "!", "YQ==", "YQ\n", 5, {}, "x" * 100_000, "AGE"])
def test_a_cursor_that_is_none_of_ours_is_refused(client: Client, cursor: object) -> None:
    for method in ("resources/list", "resources/templates/list"):
        with pytest.raises(RpcError) as caught:
            client.request(method, {"cursor": cursor})
        assert caught.value.code == -32602


def test_hostile_names_come_and_go_as_uris(client: Client, work: Path) -> None:
    names = [
        b"a b",
        b"%41",
        b"?#&",
        b"\xff\xfe",
        b"n\nl",
        b"\xe2\x80\xae.exe",
        b"-rf",
        b"\\",
        b"{+path}",
    ]
    for name in names:
        (Path(os.fsdecode(os.fsencode(work) + b"/" + name))).write_bytes(name)
    (page,) = pages_of(client)
    assert len(page) == len(names)
    seen = set()
    for row in page:
        assert "\n" not in str(row["name"])
        (item,) = client.request("resources/read", {"uri": row["uri"]})["contents"]
        seen.add(item["text"].encode() if "text" in item else base64.b64decode(item["blob"]))
    assert seen == set(names)


def test_ten_thousand_files_are_listed_in_pages(client: Client, work: Path) -> None:
    for i in range(9_990):
        (work / f"f{i:05}").touch()
    result = client.request("resources/list")
    # What goes and comes between two pages moves nothing else.
    (work / "f00001").unlink()
    (work / "a-new-one").touch()
    rest = client.request("resources/list", {"cursor": result["nextCursor"]})
    assert rest["resources"][0]["name"] == "f00500"
    pages = pages_of(client)
    names = [row["name"] for page in pages for row in page]
    assert names == sorted(set(names))
    assert len(names) == 9_990
    assert max(len(page) for page in pages) == 500
    listed = client.call("list_files")
    assert len(listed.data["files"]) == 500
    assert "... and 9490 older; list them with run_python" in listed.text
    for i in range(9_990, 10_100):
        (work / f"f{i:05}").touch()
    listed = client.call("list_files")
    assert listed.data["more"] is True
    assert "... and 9500+ older; list them with run_python" in listed.text
    for i in (0, 5000, 10_099):  # listed or not
        assert read(client, f"f{i:05}")["text"] == ""


def test_what_is_too_large_for_an_answer_is_refused(client: Client, work: Path) -> None:
    (work / "fits").write_bytes(b"\xff" * 3_000_000)
    (work / "controls").write_bytes(b"\x01" * 2_000_000)
    (work / "large").write_bytes(b"x" * (4 << 20))
    assert len(base64.b64decode(read(client, "fits")["blob"])) == 3_000_000
    # As a JSON string it would be six times as long.
    assert base64.b64decode(read(client, "controls")["blob"]) == b"\x01" * 2_000_000
    with pytest.raises(RpcError) as caught:
        read(client, "large")
    assert caught.value.code == -32603
    assert "run_python" in caught.value.message


def test_each_user_has_resources_of_their_own(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_USER_HEADER": "X-User-ID"})
    one, two = daemon.client(X_User_ID="one"), daemon.client(X_User_ID="two")
    one.call("write_file", path="mine", content="1")
    assert [row["name"] for row in pages_of(one)[0]] == ["mine"]
    assert pages_of(two) == [[]]
    with pytest.raises(RpcError):
        read(two, "mine")
    with pytest.raises(RpcError):
        read(two, "../one/mine")
    nobody = daemon.client()
    assert pages_of(nobody) == [[]]
    with pytest.raises(RpcError) as caught:
        read(nobody, "mine")
    assert "X-User-ID" in caught.value.message


def test_what_is_written_counts_against_the_quota(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_WORKSPACE_QUOTA": str(5 << 20)})
    client = daemon.client()
    (daemon.work / "there").write_bytes(os.urandom(2 << 20))
    half = base64.b64encode(os.urandom(1 << 20)).decode()

    def refused() -> bool:
        result = client.call("write_file", path="more", content=half, encoding="base64")
        assert not result.is_error or "VIVARIUM_WORKSPACE_QUOTA" in result.text
        return result.is_error

    for name in "abc":
        client.call("write_file", path=name, content=half, encoding="base64")
    wait_until(refused)
    for entry in daemon.work.iterdir():
        entry.unlink()
    wait_until(lambda: not refused())


# ---- what the product is for ----


@pytest.mark.parametrize("mode", ["legacy", MODERN])
def test_files_in_explore_clean_and_a_workbook_out(tables: Daemon, mode: str) -> None:
    """The official Python SDK, in both eras."""
    for entry in tables.work.iterdir():
        entry.unlink()

    async def talk(client: SdkClient) -> None:
        csv = "month,GBP\n2026-01,120\n2026-02,\n2026-03,n/a\n"
        await client.call_tool("write_file", {"path": "sales.csv", "content": csv})
        cleaned = await client.call_tool(
            "run_python",
            {
                "code": "import pandas as pd\n"
                "sales = pd.read_csv('sales.csv', na_values=['n/a']).dropna()\n"
                "sales.to_excel('clean.xlsx', index=False)\nlen(sales)"
            },
        )
        assert not cleaned.is_error
        assert "wrote: clean.xlsx" in str(cleaned.content)
        listed = {row.name: row for row in (await client.list_resources()).resources}
        assert set(listed) == {"sales.csv", "clean.xlsx"}
        assert listed["clean.xlsx"].mime_type == XLSX
        (item,) = (await client.read_resource(listed["clean.xlsx"].uri)).contents
        assert isinstance(item, types.BlobResourceContents)
        assert base64.b64decode(item.blob) == (tables.work / "clean.xlsx").read_bytes()
        (text,) = (await client.read_resource(START + "sales.csv")).contents
        assert isinstance(text, types.TextResourceContents)
        assert text.text == csv
        (template,) = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == START + "{+path}"

    async def main() -> None:
        async with SdkClient(tables.url, mode=mode) as client:
            await talk(client)

    anyio.run(main)


def test_what_models_read_about_the_tools_stays_short(client: Client) -> None:
    """Names, descriptions and what may be given, of all default tools."""
    tools = client.request("tools/list")["tools"]
    read_by_models = [
        {key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools
    ]
    assert len(json.dumps(read_by_models)) < 5000
    assert client.revision == NEWEST
