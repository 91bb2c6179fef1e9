"""The package as a whole: public names, imports, versions and documents."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

import dubito

ROOT = Path(__file__).parents[1]

# The public contract: outside code calls these names.
PROMISED = {
    "dubito.belief": """Frame MassFunction MassBatch Bounds dempster conjunctive disjunctive
        cautious discount condition pignistic plausibility_transform conflict nonspecificity""",
    "dubito.calibration": """PlattCalibrator IsotonicCalibrator BinningCalibrator BetaCalibrator
        TemperatureCalibrator VectorCalibrator MatrixCalibrator EvidentialLogisticCalibrator
        EvidentialIsotonicCalibrator EvidentialBinningCalibrator EvidentialMultinomialCalibrator
        EvidentialJointCalibrator VennAbersCalibrator CalibratedClassifier EvidentialFusion""",
    "dubito.conformal": """ConformalClassifier NoveltyAwareClassifier""",
    "dubito.decision": """interval_dominance maximality e_admissibility maximin maximax hurwicz
        pignistic_choice minimax_regret owa set_utility reject""",
    "dubito.dichotomies": """DichotomyTree NestedDichotomyClassifier NestedDichotomyEnsemble""",
    "dubito.discriminant": """ImpreciseGaussianDiscriminant""",
    "dubito.evidence": """EvidentialClassifier EvidenceModel mass_from_weights
        bounds_from_weights""",
    "dubito.metrics": """expected_calibration_error classwise_calibration_error
        smooth_calibration_error brier_decomposition utility_discounted_accuracy u65 u80
        discounted_accuracy coverage class_coverage coverage_by_size mean_set_size
        error_reject_curve aurc reject_cost_curve reliability_curve evaluate""",
    "dubito.pipeline": """CautiousPipeline RejectClassifier make_cautious_pipeline""",
    "dubito.plots": """ContourDisplay DecisionRegionDisplay ErrorRejectDisplay EvidenceDisplay
        MassDisplay ReliabilityDisplay TreeDisplay""",
    "dubito.report": """collect render write_page write_report""",
    "dubito.saving": """ModelFileError Saved Stamp load read_stamp save""",
    "dubito.datasets": """load list_datasets make_waveform make_gaussian_trio make_gaussian_pair
        make_many_classes""",
}


def documented_names():
    """The names of docs/reference/api.md that come with a sentence, by module."""
    text = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    sections = re.split(r"^## (dubito[\w.]+)$", text, flags=re.MULTILINE)[1:]
    pairs = zip(sections[::2], sections[1::2], strict=True)
    row = re.compile(r"^\| `(\w+)` \| \w.*\. \|$", re.MULTILINE)
    return {module: row.findall(body) for module, body in pairs}


def run_python(*arguments):
    """Run a fresh interpreter and return what it printed."""
    return subprocess.run(  # noqa: S603
        [sys.executable, *map(str, arguments)], check=True, capture_output=True, text=True
    )


@pytest.mark.parametrize("module", PROMISED)
def test_promised_names_are_public(module):
    public = importlib.import_module(module).__all__
    assert set(PROMISED[module].split()) <= set(public)


@pytest.mark.parametrize("module", documented_names())
def test_public_names_are_documented_and_explained(module):
    if module.endswith(".torch"):
        pytest.importorskip("torch", reason="the extra is not installed: make torch")
    package = importlib.import_module(module)
    public = package.__all__
    assert documented_names()[module] == list(public)
    assert len(set(public)) == len(public)
    for name in public:
        thing = getattr(package, name)
        assert inspect.getdoc(thing), f"{module}.{name} has no docstring"
        if inspect.isfunction(thing) and module != "dubito.testing.strategies":
            assert "Examples\n---" in inspect.getdoc(thing), f"{module}.{name} has no example"


def test_every_public_warning_and_error_is_explained():
    page = (ROOT / "docs" / "reference" / "warnings.md").read_text(encoding="utf-8")
    names = {name for names in documented_names().values() for name in names}
    classes = {name for name in names if re.search(r"(Warning|Error)$", name)}
    assert len(classes) > 10
    assert [name for name in sorted(classes) if f".{name}`" not in page] == []


def test_every_package_with_public_names_is_in_the_list():
    packages = {f"dubito.{name}" for name in dubito._PACKAGES}
    assert packages == set(PROMISED)
    assert packages <= set(documented_names())


def test_packages_are_imported_on_first_use_and_unknown_names_raise():
    assert dubito.metrics.u80_scorer is importlib.import_module("dubito.metrics").u80_scorer
    assert dir(dubito) == sorted(dubito.__all__)
    with pytest.raises(AttributeError, match="its packages are belief, calibration, conformal"):
        _ = dubito.unknown
    with pytest.raises(AttributeError, match=r"'evaluate' \(it is dubito\.metrics\.evaluate\)"):
        _ = dubito.evaluate
    with pytest.raises(AttributeError, match=r"\(did you mean CalibratedClassifier\?\)"):
        _ = dubito.CalibratedClasifier


@pytest.mark.parametrize("name", dubito._SHORTCUTS)
def test_shortcuts_are_the_classes_of_the_packages(name):
    home = importlib.import_module(f"dubito.{dubito._SHORTCUTS[name]}")
    assert getattr(dubito, name) is getattr(home, name)
    assert name in home.__all__


#: Imports, one after the other in one process, and modules that are not loaded after them.
LIGHT_IMPORTS = {
    "import dubito": "numpy scipy",
    "from dubito import belief, decision, metrics": "",
    "from dubito.cli import build_app; build_app()": "sklearn pandas pyarrow",
    "from dubito import datasets, calibration, discriminant, evidence, conformal": "",
    "from dubito import dichotomies, plots, pipeline, report, saving": "altair vl_convert skops",
    "import dubito.dichotomies.distributed": "numba torch matplotlib jinja2 dask distributed",
}


def test_imports_stay_light():
    code, absent = "", set()
    for statement, last_absent in reversed(LIGHT_IMPORTS.items()):
        absent.update(last_absent.split())
        code = f"print({statement!r}, *({absent} & set(sys.modules)))\n{code}"
        code = f"{statement}\n{code}"
    assert run_python("-c", f"import sys\n{code}").stdout.splitlines() == list(LIGHT_IMPORTS)


def test_small_work_does_not_load_numba():
    code = """
