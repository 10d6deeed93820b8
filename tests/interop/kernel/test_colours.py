"""Rhai's colours: in JupyterLab by an extension, in exports by a lexer of Pygments. What the first looks like is in test_lab.py."""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from helpers import kernel, reply_to
from pygments.token import Comment, Error, Keyword, Name, Number, Punctuation, String, is_token_subtype

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "editors/pygments"
sys.path.insert(0, str(PACKAGE))
import ergodic_rhai  # noqa: E402

SCRIPT = """const a = #{ x: 1.5e-3 }; // let
let text = `in ${ f(#{ y: `${1}` }) } fn`;
/* a /* b */ c */ fn own(x) { x.abs() }
let g = |s| sampler::sgld(s);"""


def colours(text):
    return [(kind, piece) for kind, piece in ergodic_rhai.RhaiLexer().get_tokens(text) if piece.strip()]


def test_the_lexer_has_the_words_of_the_program():
    with kernel("ergodic") as (_, client):
        found = reply_to(client, client.complete("", 0))["content"]
    typed = found["metadata"]["_jupyter_types_experimental"]
    words = {t["text"] for t in typed if t["type"] == "keyword"}
    ours = [*ergodic_rhai.DECLARATIONS, *ergodic_rhai.CONSTANTS, *ergodic_rhai.CONTROL, *ergodic_rhai.FUNCTIONS]
    assert len(words) > 30 and sorted(ours) == sorted(words)
    for word in words:
        [(kind, _)] = colours(word)
        assert is_token_subtype(kind, Keyword) or kind is Name.Builtin, word


def test_the_lexer_knows_strings_comments_and_maps():
    found = colours("%time\n" + SCRIPT + ' #"raw "q""#')
    for pair in [
        (Comment.Preproc, "%time\n"),
        (Keyword.Declaration, "const"),
        (Punctuation, "#{"),
        (Number.Float, "1.5e-3"),
        (Comment.Single, "// let"),
        (String.Backtick, "in "),
        (String.Interpol, "${"),
        (Number.Integer, "1"),
        (String.Backtick, " fn"),
        (Comment.Multiline, " c "),
        (Name.Function, "own"),
        (Name.Namespace, "sampler"),
        (String, '#"raw "q""#'),
    ]:
        assert pair in found, pair
    assert sum(piece == "let" for kind, piece in found if kind is Keyword.Declaration) == 2
    scripts = [*ROOT.glob("scripts/*.rhai"), *ROOT.glob("stdlib/*.rhai")]
    assert len(scripts) > 5
    for path in scripts:
        text = path.read_text()
        assert "".join(piece for _, piece in ergodic_rhai.RhaiLexer(stripnl=False).get_tokens(text)) == text
        assert not [piece for kind, piece in colours(text) if kind is Error], path


def environment(folder, variables):
    """A folder with bin/python, as an environment has it."""
    python = folder / "bin/python"
    python.parent.mkdir(parents=True)
    settings = " ".join(f"{name}={value}" for name, value in variables.items())
    python.write_text(f'#!/bin/sh\n{settings} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return python


def test_kernel_install_brings_the_colours_and_uninstall_removes_them(ergodic, tmp_path):
    place = ["--prefix", tmp_path]
    subprocess.run([ergodic, "kernel", "install", *place], check=True)
    subprocess.run([ergodic, "kernel", "install", "--name", "second", *place], check=True)
    folder = tmp_path / "share/jupyter/labextensions/ergodic-rhai"
    build = json.loads((folder / "package.json").read_text())["jupyterlab"]["_build"]
    script = (folder / build["load"]).read_text()
    assert "@KEYWORDS@" not in script and "let const fn" in script
    subprocess.run([ergodic, "kernel", "uninstall", *place], check=True)
    assert folder.exists()
    subprocess.run([ergodic, "kernel", "uninstall", "--name", "second", *place], check=True)
    assert not folder.exists()
    # A folder of kernels is no place for it.
    subprocess.run([ergodic, "kernel", "install", "--folder", tmp_path / "kernels"], check=True)
    assert not list(tmp_path.glob("**/labextensions/*"))


@pytest.mark.parametrize(["installed", "lexer"], [(True, "rhai"), (False, "scala")])
def test_exports_are_coloured(ergodic, tmp_path, monkeypatch, installed, lexer):
    # What pip would write, from the entry points that the package declares.
    declared = (PACKAGE / "pyproject.toml").read_text().split('[project.entry-points."pygments.lexers"]\n')[1].split("\n")[0]
    name, _, value = declared.partition(" = ")
    metadata = tmp_path / "site/ergodic_rhai-0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: ergodic-rhai\nVersion: 0\n")
    if installed:
        (metadata / "entry_points.txt").write_text(f"[pygments.lexers]\n{name} = {value.strip(chr(34))}\n")
    # The first of two of the same name hides the other, which may be installed.
    path = f"{tmp_path / 'site'}:{PACKAGE}"
    environment(tmp_path, {"PYTHONPATH": path})
    subprocess.run([ergodic, "kernel", "install", "--prefix", tmp_path], check=True)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "share/jupyter"))
    with kernel("ergodic", cwd=str(tmp_path)) as (_, client):
        info = client.kernel_info(reply=True, timeout=20)["content"]["language_info"]
    assert info["pygments_lexer"] == lexer
    assert info["codemirror_mode"] == {"name": "rhai", "mime": "text/javascript"}
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(SCRIPT)], metadata={"language_info": info})
    nbformat.validate(book)
    nbformat.write(book, tmp_path / "book.ipynb")

    def export(kind):
        command = [sys.executable, "-m", "nbconvert", "--to", kind, "--stdout", tmp_path / "book.ipynb"]
        done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=True)
        assert "No lexer found" not in done.stderr
        return done.stdout

    html, latex = export("html"), export("latex")
    assert '<span class="c1">// let</span>' in html and r"\PY{c+c1}{// let}" in latex
    keyword = '<span class="kd">let</span>' in html and '<span class="si">${</span>' in html and r"\PY{k+kd}{let}" in latex
    assert keyword == installed
