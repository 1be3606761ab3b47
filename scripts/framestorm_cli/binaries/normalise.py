"""Function names as signatures hold them: no arguments, template arguments, return types or clones."""

import re

_OPERATORS = (
    "operator()", "operator[]", "operator->*", "operator->", "operator<=>", "operator<<=", "operator>>=",
    "operator<<", "operator>>", "operator<=", "operator>=", "operator<", "operator>", "operator,",
    "operator new[]", "operator new", "operator delete[]", "operator delete",
)  # fmt: skip
_PREFIXES = ("non-virtual thunk to ", "virtual thunk to ", "covariant return thunk to ")
_CLONES = re.compile(
    r"\s*\[clone [^\]]*\]|\s*\(\.[a-z_]+[.\d]*\)|\.(?:part|constprop|isra|cold|lto_priv|llvm)(?:\.\d+)*"
    r"|\[abi:\w+\]"
)
_PRIVATE = 0xE000  # Unicode private use: stands for an operator while brackets are being removed


def _without_groups(text: str, opening: str, closing: str) -> str:
    """Removes balanced groups; text after an unbalanced bracket is dropped with it."""
    kept: list[str] = []
    depth = 0
    for char in text:
        if char == opening:
            depth += 1
        elif char == closing:
            depth = max(0, depth - 1)
        elif depth == 0:
            kept.append(char)
    return "".join(kept)


def normalise(function: str) -> str:
    """`void foo<int>::bar(long) const [clone .cold]` is `foo::bar`. Plain C names are unchanged."""
    text = _CLONES.sub("", function.strip())
    for prefix in _PREFIXES:
        text = text.removeprefix(prefix)
    text = text.replace("(anonymous namespace)", "{anonymous}")
    for index, operator in enumerate(_OPERATORS):
        text = text.replace(operator, chr(_PRIVATE + index))
    text = _without_groups(text, "<", ">")
    text = _without_groups(text, "(", ")")
    text = re.sub(r"\s+(const|volatile|noexcept|&&?)(?=\s|$|::)", "", text).strip()
    if " " in text and not text.startswith("[") and "operator " not in text:
        text = text.rsplit(" ", 1)[-1]
    for index, operator in enumerate(_OPERATORS):
        text = text.replace(chr(_PRIVATE + index), operator)
    return text.lstrip("*&") or function.strip()
