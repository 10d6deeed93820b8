"""The program's own kernel: what a notebook of scripts needs."""

import re
import time
import unittest

import jupyter_kernel_test as jkt
import pytest
from helpers import kernel, outputs_of, reply_to, run, text_of, value_of


class Suite(jkt.KernelTests):
    kernel_name = "ergodic"
    language_name = "rhai"
    file_extension = ".rhai"
    code_hello_world = 'print("hello, world")'
    code_stderr = "debug(1)"
    completion_samples = [
        {"text": "sampler::sg", "matches": {"sgld", "sghmc", "sgnht"}},
        {"text": "sampler::hmc(#{ leap", "matches": {"leapfrog: "}},
        {"text": "%wh", "matches": {"who"}},
        {"text": "nothing_like_it", "matches": set()},
    ]
    complete_code_samples = ["1 + 1", "let x = 2;", "fn f(x) { x }", "%who", ""]
    incomplete_code_samples = ["1 +", "print(", "let f = |x| {", "`a"]
    invalid_code_samples = ["1 )", "= 2", "let = 3"]
    code_page_something = "sampler::hmc?"
    code_clear_output = "clear_output()"
    code_generate_error = "no_such_function()"
    code_execute_result = [
        {"code": "1 + 2", "result": "3"},
        {"code": "[1, 2].len()", "result": "2"},
        {"code": "let y = 4; y * y", "result": "16"},
        {"code": "let λ = 3; λ * λ", "result": "9"},
        {"code": "#{ a: 1.0 / 3.0 }", "result": "name     value\na     0.333333"},
        {"code": 'markdown("*a*")', "mime": "text/markdown", "result": "*a*"},
    ]
    code_display_data = [
        {"code": "display(plot::curve([1, 2], [3.0, 4.0]))", "mime": "image/svg+xml"},
        {"code": "display([#{ a: 1 }])", "mime": "text/html"},
        {"code": "display(plot::curve([1, 2], [3.0, 4.0]))", "mime": "text/html"},
        {"code": 'display(table(["b", "a"], [[1, 2]]))', "mime": "text/html"},
    ]
    code_history_pattern = "1?+ 2*"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "sampler::hmc"


class Welcome(jkt.IopubWelcomeTests):
    kernel_name = "ergodic"
    support_iopub_welcome = True


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with kernel("ergodic", cwd=str(tmp_path_factory.mktemp("notebook"))) as (manager, client):
        client.manager = manager
        yield client


def test_input_asks_the_client(client):
    message = client.execute('let name = input("who? "); name + "!"', allow_stdin=True)
    assert client.get_stdin_msg(timeout=10)["content"]["prompt"] == "who? "
    client.input("Ada")
    assert outputs_of(client, message)[-1]["content"]["data"]["text/plain"] == "Ada!"
    assert reply_to(client, message)["content"]["status"] == "ok"
    reply, _ = run(client, "input()", allow_stdin=False)
    assert "does not allow" in reply["evalue"]
    # A cell that waits can be interrupted.
    message = client.execute("input()", allow_stdin=True)
    client.get_stdin_msg(timeout=10)
    client.manager.interrupt_kernel()
    assert reply_to(client, message)["content"]["status"] == "error"
    outputs_of(client, message)


LONG = "sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 50_000_000, every: 1000, chains: 2, observe: [observable::cost()] })"


def started(client, code):
    """Send a cell and wait until its progress is shown twice; its id and the messages so far."""
    message = client.execute(code)
    seen = []
    while sum(m["msg_type"].endswith("display_data") for m in seen) < 2:
        seen.append(reply_to(client, message, "iopub"))
    return message, seen


