"""The draws of a run, for xarray and ArviZ."""

from __future__ import annotations

import contextlib
import json
import os
import warnings
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._program import Error

if TYPE_CHECKING:
    import xarray

#: The newest format of run.json that is read here.
FORMAT = 1
#: What is said there of chains that another shard has.
ELSEWHERE = "is in another shard"


def open(run: str | os.PathLike[str]) -> xarray.DataTree:
    """Open the draws of a run that has ended.

    `run` is the folder of a run (`runs/quickstart/sweep-1`), that of a script which has made one, or what `ergodic.run` returned. The tree has the groups `posterior`
    and `sample_stats`, those of burn-in as `warmup_posterior` and `warmup_sample_stats`, and as attributes script, parameters, seed, verdict and version.
    `arviz.summary` takes it. Where ArviZ is older than 1 it is an `arviz.InferenceData` instead.

    Chains that failed are left out, as in the program's own summaries, and the attribute `failed` names them; where a chain failed at some temperatures only, its draws
    there are NaN. Raises `ergodic.Error` if there is no such run, or not only one.
    """
    xarray = _xarray("open")
    folder = _find(Path(run))
    own = record(folder)
    with _damage(folder, "trace.zarr"):
        _ensure_whole(folder / "trace.zarr")
        # Read now: the folder may hold another run tomorrow.
        tree = xarray.open_datatree(folder / "trace.zarr", engine="zarr").load()
        failed, groups = _without_failed({name: tree[name].to_dataset() for name in ["posterior", *tree.children]}, own)
    _tell(folder, own, failed)
    attributes = tree.attrs | _about(folder, own) | ({"failed": "\n".join(failed)} if failed else {})
    try:
        old = metadata.version("arviz").startswith("0.")
    except metadata.PackageNotFoundError:
        old = False
    if old:
        with warnings.catch_warnings():
            # It announces its successor.
            warnings.simplefilter("ignore")
            import arviz
        return arviz.InferenceData(attrs=attributes, **groups)
    tree = xarray.DataTree.from_dict(groups)
    tree.attrs = attributes
    return tree


def draws(run: str | os.PathLike[str]) -> xarray.Dataset:
    """Open the kept draws of a run that has ended: an array for each tensor of the model, by chain and draw (and temperature), as its `draws.zarr` has them.

    They are those of the program's own `run.kept`: without what was kept in the transient of a run with `until`, and without chains that failed, as in `ergodic.open`. They are read when they
    are used: `.load()` reads all. Raises `ergodic.Error` if the run kept none.
    """
    xarray = _xarray("draws")
    folder = _find(Path(run))
    own = record(folder)
    if not (folder / "draws.zarr").is_dir():
        raise Error(f"{folder}: this run kept no draws; the option `keep` of a run keeps them")
    with _damage(folder, "draws.zarr"):
        kept = xarray.open_zarr(folder / "draws.zarr")
        failed, groups = _without_failed({"posterior": kept}, own)
        kept = groups["posterior"].assign_attrs(_about(folder, own))
        burn_in = kept.attrs.get("draws", {}).get("burn_in")
        kept = kept.isel(draw=kept["step"].values > burn_in) if burn_in else kept
    _tell(folder, own, failed)
    return kept


def _xarray(whose: str) -> Any:
    """The package, if it can read what a run leaves."""
    try:
        import xarray
        import zarr

        if int(zarr.__version__.split(".")[0]) < 3 or not hasattr(xarray, "open_datatree"):
            raise ImportError(f"xarray {xarray.__version__} and zarr {zarr.__version__} are too old")
    except ImportError as e:
        raise ImportError(f"ergodic.{whose} needs xarray and Zarr 3 ({e}): pip install 'ergodic[arviz]'") from e
    return xarray


@contextlib.contextmanager
def _damage(folder: Path, name: str) -> Iterator[None]:
    """What goes wrong in here is the fault of a file."""
    try:
        yield
    except Exception as e:
        raise Error(f"{folder / name}: this cannot be read ({e!r}); `ergodic doctor --check '{folder}'` says whether it is damaged") from e


def _ensure_whole(path: Path) -> None:
    """Fail if a file is missing: Zarr takes its numbers for zeros or NaN."""
    import zarr

    for name, array in zarr.open_group(path, mode="r").members(max_depth=None):
        if isinstance(array, zarr.Array) and array.nchunks_initialized < array.nchunks:
            raise ValueError(f"of '{name}' {array.nchunks - array.nchunks_initialized} of {array.nchunks} files are missing")


