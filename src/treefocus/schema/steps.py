"""Numbers that lie a step apart, without a list of them: the next one above, below and beside any number.

People count in decimals, computers in binary: three steps of 0.1 add up to 0.30000000000000004. The multiples are
therefore counted in whole numbers of the last decimal, (begin + k * step) / divisor with a divisor of 10, 100, ...:
one division of whole numbers rounds once, to the float that "0.3" is read as.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import fmod, gcd

import numpy as np

from treefocus.model.forest import Bools, Floats
from treefocus.model.grid import as_input, floor_to

_MOST = 2.0**52  # steps from the beginning: beyond them every float64 counts as a multiple
_LONGEST = 15  # decimals, beyond which a step is what its float64 is


@dataclass(frozen=True)
class Steps:
    """The numbers (begin + k * step) / divisor for every whole k, as float32 values where `is_single`."""

    begin: float
    step: float
    divisor: float = 1.0
    is_single: bool = False

    @classmethod
    def of(cls, step: float, begin: float = 0.0, *, is_single: bool = False) -> Steps:
        """The numbers that lie `step` apart, from `begin` on in both directions, as people write them.

        Examples
        --------
        >>> from treefocus.schema.steps import Steps
        >>> import numpy as np
        >>> Steps.of(0.1).down(np.array([0.35, -0.35])).tolist()
        [0.3, -0.4]
        """
        digits = max(0, *(-int(Decimal(repr(float(one))).normalize().as_tuple().exponent) for one in (step, begin)))
        power = 10.0**digits
        if digits > _LONGEST or max(abs(begin), step) * power > _MOST:
            near = begin if abs(begin) < _MOST * step else fmod(begin, step)
            return cls(float(near), float(step), 1.0, is_single)
        first, by = round(Fraction(repr(float(begin))) * 10**digits), round(Fraction(repr(float(step))) * 10**digits)
        return cls(float(first % by), float(by), power, is_single)

    @classmethod
    def from_numbers(cls, numbers: Floats) -> Steps:
        """From what `numbers` gives."""
        begin, step, divisor, is_single = (float(number) for number in numbers)
        return cls(begin, step, divisor, bool(is_single))

    @property
    def numbers(self) -> Floats:
        """(4,) begin, step, divisor and whether they are float32 values: what the kernels take."""
        return np.array([self.begin, self.step, self.divisor, float(self.is_single)])

    @property
    def whole(self) -> Steps | None:
        """Those of them that are whole numbers; None where there are none."""
        begin, step, divisor = int(self.begin), int(self.step), int(self.divisor)
        if (begin, step, divisor) != (self.begin, self.step, self.divisor):  # no decimals: nobody's whole numbers
            return None
        common = gcd(step, divisor)
        if begin % common:
            return None
        period = divisor // common  # begin + k * step is a multiple of the divisor for one k in so many
        k = -begin // common * pow(step // common, -1, period) % period if period > 1 else 0
        return Steps(float((begin + k * step) // divisor), float(step // common), 1.0, self.is_single)

    def at(self, k: Floats) -> Floats:
        """The k-th of them."""
        return _at(k, self.begin, self.step, self.divisor, self.is_single)

    def up(self, values: Floats) -> Floats:
        """The smallest of them not below each value; a missing one stays missing."""
        return -_down(-np.asarray(values, np.float64), -self.begin, self.step, self.divisor, self.is_single)

    def down(self, values: Floats) -> Floats:
        """The largest of them not above each value; a missing one stays missing."""
        return _down(values, self.begin, self.step, self.divisor, self.is_single)

    def nearest(self, values: Floats) -> Floats:
        """The nearest of them to each value, of two equally near the lower."""
        return _nearer(values, self.down(values), self.up(values))


@dataclass(frozen=True, eq=False)
class StepColumns:
    """Several columns of steps side by side, all asked at once: (..., n_columns) values in, as many out."""

    begin: Floats  # (n_columns,) each as in `Steps`
    step: Floats
    divisor: Floats
    is_single: Bools

    @classmethod
    def from_numbers(cls, numbers: Floats) -> StepColumns:
        """From what `Steps.numbers` gives of each, (n_columns, 4)."""
        return cls(numbers[:, 0], numbers[:, 1], numbers[:, 2], numbers[:, 3] != 0)

    def only(self, chosen: Bools) -> StepColumns:
        """Some of the columns, (n_columns,) of them."""
        return StepColumns(self.begin[chosen], self.step[chosen], self.divisor[chosen], self.is_single[chosen])

    def up(self, values: Floats) -> Floats:
        """As `Steps.up`, each column by its own steps."""
        return -_down(-values, -self.begin, self.step, self.divisor, self.is_single)

    def down(self, values: Floats) -> Floats:
        """As `Steps.down`, each column by its own steps."""
        return _down(values, self.begin, self.step, self.divisor, self.is_single)

    def hold(self, values: Floats) -> Bools:
        """Whether each value is one of its column's."""
        with np.errstate(invalid="ignore", over="ignore"):
            count = np.rint((values * self.divisor - self.begin) / self.step)
            is_one = np.asarray(_at(count, self.begin, self.step, self.divisor, self.is_single) == values)
        return is_one if is_one.all() else np.asarray(self.down(values) == values)  # which never miscounts

    def nearest(self, values: Floats) -> Floats:
        """As `Steps.nearest`, each column by its own steps."""
        above, below = self.inside(values, values)
        return _nearer(values, below, above)

    def inside(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """`up` of the low ends of intervals and `down` of the high ones, both at once."""
        begin = np.stack([-self.begin, self.begin])
        begin = begin.reshape(2, *(1,) * (low.ndim - 1), -1)
        down = _down(np.stack([-low, high]), begin, self.step, self.divisor, self.is_single)
        return -down[0], down[1]


Number = float | Floats  # one for all values, or one a column
Truth = bool | Bools


def _at(k: Floats, begin: Number, step: Number, divisor: Number, is_single: Truth) -> Floats:
    values = np.asarray((begin + k * step) / divisor)
    return np.where(is_single, as_input(values, "float32"), values) if np.any(is_single) else values


def _down(values: Floats, begin: Number, step: Number, divisor: Number, is_single: Truth) -> Floats:
    """The largest not above each value: counted, and mended where rounding has miscounted by one."""
    values, has_single = np.asarray(values, np.float64), bool(np.any(is_single))
    with np.errstate(invalid="ignore", over="ignore"):
        k = np.floor((values * divisor - begin) / step)
        is_far = ~(np.abs(k) < _MOST)
        if has_single:  # between two float32 values lie several of them: each is one's nearest
            spacing = np.spacing(np.abs(values).astype(np.float32)).astype(np.float64)
            is_far |= is_single & (step / divisor <= spacing / 2)
        k = np.where(is_far, 0.0, k)
        while (above := ~is_far & (_at(k, begin, step, divisor, is_single) > values)).any():
            k = k - above
        while (below := ~is_far & (_at(k + 1, begin, step, divisor, is_single) <= values)).any():
            k = k + below
        far = np.where(is_single, floor_to(values, "float32"), values) if has_single else values
    return np.where(is_far, far, _at(k, begin, step, divisor, is_single) + 0.0)


def _nearer(values: Floats, below: Floats, above: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.where(values - below <= above - values, below, above)


def is_sound(numbers: Floats) -> bool:
    """Whether four numbers are what `Steps.numbers` can give."""
    begin, step, divisor, is_single = numbers.tolist()
    is_counted = np.isfinite(numbers).all() and step > 0 and divisor > 0 and abs(begin) <= _MOST * step
    return bool(is_counted and is_single in (0.0, 1.0))
