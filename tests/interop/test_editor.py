"""The extension for VS Code. Its grammar is held to three other lexers of the language, character by character: the program's own, as reports show it, the mode for JupyterLab's editor, and
the lexer for Pygments. And snippets, what the extension does in an editor that is made up, and the package.

    npm ci --prefix editors/vscode && ERGODIC=target/release/ergodic pytest tests/interop/test_editor.py
"""

import html
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("pygments")
from pygments.token import Comment, Keyword, Name, Number, String, is_token_subtype  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
EDITOR = ROOT / "editors/vscode"
if "ERGODIC" not in os.environ:
    pytest.skip("ERGODIC is not set", allow_module_level=True)
if shutil.which("node") is None or shutil.which("npm") is None:
    pytest.skip("there is no node or no npm in the PATH (Debian: nodejs, npm)", allow_module_level=True)
if not (EDITOR / "node_modules").exists():
    pytest.skip("no packages of npm in editors/vscode (tests/run --all)", allow_module_level=True)
ERGODIC = str(Path(os.environ["ERGODIC"]).resolve())
sys.path.insert(0, str(ROOT / "editors/pygments"))
from ergodic_rhai import RhaiLexer  # noqa: E402

GRAMMAR = (EDITOR / "syntaxes/rhai.tmLanguage.json").read_text()

# A line, and below it the class of each of its characters: c comment, s string, n number, k keyword, m command of a session, . anything else.
# What is within `${…}` is code. After @ are those of the other lexers that do not know this yet.
CASES = r'''
let a = "// no" + 'x'; // yes "no"
kkk . . sss sss . sss. cc ccc cccc

1 /* a /* b */ "c */ 2 // */ 3
n cc c cc c cc cc cc n cc cc c

/* a
cc c
/* "b" */ `c`
cc ccc cc ccc
*/ let /***/ let //
cc kkk ccccc kkk cc

"a\"b\\" + "c\
ssssssss . sss
  let // d" + 1 + "\\" /* "
  sss ss ss . n . ssss cc c
  " */ let
  c cc kkk

"open // let 'x
sssss ss sss ss
let x = "a""b" + 'open let
kkk . . ssssss . sssss sss
return ""
kkkkkk ss

#"a" let "#; ##"b"# // "##; let #"1\"#
ssss sss ss. ssssss ss sss. kkk ssssss

#" let
ss sss
" /* ` "# + 1
s ss s ss . n

`a ${ f(#{ y: `${1} let` }) } // b` + 1 // c
ss .. .... .. s..n. ssss .. . ss ss . n cc c

`${ "}" } ${ '}' } let ${ #{ a: { 1 } } } let` let
s.. sss . .. sss . sss .. .. .. . n . . . ssss kkk

`${ 1 /* } ` */ } let
s.. n cc c c cc . sss
if ${ if a { 2 } // `}
ss .. kk . . n . cc cc
} if` if
. sss kk

`$ { let } $` $ `$${1}` + `a``b ${2} "`
ss s sss s ss . ss..n.s . sssss ..n. ss

0..10 + 0xFF_0a 1_000.5e-3.abs() 3.max(4) 1e5 0b1_01 0o17 1..=2.5
n..nn . nnnnnnn nnnnnnnnnn...... n.....n. nnn nnnnnn nnnn n...nnn

a1.b2 + let1 * 1.5E+3 % x[1] - -1 ** 2
..... . .... . nnnnnn . ..n. . .n .. n

f.call(x).print; call(f) y .debug() .. eval(1)
................ kkkk... . ........ .. kkkk.n.

@ pygments
y?.debug() y ?.eval()
.......... . ........

letter inner fn_ _if βlet let1 iff if
...... ..... ... ... .... .... ... kk

#{ a: 1, "b": 2, c: #{ d: || 3, e: |x, y| x || y } }
.. .. n. sss. n. .. .. .. .. n. .. ... .. . .. . . .

1 !in x ?? y ..= 3 && !input
n .kk . .. . ... n .. ......

private fn own(a, b) { this.a + global::B } export const B = true;
kkkkkkk kk ...... .. . kkkk.. . kkkkkk... . kkkkkk kkkkk . . kkkk.

import "let" as m; m::f(type_of(is_shared(x)))
kkkkkk sssss kk .. .....kkkkkkk.kkkkkkkkk.....

do { break } until x; switch x { 1 | 2 => 3, _ => throw "c" }
kk . kkkkk . kkkkk .. kkkkkk . . n . n .. n. . .. kkkkk sss .

/// let `x`
ccc ccc ccc
//! let
ccc ccc
//// let
cccc ccc
/** let */ fn f() {}
ccc ccc cc kk ... ..

'\'' + '"' + '\u2764' + "\u2764 \"" + let
ssss . sss . ssssssss . sssssss sss . kkk

x = [1, (2), { 3 }]; } ) ] let
. . .n. .n.. . n ... . . . kkk

@ program
%time let a = "x
mmmmm mmm m m mm
:set x=1
mmmm mmm
let b = (1
kkk . . .n
%c)
...

@ pygments
a. // let
.. cc ccc
  call(1) + call(2)
  .....n. . kkkk.n.

@ mode pygments program
1. + 2.; 1.
nn . nn. nn

@ mode pygments
1e1_0
nnnnn

@ mode pygments program
#{ until: 1, b: 2 }
.. ...... n. .. n .

@ pygments
0XFF 0O17 0B11
nnnn nnnn nnnn

@ mode pygments program
`\${ ` + let
ssss s . kkk

@ mode pygments program
/**/ let */ let
cccc ccc cc kkk
'''

