"""input() in a cell asks the user, where the client can: by a request on the stream of the
call, by an input_required that leads back to the cell, or as a task does.
"""

from __future__ import annotations

import time
from typing import Any

from conftest import type_of_start
from harness import Daemon, Result, wait_until
from stateless import Stateless
from test_asks import DECLINE, Conversation
from test_tasks import TASKS
from test_websocket import Talk

NAME = "name = input('Your name? ')\nprint('Hello,', name)"
TWO = "first = input('First? ')\nsecond = input('Second? ')\nfirst + second"


def line(text: str) -> dict[str, Any]:
    return {"action": "accept", "content": {"line": text}}


def asked(question: dict[str, Any]) -> str:
    """The prompt of an elicitation/create."""
    assert question["params"]["requestedSchema"]["required"] == ["line"]
    words = question["params"]["message"]
    assert isinstance(words, str)
    return words.removeprefix("The Python code that runs asks: ")


# ---- sessions ----


def test_the_user_is_asked(live: Daemon) -> None:
    talk = Conversation(live, elicitation={})
    result = talk.result("run_python", lambda _: line("Ada Ünal"), code=NAME)
    assert [asked(question) for question in talk.asked] == ["Your name? "]
    assert result.data["stdout"].endswith("Hello, Ada Ünal\n")
    answers = iter(["a", "b"])
    result = talk.result("run_python", lambda _: line(next(answers)), code=TWO)
    assert result.data["result"] == "'ab'"


def test_who_declines_or_does_not_answer_ends_the_input(live: Daemon) -> None:
    talk = Conversation(live, elicitation={})
    for answer in (DECLINE, {"action": "cancel"}, None):
        result = talk.result("run_python", lambda _, end=answer: end, code=NAME)  # type: ignore[misc]
        assert result.exit_code == 1
        assert "Error: EOFError: the user gave no answer (exit code 1)" in result.text
        assert "kernelbase" not in result.text


def test_what_is_no_answer_is_asked_again(live: Daemon) -> None:
    talk = Conversation(live, elicitation={})
    empty: dict[str, Any] = {"action": "accept"}
    answers = iter([empty, empty | {"content": {"line": 7}}, line("x")])
    result = talk.result("run_python", lambda _: next(answers), code=NAME)
    assert result.data["stdout"].endswith("Hello, x\n")
    assert len(talk.asked) == 3


def test_no_time_counts_while_the_user_thinks(live: Daemon) -> None:
    talk = Conversation(live, elicitation={})

    def slowly(_: dict[str, Any]) -> dict[str, Any]:
        time.sleep(1.5)  # longer than the cell's own time
        return line("x")

    result = talk.result("run_python", slowly, code=NAME, timeout_seconds=1)
    assert result.exit_code == 0


def test_who_declines_again_and_again_gives_no_time(live: Daemon) -> None:
    talk = Conversation(live, elicitation={})
    code = (
        "import time\nwhile True:\n try: number = int(input('?')); break\n"
        " except Exception: time.sleep(0.2)"
    )
    result = talk.result("run_python", lambda _: DECLINE, code=code, timeout_seconds=2)
    assert result.exit_code == 124
    answers = iter([line("1"), DECLINE])
    code = "input(); time.sleep(2.5)\ntry: input()\nexcept EOFError: time.sleep(2.5)"
    result = talk.result("run_python", lambda _: next(answers), code=code, timeout_seconds=4)
    assert result.exit_code == 124
    code = "input(); time.sleep(2.5); input(); time.sleep(2.5)"
    result = talk.result("run_python", lambda _: line("1"), code=code, timeout_seconds=4)
    assert result.exit_code == 0


def test_who_cannot_be_asked_is_told_at_once(live: Daemon) -> None:
    result = live.client().run("input('?')")
    assert "input() has nobody to ask here" in result.text
    talk = Conversation(live, elicitation={})
    result = talk.result(
        "run_python", lambda _: line("x"), code="import getpass; getpass.getpass()"
    )
    assert "getpass() is not offered" in result.text
    assert talk.asked == []


def test_nobody_is_asked_without_confirm(start: type_of_start) -> None:
    talk = Conversation(start(env={"VIVARIUM_CONFIRM": "0"}), elicitation={})
    result = talk.result("run_python", lambda _: line("x"), code="input('?')")
    assert "input() has nobody to ask here" in result.text


