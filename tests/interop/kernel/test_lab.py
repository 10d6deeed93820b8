"""JupyterLab in a browser without a window: a notebook that is run by clicking. Needs jupyterlab, playwright, and Chromium in the PATH.

With ERGODIC_SHOTS=FOLDER, pictures of the page are kept there.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from helpers import wait_until

pytest.importorskip("jupyterlab")
playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if CHROMIUM is None:
    pytest.skip("there is no Chromium in the PATH (Debian: chromium)", allow_module_level=True)
NOTEBOOK = Path(__file__).resolve().parents[3] / "notebooks/01_first_sweep.ipynb"
# The steps of its sweep, as they stand in the file.
STEPS = '"steps", 2000'
CELL = ".jp-Notebook .jp-Cell"


@pytest.fixture(params=["JupyterLab Light", "JupyterLab Dark"])
def page(request, tmp_path):
    """The notebook, open in a page; without its outputs, and with fewer steps than it has."""
    book = json.loads(NOTEBOOK.read_text())
    sources = []
    for cell in book["cells"]:
        sources.append("".join(cell["source"]))
        cell["source"] = sources[-1].replace(STEPS, STEPS.replace("2000", "300"))
        if cell["cell_type"] == "code":
            cell |= {"outputs": [], "execution_count": None}
    assert any(STEPS in source for source in sources)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / NOTEBOOK.name).write_text(json.dumps(book))
    settings = tmp_path / "config/lab/user-settings/@jupyterlab/apputils-extension"
    settings.mkdir(parents=True)
    (settings / "themes.jupyterlab-settings").write_text(json.dumps({"theme": request.param}))
    (settings / "notification.jupyterlab-settings").write_text(json.dumps({"fetchNews": "false"}))
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    folders = {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime", "HOME": "home"}
    env = os.environ | {name: str(tmp_path / folder) for name, folder in folders.items()}
    options = [f"--port={port}", "--IdentityProvider.token=t", f"--ServerApp.root_dir={tmp_path / 'work'}"]
    with open(tmp_path / "log", "w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", *options], env=env, stdout=log, stderr=log
        )
    at = f"http://127.0.0.1:{port}"

    def answers():
        try:
            return urllib.request.urlopen(f"{at}/api?token=t", timeout=2).status == 200
        except OSError:
            return False

    try:
        wait_until(answers, 60)
        with playwright.sync_playwright() as p:
            browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            page.goto(f"{at}/lab/tree/{NOTEBOOK.name}?token=t&reset")
            page.wait_for_selector(CELL, timeout=90_000)
            page.wait_for_timeout(2000)
            page.keyboard.press("Control+b")
            page.theme = request.param.split()[-1].lower()
            yield page
            browser.close()
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            # It has been seen to wait for a thread of its own for ever.
            server.kill()
            server.wait()


def shot(page, name):
    if folder := os.environ.get("ERGODIC_SHOTS"):
        page.screenshot(path=f"{folder}/{page.theme}-{name}.png")


def click(page, title):
    page.click(f'.jp-NotebookPanel-toolbar jp-button[title^="{title}"]')


def prompt(page, index):
    return page.locator(CELL).nth(index).locator(".jp-InputPrompt").inner_text()


def type_cell(page, text):
    """Replace what the active cell has."""
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(text)


def colours_of(page, index):
    """The coloured pieces of a cell of code: what they say, and JupyterLab's name of their colour."""
    names = ["keyword", "string", "comment", "number", "atom", "def", "property", "operator", "meta", "bracket"]
    script = """([index, names]) => {
        const probe = document.body.appendChild(document.createElement("span"));
        const colour = (name) => {
            probe.style.color = `var(--jp-mirror-editor-${name}-color)`;
            return getComputedStyle(probe).color;
        };
        const known = new Map(names.map((name) => [colour(name), name]).reverse());
        probe.remove();
        const cell = document.querySelectorAll(".jp-Notebook .jp-CodeCell")[index];
        return [...cell.querySelectorAll(".cm-line span")].map((s) => [s.textContent, known.get(getComputedStyle(s).color) ?? null]);
    }"""
    return [tuple(pair) for pair in page.evaluate(script, [index, names])]


SCRIPT = r"""%set width=4
const A = #{ "b": 1.5e-3, name: 'x' }; // let
fn own(x) { switch x { 1 => true, _ => loop { break; } } }
do { print(`let ${ own(#{ c: `in ${1}` }) } fn`); } until is_shared(A);
/* a /* b */ let */ let raw = #"fn "if" "#; sampler::sgld(A).name"""