# What makes the grammar another one, each of which must be seen.
BROKEN = {
    "nested comments": lambda r: r["nested"].pop("patterns"),
    "comments to the end of a line": lambda r: r["comments"]["patterns"].pop(2),
    "comments of documentation": lambda r: r["comments"]["patterns"].pop(3),
    "the end of a string that is open": lambda r: r["strings"]["patterns"][0].update(end='"'),
    "escapes": lambda r: r["strings"]["patterns"][0].update(patterns=[]),
    "escapes in characters": lambda r: r["strings"]["patterns"][1].update(patterns=[]),
    "raw strings": lambda r: r["strings"]["patterns"].pop(2),
    "the marks of raw strings": lambda r: r["strings"]["patterns"][2].update(end='"#'),
    "code in templates": lambda r: r["strings"]["patterns"][3].update(patterns=[]),
    "braces": lambda r: r["brackets"]["patterns"].pop(1),
    "maps": lambda r: r["brackets"]["patterns"].pop(0),
    "parentheses": lambda r: r["brackets"]["patterns"].pop(2),
    "fractions": lambda r: r["numbers"]["patterns"].pop(3),
    "ranges": lambda r: r["numbers"]["patterns"][3].update(match=r"\d[\d_]*\.?\d*"),
    "hexadecimal numbers": lambda r: r["numbers"]["patterns"].pop(0),
    "members": lambda r: r["members"].update(patterns=[]),
    "names of members on the next line": lambda r: r["members"]["patterns"].pop(),
    "Greek letters": lambda r: r["names"]["patterns"][-1].update(match=r"[A-Za-z_]\w*"),
    "names that begin as words": lambda r: r["keywords"]["patterns"][0].update(match="(?:if|in)"),
    "one word": lambda r: r["keywords"]["patterns"][0].update(match="(?:for|if|in|return|switch|do|until|break)"),
    "commands": lambda r: r["session"].update(match="(?!)"),
}


def cases():
    """Texts, what is expected of them, and who is wrong."""
    for i, block in enumerate(CASES.strip("\n").split("\n\n")):
        lines = block.split("\n")
        wrong = lines.pop(0)[1:].split() if lines[0].startswith("@") else []
        assert len(lines) % 2 == 0, block
        yield f"case {i}: {lines[0]}", "\n".join(lines[::2]), lines[1::2], wrong


