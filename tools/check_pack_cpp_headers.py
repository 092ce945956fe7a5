"""Find standard names in C++ code whose header it does not include.

Headers include each other in ways that differ between compilers and versions, so that a compiler
does not notice such an omission. The table has the names that the pack uses.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# A name may have several headers: one of them is enough.
_NAMES = {
    "algorithm": "sort stable_sort find find_if count_if all_of any_of none_of copy transform "
    "remove remove_if unique max min clamp lower_bound upper_bound partition nth_element equal "
    "ranges::sort ranges::find ranges::find_if ranges::count_if ranges::all_of ranges::any_of "
    "ranges::copy ranges::transform ranges::max ranges::min ranges::equal ranges::max_element "
    "ranges::lower_bound ranges::binary_search ranges::is_sorted ranges::unique "
    "ranges::for_each ranges::reverse ranges::copy_n",
    "any": "any any_cast",
    "array": "array to_array",
    "atomic": "atomic memory_order_acquire memory_order_release memory_order_relaxed atomic_ref",
    "bit": "bit_cast popcount has_single_bit endian",
    "charconv": "from_chars to_chars",
    "chrono": "chrono::steady_clock chrono::milliseconds chrono::seconds",
    "compare": "strong_ordering weak_ordering partial_ordering",
    "concepts": "integral floating_point convertible_to same_as invocable totally_ordered "
    "regular semiregular equality_comparable default_initializable copy_constructible movable "
    "signed_integral unsigned_integral derived_from predicate",
    "condition_variable": "condition_variable condition_variable_any",
    "cstddef": "byte ptrdiff_t max_align_t nullptr_t",
    "cstdint": "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t",
    "cstdio": "fopen fclose fputs printf fprintf FILE snprintf",
    "cstdlib": "malloc free abort getenv strtol",
    "cstring": "memcpy memcmp strlen strerror memset",
    "deque": "deque",
    "exception": "exception terminate exception_ptr current_exception rethrow_exception "
    "uncaught_exceptions throw_with_nested rethrow_if_nested",
    "filesystem": "filesystem::path filesystem::temp_directory_path",
    "fstream": "ifstream ofstream fstream",
    "functional": "function hash less greater plus bind_front invoke ref cref reference_wrapper "
    "equal_to multiplies identity",
    "future": "future promise async packaged_task launch",
    "iostream": "cout cerr cin clog",
    "iterator": "back_inserter begin end size ssize next prev distance advance input_iterator "
    "forward_iterator_tag istream_iterator ostream_iterator make_move_iterator data",
    "limits": "numeric_limits",
    "list": "list",
    "map": "map multimap",
    "memory": "unique_ptr shared_ptr weak_ptr make_unique make_shared enable_shared_from_this "
    "allocator addressof default_delete construct_at destroy_at",
    "mutex": "mutex lock_guard unique_lock scoped_lock once_flag call_once recursive_mutex",
    "new": "bad_alloc nothrow launder align_val_t",
    "numbers": "numbers::pi",
    "numeric": "accumulate iota reduce gcd inner_product midpoint transform_reduce",
    "optional": "optional nullopt make_optional",
    "queue": "queue priority_queue",
    "random": "mt19937 mt19937_64 random_device uniform_int_distribution bernoulli_distribution",
    "ranges": "views::filter views::transform views::take views::drop views::iota views::reverse "
    "views::keys views::values views::split views::join views::all views::common "
    "ranges::subrange ranges::view_interface ranges::input_range ranges::range "
    "ranges::random_access_range ranges::forward_range ranges::range_value_t ranges::view "
    "ranges::sized_range ranges::borrowed_range ranges::contiguous_range views::elements "
    "ranges::range_reference_t ranges::dangling views::take_while views::drop_while",
    "set": "set multiset",
    "shared_mutex": "shared_mutex shared_lock",
    "source_location": "source_location",
    "span": "span as_bytes dynamic_extent",
    "sstream": "ostringstream istringstream stringstream",
    "stdexcept": "runtime_error logic_error invalid_argument out_of_range overflow_error "
    "length_error domain_error",
    "stop_token": "stop_token stop_source",
    "string": "string to_string stoi stol stod getline wstring u8string",
    "string_view": "string_view",
    "system_error": "error_code system_error errc make_error_code system_category generic_category",
    "thread": "thread jthread this_thread::sleep_for",
    "tuple": "tuple tie make_tuple apply get tuple_size_v forward_as_tuple",
    "type_traits": "enable_if_t enable_if is_same_v is_integral_v is_arithmetic_v void_t decay_t "
    "remove_cvref_t remove_reference_t is_base_of_v conditional_t true_type false_type "
    "is_constructible_v is_copy_constructible_v is_nothrow_move_constructible_v "
    "is_trivially_copyable_v invoke_result_t is_constant_evaluated underlying_type_t "
    "is_move_constructible_v is_convertible_v is_enum_v is_default_constructible_v "
    "is_floating_point_v is_pointer_v is_nothrow_swappable_v is_invocable_v is_aggregate_v "
    "is_nothrow_destructible_v is_polymorphic_v has_virtual_destructor_v is_const_v "
    "is_copy_assignable_v is_nothrow_move_assignable_v is_standard_layout_v is_class_v "
    "is_rvalue_reference_v is_lvalue_reference_v is_reference_v is_signed_v make_unsigned_t "
    "type_identity_t is_empty_v is_void_v is_nothrow_copy_constructible_v",
    "typeindex": "type_index",
    "unordered_map": "unordered_map",
    "unordered_set": "unordered_set",
    "utility": "move forward swap exchange pair make_pair as_const declval index_sequence "
    "make_index_sequence cmp_less cmp_equal cmp_greater in_range in_place piecewise_construct "
    "index_sequence_for in_place_type integer_sequence cmp_less_equal cmp_greater_equal",
    "variant": "variant visit monostate holds_alternative get_if",
    "vector": "vector",
}
# Names that the standard promises from other headers as well.
_ALSO = {
    "move": ("algorithm",),
    "swap": ("algorithm", "vector"),
    "get": ("variant", "utility", "array"),
    "begin": ("vector", "array", "string", "span", "map", "ranges", "string_view"),
    "end": ("vector", "array", "string", "span", "map", "ranges", "string_view"),
    "size": ("vector", "array", "string", "span", "map", "ranges", "string_view"),
    "ssize": ("vector", "array", "string", "span", "map", "ranges", "string_view"),
    "data": ("vector", "array", "string", "span", "string_view"),
    "hash": ("string", "memory", "string_view", "optional", "variant"),
    "string_view": ("string",),
    "getline": ("string",),
    "monostate": ("variant",),
    "bad_alloc": ("memory",),
    "strong_ordering": ("string", "vector", "utility"),
    "in_place": ("optional", "variant", "any"),
    "nullptr_t": ("memory",),
    "error_code": ("charconv",),
    "errc": ("charconv",),
    "make_move_iterator": ("vector",),
    "copy": ("algorithm",),
    "equal_to": ("functional",),
    "free": ("memory",),
    "reference_wrapper": ("functional",),
}
_HEADERS = {
    name: (header, *_ALSO.get(name, ()))
    for header, names in _NAMES.items()
    for name in names.split()
}
_STD_NAME = re.compile(
    r"\bstd::((?:ranges::|views::|chrono::|this_thread::|filesystem::|numbers::)?\w+)"
)
_COMMENT = re.compile(r"//.*|\"(?:[^\"\\\n]|\\.)*\"")
_INCLUDED = re.compile(r"#include <([^>\n]+)>")


def missing_headers(codes: Iterable[str]) -> list[str]:
    """Return `<header> for std::name` for each known name that none of its headers is there for."""
    text = "\n".join(codes)
    included = set(_INCLUDED.findall(text))
    used = dict.fromkeys(_STD_NAME.findall(_COMMENT.sub("", text)))
    return [
        f"<{_HEADERS[name][0]}> for std::{name}"
        for name in used
        if name in _HEADERS and not included & set(_HEADERS[name])
    ]
