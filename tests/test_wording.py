"""Lists of names in messages."""

from dubito._wording import join_some, name_ends, name_rows


def test_many_names_are_shown_by_the_first_and_last():
    assert name_ends([f"c{k}" for k in range(1000)]) == "c0 … c999"
    assert name_ends([]) == "none"
    assert name_ends(["", "a"]) == "(no name), a"


def test_no_names_are_replaced_by_one_other():
    assert join_some("abcd", "or") == "a, b, c or d"
    assert join_some("abcde", "or") == "a, b, c or 2 others"
    assert join_some(["a"], "or") == "a"
    assert name_rows([4, 7]) == "rows 4 and 7"
