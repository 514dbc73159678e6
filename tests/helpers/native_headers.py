"""What a header of the core uses, by names, and whether it includes what declares it.

Names are read from the text: what begins a line is declared by a header, and a name that one header alone declares is
that header's. Leaves out: members, names that several headers declare, and what a macro makes; that each header
compiles by itself is checked by the compiler (`cmake --build FOLDER --target check-headers`).
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

STANDARD: Final[Mapping[str, str]] = {  # header: names of std that it declares
    "algorithm": "all_of any_of clamp copy copy_n count count_if equal fill fill_n find find_if lower_bound "
    "make_heap max max_element merge min min_element minmax none_of nth_element partition pop_heap push_heap "
    "remove_if replace reverse rotate set_difference sort stable_sort transform unique upper_bound",
    "array": "array",
    "bit": "bit_cast bit_ceil bit_floor bit_width countl_zero countr_zero has_single_bit popcount",
    "cmath": "abs ceil exp floor fmod isfinite isinf isnan llrint lround log log2 pow round sqrt trunc",
    "compare": "partial_ordering strong_ordering weak_ordering",
    "concepts": "convertible_to floating_point integral invocable same_as",
    "cstddef": "byte ptrdiff_t size_t",
    "cstdint": "int8_t int16_t int32_t int64_t intptr_t uint8_t uint16_t uint32_t uint64_t uintptr_t",
    "cstring": "memcmp memcpy memmove memset strlen",
    "deque": "deque",
    "exception": "current_exception exception exception_ptr rethrow_exception",
    "functional": "function greater hash less",
    "iterator": "back_inserter distance next prev",
    "limits": "numeric_limits",
    "map": "map multimap",
    "memory": "align make_shared make_unique shared_ptr unique_ptr",
    "numeric": "accumulate gcd inner_product iota lcm partial_sum reduce",
    "optional": "nullopt optional",
    "queue": "priority_queue queue",
    "set": "multiset set",
    "span": "span",
    "stdexcept": "invalid_argument length_error logic_error out_of_range runtime_error",
    "string": "stod stoi string to_string",
    "string_view": "string_view",
    "tuple": "apply make_tuple tie tuple tuple_size_v",
    "type_traits": "conditional_t decay_t enable_if_t is_constructible_v is_same_v is_standard_layout_v "
    "is_trivially_copyable_v remove_cvref_t underlying_type_t",
    "unordered_map": "unordered_map unordered_multimap",
    "unordered_set": "unordered_set",
    "utility": "as_const cmp_equal cmp_greater cmp_greater_equal cmp_less cmp_less_equal cmp_not_equal declval "
    "exchange forward in_range move pair swap",
    "variant": "get_if holds_alternative variant visit",
    "vector": "vector",
}
_HEADER_OF: Final = {name: header for header, names in STANDARD.items() for name in names.split()}
_INCLUDE: Final = re.compile(r'^#include [<"]([^>"]+)[>"]', re.MULTILINE)
_QUIET: Final = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|^#[^\n]*', re.DOTALL | re.MULTILINE)
_WORD: Final = re.compile(
    r"(?<![\w.])(?<!->)(?<!::)[A-Za-z_]\w*|(?<=\bweftwork::)\w+|(?<=\bdetail::)\w+|(?<=\bflow::)\w+"
)
_LOCAL: Final = re.compile(r"(?:\bstruct|\bclass|\busing|\btypename|>) ([A-Z]\w*)")
_NAMESPACE: Final = re.compile(r"^namespace ([\w:]+) \{$", re.MULTILINE)
_DECLARED: Final = re.compile(  # a record, another name for one, a constant, an inline function, another function
    r"^(?:struct|class|enum class|enum|union|concept) (?:alignas\(\d+\) )?(\w+)(?= *(?:[:{=]|final))"
    r"|^using (\w+) ="
    r"|^(?:template <.*> )?(?:\[\[[^\]]*\]\] )?(?:inline |constexpr |static )+[^;{}=()]*?\b(k[A-Z]\w*)\b *[={]"
    r"|^(?:\[\[[^\]]*\]\] )?(?:inline|constexpr|template)\b[^;{}=()]*?\b([a-z]\w*)\("
    r"|^(?!return|else|namespace|using|static_assert|if|for|while)[A-Za-z_][\w:<>,&* ]* [&*]?([a-z]\w*)"
    r"\((?=[^;{}]*\)(?: const| noexcept)*(?: ?\{|;))",
    re.MULTILINE,
)


@cache
def text_alone(text: str) -> str:
    """A file without comments, texts and directives."""
    return _QUIET.sub(" ", text)


@cache
def includes_of(text: str) -> set[str]:
    """Headers that a file includes, by the name in the directive."""
    return set(_INCLUDE.findall(text))


@cache
def declared_names(text: str) -> dict[str, str]:
    """Names that a header declares for others, outside of any record, each with its namespace."""
    plain = text_alone(text)
    names: dict[str, str] = {}
    spaces = [(match.end(), match[1]) for match in _NAMESPACE.finditer(plain)]
    for match in _DECLARED.finditer(plain):
        space = next((space for begin, space in reversed(spaces) if begin <= match.start()), "")
        name = next(group for group in match.groups() if group)
        names.setdefault(name, space)
    return names


def standard_headers(text: str) -> dict[str, str]:
    """Headers of the standard library that a file needs, each with a name that asks for it."""
    used = re.findall(r"\bstd::(?:ranges::)?(\w+)", text_alone(text))
    return {_HEADER_OF[name]: f"std::{name}" for name in used if name in _HEADER_OF}


def missing_includes(file: str, texts: Mapping[str, str]) -> dict[str, str]:
    """Headers that a file uses by name and does not include itself, each with one such name.

    Parameters
    ----------
    file : name below ``native``
    texts : all headers, by such names
    """
    text = texts[file]
    included = includes_of(text)
    own = f"{file.removesuffix('_test.cpp').removesuffix('.cpp')}.hpp"
    if file.endswith(".cpp") and own in texts:
        included |= includes_of(texts[own])
    missing = {header: name for header, name in standard_headers(text).items() if header not in included}
    reached = reached_headers(file, texts)
    plain = text_alone(text)
    local = set(declared_names(text)) | set(_LOCAL.findall(plain))
    homes: dict[str, set[str]] = {}
    for header in texts:
        for name in declared_names(texts[header]) if header.endswith(".hpp") and header != file else ():
            homes.setdefault(name, set()).add(header)
    engines = {header.partition("/")[0] for header in texts} - {"base", "paths", "rows", file.partition("/")[0]}
    beside = {header for header in texts if header.partition("/")[0] not in engines}
    for match in _WORD.finditer(plain):
        name = match[0]
        is_type = name[0].isupper() or re.match(r"k[A-Z]", name)
        if name in local or not (is_type or plain[match.end() : match.end() + 1] == "("):
            continue
        known = homes.get(name, set())
        near = known & reached or (known & beside if name[0].isupper() else set())
        if len(near) == 1 and not near <= included:
            missing.setdefault(next(iter(near)), name)
    return missing


def reached_headers(file: str, texts: Mapping[str, str]) -> set[str]:
    """Headers that a file includes, over any number of others; `texts` as for `missing_includes`."""
    seen: set[str] = set()
    rest = [file]
    while rest:
        new = {name for name in includes_of(texts[rest.pop()]) if name in texts} - seen
        seen |= new
        rest += new
    return seen
