"""Branches: a workspace copied with its variables and files, and both going on."""

from __future__ import annotations

import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import type_of_start
from harness import Client, Daemon, RpcError, is_alive, wait_until

TOOLS = {
    "VIVARIUM_TOOLS": "run_python,undo,restore,history,branch,list_files,read_text_file",
}


@pytest.fixture
def daemon(start: type_of_start) -> Daemon:
    return start(env=TOOLS)


@pytest.fixture
def client(daemon: Daemon) -> Client:
    return daemon.client()


def files_of(client: Client, **where: str) -> list[str]:
    return sorted(row["path"] for row in client.call("list_files", **where).data["files"])


def test_a_branch_has_variables_and_files_and_both_go_on(client: Client) -> None:
    client.run("import os\nx = [1]; y = x\nopen('a.txt', 'w').write('one')\nos.mkdir('d')")
    client.run("open('d/b.txt', 'w').write('two')")
    made = client.call("branch", name="try")
    assert not made.is_error, made.text
    assert made.data["cell"] == 2
    assert {row["name"] for row in made.data["names"]} == {"os", "x", "y"}
    assert "variables are as after cell 2" in made.text
    assert "files of the workspace were copied" in made.text
    assert "outside world was not" in made.text
    client.run("x.append('here'); open('a.txt', 'w').write('changed')")
    there = client.run("x.append('there'); y, open('a.txt').read()", branch="try")
    assert there.data["result"] == "([1, 'there'], 'one')"
    assert there.data["execution_count"] == 3
    client.run("os.remove('d/b.txt'); open('new.txt', 'w').close()", branch="try")
    assert client.run("y").data["result"] == "[1, 'here']"
    assert files_of(client) == ["a.txt", "d/b.txt"]
    assert files_of(client, branch="try") == ["a.txt", "new.txt"]
    read = client.call("read_text_file", path="a.txt", branch="try")
    assert read.text.startswith("one")


def test_the_files_of_a_branch_are_resources_of_its_name(client: Client) -> None:
    client.run("open('a b.txt', 'w').write('one')")
    client.call("branch", name="Try")
    (file,) = client.run("open('a b.txt', 'w').write('other')", branch="Try").data["files"]
    assert file == {"path": "a b.txt", "size": 5, "uri": "workspace://Try/a%20b.txt"}
    (listed,) = client.call("list_files", branch="Try").data["files"]
    assert listed["uri"] == file["uri"]

    def read(uri: str) -> str:
        (item,) = client.request("resources/read", {"uri": uri})["contents"]
        return str(item["text"])

    assert read(file["uri"]) == "other"
    assert read("workspace:///a%20b.txt") == "one"
    templates = client.request("resources/templates/list")["resourceTemplates"]
    assert templates[1]["uriTemplate"] == "workspace://{branch}/{+path}"
    with pytest.raises(RpcError, match="no branch 'try'; branches: Try"):
        read("workspace://try/a%20b.txt")


def test_where_no_branch_is_offered_none_has_resources(start: type_of_start) -> None:
    client = start().client()
    assert len(client.request("resources/templates/list")["resourceTemplates"]) == 1
    with pytest.raises(RpcError, match="no resource has this URI"):
        client.request("resources/read", {"uri": "workspace://Try/a"})


@pytest.mark.parametrize(
    ("walls", "place"), [("require:N", "sub"), ("off", ".branches/default@b/sub")]
)
def test_a_branch_works_on_its_own_files_wherever_the_session_was(
    start: type_of_start, walls: str, place: str
) -> None:
    client = start(env={**TOOLS, "VIVARIUM_WALLS": walls}).client()
    client.run("import os, sys; os.mkdir('sub'); os.chdir('sub'); sys.path.insert(0, os.getcwd())")
    client.call("branch", name="b")
    code = (
        "open('mine', 'w').close(); os.path.relpath(os.getcwd(), top), sys.path[0] == os.getcwd()"
    )
    top = client.run("top = os.path.dirname(os.getcwd()); top").data["result"]
    result = client.run(f"top = {top}\n{code}", branch="b")
    assert result.data["result"] == f"('{place}', True)"
    assert files_of(client) == []
    assert files_of(client, branch="b") == ["sub/mine"]
    client.run("os.chdir(top)", branch="b")  # on purpose: from now on that is where it is
    client.run("import os; os._exit(1)", branch="b")
    assert client.run("os.getcwd() == top", branch="b").data["result"] == "True"


def test_undo_and_history_of_a_branch_are_its_own(daemon: Daemon, client: Client) -> None:
    client.run("x = 1")
    client.call("branch", name="b")
    client.run("x = 2")
    client.run("x = 'b2'", branch="b")
    client.run("x = 'b3'", branch="b")
    wait_until(lambda: daemon.saved_upto("default@b") == 3)
    assert client.call("undo", cells=2, branch="b").data["cell"] == 1
    assert client.run("x", branch="b").data["result"] == "1"
    assert client.run("x").data["result"] == "2"
    rows = client.call("history", branch="b").data["cells"]
    assert [row["cell"] for row in rows] == [1, 2, 3, 4]
    assert [row["cell"] for row in client.call("history").data["cells"]] == [1, 2, 3]


