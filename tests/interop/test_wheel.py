"""The wheel: its program, its kernel and its Python package, installed in an environment of their own.

    ERGODIC=target/release/ergodic pytest -s tests/interop/test_wheel.py

It is built around the program that ERGODIC names: nothing is compiled.
"""

import json
import os
import signal
import stat
import subprocess
import sys
import sysconfig
import time
import warnings
from pathlib import Path

import pytest

xarray = pytest.importorskip("xarray")
pytest.importorskip("maturin", reason="maturin is not installed: tests/interop/requirements.txt")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    arviz = pytest.importorskip("arviz")

if "ERGODIC" not in os.environ:
    pytest.skip("ERGODIC is not set", allow_module_level=True)
PROGRAM = Path(os.environ["ERGODIC"]).absolute()
HERE = Path(__file__).resolve().parents[2] / "crates/python"

SCRIPT = """
let t = target(potential::gaussian(#{ dim: param("dim", 2) }));
let run = sample(t, sampler::hmc(), #{ steps: param("steps", 400), chains: 4, every: 2, observe: [observable::norm2()] });
print("sampled");
#{ norm2: run.summary().norm2, x: param("x", 1.5), s: param("s", "word"), q: param("q", "word"), b: param("b", true), l: param("l", [1.0]), m: param("m", #{ a: 1 }) }
"""
# Of chains at this temperature some fall out of the well.
FAILING = """
let t = target(potential::closure(#{ w: [2] }, |p| 0.5 * (p.w[0] * p.w[0] + p.w[1] * p.w[1]) - 0.05 * p.w[0] ** 4));
let options = #{ steps: 800, chains: 4, every: 10, observe: [observable::norm2()] };
let at = param("T", 0.35);
if at > 0.0 { sample(t, sampler::langevin(#{ dt: 0.1 }), options + #{ temperature: at }); }
else { sweep(t, sampler::langevin(#{ dt: 0.1 }), options + #{ temperatures: [0.1, 0.35] }); }
1
"""
LONG = """
let t = target(potential::gaussian(#{ dim: 300 }));
print("begins");
sample(t, sampler::hmc(), #{ steps: param("steps", 20_000), chains: 4, every: 50, observe: [observable::norm2()] }).summary().norm2
"""


def output(*words, **options):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment with the wheel, and with what this Python has."""
    folder = tmp_path_factory.mktemp("wheel")
    wheel = output(sys.executable, HERE / "build", "--binary", PROGRAM, "--out", folder).strip()
    home = folder / "an environment"
    output(sys.executable, "-m", "venv", "--without-pip", home)
    (site,) = home.glob("lib/python*/site-packages")
    output(sys.executable, "-m", "pip", "--python", home / "bin/python", "install", "--no-index", "--no-deps", wheel)
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home


@pytest.fixture
def ergodic(environment, tmp_path, monkeypatch):
    """The package as it is installed; results go to a folder of the test."""
    (site,) = environment.glob("lib/python*/site-packages")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delenv("ERGODIC")
    monkeypatch.chdir(tmp_path)
    import ergodic

    assert Path(ergodic.__file__).is_relative_to(site)
    return ergodic


def free(environment):
    """This process's variables without those that lead to other programs and kernels."""
    kept = {k: v for k, v in os.environ.items() if k != "ERGODIC" and not k.startswith("JUPYTER")}
    return kept | {"HOME": str(environment), "IPYTHONDIR": str(environment / "ipython")}


def test_the_program_is_there(environment):
    version = output(PROGRAM, "-V")
    assert output(environment / "bin/ergodic", "-V") == version
    assert output(environment / "bin/python", "-m", "ergodic", "-V", env=free(environment)) == version
    say = "import ergodic, importlib.metadata as m; print('ergodic', ergodic.__version__); assert m.version('ergodic') == ergodic.__version__"
    assert output(environment / "bin/python", "-c", say, env=free(environment)) == version
    listed = output(sys.executable, "-m", "pip", "--python", environment / "bin/python", "show", "--files", "ergodic")
    assert "py.typed" in listed and "LICENSE-MIT" in listed


