"""Rust cells in Jupyter: the program's kernel around evcxr. Compiling a cell takes a second or two."""

import contextlib
import re
import subprocess
import time
import unittest

import jupyter_kernel_test as jkt
import psutil
import pytest
from conftest import RUST
from helpers import kernel, outputs_of, reply_to, run, text_of, wait_until
from jupyter_client.manager import start_new_kernel

# The first cell waits until the prelude is loaded.
FIRST = 180
LATER = 60


@pytest.mark.usefixtures("rust_kernel")
class Suite(jkt.KernelTests):
    kernel_name = "ergodic-rust"
    language_name = "rust"
    file_extension = ".rs"
    code_hello_world = 'println!("hello, world")'
    code_stderr = 'eprintln!("x")'
    completion_samples = [
        {"text": "sampler::Sgl", "matches": {"Sgld"}},
        {"text": "sampler::Sgld::new().bat", "matches": {"batch(value)"}},
        {"text": "let v = vec![1]; v.is_em", "matches": {"is_empty()"}},
    ]
    complete_code_samples = ["1 + 1", "let x = 2;", "fn f() {}"]
    incomplete_code_samples = ["f(", "fn f() {", "let a = \"text"]
    invalid_code_samples = ["1 )", "let = 2;"]
    code_generate_error = "no_such_function()"
    code_execute_result = [{"code": "1 + 2", "result": "3"}, {"code": "2 * 3", "result": "6"}]
    code_history_pattern = "1?+ 2*"
    supported_history_operations = ("tail", "range", "search")
    code_inspect_sample = "sampler::Sgld"
    code_display_data = [{"code": 'display(&Table::new(["a"]).row(["1"]))', "mime": "text/html"}]
    code_page_something = "?sampler::Sgld"
    code_clear_output = "clear_output(false)"

    @classmethod
    def setUpClass(cls):
        cls.km, cls.kc = start_new_kernel(kernel_name=cls.kernel_name)
        cls.kc.execute_interactive("1", timeout=FIRST, output_hook=lambda _: None)


@pytest.mark.usefixtures("rust_kernel")
class Welcome(jkt.IopubWelcomeTests):
    kernel_name = "ergodic-rust"
    support_iopub_welcome = True


@pytest.fixture(scope="module")
def client(tmp_path_factory, rust_kernel):
    with kernel(rust_kernel, cwd=str(tmp_path_factory.mktemp("notebook"))) as (manager, client):
        client.manager = manager
        run(client, "let kept = 41;", limit=FIRST)
        yield client


def value_of(client, code):
    reply, outputs = run(client, code, limit=LATER)
    assert reply["status"] == "ok", reply
    return outputs[-1]["content"]["data"]["text/plain"]


WELL = """let gaussian = potential::Gaussian::new().dim(10).build()?;
let well = Target::of_potential(&gaussian).run()?;
let hmc = sampler::Hmc::new().build()?;"""
RUN = "let run = sample(&well, &hmc).steps(STEPS).chains(2).every(10).run()?;"


def test_progress_is_updated_in_its_place_and_an_interrupt_keeps_variables(client):
    assert run(client, WELL, limit=LATER)[0]["status"] == "ok"
    message = client.execute(RUN.replace("STEPS", "50_000_000"))
    seen = []
    while sum(m["msg_type"].endswith("display_data") for m in seen) < 3:
        seen.append(reply_to(client, message, "iopub", LATER))
    begin = time.monotonic()
    client.manager.interrupt_kernel()
    reply = reply_to(client, message, limit=LATER)["content"]
    assert time.monotonic() - begin < 5
    assert (reply["status"], reply["ename"]) == ("error", "Interrupted")
    shows = [m for m in seen + outputs_of(client, message) if m["msg_type"].endswith("display_data")]
    assert [m["msg_type"] for m in shows] == ["display_data"] + ["update_display_data"] * (len(shows) - 1)
    assert len({m["content"]["transient"]["display_id"] for m in shows}) == 1
    assert "chain-steps/s" in shows[-2]["content"]["data"]["text/html"]
    assert value_of(client, "kept + 1") == "42"
    # What there is can be had by the very words of the message.
    opened = re.search(r'open\("[^"]+"\)', "\n".join(reply["traceback"])).group()
    assert value_of(client, f"let part = {opened}?; part.done()") == "false"
    # And the next run goes to its end.
    assert run(client, RUN.replace("STEPS", "2000"), limit=LATER)[0]["status"] == "ok"
    assert "virial" in value_of(client, "run.summary()?")


