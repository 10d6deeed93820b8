"""The draws of a run, for xarray and ArviZ."""

from __future__ import annotations

import json
import os
import warnings
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._program import Error

if TYPE_CHECKING:
    import xarray

#: The newest format of run.json that is read here.
FORMAT = 1


def open(run: str | os.PathLike[str]) -> xarray.DataTree:
    """Open the draws of a run that has ended.

    `run` is the folder of a run (`runs/quickstart/sweep-1`), that of a script which has made one, or what `ergodic.run` returned. The tree has the groups `posterior`
    and `sample_stats`, those of burn-in as `warmup_posterior` and `warmup_sample_stats`, and as attributes script, parameters, seed, verdict and version.
    `arviz.summary` takes it. Where ArviZ is older than 1 it is an `arviz.InferenceData` instead.

    Chains that failed are left out, as in the program's own summaries, and the attribute `failed` names them; where a chain failed at some temperatures only, its draws
    there are NaN. Raises `ergodic.Error` if there is no such run, or not only one.
    """
    try:
        import xarray
        import zarr

        if int(zarr.__version__.split(".")[0]) < 3 or not hasattr(xarray, "open_datatree"):
            raise ImportError(f"xarray {xarray.__version__} and zarr {zarr.__version__} are too old")
    except ImportError as e:
        raise ImportError(f"ergodic.open needs xarray and Zarr 3 ({e}): pip install 'ergodic[arviz]'") from e
    folder = _find(Path(run).absolute())
    own, script = record(folder), record(folder.parent)
    try:
        tree = xarray.open_datatree(folder / "trace.zarr", engine="zarr")
        failed, groups = _without_failed({name: tree[name].to_dataset() for name in ["posterior", *tree.children]}, own)
    except Exception as e:
        raise Error(f"{folder / 'trace.zarr'}: this is no trace of this version ({e!r}); `ergodic doctor --check '{folder}'` says whether it is damaged") from e
    if failed:
        warnings.warn(f"{folder.name}: chains that failed are left out: {'; '.join(failed)}", stacklevel=2)
    attributes = tree.attrs | _about(own, script) | {"folder": str(folder)} | ({"failed": "\n".join(failed)} if failed else {})
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
    """The one folder with a trace that is meant."""
    folder = folder.parent if folder.name == "trace.zarr" else folder
    if not folder.is_dir():
        raise Error(f"{folder}: " + ("this is a file; name the folder of a run" if folder.exists() else "there is no such folder"))
    if (folder / "trace.zarr").is_dir():
        return folder
    order = {name: number for number, name in enumerate(record(folder).get("parts", []))}
    inner = sorted((f for f in folder.iterdir() if f.is_dir()), key=lambda f: (order.get(f.name, len(order)), f.name))
    traces = [f for f in inner if (f / "trace.zarr").is_dir()]
    unfinished = [f for f in [folder, *inner] if (f / "checkpoint").is_dir() and not (f / "run.json").exists()]
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
    each = [(number, failure) for number, failure in enumerate(failures) if failure]
    lines = [f"chain {k % chains} at T = {temperatures[k // chains]:g}, step {f['step']}: {f['reason']}" for k, f in each]
    sound = xarray.DataArray(numpy.array([f is None for f in failures]).reshape(-1, chains), dims=("temperature", "chain"))
    kept = numpy.flatnonzero(sound.any("temperature"))
    if "temperature" not in groups["posterior"].dims:
        sound = sound.isel(temperature=0)
    return lines, {name: group.isel(chain=kept).where(sound.isel(chain=kept)) for name, group in groups.items()}


def _about(own: dict[str, Any], script: dict[str, Any]) -> dict[str, str | int | float]:
    """Attributes from the records of a run and of its script: strings and numbers, which every format of files can hold."""
    run = own.get("run", {})
    about = {name: run.get(name) for name in ["kind", "sampler", "target", "device"]} | {"quick": int(run.get("quick", False))}
    about |= {"verdict": own.get("verdict"), "version": own.get("versions", {}).get("ergodic")}
    about |= {"script": script.get("script"), "seed": script.get("seed", run.get("seed"))}
    about["parameters"] = json.dumps({**script.get("defaults", {}), **script.get("settings", {})}, ensure_ascii=False)
    return {name: value for name, value in about.items() if value is not None}
