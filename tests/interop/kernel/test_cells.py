"""What cells print, show, ask, and how they end."""

import time

from helpers import control, kernel, outputs_of, quiet, reply_to, run, text_of, value_of


def test_variables_live_on_and_cells_are_counted():
    with kernel() as (_, client):
        assert run(client, "ψ = 20")[0]["execution_count"] == 1
        assert value_of(client, "ψ + 1") == "21"
        reply, outputs = run(client, "ψ = 5", silent=True)
        assert reply["status"] == "ok" and outputs == []
        reply, _ = run(client, "ψ", store_history=False)
        assert reply["execution_count"] == 3
        reply, outputs = run(client, "ψ")
        assert reply["execution_count"] == 3
        assert outputs[-1]["content"]["data"]["text/plain"] == "5"
        reply, outputs = run(client, 'print("quiet")', silent=True)
        assert outputs == []


def test_user_expressions():
    with kernel() as (_, client):
        asked = {"good": "x + 1", "bad": "y"}
        reply, outputs = run(client, "x = 1", user_expressions=asked)
        good, bad = (reply["user_expressions"][k] for k in asked)
        assert good["status"] == "ok" and good["data"]["text/plain"] == "2"
        assert bad["status"] == "error" and bad["ename"] == "NameError"
        assert outputs == []


def test_ten_thousand_prints_arrive_complete_and_in_order():
    with kernel() as (_, client):
        expected = "".join(f"{i}\n" for i in range(10_000))
        for code in ("lines(10000)", "\n".join(f"print({i})" for i in range(10_000))):
            reply, outputs = run(client, code)
            assert reply["status"] == "ok"
            assert text_of(outputs) == expected
            assert len(outputs) < 200, "prints are joined"


def test_text_keeps_its_place():
    with kernel() as (_, client):
        _, outputs = run(client, 'print("a")\neprint("b")\nprint("c")\nsvg(1)\nprint("d")\n1')
        kinds = [o["content"].get("text", o["msg_type"]) for o in outputs]
        assert kinds == ["a\n", "b\n", "c\n", "display_data", "d\n", "execute_result"]


def test_output_is_sent_while_the_cell_runs():
    with kernel() as (_, client):
        start = time.monotonic()
        message = client.execute('print("now")\nsleep(3)')
        while (m := client.get_iopub_msg(timeout=5))["msg_type"] != "stream":
            pass
        assert m["content"]["text"] == "now\n" and time.monotonic() - start < 2
        reply_to(client, message)


def test_a_thread_prints_after_its_cell():
    with kernel() as (_, client):
        first = client.execute("later(0.3)")
        reply_to(client, first)
        outputs_of(client, first)
        second = client.execute("sleep(0.6)")
        late = reply_to(client, first, "iopub")
        assert late["content"]["text"] == "later\n"
        reply_to(client, second)


def test_a_progress_is_updated_in_place():
    with kernel() as (_, client):
        _, outputs = run(client, "progress(0.3)")
        assert [o["msg_type"] for o in outputs] == ["display_data"] + ["update_display_data"] * 10
        assert {o["content"]["transient"]["display_id"] for o in outputs} == {"progress"}
        assert outputs[-1]["content"]["data"]["text/plain"] == "100 %"


def test_a_display_of_20_megabytes_arrives():
    with kernel() as (_, client):
        reply, outputs = run(client, "large(20)")
        assert reply["status"] == "ok"
        html = outputs[0]["content"]["data"]["text/html"]
        assert len(html) == 20 << 20 and html == "0123456789abcdef" * (20 << 16)


def test_cells_that_were_queued_are_aborted_after_an_error():
    with kernel() as (_, client):
        ids = [client.execute(c) for c in ("sleep(0.5)\nerror(1)", "x = 1", "1 + 1")]
        info = client.kernel_info()
        statuses = [reply_to(client, i)["content"]["status"] for i in ids]
        assert statuses == ["error", "aborted", "aborted"]
        assert reply_to(client, info)["content"]["status"] == "ok"
        assert run(client, "x")[0]["ename"] == "NameError"
        ids = [client.execute("sleep(0.5)\nerror(1)", stop_on_error=False), client.execute("x = 1")]
        assert [reply_to(client, i)["content"]["status"] for i in ids] == ["error", "ok"]


def test_a_panic_costs_a_cell_only():
    with kernel() as (_, client):
        run(client, "x = 7")
        reply, outputs = run(client, "panic()")
        assert reply["ename"] == "Panic" and outputs[-1]["msg_type"] == "error"
        assert value_of(client, "x") == "7"