def test_what_was_left_on_purpose_is_not_told_as_lost(
    start: type_of_start, daemon: Daemon, client: Client
) -> None:
    for value in range(1, 4):
        client.run_saved(daemon, f"x = {value}")
    client.call("restore", cell=1)
    client.call("branch", name="b")
    result = client.run("x", branch="b")
    assert result.data["result"] == "1"
    assert "1 variable restored, as after cell 1.\n" in result.text
    daemon.stop()
    result = start(env=TOOLS).client().run("x")
    assert result.data["result"] == "1"
    assert "1 variable restored, as after cell 1.\n" in result.text


def test_branches_are_found_again(start: type_of_start) -> None:
    first = start(env=TOOLS)
    client = first.client()
    client.run("x = 1; open('f', 'w').close()")
    client.call("branch", name="quiet")
    client.call("branch", name="used")
    client.run("x = 2", branch="used")
    wait_until(lambda: first.saved_upto("default@used") == 2)
    first.kill()
    client = start(env=TOOLS).client()
    assert client.run("x", branch="quiet").data["result"] == "1"
    assert client.run("x", branch="used").data["result"] == "2"
    assert client.run("x").data["result"] == "1"
    assert files_of(client, branch="quiet") == ["f"]


def test_a_branch_of_a_branch_does_not_hold_the_others(client: Client) -> None:
    client.run("x = 1; open('f', 'w').close()")
    client.call("branch", name="a")
    client.run("x = 2; open('g', 'w').close()", branch="a")
    assert not client.call("branch", name="b", branch="a").is_error
    assert client.run("import os; x, sorted(os.listdir())", branch="b").data["result"] == (
        "(2, ['f', 'g'])"
    )
    assert client.run("x").data["result"] == "1"


def test_a_branch_waits_for_its_turn_and_for_the_state(client: Client) -> None:
    client.run("import os, time, numpy; a = numpy.zeros(20_000_000)")
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(client.run, "open('on', 'w').close(); time.sleep(1); a += 1; x = 5")
        wait_until(lambda: files_of(client) == ["on"])
        made = client.call("branch", name="b")
        assert slow.result().exit_code == 0
    assert made.data["cell"] == 2
    assert client.run("x, a.sum()", branch="b").data["result"].startswith("(5, ")


def test_a_branch_of_a_dead_kernel_and_of_nothing(daemon: Daemon, client: Client) -> None:
    (daemon.work / "f").write_text("f")
    made = client.call("branch", name="empty")
    assert made.data["cell"] == 0
    assert "without variables" in made.text
    assert client.run("open('f').read()", branch="empty").data["result"] == "'f'"
    client.run("x = 1")
    wait_until(lambda: daemon.saved_upto() == 1)
    pid = daemon.kernel_pid()
    client.run("import os; os._exit(1)")
    wait_until(lambda: not is_alive(pid))
    assert client.call("branch", name="later").data["cell"] == 1
    assert client.run("x", branch="later").data["result"] == "1"


@pytest.mark.parametrize(("walls", "place"), [("require:N", "workspace"), ("off", "default@b")])
def test_a_kernel_of_a_branch_that_dies_comes_back_there(
    start: type_of_start, walls: str, place: str
) -> None:
    daemon = start(env={**TOOLS, "VIVARIUM_WALLS": walls})
    client = daemon.client()
    client.run("x = 1")
    client.call("branch", name="b")
    client.run("x = 2", branch="b")
    wait_until(lambda: daemon.saved_upto("default@b") == 2)
    os.kill(daemon.kernel_pid(), signal.SIGKILL)
    result = client.run("import os; x, os.path.basename(os.getcwd())", branch="b")
    assert result.data["result"] == f"(2, '{place}')"
    assert "killed by signal 9" in result.text


# ---- what is refused ----


def test_an_unknown_branch_is_an_error_that_names_those_there_are(client: Client) -> None:
    none = client.run("1", branch="nowhere")
    assert none.is_error
    assert "no branch 'nowhere'; branches: none" in none.text
    client.call("branch", name="one")
    result = client.call("list_files", branch="two")
    assert result.is_error
    assert "branches: one" in result.text


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "..", "a@b", "ä", "x" * 33, "a b"])
def test_bad_names_make_no_branch(daemon: Daemon, client: Client, name: str) -> None:
    result = client.call("branch", name=name)
    assert result.is_error
    assert "1 to 32 of" in result.text
    assert not (daemon.work / ".branches").exists()