def test_cells_are_recorded_and_the_record_reproduces_their_runs(rust_kernel, ergodic, tmp_path):
    short = RUN.replace("STEPS", "2000")
    with kernel(rust_kernel, cwd=str(tmp_path)) as (_, client):
        assert run(client, WELL, limit=FIRST)[0]["status"] == "ok"
        # A run whose cell fails has a name all the same.
        assert run(client, short + 'panic!("enough");', limit=LATER)[0]["status"] == "error"
        assert run(client, short, limit=LATER)[0]["status"] == "ok"
        # It is there while a run goes on, too.
        client.execute(RUN.replace("STEPS", "500_000_000"))
        cells = tmp_path / "runs/notebook-1/cells.rs"
        wait_until(lambda: "500_000_000" in cells.read_text(), LATER)
    text = cells.read_text()
    assert 'panic!("enough");\n// ERROR: ' in text and "// %% [1] {" in text, text
    # The kernel was killed in the last cell.
    cells.write_text(text[: text.index("\n// %% [4]")] + "\n")
    said = subprocess.run([ergodic, "notebook", "run", "runs/notebook-1/cells.rs"], cwd=tmp_path, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    again = tmp_path / "runs/notebook-2"
    assert [p.name for p in sorted(again.glob("sample-*"))] == ["sample-2"]
    files = [p for p in (again / "sample-2").rglob("*") if p.is_file() and "/c/" in str(p)]
    assert len(files) > 4
    for file in files:
        assert file.read_bytes() == (tmp_path / "runs/notebook-1" / file.relative_to(again)).read_bytes(), file
    assert (cells.parent / "cells.run.ipynb").exists()


def test_what_does_not_listen_is_ended_by_one_interrupt(client):
    run(client, "fn twice(x: i32) -> i32 { 2 * x }", limit=LATER)
    message = client.execute('println!("runs"); loop { std::hint::spin_loop(); }')
    while "runs" not in text_of([reply_to(client, message, "iopub", LATER)]):
        pass
    begin = time.monotonic()
    client.manager.interrupt_kernel()
    reply = reply_to(client, message, limit=LATER)["content"]
    assert reply["ename"] == "Interrupted" and "all variables are lost" in reply["evalue"]
    assert time.monotonic() - begin < 30
    outputs_of(client, message)
    assert run(client, "kept", limit=LATER)[0]["status"] == "error"
    assert value_of(client, "twice(4)") == "8"
    assert run(client, "let kept = 41;", limit=LATER)[0]["status"] == "ok"


def test_an_interrupt_while_rust_starts_stops_the_cell_and_not_the_start(rust_kernel, tmp_path):
    with kernel(rust_kernel, cwd=str(tmp_path)) as (manager, client):
        message = client.execute('println!("runs")')
        while reply_to(client, message, "iopub", LATER)["msg_type"] != "execute_input":
            pass
        manager.interrupt_kernel()
        begin = time.monotonic()
        reply = reply_to(client, message, limit=LATER)["content"]
        assert time.monotonic() - begin < 5
        assert (reply["status"], reply["ename"]) == ("error", "Interrupted"), reply
        outputs_of(client, message)
        reply, outputs = run(client, 'println!("runs")', limit=FIRST)
        assert reply["status"] == "ok" and text_of(outputs) == "runs\n"


def test_a_cell_can_be_optimised(client):
    # A call for each number needs more stack than there is, unless the compiler makes a loop of it.
    code = """:opt 2
fn down(n: u64, sum: u64) -> u64 { if n == 0 { sum } else { down(n - 1, sum ^ n) } }
down(std::hint::black_box(4_000_000), 0)"""
    assert value_of(client, code) == "4000000"
    assert value_of(client, ":opt 0\n1 + 1") == "2"


def test_values_are_rich(client):
    _, outputs = run(client, 'Table::new(["a", "b"]).row(["1", "<x>"])', limit=LATER)
    html = outputs[-1]["content"]["data"]["text/html"]
    assert "<table" in html and "&lt;x&gt;" in html
    code = 'let panel = Panel::new(Axis::linear("x"), Axis::linear("y"), vec![Series::line_points("s", vec![1.0, 2.0], vec![3.0, 4.0])]);\nFigure::of(panel)'
    reply, outputs = run(client, code, limit=LATER)
    assert reply["status"] == "ok", reply
    assert outputs[-1]["content"]["data"]["image/svg+xml"].startswith("<svg")


def plain(reply):
    return re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(reply["traceback"]))