def sources():
    """Scripts, cells of notebooks, and examples of pages."""
    found = {}
    for path in [*ROOT.glob("scripts/**/*.rhai"), *ROOT.glob("stdlib/*.rhai")]:
        found[str(path.relative_to(ROOT))] = path.read_text()
    for path in ROOT.glob("notebooks/*.ipynb"):
        book = json.loads(path.read_text())
        if book["metadata"]["kernelspec"]["language"] == "rhai":
            cells = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
            found |= {f"{path.name}[{i}]": "".join(cell["source"]) for i, cell in enumerate(cells)}
    for path in [ROOT / "README.md", *ROOT.glob("docs/*.md")]:
        blocks = re.findall(r"^```rhai[^\n]*\n(.*?)^```", path.read_text(), re.DOTALL | re.MULTILINE)
        found |= {f"{path.name}[{i}]": block for i, block in enumerate(blocks)}
    for name, snippet in snippets().items():
        found[f"snippet {name}"] = snippet
    return found


def snippets():
    """Snippets with their placeholders replaced by what these propose."""
    found = json.loads((EDITOR / "snippets/rhai.json").read_text())
    fill = lambda body: re.sub(r"\$\{\d+:([^}]*)\}", r"\1", body).replace("$0", "")  # noqa: E731
    filled = {name: fill("\n".join(snippet["body"])) for name, snippet in found.items()}
    assert not [name for name, text in filled.items() if re.search(r"\$\d|\$\{\d", text)]
    return filled


def class_of(scopes):
    """The class of a character: the first of these scopes that decides."""
    for scope in scopes:
        for begin, kind in [("comment", "c"), ("string", "s"), ("constant.numeric", "n"), ("keyword.operator", "."), ("meta.template", "."), ("meta.preprocessor", "m")]:
            if scope.startswith(begin):
                return kind
        if scope.startswith(("keyword", "storage", "constant.language", "variable.language", "support.function.builtin")):
            return "k"
    return "."


@pytest.fixture(scope="session")
def mode(tmp_path_factory):
    """The mode as the program installs it in JupyterLab, with its words."""
    place = tmp_path_factory.mktemp("mode")
    subprocess.run([ERGODIC, "kernel", "install", "--prefix", place], check=True, capture_output=True)
    [script] = place.glob("share/jupyter/labextensions/ergodic-rhai/static/*.js")
    return script.read_text()


def node(mode, texts, *grammars):
    """For each text: by each grammar the scopes of each character, and its class by JupyterLab's mode, line by line."""
    given = json.dumps({"grammars": grammars or [GRAMMAR], "mode": mode, "sources": list(texts)})
    done = subprocess.run(["node", EDITOR / "test/classes.mjs"], input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    spread = lambda line: [scopes for count, scopes in line for _ in range(count)]  # noqa: E731
    return [([[spread(line) for line in lines] for lines in found["scopes"]], found["mode"]) for found in json.loads(done.stdout)]


def pygments(text):
    out = []
    for kind, piece in RhaiLexer(stripnl=False).get_tokens(text):
        interpolation = is_token_subtype(kind, String.Interpol)
        classes = [(Comment.Preproc, "m"), (Comment, "c"), (String, "s"), (Number, "n"), (Keyword, "k"), (Name.Builtin, "k")]
        kind = "." if interpolation else next((c for begin, c in classes if is_token_subtype(kind, begin)), ".")
        out += [c if c == "\n" else kind for c in piece]
    return "".join(out).split("\n")


def program(folder, text):
    """The program's own tokens: a report shows the script of a run in colours, here another one."""
    record = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(record | {"source": text}))
    subprocess.run([ERGODIC, "report", folder], check=True, capture_output=True)
    page = (folder / "report.html").read_text()
    shown = re.search(r'<pre class="script"><code>(.*?)</code></pre>', page, re.DOTALL)[1]
    out, whole, code = [], "", ""
    for kind, piece in re.findall(r'(?:<span class="(\w)">)?([^<]+)(?:</span>)?', shown):
        piece = html.unescape(piece)
        member = re.search(r"(?<!\.)\.\s*\Z", code)
        kind = "." if kind in ("", "f") or kind == "k" and member else kind
        out += [c if c == "\n" else kind for c in piece]
        whole += piece
        code += piece if kind != "c" else ""
    assert whole == text
    return "".join(out).split("\n")


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    (folder / "s.rhai").write_text('plot::curve([1, 2], [1.0, 2.0]).save("line.svg");')
    subprocess.run([ERGODIC, "run", "--quiet", "--out", folder / "out", folder / "s.rhai"], check=True, capture_output=True)
    return folder / "out"


