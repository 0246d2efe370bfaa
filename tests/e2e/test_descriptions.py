"""What is said of the server and its tools before anything is called: short, since a model
pays for it in every request, and true for how it is set up.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any
from xml.etree import ElementTree

import jsonschema  # type: ignore[import-untyped]
import pytest
from conftest import type_of_start
from harness import Client, Daemon

BUDGET = 5000  # characters: descriptions and schemas of the tools offered by default
ALL_TOOLS = "run_python,undo,restore,history,diff,branch,list_files,read_text_file,write_file"


@pytest.fixture
def client(shared: Daemon) -> Client:
    return shared.client()


def tools_of(client: Client) -> list[dict[str, Any]]:
    return list(client.request("tools/list")["tools"])


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def test_a_plus_adds_to_what_is_offered(client: Client, start: type_of_start) -> None:
    more = start(env={"VIVARIUM_TOOLS": "+restore,+diff"}).client()
    names = [[tool["name"] for tool in tools_of(one)] for one in (client, more)]
    assert set(names[1]) == {*names[0], "restore", "diff"}


def test_what_is_offered_by_default_is_within_its_budget(client: Client) -> None:
    sizes = {
        tool["name"]: len(tool["description"])
        + len(compact(tool["inputSchema"]))
        + len(compact(tool["outputSchema"]))
        for tool in tools_of(client)
    }
    assert sum(sizes.values()) < BUDGET, sizes


def test_every_tool_is_described_for_people_too(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_TOOLS": ALL_TOOLS})
    tools = {tool["name"]: tool for tool in tools_of(daemon.client())}
    assert list(tools) == ALL_TOOLS.split(",")
    for name, tool in tools.items():
        assert re.fullmatch(r"[a-z_]{1,64}", name)
        assert tool["title"] == tool["annotations"]["title"]
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"


def test_annotations_say_what_a_tool_may_do(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_TOOLS": ALL_TOOLS})
    tools = {tool["name"]: tool["annotations"] for tool in tools_of(daemon.client())}
    read_only = {name for name, hints in tools.items() if hints["readOnlyHint"]}
    destructive = {name for name, hints in tools.items() if hints["destructiveHint"]}
    assert read_only == {"history", "diff", "list_files", "read_text_file"}
    assert destructive == {"run_python", "undo", "restore", "write_file"}
    assert {name for name, hints in tools.items() if hints["openWorldHint"]} == {"run_python"}


def picture_of(icons: list[dict[str, Any]]) -> ElementTree.Element:
    (icon,) = icons
    assert (icon["mimeType"], icon["sizes"]) == ("image/svg+xml", ["any"])
    start = "data:image/svg+xml;base64,"
    assert icon["src"].startswith(start)
    return ElementTree.fromstring(base64.b64decode(icon["src"][len(start) :], validate=True))


def test_icons_are_pictures_of_paths(client: Client) -> None:
    server = client.initialize()["serverInfo"]
    assert server["description"]
    pictures = [picture_of(server["icons"])]
    pictures += [picture_of(tool["icons"]) for tool in tools_of(client)]
    for picture in pictures:
        assert picture.tag == "{http://www.w3.org/2000/svg}svg"
        (path,) = picture
        assert re.fullmatch(r"[MmLlHhVvCcAaZz0-9 .-]+", path.attrib["d"])


# ---- instructions ----


def lines_of(daemon: Daemon) -> list[str]:
    return str(daemon.client().initialize()["instructions"]).splitlines()


def test_instructions_have_ten_lines(shared: Daemon) -> None:
    lines = lines_of(shared)
    assert len(lines) <= 10
    assert sum(map(len, lines)) < 2000
    assert "live IPython kernel" in lines[0]


def test_instructions_name_only_what_is_offered(start: type_of_start) -> None:
    text = " ".join(lines_of(start(env={"VIVARIUM_TOOLS": "run_python"})))
    assert "run_python" in text
    for name in ("undo", "restore", "branch", "list_files", "write_file"):
        assert not re.search(rf"\b{name}\b", text)


def test_instructions_know_whether_anything_stays(start: type_of_start) -> None:
    lines = lines_of(start(env={"VIVARIUM_PERSIST_NAMESPACE": "0"}))
    assert "nothing of earlier calls is there but files" in lines[0]
    assert not any("footer" in line for line in lines)


def test_neither_pictures_nor_footer_are_promised_where_there_are_none(
    shared: Daemon, start: type_of_start
) -> None:
    bare = start(env={"VIVARIUM_MAX_IMAGES": "0", "VIVARIUM_STATE_SUMMARY": "0"})
    told = {}
    for daemon in (shared, bare):
        (tool,) = (t for t in tools_of(daemon.client()) if t["name"] == "run_python")
        told[daemon] = "\n".join([tool["description"], *lines_of(daemon)])
    for promise in ("and pictures (", "come back as pictures", "footer", "--- state ---"):
        assert promise in told[shared]
        assert promise not in told[bare]
    assert told[bare].count("Pictures do not come back here") == 2
    assert len(lines_of(bare)) <= 10


def test_instructions_say_that_there_is_no_network(shared: Daemon, start: type_of_start) -> None:
    assert not [line for line in lines_of(shared) if "no network" in line]
    offline = start(env={"VIVARIUM_NETWORK": "none"})
    assert [line for line in lines_of(offline) if "no network" in line]
    code = "import socket; socket.create_connection(('127.0.0.1', 9), 5)"
    assert offline.client().run(code).is_error
