"""Scripts, run by the program."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import operator
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import _open, _program
from ._program import Error

#: Bytes of an argument of a program, in Linux.
LONGEST = 1 << 17


@dataclass(frozen=True)
class Result:
    """What a script, or a grid of them, has left."""

    #: What the script ends with, as JSON has it; of a grid the table, a list for each column.
    value: Any = field(repr=False)
    #: Folder of the results; none if the script has made no run.
    folder: Path | None
    #: Folders of its runs, in order; of a grid those of its cells, in the order of the table's rows.
    runs: list[Path]
    #: What the script has printed, if it has made a run.
    printed: str = field(default="", repr=False)

    def open(self, run: int | str | None = None) -> Any:
        """The draws of a run, as `ergodic.open` has them; `run` is its name or its number, if there are several."""
        if run is None:
            return _open.open(self)
        if isinstance(run, str):
            return _open.open(Path(self) / run)
        number = operator.index(run)
        if not -len(self.runs) <= number < len(self.runs):
            raise Error(f"there is no run {number}: there are {len(self.runs)}, which count from 0")
        return _open.open(self.runs[number])

    def __fspath__(self) -> str:
        if self.folder is None:
            raise Error("the script has made no run, and there is no folder")
        return str(self.folder)


def run(
    script: str | os.PathLike[str],
    /,
    *,
    out: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    threads: int | None = None,
    quick: bool = False,
    resume: bool = False,
    progress: bool = True,
    options: Sequence[str] = (),
    **parameters: Any,
) -> Result:
    """Run a script and wait for its end.

    `script` is a file or, as a string that is not the name of one, its text. Results go to the folder `out`, or to the next free one of `runs/SCRIPT`, `runs/SCRIPT-2`, …
    `parameters` are those that the script declares by `param(…)`: numbers, strings, booleans, lists, dictionaries, or arrays of NumPy. `options` are further ones of
    `ergodic run`, as `["--device", "cuda:0"]`.

    An interrupt (Ctrl-C, or the stop button of a notebook) saves the run; the message of the KeyboardInterrupt says how it goes on.

    Raises `ergodic.Error` with the program's message.
    """
    sets = [f"--set={name}={_expression(name, value)}" for name, value in parameters.items()]
    ended = _call(script, [*sets, *_options(options)], out, seed, threads, quick, resume, progress)
    shard = re.search(r"--shard[= ](\d+)/(\d+)", " ".join(options))
    place = ended.folder / f"shard-{shard[1]}-of-{shard[2]}" if ended.folder and shard else ended.folder
    record = _open.record(place) if place else {}
    folder = place if record else None
    runs = [folder / part for part in record.get("parts", [])] if folder else []
    return Result(ended.value, folder, [run for run in runs if run.is_dir()], record.get("printed", ""))


def grid(
    script: str | os.PathLike[str],
    over: Mapping[str, Iterable[Any]],
    /,
    *,
    jobs: int = 1,
    out: str | os.PathLike[str] | None = None,
    seed: int | None = None,
    threads: int | None = None,
    quick: bool = False,
    resume: bool = False,
    progress: bool = True,
    options: Sequence[str] = (),
    **parameters: Any,
) -> Result:
    """Run a script in every cell of a grid, `jobs` of them side by side, and wait for all.

    `over` has the values of each parameter that varies, which may be `"seed"`: `ergodic.grid("script.rhai", {"width": [4, 8], "lambda": [1.0, 10.0]})`. All else is as in
    `ergodic.run`; results go to `out` or to `runs/SCRIPT-grid-1`, `runs/SCRIPT-grid-2`, …

    Raises `ergodic.Error` if cells failed; its `value` is the table of all.
    """
    if not isinstance(over, Mapping):
        raise TypeError(f"expected what varies as {{'width': [4, 8]}}, not {over!r}")
    cells = {name: _values(name, values) for name, values in over.items()}
    if not cells:
        raise ValueError("a grid needs a parameter that varies, as {'width': [4, 8]}")
    words = [f"--grid={name}={','.join(values)}" for name, values in cells.items()] + [f"--jobs={jobs}"]
    words += [f"--set={name}={_expression(name, value)}" for name, value in parameters.items()]
    ended = _call(script, [*words, *_options(options)], out, seed, threads, quick, resume, progress, "-grid-")
    runs = [Path(ended) / _cell(number, list(zip(cells, point, strict=True))) for number, point in enumerate(itertools.product(*cells.values()))]
    return Result(ended.value, ended.folder, runs)


def _options(options: Sequence[str]) -> Sequence[str]:
    if isinstance(options, str):
        raise TypeError(f"expected options as a list, ['--quick'], not {options!r}")
    return options


def _call(
    script: str | os.PathLike[str],
    words: list[str],
    out: str | os.PathLike[str] | None,
    seed: int | None,
    threads: int | None,
    quick: bool,
    resume: bool,
    progress: bool,
    between: str = "-",
) -> Result:
    """Call the program with a script; what it says on standard output is the value."""
    words += [f"--{name}={value}" for name, value in [("seed", seed), ("threads", threads)] if value is not None]
    words += [f"--{name}" for name, asked in [("quick", quick), ("resume", resume)] if asked]
    for word in words:
        if len(word.encode()) >= LONGEST:
            name = word.removeprefix("--set=").removeprefix("--grid=").split("=")[0]
            raise ValueError(f"{name}: this is too long for a parameter; save it, as by numpy.save, and let the script read the file, as by dataset::npy or tensor::load")
    with _file(script) as (file, is_text):
        folder = Path(out).absolute() if out is not None else _folder("script" if is_text else file.stem, between, resume)
        try:
            words = ["run", "--json", f"--out={folder}", *words, "--", str(file)]
            code, interrupted, value, message = _program.call(words, progress, str(file) if is_text else None)
        finally:
            if out is None:
                # Made here, and if it is empty, for nothing.
                with contextlib.suppress(OSError):
                    folder.rmdir()
    there = folder if folder.exists() else None
    if interrupted or code == 130:
        message = re.sub("[;,] (continue|go on) with --resume", "", message if code else "interrupted, but the script had ended")
        if there and code:
            message += f"; the same call with out={str(folder)!r} and resume=True goes on"
        raise KeyboardInterrupt(message) if interrupted else Error(message, code, there)
    if code:
        # The message of a grid begins with its table.
        failed = re.search(r"^\d+ cells? failed:$", message, re.MULTILINE) if between != "-" else None
        raise Error(message[failed.start() :], code, there, json.loads(message[: failed.start()])) if failed else Error(message, code, there)
    return Result(json.loads(value), there, [])


@contextlib.contextmanager
def _file(script: str | os.PathLike[str]) -> Iterator[tuple[Path, bool]]:
    """The file of a script, and whether it is there only to hold a text."""
    if not isinstance(script, str) or os.path.exists(script) or (script.endswith(".rhai") and "\n" not in script):
        yield Path(script), False
        return
    with tempfile.TemporaryDirectory(prefix="ergodic-") as folder:
        # By its name the program tells whether what it goes on with is of the same text.
        file = Path(folder) / f"script-{hashlib.sha256(script.encode()).hexdigest()[:8]}.rhai"
        file.write_text(script, encoding="utf-8")
        yield file, True


def _folder(stem: str, between: str, resume: bool) -> Path:
    """The next free folder of a script, or the last one; made here, as the program does it, so that of several processes each has its own."""
    last, runs = None, Path("runs").absolute()
    if not resume:
        try:
            runs.mkdir(exist_ok=True)
        except OSError as e:
            raise Error(f"{runs}: results cannot be written here ({e.strerror}); name a folder with out") from e
    for number in itertools.count(1):
        folder = runs / (stem if (number, between) == (1, "-") else f"{stem}{between}{number}")
        if not resume:
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                return folder
        elif folder.exists():
            last = folder
        else:
            break
    if last is None:
        raise Error(f"resume: there is nothing to continue in {folder}; name the folder with out")
    return last


def _values(name: str, values: Iterable[Any]) -> list[str]:
    """The values of a parameter in a grid, as the command line has them."""
    values = values.tolist() if hasattr(values, "tolist") else values
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise TypeError(f"{name}: expected a list of values, not {values!r}")
    texts = []
    for value in values:
        text = _expression(name, value)
        if isinstance(value, str) and (set(text) & set(',"[](){}') or text != text.strip()):
            raise ValueError(f"{name}: {value!r} cannot be in a grid, where commas, quotes, brackets and spaces around a text mean something else")
        texts.append(text)
    if not texts:
        raise ValueError(f"{name}: a grid needs at least one value")
    return texts


def _cell(number: int, settings: list[tuple[str, str]]) -> str:
    """The program's name for the folder of a cell."""
    plain = all(re.fullmatch(r"[A-Za-z0-9._+-]+", value) for _, value in settings)
    name = ",".join(f"{name}={value}" for name, value in settings)
    return name if plain and len(name.encode()) <= 120 else f"cell-{number + 1:04}"


def _expression(name: str, value: Any, within: bool = False) -> str:
    """A value as Rhai writes it; a string by itself without quotes, as `--set` takes it."""
    value = value.tolist() if hasattr(value, "tolist") else value
    match value:
        case None:
            return "()"
        case bool():
            return str(value).lower()
        case int():
            return str(int(value))
        case float():
            return {"inf": "1.0/0.0", "-inf": "-1.0/0.0", "nan": "0.0/0.0"}.get(str(value), repr(float(value)))
        # What has quotes of its own would lose them.
        case str() if within or value.startswith('"'):
            return '"' + "".join(c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in value) + '"'
        case str():
            return value
        case os.PathLike():
            return _expression(name, os.fspath(value), within)
        case Mapping():
            return "#{" + ", ".join(f"{_expression(name, str(key), True)}: {_expression(name, item, True)}" for key, item in value.items()) + "}"
        case list() | tuple() | range():
            return "[" + ", ".join(_expression(name, item, True) for item in value) + "]"
    raise TypeError(f"{name}: a {type(value).__name__} cannot be given to a script; expected a number, a string, a boolean, a list or a dictionary")