import sys
from dubito.belief import MassFunction, dempster, conflict, discount, cautious
from dubito.decision import e_admissibility
m = MassFunction({"a": 0.4, ("a", "b"): 0.6})
e_admissibility(dempster(m, discount(m, 0.3), m.to_batch().dense()))
cautious(m, m)
print("numba" in sys.modules)
"""
    assert run_python("-c", code).stdout.strip() == "False"


def test_the_import_order_is_kept(monkeypatch):
    monkeypatch.chdir(ROOT)
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def private_imports(path):
    """Return the modules with an underscore that a file imports from dubito."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if re.match(r"dubito\b.*\._[a-z]", name)}


def test_no_package_imports_a_private_module_of_another():
    source = ROOT / "src" / "dubito"
    for path in source.rglob("*/*.py"):
        package = path.relative_to(source).parts[0]
        others = rf"dubito\.(?!{package}\.)[a-z]\w*\._"
        assert [name for name in private_imports(path) if re.match(others, name)] == [], path.name


#: Tests of code that is neither public nor a formula, and why public functions do not reach it.
TESTS_OF_PRIVATE_MODULES = {
    "test_bounds_meaning.py": "a report is about one model, this about all in all wrappers",
    "test_parallel.py": "tasks of one's own show where and how often each is run",
    "packed_nodes.py": "scores that no classifier gives: nan, infinite, nodes without common rows",
    "test_torch_weights.py": "chunk sizes and Triton kernels are chosen by size and device alone",
    "test_torch.py": "a chunk has few rows where its size is replaced",
    "test_fusion_masses.py": "a chunk has few rows where its size is replaced",
    "test_fusion_masses_members.py": "a chunk has few rows where its size is replaced",
    "test_edges.py": "hashes of 64 bits collide only where the hash is replaced",
    "test_joint_flat.py": "a fit misses its maximum only where it is replaced",
}


def test_private_imports_are_found(tmp_path):
    path = tmp_path / "imports.py"
    path.write_text("from dubito.calibration import (\n    A,\n    _b,\n)\nimport dubito._c\n")
    assert private_imports(path) == {"dubito.calibration._b", "dubito._c"}


def test_tests_import_public_modules_and_kernels():
    for path in (ROOT / "tests").rglob("*.py"):
        private = {
            name
            for name in private_imports(path)
            if not re.search(r"\._(kernels|numerics)\b", name)
        }
        allowed = path.name in TESTS_OF_PRIVATE_MODULES
        assert bool(private) == allowed, f"{path.relative_to(ROOT)}: {private}"


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert dubito.__version__ == project["version"]
    assert f"version: {dubito.__version__}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"## {dubito.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_oldest_versions_are_those_allowed():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for pin in (ROOT / "tests" / "oldest.txt").read_text(encoding="utf-8").splitlines()[1:]:
        name, version = pin.split("==")
        # A name, perhaps with extras, or an extra that is released with its package.
        allowed = re.search(rf'["\[]{name}(?:\[\w+\]|\])?>=([\d.]+)', text).group(1)
        assert f"{version}.".startswith(f"{allowed}."), (
            f"{name}: {version} tested, {allowed} allowed"
        )


def test_ci_runs_the_commands_of_the_readme():
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in ("make test", "make test-all", "make demo"):
        assert command in readme
        assert f"\n{command.split()[1]}: " in makefile
    for command in ("make lint", "make docs", "make test-all"):
        assert f"{command}\n" in ci


def test_links_in_the_documents_lead_to_files():
    for page in [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").glob("[!_]*/*.md"),
        ROOT / "docs" / "index.md",
    ]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            outside = target.startswith("https://")  # not ours to check, and no network here
            assert outside or (page.parent / target).exists(), f"{page.name} links to {target}"