def test_cells_are_coloured_as_rhai(page):
    page.click(f"{CELL}.jp-CodeCell .cm-content >> nth=0")
    type_cell(page, SCRIPT)
    expected = {"const", "fn", "switch", "true", "loop", "break", "do", "print", "until", "is_shared", "let"}
    # The mode is loaded, and colours what stands there, when the page has the time.
    for _ in range(100):
        found = colours_of(page, 0)
        words = {text for text, colour in found if colour == "keyword"}
        if words == expected:
            break
        page.wait_for_timeout(100)
    shot(page, "colours")
    assert words == expected, found
    comments = [text for text, colour in found if colour == "comment"]
    assert comments == ["// let", "/* a /* b */ let */"]
    strings = [text for text, colour in found if colour == "string"]
    assert strings == ['"b"', "'x'", "`let ", "`in ", "`", " fn`", '#"fn "if" "#']
    assert [text for text, colour in found if colour == "number"] == ["1.5e-3", "1", "1"]
    assert ("%set width=4", "meta") in found
    # A new line is indented.
    type_cell(page, "for i in 0..3 {")
    page.keyboard.press("Enter")
    page.keyboard.type("f(")
    assert page.locator(f"{CELL}.jp-CodeCell").first.locator(".cm-line").nth(1).inner_text() == "    f("


def test_a_notebook_is_run_by_clicking(page):
    # Cells that are out of sight may not be drawn: each is looked at when it has run.
    codes, seen_progress, texts, widths = 0, False, "", []
    page.click(f"{CELL} >> nth=0")
    for i in range(page.locator(CELL).count()):
        cell = page.locator(CELL).nth(i)
        is_code = "jp-CodeCell" in cell.get_attribute("class")
        click(page, "Run this cell")
        if not is_code:
            continue
        codes += 1
        for _ in range(1200):
            bar = cell.locator(".ergodic-progress")
            if codes == 3 and not seen_progress and bar.count() and "left" in bar.inner_text():
                assert "chain-steps/s" in bar.inner_text()
                seen_progress = True
                shot(page, "progress")
            if f"[{codes}]" in prompt(page, i):
                break
            page.wait_for_timeout(100)
        assert f"[{codes}]" in prompt(page, i), f"cell {i} does not end"
        page.wait_for_timeout(300)
        assert cell.locator(".jp-OutputArea-output[data-mime-type*=stderr]").count() == 0
        cell.scroll_into_view_if_needed()
        page.wait_for_timeout(300)
        shot(page, f"cell-{codes}")
        texts += cell.inner_text()
        figures = cell.locator(".ergodic-figure img")
        widths += [figures.nth(k).bounding_box()["width"] for k in range(figures.count())]
    assert seen_progress
    assert len(widths) >= 3 and min(widths) > 300, widths
    assert "T virial" in texts and "chain-steps/s" in texts
    assert ("let", "keyword") in colours_of(page, 0)

    page.keyboard.press("Escape")
    page.keyboard.press("b")
    page.keyboard.press("Enter")
    page.keyboard.type("sampler::hmc(#{ ")
    page.keyboard.press("Tab")
    page.wait_for_selector(".jp-Completer-item", timeout=10_000)
    page.wait_for_timeout(300)
    assert any("leapfrog" in t for t in page.locator(".jp-Completer-item").all_inner_texts())
    shot(page, "completion")
    page.keyboard.type(" ")
    type_cell(page, "sampler::hmc")
    page.keyboard.press("Shift+Tab")
    page.wait_for_selector(".jp-Tooltip", timeout=10_000)
    assert "hybrid Monte Carlo" in page.inner_text(".jp-Tooltip")
    shot(page, "hover")
    type_cell(page, "let long = sample(target, sampler::hmc(), #{ steps: 50_000_000, every: 1000, start: start, observe: [observable::cost()] });")
    index = page.locator(CELL).count() - 1
    cell = page.locator(CELL).nth(index)
    click(page, "Run this cell")
    cell.locator(".ergodic-progress").wait_for(timeout=20_000)
    click(page, "Interrupt")
    cell.get_by_text("resumes it").wait_for(timeout=5_000)
    shot(page, "interrupted")
    page.keyboard.insert_text("run.name")
    click(page, "Run this cell")
    page.locator(CELL).nth(index + 1).get_by_text("sweep-1").wait_for(timeout=5_000)


@pytest.mark.parametrize("page", ["JupyterLab Light"], indirect=True)
def test_a_restart_leaves_a_bar_that_says_how_its_run_goes_on(page):
    # Once it restarts a kernel, JupyterLab drops whatever the old one still says.
    page.click(f"{CELL} >> nth=0")
    page.keyboard.press("Escape")
    page.keyboard.press("b")
    page.keyboard.press("Enter")
    page.keyboard.insert_text("let t = target(potential::gaussian()); sample(t, sampler::hmc(), #{ steps: 500_000_000, every: 100_000 });")
    click(page, "Run this cell")
    cell = page.locator(CELL).nth(1)
    cell.locator(".ergodic-progress").wait_for(timeout=20_000)
    page.wait_for_timeout(1000)
    said = cell.get_by_text("if the session is over, continue with %continue runs/")
    assert said.count() == 1 and not said.is_visible()
    click(page, "Restart the kernel")
    page.click(".jp-Dialog button.jp-mod-accept")
    said.wait_for(timeout=40_000)
    shot(page, "restarted")
