"""From weights of evidence to belief on tensors, against exact decimals and the numpy functions."""

import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make torch")

from dubito import evidence as on_arrays  # noqa: E402
from dubito.belief import Bounds  # noqa: E402
from dubito.evidence import _torch_rows  # noqa: E402
from dubito.evidence.torch import (  # noqa: E402
    bounds_from_weights,
    conflict_from_weights,
    ignorance_from_weights,
    mass_from_weights,
)

from reference import evidence  # noqa: E402

DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU on this machine"),
    ),
]
FUNCTIONS = {
    "lower": lambda *w: bounds_from_weights(*w).lower,
    "upper": lambda *w: bounds_from_weights(*w).upper,
    "ignorance": ignorance_from_weights,
    "conflict": conflict_from_weights,
    "mass": mass_from_weights,
}


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(before)


def draw_weights(rows, n_classes, *, seed=0, top=1e4):
    """Weights of all sizes, zeros among them, exact in float32."""
    rng = np.random.default_rng(seed)
    scales = np.array([0, 1e-9, 1e-4, 0.1, 1, 5, 40, 300, 1e4])
    size = rng.choice(scales[scales <= top], size=(2, rows, n_classes))
    return (size * rng.uniform(0.1, 1, size=size.shape)).astype(np.float32).astype(np.float64)


def as_numbers(exact):
    return np.array([float(x) for x in np.atleast_1d(exact)])


def assert_close(tensor, expected, rtol):
    """Compare what the tensor's type can hold at full precision."""
    number = tensor.detach().cpu().double().numpy().reshape(np.shape(expected))
    smallest = 16 * torch.finfo(tensor.dtype).tiny
    np.testing.assert_allclose(number, expected, rtol=rtol, atol=smallest)


def needing_grad(w, dtype, device="cpu"):
    return [torch.tensor(x, dtype=dtype, device=device, requires_grad=True) for x in w]