def test_a_name_is_used_once(client: Client) -> None:
    client.run("x = 1")
    assert not client.call("branch", name="b").is_error
    again = client.call("branch", name="b")
    assert again.is_error
    assert "there is a branch b already" in again.text


def test_the_name_of_a_removed_branch_waits_for_a_restart(start: type_of_start) -> None:
    first = start(env=TOOLS)
    client = first.client()
    client.call("branch", name="b")
    client.run("x = 1", branch="b")
    shutil.rmtree(first.work / ".branches" / "default@b")
    again = client.call("branch", name="b")
    assert again.is_error
    assert "branch b was removed" in again.text
    first.stop()
    client = start(env=TOOLS).client()
    assert not client.call("branch", name="b").is_error
    assert "NameError" in client.run("x", branch="b").text


def test_files_that_cannot_be_copied_make_no_branch(daemon: Daemon, client: Client) -> None:
    client.run("x = 1")
    blocked = daemon.work / ".branches"
    blocked.mkdir()
    (blocked / ".default@b.partial").write_text("left by an earlier attempt")
    (daemon.work / "fine").write_text("fine")
    assert not client.call("branch", name="b").is_error
    assert files_of(client, branch="b") == ["fine"]
    blocked.chmod(0o500)
    blocked.rename(daemon.work / "away")
    blocked.write_text("in the way")
    result = client.call("branch", name="c")
    assert result.is_error
    assert "No branch was made" in result.text
    assert client.run("x").data["result"] == "1"


def test_without_the_tool_there_is_no_argument(start: type_of_start) -> None:
    client = start().client()
    (tool, *_) = client.request("tools/list")["tools"]
    assert "branch" not in tool["inputSchema"]["properties"]
    result = client.run("1", branch="b")
    assert result.is_error
    assert "no argument 'branch'" in result.text


def test_with_the_tool_every_tool_has_the_argument(client: Client) -> None:
    for tool in client.request("tools/list")["tools"]:
        assert tool["inputSchema"]["properties"]["branch"]["default"] == ""
    wrong = client.call("list_files", branch=1)
    assert wrong.is_error
    assert "branch must be a string" in wrong.text


def test_without_states_there_are_no_branches(start: type_of_start) -> None:
    client = start(env={"VIVARIUM_DURABILITY": "off", **TOOLS}).client()
    result = client.call("branch", name="b")
    assert result.is_error
    assert "VIVARIUM_DURABILITY=off" in result.text


# ---- users ----


def test_a_branch_belongs_to_its_user(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_USER_HEADER": "X-User", **TOOLS})
    alice, bob = daemon.client(X_User="alice"), daemon.client(X_User="bob")
    alice.run("x = 'alice'")
    bob.run("x = 'bob'")
    assert not alice.call("branch", name="b").is_error
    assert bob.run("x", branch="b").is_error
    assert not bob.call("branch", name="b").is_error
    assert alice.run("x", branch="b").data["result"] == "'alice'"
    assert bob.run("x", branch="b").data["result"] == "'bob'"
    assert (daemon.work / ".branches/alice@b").is_dir()


# ---- a copy that is not done ----


def fill(daemon: Daemon) -> None:
    """With so many files that copying them takes a while."""
    many = daemon.work / "many"
    many.mkdir()
    for number in range(20_000):
        (many / str(number)).write_text("x")


def partial_of(daemon: Daemon, name: str) -> Path:
    return daemon.work / f".branches/.default@{name}.partial"


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_a_copy_ends_with_its_daemon_and_is_no_branch(start: type_of_start, end: str) -> None:
    daemon = start(env=TOOLS)
    client = daemon.client()
    client.run("x = 1")
    fill(daemon)
    with ThreadPoolExecutor() as pool:
        made = pool.submit(client.call, "branch", name="b")
        wait_until(partial_of(daemon, "b").exists)
        if end == "stopped":
            daemon.stop()
            assert made.result().is_error
        else:
            daemon.kill()
            assert made.exception() is not None
    daemon.check_no_family()
    assert partial_of(daemon, "b").exists()
    client = start(env=TOOLS).client()
    assert "no branch 'b'" in client.run("x", branch="b").text
    assert not client.call("branch", name="b").is_error
    assert not partial_of(daemon, "b").exists()
    result = client.run("import os; x, len(os.listdir('many'))", branch="b")
    assert result.data["result"] == "(1, 20000)"


def test_a_cancelled_copy_is_removed(daemon: Daemon, client: Client) -> None:
    client.run("x = 1")
    fill(daemon)
    message = client.message("tools/call", {"name": "branch", "arguments": {"name": "b"}})
    with ThreadPoolExecutor() as pool:
        made = pool.submit(client.post, message)
        wait_until(partial_of(daemon, "b").exists)
        client.notify("notifications/cancelled", {"requestId": message["id"]})
        made.result()
    wait_until(lambda: not partial_of(daemon, "b").exists())
    assert client.run("x", branch="b").is_error
    assert client.run("x").data["result"] == "1"