def test_progress_is_updated_in_its_place_and_an_interrupt_keeps_everything(client):
    run(client, "let kept = 41;")
    message, seen = started(client, f"let before = kept + 1; let long = {LONG};")
    begin = time.monotonic()
    client.manager.interrupt_kernel()
    reply = reply_to(client, message)["content"]
    assert time.monotonic() - begin < 2
    assert reply["ename"] == "Interrupted"
    shows = [m for m in seen + outputs_of(client, message) if m["msg_type"].endswith("display_data")]
    assert [m["msg_type"] for m in shows] == ["display_data"] + ["update_display_data"] * (len(shows) - 1)
    assert len({m["content"]["transient"]["display_id"] for m in shows}) == 1
    html = shows[-2]["content"]["data"]["text/html"]
    for part in ("chain-steps/s", "left", "cost", "<polyline"):
        assert part in html, part
    assert "stopped" in shows[-1]["content"]["data"]["text/plain"]
    assert value_of(client, "before") == "42"
    # The partial run can be looked at, with its draws so far …
    step, total = map(int, re.search(r"at step (\d+) of (\d+)", reply["evalue"]).groups())
    assert 0 < step < total
    folder = re.search(r'open\("([^"]+)"\)', reply["evalue"]).group(1)
    assert value_of(client, f'open("{folder}").step') == str(step)
    # … and goes on where it was.
    message, _ = started(client, "%continue")
    client.manager.interrupt_kernel()
    reply = reply_to(client, message)["content"]
    outputs_of(client, message)
    assert int(re.search(r"at step (\d+) of", reply["evalue"]).group(1)) > step


def test_a_run_that_went_on_is_the_run_without_an_interrupt(client):
    code = (
        "let g = target(potential::gaussian());"
        'let r = sample(g, sampler::hmc(), #{ steps: 1_500_000, every: 1000, name: "NAME", seed: 7, observe: [observable::cost()] });'
        'print(r.trace("cost", 0))'
    )
    message, _ = started(client, code.replace("NAME", "cut"))
    client.manager.interrupt_kernel()
    assert reply_to(client, message)["content"]["ename"] == "Interrupted"
    outputs_of(client, message)
    cut = text_of(run(client, "%continue")[1])
    assert cut.count(",") == 1499
    assert cut == text_of(run(client, code.replace("NAME", "whole"))[1])


def test_what_was_made_since_an_interrupt_stays(client):
    run(client, "let since = target(potential::gaussian());")
    one = "sample(since, sampler::hmc(), #{ steps: STEPS, every: 1000, observe: [observable::cost()] })"
    message, _ = started(client, f"let long = {one.replace('STEPS', '1_000_000')}; let after = {one.replace('STEPS', '2000')};")
    client.manager.interrupt_kernel()
    assert reply_to(client, message)["content"]["ename"] == "Interrupted"
    outputs_of(client, message)
    run(client, f"let mine = 42; let other = {one.replace('STEPS', '5000')};")
    reply, _ = run(client, "%continue", limit=120)
    assert reply["status"] == "ok", reply
    assert value_of(client, "[mine, long.step, after.step, other.step]") == "[42, 1000000, 2000, 5000]"
    assert value_of(client, "after.name != other.name") == "true"
    reply, _ = run(client, "%continue")
    assert "nothing was interrupted" in reply["evalue"]


def test_every_answer_is_shown(client):
    run(client, "let shown = 1;")
    _, outputs = run(client, "%set --seed 1\n%who\n1 + 1")
    data = [o["content"]["data"] for o in outputs]
    assert "seed 1" in data[0]["text/plain"] and "<table" in data[1]["text/html"] and data[2]["text/plain"] == "2"


def test_objects_in_tables_are_told_by_what_they_are(client):
    _, outputs = run(client, "#{ run: sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 20, every: 1 }), n: 1 }")
    html = outputs[-1]["content"]["data"]["text/html"]
    assert "Arc" not in html and "sample" in html


def test_a_name_can_be_run_again(client):
    code = 'sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 100, name: "again" }).name'
    assert [value_of(client, code) for _ in range(2)] == ["again", "again-2"]