class TestFromWeights:
    # With gradients plain torch operations are used, without them a compiled kernel.
    @pytest.mark.parametrize("device", DEVICES)
    @pytest.mark.parametrize("grad", [False, True], ids=["kernel", "operations"])
    @pytest.mark.parametrize(
        ("dtype", "rtol"), [(torch.float64, 1e-12), (torch.float32, 1e-5)], ids=["f64", "f32"]
    )
    def test_all_simple_mass_functions_combined(self, dtype, rtol, grad, device):
        for n_classes in range(2, 7):
            w = draw_weights(12, n_classes, seed=n_classes)
            given = [torch.tensor(x, dtype=dtype, device=device, requires_grad=grad) for x in w]
            results = {name: function(*given) for name, function in FUNCTIONS.items()}
            for i in range(w.shape[1]):
                exact = evidence.belief(*w[:, i])
                for name, result in results.items():
                    assert_close(result[i], as_numbers(getattr(exact, name)), rtol)

    @pytest.mark.parametrize("device", DEVICES)
    @pytest.mark.parametrize("grad", [False, True], ids=["kernel", "operations"])
    @pytest.mark.parametrize("n_classes", [100, 1000])
    def test_many_classes(self, n_classes, grad, device):
        w = draw_weights(3, n_classes, seed=1, top=40)
        w[:, 1] = np.random.default_rng(0).uniform(5, 9, size=(2, n_classes))  # no product vanishes
        w[1, 2] += 9000  # strong evidence against every class
        w = w.astype(np.float32).astype(np.float64)
        for dtype, rtol in ((torch.float64, 1e-11), (torch.float32, 2e-5)):
            given = [torch.tensor(x, dtype=dtype, device=device, requires_grad=grad) for x in w]
            for i in range(len(w[0])):
                exact = evidence.belief_of_many(*w[:, i])
                for name in ("lower", "upper", "ignorance", "conflict"):
                    expected = as_numbers(getattr(exact, name))
                    assert_close(FUNCTIONS[name](*(x[i] for x in given)), expected, rtol)

    @pytest.mark.parametrize("device", DEVICES)
    @pytest.mark.parametrize("grad", [False, True], ids=["kernel", "operations"])
    def test_same_as_the_numpy_functions(self, grad, device):
        w = draw_weights(2000, 12)
        given = [torch.tensor(x, device=device, requires_grad=grad) for x in w]
        expected = {
            "lower": on_arrays.bounds_from_weights(*w).lower,
            "upper": on_arrays.bounds_from_weights(*w).upper,
            "ignorance": on_arrays.ignorance_from_weights(*w),
            "conflict": on_arrays.conflict_from_weights(*w),
            "mass": on_arrays.mass_from_weights(*w).mass,
        }
        for name, function in FUNCTIONS.items():
            assert_close(function(*given), expected[name], 1e-11)

    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_chunks_change_nothing(self, name, monkeypatch):
        w = [torch.tensor(x, dtype=torch.float32) for x in draw_weights(100, 5)]
        whole = FUNCTIONS[name](*w)
        monkeypatch.setattr(_torch_rows, "_ENTRIES_ON_CPU", 35)
        monkeypatch.setattr("dubito.evidence._torch_cpu._CHUNK_ENTRIES", 35)
        assert torch.equal(FUNCTIONS[name](*w), whole)
        torch.set_num_threads(3)
        assert torch.equal(FUNCTIONS[name](*w), whole)
        monkeypatch.setattr(_torch_rows, "kernels_for", lambda *_: None)
        np.testing.assert_allclose(FUNCTIONS[name](*w), whole, rtol=1e-5, atol=1e-37)

    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_gradients(self, name):
        w = np.random.default_rng(0).exponential(size=(2, 3, 4))
        assert torch.autograd.gradcheck(FUNCTIONS[name], needing_grad(w, torch.float64))

    @pytest.mark.parametrize("name", FUNCTIONS)
    @pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
    def test_gradients_are_finite_everywhere(self, name, dtype):
        w = draw_weights(200, 6)
        w[:, :2], w[1, 2:4], w[0, 4:6] = 0.0, 0.0, 0.0
        given = needing_grad(w, dtype)
        FUNCTIONS[name](*given).float().square().sum().backward()
        assert all(x.grad.isfinite().all() for x in given)

    def test_gradient_where_there_is_no_evidence(self):
        # By hand: near 0, Bel(k) = w+_k and Pl(k) = 1 - w-_k - Σ w+ of the others.
        w = needing_grad(np.zeros((2, 3)), torch.float64)
        bounds = bounds_from_weights(*w)
        for_class = torch.autograd.grad(bounds.lower[0], w[0], retain_graph=True)[0]
        assert for_class.tolist() == [1, 0, 0]
        against = torch.autograd.grad(bounds.upper[0], w[1], retain_graph=True)[0]
        assert against.tolist() == [-1, 0, 0]
        assert torch.autograd.grad(bounds.upper[0], w[0])[0].tolist() == [0, -1, -1]

    def test_bounds_are_the_slopes_of_the_normaliser(self):
        # Pl = ∂log D/∂w+ and Bel = -∂log D/∂w-, where the mass of the frame is exp(-Σw-)/D.
        w = needing_grad(np.random.default_rng(0).exponential(size=(2, 5, 7)), torch.float64)
        log_total = -ignorance_from_weights(*w).log() - w[1].sum(1)
        by_plus, by_minus = torch.autograd.grad(log_total.sum(), w)
        bounds = bounds_from_weights(*w)
        torch.testing.assert_close(by_plus, bounds.upper, rtol=1e-12, atol=0)
        torch.testing.assert_close(-by_minus, bounds.lower, rtol=1e-12, atol=1e-15)

    @pytest.mark.parametrize("device", DEVICES)
    @pytest.mark.parametrize("grad", [False, True], ids=["kernel", "operations"])
    def test_bounds_are_bounds(self, grad, device):
        for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
            w = draw_weights(300, 5, top=300)
            given = [torch.tensor(x, dtype=dtype, device=device, requires_grad=grad) for x in w]
            lower, upper = bounds_from_weights(*given)
            assert lower.dtype == upper.dtype == dtype
            assert lower.device == given[0].device
            assert ((lower >= 0) & (lower <= upper) & (upper <= 1)).all()
            for other in ("ignorance", "conflict", "mass"):
                result = FUNCTIONS[other](*given)
                assert result.dtype == dtype
                assert ((result >= 0) & (result <= 1)).all()

    @pytest.mark.parametrize("device", DEVICES)
    def test_half_precision_is_computed_in_float32(self, device):
        w = [torch.tensor(x, device=device).bfloat16() for x in draw_weights(50, 6, top=40)]
        for function in FUNCTIONS.values():
            expected = function(*(x.double() for x in w))
            torch.testing.assert_close(function(*w).double(), expected, rtol=2**-8, atol=1e-30)

    @pytest.mark.parametrize("device", DEVICES)
    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_leading_dimensions_strides_and_no_rows(self, name, device):
        w = [torch.tensor(x, device=device) for x in draw_weights(6, 3)]
        flat = FUNCTIONS[name](*w)
        folded = FUNCTIONS[name](*(x.reshape(2, 3, 3) for x in w))
        assert torch.equal(folded.reshape(flat.shape), flat)
        assert torch.equal(FUNCTIONS[name](*(x.T.contiguous().T for x in w)), flat)
        assert torch.equal(FUNCTIONS[name](*(x[2] for x in w)), flat[2])
        assert FUNCTIONS[name](*(x[:0] for x in w)).shape == (0, *flat.shape[1:])

    @pytest.mark.parametrize("name", ["lower", "upper"])
    def test_permuting_classes_permutes(self, name):
        w = [torch.tensor(x) for x in draw_weights(50, 30, top=40)]
        order = torch.randperm(30)
        moved = FUNCTIONS[name](*(x[:, order] for x in w))
        torch.testing.assert_close(moved, FUNCTIONS[name](*w)[:, order], rtol=1e-11, atol=1e-300)

    def test_second_derivatives(self):
        w = needing_grad(np.random.default_rng(0).exponential(size=(2, 2, 3)), torch.float64)
        assert torch.autograd.gradgradcheck(FUNCTIONS["lower"], w)

    def test_errors_say_what_to_do(self):
        two, three = torch.ones(4, 2), torch.ones(4, 3)
        with pytest.raises(ValueError, match=r"one shape.*\(4, 2\) and \(4, 3\)"):
            bounds_from_weights(two, three)
        with pytest.raises(ValueError, match=r"at least 2 classes; got shape \(4, 1\)"):
            conflict_from_weights(two[:, :1], two[:, :1])
        with pytest.raises(ValueError, match=r"at least 2 classes; got shape \(\)"):
            conflict_from_weights(two[0, 0], two[0, 0])
        with pytest.raises(
            TypeError, match=r"w_minus must be a floating-point tensor; got torch.int"
        ):
            ignorance_from_weights(two, two.long())
        with pytest.raises(TypeError, match="w_plus must be a floating-point tensor; got ndarray"):
            ignorance_from_weights(np.ones((4, 2)), two)
        with pytest.raises(ValueError, match=r"at most 16 classes; got 17\. Bounds"):
            mass_from_weights(torch.ones(1, 17), torch.ones(1, 17))

    def test_numpy_hands_over_to_the_decision_rules(self):
        bounds = bounds_from_weights(torch.rand(2, 3, 4, requires_grad=True), torch.rand(2, 3, 4))
        handed = bounds.numpy()
        assert isinstance(handed, Bounds)
        np.testing.assert_allclose(handed.upper, bounds.upper.detach().reshape(6, 4), rtol=1e-6)
        assert torch.equal(bounds.width, bounds.upper - bounds.lower)
        half = bounds_from_weights(
            torch.rand(500, 40).bfloat16(), 3 * torch.rand(500, 40).bfloat16()
        )
        np.testing.assert_allclose(half.numpy().upper, half.upper.double(), rtol=1e-2)


