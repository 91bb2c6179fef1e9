import numpy as np
import pytest

from dubito.belief import Frame


def test_subset_mask_and_label_forms_agree():
    frame = Frame(["flu", "cold", "covid"])
    for mask in range(8):
        labels = frame.from_mask(mask)
        assert frame.to_mask(labels) == mask
        assert frame.from_indicator(frame.to_indicator(labels)) == labels
    assert frame.to_mask("cold") == frame.to_mask(["cold"]) == frame.to_mask({"cold"}) == 2


def test_classes_of_a_fitted_classifier_become_plain_labels():
    frame = Frame(np.array([3, 1, 2]))
    assert frame.labels == (3, 1, 2)
    assert all(type(label) is int for label in frame)
    assert frame == Frame([3, 1, 2]) == Frame(frame)
    assert frame != Frame([1, 2, 3])
    assert frame.to_mask(np.array([1, 2])) == 0b110


def test_subsets_come_in_mask_order_and_cannot_be_changed():
    frame = Frame(list("abc"))
    listed = frame.subsets()
    assert [frame.to_mask(frame.from_indicator(row)) for row in listed] == list(range(1, 8))
    with pytest.raises(ValueError, match="read-only"):
        listed[0, 0] = False


def test_a_frame_of_thousands_of_classes_is_fine_until_its_subsets_are_listed():
    frame = Frame(range(5000))
    assert frame.from_mask(frame.to_mask([0, 4999])) == (0, 4999)
    with pytest.raises(ValueError, match="allowed up to 20 classes"):
        frame.subsets()


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([], ValueError, "at least one label"),
        (["a", "b", "a"], ValueError, "'a' appears more than once"),
        ("abc", TypeError, "sequence of labels; got 'abc'"),
        (3, TypeError, "sequence of labels; got 3"),
        ({"a", "b"}, TypeError, "in an order; got a set"),
        ([float("nan"), 1.0], ValueError, "must equal itself"),
        ([("a", "b"), "c"], TypeError, "single value"),
    ],
)
def test_bad_frames_are_refused(labels, error, message):
    with pytest.raises(error, match=message):
        Frame(labels)


def test_a_boolean_row_is_an_indicator_even_where_labels_are_numbers():
    frame = Frame([0, 1, 2])
    assert frame.to_mask(np.array([False, True, True])) == 0b110
    with pytest.raises(ValueError, match=r"each of the 3 classes; got shape \(2,\)"):
        frame.to_mask(np.array([False, True]))


def test_any_collection_of_labels_is_a_subset():
    frame = Frame([0, 1, 2])
    pd = pytest.importorskip("pandas")
    for subset in (range(2), {0: "x", 1: "y"}.keys(), pd.Index([0, 1]), (k for k in (0, 1))):
        assert frame.to_mask(subset) == 0b011


def test_dates_keep_their_unit():
    days = np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[ns]")
    assert Frame(days).to_mask(days[1]) == 2


def test_unknown_labels_and_masks_are_named():
    frame = Frame(["a", "b"])
    with pytest.raises(ValueError, match=r"'z' is not in the frame \('a', 'b'\)"):
        frame.to_mask(["a", "z"])
    with pytest.raises(ValueError, match=r"0..2\^2-1"):
        frame.from_mask(4)
    with pytest.raises(ValueError, match=r"each of the 2 classes; got shape \(3,\)"):
        frame.from_indicator([True, False, True])
