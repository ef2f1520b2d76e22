from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from wording import refused

from oracle import InputError, InputTypeError
from oracle._checks import as_array, at_least_float64, reject

torch = pytest.importorskip("torch", reason='tensors need pip install "sinkscope[reference]"')


def test_input_errors_are_the_builtin_kinds():
    assert issubclass(InputError, ValueError)
    assert issubclass(InputTypeError, TypeError)


def test_a_message_says_what_was_expected_what_was_found_and_what_to_do():
    with pytest.raises(InputError) as caught:
        reject("rows", expected="two", found="three", todo="Drop one.")
    assert str(caught.value) == "rows: expected two; found three. Drop one."


def test_the_wording_check_can_fail():
    with pytest.raises(AssertionError), refused("rows"):
        raise InputError("rows: something is wrong")
    with pytest.raises(AssertionError), refused("rows", "four"):
        reject("rows", expected="two", found="three", todo="Drop one.")
    with pytest.raises(AssertionError), refused("rows"):
        reject("rows", expected="two", found="three\nfour", todo="Drop one.")
    with pytest.raises(pytest.fail.Exception), refused("rows"):
        pass


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble", "int32", "bool"])
def test_arrays_pass_as_they_are(dtype):
    array = np.array([[0, 1], [1, 0]], dtype=dtype)
    assert as_array("x", array) is array


def test_lists_and_torch_tensors_become_arrays():
    expected = np.array([[0.25, 0.75]])
    tensor = torch.tensor(expected, requires_grad=True)
    for given in ([[0.25, 0.75]], ((0.25, 0.75),), tensor, tensor.half(), tensor.float()):
        np.testing.assert_array_equal(as_array("x", given), expected)


def test_bfloat16_is_exact_from_torch_and_from_ml_dtypes():
    values = np.array([0.00390625, 0.3, 1 / 3], dtype=np.float32)
    rounded = torch.tensor(values).bfloat16()
    from_torch = at_least_float64("x", rounded)
    from_numpy = at_least_float64("x", values.astype(ml_dtypes.bfloat16))
    assert from_torch.dtype == from_numpy.dtype == np.float64
    np.testing.assert_array_equal(from_torch, rounded.double().numpy())
    np.testing.assert_array_equal(from_numpy, rounded.double().numpy())


@pytest.mark.parametrize(
    ("given", "wide"), [("float16", "float64"), ("int8", "float64"), ("longdouble",) * 2]
)
def test_float64_is_the_least_and_longdouble_stays(given, wide):
    assert at_least_float64("x", np.ones(2, dtype=given)).dtype == wide


@pytest.mark.parametrize("value", ["0.5", ["a", "b"], [1 + 2j], object(), None, [None], {"a": 1}, b"0.5"])
def test_what_is_no_number_is_a_type_error(value):
    with refused("x", "dtype", error=InputTypeError):
        as_array("x", value)


def test_ragged_lists_are_refused():
    with refused("x", "rectangular"):
        as_array("x", [[1, 2], [3]])


def test_tensors_that_numpy_cannot_hold_are_refused_in_our_words():
    with refused("x"):
        as_array("x", torch.ones(2).to(torch.float8_e4m3fn))


def test_lists_of_tensors_are_arrays():
    tensors = [torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0], dtype=torch.bfloat16)]
    for given in (tensors[:1] * 2, tensors, tuple(tensors), [tensors, [tensors[0], [5, 6]]]):
        array = as_array("x", given)
        assert array.dtype == np.float32 or array.dtype == np.float64
        assert array.reshape(-1, 2)[0].tolist() == [1, 2]
    assert as_array("x", [tensors, tensors])[1, 1].tolist() == [3, 4]
    assert as_array("x", [tensors[0].sum(), 1.5]).tolist() == [3, 1.5]


def test_a_masked_array_is_refused_because_its_mask_would_be_lost():
    masked = np.ma.masked_array([1.0, 2.0], mask=[False, True])
    for given in (masked, [masked, masked]):
        with refused("x", "masked array", "visible="):
            as_array("x", given)


def test_narrow_floats_that_a_file_forgot_are_sent_to_float32(tmp_path):
    for dtype in (ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
        np.savez(tmp_path / "rows.npz", rows=np.ones((2, 2), dtype))
        with (
            np.load(tmp_path / "rows.npz") as file,
            pytest.raises(InputTypeError, match=r"\. Widen bfloat16"),
        ):
            as_array("x", file["rows"])
    with refused("x", "Widen bfloat16 and float8 to float32"):
        as_array("x", torch.ones(2).to(torch.float8_e4m3fn))
    with pytest.raises(InputTypeError, match="Pass a NumPy array"):
        as_array("x", np.zeros(2, [("a", "f4")]))
