"""One number's logarithm is the array's, to the last bit."""

from hypothesis import given
from hypothesis import strategies as st

from zuno.trading.measure.portable import log, log_of


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_one_number_has_the_logarithm_of_an_array(value: float) -> None:
    assert log_of(value).hex() == float(log(value)).hex()
