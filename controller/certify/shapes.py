"""A quick proof that data is in canonical form: it has the shape of data that was proved at length.

    {"credit":12500,"on":["plein-17"],"post":3}          proved by spelling it again (``leaf.check_data``)
    {"credit":INT,"on":[STRING,STRING,…],"post":INT}     its shape, as a pattern

A table writes the same few kinds of facts a million times. The names in a shape are those of the example, in order and
once each; a whole number has one spelling, so has each character of a text, and an array holds elements that have the
shapes of the example's elements. So whatever fits a shape is canonical, by construction, and nothing need be
decoded to see it. What fits no shape proves nothing: it is proved at length, and its shape is learned.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from controller.certify.leaf import check_data

SHAPES_BOUND = 256
"""Shapes that are learned, at the most. Data of further ones is proved at length each time."""

_INTEGER = r"(?:0|-?[1-9][0-9]{0,14})"
"""Whole numbers of up to 15 digits, all of which are within ``leaf.INTEGER_BOUND``. Zero has no sign."""

_PLAIN = r"[ !#-\[\]-\x7f]*"
"""ASCII that JSON neither needs nor permits to be escaped."""

_OTHER = (
    r'\\[bfnrt"\\]'
    r"|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]"
    r"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}"
)
"""The escapes that have a letter (RFC 8785, 3.2.2.2), and well-formed UTF-8 (Unicode 16, table 3-7)."""

_STRING = f'"{_PLAIN}(?:(?:{_OTHER}){_PLAIN})*"'


class Shapes:
    """The shapes that were learned, by the kind of fact that has them."""

    def __init__(self) -> None:
        self._fits: dict[bytes, list[Callable[[bytes], object]]] = {}
        self._count = 0

    def check(self, kind: bytes, data: bytes) -> None:
        """Check that ``data``, of a fact of this ``kind``, is a JSON object in canonical form.

        Raises LeafFault (E-LEAF-DATA, E-LEAF-VALUE) and UnicodeDecodeError.
        """
        for fits in self._fits.get(kind, ()):
            if fits(data):
                return
        self._learn(kind, data)

    def _learn(self, kind: bytes, data: bytes) -> None:
        text = data.decode()
        check_data([text])
        if self._count < SHAPES_BOUND:
            self._count += 1
            fits = re.compile(_shape(json.loads(text)).encode("latin-1")).fullmatch
            if fits(data):  # not when it has what no shape has, such as a number of 16 digits
                self._fits.setdefault(kind, []).append(fits)


def _shape(value: Any) -> str:
    """The pattern of canonical values that differ from ``value`` in scalars, and in how many elements arrays have."""
    if isinstance(value, bool):
        return "(?:true|false)"
    if isinstance(value, int):
        return _INTEGER
    if isinstance(value, str):
        return _STRING
    if isinstance(value, dict):
        members = (f"{re.escape(json.dumps(name))}:{_shape(value[name])}" for name in sorted(value))
        return rf"\{{{','.join(members)}\}}"
    elements = sorted({_shape(element) for element in value})
    return rf"\[(?:(?:{'|'.join(elements)})(?:,(?:{'|'.join(elements)}))*)?\]" if elements else r"\[\]"
