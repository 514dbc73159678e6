"""Quantities as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.nearest import nearest
from weftwork.base.units import DURATION, LENGTH, RATE, SIZE, QuantityKind, UnitError, format_quantity, parse_quantity


@pytest.mark.parametrize(
    ("quantity", "text", "value"),
    [
        (RATE, "400Gbps", 400_000_000_000),
        (RATE, "400 Gbps", 400_000_000_000),
        (RATE, "1.6Tbps", 1_600_000_000_000),
        (RATE, "10kbps", 10_000),
        (RATE, "10Kbps", 10_000),
        (RATE, "8bps", 8),
        (RATE, "0", 0),
        (SIZE, "2MiB", 2_097_152),
        (SIZE, "256KB", 256_000),
        (SIZE, "256kB", 256_000),
        (SIZE, "1e6", 1_000_000),
        (SIZE, "1e6B", 1_000_000),
        (SIZE, "4096", 4_096),
        (SIZE, "0.5KiB", 512),
        (SIZE, ".5KB", 500),
        (SIZE, "1TiB", 2**40),
        (DURATION, "500ns", 500_000),
        (DURATION, "1.5us", 1_500_000),
        (DURATION, "1.5µs", 1_500_000),
        (DURATION, " 2ms ", 2_000_000_000),
        (DURATION, "0.1s", 100_000_000_000),
        (DURATION, "7ps", 7),
        (LENGTH, "20m", 20.0),
        (LENGTH, "1.5km", 1_500.0),
        (LENGTH, "30cm", 0.3),
    ],
)
def test_text_becomes_a_number_of_base_units(quantity: QuantityKind, text: str, value: float) -> None:
    found = parse_quantity(quantity, text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("quantity", "text", "words", "fix"),
    [
        (RATE, "400", "without a unit", None),
        (RATE, "400Gb", "units bps, kbps", "400Gbps"),
        (RATE, "400gbps", "wanted a rate", "400Gbps"),
        (RATE, "400Gb/s", "wanted a rate", "400Gbps"),
        (RATE, "400Gbit/s", "wanted a rate", "400Gbps"),
        (RATE, "400G", "wanted a rate", "400Gbps"),
        (RATE, "50GBps", "wanted a rate", "400Gbps"),
        (RATE, "0.5MB/s", "wanted a rate", "4Mbps"),
        (RATE, "fast", "wanted a rate", None),
        (RATE, "-1Gbps", "not negative", None),
        (SIZE, "2mib", "wanted a size", "2MiB"),
        (SIZE, "2Mb", "wanted a size", "2MB"),
        (SIZE, "2M", "wanted a size", "2MB"),
        (SIZE, "2bytes", "wanted a size", "2B"),
        (SIZE, "0.5", "finer than one B", None),
        (SIZE, "1e30", "too large", None),
        (SIZE, "1e999999999", "wanted a size", None),
        (SIZE, "9" * 70, "wanted a size", None),
        (SIZE, "", "wanted a size", None),
        (DURATION, "500", "without a unit", None),
        (DURATION, "5sec", "wanted a time", "5s"),
        (DURATION, "5Ms", "wanted a time", "5ms"),
        (DURATION, "0.3ps", "finer than one ps", None),
        (DURATION, "1e9s", "too large; the most is 2000000s", None),
        (DURATION, "1h30m", "wanted a time", None),
        (DURATION, "1_000ns", "wanted a time", None),
        (DURATION, "٣ns", "wanted a time", None),
        (LENGTH, "20", "without a unit", None),
        (LENGTH, "20meters", "wanted a length", "20m"),
        (LENGTH, "3ly", "wanted a length", None),
    ],
)
def test_wrong_text_says_what_is_allowed_and_the_nearest_unit(
    quantity: QuantityKind, text: str, words: str, fix: str | None
) -> None:
    with pytest.raises(UnitError) as caught:
        parse_quantity(quantity, text)
    assert words in caught.value.text
    assert caught.value.fix == fix


@pytest.mark.parametrize(
    ("quantity", "value", "text"),
    [
        (RATE, 400_000_000_000, "400Gbps"),
        (RATE, 1_600_000_000_000, "1.6Tbps"),
        (RATE, 0, "0bps"),
        (SIZE, 2_097_152, "2MiB"),
        (SIZE, 64_000_000, "64MB"),
        (SIZE, 1_000, "1KB"),
        (SIZE, 1_023, "1.023KB"),
        (SIZE, 1, "1B"),
        (DURATION, 1_500_000, "1.5us"),
        (DURATION, 500_000_000_000, "500ms"),
        (LENGTH, 20.0, "20m"),
        (LENGTH, 0.3, "0.3m"),
    ],
)
def test_a_number_is_written_in_the_shortest_way(quantity: QuantityKind, value: float, text: str) -> None:
    assert format_quantity(quantity, value) == text


@pytest.mark.parametrize("quantity", [RATE, SIZE, DURATION], ids=lambda quantity: quantity.name)
@given(data=st.data())
def test_what_is_written_reads_back_equal(quantity: QuantityKind, data: st.DataObject) -> None:
    value = data.draw(
        st.integers(0, quantity.largest)
        | st.builds(
            lambda digits, zeros: min(digits * 10**zeros, quantity.largest), st.integers(0, 9_999), st.integers(0, 15)
        )
    )
    assert parse_quantity(quantity, format_quantity(quantity, value)) == value


@given(st.floats(0.001, 1e8))
def test_a_length_that_is_written_reads_back_equal(length_m: float) -> None:
    assert parse_quantity(LENGTH, format_quantity(LENGTH, length_m)) == length_m


@pytest.mark.parametrize("quantity", [RATE, SIZE, DURATION, LENGTH], ids=lambda quantity: quantity.name)
@given(text=st.text(max_size=80) | st.from_regex(r"-?[0-9.eE+]{1,12}\s?[a-zA-Zµ/]{0,5}", fullmatch=True))
def test_any_text_is_a_quantity_or_a_unit_error(quantity: QuantityKind, text: str) -> None:
    try:
        value = parse_quantity(quantity, text)
    except UnitError as error:
        told = str(error)
    else:
        assert 0 <= value <= quantity.largest
        return
    assert "found" in told


@pytest.mark.parametrize("quantity", [RATE, SIZE, DURATION, LENGTH], ids=lambda quantity: quantity.name)
def test_every_wrong_spelling_leads_to_a_unit(quantity: QuantityKind) -> None:
    for wrong, right in quantity.spellings.items():
        assert right in quantity.units, wrong


def test_the_nearest_word_ignores_case_and_dashes() -> None:
    words = ["congestion_control", "load_balancing"]
    assert nearest("Congestion-Control", words) == "congestion_control"
    assert nearest("load balancing", words) == "load_balancing"
    assert nearest("zzz", words) is None
    assert nearest("x" * 10_000, words) is None
