"""The kernel behind a Jupyter server, by REST and a websocket, as JupyterLab uses it."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid

import pytest
from helpers import LIMIT, wait_until

pytest.importorskip("jupyter_server")
websocket = pytest.importorskip("websocket")


class Server:
    def __init__(self, folder):
        self.folder = folder
        self.token = uuid.uuid4().hex
        settings = [f"--IdentityProvider.token={self.token}", f"--ServerApp.root_dir={folder}", "--ServerApp.disable_check_xsrf=True"]
        command = [sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", "--port=0", *settings]
        env = os.environ | {"HOME": str(folder), "JUPYTER_RUNTIME_DIR": str(folder / "runtime")}
        self.log = open(folder / "log", "w")
        self.process = subprocess.Popen(command, env=env, stdout=self.log, stderr=self.log)

    def __enter__(self):
        def written():
            # It is there before anything is in it.
            return [text for path in self.folder.glob("runtime/jpserver-*.json") if (text := path.read_text())]

        wait_until(written, 60)
        self.at = f"127.0.0.1:{json.loads(written()[0])['port']}"

        def answers():
            try:
                return self.rest("GET", "status")
            except urllib.error.URLError:
                return None

        wait_until(answers, 60)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.log.close()

    def rest(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"token {self.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"http://{self.at}/api/{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=LIMIT) as answer:
            text = answer.read()
        return json.loads(text) if text else None


class Page:
    """What a browser's page does."""

    def __init__(self, server, kernel):
        self.session = uuid.uuid4().hex
        address = f"ws://{server.at}/api/kernels/{kernel}/channels?session_id={self.session}&token={server.token}"
        self.socket = websocket.create_connection(address, timeout=LIMIT)

    def send(self, channel, kind, **content):
        header = {"msg_id": uuid.uuid4().hex, "msg_type": kind, "session": self.session}
        header |= {"username": "", "version": "5.3", "date": "2026-01-01T00:00:00Z"}
        message = {"channel": channel, "header": header, "parent_header": {}, "metadata": {}, "content": content}
        self.socket.send(json.dumps(message | {"buffers": []}))
        return header["msg_id"]

    def execute(self, code):
        return self.send("shell", "execute_request", code=code, silent=False, allow_stdin=True)

    def until(self, request, kind):
        while True:
            message = json.loads(self.socket.recv())
            if message["parent_header"].get("msg_id") == request and message["msg_type"] == kind:
                return message["content"]


def test_a_page_of_a_jupyter_server(tmp_path):
    with Server(tmp_path) as server:
        assert "demo" in server.rest("GET", "kernelspecs")["kernelspecs"]
        kernel = server.rest("POST", "kernels", {"name": "demo"})["id"]
        page = Page(server, kernel)
        info = page.until(page.send("shell", "kernel_info_request"), "kernel_info_reply")
        assert info["language_info"]["name"] == "demo"
        cell = page.execute('x = 3\nprint("hi")\nx * 2')
        assert page.until(cell, "stream")["text"] == "hi\n"
        assert page.until(cell, "execute_result")["data"]["text/plain"] == "6"
        cell = page.execute('input("who? ")')
        assert page.until(cell, "input_request")["prompt"] == "who? "
        page.send("stdin", "input_reply", value="Ada", status="ok")
        assert page.until(cell, "execute_result")["data"]["text/plain"] == "Ada"
        cell = page.execute("sleep(60)")
        page.until(cell, "execute_input")
        start = time.monotonic()
        server.rest("POST", f"kernels/{kernel}/interrupt")
        assert page.until(cell, "execute_reply")["ename"] == "Interrupted"
        assert time.monotonic() - start < 1
        server.rest("POST", f"kernels/{kernel}/restart")
        assert page.until(page.execute("x"), "execute_reply")["ename"] == "NameError"
        server.rest("DELETE", f"kernels/{kernel}")
        assert server.rest("GET", "kernels") == []