def test_errors_say_what_and_where(client):
    reply, _ = run(client, 'let λ = 1;\nlet b: i32 = "text";', limit=LATER)
    assert "cell:2:14" in plain(reply) and "expected `i32`, found `&str`" in plain(reply)
    # The compiler's mark stands below the string, in red.
    assert '\x1b[31m"text"\x1b[0m' in "\n".join(reply["traceback"]) and "src/lib.rs" not in plain(reply)
    reply, _ = run(client, 'sampler::Sgld::new().step(-1.0).build()?;', limit=LATER)
    assert "option 'step' is -1.0, but must be > 0" in reply["evalue"]
    reply, _ = run(client, "let none: Vec<i32> = vec![];\nprintln!(\"{}\", none[0]);", limit=LATER)
    assert "panicked in line 2 of the cell: println!" in plain(reply) and "index out of bounds" in plain(reply)
    # Of a function that an earlier cell has, its line is shown.
    run(client, "fn third(v: &[i32]) -> i32 { v[2] }", limit=LATER)
    reply, _ = run(client, "\n\nthird(&[1])", limit=LATER)
    assert "panicked in fn third" in plain(reply)
    assert value_of(client, "1 + 1") == "2"


def test_display_takes_values_and_references(client):
    code = 'display("text"); display(3.5); display(&vec![1, 2]); display([1.0, 2.0]); let shared = Arc::new(7); display(&shared); display(shared);'
    reply, outputs = run(client, code, limit=LATER)
    assert reply["status"] == "ok", reply
    assert [o["content"]["data"]["text/plain"] for o in outputs] == ["text", "3.5", "[1, 2]", "[1.0, 2.0]", "7", "7"]


def test_lines_without_an_end_hide_nothing(client):
    reply, _ = run(client, 'print!("loading… "); Err::<(), _>("no such thing")?;', limit=LATER)
    assert (reply["status"], reply["evalue"]) == ("error", '"no such thing"')
    reply, outputs = run(client, 'print!("a"); eprint!("b"); std::io::Write::flush(&mut std::io::stdout())?; 17', limit=LATER)
    assert reply["status"] == "ok" and outputs[-1]["content"]["data"]["text/plain"] == "17"
    assert not any("ergodic {" in str(o["content"]) for o in outputs)


def test_values_that_only_evcxr_can_show(client):
    assert value_of(client, "let v = vec![3, 4]; v.first()") == "Some(3)"
    run(client, "use std::fmt::Display;", limit=LATER)
    assert value_of(client, "1 + 2") == "3"
    # A semicolon that was forgotten.
    assert run(client, "let forgotten = 5", limit=LATER)[0]["status"] == "ok"
    assert value_of(client, "forgotten") == "5"


def completions(client, code):
    reply = reply_to(client, client.complete(code), limit=LATER)["content"]
    return reply["matches"], [m.get("signature") for m in reply["metadata"]["_jupyter_types_experimental"]]


def test_completion_lists_options_with_their_documentation_and_nothing_private(client):
    matches, shown = completions(client, "sampler::Sgld::new().")
    assert matches[:4] == ["step(value)", "batch(value)", "gradient(value)", "build()"]
    assert "Step size" in shown[0] and "examples per minibatch" in shown[1]
    assert not {"0", "given", "evcxr_display()"} & set(matches)
    run(client, WELL, limit=LATER)
    matches, _ = completions(client, "sample(&well, &hmc).")
    assert matches[0] == "temperature(value)" and not {"target", "given"} & set(matches)
    matches, _ = completions(client, "well.")
    assert not {"ptr", "phantom", "alloc", "inner()", "drop_slow()"} & set(matches) and len(matches) > 5


def test_hover(client):
    code = "sampler::Sgld::new().batch"
    content = reply_to(client, client.inspect(code, len(code)), limit=LATER)["content"]
    assert content["found"] and "examples per minibatch" in content["data"]["text/plain"]


def test_the_compiler_ends_with_its_kernel(rust_kernel, tmp_path):
    def compilers():
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.name() in ("cargo", "rustc") and str(RUST) in process.environ().get("EVCXR_TMPDIR", ""):
                    found.append(process.pid)
        return found
    with kernel(rust_kernel, cwd=str(tmp_path)) as (manager, client):
        run(client, "let kept = 41;", limit=FIRST)
        # Takes the compiler long.
        rows = "".join(f"let a{i}: Vec<Box<dyn Fn(f64) -> f64>> = (0..9).map(|k| Box::new(move |x: f64| x * {i}.0 + k as f64) as _).collect();" for i in range(3000))
        client.execute(f"fn many() {{ {rows} }}\n1")
        wait_until(compilers, LATER)
        manager.shutdown_kernel(now=True)
        wait_until(lambda: not compilers(), 10)


if __name__ == "__main__":
    unittest.main()
