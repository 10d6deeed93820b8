"""Tensors of scripts against NumPy, whose shapes, broadcasting and indices they promise: cases that Hypothesis makes up, those at the edges first.

    ERGODIC=target/release/ergodic pytest tests/interop/test_properties.py

What NumPy refuses must be refused, by an error that a script can catch.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, mutually_broadcastable_shapes

if "ERGODIC" not in os.environ:
    pytest.skip("ERGODIC is not set", allow_module_level=True)

# The same cases in every run.
cases = settings(derandomize=True, max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
NUMBERS = st.integers(-64, 64).map(lambda n: n / 8)
SHAPES = array_shapes(min_dims=1, max_dims=4, max_side=4)


def tensors(shape):
    return arrays(np.float64, shape, elements=NUMBERS)


def written(x):
    return f"tensor({json.dumps(x.ravel().tolist())}).reshape({list(x.shape)})"


def ours(*expressions):
    """Shape and elements of each, or what the error says."""
    lines = [f"try {{ let t = {e}; all.push([t.shape(), t.flatten().to_array()]); }} catch (why) {{ all.push(why.to_string()); }}" for e in expressions]
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "s.rhai")
        script.write_text("let all = [];\n" + "\n".join(lines) + "\nall\n")
        command = [os.environ["ERGODIC"], "run", "--json", "--quiet", "--out", f"{folder}/out", str(script)]
        done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check(pairs):
    """Pairs of an expression and the function that computes it with NumPy."""
    for (expression, theirs), found in zip(pairs, ours(*(e for e, _ in pairs)), strict=True):
        try:
            with np.errstate(all="ignore"):
                expected = np.asarray(theirs(), dtype=np.float64)
        except (ValueError, IndexError):
            assert isinstance(found, str) and found, f"{expression} should be refused, and is {found}"
            continue
        assert not isinstance(found, str), f"{expression}: {found}"
        shape, elements = found
        assert tuple(shape) == expected.shape, expression
        # JSON has no NaN and no infinities.
        elements = np.array([np.nan if e is None else e for e in elements]).reshape(expected.shape)
        expected = np.where(np.isfinite(expected), expected, np.nan)
        np.testing.assert_allclose(elements, expected, rtol=1e-13, atol=1e-13, err_msg=expression)


BINARY = {
    "{a} + {b}": np.add,
    "{a} - {b}": np.subtract,
    "{a} * {b}": np.multiply,
    "{a} / {b}": np.divide,
    "{a}.maximum({b})": np.maximum,
    "{a}.minimum({b})": np.minimum,
    "{a}.lt({b})": np.less,
    "{a}.ge({b})": np.greater_equal,
    "{a}.eq({b})": np.equal,
    "{a}.ln_add_exp({b})": np.logaddexp,
}


@cases
@given(st.data(), st.one_of(mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4).map(lambda s: s.input_shapes), st.tuples(SHAPES, SHAPES)))
def test_operands_are_broadcast(data, shapes):
    a, b = (data.draw(tensors(shape)) for shape in shapes)
    check([(form.format(a=written(a), b=written(b)), lambda f=f: f(a, b)) for form, f in BINARY.items()])


@cases
@given(st.data(), SHAPES)
def test_indices_count_from_either_end(data, shape):
    x = data.draw(tensors(shape))
    axis, index = data.draw(st.integers(-5, 5)), data.draw(st.integers(-6, 6))
    low, high = sorted(data.draw(st.tuples(*[st.integers(0, shape[axis] if -x.ndim <= axis < x.ndim else 2)] * 2)))
    along = lambda: np.take(x, range(low, high), axis)
    pairs = [(f"{written(x)}[{index}]", lambda: x[index]), (f"{written(x)}.select({axis}, {index})", lambda: np.take(x, index, axis))]
    if low < high:
        pairs.append((f"{written(x)}.slice({axis}, {low}, {high})", along))
    check(pairs)


REDUCTIONS = {
    "sum": np.sum,
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "log_sum_exp": np.logaddexp.reduce,
}


@cases
@given(st.data(), SHAPES, st.integers(-5, 5))
def test_an_axis_is_reduced(data, shape, axis):
    x = data.draw(tensors(shape))
    pairs = [(f"{written(x)}.{name}({axis})", lambda f=f: f(x, axis=axis)) for name, f in REDUCTIONS.items()]
    pairs += [(f"{written(x)}.{name}({axis}, true)", lambda f=f: f(x, axis=axis, keepdims=True)) for name, f in REDUCTIONS.items()]
    pairs.append((f"{written(x)}.cumsum({axis})", lambda: np.cumsum(x, axis)))
    pairs.append((f"{written(x)}.softmax({axis})", lambda: np.exp(x - np.logaddexp.reduce(x, axis=axis, keepdims=True))))
    check(pairs)


@cases
@given(st.data(), SHAPES, SHAPES, st.integers(-5, 5), st.integers(-5, 5))
def test_shapes_change_as_in_numpy(data, shape, other, a, b):
    x = data.draw(tensors(shape))
    pads = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=x.ndim))
    check([
        (f"{written(x)}.reshape({list(other)})", lambda: x.reshape(other)),
        (f"{written(x)}.transpose({a}, {b})", lambda: np.swapaxes(x, a, b)),
        (f"{written(x)}.unsqueeze({a})", lambda: np.expand_dims(x, a)),
        (f"{written(x)}.squeeze({a})", lambda: np.squeeze(x, a)),
        (f"{written(x)}.pad({json.dumps(pads)})", lambda: np.pad(x, [(0, 0)] * (x.ndim - len(pads)) + pads)),
    ])


@cases
@given(st.data(), SHAPES, st.integers(-5, 5), st.integers(1, 3), st.booleans())
def test_tensors_are_joined(data, shape, axis, count, odd):
    shapes = [shape] * (count - 1) + [data.draw(SHAPES) if odd else shape]
    all_ = [data.draw(tensors(s)) for s in shapes]
    listed = "[" + ", ".join(map(written, all_)) + "]"
    check([
        (f"tensor::concat({listed}, {axis})", lambda: np.concatenate(all_, axis)),
        (f"tensor::stack({listed}, {axis})", lambda: np.stack(all_, axis)),
    ])


@cases
@given(st.data(), mutually_broadcastable_shapes(signature="(m?,n),(n,p?)->(m?,p?)", max_dims=2, max_side=4), st.booleans())
def test_products_are_those_of_numpy(data, shapes, odd):
    shapes = [*shapes.input_shapes]
    if odd:
        shapes[1] = data.draw(SHAPES)
    a, b = (data.draw(tensors(shape)) for shape in shapes)
    pairs = [(f"{written(a)}.matmul({written(b)})", lambda: np.matmul(a, b))]
    if a.ndim == b.ndim == 2:
        pairs.append((f'tensor::einsum("ij,jk->ki", [{written(a)}, {written(b)}])', lambda: np.einsum("ij,jk->ki", a, b)))
    check(pairs)