def test_threads_ask_one_after_the_other(live: Daemon) -> None:
    talk = Conversation(live, elicitation={})
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(4) as pool: answers = set(pool.map(input, 'abcd'))\nanswers"
    )
    result = talk.result("run_python", lambda question: line(asked(question)), code=code)
    assert result.data["result"] == "{'a', 'b', 'c', 'd'}"
    assert sorted(map(asked, talk.asked)) == list("abcd")


def open_question(daemon: Daemon, code: str = NAME) -> tuple[Talk, Any, Any]:
    """A call whose cell has asked: its id, and the question."""
    talk = Talk(daemon).initialize(elicitation={})
    wanted = talk.ask_run(code)
    question = talk.read()
    assert question["method"] == "elicitation/create"
    return talk, wanted, question


def test_a_thread_does_not_take_the_answer_to_the_next_cell(live: Daemon) -> None:
    code = (
        "import threading, time\n"
        "threads = [threading.Thread(target=input, args=(n,)) for n in '123']\n"
        "for thread in threads: thread.start()\ntime.sleep(0.5)"
    )
    left, wanted, question = open_question(live, code)
    assert left.read()["params"]["requestId"] == question["id"]  # withdrawn at the cell's end
    assert left.read()["id"] == wanted
    left.ws.sock.close()
    talk = Conversation(live, elicitation={})
    code = "input('mine? ') + str([thread.join() for thread in threads])"
    result = talk.result("run_python", lambda _: line("yes"), code=code, timeout_seconds=20)
    assert result.data["result"] == "'yes[None, None, None]'"


def test_a_cell_that_asks_can_be_cancelled(live: Daemon) -> None:
    talk, wanted, question = open_question(live, "kept = 1\ninput('?')")
    talk.cancel(wanted)
    withdrawn = talk.read()
    assert withdrawn["params"]["requestId"] == question["id"]
    assert Result(live.client().call("run_python", code="kept").raw).data["result"] == "1"
    talk.ws.sock.close()


def test_a_kernel_that_dies_while_it_asks(live: Daemon) -> None:
    live.client().run("1")
    talk, wanted, question = open_question(
        live,
        "import os, threading, signal\n"
        "threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()\ninput('?')",
    )
    withdrawn = talk.read()
    assert withdrawn["params"]["requestId"] == question["id"]
    answer = talk.read()
    assert answer["id"] == wanted
    assert "SIGKILL" in answer["result"]["content"][0]["text"]
    assert live.client().run("1").exit_code == 0
    talk.ws.sock.close()


# ---- 2026-07-28 ----


class Asked:
    """A client that is asked in its results."""

    def __init__(self, daemon: Daemon, **extensions: object) -> None:
        able = {"extensions": extensions} if extensions else {}
        self.client = Stateless(daemon, elicitation={}, **able)

    def run(self, code: str, **more: object) -> dict[str, Any]:
        return self.client.result("run_python", {"code": code}, **more)

    def question(self, result: dict[str, Any]) -> tuple[str, str]:
        """The key and the prompt."""
        assert result["resultType"] == "input_required"
        ((key, question),) = result["inputRequests"].items()
        return key, asked(question)

    def answer(self, code: str, result: dict[str, Any], answer: object) -> dict[str, Any]:
        key, _ = self.question(result)
        return self.run(code, inputResponses={key: answer}, requestState=result["requestState"])


def test_an_input_required_leads_back_to_the_cell(live: Daemon) -> None:
    asked_one = Asked(live)
    code = "runs = globals().get('runs', 0) + 1\n" + TWO
    result = asked_one.run(code)
    first, prompt = asked_one.question(result)
    assert prompt == "First? "
    result = asked_one.answer(code, result, line("a"))
    second, prompt = asked_one.question(result)
    assert (prompt, second != first) == ("Second? ", True)
    result = asked_one.answer(code, result, line("b"))
    assert result["structuredContent"]["result"] == "'ab'"
    assert live.client().run("runs").data["result"] == "1"