def difference(text, ours, theirs):
    """The first line that differs, with both; white space has no class."""
    for i, line in enumerate(text.split("\n")):
        assert len(line) == len(ours[i]) == len(theirs[i]), line
        both = [(c, a, b) for c, a, b in zip(line, ours[i], theirs[i]) if not c.isspace()]
        if any(a != b for _, a, b in both):
            return f"line {i + 1}\n  {line}\n  {''.join(ours[i])}  the grammar\n  {''.join(theirs[i])}"
    return None


def compare(texts, mode, results):
    """Every lexer that has something else than the grammar, by (text, lexer)."""
    found = {}
    for (name, text), ([scopes], marked) in zip(texts.items(), node(mode, texts.values()), strict=True):
        inner = [[class_of(reversed(s)) for s in line] for line in scopes]
        # To the program a template is one string, whatever is in it.
        outer = [[class_of(s) for s in line] for line in scopes]
        for lexer, ours, theirs in [("mode", inner, marked), ("pygments", inner, pygments(text)), ("program", outer, program(results, text))]:
            if different := difference(text, ours, theirs):
                found[name, lexer] = different
    return found


def told(found):
    return "\n".join(f"{name}, {lexer}: {different}" for (name, lexer), different in found.items())


def wrong_cases(mode, *grammars):
    """For each grammar the cases of which it makes something else than is expected."""
    all_of = list(cases())
    found = [{} for _ in grammars]
    for (name, text, expected, _), (by_grammar, _) in zip(all_of, node(mode, [text for _, text, _, _ in all_of], *grammars), strict=True):
        expected = [line.ljust(len(source)) for line, source in zip(expected, text.split("\n"), strict=True)]
        for wrong, scopes in zip(found, by_grammar, strict=True):
            ours = [[class_of(reversed(s)) for s in line] for line in scopes]
            if different := difference(text, ours, expected):
                wrong[name, "expected"] = different
    return found


def test_the_names_in_the_grammar_are_those_of_the_program():
    loader = importlib.machinery.SourceFileLoader("generate", str(EDITOR / "generate"))
    generate = importlib.util.module_from_spec(importlib.util.spec_from_loader("generate", loader))
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    loader.exec_module(generate)
    sys.dont_write_bytecode = before
    assert generate.made() == GRAMMAR, "ERGODIC=target/release/ergodic editors/vscode/generate writes it"


def test_cases(mode):
    [found] = wrong_cases(mode, GRAMMAR)
    assert not found, told(found)


def test_the_other_lexers_agree_about_cases_but_for_what_they_do_not_know(mode, results):
    found = compare({name: text for name, text, _, _ in cases()}, mode, results)
    known = {(name, lexer) for name, _, _, wrong in cases() for lexer in wrong}
    assert found.keys() <= known, told({key: found[key] for key in found.keys() - known})
    assert found.keys() == known, f"known by now, take it from the line with @: {known - found.keys()}"


def test_all_lexers_agree_about_scripts(mode, results):
    # The option `until` is a word of the language to the others, which cases have.
    texts = {name: text.replace("until: ", "other: ") for name, text in sources().items()}
    assert len(texts) > 100 and sum(map(len, texts.values())) > 200_000
    found = compare(texts, mode, results)
    assert not found, told(found)


