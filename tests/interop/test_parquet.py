"""Tables that pandas and Arrow write as Parquet are what dataset::parquet has.

    ERGODIC=target/release/ergodic pytest -s tests/interop/test_parquet.py
"""

import datetime
import json
import os
import subprocess

import numpy
import pytest

pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402

if "ERGODIC" not in os.environ:
    pytest.skip("ERGODIC is not set", allow_module_level=True)

OPTIONS = "#{ task: \"regression\", label: \"y\", test: 0.0, scale: \"none\""


def rows(folder, more=""):
    script = folder / "s.rhai"
    script.write_text(f"""
        let d = dataset::parquet("{folder}/t.parquet", {OPTIONS} {more} }});
        let out = [];
        for i in 0..d.train_rows {{ let r = d.row("train", i); out.push(r.inputs + r.targets); }}
        out
    """)
    done = subprocess.run([os.environ["ERGODIC"], "run", "--json", "--out", str(folder / "out"), "--force", str(script)], capture_output=True, text=True)
    if done.returncode:
        return done.stderr
    return numpy.array(json.loads(done.stdout))


def frame(n=250):
    r = numpy.random.default_rng(5)
    return pandas.DataFrame({
        "double": r.normal(size=n), "single": r.normal(size=n).astype("f4"), "half": r.normal(size=n).astype("f2"),
        "byte": r.integers(-128, 128, n).astype("i1"), "long": r.integers(-2**40, 2**40, n), "unsigned": r.integers(0, 2**32, n).astype("u4"),
        "flag": r.random(n) < 0.5, "y": r.normal(size=n),
    })


@pytest.mark.parametrize("how", [{}, {"compression": "gzip"}, {"compression": None, "row_group_size": 7}, {"use_dictionary": False, "data_page_version": "2.0"},
                                 {"version": "1.0"}, {"compression": "zstd"}, {"compression": "lz4"}, {"row_group_size": 100, "compression": "snappy"}])
def test_numbers_of_every_type(tmp_path, how):
    table = frame()
    shuffled = table.sample(frac=1, random_state=1)  # has an index that is no input
    for t in [table, shuffled]:
        t.to_parquet(tmp_path / "t.parquet", **how)
        numpy.testing.assert_array_equal(rows(tmp_path), t.to_numpy(dtype="f8"))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_dates_and_words(tmp_path, unit):
    days = pandas.date_range("1969-12-30 06:00", periods=40, freq="37h")
    table = pyarrow.table({
        "when": pyarrow.array(days.to_pydatetime(), pyarrow.timestamp(unit)), "zoned": pyarrow.array(days.to_pydatetime(), pyarrow.timestamp(unit, "UTC")),
        "day": pyarrow.array([d.date() for d in days], pyarrow.date32()),
        "word": pyarrow.array(["a", "bé", "c,\"d\""] * 13 + ["a"], pyarrow.large_string()),
        "kind": pyarrow.array(["p", "q"] * 20).dictionary_encode(), "list": pyarrow.array([[1.0, 2.0]] * 40),
        "y": numpy.arange(40.0),
    })
    parquet.write_table(table, tmp_path / "t.parquet")
    found = rows(tmp_path, """, inputs: ["when", "zoned", "day", "word", "kind"], dates: ["when", "zoned", "day"], categories: ["word", "kind"]""")
    since = (days - days[0]) / datetime.timedelta(days=1)
    whole = (days.normalize() - days[0].normalize()) / datetime.timedelta(days=1)
    words = [[w == v for v in ["a", "bé", "c,\"d\""]] for w in table["word"].to_pylist()]
    kinds = [[w == v for v in "pq"] for w in table["kind"].to_pylist()]
    expected = numpy.column_stack([since - since[0] + 0.25, since - since[0] + 0.25, whole, words, kinds, numpy.arange(40.0)])
    numpy.testing.assert_allclose(found, expected, atol=1e-9)
    assert "row 1, column 'list': \"a list\" is not a number" in rows(tmp_path, ', inputs: ["list"]')


def test_nulls_are_missing(tmp_path):
    table = frame(20)
    table.loc[3, "double"] = None
    table["long"] = table["long"].astype("Int64")
    table.loc[5, "long"] = pandas.NA
    table.to_parquet(tmp_path / "t.parquet")
    assert "row 4, column 'double'" in rows(tmp_path)
    found = rows(tmp_path, ", missing: #{ double: \"mean\", long: 7 }")
    expected = table.fillna({"double": table["double"].mean(), "long": 7}).to_numpy(dtype="f8")
    numpy.testing.assert_allclose(found, expected, rtol=1e-15)


def test_other_compressions_are_named(tmp_path):
    frame(20).to_parquet(tmp_path / "t.parquet", compression="brotli")
    said = rows(tmp_path)
    assert "Disabled feature at compile time: brotli" in said, said


def tokens(folder, options):
    script = folder / "s.rhai"
    script.write_text(f"""
        let d = dataset::tokens("{folder}/t.parquet", #{{ test: 0.0 {options} }});
        let out = [];
        for i in 0..d.train_rows {{ let r = d.row("train", i); out.push(r.inputs + [r.targets[-1]]); }}
        out
    """)
    done = subprocess.run([os.environ["ERGODIC"], "run", "--json", "--out", str(folder / "out"), "--force", str(script)], capture_output=True, text=True)
    return done.stderr if done.returncode else json.loads(done.stdout)


def test_tokens_are_columns_of_lists_or_of_numbers(tmp_path):
    texts = [[5, 1, 70_000, 3, 2], [], [4, 4, 9, 0, 1], [7, 7]]
    table = pyarrow.table({"text": ["a", "b", "c", "d"], "input_ids": pyarrow.array(texts, pyarrow.list_(pyarrow.uint32())), "n": pyarrow.array([3, 1, 2, 0], pyarrow.int16())})
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=3)
    assert tokens(tmp_path, ', array: "input_ids", context: 2') == [[5, 1, 70_000], [70_000, 3, 2], [4, 4, 9], [9, 0, 1]]
    assert tokens(tmp_path, ', array: "n", context: 3') == [[3, 1, 2, 0]]
    assert "texts of several lengths, up to 5: the option 'context' must say" in tokens(tmp_path, ', array: "input_ids"')
    assert "has 3 columns; the option 'array' must name one: text, input_ids, n" in tokens(tmp_path, ", context: 2")
    assert "no column 'input_id'; did you mean 'input_ids'" in tokens(tmp_path, ', array: "input_id", context: 2')
    assert "is no whole number, as tokens are" in tokens(tmp_path, ', array: "text", context: 2')
    parquet.write_table(table.slice(0, 1).select(["input_ids"]), tmp_path / "t.parquet")
    assert tokens(tmp_path, "") == [[5, 1, 70_000, 3, 2]]
    parquet.write_table(pyarrow.table({"n": pyarrow.array([1, None, 2], pyarrow.int32())}), tmp_path / "t.parquet")
    assert "row 1 is null" in tokens(tmp_path, ", context: 1")
