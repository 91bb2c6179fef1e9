"""The page is complete, escaped, ordered and reproducible."""

import json
import re
import sys
from html.parser import HTMLParser
from importlib import resources
from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from dubito.evidence import EvidentialClassifier
from dubito.report import collect, metrics, render, write_page, write_report

for module in ("altair", "jinja2", "vl_convert"):
    pytest.importorskip(module, reason="the extra is not installed: pip install .[report]")


@pytest.fixture(autouse=True)
def quick_library(monkeypatch):
    """Leave out what takes seconds: the drawing library, which the browser's tests have."""
    monkeypatch.setattr("dubito.report.page.chart_library", lambda: "window.vegaEmbed = null;")
    monkeypatch.setattr(metrics, "RESAMPLES", 10)


@pytest.fixture(scope="module")
def collected(fakes):
    X, proba, column = fakes.rows(150, 3)
    models = {
        "cautious": fakes.cautious(["cod", "eel", "ray"], proba, ignorance=0.2),
        "bold": fakes.precise(["cod", "eel", "ray"], proba),
    }
    return collect(models, X, np.array(["cod", "eel", "ray"])[column], title="Fish")


class Outline(HTMLParser):
    """Tags with their attributes, and the text inside them, in the order of the page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.open, self.text = [], [], {}
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if self.open:
            self.text.setdefault(self.open[-1], []).append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def specs_of(page):
    """The charts of a page, by name."""
    found = re.findall(r'<script type="application/json" id="spec-(\w+)">(.*?)</script>', page)
    return {name: json.loads(text) for name, text in found}


def test_the_same_dict_gives_the_same_page(collected):
    assert render(collected) == render(json.loads(json.dumps(collected))) == render(collected)


def test_the_page_is_ordered_for_screen_readers(collected):
    page = Outline(render(collected))
    assert page.all("html") == [{"lang": "en"}]
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(below <= above + 1 for above, below in pairwise(levels))
    assert len(page.all("caption")) == len(page.all("table")) > 3
    assert all(cell.get("scope") in {"row", "col"} for cell in page.all("th"))
    scopes = [cell["scope"] for cell in page.all("th")]
    assert scopes.count("row") == len(page.all("tr")) - len(page.all("thead"))
    charts = [place["data-chart"] for place in page.all("div") if "data-chart" in place]
    assert charts == list(specs_of(render(collected)))
    images = [place for place in page.all("div") if place.get("role") == "img"]
    assert len(images) == len(charts)
    assert all(len(place["aria-label"]) > 40 for place in images)
    regions = [place for place in page.all("div") if place.get("role") == "region"]
    assert all(place["tabindex"] == "0" and place["aria-label"] for place in regions)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [link["href"].removeprefix("#") for link in page.all("a")]
    assert set(links) <= set(ids)
    assert links[0] == "main"
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.all(
        "meta"
    )


def test_charts_say_in_words_what_they_show(collected):
    page = Outline(render(collected))
    labels = [place["aria-label"] for place in page.all("div") if place.get("role") == "img"]
    descriptions = dict(zip(specs_of(render(collected)), labels, strict=True))
    method = collected["declining"]["models"][0]
    assert (
        f"cautious: {method['error_without_declining']:.1%} wrong when nothing is declined"
        in descriptions["error_reject"]
    )
    assert f"{method['cost'][20]:.3f} where declining costs 0.2" in descriptions["costs"]
    assert f"{collected['sets']['mean']:.2f} classes on average" in descriptions["sets"]
    worst = collected["confusions"]["mistaken"][0]
    assert f"{worst['truth']} taken for {worst['predicted']}" in descriptions["confusions"]


def test_the_three_sentences_and_all_numbers_are_on_the_page(collected):
    page = Outline(render(collected))
    words = " ".join(" ".join(texts) for texts in page.text.values())
    for line in collected["summary"]["lines"]:
        assert line in words
    for row in collected["metrics"]:
        assert row["label"] in words
    assert page.text["b"].count("best") == sum(len(row["best"]) for row in collected["metrics"]) > 0
    assert page.text["title"] == ["Fish"]


def test_nothing_is_fetched_and_the_library_is_there_once(collected):
    page = render(collected)
    assert page.count("window.vegaEmbed = null;") == 1
    outline = Outline(page)
    addresses = [tag[key] for _, tag in outline.tags for key in ("src", "href") if tag.get(key)]
    assert all(address.startswith(("#", "data:")) for address in addresses)
    assert "@import" not in page
    assert "url(" not in page


def test_charts_hold_names_as_values_and_few_rows(nasty_report):
    page = render(nasty_report)
    for spec in specs_of(page).values():
        assert spec["width"] == "container"
        assert "config" not in spec
        assert sum(map(len, spec["datasets"].values())) < 1000
        fields = re.findall(r'"field": "([^"]*)"', json.dumps(spec))
        assert all(re.fullmatch(r"[a-z ]+", field) for field in fields)


def test_nasty_names_are_words_and_nothing_else(nasty_report, fakes):
    page = render(nasty_report)
    outline = Outline(page)
    assert "img" not in {tag for tag, _ in outline.tags}
    assert not [tag for _, tag in outline.tags if any(key.startswith("on") for key in tag)]
    assert outline.text["title"] == [fakes.nasty[0]]
    assert outline.text["h1"] == [fakes.nasty[0]]
    assert "{{ 7 * 7 }} <b>bold</b> &amp;" in " ".join(outline.text["td"])
    assert page.count("</script>") == len(outline.all("script"))


@pytest.mark.parametrize("doubts", [True, False])
def test_pages_leave_out_what_there_is_nothing_to_say_of(fakes, doubts):
    column = np.arange(30) % 2
    proba = np.eye(2)[column]
    model = fakes.cautious([0, 1], proba, ignorance=0.1) if doubts else fakes.precise([0, 1], proba)
    page = render(collect(model, np.arange(30)[:, None], column))
    assert "No case is mistaken" in page
    assert ("doubt" in specs_of(page)) == doubts
    assert ("It is certain of every case." in page) != doubts
    assert "sets" not in specs_of(page)
    assert "All numbers" in page
    assert "Methods side by side" not in page


def test_without_bounds_the_page_does_not_pretend_to_know_the_cause(fakes):
    X, proba, column = fakes.rows(60, 3)
    page = render(collect(fakes.precise([0, 1, 2], proba), X, column))
    assert "How precisely these probabilities are known is not computed" in page
    assert "Mostly wide bounds" not in page


@pytest.fixture(scope="module")
def reasoned():
    """A page on two classes and one on three, of a model that has measures of its own."""
    X, y = load_iris(return_X_y=True)
    pages = {}
    for n_classes in (2, 3):
        some = y >= 3 - n_classes
        model = EvidentialClassifier(LogisticRegression(max_iter=500)).fit(X[some], y[some])
        pages[n_classes] = collect(model, X[some], y[some], doubtful_rows=6)
    return pages


@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_part_of_the_doubt_is_explained_in_words(reasoned, n_classes):
    page = Outline(render(reasoned[n_classes]))
    words = {word["id"] for word in page.all("dt") if "id" in word}
    assert words == {
        f"word-{w}" for w in ("bounds", "doubt", "wide", "others", "ignorance", "conflict")
    }
    heads = [link["href"].removeprefix("#") for link in page.all("a")]
    # Of two classes, the ignorance is the width of the bounds once more.
    assert words - set(heads) == ({"word-ignorance"} if n_classes == 2 else set())
    row = reasoned[2]["doubt"]["rows"][0]
    assert row["own_ignorance"] == pytest.approx(row["width"])
    assert not {"Conflict", "Conflicting", "Ignorance", "Too little"} & set(page.text["th"])


def test_a_class_outside_the_set_is_not_called_impossible(fakes):
    X, proba, column = fakes.rows(60, 3)
    single = render(collect(fakes.precise([0, 1, 2], proba), X, column))
    open_sets = render(collect(fakes.cautious([0, 1, 2], proba, ignorance=0.3), X, column))
    assert "Left open</th>" not in single
    assert "Left open</th>" in open_sets
    assert "the others are not impossible" in open_sets
    assert "do not exclude." not in open_sets


def test_probabilities_outside_their_bounds_are_reported(fakes):
    X, proba, column = fakes.rows(60, 3)
    model = fakes.cautious([0, 1, 2], proba, ignorance=0.2)
    inside = collect(model, X, column)
    assert inside["doubt"]["outside"] == 0
    assert "lies outside them" not in render(inside)
    flat = np.full((60, 3), 1 / 3)
    flat[:, 0] += 1e-6
    model.predict_proba, bounds = (lambda X: flat[X[:, -1]]), model.predict_bounds(X)
    model.predict_bounds = lambda X: bounds[X[:, -1]]
    outside = collect(model, X, column)
    low, high = bounds.lower[:, 0], bounds.upper[:, 0]
    fraction = np.mean((flat[:, 0] < low) | (flat[:, 0] > high))
    assert 0 < fraction < 1
    assert outside["doubt"]["outside"] == pytest.approx(fraction)
    assert f"In {fraction:.1%} of the cases the probability of the predicted" in render(outside)


def test_the_first_row_number_is_stated(fakes):
    X, proba, column = fakes.rows(60, 3)
    model, descriptions = fakes.precise([0, 1, 2], proba), "number in the table, counted from 0"
    assert descriptions in render(collect(model, X, column))
    assert descriptions not in render(collect(model, X, column, row_names=range(1, 61)))


def test_words_that_are_not_used_are_not_explained(fakes):
    X, proba, column = fakes.rows(60, 3)
    page = Outline(render(collect(fakes.precise([0, 1, 2], proba), X, column)))
    assert not [word for word in page.all("dt") if "id" in word]
    page = Outline(render(collect(fakes.cautious([0, 1, 2], proba, ignorance=0.2), X, column)))
    assert {word.get("id") for word in page.all("dt")} >= {"word-doubt", "word-wide", "word-others"}
    assert not [w for w in page.all("dt") if w.get("id") in {"word-ignorance", "word-conflict"}]


def test_pieces_of_evidence_that_are_not_listed_are_counted(reasoned):
    collected = json.loads(json.dumps(reasoned[2]))
    assert "others together" not in render(collected)
    evidence = collected["doubt"]["rows"][0]["evidence"]
    evidence |= {"others": 3, "others_weight": -0.25}
    assert "<span>3 others together</span>" in (page := render(collected))
    assert "<span>0.25 against</span>" in page
    evidence |= {"others": 1, "others_weight": 0.001}
    assert re.search(r"<span>1 other</span><i [^>]*></i><span>0\.00</span>", render(collected))


def test_the_map_of_confusions_has_its_numbers_in_a_table(collected):
    page = render(collected)
    table = page.split('id="figure-confusions"')[1].split("</figure>")[0]
    cells = re.findall(r'<td class="number">(\d+)</td>', table)
    assert list(map(int, cells)) == [
        count for row in collected["confusions"]["map"]["counts"] for count in row
    ]


def test_without_javascript_the_page_begins_with_a_note(collected):
    page = render(collected)
    assert page.count("<noscript>") == 2
    assert page.index("This browser runs no JavaScript") < page.index("<main")


def test_a_sample_and_undrawn_methods_are_noted(fakes, monkeypatch):
    X, proba, column = fakes.rows(60, 3)
    models = {f"no. {i}": fakes.precise([0, 1, 2], proba) for i in range(8)}
    monkeypatch.setattr("dubito.report.predictions.MOST_CELLS", 90)
    page = render(collect(models, X, column))
    assert "The cases are a random sample of 60." in page
    assert "Charts show the first 6 methods; the tables hold all 8." in page


def test_colours_can_be_read_in_light_and_in_dark():
    css = resources.files("dubito.report").joinpath("page.css").read_text(encoding="utf-8")
    from dubito.report.charts import MOST_OPAQUE  # Altair is an extra

    light, dark = css.split("prefers-color-scheme: dark")
    for part in (light, dark.split("prefers-reduced-motion")[0]):
        colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", part))
        for ground in ("page", "card", "mark"):
            for name in ("ink", "soft", "link"):
                assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
        for name in ("m0", "m1", "m2", "m3", "m4", "m5", "bad", "wide", "other"):
            assert contrast(colours[name], colours["page"]) >= 3, name
        for name in ("m0", "bad"):  # numbers on the strongest tiles of the map of confusions
            tile = mixed(colours[name], colours["page"], MOST_OPAQUE)
            assert contrast(colours["ink"], tile) >= 4.5, name


def mixed(colour, ground, opacity):
    """The colour of something half transparent on a ground."""
    parts = [[int(c[i : i + 2], 16) for i in (1, 3, 5)] for c in (colour, ground)]
    return "#" + "".join(
        f"{round(opacity * a + (1 - opacity) * b):02x}" for a, b in zip(*parts, strict=True)
    )


def contrast(first, second):
    """The contrast ratio of WCAG 2."""
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour):
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_a_report_is_written_completely_and_replaces_only_with_force(collected, tmp_path):
    path = tmp_path / "report.html"
    write_page(collected, path)
    assert path.read_text(encoding="utf-8") == render(collected)
    path.write_text("mine")
    with pytest.raises(FileExistsError, match=r"report\.html already exists"):
        write_page(collected, path)
    assert path.read_text() == "mine"
    write_page(collected, str(path), force=True)
    assert path.read_text(encoding="utf-8") == render(collected)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_page(collected, tmp_path / "nowhere" / "report.html")


@pytest.mark.parametrize("wrong", [{}, {"format": 99}, [1], None])
def test_only_what_collect_returns_is_rendered(wrong):
    with pytest.raises(ValueError, match=r"collected must be what dubito\.report\.collect returns"):
        render(wrong)


@pytest.mark.parametrize("name", ["altair", "jinja2", "vl_convert"])
def test_a_missing_extra_is_named(collected, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf'{name}, .* pip install "\.\[report\]"'):
        render(collected)


def test_write_report_collects_and_writes(fakes, tmp_path):
    X, proba, column = fakes.rows(60, 3)
    model, path = fakes.precise([0, 1, 2], proba), tmp_path / "page.html"
    options = {"title": "Mine", "cost": 0.3, "doubtful_rows": 2, "random_state": 1}
    collected = write_report(model, X, column, path, **options)
    assert collected == collect(model, X, column, **options)
    assert path.read_text(encoding="utf-8") == render(collected)


def test_arguments_of_write_report_in_another_order_are_named(fakes, tmp_path):
    X, proba, column = fakes.rows(60, 3)
    model, path = fakes.precise([0, 1, 2], proba), tmp_path / "page.html"
    order = r"write_report\(models, X, y, path\)"
    for wrong, words in (
        ((model, X, column, None), f"{order} needs a file to write.*got NoneType as path"),
        ((path, model, X, column), f"{order} needs a file to write.*got ndarray as path"),
        ((model, X, path, path), f"{order} needs the true labels as y"),
        ((X, column, model, path), f"models must be a fitted classifier.*got ndarray.*{order}"),
    ):
        with pytest.raises(TypeError, match=words):
            write_report(*wrong)
    with pytest.raises(
        TypeError, match=r"write_report\(\) got an unexpected keyword argument 'size'"
    ):
        write_report(model, X, column, path, size=3)
    with pytest.raises(TypeError, match=r"write_report\(\) missing .* 'path'"):
        write_report(model, X, column)
    assert not path.exists()
