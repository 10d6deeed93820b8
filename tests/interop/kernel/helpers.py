"""What the tests share."""

import contextlib
import time
from queue import Empty

from jupyter_client.manager import start_new_kernel

LIMIT = 20


@contextlib.contextmanager
def kernel(name="demo", **arguments):
    """A running kernel and a client."""
    manager, client = start_new_kernel(kernel_name=name, startup_timeout=LIMIT, **arguments)
    try:
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def reply_to(client, message_id, channel="shell", limit=LIMIT):
    """The reply to a request; replies to others are dropped."""
    end = time.monotonic() + limit
    get = getattr(client, f"get_{channel}_msg")
    while True:
        message = get(timeout=max(0.01, end - time.monotonic()))
        if message["parent_header"].get("msg_id") == message_id:
            return message


def outputs_of(client, message_id, limit=LIMIT):
    """All that a request made the kernel show, up to its idle status."""
    found = []
    while True:
        message = reply_to(client, message_id, "iopub", limit)
        if message["msg_type"] == "status":
            if message["content"]["execution_state"] == "idle":
                return found
        else:
            found.append(message)


def outputs_of_all(client, message_ids):
    """The same for several requests, in whatever order they are answered."""
    found = {i: [] for i in message_ids}
    running = set(message_ids)
    while running:
        message = client.get_iopub_msg(timeout=LIMIT)
        parent = message["parent_header"].get("msg_id")
        if message["msg_type"] != "status":
            found.get(parent, []).append(message)
        elif message["content"]["execution_state"] == "idle":
            running.discard(parent)
    return found


def run(client, code, limit=LIMIT, **arguments):
    """Run a cell: its reply and its outputs, without the echo of its input."""
    message_id = client.execute(code, **arguments)
    outputs = outputs_of(client, message_id, limit)
    reply = reply_to(client, message_id)["content"]
    return reply, [o for o in outputs if o["msg_type"] != "execute_input"]


def text_of(outputs, name="stdout"):
    streams = [o["content"] for o in outputs if o["msg_type"] == "stream"]
    return "".join(s["text"] for s in streams if s["name"] == name)


def value_of(client, code):
    reply, outputs = run(client, code)
    assert reply["status"] == "ok", reply
    return outputs[-1]["content"]["data"]["text/plain"]


def wait_until(condition, limit=LIMIT):
    end = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.02)


def quiet(client, seconds=0.5):
    """That nothing arrives on shell."""
    try:
        message = client.get_shell_msg(timeout=seconds)
    except Empty:
        return True
    raise AssertionError(f"unexpected: {message}")


def control(client, kind, content=None, limit=LIMIT):
    """Send a request on the control channel and wait for its reply."""
    message = client.session.msg(kind, content or {})
    client.control_channel.send(message)
    return reply_to(client, message["header"]["msg_id"], "control", limit)
