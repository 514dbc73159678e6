"""The hash of a switch against published check values, and why another seed does not cure polarisation."""

import pytest

from weftwork.engine.hashing import digest, field_bytes, final_hash
from weftwork.engine.rows.fabric import HashAlgorithm, HashField

CHECK = b"123456789"  # the check input of the catalogue of parametrised CRC algorithms
ONES = 0xFFFFFFFF
FIELDS = {"source_port": 3, "destination_port": 9, "entropy": 0xC123, "in_port": 2, "destination_qp": 0xABCDEF}


@pytest.mark.parametrize(
    ("algorithm", "seed", "inversion", "value"),
    [
        (HashAlgorithm.CRC32, ONES, ONES, 0xCBF43926),
        (HashAlgorithm.CRC32C, ONES, ONES, 0xE3069283),
        (HashAlgorithm.CRC16_CCITT, 0xFFFF, 0, 0x29B1),
        (HashAlgorithm.CRC16_CCITT, 0, 0, 0x31C3),  # XMODEM
    ],
)
def test_a_crc_gives_its_published_check_value(algorithm: HashAlgorithm, seed: int, inversion: int, value: int) -> None:
    assert digest(algorithm, seed, CHECK) ^ inversion == value


def test_xor_folds_words_padded_with_zeros_behind() -> None:
    assert digest(HashAlgorithm.XOR, 0, bytes.fromhex("01020304 10203040 ff")) == 0x01020304 ^ 0x10203040 ^ 0xFF000000
    assert digest(HashAlgorithm.XOR, 0xF, b"\0\0\0\1") == 0xE


def test_fields_lie_in_order_big_endian() -> None:
    every = sum(HashField)
    assert field_bytes(fields=every, **FIELDS).hex() == "0a0000030a00000911c12312b70002abcdef"
    assert field_bytes(fields=HashField.SRC_PORT | HashField.DST_IP, **FIELDS).hex() == "0a000009c123"


def test_another_seed_adds_one_constant_to_every_crc_but_not_to_mix() -> None:
    packets = [field_bytes(fields=31, **{**FIELDS, "entropy": 0xC000 + i}) for i in range(64)]
    for algorithm in (HashAlgorithm.CRC32, HashAlgorithm.CRC32C, HashAlgorithm.CRC16_CCITT, HashAlgorithm.XOR):
        assert len({digest(algorithm, 0, p) ^ digest(algorithm, 77, p) for p in packets}) == 1
    assert len({digest(HashAlgorithm.MIX, 0, p) ^ digest(HashAlgorithm.MIX, 77, p) for p in packets}) > 60


def test_the_offset_drops_the_lowest_bits() -> None:
    assert final_hash(HashAlgorithm.CRC32, 0, 4, CHECK) == digest(HashAlgorithm.CRC32, 0, CHECK) >> 4
