# SPDX-License-Identifier: Apache-2.0
"""Reads the text of a filter into its tree, checked against the paths that can be asked for and the shapes they have.

Every refusal is an InputError that names the part and its position (counted from 1).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

from muster.domain.model.errors import InputError
from muster.domain.model.filters import Always, And, Compare, Contains, Fields, Has, In, Not, Or, Scalar, Shape, StartsWith, Tree
from muster.domain.model.moments import moment
from muster.domain.model.near import near

LONGEST = 4000
"""Characters of a filter."""
DEEPEST = 40
"""Parentheses and negations within each other."""
PARTS = 200
"""Comparisons, and values of a list."""

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<number>-?(?:\d+\.\d+|\d+)(?:[eE][+-]?\d+)?(?P<unit>[A-Za-z%]*))
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)
  | (?P<sign>&&|\|\||==|!=|<=|>=|[<>!()\[\],.])
  | (?P<end>\Z))""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\\": "\\", '"': '"', "'": "'", "/": "/"}
_DATE = re.compile(r"^\d{4}-\d{2}-\d{2}$")
_UNITS = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15}
_ORDERED = frozenset({"<", "<=", ">", ">="})
_COMPARISONS = _ORDERED | {"==", "!="}
_PREFIX = "readings."
_METHOD = ".startsWith"


def understand(text: str, fields: Fields, now: float) -> Tree:
    """The tree of ``text``. ``now`` is what times like "-10m" are counted from. Raises InputError."""
    if len(text) > LONGEST:
        raise InputError(f"the filter is longer than {LONGEST} characters")
    return _Parser(_tokens(text), fields, now).whole()


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int
    value: Scalar | None = None


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while not found or found[-1].kind != "end":
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            place = at + len(text[at:]) - len(text[at:].lstrip())
            _refuse(f"{text[place : place + 20]!r} is not understood{_meant(text, place)}", place)
        found.append(_token(match))
        at = match.end()
    return found


def _meant(text: str, place: int) -> str:
    """What those mean who write so."""
    if text.startswith("=", place):
        return "; equal is =="
    return "; a text stands in quotes" if place and text[place - 1].isalnum() else ""


def _token(match: re.Match[str]) -> _Token:
    kind = next(k for k in ("string", "number", "word", "sign", "end") if match.group(k) is not None)
    text, at = match.group(kind), match.start(kind)
    if kind == "string":
        return _Token(kind, text, at, _string(text))
    if kind == "number":
        return _Token(kind, text, at, _number(text, match.group("unit"), at))
    return _Token(kind, text, at)


def _string(text: str) -> str:
    return _ESCAPE.sub(lambda m: _sign(int(m[1][1:], 16)) if len(m[1]) == 5 else _ESCAPED.get(m[1], m[1]), text[1:-1])


def _sign(code: int) -> str:
    return "\N{REPLACEMENT CHARACTER}" if 0xD800 <= code <= 0xDFFF else chr(code)


def _number(text: str, unit: str, at: int) -> int | float:
    if unit not in _UNITS:
        _refuse(f"{text!r}: no unit {unit!r}; known are {' '.join(u for u in _UNITS if u)}", at)
    bare = text[: len(text) - len(unit)] if unit else text
    number: int | float = int(bare) if bare.lstrip("-").isdigit() else float(bare)
    scaled = number * _UNITS[unit]
    if isinstance(scaled, float) and abs(scaled) == float("inf"):
        _refuse(f"{text!r} is too large", at)
    return scaled


def _refuse(what: str, at: int) -> NoReturn:
    raise InputError(f"filter, position {at + 1}: {what}", hint='a filter is like: presence == "present" && memory.total >= 64Gi')


@dataclass(slots=True)
class _Parser:
    tokens: list[_Token]
    fields: Fields
    now: float
    place: int = 0
    depth: int = 0
    parts: int = field(default=0)

    def whole(self) -> Tree:
        tree = self._either()
        if self._next.kind != "end":
            _refuse(f"{self._next.text!r} is one too many", self._next.at)
        return tree

    @property
    def _next(self) -> _Token:
        return self.tokens[self.place]

    def _take(self) -> _Token:
        token = self.tokens[self.place]
        self.place = min(self.place + 1, len(self.tokens) - 1)
        return token

    def _skip(self, sign: str) -> bool:
        if self._next.kind == "sign" and self._next.text == sign:
            self.place += 1
            return True
        return False

    def _need(self, sign: str) -> None:
        if not self._skip(sign):
            _refuse(f"{sign!r} is expected before {self._next.text or 'the end'!r}", self._next.at)

    def _count(self, at: int) -> None:
        self.parts += 1
        if self.parts > PARTS:
            _refuse(f"more than {PARTS} parts", at)

    def _deeper(self, inner: Callable[[], Tree], at: int) -> Tree:
        self.depth += 1
        if self.depth > DEEPEST:
            _refuse(f"nested deeper than {DEEPEST}", at)
        tree = inner()
        self.depth -= 1
        return tree

    def _either(self) -> Tree:
        tree = self._both()
        while self._skip("||"):
            tree = Or(tree, self._both())
        return tree

    def _both(self) -> Tree:
        tree = self._one()
        while self._skip("&&"):
            tree = And(tree, self._one())
        return tree

    def _one(self) -> Tree:
        token = self._next
        self._count(token.at)
        if self._skip("!"):
            return Not(self._deeper(self._one, token.at))
        if self._skip("("):
            tree = self._deeper(self._either, token.at)
            self._need(")")
            return tree
        if token.kind in ("string", "number"):
            return self._value_in()
        if token.kind != "word":
            _refuse(f"a path is expected, not {token.text or 'the end'!r}", token.at)
        if token.text in ("true", "false"):
            self._take()
            return Always(token.text == "true")
        if token.text == "has":
            return self._has()
        return self._about_path()

    def _has(self) -> Tree:
        self._take()
        self._need("(")
        path, _ = self._path()
        self._need(")")
        return Has(path)

    def _value_in(self) -> Tree:
        token = self._take()
        word = self._take()
        if word.text != "in":
            _refuse(f"{word.text or 'the end'!r}: put the path on the left and the value on the right", word.at)
        at = self._next.at
        path, shape = self._path()
        if shape is not Shape.LIST:
            _refuse(f"{path!r} holds no list", at)
        return Contains(_value(token), path)

    def _about_path(self) -> Tree:
        token = self._next
        path, shape = self._path()
        if self._next.kind == "word" and self._next.text == "in":
            self._take()
            return self._in(path, shape)
        if self._next.text in _COMPARISONS and self._next.kind == "sign":
            return self._comparison(path, shape)
        if self._method():
            return self._starts_with(path, shape)
        if shape is Shape.BOOL:
            return Compare(path, "==", True)
        return _refuse(f"{path!r} is compared with nothing", token.at)

    def _comparison(self, path: str, shape: Shape) -> Tree:
        op = self._take()
        token = self._take()
        if shape in (Shape.LIST, Shape.MAP):
            _refuse(f"{path!r} is a {shape}: ask has({path})" + (f' or "value" in {path}' if shape is Shape.LIST else ""), op.at)
        if op.text in _ORDERED and shape in (Shape.BOOL, Shape.TEXT):
            _refuse(f"{path!r} has no order for {op.text!r}: compare it with == or !=", op.at)
        return Compare(path, op.text, self._fits(token, path, shape))

    def _in(self, path: str, shape: Shape) -> Tree:
        if shape in (Shape.LIST, Shape.MAP):
            _refuse(f"{path!r} is a {shape}: ask has({path})", self._next.at)
        self._need("[")
        values: list[Scalar] = []
        while not self._skip("]"):
            if values:
                self._need(",")
            self._count(self._next.at)
            values.append(self._fits(self._take(), path, shape))
        return In(path, tuple(values))

    def _method(self) -> bool:
        return self._next.text == "." and self.tokens[self.place + 1].text == _METHOD[1:]

    def _starts_with(self, path: str, shape: Shape) -> Tree:
        self.place += 2
        self._need("(")
        token = self._take()
        if shape is not Shape.TEXT or not isinstance(token.value, str):
            _refuse(f"startsWith asks a text for a text; {path!r} is a {shape}", token.at)
        self._need(")")
        return StartsWith(path, token.value)

    def _fits(self, token: _Token, path: str, shape: Shape) -> Scalar:
        value = _value(token)
        if shape is Shape.TIME and isinstance(value, str):
            return moment(value, self.now)
        if shape is Shape.DATE and not (isinstance(value, str) and _DATE.match(value)):
            _refuse(f'{path!r} is a date like "2026-08-01", {token.text} is not', token.at)
        wanted: type | tuple[type, ...] = {Shape.TEXT: str, Shape.DATE: str, Shape.BOOL: bool}.get(shape, (int, float))
        if not isinstance(value, wanted) or (isinstance(value, bool) and shape is not Shape.BOOL):
            _refuse(f"{path!r} is a {shape}, {token.text} is not", token.at)
        return value

    def _path(self) -> tuple[str, Shape]:
        token = self._take()
        if token.kind != "word":
            _refuse(f"a path is expected, not {token.text or 'the end'!r}", token.at)
        name = token.text
        if name == "readings" and self._skip("["):
            key = self._take()
            if not isinstance(key.value, str):
                _refuse('readings wants a key, like readings["memory.total"]', key.at)
            self._need("]")
            return self._known(_PREFIX + key.value, key.at)
        if name.endswith(_METHOD) and self._next.text == "(":
            name = name.removesuffix(_METHOD)
            self.place -= 1
            self.tokens[self.place : self.place + 1] = [_Token("sign", ".", token.at), _Token("word", _METHOD[1:], token.at + len(name) + 1)]
        return self._known(name, token.at)

    def _known(self, name: str, at: int) -> tuple[str, Shape]:
        bare = name.removeprefix(_PREFIX)
        for path in (name, bare):
            if path in self.fields:
                return path, self.fields[path]
        _refuse("; ".join(filter(None, (f"no field {bare!r}", near(bare, self.fields)))), at)


def _value(token: _Token) -> Scalar:
    if token.value is not None:
        return token.value
    if token.kind == "word" and token.text in ("true", "false"):
        return token.text == "true"
    return _refuse(f"a value is expected, not {token.text or 'the end'!r}", token.at)
