"""The head of a torch model, against the numpy functions and its own promises."""

import copy
import io
import math
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make torch")

from torch.autograd import forward_ad  # noqa: E402

from dubito.decision import interval_dominance  # noqa: E402
from dubito.evidence import EvidenceModel, _torch_rows  # noqa: E402
from dubito.evidence.torch import (  # noqa: E402
    EvidentialHead,
    TensorBounds,
    bounds_from_weights,
)

DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU on this machine"),
    ),
]


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(before)


def assert_close(tensor, expected, rtol):
    """Compare what the tensor's type can hold at full precision."""
    number = tensor.detach().cpu().double().numpy().reshape(np.shape(expected))
    smallest = 16 * torch.finfo(tensor.dtype).tiny
    np.testing.assert_allclose(number, expected, rtol=rtol, atol=smallest)


def draw_layer(n_classes, n_features, *, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((n_classes, n_features), (n_classes,), (n_features,))
    return [torch.randn(s, generator=generator, dtype=torch.float64).to(dtype) for s in shapes]


def draw_features(*shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=dtype) + 0.3


@pytest.fixture(params=[1, 2, 5], ids=["one output", "two", "five"])
def layer(request):
    return draw_layer(request.param, 7)


class TestEvidentialHead:
    @pytest.mark.parametrize("device", DEVICES)
    @pytest.mark.parametrize("grad", [False, True], ids=["kernel", "operations"])
    def test_same_as_evidence_model(self, layer, grad, device):
        head = EvidentialHead(*layer).to(device)
        model = EvidenceModel(*(x.numpy() for x in layer))
        phi = draw_features(40, 7)
        given = phi.to(device, copy=True).requires_grad_(grad)
        assert_close(head.weights(given), model.weights(phi.numpy()), 1e-11)
        for ours, expected in zip(head.totals(given), model.totals(phi.numpy()), strict=True):
            assert_close(ours, expected, 1e-11)
        bounds, expected = head.bounds(given), model.bounds(phi.numpy())
        assert isinstance(bounds, TensorBounds)
        assert_close(bounds.lower, expected.lower, 1e-11)
        assert_close(bounds.upper, expected.upper, 1e-11)
        assert_close(head.mass(given), model.mass(phi.numpy()).mass, 1e-11)
        assert_close(head.proba(given), model.proba(phi.numpy()), 1e-12)
        assert_close(head.conflict(given), model.conflict(phi.numpy()), 1e-11)
        assert_close(head.ignorance(given), model.ignorance(phi.numpy()), 1e-11)
        np.testing.assert_array_equal(head.predict_set(given).cpu(), interval_dominance(expected))

    def test_plausibilities_are_the_layers_probabilities(self, layer):
        head, phi = EvidentialHead(*layer), draw_features(100, 7)
        upper = head.bounds(phi).upper
        torch.testing.assert_close(
            upper / upper.sum(-1, keepdim=True), head.proba(phi), rtol=1e-12, atol=1e-15
        )

    def test_weights_add_up_to_the_logits(self, layer):
        head, phi = EvidentialHead(*layer), draw_features(20, 7)
        w_plus, w_minus = head.totals(phi)
        logits = head(phi)
        if len(layer[0]) == 1:
            assert not w_minus.any()
            difference = w_plus[:, 1:] - w_plus[:, :1]
        else:
            difference, logits = w_plus - w_minus, logits - logits.mean(1, keepdim=True)
        torch.testing.assert_close(difference, logits, rtol=1e-12, atol=1e-12)

    def test_one_output_and_two_agree(self):
        (coef, intercept, mean), phi = draw_layer(1, 7), draw_features(50, 7)
        one = EvidentialHead(coef, intercept, mean)
        zero = torch.zeros_like
        two = EvidentialHead(
            torch.cat([zero(coef), coef]), torch.cat([zero(intercept), intercept]), mean
        )
        torch.testing.assert_close(one.mass(phi), two.mass(phi), rtol=1e-11, atol=1e-300)
        torch.testing.assert_close(one.conflict(phi), two.conflict(phi), rtol=1e-11, atol=0)

    def test_permuting_classes_and_features(self):
        (coef, intercept, mean), phi = draw_layer(5, 7), draw_features(30, 7)
        classes, features = torch.randperm(5), torch.randperm(7)
        head = EvidentialHead(coef, intercept, mean)
        moved = EvidentialHead(coef[classes][:, features], intercept[classes], mean[features])
        after, before = moved.bounds(phi[:, features]), head.bounds(phi)
        torch.testing.assert_close(after.lower, before.lower[:, classes], rtol=1e-11, atol=1e-300)
        torch.testing.assert_close(after.upper, before.upper[:, classes], rtol=1e-11, atol=1e-300)

    def test_is_a_drop_in_for_the_layer(self):
        linear = torch.nn.Linear(6, 4)
        head = EvidentialHead.from_linear(linear, mean=torch.zeros(6))
        x = torch.randn(3, 5, 6)
        assert torch.equal(head(x), linear(x))
        assert torch.equal(head.logits(x), linear(x))
        assert head.n_features == 6
        assert head.n_classes == 4
        assert repr(head) == "EvidentialHead(n_features=6, n_classes=4)"
        with torch.no_grad():
            linear.weight += 1  # the head has a copy
        assert not torch.equal(head(x), linear(x))
        assert not list(head.parameters())

    def test_leading_dimensions_and_single_rows(self, layer):
        head, phi = EvidentialHead(*layer), draw_features(2, 3, 7)
        for method in ("weights", "mass", "conflict", "ignorance", "predict_set", "proba"):
            whole = getattr(head, method)(phi)
            assert whole.shape[:2] == (2, 3)
            torch.testing.assert_close(getattr(head, method)(phi[1, 2]), whole[1, 2])
        assert head.bounds(phi).lower.shape == (2, 3, head.n_classes)
        assert head.bounds(phi[:0]).lower.shape == (0, 3, head.n_classes)

    @pytest.mark.parametrize(
        "name", ["bounds", "conflict", "ignorance", "mass", "totals", "weights"]
    )
    def test_gradients_in_the_features(self, layer, name):
        head, phi = EvidentialHead(*layer), draw_features(3, 7).requires_grad_()
        assert torch.autograd.gradcheck(getattr(head, name), phi)

    def test_gradients_at_weights_of_zero(self):
        # Features at their mean and an intercept of 0 there: all weights are exactly 0.
        coef, _, mean = draw_layer(3, 4)
        head = EvidentialHead(coef, -(coef * mean).sum(1), mean)
        phi = mean.clone().requires_grad_()
        assert head.bounds(phi).upper.tolist() == pytest.approx([1, 1, 1])
        for result in (*head.bounds(phi), head.conflict(phi), head.ignorance(phi)):
            (slope,) = torch.autograd.grad(result.sum(), phi, retain_graph=True)
            assert slope.isfinite().all()

    def test_blocks_of_features_change_nothing(self, monkeypatch):
        head, phi = EvidentialHead(*draw_layer(5, 40)), draw_features(9, 40).requires_grad_()
        whole = head.bounds(phi).lower
        (slope,) = torch.autograd.grad(whole.square().sum(), phi)
        monkeypatch.setattr(_torch_rows, "_ENTRIES_ON_CPU", 150)
        parts = head.bounds(phi).lower
        torch.testing.assert_close(parts, whole, rtol=1e-12, atol=1e-15)
        (again,) = torch.autograd.grad(parts.square().sum(), phi)
        torch.testing.assert_close(again, slope, rtol=1e-10, atol=1e-15)
        with torch.no_grad():
            torch.testing.assert_close(head.bounds(phi).lower, whole, rtol=1e-11, atol=1e-15)
            assert head.weights(phi).shape == (9, 40, 5)

    @pytest.mark.parametrize("device", DEVICES)
    def test_a_thousand_classes_in_float32(self, device):
        coef, intercept, mean = draw_layer(1000, 64)
        wide = EvidentialHead(coef / 8, intercept, mean)
        head = copy.deepcopy(wide).to(device, torch.float32)
        phi = draw_features(50, 64)
        exact, ours = wide.bounds(phi), head.bounds(phi.to(device, torch.float32))
        assert ours.lower.dtype == torch.float32
        for a, b in zip(ours, exact, strict=True):
            torch.testing.assert_close(a.cpu().double(), b, rtol=1e-4, atol=1e-12)

    @pytest.mark.parametrize("device", DEVICES)
    def test_weights_of_ten_thousand(self, device):
        coef, intercept, mean = draw_layer(4, 10, dtype=torch.float32)
        head = EvidentialHead(1e4 * coef, intercept, mean).to(device)
        phi = draw_features(100, 10, dtype=torch.float32).to(device)
        assert head.totals(phi)[0].max() > 1e4
        for result in (*head.bounds(phi), head.conflict(phi), head.ignorance(phi), head.mass(phi)):
            assert result.isfinite().all()
        torch.testing.assert_close(head.mass(phi).sum(1), torch.ones(100, device=device))
        assert head.predict_set(phi).any(1).all()

    @pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU on this machine")
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_weights_of_all_rows_are_never_held(self, dtype):
        head = EvidentialHead(*draw_layer(100, 256, dtype=dtype)).cuda()
        phi = draw_features(20_000, 256, dtype=dtype).cuda()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        head.bounds(phi)
        assert (
            torch.cuda.max_memory_allocated() - before < head.weights(phi[:1]).nbytes * 20_000 / 2
        )

    def test_moves_and_saves(self):
        head = EvidentialHead.from_linear(torch.nn.Linear(6, 3), features=torch.randn(50, 6))
        assert head.bounds(torch.randn(2, 6)).lower.dtype == torch.float32
        assert head.bounds(torch.randn(2, 6).double()).lower.dtype == torch.float64
        assert head.bounds(torch.randn(2, 6).bfloat16()).lower.dtype == torch.float32
        kept = io.BytesIO()
        torch.save(head.state_dict(), kept)
        kept.seek(0)
        other = EvidentialHead(torch.ones(3, 6), torch.ones(3), torch.ones(6))
        other.load_state_dict(torch.load(kept, weights_only=True))
        x = torch.randn(4, 6)
        assert torch.equal(other.bounds(x).lower, head.bounds(x).lower)
        assert torch.equal(copy.deepcopy(head).conflict(x), head.conflict(x))
        head.double()
        assert head.mean.dtype == torch.float64
        torch.testing.assert_close(head.bounds(x).upper.float(), other.bounds(x).upper)
        half = head.bfloat16()
        assert half.bounds(x.bfloat16()).upper.dtype == torch.bfloat16
        assert half.bounds(x.bfloat16()).upper.isfinite().all()

    def test_a_large_mean_costs_no_digits(self):
        # The products of 16384/3 have an ulp of 5e-4 in float32; what is left of them is 7e-4.
        third, far = 1 / 3, 2.0**14
        head = EvidentialHead([[third, -third]], [0.0], [far, far])
        weights = head.weights(torch.tensor([far + 2**-9, far]))
        assert weights[0, 1].item() == pytest.approx(third * 2**-9, rel=1e-6)
        assert weights[1].tolist() == [0, 0]

    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def test_traces_under_torch_compile(self):
        head, x = EvidentialHead(*draw_layer(3, 4)), draw_features(6, 4)
        compiled = torch.compile(lambda x: head.bounds(x).lower, backend="eager", fullgraph=True)
        torch.testing.assert_close(compiled(x), head.bounds(x).lower, rtol=1e-12, atol=0)

    def test_wrong_shapes_are_refused(self):
        coef, intercept, mean = draw_layer(3, 4)
        with pytest.raises(ValueError, match=r"coef must be \(K, J\).*got shape \(3,\)"):
            EvidentialHead(intercept, intercept, mean)
        with pytest.raises(ValueError, match=r"coef must be .*got shape \(3, 0\)"):
            EvidentialHead(coef[:, :0], intercept, mean[:0])
        with pytest.raises(
            ValueError, match=r"intercept must be \(3,\).*\(3, 4\).*got shape \(4,\)"
        ):
            EvidentialHead(coef, mean, mean)
        with pytest.raises(ValueError, match=r"mean must be \(4,\).*got shape \(3,\)"):
            EvidentialHead(coef, intercept, intercept)
        with pytest.raises(ValueError, match=r"mean must be finite"):
            EvidentialHead(coef, intercept, mean * math.nan)
        head = EvidentialHead(coef, intercept, mean)
        with pytest.raises(ValueError, match=r"features must be \(\.\.\., 4\).*got shape \(2, 3\)"):
            head.bounds(torch.ones(2, 3))
        with pytest.raises(TypeError, match=r"floating-point tensor; got torch\.int64"):
            head.bounds(torch.ones(2, 4, dtype=torch.int64))
        with pytest.raises(TypeError, match="floating-point tensor; got ndarray"):
            head.bounds(np.ones((2, 4)))
        with pytest.raises(ValueError, match="at most 16 classes; got 20"):
            EvidentialHead(*draw_layer(20, 4)).mass(torch.ones(2, 4))

    def test_arrays_and_lists_make_a_head(self):
        head = EvidentialHead([[1, 2]], [3], np.array([0.5, 1]))
        assert head.coef.dtype == torch.get_default_dtype()
        assert head.bounds(torch.tensor([1.0, 1.0])).upper.shape == (2,)


def test_the_package_loads_no_torch_and_names_the_extra():
    code = """
import sys
import dubito.evidence
assert "torch" not in sys.modules
sys.modules["torch"] = None
try:
    import dubito.evidence.torch
except ModuleNotFoundError as error:
    print(error)
"""
    command = [sys.executable, "-c", code]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert "pip install '.[torch]'" in answer.stdout


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_lost_shows(device, value):
    head = EvidentialHead(torch.eye(3), torch.zeros(3), torch.zeros(3)).to(device)
    features = torch.ones(4, 3, device=device)
    features[2, 1] = value
    for results in (
        head.bounds(features),
        head.totals(features),
        (head.conflict(features)[:, None], head.ignorance(features)[:, None]),
    ):
        for result in results:
            assert result.isnan().any(dim=1).tolist() == [False, False, True, False]
    assert head.predict_set(features)[2].all()
    w_plus = torch.ones(2, 3, device=device)
    w_plus[1, 0] = value
    assert bounds_from_weights(w_plus, torch.ones_like(w_plus)).lower[1].isnan().all()


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # its own, on the first use
def test_torch_func_and_forward_derivatives():
    head = EvidentialHead(*(torch.randn(shape).double() for shape in ((3, 4), (3,), (4,))))
    x, direction = torch.randn(5, 4).double(), torch.randn(5, 4).double()

    def total(rows):
        bounds = head.bounds(rows)
        return bounds.lower.sum() + (head.conflict(rows) * head.ignorance(rows)).sum()

    leaf = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(total(leaf), leaf)
    torch.testing.assert_close(torch.func.grad(total)(x), gradient)
    expected = (gradient * direction).sum()
    torch.testing.assert_close(torch.func.jvp(total, (x,), (direction,))[1], expected)
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(total(forward_ad.make_dual(x, direction))).tangent
    torch.testing.assert_close(tangent, expected)
    rows = torch.func.vmap(lambda row: head.bounds(row[None]).upper[0])(x)
    torch.testing.assert_close(rows, head.bounds(x).upper)


def test_logits_have_the_type_that_both_promote_to():
    head = EvidentialHead(torch.eye(2).bfloat16(), torch.zeros(2), torch.zeros(2))
    assert head.proba(torch.ones(1, 2)).dtype == head.bounds(torch.ones(1, 2)).lower.dtype
    with pytest.raises(ValueError, match="what enters the layer"):
        head(torch.ones(1, 3))
