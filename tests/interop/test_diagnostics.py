"""The numbers of arviz_traces.json are what the installed ArviZ says: the fixture cannot rot.

    python -m pytest tests/interop/test_diagnostics.py
"""

import json

import arviz
import make_arviz_loo
import numpy as np
import pytest
from make_arviz_traces import FIXTURE, draws_of, from_json, numbers, quietly, traces

FILE = json.loads(FIXTURE.read_text())
CASES = {case["name"]: case for case in FILE["cases"]}


@pytest.mark.parametrize("name", CASES)
def test_the_numbers_still_hold(name):
    case = CASES[name]
    said = quietly(numbers, draws_of(case))
    assert said.keys() == case["arviz"].keys()
    for quantity, value in said.items():
        kept = from_json(case["arviz"][quantity])
        # A mean is a difference of draws: its rounding is relative to them.
        atol = 1e-15 * np.abs(draws_of(case)).max() if quantity == "mean" else 0.0
        if quantity == "autocorrelation":
            atol = 1e-12
        np.testing.assert_allclose(value, kept, rtol=1e-9, atol=atol, err_msg=quantity)


def test_the_script_gives_the_traces_of_the_file():
    made = traces()
    assert list(made) == list(CASES)
    for name, x in made.items():
        np.testing.assert_allclose(draws_of(CASES[name]), x, rtol=1e-12, err_msg=name)


def test_a_summary_shows_the_same_numbers():
    case = CASES["AR(1) 0.9, 4 x 500"]
    data = arviz.from_dict({"posterior": {"x": draws_of(case)}})
    row = arviz.summary(data, round_to="none").loc["x"]
    for quantity in ["mean", "sd", "ess_bulk", "r_hat", "mcse_mean", "mcse_sd"]:
        np.testing.assert_allclose(row[quantity], case["arviz"][quantity], rtol=1e-9)
    # The summary's tail is that of its 0.89 interval, not the paper's 5 % and 95 %.
    np.testing.assert_allclose(row["ess_tail"], case["arviz"]["ess_tail_of_summary"], rtol=1e-9)


@pytest.mark.parametrize("case", range(len(make_arviz_loo.CASES)))
def test_leave_one_out_still_holds(case):
    kept = json.loads(make_arviz_loo.FIXTURE.read_text())["cases"][case]["arviz"]
    said = make_arviz_loo.numbers(case)
    assert said.keys() == kept.keys()
    for quantity, value in said.items():
        np.testing.assert_allclose(value, kept[quantity], rtol=1e-9, err_msg=quantity)
