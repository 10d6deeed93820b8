"""`ergodic serve` in a browser: a run that grows, is stopped and goes on. Needs playwright, and Chromium in the PATH.

    ERGODIC=target/release/ergodic pytest -s tests/interop/test_serve.py

With ERGODIC_SHOTS=FOLDER, pictures of the pages are kept there.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

if "ERGODIC" not in os.environ:
    pytest.skip("ERGODIC is not set", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if CHROMIUM is None:
    pytest.skip("there is no Chromium in the PATH (Debian: chromium)", allow_module_level=True)
ERGODIC = Path(os.environ["ERGODIC"]).resolve()
SCRIPT = """//! Temperatures of a Gaussian.
let t = target(potential::gaussian(#{ dim: 10 }));
let run = sweep(t, sampler::hmc(), #{ temperatures: [0.5, 1.0, 2.0, 4.0], chains: 4, steps: param("steps", 400_000), every: 20, name: "it" });
run.done
"""
SIZES = {"desktop": (1280, 900), "telephone": (390, 800)}


@pytest.fixture
def site(tmp_path):
    """Address of a server over a folder with a run that goes on, and that folder."""
    (tmp_path / "s.rhai").write_text(SCRIPT)
    (tmp_path / "runs").mkdir()
    run = subprocess.Popen([ERGODIC, "run", "s.rhai", "--quiet", "--checkpoint", "0.3", "--out", "runs/growing"], cwd=tmp_path)
    server = subprocess.Popen([ERGODIC, "serve", "runs", "--port", "0"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    try:
        yield server.stdout.readline().split(": ", 1)[1].strip(), run
    finally:
        for process in (server, run):
            process.kill()
            process.wait()


def keep(page, name):
    if folder := os.environ.get("ERGODIC_SHOTS"):
        page.screenshot(path=Path(folder) / f"serve-{name}.png", full_page=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_a_run_is_watched_stopped_and_continued(site, size, scheme):
    address, run = site
    width, height = SIZES[size]
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        page = context.new_page()
        said, asked = [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        assert "token" not in page.url
        page.get_by_text("1 running", exact=True).wait_for()
        keep(page, f"{size}-{scheme}-runs")
        page.get_by_role("link", name="growing").click()
        page.locator("main svg").first.wait_for(timeout=120_000)
        before = page.locator("main").inner_text()
        # It grows by itself, without being loaded again.
        page.evaluate("window.stays = true")
        page.wait_for_function("before => document.querySelector('main').innerText !== before", arg=before, timeout=120_000)
        assert page.evaluate("window.stays")
        keep(page, f"{size}-{scheme}-growing")
        page.get_by_role("button", name="Stop and save").click()
        assert run.wait(timeout=120) == 130
        page.get_by_role("button", name="Go on").click(timeout=120_000)
        page.get_by_role("button", name="Stop and save").click(timeout=120_000)
        page.get_by_role("button", name="Go on").wait_for(timeout=120_000)
        # Nothing stands beyond the edge of the page, and nothing is fetched from elsewhere.
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth + 1")
        keep(page, f"{size}-{scheme}-stopped")
        page.get_by_role("link", name="all runs").click()
        page.get_by_text("nothing runs", exact=True).wait_for()
        page.locator("#filter input").fill("no such word")
        assert page.locator("#runs tbody tr:visible").count() == 0
        # Who has not got the token sees nothing.
        stranger = browser.new_context().new_page()
        assert stranger.goto(address.split("?")[0]).status == 403
        browser.close()
    origin = address.split("/?")[0]
    assert all(url.startswith((origin, "data:")) for url in asked)
    assert not said, said