def answer(client, value):
    request = client.get_stdin_msg(timeout=10)
    client.input(value)
    return request["content"]


def test_input():
    with kernel() as (_, client):
        message = client.execute('print("who?")\nname = input("name: ")\npassword("word: ")', allow_stdin=True)
        assert answer(client, "Ada") == {"prompt": "name: ", "password": False}
        assert answer(client, "lovelace") == {"prompt": "word: ", "password": True}
        assert reply_to(client, message)["content"]["status"] == "ok"
        outputs = outputs_of(client, message)
        assert text_of(outputs) == "who?\n"
        assert outputs[-1]["content"]["data"]["text/plain"] == "lovelace"
        assert value_of(client, "name") == "Ada"
        reply, _ = run(client, 'input("?")', allow_stdin=False)
        assert reply["ename"] == "InputError" and "does not allow" in reply["evalue"]


def test_a_question_can_be_interrupted():
    with kernel() as (manager, client):
        message = client.execute('input("?")', allow_stdin=True)
        client.get_stdin_msg(timeout=10)
        manager.interrupt_kernel()
        assert reply_to(client, message)["content"]["ename"] == "Interrupted"
        # The late answer is nobody's.
        client.input("late")
        message = client.execute('input("again?")', allow_stdin=True)
        assert answer(client, "fresh")["prompt"] == "again?"
        assert outputs_of(client, message)[-1]["content"]["data"]["text/plain"] == "fresh"


def test_comms_are_closed():
    with kernel() as (_, client):
        message = client.session.msg("comm_open", {"comm_id": "c", "target_name": "t", "data": {}})
        client.shell_channel.send(message)
        closed = outputs_of(client, message["header"]["msg_id"])
        assert [(m["msg_type"], m["content"]["comm_id"]) for m in closed] == [("comm_close", "c")]
        assert reply_to(client, client.comm_info())["content"] == {"status": "ok", "comms": {}}
        message = client.session.msg("comm_msg", {"comm_id": "c", "data": {}})
        client.shell_channel.send(message)
        assert outputs_of(client, message["header"]["msg_id"]) == []
        assert quiet(client, 0.2)


def test_control_answers_while_a_cell_runs():
    with kernel() as (_, client):
        message = client.execute("sleep(2)")
        start = time.monotonic()
        info = control(client, "kernel_info_request")
        assert info["content"]["language_info"]["name"] == "demo"
        usage = control(client, "usage_request")["content"]
        assert usage["kernel_memory"] > 0 and usage["pid"] > 0
        assert control(client, "usage_request")["content"]["kernel_cpu"] >= 0
        refused = control(client, "debug_request", {"type": "request", "seq": 3, "command": "attach"})
        assert refused["msg_type"] == "debug_reply"
        assert (refused["content"]["success"], refused["content"]["request_seq"]) == (False, 3)
        unknown = control(client, "create_subshell_request")
        assert unknown["content"]["status"] == "error"
        assert time.monotonic() - start < 1
        # Busy and idle around requests on control too.
        parent = info["parent_header"]["msg_id"]
        assert client.hb_channel.is_beating()
        seen = []
        while len(seen) < 2:
            m = client.get_iopub_msg(timeout=5)
            if m["parent_header"].get("msg_id") == parent:
                seen.append(m["content"]["execution_state"])
        assert seen == ["busy", "idle"]
        reply_to(client, message)


def test_completion_counts_code_points():
    with kernel() as (_, client):
        code = 'print("𝜓𝜓", pri'
        content = reply_to(client, client.complete(code))["content"]
        assert content["matches"] == ["print"]
        assert (content["cursor_start"], content["cursor_end"]) == (len(code) - 3, len(code))
        typed = content["metadata"]["_jupyter_types_experimental"]
        assert typed == [{"start": 12, "end": 15, "text": "print", "type": "function", "signature": "(x, …)"}]
        # A client of 5.1 counts UTF-16 units: both letters are two.
        asked = {"code": code + "nt) + svg", "cursor_pos": len(code) + 2}
        message = client.session.msg("complete_request", asked)
        message["header"]["version"] = "5.1"
        client.shell_channel.send(message)
        content = reply_to(client, message["header"]["msg_id"])["content"]
        assert content["matches"] == ["print"]
        assert (content["cursor_start"], content["cursor_end"]) == (len(code) - 1, len(code) + 2)
        content = reply_to(client, client.inspect("lines(3)", 2))["content"]
        assert not content["found"]
        content = reply_to(client, client.inspect("lines(3)", 5, 1))["content"]
        assert content["found"] and "no more" in content["data"]["text/plain"]
