"""Trees of scikit-learn are loaded if their indices are valid, and refused if forged."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dubito.calibration import CalibratedClassifier, PlattCalibrator
from dubito.saving import ModelFileError, load, save
from dubito.saving.trust import CHECKED
from saving.forging import as_npy, forge, node, nodes_of, value
from saving.zoo import NAMES, NEW, X

TREE, PREDICTOR = CHECKED

HONEST = {
    "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
    "stump": DecisionTreeClassifier(max_depth=1, random_state=0),
    "forest": RandomForestClassifier(4, random_state=0),
    "extra": ExtraTreesClassifier(4, max_leaf_nodes=6, random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=3),
    "few columns": BaggingClassifier(max_features=0.5, n_estimators=4, random_state=0),
    "ada": AdaBoostClassifier(n_estimators=3, random_state=0),
    "piped": make_pipeline(StandardScaler(), RandomForestClassifier(3, random_state=0)),
    "calibrated": CalibratedClassifier(RandomForestClassifier(3, random_state=0), cv=2),
    "not fitted": CalibratedClassifier(
        CalibratedClassifier(RandomForestClassifier(3, random_state=0), cv=2), cv=2
    ),
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.skops"


@pytest.mark.parametrize("name", HONEST)
def test_unchanged_trees_load_without_trusted(name, path):
    model = HONEST[name].fit(X, NAMES)
    save(model, path)
    np.testing.assert_array_equal(load(path).model.predict_proba(NEW), model.predict_proba(NEW))


def nodes_file(schema, loader):
    """Return the name of the member that holds the nodes of some tree."""
    names = {TREE: "nodes", PREDICTOR: "nodes"}
    tree = next(one for one in nodes_of(schema, loader) if full_name(one) in names)
    return tree["content"]["content"]["nodes"]["file"]


def full_name(one):
    return f"{one['__module__']}.{one['__class__']}"


def spoil_nodes(path, loader, spoil):
    """Change the node table of one tree of a file."""
    seen = []
    forge(path, schema=lambda schema: seen.append(nodes_file(schema, loader)))

    def change(members):
        table = np.load(BytesIO(members[seen[0]]))
        spoil(table)
        members[seen[0]] = as_npy(table)

    forge(path, members=change)


def assert_refused(path, names):
    with pytest.raises(ModelFileError, match="was not loaded: it names") as refusal:
        load(path)
    for name in names:
        assert f"--trust {name}" in str(refusal.value)


FAR = 2**31 - 2
SPOILS = {
    "child far away": ("left", FAR),
    "other child far away": ("right", FAR),
    "child is its parent": ("left", 0),
    "no such column": ("feature", 4),
    "column far away": ("feature", FAR),
}
OF_TREE = {"left": "left_child", "right": "right_child", "feature": "feature"}
OF_PREDICTOR = {"left": "left", "right": "right", "feature": "feature_idx"}


@pytest.mark.parametrize("kind", ["tree", "forest", "calibrated"])
@pytest.mark.parametrize("spoil", SPOILS)
def test_forged_trees_are_refused(kind, spoil, path):
    save(HONEST[kind].fit(X, NAMES), path)
    column, number = SPOILS[spoil]

    def change(table):
        table[OF_TREE[column]][0] = number

    spoil_nodes(path, "TreeNode", change)
    assert_refused(path, [TREE])


@pytest.mark.parametrize("spoil", SPOILS)
def test_forged_boosting_is_refused(spoil, path):
    save(HONEST["boosting"].fit(X, NAMES), path)
    column, number = SPOILS[spoil]

    def change(table):
        table[OF_PREDICTOR[column]][0] = number

    spoil_nodes(path, "ObjectNode", change)
    assert_refused(path, [PREDICTOR])


def test_categories_in_boosting_are_left_to_the_user(path):
    table = pd.DataFrame(
        {"town": pd.Categorical(np.resize(list("abc"), 90)), "age": np.arange(90.0)}
    )
    model = HistGradientBoostingClassifier(max_iter=2, categorical_features="from_dtype")
    save(model.fit(table, np.resize([0, 0, 1, 1, 1], 90)), path)
    with pytest.raises(ModelFileError, match="was not loaded"):
        load(path)


def attributes(schema, kind):
    """Return the attributes of the first object of a kind, as nodes by name."""
    found = next(one for one in nodes_of(schema, "ObjectNode") if one["__class__"] == kind)
    return found["content"]["content"]


@pytest.mark.parametrize("kind", ["RandomForestClassifier", "DecisionTreeClassifier"])
def test_trees_that_take_other_columns_than_are_checked_are_refused(kind, path):
    """Otherwise rows with too few columns would pass the check, and trees read beyond them."""
    save(HONEST["forest"].fit(X, NAMES), path)
    forge(path, schema=lambda schema: attributes(schema, kind).update(n_features_in_=value(2)))
    assert_refused(path, [TREE])


def test_boosting_that_would_not_check_its_rows_is_refused(path):
    save(HONEST["boosting"].fit(X, NAMES), path)
    kind = "HistGradientBoostingClassifier"
    forge(path, schema=lambda schema: attributes(schema, kind).update(_in_fit=value(True)))
    assert load(path)  # an attribute that the original object lacks is not set

    def set_it(schema):
        own = attributes(schema, kind)
        own["_in_fit"] = value(True)
        found = next(one for one in nodes_of(schema, "ObjectNode") if one["__class__"] == kind)
        types = found["content"]["key_types"]["content"]
        types.append(types[0])

    forge(path, schema=set_it)
    assert_refused(path, [PREDICTOR])


def test_a_check_of_rows_that_the_file_replaces_is_refused(path):
    """A method named by the file would skip the check of the rows."""
    save(HONEST["tree"].fit(X, NAMES), path)

    def shadow(schema):
        own = attributes(schema, "DecisionTreeClassifier")
        first = next(iter(own))
        renamed = {("_validate_X_predict" if name == first else name): own[name] for name in own}
        renamed["_validate_X_predict"] = value("any value in its place")
        own.clear()
        own.update(renamed)

    forge(path, schema=shadow)
    with pytest.raises(ModelFileError, match="has a _validate_X_predict of its own"):
        load(path)


@pytest.mark.parametrize("number", [7, 0, None])
def test_a_tree_hidden_elsewhere_is_refused(path, number):
    """As an attribute of another object its indices would not be checked."""
    save(HONEST["tree"].fit(X, NAMES), path)

    def hide(schema):
        own = attributes(schema, "DecisionTreeClassifier")
        another = {**own["tree_"], "__id__": number}
        labels = node("TupleNode", "builtins", "tuple", content=[another, value("b")])
        argument = node("TupleNode", "builtins", "tuple", content=[labels])
        frame = node("ConstructorFromReduceNode", "dubito.belief.frame", "Frame", content=argument)
        own["criterion"] = frame

    forge(path, schema=hide)
    assert_refused(path, [TREE])


def test_unreviewed_ensembles_must_be_named_by_the_user(path):
    model = GradientBoostingClassifier(n_estimators=2).fit(X, NAMES)
    save(CalibratedClassifier(model, PlattCalibrator(), cv=2).fit(X, NAMES), path)
    names = [
        "sklearn.ensemble._gb.GradientBoostingClassifier",
        "sklearn.tree._classes.DecisionTreeRegressor",
        TREE,
    ]
    assert_refused(path, names)
    assert load(path, trusted=names).stamp.classes == np.unique(NAMES).tolist()
