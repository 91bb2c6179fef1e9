"""Files of trusted types with harmful attributes are refused before the model is used."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, LinearSVC

from dubito.calibration import CalibratedClassifier, PlattCalibrator
from dubito.pipeline import CautiousPipeline
from dubito.saving import ModelFileError, archive, load, save
from dubito.saving.trust import reviewed_names
from saving.forging import as_npy, forge, node, nodes_of, value
from saving.zoo import NAMES, NEW, X

LINEAR = LogisticRegression(max_iter=1000).fit(X, NAMES)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.skops"


def stacked(member, method):
    """Return a stack that calls a given method of a given member."""
    model = StackingClassifier([("a", LogisticRegression())])
    model.estimators_, model.stack_method_ = [member], [method]
    model.classes_, model.final_estimator_ = np.unique(NAMES), LINEAR
    model._label_encoder = None
    return model


def writer(target):
    """Return pipeline steps that would write a file at prediction."""
    return [
        ("name", stacked(np.array([[target.encode()]]), "__deepcopy__")),
        ("text", FunctionTransformer(str, kw_args={"encoding": "ascii"})),
        ("file", stacked(np.array([b"print('owned')"]), "tofile")),
    ]


def test_a_file_cannot_write_files(path, tmp_path):
    save(Pipeline(writer(f"{tmp_path}/owned.py")), path)
    with pytest.raises(ModelFileError, match="was not loaded"):
        load(path).model.predict(X)
    assert [file.name for file in tmp_path.iterdir()] == ["model.skops"]


@pytest.mark.parametrize("step", range(3))
def test_every_step_of_that_is_refused_by_itself(step, path):
    save(Pipeline([writer("owned.py")[step], ("model", LINEAR)]), path)
    with pytest.raises(ModelFileError, match="was not loaded"):
        load(path)


def spoilt(model, **attributes):
    """Return a fitted model with attributes that fitting does not set."""
    for name, content in attributes.items():
        setattr(model, name, content)
    return model


def fitted(model):
    return clone(model).fit(X, NAMES)


ODD = {
    "method by name": lambda: stacked(LINEAR, "__setstate__"),
    "methods by name": lambda: spoilt(stacked(LINEAR, "predict"), stack_method_="tofile"),
    "array as a member": lambda: stacked(np.zeros(3), "predict"),
    "dict as a member": lambda: stacked({"predict": 1}, "predict"),
    "text as a member": lambda: stacked("predict", "predict"),
    "array as a step": lambda: Pipeline([("a", np.zeros(3)), ("model", LINEAR)]),
    "array as a named member": lambda: spoilt(
        fitted(VotingClassifier([("a", GaussianNB())])), named_estimators_={"a": np.zeros(3)}
    ),
    "array as what is frozen": lambda: spoilt(
        CalibratedClassifier(FrozenEstimator(LINEAR), PlattCalibrator()).fit(X, NAMES),
        estimator=np.zeros(3),
    ),
    "response": lambda: spoilt(
        fitted(CalibratedClassifier(GaussianNB(), PlattCalibrator(), cv=2)),
        response_method_="set_params",
    ),
    "calibrator": lambda: spoilt(
        fitted(CalibratedClassifier(GaussianNB(), cv=2)), calibrator="set_params"
    ),
    "threshold": lambda: spoilt(
        FixedThresholdClassifier(LinearSVC()).fit(X[:100], NAMES[:100]), response_method="fit"
    ),
    "method of its own": lambda: spoilt(fitted(LINEAR), predict=GaussianNB()),
    "property of its own": lambda: spoilt(fitted(SVC()), _impl="epsilon_svr"),
    "type of text": lambda: spoilt(fitted(LINEAR), more=[str]),
    "masked": lambda: spoilt(
        fitted(LINEAR), more=np.ma.MaskedArray(np.array([str, None]), [True, False])
    ),
    "sparse matrix": lambda: spoilt(fitted(LINEAR), more=far_sparse()),
    "random state": lambda: spoilt(fitted(LINEAR), random_state=far_random()),
    "machine's vectors": lambda: spoilt(fitted(SVC()), _dual_coef_=np.zeros((2, 3))),
    "machine's pairs": lambda: spoilt(fitted(SVC()), _intercept_=np.zeros(1)),
    "machine's kernel": lambda: spoilt(fitted(SVC()), kernel="precomputed"),
    "encoder's width": lambda: Pipeline(
        [
            ("words", spoilt(OneHotEncoder().fit(X.astype(int)), _n_features_outs=[1, 1, 1, 1])),
            ("model", LINEAR),
        ]
    ),
}


SETTINGS = {
    "sums": lambda: fitted(GridSearchCV(GaussianNB(), {})).set_params(pre_dispatch="a**9**9"),
    "importance": lambda: Pipeline(
        [
            ("pick", spoilt(fitted(SelectFromModel(LINEAR)), importance_getter="a.b.c")),
            ("model", LINEAR),
        ]
    ),
    "cache": lambda: fitted(Pipeline([("model", LINEAR)], memory=None)).set_params(
        memory="a folder of pickles"
    ),
    "cautious cache": lambda: fitted(CautiousPipeline([("model", LINEAR)])).set_params(
        memory="a folder of pickles"
    ),
}


def far_sparse():
    matrix = sparse.csr_array(np.eye(3))
    matrix.indices[0] = 10**6
    return matrix


def far_random():
    state = np.random.RandomState(0)
    raw = state.get_state(legacy=False)
    raw["state"]["pos"] = 10**6
    state.set_state(raw)
    return state


@pytest.mark.parametrize("kind", ODD)
def test_what_fitting_does_not_leave_is_refused(kind, path):
    save(ODD[kind](), path)
    message = (
        r"not loaded: (its \w+ has |the numbers in its \w+ do not agree|it names builtins\.str)"
    )
    with pytest.raises(ModelFileError, match=message) as refusal:
        load(path)
    assert "made to do harm" in str(refusal.value)
    assert "trust" not in str(refusal.value)


@pytest.mark.parametrize("kind", SETTINGS)
def test_unusual_settings_need_a_word_of_the_user(kind, path):
    save(SETTINGS[kind](), path)
    with pytest.raises(
        ModelFileError, match=r"its \w+ has (memory|importance_getter|pre_dispatch)='a"
    ) as refusal:
        load(path)
    if kind == "cautious cache":
        assert "trust" not in str(refusal.value)
    else:
        named = str(refusal.value).split("--trust ")[1].split()[0]
        assert load(path, trusted=[named])


@pytest.mark.parametrize("model", [KNeighborsClassifier(algorithm="brute"), CountVectorizer()])
def test_unreviewed_estimators_are_refused(model, path):
    """Nearest neighbours index memory by their labels; vectorizers open files by name."""
    fitted_one = model.fit(X, NAMES) if hasattr(model, "predict") else model.fit(["a word"])
    save(spoilt(fitted_one, classes_=np.unique(NAMES)), path)
    kind = type(model)
    with pytest.raises(ModelFileError, match=f"--trust {kind.__module__}.{kind.__name__}"):
        load(path)


HONEST = {
    "stack": StackingClassifier([("svm", LinearSVC()), ("bayes", GaussianNB())], cv=2),
    "dropped": StackingClassifier([("svm", "drop"), ("bayes", GaussianNB())], cv=2),
    "vote": VotingClassifier([("svm", SVC()), ("bayes", GaussianNB())]),
    "search": GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 1]}, cv=2),
    "machine": SVC(),
    "linear machine": SVC(kernel="linear"),
    "pairs": OneVsOneClassifier(LinearSVC()),
    "rest": OneVsRestClassifier(LogisticRegression(max_iter=1000)),
    "sigmoids": CalibratedClassifierCV(LinearSVC(), cv=2),
    "picked": make_pipeline(SelectFromModel(LinearSVC()), GaussianNB()),
    "eliminated": make_pipeline(RFE(LogisticRegression(max_iter=1000)), GaussianNB()),
    "bins": make_pipeline(KBinsDiscretizer(4, strategy="uniform"), LINEAR),
    "one-hot": make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()),
    "rare": make_pipeline(
        OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=5), LogisticRegression()
    ),
    "first dropped": make_pipeline(
        OneHotEncoder(handle_unknown="ignore", drop="first", max_categories=4),
        LogisticRegression(),
    ),
    "whole numbers": make_pipeline(
        OrdinalEncoder(dtype=np.float32, handle_unknown="use_encoded_value", unknown_value=-1),
        GaussianNB(),
    ),
    "quantiles": make_pipeline(QuantileTransformer(n_quantiles=10), GaussianNB()),
    "united": make_pipeline(
        FeatureUnion([("a", StandardScaler()), ("b", FunctionTransformer())]), GaussianNB()
    ),
    "columns": make_pipeline(
        ColumnTransformer([("a", StandardScaler(), [0, 1])], remainder="passthrough"), GaussianNB()
    ),
}


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("name", HONEST)
def test_unchanged_models_load_without_trusted(name, path):
    model = fitted(HONEST[name])
    save(model, path)
    np.testing.assert_array_equal(load(path).model.predict(NEW), model.predict(NEW))


def test_a_machine_of_sparse_rows_needs_no_word_of_the_user(path):
    model = SVC().fit(sparse.csr_matrix(X), NAMES)
    save(model, path)
    np.testing.assert_array_equal(load(path).model.predict(NEW), model.predict(NEW))


@pytest.mark.parametrize(("given", "kept"), [(None, None), (1, 1), (-1, -1), (10**6, -1)])
def test_no_more_processes_are_started_than_there_are_cores(given, kept, path):
    union = FeatureUnion([("a", StandardScaler()), ("b", StandardScaler())])
    save(
        make_pipeline(union, GaussianNB()).fit(X, NAMES).set_params(featureunion__n_jobs=given),
        path,
    )
    assert load(path).model[0].n_jobs == kept


def test_reviewed_names_are_estimators_that_skops_trusts():
    from skops.io._trusted_types import SKLEARN_ESTIMATOR_TYPE_NAMES

    assert len(reviewed_names()) > 60
    assert reviewed_names() <= set(SKLEARN_ESTIMATOR_TYPE_NAMES)
    risky = ("feature_extraction", "neighbors", "cluster", "gaussian_process")
    assert not [name for name in reviewed_names() if name.split(".")[1] in risky]


def add(schema, name, new):
    """Set one more attribute of the outermost object of a schema."""
    content = schema["content"]
    content["content"][name] = new
    types = content["key_types"]["content"]
    types.append(types[0])


def test_one_number_for_two_things_is_refused(path):
    """skops would create the first object and use it in place of the second."""
    save(stacked(LINEAR, "predict"), path)

    def alias(schema):
        own = schema["content"]["content"]
        honest = next(iter(own["stack_method_"]["content"]))
        first = next(iter(own))
        own[first] = {**value("tofile"), "__id__": honest["__id__"]}

    forge(path, schema=alias)
    with pytest.raises(ModelFileError, match="somebody changed its schema"):
        load(path)


@pytest.mark.parametrize("number", ["7", 7.0, True, [7]])
def test_numbers_of_objects_are_whole(number, path):
    save(LINEAR, path)
    forge(path, schema=lambda schema: add(schema, "more", {**value(1), "__id__": number}))
    with pytest.raises(ModelFileError):
        load(path)


def test_a_key_s_type_cannot_be_borrowed(path):
    """The types of keys are in every file: referred to by number, they could be called."""
    save(make_pipeline(FunctionTransformer(), LINEAR), path)

    def borrow(schema):
        own = next(one for one in nodes_of(schema, "ObjectNode") if "Function" in one["__class__"])
        own["content"]["content"]["func"] = dict(schema["content"]["key_types"]["content"][0])

    forge(path, schema=borrow)
    with pytest.raises(ModelFileError, match=r"names builtins\.str"):
        load(path)


@pytest.mark.parametrize("name", ["__array_interface__", "__class__", "__sklearn_tags__"])
def test_names_that_python_keeps_to_itself_are_refused(name, path):
    save(spoilt(fitted(LINEAR), more=GaussianNB()), path)

    def rename(schema):
        own = schema["content"]["content"]["more"]["content"]
        own["content"][name] = value({"data": (4096, False), "shape": (1,), "typestr": "|u1"})
        own["key_types"]["content"] *= 2

    forge(path, schema=rename)
    with pytest.raises(ModelFileError, match="somebody changed its schema"):
        load(path)


def test_masked_arrays_are_made_of_arrays_alone(path):
    """numpy accesses the memory of other objects immediately."""
    save(spoilt(fitted(LINEAR), more=np.ma.MaskedArray([1.0, 2.0], [True, False])), path)
    assert load(path)

    def replace(schema):
        schema["content"]["content"]["more"]["content"]["data"] = value(1)

    forge(path, schema=replace)
    with pytest.raises(ModelFileError, match="somebody changed its schema"):
        load(path)


def test_few_lines_do_not_unfold_into_endless_paths(path):
    save(LINEAR, path)

    def double(schema):
        inner = {**value(1), "__id__": 10**6}
        for number in range(10**6 + 1, 10**6 + 60):
            again = {**value(1), "__id__": inner["__id__"]}
            inner = node("ListNode", "builtins", "list", content=[inner, again], __id__=number)
        add(schema, "more", inner)

    forge(path, schema=double)
    with pytest.raises(ModelFileError, match="somebody changed its schema"):
        load(path)


def test_a_member_read_many_times_does_not_fill_the_memory(path, monkeypatch):
    save(LINEAR, path)

    def read_often(schema):
        array = node("NdArrayNode", "numpy", "ndarray", type="numpy", file="big.npy")
        arrays = [{**array, "__id__": 10**6 + i} for i in range(60)]
        add(schema, "more", node("ListNode", "builtins", "list", content=arrays))

    big = as_npy(np.zeros(10_000))
    forge(path, schema=read_often, members=lambda members: members.update({"big.npy": big}))
    assert load(path)
    monkeypatch.setattr(archive, "MOST_BYTES", 10**6)
    monkeypatch.setattr(archive, "MOST_TIMES", 10)
    with pytest.raises(ModelFileError, match="would unpack to"):
        load(path)


def test_a_seed_that_takes_days_is_refused(path):
    save(spoilt(fitted(LINEAR), more=np.random.default_rng(0)), path)
    assert load(path)

    def lengthen(schema):
        for made in nodes_of(schema, "RandomGeneratorNode"):
            made["content"]["seed_seq"]["content"]["pool_size"] = value(10**8)

    forge(path, schema=lengthen)
    with pytest.raises(ModelFileError, match="somebody changed its schema"):
        load(path)
