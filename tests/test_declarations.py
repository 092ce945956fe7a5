"""The signatures that source files declare, in one line each."""

from __future__ import annotations

import warnings

import pytest

from commonplace.graph.declarations import SIGNATURES_MAX, signatures

PYTHON = """\
class Uploader(Base, metaclass=Meta):
    def __init__(
        self,
        path: Path,  # where to, (or from
        *,
        retries: int = 3,
    ) -> None: ...

    async def send(
        self,
        names: Sequence[str],
    ) -> dict[str, int]: ...

    def _private(self) -> None: ...


class _Hidden:
    def seen(self) -> None: ...


if True:
    def go(text: str = "(") -> str: ...
"""
DECLARED = [
    "class Uploader(Base, metaclass=Meta)",
    "def __init__(self, path: Path, *, retries: int=3) -> None",
    "async def send(self, names: Sequence[str]) -> dict[str, int]",
    "def go(text: str='(') -> str",
]

CPP = """\
#pragma once
#define OPEN {
namespace shop::net {
  // class Old { int f(int); };
  class Socket;
  enum class Mode { Read, Write };

  template <typename T>
  class Uploader final : public Base<T> {
    int secret(int a);
   public:
    explicit Uploader(std::string path,
                      int retries = 3)
        : path_(std::move(path)), retries_{retries} {
      send(path);
      std::string local(path);
    }
    ~Uploader();
    [[nodiscard]] auto send(
        const std::vector<int>& names,
        Options options = {}) const -> std::expected<int, Error>;
    virtual void stop() = 0;
    bool operator==(const Uploader& other) const;
   private:
    void hidden(int b);
    int retries_ = 3;
  };

  inline int add(int a, int b) { return a + b; }
}
extern "C" {
int shop_open(const char *path);
}
TEST(Shop, opens) { shop_open("a;b{"); }
int main(int argc, char **argv)
{
  return add(argc, 1);
}
"""
CPP_DECLARED = [
    "enum class Mode",
    "template <typename T> class Uploader final : public Base<T>",
    "explicit Uploader(std::string path, int retries = 3)",
    "~Uploader()",
    "[[nodiscard]] auto send(const std::vector<int>& names, Options options = {}) const -> std::expected<int, Error>",
    "virtual void stop() = 0",
    "bool operator==(const Uploader& other) const",
    "inline int add(int a, int b)",
    "int shop_open(const char *path)",
    "int main(int argc, char **argv)",
]  # fmt: skip

TYPESCRIPT = """\
export abstract class Shape {
export const enum Mode {
enum Colour {
export async function upload(
  files: File[], // all (of them
  { retries = 3 }: Options = {},
): Promise<void> {
export const go = async (
  x: number,
) => {
export interface Shop {
"""
TYPESCRIPT_DECLARED = [
    "export abstract class Shape",
    "export const enum Mode",
    "enum Colour",
    "export async function upload(files: File[], { retries = 3 }: Options = {}): Promise<void>",
    "export const go = async (x: number)",
    "export interface Shop",
]


@pytest.mark.parametrize(
    ("name", "text", "declared"),
    [
        ("a.py", PYTHON, DECLARED),
        ("a.hpp", CPP, CPP_DECLARED),
        ("a.ts", TYPESCRIPT, TYPESCRIPT_DECLARED),
        ("a.go", "func (s *Shop) Add(\n\ta int,\n) (int, error) {\n", ["func (s *Shop) Add(a int) (int, error)"]),
        ("a.rs", "  pub fn add(\n    a: u8,\n  ) -> u8 {\n", ["pub fn add(a: u8) -> u8"]),
        ("a.java", "  public int add(\n      int a,\n      int b) {\n", ["public int add(int a, int b)"]),
        ("a.c", "struct node *find(struct node *n) {\n  free(n);\n}\n", ["struct node *find(struct node *n)"]),
        ("a.rb", "def add(a,\n        b)\n", ["def add(a, b)"]),
        ("a.txt", "def no(): ...\n", []),
    ],
)  # fmt: skip
def test_a_declaration_is_one_line_however_it_is_wrapped(
    name: str, text: str, declared: list[str]
) -> None:
    assert signatures(name, text) == declared


def test_a_signature_says_whether_it_can_be_called() -> None:
    text = """\
struct Socket {
  Socket(const Socket&) = delete;
  Socket(Socket&&) noexcept = default;
  explicit Socket(int fd) : fd_(fd), mode_(fd == 0 ? Mode::a : Mode::b) {}
  virtual void flush() const=0;
};
"""
    assert signatures("socket.h", text)[1:] == [
        "Socket(const Socket&) = delete",
        "Socket(Socket&&) noexcept = default",
        "explicit Socket(int fd)",
        "virtual void flush() const=0",
    ]


def test_python_that_does_not_parse_is_read_by_its_lines() -> None:
    text = "class Shop:\n    def __init__(\n        self,\n        a: int,  # (\n    ) -> None:\n<<<<<<<\n"
    assert signatures("a.py", text) == ["class Shop", "def __init__(self, a: int) -> None"]


def test_brackets_that_are_never_closed_cost_no_more_than_their_line() -> None:
    assert signatures("a.go", "func Add(a int,\n" + "b\n" * 5000) == ["func Add(a int,"]


@pytest.mark.parametrize("name", ["a.py", "a.cpp", "a.ts"])
def test_whatever_a_file_holds_it_is_read_to_its_end(name: str) -> None:
    for text in (
        "(" * 50_000,
        "{" * 50_000,
        "}" * 500,
        "def f(" * 9_000,
        "class a{" * 9_000,
        "a\0b",
    ):
        assert len(signatures(name, text)) <= SIGNATURES_MAX


def test_what_is_doubtful_in_a_file_is_not_reported() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert signatures("a.py", 'def f(a: str = "\\d") -> None: ...\n')