def test_tables_and_figures_are_rich(client):
    run(client, "let small = sample(target(potential::gaussian()), sampler::hmc(), #{ steps: 1000, every: 1, chains: 2, observe: [observable::cost()] });")
    _, outputs = run(client, "small.summary()")
    html = outputs[-1]["content"]["data"]["text/html"]
    assert "<table" in html and "T virial" in html
    _, outputs = run(client, 'plot::traces(small, "cost")')
    assert outputs[-1]["content"]["data"]["image/svg+xml"].startswith("<svg")
    _, outputs = run(client, '[#{ a: 1, b: "<x>" }, #{ a: 2.5 }]')
    html = outputs[-1]["content"]["data"]["text/html"]
    assert html.count("<tr>") == 3 and "&lt;x&gt;" in html


def test_magics(client, tmp_path):
    file = tmp_path / "mine.rhai"
    assert "written" in value_of(client, f"%%file {file}\nlet from_file = 17;\n")
    assert file.read_text() == "let from_file = 17;\n"
    run(client, f"%load {file}")
    assert value_of(client, "from_file + 1") == "18"
    assert value_of(client, 'param("beta", 1.0)') == "1.0"
    run(client, "%set beta=2.5")
    assert value_of(client, 'param("beta", 1.0)') == "2.5"
    assert "seed 9" in value_of(client, "%set --seed 9")
    reply, outputs = run(client, "%time 6 * 7")
    assert reply["status"] == "ok" and outputs[-1]["content"]["data"]["text/plain"] == "42"
    assert re.search(r"\d s$", text_of(outputs).strip()) and not text_of(outputs, "stderr")
    assert "per run" in value_of(client, "%timeit 6 * 7")
    reply, _ = run(client, "!ls -l")
    assert "there is no shell" in reply["evalue"]
    _, outputs = run(client, "%who")
    assert "from_file" in outputs[-1]["content"]["data"]["text/html"]
    reply, _ = run(client, "%whoo")
    assert "'who'" in reply["evalue"]


def test_an_error_shows_its_line(client):
    reply, outputs = run(client, "let a = 1;\nlet b = sampler::hmc(#{ leapfrogs: 3 });\n")
    assert "did you mean 'leapfrog'?" in reply["evalue"]
    text = re.sub(r"\x1b\[\d*m", "", "\n".join(reply["traceback"]))
    assert f"In [{reply['execution_count']}]:2:" in text and "2 | let b = sampler::hmc" in text
    assert value_of(client, "a") == "1"
    # Commands above a script do not move its lines.
    reply, _ = run(client, "%who\n\nnothing_there")
    assert ":3:1" in "\n".join(reply["traceback"])


def test_completion_and_hover_know_types_and_options(client):
    run(client, "let my_target = target(potential::gaussian());")

    def matches(code):
        return reply_to(client, client.complete(code))["content"]

    assert "examples" in matches("my_target.exam")["matches"]
    found = matches("sampler::hmc(#{ leapfrog: 3, ad")
    assert {"adapt: ", "adapt_mass: "} <= set(found["matches"])
    assert "my_target" in matches("sample(my_")["matches"]
    assert "energies" in matches("my_target.en")["matches"]
    typed = matches("sampler::")["metadata"]["_jupyter_types_experimental"]
    assert {t["type"] for t in typed} == {"function"}
    content = reply_to(client, client.inspect("sampler::hmc(", 12))["content"]
    assert content["found"] and "leapfrog" in content["data"]["text/markdown"]


def test_positions_count_code_points(client):
    assert value_of(client, 'let psi = "𝜓"; psi.len()') == "1"
    code = 'let s = "𝜓𝜓"; ps'
    found = reply_to(client, client.complete(code))["content"]
    assert "psi" in found["matches"]
    assert (found["cursor_start"], found["cursor_end"]) == (len(code) - 2, len(code))


if __name__ == "__main__":
    unittest.main()
