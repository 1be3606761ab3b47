import pytest

from framestorm_cli.binaries.normalise import normalise


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("frame::sender(RegisterMap*) const", "frame::sender"),
        ("void foo<int>::bar<x>(long) const [clone .cold]", "foo::bar"),
        (
            "bool vframeStreamCommon::fill_from_frame() (.part.0)",
            "vframeStreamCommon::fill_from_frame",
        ),
        ("foo.constprop.0.isra.1", "foo"),
        ("(anonymous namespace)::f(int (*)(char))", "{anonymous}::f"),
        ("operator<(A const&, B<int>)", "operator<"),
        ("std::ostream& operator<< <char>(std::ostream&, char)", "operator<<"),
        ("unsigned long Q::operator()<T>(T) const", "Q::operator()"),
        ("foo::{lambda(int)#1}::operator()(int) const", "foo::{lambda#1}::operator()"),
        ("non-virtual thunk to A::b()", "A::b"),
        ("A::operator bool() const", "A::operator bool"),
        ("Foo::bar() &&", "Foo::bar"),
        ("frame::~frame()", "frame::~frame"),
        ("malloc", "malloc"),
    ],
)
def test_only_the_name_is_left(function: str, name: str) -> None:
    assert normalise(function) == name


def test_normalising_twice_changes_nothing() -> None:
    for function in ("frame::sender", "operator<<", "Q::operator()", "{anonymous}::f"):
        assert normalise(function) == function
