"""Prompts, and the completions of their arguments and of the resource template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import type_of_start
from harness import Client, Daemon, RpcError

FRAME = """
import pandas as pd
sales = pd.DataFrame({"month": [1, 2], "region": ["n", "s"], "amount": [3.5, 4.5], 7: [0, 0]})
costs = pd.DataFrame({"year": [1], "euros": [2]})
total = sales.amount
numbers = [1, 2]
"""


@pytest.fixture(scope="module")
def daemon(shared: Daemon) -> Daemon:
    """With files and, in its kernel, tables."""
    shared.work.mkdir(exist_ok=True)
    for name in ("a.csv", "b.csv", "Sales.xlsx", "notes.txt", "näme.tsv"):
        (shared.work / name).write_text("month;amount\n1;2\n")
    (shared.work / "data").mkdir(exist_ok=True)
    (shared.work / "data" / "c.parquet").write_bytes(b"PAR1\0\0\0\0 more PAR1")
    assert not shared.client().run(FRAME).is_error
    return shared


@pytest.fixture
def client(daemon: Daemon) -> Client:
    return daemon.client()


def text_of(client: Client, name: str, **arguments: str) -> str:
    result = client.request("prompts/get", {"name": name, "arguments": arguments})
    (message,) = result["messages"]
    assert message["role"] == "user"
    assert message["content"]["type"] == "text"
    return str(message["content"]["text"])


def complete(
    client: Client, ref: dict[str, str], name: str, value: str, **context: str
) -> dict[str, Any]:
    params: dict[str, Any] = {"ref": ref, "argument": {"name": name, "value": value}}
    if context:
        params["context"] = {"arguments": context}
    completion = client.request("completion/complete", params)["completion"]
    assert isinstance(completion, dict)
    return completion


def of_prompt(client: Client, prompt: str, name: str, value: str, **context: str) -> list[str]:
    ref = {"type": "ref/prompt", "name": prompt}
    return list(complete(client, ref, name, value, **context)["values"])


# ---- the list ----


def test_the_list_says_what_each_prompt_takes(client: Client) -> None:
    rows = {row["name"]: row for row in client.request("prompts/list")["prompts"]}
    assert list(rows) == ["explore_file", "clean_table", "chart_column"]
    arguments = {name: [a["name"] for a in row["arguments"]] for name, row in rows.items()}
    assert arguments == {
        "explore_file": ["path"],
        "clean_table": ["table", "purpose"],
        "chart_column": ["table", "column", "by"],
    }
    assert [a["required"] for a in rows["chart_column"]["arguments"]] == [True, True, False]
    for row in rows.values():
        assert row["title"]
        assert row["description"]
        assert row["icons"][0]["src"].startswith("data:image/svg+xml;base64,")


@pytest.mark.parametrize(
    ("revision", "has_title", "has_icons"),
    [
        ("2024-11-05", False, False),
        ("2025-03-26", False, False),
        ("2025-06-18", True, False),
        ("2025-11-25", True, True),
    ],
)
def test_older_revisions_get_what_they_know(
    daemon: Daemon, revision: str, has_title: bool, has_icons: bool
) -> None:
    client = daemon.client(revision)
    for row in client.request("prompts/list")["prompts"]:
        assert ("title" in row, "icons" in row) == (has_title, has_icons)
        assert all(("title" in argument) == has_title for argument in row["arguments"])
    for tool in client.request("tools/list")["tools"]:
        assert ("title" in tool, "icons" in tool) == (has_title, has_icons)


def test_the_list_has_one_page(client: Client) -> None:
    with pytest.raises(RpcError) as caught:
        client.request("prompts/list", {"cursor": "x"})
    assert caught.value.code == -32602


# ---- what they say ----


def test_a_text_file_is_quoted(client: Client) -> None:
    text = text_of(client, "explore_file", path="a.csv")
    assert "the file `a.csv` (17B)" in text
    assert "Its text (utf-8) begins:\n\n````\nmonth;amount\n1;2" in text


def test_a_binary_file_is_not_quoted(client: Client) -> None:
    text = text_of(client, "explore_file", path="data/c.parquet")
    assert "`data/c.parquet` (18B)" in text
    assert "begins" not in text


@pytest.mark.parametrize(
    "path", ["nothing.csv", "../../etc/passwd", "/etc/passwd", "data", "x\x01"]
)
def test_what_is_no_file_of_the_workspace_is_not_read(client: Client, path: str) -> None:
    text = text_of(client, "explore_file", path=path)
    assert "no such file is there now" in text
    assert "root:" not in text
    assert "begins" not in text


def test_a_variable_is_described_and_not_loaded_again(client: Client) -> None:
    text = text_of(client, "clean_table", table="sales", purpose="a yearly report")
    assert "the variable `sales` (2x4 [month, region, amount, 7])" in text
    assert "in the live namespace already" in text
    assert "It is needed for: a yearly report." in text


def test_a_column_that_is_none_is_told_with_those_there_are(client: Client) -> None:
    text = text_of(client, "chart_column", table="sales", column="amonut", by="month")
    assert "there is no such column; there are `month`, `region`, `amount`" in text
    assert "by `month`" in text
    assert "no such column" not in text_of(client, "chart_column", table="sales", column="amount")


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({}, "Unknown prompt"),
        ({"name": "explore"}, "Unknown prompt: explore"),
        ({"name": "explore_file"}, "arguments.path is missing"),
        ({"name": "explore_file", "arguments": {"path": ""}}, "arguments.path is missing"),
        ({"name": "explore_file", "arguments": {"path": 5}}, "arguments.path is not a string"),
        ({"name": "explore_file", "arguments": ["a.csv"]}, "params.arguments is not an object"),
    ],
    ids=json.dumps,
)
def test_a_wrong_request_is_invalid_params(
    client: Client, params: dict[str, object], words: str
) -> None:
    with pytest.raises(RpcError) as caught:
        client.request("prompts/get", params)
    assert caught.value.code == -32602
    assert words in caught.value.message


# ---- completions ----


def test_files_that_begin_so_come_before_those_that_hold_it(client: Client) -> None:
    values = of_prompt(client, "explore_file", "path", "a")
    assert values[0] == "a.csv"
    assert set(values) == {"a.csv", "Sales.xlsx", "data/c.parquet"}
    assert of_prompt(client, "explore_file", "path", "NÄME") == []  # only letters of ASCII
    assert of_prompt(client, "explore_file", "path", "näme") == ["näme.tsv"]
    assert of_prompt(client, "explore_file", "path", "b.CSV") == ["b.csv"]


def test_tables_are_variables_and_then_files(client: Client) -> None:
    values = of_prompt(client, "clean_table", "table", "")
    assert set(values[:3]) == {"sales", "costs", "total"}
    assert set(values[3:]) == {"a.csv", "b.csv", "Sales.xlsx", "näme.tsv", "data/c.parquet"}
    assert of_prompt(client, "clean_table", "table", "SAL") == ["sales", "Sales.xlsx"]


def test_columns_are_those_of_the_table_that_is_named(client: Client) -> None:
    values = of_prompt(client, "chart_column", "column", "", table="sales")
    assert values == ["month", "region", "amount"]
    assert of_prompt(client, "chart_column", "by", "e", table="costs") == ["euros", "year"]
    assert of_prompt(client, "chart_column", "column", "", table="nothing") == []
    assert set(of_prompt(client, "chart_column", "column", "")) == {
        *["month", "region", "amount"],
        *["year", "euros"],
    }


def test_columns_of_a_file_are_those_of_its_first_line(client: Client, daemon: Daemon) -> None:
    lines = {
        "comma.csv": 'year,"unit, of it","a ""b"" c",\n1,2,3',
        "semi.CSV": "Jahr;Größe; Wert \r\n1;2;3",
        "tabs.tsv": "\ufeffx\ty, z\tw\n",
        "one.csv": "only",
        "empty.csv": "",
    }
    for name, text in lines.items():
        (daemon.work / name).write_text(text, newline="")
    found = {n: of_prompt(client, "chart_column", "column", "", table=n) for n in lines}
    assert found == {
        "comma.csv": ["year", "unit, of it", 'a ""b"" c'],
        "semi.CSV": ["Jahr", "Größe", "Wert"],
        "tabs.tsv": ["x", "y, z", "w"],
        "one.csv": ["only"],
        "empty.csv": [],
    }
    for path in ("Sales.xlsx", "notes.txt", "../x.csv", "/etc/passwd.csv"):
        assert of_prompt(client, "chart_column", "column", "", table=path) == []
    for name in lines:
        (daemon.work / name).unlink()


def test_an_argument_without_completions_has_none(client: Client) -> None:
    ref = {"type": "ref/prompt", "name": "clean_table"}
    completion = complete(client, ref, "purpose", "a")
    assert completion == {"values": [], "total": 0, "hasMore": False}


def test_the_template_completes_paths(client: Client) -> None:
    ref = {"type": "ref/resource", "uri": "workspace:///{+path}"}
    assert complete(client, ref, "path", "data/")["values"] == ["data/c.parquet"]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"ref": {"type": "ref/prompt", "name": "explore_file"}},
        {
            "ref": {"type": "ref/prompt", "name": "explore_file"},
            "argument": {"name": "path", "value": 5},
        },
        {
            "ref": {"type": "ref/prompt", "name": "nothing"},
            "argument": {"name": "path", "value": ""},
        },
        {
            "ref": {"type": "ref/prompt", "name": "explore_file"},
            "argument": {"name": "file", "value": ""},
        },
        {
            "ref": {"type": "ref/resource", "uri": "file:///{x}"},
            "argument": {"name": "path", "value": ""},
        },
        {"ref": {"type": "ref/tool"}, "argument": {"name": "path", "value": ""}},
        {"ref": 5, "argument": {"name": "path", "value": ""}},
    ],
    ids=json.dumps,
)
def test_a_wrong_completion_is_invalid_params(client: Client, params: dict[str, object]) -> None:
    with pytest.raises(RpcError) as caught:
        client.request("completion/complete", params)
    assert caught.value.code == -32602


def test_a_hundred_values_at_most(start: type_of_start) -> None:
    daemon = start()
    for number in range(150):
        (daemon.work / f"{number:03}.csv").write_text("")
    ref = {"type": "ref/resource", "uri": "workspace:///{+path}"}
    completion = complete(daemon.client(), ref, "path", ".csv")
    assert len(completion["values"]) == 100
    assert (completion["total"], completion["hasMore"]) == (150, True)


# ---- what is known of the namespace ----


def tables(client: Client) -> list[str]:
    return of_prompt(client, "clean_table", "table", "")


def test_completions_start_no_kernel(start: type_of_start) -> None:
    daemon = start()
    client = daemon.client()
    assert tables(client) == []
    text_of(client, "clean_table", table="df")
    assert daemon.children() == []


def test_what_is_known_follows_undo_and_outlives_the_kernel(start: type_of_start) -> None:
    daemon = start()
    client = daemon.client()
    client.run_saved(daemon, "import pandas as pd\none = pd.DataFrame({'a': [1]})")
    client.run_saved(daemon, "two = pd.DataFrame({'b': [1]})")
    assert tables(client) == ["two", "one"]
    daemon.kill_kernel()
    assert tables(client) == ["two", "one"]
    assert not client.call("undo").is_error
    assert tables(client) == ["one"]
    assert not client.run("del one", fresh=False).is_error
    assert tables(client) == []


def test_nothing_is_known_where_nothing_stays(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_PERSIST_NAMESPACE": "0"})
    client = daemon.client()
    assert not client.run("import pandas as pd\none = pd.DataFrame({'a': [1]})").is_error
    assert tables(client) == []


def test_users_see_their_own(start: type_of_start, tmp_path: Path) -> None:
    daemon = start(env={"VIVARIUM_USER_HEADER": "X-User-ID"})
    ann, bob = daemon.client(X_User_ID="ann"), daemon.client(X_User_ID="bob")
    assert not ann.run("import pandas as pd\nann_s = pd.DataFrame({'a': [1]})").is_error
    assert tables(ann) == ["ann_s"]
    assert tables(bob) == []
    nobody = daemon.client()
    assert tables(nobody) == []
    assert "begins" not in text_of(nobody, "explore_file", path="a.csv")
