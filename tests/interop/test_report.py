"""A report is a page that a strict parser accepts, that loads nothing, and that says what the summary says.

    ERGODIC=target/release/ergodic ERGODIC_RUN=runs/my-run pytest -s tests/interop/test_report.py
"""

import json
import os
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

if not {"ERGODIC", "ERGODIC_RUN"} <= os.environ.keys():
    pytest.skip("ERGODIC and ERGODIC_RUN are not set", allow_module_level=True)
RUN = Path(os.environ["ERGODIC_RUN"])
VOID = {"meta", "img", "br", "hr", "link", "input"}
# Drawn without content: <polyline …/>.
DRAWN = {"polyline", "polygon", "rect", "circle", "line", "path"}


class Page(HTMLParser):
    """Elements, attributes and text; end tags must match."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.text = [], [], []
        self.feed(text)
        self.close()
        assert self.open == [], f"never closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), f"an attribute twice in <{tag}>"
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        assert tag in DRAWN, f"<{tag}/>"
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data):
        if self.open and self.open[-1] not in {"script", "style"}:
            self.text.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def report(where, out):
    subprocess.run([os.environ["ERGODIC"], "report", str(where), "--out", str(out)], check=True, capture_output=True)
    return out.read_text(encoding="utf-8")


@pytest.fixture(scope="module", params=["run", "script"])
def source(request, tmp_path_factory):
    where = RUN if request.param == "run" else RUN.parent
    return report(where, tmp_path_factory.mktemp("report") / "page.html")


def test_the_page_is_well_formed_and_loads_nothing(source):
    assert source.startswith("<!doctype html>") and len(source) < 2_000_000
    page = Page(source)
    for tag in ["html", "head", "title", "body", "header", "main", "footer", "h1"]:
        assert len(page.all(tag)) == 1 or tag in {"title"}, tag
    assert "link" not in {tag for tag, _ in page.elements}
    for tag, attributes in page.elements:
        for name in ["src", "href", "xlink:href", "data", "action", "srcset"]:
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:image/svg+xml")), f"<{tag} {name}={value[:80]}>"
        assert not any(name.startswith("on") for name in attributes), tag
    style = re.search(r"<style>(.*?)</style>", source, re.S).group(1)
    assert "url(" not in style and "@import" not in style
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids)) > 0
    for _, attributes in page.elements:
        for name in ["href", "aria-labelledby"]:
            value = attributes.get(name, "")
            if name == "aria-labelledby" and value or value.startswith("#"):
                assert value.lstrip("#") in ids, value


def test_html5lib_finds_no_error(source):
    html5lib = pytest.importorskip("html5lib")
    html5lib.HTMLParser(strict=True).parse(source)


def test_it_can_be_read_aloud(source):
    page = Page(source)
    assert page.all("html")[0]["lang"] == "en"
    for th in page.all("th"):
        assert th.get("scope") in {"row", "col"}
    assert len(page.all("table")) == len(page.all("caption")) > 0
    for svg in page.all("svg"):
        assert svg["role"] == "img" and svg["aria-labelledby"]
    for img in page.all("img"):
        assert img["alt"]


def test_it_says_what_show_says(source):
    shown = subprocess.run([os.environ["ERGODIC"], "show", "--json", str(RUN)], check=True, capture_output=True)
    summary = json.loads(shown.stdout)[RUN.name]
    text = " ".join(Page(source).text)
    verdicts = summary["verdict"] if isinstance(summary["verdict"], list) else [summary["verdict"]]
    for verdict in verdicts:
        assert verdict in text
    assert str(summary["draws"]) in text and str(summary["parameters"]) in text
