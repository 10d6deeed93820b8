"""Interrupts, restarts, shutdowns, several clients, and clients that misbehave."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from queue import Empty

import psutil
import pytest
import zmq
from helpers import LIMIT, control, kernel, outputs_of, outputs_of_all, quiet, reply_to, run, text_of, value_of, wait_until
from jupyter_client import BlockingKernelClient
from jupyter_client.connect import write_connection_file


def alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pid_of(client):
    return control(client, "usage_request")["content"]["pid"]


def client_of(manager_or_file):
    client = BlockingKernelClient(connection_file=str(manager_or_file))
    client.load_connection_file()
    client.start_channels()
    client.wait_for_ready(timeout=LIMIT)
    return client


class Process:
    """A kernel that nobody manages."""

    def __init__(self, program, folder, **settings):
        variables = settings.pop("env", {})
        self.file, _ = write_connection_file(str(Path(folder) / "c.json"), **settings)
        env = {k: v for k, v in os.environ.items() if k != "JPY_PARENT_PID"} | variables
        self.process = subprocess.Popen([program, self.file], env=env)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def client(self):
        def bound():
            # Ports that were 0 are written once they are known.
            info = json.loads(Path(self.file).read_text())
            if info.get("transport") == "ipc":
                return os.path.exists(f"{info['ip']}-{info['shell_port']}")
            return info["shell_port"] != 0

        wait_until(bound)
        return client_of(self.file)


def test_an_interrupt_stops_a_sleeping_cell_and_variables_live_on():
    with kernel() as (manager, client):
        assert manager.kernel_spec.interrupt_mode == "message"
        run(client, "x = 41")
        message = client.execute("sleep(30)")
        queued = client.execute("x = 0")
        time.sleep(0.3)
        start = time.monotonic()
        manager.interrupt_kernel()
        reply = reply_to(client, message)["content"]
        assert time.monotonic() - start < 0.5
        assert (reply["status"], reply["ename"]) == ("error", "Interrupted")
        assert reply_to(client, queued)["content"]["status"] == "aborted"
        # Between cells, an interrupt means nothing.
        manager.interrupt_kernel()
        assert value_of(client, "x + 1") == "42"


def test_an_interrupt_right_after_the_start_is_not_lost():
    with kernel() as (_, client):
        for _ in range(30):
            message = client.execute("sleep(30)")
            while reply_to(client, message, "iopub")["msg_type"] != "execute_input":
                pass
            control(client, "interrupt_request")
            assert reply_to(client, message)["content"]["ename"] == "Interrupted"


def test_signals(program, tmp_path):
    with Process(program, tmp_path) as p:
        client = p.client()
        os.kill(p.process.pid, signal.SIGINT)
        message = client.execute("sleep(30)")
        while reply_to(client, message, "iopub")["msg_type"] != "execute_input":
            pass
        start = time.monotonic()
        os.kill(p.process.pid, signal.SIGINT)
        assert reply_to(client, message)["content"]["ename"] == "Interrupted"
        assert time.monotonic() - start < 0.5
        message = client.execute("sleep(30)")
        while reply_to(client, message, "iopub")["msg_type"] != "execute_input":
            pass
        os.kill(p.process.pid, signal.SIGTERM)
        assert p.process.wait(5) == 0
        client.stop_channels()


def test_restart_and_shutdown():
    with kernel() as (manager, client):
        run(client, "x = 1")
        first = pid_of(client)
        manager.restart_kernel()
        client.wait_for_ready(timeout=LIMIT)
        second = pid_of(client)
        assert first != second and not alive(first)
        assert run(client, "x")[0]["ename"] == "NameError"
        start = time.monotonic()
        reply = control(client, "shutdown_request", {"restart": False})
        assert reply["content"] == {"status": "ok", "restart": False}
        wait_until(lambda: not alive(second), 3)
        assert time.monotonic() - start < 2


@pytest.mark.parametrize("channel", ["control", "shell"])
def test_shutdown_replies_before_it_leaves(program, tmp_path, channel):
    with Process(program, tmp_path) as p:
        client = p.client()
        running = client.execute("sleep(30)") if channel == "control" else None
        while running and reply_to(client, running, "iopub")["msg_type"] != "execute_input":
            pass
        message = client.session.msg("shutdown_request", {"restart": True})
        getattr(client, f"{channel}_channel").send(message)
        reply = reply_to(client, message["header"]["msg_id"], channel)
        assert reply["content"] == {"status": "ok", "restart": True}
        if running:
            assert reply_to(client, running)["content"]["ename"] == "Interrupted"
        kinds = [m["msg_type"] for m in outputs_of(client, message["header"]["msg_id"])]
        assert kinds == ["shutdown_reply"]
        assert p.process.wait(5) == 0
        client.stop_channels()


MADE = "let t = target(potential::gaussian(#{ dim: 3 }));"
# It goes on for minutes unless it is stopped.
LONG = "let run = sample(t, sampler::sgld(#{ step: 1e-2, gradient: gradient::full() }), #{ chains: 2, steps: 200_000_000, every: 100_000 });"
AGAIN = "continue with %continue runs/notebook-1/sample-1"


def pictures(client, end):
    """What a bar shows from now on, until `end` says so of the last picture or nothing comes any more."""
    found = []
    while not (found and end(found)):
        try:
            message = client.get_iopub_msg(timeout=3)
        except Empty:
            break
        if message["msg_type"].endswith("display_data"):
            found.append(message["content"])
    return found


@pytest.mark.parametrize("how", ["restart", "shutdown", "SIGTERM", "SIGKILL", "error"])
def test_no_bar_is_left_behind_without_a_word(how, tmp_path):
    with kernel("ergodic", cwd=str(tmp_path)) as (manager, client):
        assert run(client, MADE)[0]["status"] == "ok"
        # One that fails on the way.
        late = ", observe: [|s| { if s.step > 20_000_000 { throw `late` } 1.0 }]" if how == "error" else ""
        client.execute(LONG.replace(" });", late + " });"))
        first = pictures(client, lambda found: len(found) == 2)
        assert len({p["transient"]["display_id"] for p in first}) == 1
        # Killed, nobody shows anything any more: so each picture itself says so after a while.
        assert "animation:ergodic-silence 0s 20s" in first[-1]["data"]["text/html"]
        assert f"if the session is over, {AGAIN}" in first[-1]["data"]["text/html"]
        if how == "restart":
            manager.restart_kernel()
        elif how == "shutdown":
            control(client, "shutdown_request", {"restart": False})
        elif how.startswith("SIG"):
            os.kill(pid_of(client), getattr(signal, how))
        if how == "SIGKILL":
            return
        last = pictures(client, lambda found: "stopped" in found[-1]["data"]["text/plain"])[-1]
        assert last["transient"] == first[0]["transient"]
        assert f"stopped: {AGAIN}" in last["data"]["text/plain"], last
        assert AGAIN in last["data"]["text/html"] and "ergodic-silence" not in last["data"]["text/html"]
        if how == "restart":
            # The very words go on where it was.
            client.wait_for_ready(timeout=LIMIT)
            message = client.execute(AGAIN.removeprefix("continue with "))
            assert "execute these first" in reply_to(client, message)["content"]["evalue"]
            run(client, MADE)
            client.execute(AGAIN.removeprefix("continue with "))
            share = [float(pictures(client, lambda f: len(f) == 1)[0]["data"]["text/plain"].split()[1]) for _ in range(2)]
            assert share[1] >= share[0] >= float(last["data"]["text/plain"].split()[1]), (share, last)
            manager.interrupt_kernel()


def test_two_clients_at_once():
    with kernel() as (manager, one):
        two = client_of(manager.connection_file)
        run(one, "x = 1")
        ids = [(c, n, c.execute(f"sleep(0.05)\nprint({n})\nx + {n}")) for n in range(10) for c in (one, two)]
        for client, _, message in ids:
            assert reply_to(client, message)["content"]["status"] == "ok"
        # Each sees what both do, in whatever order their cells arrived.
        for client in (one, two):
            seen = outputs_of_all(client, [message for _, _, message in ids])
            for _, n, message in ids:
                assert text_of(seen[message]) == f"{n}\n"
                assert seen[message][-1]["content"]["data"]["text/plain"] == str(n + 1)
        # An error of one does not abort what the other has queued.
        failing = one.execute("sleep(0.5)\nerror(1)")
        other = two.execute("1 + 1")
        assert reply_to(one, failing)["content"]["status"] == "error"
        assert reply_to(two, other)["content"]["status"] == "ok"
        # Each is asked itself.
        message = two.execute('input("two?")', allow_stdin=True)
        assert two.get_stdin_msg(timeout=10)["content"]["prompt"] == "two?"
        two.input("here")
        assert reply_to(two, message)["content"]["status"] == "ok"
        two.stop_channels()


def test_a_bad_signature_is_ignored():
    with kernel() as (manager, client):
        stranger = BlockingKernelClient(connection_file=manager.connection_file)
        stranger.load_connection_file()
        stranger.session.key = b"wrong"
        stranger.start_channels()
        stranger.execute("x = 666")
        stranger.control_channel.send(stranger.session.msg("shutdown_request", {"restart": False}))
        assert quiet(stranger)
        assert run(client, "x")[0]["ename"] == "NameError"
        stranger.stop_channels()


def test_a_message_is_not_executed_twice():
    with kernel() as (_, client):
        message = client.session.msg("execute_request", {"code": 'print("once")', "silent": False})
        frames = client.session.serialize(message)
        for _ in range(2):
            client.shell_channel.socket.send_multipart(frames)
        reply_to(client, message["header"]["msg_id"])
        assert quiet(client)


def test_rubbish_does_not_hurt():
    with kernel() as (manager, client):
        info = manager.get_connection_info()
        for port in ("shell_port", "iopub_port", "hb_port", "control_port", "stdin_port"):
            for rubbish in (b"", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 64, os.urandom(1000)):
                with socket.create_connection((info["ip"], info[port])) as s:
                    s.sendall(rubbish)
        dealer = zmq.Context.instance().socket(zmq.DEALER)
        dealer.connect(f"tcp://{info['ip']}:{info['shell_port']}")
        for frames in ([b""], [b"x"] * 20, [b"<IDS|MSG>", b"", b"", b"", b"", b""], [b"<IDS|MSG>"]):
            dealer.send_multipart(frames)
        assert dealer.poll(300) == 0
        dealer.close()
        assert value_of(client, "1 + 1") == "2"


def test_without_a_key(program, tmp_path):
    with Process(program, tmp_path, key=b"") as p:
        client = p.client()
        assert value_of(client, "1 + 1") == "2"
        client.stop_channels()


def test_ipc(program, tmp_path):
    with Process(program, tmp_path, transport="ipc", ip=str(tmp_path / "k")) as p:
        client = p.client()
        assert value_of(client, "1 + 1") == "2"
        control(client, "shutdown_request", {"restart": False})
        assert p.process.wait(5) == 0
        assert not list(tmp_path.glob("k-*")), "the sockets are removed"
        client.stop_channels()


def test_free_ports_are_written_into_the_file(program, tmp_path):
    with Process(program, tmp_path) as p:
        p.process.kill()
        p.process.wait()
        info = json.loads(Path(p.file).read_text())
        info |= {key: 0 for key in info if key.endswith("_port")}
        Path(p.file).write_text(json.dumps(info))
        p.process = subprocess.Popen([program, p.file])
        client = p.client()
        assert value_of(client, "1 + 1") == "2"
        client.stop_channels()


def test_the_history_outlives_the_kernel(program, tmp_path):
    for number in (1, 2):
        history = str(tmp_path / "deep/history.jsonl")
        with Process(program, tmp_path, env={"DEMO_HISTORY": history}) as p:
            client = p.client()
            run(client, f"x = {number}")
            message = client.history(hist_access_type="tail", n=9)
            found = reply_to(client, message)["content"]["history"]
            assert found == [[n, 1, f"x = {n}"] for n in range(1, number + 1)]
            client.stop_channels()
        os.remove(p.file)


CLIENT = """
import sys, time
from jupyter_client import BlockingKernelClient
client = BlockingKernelClient(connection_file=sys.argv[1])
client.load_connection_file()
client.start_channels()
client.wait_for_ready(timeout=20)
client.execute(sys.argv[2], allow_stdin=True)
print("sent", flush=True)
time.sleep(1000)
"""


def other_client(file, code):
    process = subprocess.Popen([sys.executable, "-c", CLIENT, str(file), code], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"sent\n"
    return process


def test_killing_a_client_does_not_hang_the_kernel():
    with kernel() as (manager, client):
        for code in ("sleep(1)\nlines(100000)", "sleep(0.5)\nlarge(50)", 'input("?")'):
            other = other_client(manager.connection_file, code)
            time.sleep(0.2)
            other.kill()
            other.wait()
            assert value_of(client, "1 + 1") == "2"


def test_a_suspended_client_does_not_hang_the_kernel():
    with kernel() as (manager, client):
        other = other_client(manager.connection_file, "1")
        os.kill(other.pid, signal.SIGSTOP)
        try:
            start = time.monotonic()
            for _ in range(8):
                reply, outputs = run(client, "large(20)")
                assert reply["status"] == "ok" and len(outputs) == 1
            assert time.monotonic() - start < 30
            memory = psutil.Process(pid_of(client)).memory_info().rss
            assert memory < 600 << 20, memory
        finally:
            os.kill(other.pid, signal.SIGCONT)
            other.kill()
            other.wait()


PARENT = """
import subprocess, sys, time
from jupyter_client.manager import start_new_kernel
# Nobody will read what the kernel then says: it must not care.
manager, client = start_new_kernel(kernel_name="demo", stderr=subprocess.PIPE)
client.execute(sys.argv[1])
message = client.session.msg("usage_request", {})
client.control_channel.send(message)
print(client.get_control_msg(timeout=10)["content"]["pid"], flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("code", ["1", "sleep(100)"])
def test_the_kernel_leaves_when_its_parent_is_killed(code):
    parent = subprocess.Popen([sys.executable, "-c", PARENT, code], stdout=subprocess.PIPE)
    pid = int(parent.stdout.readline())
    assert alive(pid)
    parent.kill()
    parent.wait()
    wait_until(lambda: not alive(pid), 5)


def test_many_clients_come_and_go():
    with kernel() as (manager, client):
        process = psutil.Process(pid_of(client))
        before = process.num_threads(), process.num_fds()
        for _ in range(20):
            other = client_of(manager.connection_file)
            assert value_of(other, "2 * 3") == "6"
            other.stop_channels()
        wait_until(lambda: process.num_threads() <= before[0] and process.num_fds() <= before[1])


def test_a_notebook_runs():
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(c) for c in ("x = 6", 'print("hi")\nsvg(2)\nx * 7', "progress(0.1)")]
    NotebookClient(book, kernel_name="demo", timeout=LIMIT).execute()
    assert [c.execution_count for c in book.cells] == [1, 2, 3]
    assert [o.output_type for o in book.cells[1].outputs] == ["stream", "display_data", "execute_result"]
    assert book.cells[1].outputs[2].data["text/plain"] == "42"
    assert [o.data["text/plain"] for o in book.cells[2].outputs] == ["100 %"]


def test_jupyter_finds_the_kernel(program):
    from jupyter_client.kernelspec import KernelSpecManager

    spec = KernelSpecManager().get_kernel_spec("demo")
    assert (spec.display_name, spec.language, spec.interrupt_mode) == ("Demo", "demo", "message")
    assert Path(spec.resource_dir, "logo-svg.svg").exists()
    listed = subprocess.run([program, "list"], capture_output=True, text=True, check=True).stdout
    assert f"demo\tDemo\t{spec.resource_dir}\n" in listed