def test_a_broken_grammar_is_noticed(mode):
    grammars = []
    for damage in BROKEN.values():
        grammar = json.loads(GRAMMAR)
        damage(grammar["repository"])
        grammars.append(json.dumps(grammar))
    found = wrong_cases(mode, *grammars)
    assert not [what for what, wrong in zip(BROKEN, found, strict=True) if not wrong]


def test_colours(mode):
    """What themes see: our names are known ones, a misspelt one is not."""
    text = 'let t = target(net, dataset::csv("a")); dataset::cvs(x); m::csv(|a| a.mean()); fn own(x) { x }'
    [([[line]], _)] = node(mode, [text])
    at = lambda word, skip=0: line[text.index(word, skip)][-1]  # noqa: E731
    assert at("target") == at("csv") == "support.function.rhai"
    assert at("dataset") == at("dataset", text.index("cvs") - 10) == "support.class.namespace.rhai"
    assert at("cvs") == at("csv", text.index("m::")) == "entity.name.function.rhai"
    assert at("m::") == "entity.name.namespace.rhai"
    assert at("t =") == "variable.other.definition.rhai"
    assert at("a|") == at("x) {") == "variable.parameter.rhai"
    assert at("mean") == "entity.name.function.member.rhai" and at("own") == "entity.name.function.rhai"


def test_snippets(tmp_path):
    """They pass the program's check, and those that are short run as they are."""
    found = snippets()
    assert len(found) >= 6
    for i, text in enumerate(found.values()):
        (tmp_path / f"{i}.rhai").write_text(text)
    done = subprocess.run([ERGODIC, "check", *sorted(tmp_path.glob("*.rhai"))], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.copy(ROOT / "tests/data/patients.csv", tmp_path / "data.csv")
    for name in ("Table as data", "Kept draws and prediction", "Learning coefficient"):
        script = f"{list(found).index(name)}.rhai"
        done = subprocess.run([ERGODIC, "run", "--quick", "--quiet", script], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    """The package, and what was said when it was made."""
    place = tmp_path_factory.mktemp("package") / "ergodic.vsix"
    done = subprocess.run(["npm", "run", "--silent", "package", "--", "--out", place], cwd=EDITOR, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return place, done.stdout + done.stderr


def test_the_package_has_what_is_needed_and_nothing_else(package):
    place, said = package
    print(f"\n{place.stat().st_size} bytes")
    assert not re.search("warn", said, re.IGNORECASE), said
    with zipfile.ZipFile(place) as archive:
        names = set(archive.namelist())
        licence = archive.read("extension/LICENSE.txt").decode()
        manifest = json.loads(archive.read("extension/package.json"))
    ours = {"package.json", "readme.md", "LICENSE.txt", "language-configuration.json", "dist/extension.js", "syntaxes/rhai.tmLanguage.json", "snippets/rhai.json"}
    assert names == {"[Content_Types].xml", "extension.vsixmanifest"} | {f"extension/{name}" for name in ours}
    assert place.stat().st_size < 200_000
    for part in [(ROOT / "LICENSE-MIT").read_text(), (ROOT / "LICENSE-APACHE").read_text(), "contains vscode-languageclient", "Microsoft Corporation"]:
        assert part.strip() in licence
    version = subprocess.run([ERGODIC, "-V"], capture_output=True, text=True, check=True).stdout.split()[-1]
    assert manifest["version"] == version
    assert manifest["license"] == "MIT OR Apache-2.0"


def test_the_bundle_in_an_editor_that_is_made_up(package):
    done = subprocess.run(["node", "--test", "test/client.test.js"], cwd=EDITOR, env=os.environ | {"ERGODIC": ERGODIC}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_lock_names_no_registry():
    text = (EDITOR / "package-lock.json").read_text()
    assert len(text) < 500_000
    assert '"resolved"' not in text and "registry" not in text
