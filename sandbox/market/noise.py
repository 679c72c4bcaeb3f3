"""Randomness without state: any draw can be made at any time, in any order, on any machine.

A draw is a hash of (stream, stock, position). Only integer operations, the four basic float operations
and exact scaling are used, because those give the same bits everywhere; `exp` of the C library does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Keys = NDArray[np.uint64]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MUL_1 = np.uint64(0xBF58476D1CE4E5B9)
_MUL_2 = np.uint64(0x94D049BB133111EB)
_UNIT = 1.0 / (1 << 53)
_LN2 = 0.6931471805599453
_EXP_TERMS = tuple(1.0 / d for d in (40320.0, 5040.0, 720.0, 120.0, 24.0, 6.0, 2.0))


def mix(values: Any) -> Keys:
    """The splitmix64 finaliser: every input bit flips half of the output bits."""
    x = np.array(values, dtype=np.uint64, ndmin=1)
    x += _STEP
    x ^= x >> np.uint64(30)
    x *= _MUL_1
    x ^= x >> np.uint64(27)
    x *= _MUL_2
    x ^= x >> np.uint64(31)
    return x


def text_seed(text: str) -> int:
    """A 63-bit number from a name (FNV-1a), the same in every process unlike `hash`."""
    seed = 0xCBF29CE484222325
    for byte in text.encode():
        seed = ((seed ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return seed >> 1


def keys(seed: int, stream: str, identities: Any) -> Keys:
    """One key per identity for a named stream of draws."""
    return mix(mix(identities) ^ mix(np.uint64((text_seed(stream) ^ seed) & 0x7FFFFFFFFFFFFFFF)))


def bits(key: Keys, position: Any) -> Keys:
    return mix(key + np.asarray(position).astype(np.uint64) * _STEP)


def uniform(key: Keys, position: Any) -> Floats:
    """Numbers in [0, 1)."""
    numbers: Floats = np.multiply(bits(key, position) >> np.uint64(11), _UNIT, dtype=np.float64)
    return numbers


def bell(key: Keys, position: Any) -> Floats:
    """Numbers in [-1, 1), near 0 more often: the mean of four draws out of one hash."""
    a, b, c, d = quarters(key, position)
    return (a + b + c + d) * 0.5 - 1.0


def quarters(key: Keys, position: Any) -> tuple[Floats, Floats, Floats, Floats]:
    """Four independent coarse numbers in [0, 1) for the price of one hash."""
    h = bits(key, position)
    low = np.uint64(0xFFFF)
    parts = (h & low, (h >> np.uint64(16)) & low, (h >> np.uint64(32)) & low, h >> np.uint64(48))
    a, b, c, d = (part.astype(np.float64) * (1.0 / 65536.0) for part in parts)
    return a, b, c, d


def smooth(key: Keys, position: Ints, spacing: int) -> Floats:
    """Value noise in [-1, 1): draws at every `spacing`-th position, joined by a smooth step."""
    node = position // spacing
    f = (position - node * spacing) * (1.0 / spacing)
    f = f * f * (3.0 - 2.0 * f)
    left = uniform(key, node)
    level: Floats = (left + (uniform(key, node + 1) - left) * f) * 2.0 - 1.0
    return level


def exp(x: Floats) -> Floats:
    """e^x from multiplications and additions only."""
    whole = np.rint(x * (1.0 / _LN2))
    r = x - whole * _LN2
    total = np.full_like(r, _EXP_TERMS[0])
    for term in _EXP_TERMS[1:]:
        total = total * r + term
    total = (total * r + 1.0) * r + 1.0
    return np.ldexp(total, whole.astype(np.int32))
