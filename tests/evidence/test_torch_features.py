"""How a torch head reads a model: means of features, whole models, and cautious training."""

import math

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: make torch")

from torch.nn.utils import prune  # noqa: E402

from dubito.evidence import NotSupportedError  # noqa: E402
from dubito.evidence.torch import (  # noqa: E402
    EvidentialHead,
    LayerInput,
    least_commitment_penalty,
)


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(before)


def draw_features(*shape, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=dtype) + 0.3


class TestMeanOfFeatures:
    def test_streams_over_a_loader(self):
        linear, x = torch.nn.Linear(6, 3), 100 + torch.randn(103, 6)
        data = torch.utils.data.TensorDataset(x, torch.arange(103))
        loader = torch.utils.data.DataLoader(data, batch_size=10)  # the last batch has 3
        expected = x.double().mean(0).float()
        for features in (
            loader,
            x,
            x.numpy(),
            iter(loader),
            x.split(10),
            [x[:50], x[50:]],
            x[None],
        ):
            head = EvidentialHead.from_linear(linear, features=features)
            torch.testing.assert_close(head.mean, expected, rtol=1e-7, atol=0)

    def test_sums_in_float64(self):
        linear = torch.nn.Linear(1, 2, dtype=torch.float64)
        x = torch.full((20_000, 1), 1e8, dtype=torch.float32)
        x[::2] += 8.0  # float32 sums would lose it
        head = EvidentialHead.from_linear(linear, features=x.split(1000))
        assert head.mean.item() == 1e8 + 4

    def test_backbone_runs_in_evaluation_mode_and_is_left_as_it_was(self):
        body = torch.nn.Sequential(torch.nn.Linear(5, 6), torch.nn.Dropout(0.5), torch.nn.ReLU())
        body[2].eval()  # each part keeps its own mode
        linear, x = torch.nn.Linear(6, 3), torch.randn(30, 5)
        seen = []

        def watch(module, *_):
            seen.append((module.training, torch.is_grad_enabled()))

        body[1].register_forward_hook(watch)
        head = EvidentialHead.from_linear(linear, features=x.split(7), backbone=body)
        assert set(seen) == {(False, False)}
        assert [m.training for m in body] == [True, True, False]
        assert body.training
        body.eval()
        torch.testing.assert_close(head.mean, body(x).mean(0).detach())
        method = EvidentialHead.from_linear(linear, features=x, backbone=body.train().forward)
        torch.testing.assert_close(method.mean, head.mean)
        assert body[1].training

    def test_mode_is_restored_after_an_error(self):
        body = torch.nn.Dropout()
        with pytest.raises(ValueError, match="takes 6 features"):
            EvidentialHead.from_linear(
                torch.nn.Linear(6, 3), features=torch.ones(2, 5), backbone=body
            )
        assert body.training

    def test_whole_model(self):
        model = torch.nn.Sequential()
        model.add_module("body", torch.nn.Sequential(torch.nn.Linear(5, 6), torch.nn.Dropout()))
        model.add_module("fc", torch.nn.Linear(6, 3))
        x = torch.randn(40, 5)
        by_name = EvidentialHead.from_model(model, "fc", inputs=x.split(11))
        by_layer = EvidentialHead.from_model(model, model.fc, inputs=x)
        torch.testing.assert_close(by_name.mean, by_layer.mean)
        assert model.training
        model.eval()
        features = LayerInput(model, "fc")
        assert torch.equal(features(x), model.body(x))
        torch.testing.assert_close(by_name(features(x)), model(x))
        torch.testing.assert_close(by_name.mean, features(x).mean(0).detach())
        assert not model.fc._forward_pre_hooks
        grads = torch.autograd.grad(by_name.conflict(features(x)).sum(), model.body[0].weight)
        assert grads[0].abs().sum() > 0

    def test_batches_of_keywords(self):
        class Named(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = torch.nn.Linear(4, 2)

            def forward(self, pixels, labels):
                assert labels is None
                return self.fc(input=2 * pixels)

        model, x = Named(), torch.randn(10, 4)
        batches = [{"pixels": x, "labels": None}]
        head = EvidentialHead.from_model(model, "fc", inputs=batches)
        torch.testing.assert_close(head.mean, 2 * x.mean(0))

    def test_layers_without_bias_and_with_one_output(self):
        x = torch.randn(20, 4)
        plain = EvidentialHead.from_linear(torch.nn.Linear(4, 3, bias=False), features=x)
        assert plain.intercept.tolist() == [0, 0, 0]
        binary = EvidentialHead.from_linear(torch.nn.Linear(4, 1), features=x)
        assert binary.n_classes == 2
        assert binary(x).shape == (20, 1)
        torch.testing.assert_close(binary.proba(x)[:, 1:], binary(x).sigmoid())

    def test_what_cannot_be_read_is_refused(self):
        linear, x = torch.nn.Linear(4, 3), torch.ones(2, 4)
        with pytest.raises(NotSupportedError, match="reads a linear layer; got Conv2d"):
            EvidentialHead.from_linear(torch.nn.Conv2d(1, 1, 1), features=x)
        with pytest.raises(ValueError, match="features, or their mean; got neither"):
            EvidentialHead.from_linear(linear)
        with pytest.raises(ValueError, match="got both"):
            EvidentialHead.from_linear(linear, features=x, mean=x[0])
        with pytest.raises(ValueError, match=r"takes 4 features.*shape \(2, 3\).*backbone"):
            EvidentialHead.from_linear(linear, features=x[:, :3])
        with pytest.raises(ValueError, match="holds no rows"):
            EvidentialHead.from_linear(linear, features=iter([]))
        with pytest.raises(TypeError, match="tuples that start with one; a batch is str"):
            EvidentialHead.from_linear(linear, features=["a"])
        with pytest.raises(TypeError, match="backbone returned tuple"):
            EvidentialHead.from_linear(linear, features=x, backbone=lambda x: (x,))
        with pytest.raises(TypeError, match=r"iterable of batches.*got dict"):
            EvidentialHead.from_linear(linear, features={"x": x})
        with pytest.raises(TypeError, match=r"iterable of batches.*got int"):
            EvidentialHead.from_linear(linear, features=3)
        with pytest.raises(ValueError, match="features has nan or infinite values"):
            EvidentialHead.from_linear(linear, features=x * math.inf)

    def test_layers_that_are_not_there_are_refused(self):
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
        with pytest.raises(ValueError, match="no layer 'fc'; its linear layers are: 0, 2"):
            LayerInput(model, "fc")
        with pytest.raises(ValueError, match="not part of the model"):
            LayerInput(model, torch.nn.Linear(4, 3))
        with pytest.raises(NotSupportedError, match="got ReLU"):
            EvidentialHead.from_model(model, "1", inputs=torch.ones(2, 4))
        twice = torch.nn.Sequential(model[0], model[0])
        with pytest.raises(ValueError, match="calls the layer 2 times"):
            LayerInput(twice, "0")(torch.ones(1, 4))


class TestLeastCommitmentPenalty:
    @pytest.mark.parametrize("n_outputs", [1, 2, 5])
    @pytest.mark.parametrize("bias", [False, True])
    def test_is_the_mean_sum_of_squared_weights(self, n_outputs, bias):
        linear = torch.nn.Linear(7, n_outputs, bias=bias, dtype=torch.float64)
        phi = draw_features(30, 7)
        head = EvidentialHead.from_linear(linear, features=phi)
        expected = head.weights(phi).square().sum((1, 2)).mean()
        torch.testing.assert_close(least_commitment_penalty(linear, phi), expected)
        torch.testing.assert_close(
            least_commitment_penalty(linear, phi.reshape(2, 15, 7)), expected
        )

    def test_is_the_minimum(self):
        # Denœux 2019, (36)-(37): any other division of the coefficients has larger weights.
        linear, phi = torch.nn.Linear(4, 3, dtype=torch.float64), draw_features(25, 4)
        head = EvidentialHead.from_linear(linear, features=phi)
        least = least_commitment_penalty(linear, phi)
        for _ in range(20):
            weights = head.weights(phi) + 0.01 * torch.randn(4, 1) * phi[:, :, None]
            offset = 0.01 * torch.randn(4, 3)
            weights = weights + (offset - offset.mean(0))
            assert weights.square().sum((1, 2)).mean() > least

    @pytest.mark.parametrize("n_outputs", [1, 3])
    def test_gradients(self, n_outputs):
        linear = torch.nn.Linear(4, n_outputs, dtype=torch.float64)
        phi = draw_features(6, 4).requires_grad_()

        def penalty(weight, bias, features):
            layer = torch.nn.Linear(4, n_outputs, dtype=torch.float64)
            del layer.weight, layer.bias
            layer.weight, layer.bias = weight, bias
            return least_commitment_penalty(layer, features)

        inputs = [linear.weight.detach().requires_grad_(), linear.bias.detach().requires_grad_()]
        assert torch.autograd.gradcheck(penalty, (*inputs, phi))

    def test_training_with_it_lowers_the_weights(self):
        x = torch.randn(200, 2)
        y = (x[:, 0] * x[:, 1] > 0).long() + (x[:, 0] > 1).long()

        def train(strength):
            torch.manual_seed(0)
            model = torch.nn.Sequential(
                torch.nn.Linear(2, 10), torch.nn.ReLU(), torch.nn.Linear(10, 3)
            )
            optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
            for _ in range(150):
                optimiser.zero_grad()
                features = model[:2](x)
                loss = torch.nn.functional.cross_entropy(model[2](features), y)
                loss = loss + strength * least_commitment_penalty(model[2], features)
                loss.backward()
                optimiser.step()
            head = EvidentialHead.from_model(model, "2", inputs=x)
            features = model[:2](x).detach()
            accuracy = (model(x).argmax(1) == y).float().mean()
            return head.weights(features).square().sum((1, 2)).mean(), head, features, accuracy

        heavy, head, features, accuracy = train(0.0)
        light, cautious_head, cautious_features, cautious_accuracy = train(0.02)
        assert light < heavy / 3
        assert cautious_head.ignorance(cautious_features).mean() > head.ignorance(features).mean()
        assert min(accuracy, cautious_accuracy) > 0.85

    def test_wrong_features_are_refused(self):
        linear = torch.nn.Linear(4, 3)
        with pytest.raises(ValueError, match=r"features must be \(\.\.\., 4\)"):
            least_commitment_penalty(linear, torch.ones(2, 5))
        with pytest.raises(ValueError, match="no rows"):
            least_commitment_penalty(linear, torch.ones(0, 4))


def test_layers_that_are_made_up_in_each_pass_are_read_after_it():
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2))
    prune.random_unstructured(model[1], "weight", amount=2)
    with torch.no_grad():
        model[1].weight_orig += 1.0
    inputs = torch.randn(20, 4)
    head = EvidentialHead.from_model(model, "1", inputs=inputs)
    torch.testing.assert_close(head.logits(LayerInput(model, "1")(inputs)), model(inputs))


def test_half_precision_keeps_its_mean():
    linear = torch.nn.Linear(3, 2).bfloat16()
    rows = 50 + 0.5 * torch.randn(200, 3)
    head = EvidentialHead.from_linear(linear, features=rows)
    torch.testing.assert_close(head.mean, rows.double().mean(0).float())
    assert least_commitment_penalty(linear, 300 * rows.bfloat16()).isfinite()


def test_a_layer_may_have_two_names_but_must_be_linear():
    body = torch.nn.Linear(4, 3)
    model = torch.nn.ModuleDict({"body": body, "fc": torch.nn.Linear(3, 2)})
    model["last"] = model["fc"]
    model.forward = lambda x: model["fc"](body(x))
    assert EvidentialHead.from_model(model, "last", inputs=torch.randn(5, 4)).n_classes == 2

    class Adapted(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x) + x.sum(-1, keepdim=True) ** 2

    with pytest.raises(NotSupportedError, match="reads a linear layer; got Adapted"):
        EvidentialHead.from_linear(Adapted(3, 2), mean=torch.zeros(3))