def _tell(folder: Path, own: dict[str, Any], failed: list[str]) -> None:
    """Warn of chains that failed, or fail if all did."""
    if failed and all(own["failures"]):
        raise Error(f"{folder}: every chain failed: {failed[0]}", 3, folder)
    if failed:
        warnings.warn(f"{folder.name}: chains that failed are left out: {'; '.join(failed)}", stacklevel=3)


def record(folder: Path) -> dict[str, Any]:
    """The run.json of a folder; empty where there is none."""
    path = folder / "run.json"
    try:
        found = dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, TypeError, ValueError) as e:
        raise Error(f"{path}: this is no record of a run ({e})") from e
    if found.get("format", FORMAT) > FORMAT:
        raise Error(f"{path}: it was written by a newer version of ergodic, {found.get('versions', {}).get('ergodic')}; read it with that one")
    return found


def _find(folder: Path) -> Path:
    """The one folder with a trace that is meant; links lead to where the records are."""
    shown, folder = folder.absolute(), folder.resolve()
    folder = folder.parent if folder.name == "trace.zarr" else folder
    if not folder.is_dir():
        raise Error(f"{shown}: " + ("this is a file; name the folder of a run" if folder.exists() else "there is no such folder"))
    script = record(folder)
    # A calibration or a validation leaves no record of its own.
    ended = script.get("parts", []) if script.get("status") == "done" else []
    order = {name: number for number, name in enumerate(script.get("parts", []))}
    inner = sorted((f for f in folder.iterdir() if f.is_dir() and not f.is_symlink()), key=lambda f: (order.get(f.name, len(order)), f.name))
    unfinished = [f for f in [folder, *inner] if (f / "checkpoint").is_dir() and not (f / "run.json").exists() and f.name not in ended]
    traces = [f for f in [folder, *inner] if (f / "trace.zarr").is_dir() and f not in unfinished]
    if traces and traces[0] == folder:
        return folder
    if len(traces) == 1 and not unfinished:
        return traces[0]
    if traces:
        names = [*(f.name for f in traces), *(f"{f.name} (not finished)" for f in unfinished)]
        raise Error(f"{folder}: there are several runs in this folder, {', '.join(names)}; name one of them, as {str(traces[0])!r}")
    if unfinished:
        raise Error(f"{unfinished[0]}: this run has not ended, and can be opened when it has; `ergodic show '{unfinished[0]}'` says how far it is")
    if (folder / "grid.json").exists():
        raise Error(f"{folder}: this is a grid; name one of its cells, as {str(inner[0] if inner else folder / 'cell-0001')!r}")
    raise Error(f"{folder}: there are no draws in this folder; name that of a run, as runs/quickstart/sweep-1")


def _without_failed(groups: dict[str, xarray.Dataset], own: dict[str, Any]) -> tuple[list[str], dict[str, xarray.Dataset]]:
    """A line for each chain that failed, and the groups without them; failures are in order of temperatures, then of chains."""
    failures = own.get("failures", [])
    if not any(failures):
        return [], groups
    import numpy
    import xarray

    temperatures, chains = own["run"]["temperatures"], own["run"]["chains"]
    each = [(number, failure) for number, failure in enumerate(failures) if failure and failure["reason"] != ELSEWHERE]
    # The temperature of a rung of the prior is "inf".
    lines = [f"chain {k % chains} at T = {float(temperatures[k // chains]):g}, step {f['step']}: {f['reason']}" for k, f in each]
    sound = xarray.DataArray(numpy.array([f is None for f in failures]).reshape(-1, chains), dims=("temperature", "chain"))
    kept = numpy.flatnonzero(sound.any("temperature"))
    if "temperature" not in groups["posterior"].dims:
        sound = sound.isel(temperature=0)
    return lines, {name: group.isel(chain=kept).where(sound.isel(chain=kept)) for name, group in groups.items()}


def _about(folder: Path, own: dict[str, Any]) -> dict[str, str | int | float]:
    """Attributes from the records of a run and of its script: strings and numbers, which every format of files can hold."""
    run, script = own.get("run", {}), record(folder.parent)
    # What was copied elsewhere is not of the script that is there.
    script = script if folder.name in script.get("parts", []) else {}
    about = {name: run.get(name) for name in ["kind", "sampler", "target", "device"]} | {"quick": int(run.get("quick", False)), "folder": str(folder)}
    about |= {"verdict": own.get("verdict"), "version": own.get("versions", {}).get("ergodic")}
    about |= {"script": script.get("script"), "seed": script.get("seed")}
    about["parameters"] = json.dumps({**script.get("defaults", {}), **script.get("settings", {})}, ensure_ascii=False)
    return {name: value for name, value in about.items() if value is not None}