def test_a_result_that_answers_nothing_asks_again(live: Daemon) -> None:
    asked_one = Asked(live)
    result = asked_one.run(NAME)
    for rubbish in (7, {"action": "accept"}, {"action": "accept", "content": {"line": 7}}):
        result = asked_one.answer(NAME, result, rubbish)
        assert asked_one.question(result)[1] == "Your name? "
    result = asked_one.run(NAME, requestState=result["requestState"])  # none at all
    result = asked_one.answer(NAME, result, DECLINE)
    assert "EOFError" in result["content"][0]["text"]


def test_an_answer_comes_too_late(live: Daemon) -> None:
    asked_one = Asked(live)
    question = asked_one.run(NAME)
    result = asked_one.answer(NAME, question, line("x"))
    assert result["isError"] is False
    again = asked_one.answer(NAME, question, line("y"))  # the same result
    assert again["structuredContent"]["stdout"] == result["structuredContent"]["stdout"]


def test_a_restart_ends_what_asked(start: type_of_start) -> None:
    daemon = start()
    question = Asked(daemon).run(NAME)
    daemon.kill()
    after = Asked(start())
    result = after.answer(NAME, question, line("x"))
    assert "not beyond a restart" in result["content"][0]["text"]
    result = after.answer(NAME, after.run(NAME), line("x"))
    assert result["structuredContent"]["stdout"].endswith("Hello, x\n")


def test_a_new_cell_does_not_wait_for_what_nobody_answers(live: Daemon) -> None:
    asked_one = Asked(live)
    question = asked_one.run("try: input('?')\nexcept EOFError: ended = True")
    assert asked_one.question(question)
    assert live.client().run("ended").data["result"] == "True"


def test_nor_for_one_that_never_became_a_task(live: Daemon) -> None:
    asked_one = Asked(live, **{TASKS: {}})
    assert asked_one.question(asked_one.run("try: input('?')\nexcept EOFError: ended = 'task'"))
    assert live.client().run("ended").data["result"] == "'task'"


def test_who_is_asked_has_less_time_while_others_wait(start: type_of_start) -> None:
    """Twenty seconds: nobody knows whether he is still there."""
    daemon = start()
    talk, wanted, question = open_question(daemon)
    assert daemon.client().run("1").data["result"] == "1"
    withdrawn = talk.read()
    assert withdrawn["params"]["requestId"] == question["id"]
    answer = talk.read()
    assert answer["id"] == wanted
    assert "EOFError: the user gave no answer" in answer["result"]["content"][0]["text"]
    talk.ws.sock.close()


def asking_ticket(daemon: Daemon, code: str = NAME) -> str:
    """The id of a call that asks, but nobody yet."""
    daemon.client().run("1")
    talk, _, _ = open_question(daemon, code)
    assert talk.read()["method"] == "notifications/cancelled"
    text = talk.read()["result"]["content"][0]["text"]
    talk.ws.sock.close()
    return str(text.split('wait(call="')[1].split('"')[0])


def ask_wait(daemon: Daemon, ticket: str) -> tuple[Talk, Any]:
    """A conversation that waits for a call, and what it is asked."""
    talk = Talk(daemon).initialize(elicitation={})
    talk.ask("tools/call", {"name": "wait", "arguments": {"call": ticket}})
    question = talk.read()
    assert question["method"] == "elicitation/create"
    return talk, question


