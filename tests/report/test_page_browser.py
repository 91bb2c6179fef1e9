"""The page in a real browser: charts, slider, and no network access."""

import re
import shutil

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dubito.evidence import EvidentialClassifier
from dubito.report import collect, write_page
from dubito.report.wording import cost_text, percent, same_cost

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
for extra in ("altair", "jinja2", "vl_convert"):
    pytest.importorskip(extra, reason="the extra is not installed: pip install .[report]")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next((path for name in NAMES if (path := shutil.which(name))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason=f"no browser among {', '.join(NAMES)}")

PHONE, DESK = {"width": 390, "height": 844}, {"width": 1440, "height": 900}


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as engine:
        # Containers have no sandbox of their own for the browser; the page is ours.
        started = engine.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def collected():
    data = load_breast_cancer()
    X, y = data.data[:, :6], np.array(["malignant", "benign"])[data.target]
    estimator = make_pipeline(StandardScaler(), LogisticRegression(C=0.1))
    models = {
        "evidential": EvidentialClassifier(estimator).fit(X[::2], y[::2]),
        "plain": estimator.fit(X[::2], y[::2]),
    }
    return collect(models, X[1::2], y[1::2], title="Tumours", doubtful_rows=6)


@pytest.fixture(scope="module")
def files(tmp_path_factory, collected, nasty_report):
    folder = tmp_path_factory.mktemp("pages")
    write_page(collected, folder / "tumours.html")
    write_page(nasty_report, folder / "nasty.html")
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, y = load_iris(return_X_y=True)
    X = pd.DataFrame(X, columns=[f"{'long ' * 8}{j}" for j in range(4)])
    model = EvidentialClassifier(LogisticRegression(max_iter=500)).fit(X, y)
    write_page(collect(model, X, y, doubtful_rows=2), folder / "irises.html")
    return {file.stem: file for file in folder.iterdir()}


@pytest.fixture
def opened(browser, files):
    """Open a page; after the test, assert that there were no errors and no requests."""
    troubles, contexts = [], []

    def watch(route):
        address = route.request.url
        if address.startswith("file://") and address.endswith(".html"):
            route.continue_()
        else:
            troubles.append(f"asked for {address}")
            route.abort()

    def open_page(name="tumours", *, size=DESK):
        context = browser.new_context(viewport=size)
        contexts.append(context)
        context.route("**/*", watch)
        page = context.new_page()
        page.on("console", lambda message: troubles.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("dialog", lambda dialog: troubles.append(f"dialog: {dialog.message}"))
        page.goto(files[name].as_uri())
        page.wait_for_selector("html[data-drawn=all]", timeout=30_000)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert troubles == []


def expected_cells(collected, at):
    """The cells of the table of methods at one stop of the slider."""
    cells = []
    for method in collected["declining"]["models"]:
        saved = method["error_without_declining"] - method["cost"][at]
        words = f"{cost_text(abs(saved))} {'less' if saved > 0 else 'more'}"
        same = same_cost(method["cost"][at], method["error_without_declining"])
        cells += [
            percent(method["declined"][at]),
            percent(method["error"][at]),
            cost_text(method["cost"][at]),
            "the same" if same else words,
        ]
    return cells


def assert_at(page, collected, at):
    """The sentence, the table and both charts are at one stop."""
    method, cost = collected["declining"]["models"][0], collected["declining"]["costs"][at]
    says = page.locator("output").inner_text()
    assert f"At a cost of {cost:g} it decides" in says
    assert f"pignistic probability, between its bounds, of at least {100 * (1 - cost):g}%" in says
    assert f"declines {percent(method['declined'][at])} (" in says
    assert f"A case costs {cost_text(method['cost'][at])} on average" in says
    if method["error"][at] is None:
        assert "nothing is decided" in says
    else:
        assert f"{percent(method['error'][at])} of the cases decided are wrong" in says
        drawn = page.locator("[data-chart=error_reject] svg").text_content()
        assert f"cost {cost:g}" in drawn
    assert page.locator("[data-cell]").all_inner_texts() == expected_cells(collected, at)


def test_every_chart_is_drawn(opened, collected):
    page = opened()
    assert page.title() == "Tumours"
    charts = page.locator("[data-chart]")
    assert charts.count() == 7
    for i in range(charts.count()):
        chart = charts.nth(i)
        marks = chart.locator("svg [class*=mark-] path, svg [class*=mark-] line")
        assert marks.count() > 2, chart.get_attribute("data-chart")
        box = chart.locator("svg").bounding_box()
        assert box["width"] > 300
        assert box["height"] > 100
    named = page.get_by_role("img", name=re.compile(r"\. (Line|Bar|Heat)"))
    assert named.count() == charts.count()  # for screen readers
    assert_at(page, collected, 20)


def test_the_slider_moves_the_numbers_by_keyboard_and_by_hand(opened, collected):
    page = opened()
    slider = page.get_by_role("slider", name="Cost of declining")
    before = page.locator("[data-chart=costs] svg").inner_html()
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert_at(page, collected, 21)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert_at(page, collected, 19)
    assert page.locator("[data-chart=costs] svg").inner_html() != before
    page.keyboard.press("End")
    assert_at(page, collected, 100)
    page.keyboard.press("Home")
    assert_at(page, collected, 0)
    box = slider.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert_at(page, collected, round(100 * float(slider.input_value())))


def test_a_class_can_be_chosen(opened):
    page = opened()
    chart = page.locator("[data-chart=classes] svg")
    before = chart.inner_html()
    choice = page.get_by_role("combobox", name="Class")
    assert choice.locator("option").all_inner_texts() == ["benign", "malignant"]
    choice.select_option(label="malignant")
    assert chart.inner_html() != before
    choice.select_option(label="benign")
    assert chart.inner_html() == before


def test_the_keyboard_reaches_the_content_and_sees_where_it_is(opened):
    page = opened()
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the summary")
    assert skip.evaluate("link => link === document.activeElement")
    assert skip.bounding_box()["y"] >= 0
    assert skip.evaluate("link => getComputedStyle(link).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_evidence_opens_row_by_row(opened, collected):
    page = opened()
    rows = page.locator("#doubt details")
    assert rows.count() == len(collected["doubt"]["rows"]) == 6
    first = rows.first
    assert not first.locator("ul").is_visible()
    first.locator("summary").click()
    evidence = collected["doubt"]["rows"][0]["evidence"]
    headline, *_, conclusion = evidence["text"].splitlines()
    assert first.locator("p").all_inner_texts() == [headline, conclusion]
    assert evidence["others"] == 1  # says less than 0.01 for or against
    assert [text.split(" = ")[0] for text in first.locator("li").all_inner_texts()] == [
        *(piece["name"] for piece in evidence["pieces"]),
        "1 other\n0.00",
    ]


@pytest.mark.parametrize("name", ["tumours", "nasty"])
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_the_page_fits_light_and_dark(opened, name, size):
    grounds = set()
    page = opened(name, size=size)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        ground, ink, label = page.evaluate(
            """() => {
                const text = document.querySelector("[data-chart=reliability] svg text");
                const body = getComputedStyle(document.body);
                return [body.backgroundColor, body.color, getComputedStyle(text).fill];
            }"""
        )
        assert label == ink  # labels of charts follow the page
        assert (brightness(ground) > brightness(ink)) == (scheme == "light")
        grounds.add(ground)
    assert len(grounds) == 2


def test_wide_tables_say_that_there_is_more_and_scroll_by_keyboard(opened):
    page = opened(size=PHONE)
    table = page.locator("#doubt .scroll").first
    hint = "caption => getComputedStyle(caption, '::after').content"
    assert "Scroll sideways" in table.locator("caption span").evaluate(hint)
    shades = table.evaluate("box => getComputedStyle(box).backgroundAttachment")
    assert shades == "local, local, scroll, scroll"
    table.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("box => box.scrollLeft > 0", arg=table.element_handle())
    page.set_viewport_size(DESK)
    page.wait_for_function("box => !box.classList.contains('more')", arg=table.element_handle())
    assert table.locator("caption span").evaluate(hint) == "none"


@pytest.mark.parametrize("name", ["nasty", "irises"])
def test_the_page_fits_on_paper(opened, name):
    page = opened(name)
    page.set_viewport_size({"width": 720, "height": 1000})
    page.emulate_media(media="print")
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    beyond = """() => [...document.querySelectorAll("table, pre")]
        .filter(one => one.getBoundingClientRect().left + one.scrollWidth > 720)
        .map(one => one.textContent.slice(0, 80))"""
    assert page.evaluate(beyond) == []


def brightness(colour):
    return sum(map(int, re.findall(r"\d+", colour)[:3]))


def test_nasty_names_are_shown_as_they_are(opened, fakes):
    page = opened("nasty")
    assert page.title() == fakes.nasty[0]
    assert page.locator("img").count() == 0
    assert page.locator("h1").inner_text() == fakes.nasty[0]
    options = page.get_by_role("combobox", name="Class").locator("option").all_inner_texts()
    assert options[0] == fakes.nasty[0]
    assert "__proto__" in options
    page.locator("[data-chart=confusions] .mark-text text").first.hover()
    tip = page.locator("#vg-tooltip-element")
    tip.wait_for(state="visible")
    assert fakes.nasty[0] in tip.inner_text()
    assert page.title() == fakes.nasty[0]  # no script of a label has run


def test_the_page_is_small_enough_to_send(files):
    assert all(path.stat().st_size < 1_500_000 for path in files.values())