def test_a_missing_program_is_an_error(ergodic, environment, tmp_path, monkeypatch):
    monkeypatch.setenv("ERGODIC", "no-such-program")
    with pytest.raises(ergodic.Error, match="ERGODIC names 'no-such-program'"):
        ergodic.run("1 + 1")
    done = subprocess.run([environment / "bin/python", "-m", "ergodic"], env=free(environment) | {"ERGODIC": "no-such-program"}, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("error: the environment variable ERGODIC names")
    monkeypatch.delenv("ERGODIC")
    hidden = environment / "bin/hidden"
    (environment / "bin/ergodic").rename(hidden)
    monkeypatch.setattr("sysconfig.get_path", lambda *_: str(tmp_path))
    try:
        with pytest.raises(ergodic.Error, match=r"the program is not installed for .*pip install"):
            ergodic.run("1 + 1")
    finally:
        hidden.rename(environment / "bin/ergodic")


def test_jupyter_finds_the_kernel_and_starts_it(environment):
    pytest.importorskip("jupyter_client")
    code = """if True:
        import json
        from jupyter_client.kernelspec import KernelSpecManager
        from jupyter_client.manager import start_new_kernel
        spec = KernelSpecManager().get_kernel_spec("ergodic")
        manager, client = start_new_kernel(kernel_name="ergodic")
        said = []
        client.execute_interactive("40 + 2", timeout=30, output_hook=lambda m: said.append(m["content"].get("data")))
        client.stop_channels()
        manager.shutdown_kernel()
        print(json.dumps([spec.argv, spec.language, spec.resource_dir, said]))
    """
    argv, language, folder, said = json.loads(output(environment / "bin/python", "-c", code, env=free(environment)).splitlines()[-1])
    assert argv == ["python", "-m", "ergodic", "kernel", "start", "{connection_file}"]
    assert language == "rhai" and Path(folder) == environment / "share/jupyter/kernels/ergodic"
    assert any(data and data.get("text/plain") == "42" for data in said)


def test_the_files_for_jupyter_are_those_that_the_program_writes(environment, tmp_path):
    output(PROGRAM, "kernel", "install", "--prefix", tmp_path)
    ours, theirs = ({f.relative_to(p): f.read_text() for f in (p / "share/jupyter").rglob("*") if f.is_file()} for p in [environment, tmp_path])
    assert ours.keys() == theirs.keys(), "crates/python/build --kernel PROGRAM writes them anew"
    for name, text in theirs.items():
        if name.name != "kernel.json":
            assert ours[name] == text, f"{name}: crates/python/build --kernel PROGRAM writes it anew"
            continue
        here, there = json.loads(ours[name]), json.loads(text)
        assert here.pop("argv")[3:] == there.pop("argv")[1:]
        assert here | {"env": {}} == there | {"env": {}}


def test_a_run_and_its_draws(ergodic, capfd):
    values = {"x": 2, "s": 'a "b", ü', "q": '"in quotes"', "b": False, "l": [1, 2.5, 'q"\\\n', None, [True]], "m": {"k ü": [1e-12, -3]}}
    result = ergodic.run(SCRIPT, dim=3, seed=7, **values)
    assert {k: result.value[k] for k in values} == values
    assert result.folder == Path("runs/script").absolute() and [run.name for run in result.runs] == ["sample-1"]
    assert result.printed == "sampled\n" and "sampled" in capfd.readouterr().err
    tree = result.open()
    old = arviz.__version__.startswith("0.")
    summary = arviz.summary(tree, round_to="none") if old else arviz.summary(tree, round_to="none", kind="stats")
    assert float(summary.loc["norm2", "mean"]) == pytest.approx(result.value["norm2"], rel=1e-12)
    assert tree.attrs["seed"] == 7 and tree.attrs["version"] == ergodic.__version__ and tree.attrs["verdict"] in ["converged", "not yet"]
    assert json.loads(tree.attrs["parameters"]) | {"dim": "3", "s": values["s"]} == json.loads(tree.attrs["parameters"])
    assert tree["posterior"].sizes["draw"] == tree["warmup_posterior"].sizes["draw"] == 100
    for way in [result, result.runs[0], result.runs[0] / "trace.zarr", os.path.relpath(result.folder)]:
        assert ergodic.open(way).attrs == tree.attrs
    again = ergodic.run(SCRIPT, dim=3, seed=7, progress=False)
    assert again.folder == Path("runs/script-2").absolute() and again.value["norm2"] == result.value["norm2"]
    assert capfd.readouterr() == ("", "")


def test_a_script_in_a_file_and_an_array(ergodic, tmp_path):
    numpy = pytest.importorskip("numpy")
    folder = tmp_path / "with spaces"
    folder.mkdir()
    (folder / "my script.rhai").write_text('param("l", [1.0]) + [param("x", 1.0), param("n", 1)]')
    for script in [folder / "my script.rhai", "with spaces/my script.rhai"]:
        result = ergodic.run(script, l=numpy.array([0.1, 0.2]), x=numpy.float32(0.5), n=numpy.int64(3))
        assert result.value == [0.1, 0.2, 0.5, 3]
        # It has made no run.
        assert result.folder is None and result.runs == [] and not list(Path("runs").iterdir())
    with pytest.raises(ergodic.Error, match="no run"):
        result.open()
    result = ergodic.run(SCRIPT, out=folder / "my results", quick=True)
    assert result.folder == folder / "my results" and result.open("sample-1").attrs["quick"] in [0, 1]


@pytest.mark.parametrize(
    ("script", "options", "message", "line"),
    [
        ("let a = 1;\nlet b = foo(a);", {}, "there is no function 'foo'", 2),
        ("let a = 1;\n\nlet b = (;", {}, "Unexpected", 3),
        ('param("x", 1)', {"x": "word"}, "--set x=word: expected an integer", 1),
        ('param("width", 1)', {"widht": 1}, "did you mean 'width'", None),
        ("no-such.rhai", {}, "there is no such script", None),
        ("1 + 1", {"seed": -1}, "--seed", None),
        ("1 + 1", {"options": ["--no-such"]}, "--no-such", None),
        ("1 + 1", {"resume": True}, "nothing to continue", None),
    ],
)
def test_errors_of_a_script(ergodic, script, options, message, line):
    with pytest.raises(ergodic.Error) as error:
        ergodic.run(script, **options)
    assert message in str(error.value) and error.value.line == line and "script-" not in str(error.value)
    assert not Path("runs").exists() or not list(Path("runs").iterdir())


def test_parameters_of_other_types_are_refused(ergodic):
    with pytest.raises(TypeError, match="x: a complex cannot be given to a script"):
        ergodic.run("1", x=[1j])


def test_a_killed_program_is_an_error(ergodic, tmp_path, monkeypatch):
    (tmp_path / "program").write_text("#!/bin/sh\necho something >&2\nkill -9 $$\n")
    (tmp_path / "program").chmod(stat.S_IRWXU)
    monkeypatch.setenv("ERGODIC", str(tmp_path / "program"))
    with pytest.raises(ergodic.Error, match="ended with code -9\nsomething"):
        ergodic.run("1")


def test_a_grid(ergodic):
    result = ergodic.grid(SCRIPT, {"x": [1.0, 2.5], "s": ["a", "b c"]}, jobs=2, steps=100, progress=False)
    assert list(zip(result.value["x"], result.value["s"])) == [(1.0, "a"), (1.0, "b c"), (2.5, "a"), (2.5, "b c")]
    assert result.folder == Path("runs/script-grid-1").absolute() and len(result.runs) == 4
    for run, norm2, x, s in zip(result.runs, result.value["norm2"], result.value["x"], result.value["s"]):
        record = json.loads((run / "run.json").read_text())
        assert record["result"]["norm2"] == norm2 and record["settings"] == {"x": str(x), "s": s, "steps": "100"}
    assert result.open(2).attrs["folder"].startswith(str(result.runs[2]))
    with pytest.raises(ergodic.Error, match="this is a grid; name one of its cells"):
        result.open()
    assert ergodic.grid(SCRIPT, {"x": [1.0, 2.5], "s": ["a", "b c"]}, steps=100, resume=True).value == result.value
    for wrong, kind in [({}, ValueError), ({"x": 3}, TypeError), ({"s": "ab"}, TypeError), ({"s": ["a,b"]}, ValueError), ({"x": []}, ValueError)]:
        with pytest.raises(kind):
            ergodic.grid(SCRIPT, wrong)
    with pytest.raises(ergodic.Error, match=r"^1 cell failed:\nT = 35") as error:
        ergodic.grid(FAILING, {"T": [0.01, 35.0]})
    assert error.value.value == {"T": [0.01, 35.0], "result": [1, None]} and error.value.folder.is_dir()


def test_chains_that_failed_are_left_out(ergodic):
    one = ergodic.run(FAILING, progress=False)
    failed = [number for number, f in enumerate(json.loads((one.runs[0] / "run.json").read_text())["failures"]) if f]
    assert 0 < len(failed) < 4
    with pytest.warns(UserWarning, match=f"chain {failed[0]} at T = 0.35, step"):
        tree = one.open()
    norm2 = tree["posterior"]["norm2"]
    assert sorted(norm2["chain"].values) == [c for c in range(4) if c not in failed] and not norm2.isnull().any()
    assert len(tree.attrs["failed"].splitlines()) == len(failed)
    several = ergodic.run(FAILING, T=0.0, progress=False)
    with pytest.warns(UserWarning):
        tree = several.open()
    failures = json.loads((several.runs[0] / "run.json").read_text())["failures"]
    norm2 = tree["posterior"]["norm2"].transpose("temperature", "chain", "draw")
    assert norm2.sizes["chain"] == 4 and any(failures) and norm2.isnull().all("draw").values.ravel().tolist() == [f is not None for f in failures]
    with pytest.raises(ergodic.Error, match="every chain of 'sample-1' failed") as error:
        ergodic.run(FAILING, T=35.0)
    assert error.value.code == 3 and error.value.line == 5


def test_what_cannot_be_opened(ergodic, tmp_path):
    run = ergodic.run(SCRIPT, out="a", steps=100, progress=False).folder
    for name in ["b", "c"]:
        subprocess.run(["cp", "-r", run / "sample-1", run / name], check=True)
    with pytest.raises(ergodic.Error, match="several runs in this folder, sample-1, b, c; name one of them"):
        ergodic.open(run)
    (run / "b/run.json").unlink()
    subprocess.run(["rm", "-r", run / "b/trace.zarr"], check=True)
    with pytest.raises(ergodic.Error, match=r"sample-1, c, b \(not finished\)"):
        ergodic.open(run)
    with pytest.raises(ergodic.Error, match="this run has not ended"):
        ergodic.open(run / "b")
    (run / "c/trace.zarr/zarr.json").write_text("[")
    with pytest.raises(ergodic.Error, match="trace.zarr: this cannot be read"):
        ergodic.open(run / "c")
    (run / "run.json").write_text(json.dumps(json.loads((run / "run.json").read_text()) | {"format": 99, "versions": {"ergodic": "9.0"}}))
    with pytest.raises(ergodic.Error, match=r"newer version of ergodic, 9\.0"):
        ergodic.open(run)
    (run / "run.json").write_text("[1")
    with pytest.raises(ergodic.Error, match="no record of a run"):
        ergodic.open(run)
    for path, message in [("nowhere", "no such folder"), (run / "run.json", "this is a file"), (tmp_path, "no draws in this folder")]:
        with pytest.raises(ergodic.Error, match=message):
            ergodic.open(path)


def test_what_was_opened_stays(ergodic):
    """Whatever becomes of the folder; a file that is gone is an error, and no NaN."""
    first = ergodic.run(SCRIPT, out="a", steps=100, progress=False)
    tree = first.open()
    second = ergodic.run(SCRIPT, out="a", steps=100, seed=2, progress=False, options=["--force"])
    mean = float(tree["posterior"].norm2.mean())
    assert mean == pytest.approx(first.value["norm2"], rel=1e-12) and mean != pytest.approx(second.value["norm2"], rel=1e-3)
    # What a link leads to is of its own script.
    os.makedirs("b")
    os.symlink(second.runs[0], "b/latest")
    (Path("b") / "run.json").write_text(json.dumps({"format": 1, "seed": 77, "settings": {"steps": "1"}}))
    assert ergodic.open("b/latest").attrs["seed"] == 2
    subprocess.run(["cp", "-r", second.runs[0], "b/copy"], check=True)
    copied = ergodic.open("b").attrs
    assert "seed" not in copied and copied["parameters"] == "{}"
    subprocess.run(["rm", "-r", "b/copy/trace.zarr/posterior/norm2/c"], check=True)
    with pytest.raises(ergodic.Error, match="of 'posterior/norm2' . of . files are missing"):
        ergodic.open("b/copy")


def test_kept_draws_are_those_of_the_program(ergodic):
    """Without those of the transient of a run whose burn-in is found, and without chains that failed."""
    script = """
let t = target(potential::gaussian(#{ dim: 2 }));
let r = sample(t, sampler::langevin(#{ dt: 0.01 }), #{ start: parameters([[30.0, 30.0], [31.0, 30.0], [30.0, 31.0], [-30.0, 30.0]]), steps: 400, every: 10, keep: 10,
    burn_in: 0.1, until: #{ at_most: 20_000 } });
[0, 1, 2, 3].map(|c| r.kept("w", c).to_array())
"""
    run = ergodic.run(script, progress=False)
    kept = ergodic.draws(run)
    every = xarray.open_zarr(run.runs[0] / "draws.zarr")
    assert 0 < every.attrs["draws"]["burn_in"] and kept.sizes["draw"] < every.sizes["draw"]
    (name,) = kept.data_vars
    assert kept[name].dims[:2] == ("chain", "draw") and kept[name].values.tolist() == run.value
    with pytest.raises(ergodic.Error, match="kept no draws"):
        ergodic.draws(ergodic.run(SCRIPT, steps=100, progress=False))
    failing = ergodic.run(FAILING.replace("every: 10,", "every: 10, keep: 10,"), progress=False)
    with pytest.warns(UserWarning, match="left out"):
        kept, tree = ergodic.draws(failing), failing.open()
    assert kept["chain"].values.tolist() == tree["posterior"]["chain"].values.tolist() and not kept.isnull().any().to_array().any()


def test_a_shard_is_opened_like_a_run(ergodic):
    """Its chains are there; those of another shard did not fail."""
    script = """
let t = target(potential::gaussian(#{ dim: 2 }), #{ prior: prior::gaussian(1.0) });
exchange(t, sampler::hmc(), #{ temperatures: [0.5, 1.0], prior_rung: true, steps: 100, every: 2, chains: 2 });
"""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shard = ergodic.run(script, out="sh", progress=False, options=["--shard", "1/2"])
        tree = shard.open()
    assert shard.folder.name == "shard-1-of-2" and tree["posterior"].sizes["chain"] == 1 and "failed" not in tree.attrs


def test_a_calibration_beside_a_run_is_no_unfinished_run(ergodic):
    script = """
let t = target(potential::gaussian(#{ dim: 2 }));
let w = parameters([0.0, 0.0]);
calibrate_llc(target(potential::gaussian(#{ dim: 2, examples: 100 })), sampler::sgld(#{ gradient: gradient::full() }), #{ start: w, steps: 40, chains: 2, step_sizes: [1e-4] });
sample(t, sampler::hmc(), #{ steps: 100, chains: 2, every: 2 });
"""
    assert ergodic.run(script, progress=False).open()["posterior"].sizes["chain"] == 2


def test_what_goes_on_has_not_ended(ergodic, environment):
    script = """
let t = target(potential::gaussian(#{ dim: 2 }));
sample(t, sampler::hmc(), #{ steps: 400, chains: 2, every: 2, until: #{ at_most: param("most", 1000), ess: 1e9 } });
"""
    run = ergodic.run(script, out="u", progress=False)
    assert run.open()["posterior"].sizes["chain"] == 2
    code = "import sys, ergodic\nergodic.run(sys.argv[1], out='u', resume=True, most=100_000_000, progress=False)"
    with subprocess.Popen([environment / "bin/python", "-c", code, script], env=free(environment)) as process:
        wait_for(lambda: not (run.runs[0] / "run.json").exists())
        process.kill()
    wait_for(lambda: json.loads(output(PROGRAM, "ls", "--json", "u"))[0]["state"] == "interrupted")
    for folder in ["u", run.runs[0]]:
        with pytest.raises(ergodic.Error, match="has not ended"):
            ergodic.open(folder)


def test_printed_lines_are_shown_whatever_they_say(ergodic, capsys):
    ergodic.run('print("error: 0.05"); print("next"); print("error: again"); print("more")')
    assert capsys.readouterr().err.splitlines() == ["error: 0.05", "next", "error: again", "more"]
    with pytest.raises(ergodic.Error, match="^at its end"):
        ergodic.run('print("error: 0.05"); throw "at its end";')
    assert capsys.readouterr().err.splitlines() == ["error: 0.05"]


def test_arguments_that_cannot_be(ergodic):
    with pytest.raises(ValueError, match=r"^l: this is too long for a parameter; save it"):
        ergodic.run("1", l=list(range(40_000)))
    with pytest.raises(TypeError, match="expected options as a list"):
        ergodic.run("1", options="--quick")
    with pytest.raises(TypeError, match="expected what varies"):
        ergodic.grid("1", [("x", [1])])
    with pytest.raises(ergodic.Error, match="there is no run 7: there are 1, which count from 0"):
        ergodic.run(SCRIPT, steps=100, progress=False).open(7)
    for name in ["runs-there", "nowhere"]:
        os.makedirs(name)
        os.chdir(name)
        os.symlink("/nowhere/at/all", "runs") if name == "nowhere" else Path("runs").write_text("")
        with pytest.raises(ergodic.Error, match=r"runs: results cannot be written here \(.*\); name a folder with out"):
            ergodic.run("1 + 1")
        os.chdir("..")


def wait_for(what, seconds=30):
    begin = time.monotonic()
    while not what():
        assert time.monotonic() - begin < seconds
        time.sleep(0.05)


def test_an_interrupt_saves_the_run_and_it_goes_on(ergodic, environment):
    """What the caller is told, and what is saved if it is killed."""
    whole = ergodic.run(LONG, out="whole", progress=False).value
    # Python does not listen to what is ignored where these tests are run, as behind `nohup … &`.
    listen = "import signal, sys, ergodic\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code = listen + "try: ergodic.run(sys.argv[1], out=sys.argv[2])\nexcept KeyboardInterrupt as e: print(e)"
    for how, out in [(signal.SIGINT, "stopped run"), (signal.SIGKILL, "killed run")]:
        words = [environment / "bin/python", "-c", code, LONG, out]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=free(environment)) as process:
            assert process.stderr.readline() == "begins\n"
            time.sleep(0.2)
            process.send_signal(how)
            said = process.stdout.read()
        if how == signal.SIGINT:
            assert "interrupted: 'sample-1' at step" in said and f"the same call with out={str(Path(out).absolute())!r} and resume=True goes on" in said
        # The program ends by itself.
        wait_for(lambda: list(Path(out).glob("sample-1/checkpoint/*")))
        wait_for(lambda: json.loads(output(PROGRAM, "ls", "--json", out))[0]["state"] == "interrupted")
        with pytest.raises(ergodic.Error, match="has not ended"):
            ergodic.open(out)
        with pytest.raises(ergodic.Error, match="is of the script"):
            ergodic.run(SCRIPT, out=out, resume=True)
        result = ergodic.run(LONG, out=out, resume=True)
        assert result.value == whole and result.open()["posterior"].sizes["chain"] == 4