def test_what_two_who_wait_are_asked_one_answers(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_SOFT_DEADLINE": "1"})
    ticket = asking_ticket(daemon, TWO)
    (one, first), (other, same) = (ask_wait(daemon, ticket) for _ in "12")
    one.send({"jsonrpc": "2.0", "id": first["id"], "result": line("a")})
    withdrawn, second = other.read(), other.read()
    assert withdrawn["params"]["requestId"] == same["id"]
    assert [asked(question) for question in (same, second)] == ["First? ", "Second? "]
    other.send({"jsonrpc": "2.0", "id": second["id"], "result": line("b")})
    for talk in (one, other):
        while "result" not in (message := talk.read()):
            pass
        assert message["result"]["structuredContent"]["result"] == "'ab'"
        talk.ws.sock.close()


def test_who_waits_is_asked_too(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_SOFT_DEADLINE": "1"})
    client = daemon.client()
    client.run("1")
    talk = Conversation(daemon, elicitation={})
    code = "import time; time.sleep(2)\n" + NAME
    result = talk.result("run_python", lambda _: None, code=code)
    while result.data["end"] == "running":
        ticket = result.text.split('wait(call="')[1].split('"')[0]
        result = talk.result("wait", lambda _: line("late"), call=ticket)
    assert result.data["stdout"].endswith("Hello, late\n")
    assert [asked(question) for question in talk.asked] == ["Your name? "]


def test_a_question_outlives_patience(start: type_of_start) -> None:
    """It is withdrawn before its request is answered, and who waits is asked anew."""
    daemon = start(env={"VIVARIUM_SOFT_DEADLINE": "1"})
    daemon.client().run("1")
    talk, wanted, question = open_question(daemon)
    withdrawn = talk.read()
    assert withdrawn["params"]["requestId"] == question["id"]
    answer = talk.read()
    assert answer["id"] == wanted
    text = answer["result"]["content"][0]["text"]
    assert text.startswith("Waiting for an answer of the user")
    talk.send({"jsonrpc": "2.0", "id": question["id"], "result": line("too late")})
    arguments = {"call": text.split('wait(call="')[1].split('"')[0]}
    waiting = talk.ask("tools/call", {"name": "wait", "arguments": arguments})
    again = talk.read()
    assert asked(again) == "Your name? "
    talk.send({"jsonrpc": "2.0", "id": again["id"], "result": line("late")})
    answer = talk.read()
    assert answer["id"] == waiting
    assert answer["result"]["structuredContent"]["stdout"].endswith("Hello, late\n")
    talk.ws.sock.close()


def test_waiting_tells_who_cannot_be_asked(start: type_of_start) -> None:
    daemon = start(env={"VIVARIUM_SOFT_DEADLINE": "1"})
    daemon.client().run("1")
    talk = Conversation(daemon, elicitation={})
    code = "import time; time.sleep(2)\n" + NAME
    result = talk.result("run_python", lambda _: None, code=code)
    ticket = result.text.split('wait(call="')[1].split('"')[0]
    other = daemon.client()
    wait_until(lambda: "answer of the user" in other.call("wait", call=ticket).text, 20)
    result = talk.result("wait", lambda _: DECLINE, call=ticket)
    while result.data["end"] == "running":
        result = talk.result("wait", lambda _: DECLINE, call=ticket)
    assert "EOFError" in result.text


def test_a_task_asks(start: type_of_start) -> None:
    asked_one = Asked(start(env={"VIVARIUM_SOFT_DEADLINE": "1"}), **{TASKS: {}})
    task = asked_one.run("import time; time.sleep(2)\n" + NAME)
    while task.get("resultType") != "task":  # a slow start of the kernel asks otherwise
        task = asked_one.answer("import time; time.sleep(2)\n" + NAME, task, line("x"))
    del task["resultType"]
    ask = asked_one.client.ask
    while task["status"] == "working":
        task = ask("tasks/get", {"taskId": task["taskId"]})[1]["result"]
    ((key, question),) = task["inputRequests"].items()
    assert asked(question) == "Your name? "
    answers = {"taskId": task["taskId"], "inputResponses": {key: line("Task")}}
    assert ask("tasks/update", answers)[1]["result"]["resultType"] == "complete"
    while task["status"] != "completed":
        task = ask("tasks/get", {"taskId": task["taskId"]})[1]["result"]
    assert task["result"]["structuredContent"]["stdout"].endswith("Hello, Task\n")


def test_a_kernel_asks_only_when_it_may(live: Daemon) -> None:
    """Code in it can send whatever it likes."""
    send = (
        "kernel = get_ipython().kernel\nparent = kernel.get_parent()\n"
        "for _ in range(2000): kernel.session.send(kernel.stdin_socket, 'input_request',"
        " {'prompt': 'x' * 5000, 'password': False}, parent, ident=b'vivarium')\n'sent'"
    )
    assert live.client().run(send).data["result"] == "'sent'"
    talk = Conversation(live, elicitation={})
    result = talk.result("run_python", lambda _: line("x"), code=send)
    assert result.data["result"] == "'sent'"
    assert all(len(asked(question)) <= 1100 for question in talk.asked)
    assert live.client().run("1").exit_code == 0