class TestKernelsOnTheGPU:
    @pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU on this machine")
    @pytest.mark.parametrize("n_classes", [2, 3, 10, 100, 1000, 1025, 16384, 20000])
    def test_against_float64(self, n_classes):
        w = torch.tensor(draw_weights(20, n_classes, top=40), device="cuda")
        assert (_torch_rows.kernels_for(*w.float()) is not None) == (n_classes <= 16384)
        for name in ("lower", "upper", "ignorance", "conflict"):
            assert_close(FUNCTIONS[name](*w.float()), FUNCTIONS[name](*w).cpu(), 1e-4)

    def test_where_triton_fails_torch_is_used_with_a_warning(self, monkeypatch):
        class Broken:
            @staticmethod
            def bounds(*_):
                raise RuntimeError("no C compiler")

        monkeypatch.setitem(sys.modules, "dubito.evidence._triton", Broken)
        monkeypatch.setattr("dubito.evidence._triton", Broken, raising=False)
        with pytest.warns(RuntimeWarning, match=r"cannot build kernels for cpu \(no C compiler\)"):
            assert _torch_rows._built_kernels.__wrapped__(torch.device("cpu")) is None

    def test_without_triton_torch_is_used_without_a_warning(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "dubito.evidence._triton", None)
        monkeypatch.delattr("dubito.evidence._triton", raising=False)
        assert _torch_rows._built_kernels.__wrapped__(torch.device("cpu")) is None