def test_two_processes_at_once_have_folders_of_their_own(environment, tmp_path):
    code = "import sys, ergodic\nprint(ergodic.run(sys.argv[1], steps=100, progress=False).folder.name)"
    words = [environment / "bin/python", "-c", code, SCRIPT]
    processes = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=free(environment)) for _ in range(3)]
    assert sorted(p.communicate()[0].strip() for p in processes) == ["script", "script-2", "script-3"]


def test_progress_is_relayed(ergodic, tmp_path, monkeypatch, capsys):
    """By a program that draws a bar as ours does on a terminal."""
    (tmp_path / "program").write_text(f"""#!{sys.executable}
import sys, time
assert sys.stderr.isatty() and not sys.stdin.isatty()
for text in ["first\\n", "\\r\\x1b[2Kbar  0% \\x1b[36mü\\x1b[0m", "\\r\\x1b[2Kbar 50%", "\\r\\x1b[2K", "last", "\\nerror: at the end\\n --> x.rhai:4:2\\n"]:
    sys.stderr.write(text)
    sys.stderr.flush()
    time.sleep(0.1)
sys.exit(1)
""")
    (tmp_path / "program").chmod(stat.S_IRWXU)
    monkeypatch.setenv("ERGODIC", str(tmp_path / "program"))
    for terminal, shown in [(False, "first\nlast\n"), (True, "{0}first\n{0}bar  0% ü{0}bar 50%{0}last{0}last\n")]:
        monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
        with pytest.raises(ergodic.Error, match=r"^at the end") as error:
            ergodic.run("1")
        assert error.value.line == 4
        said = capsys.readouterr().err
        assert said.removeprefix("\r\x1b[2K") == shown.format("\r\x1b[2K").removeprefix("\r\x1b[2K")
