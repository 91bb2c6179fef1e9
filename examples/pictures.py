"""Redraw the pictures of the documentation: `python examples/pictures.py`.

Pages of docs/ and the README show figures of the gallery, and the demo's report as a browser draws
it; this runs the scripts they come from. The report needs playwright and a chromium.
"""

from __future__ import annotations

import argparse
import runpy
import shutil
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib as mpl
from matplotlib import pyplot as plt

EXAMPLES = Path(__file__).parent
IMAGES = EXAMPLES.parent / "docs" / "images"

#: By name: the script, and which of its figures.
FIGURES = {
    "theory_fit": ("1_start/plot_5_belief_functions.py", 1),
    "theory_contour": ("1_start/plot_5_belief_functions.py", 2),
    "theory_masses": ("1_start/plot_5_belief_functions.py", 3),
    "theory_subsets": ("1_start/plot_5_belief_functions.py", 4),
    "theory_rows": ("1_start/plot_5_belief_functions.py", 5),
    "evidence": ("2_deeper/plot_3_evidence.py", 1),
    "discriminant": ("2_deeper/plot_4_cautious_discriminant.py", 1),
    "dichotomies": ("2_deeper/plot_5_many_classes.py", 2),
    "p0_figures": ("3_papers/plot_p0_calibration_set.py", 1),
}
REPORT = "report"
#: Width of the report's window in pixels, and the last charts on its picture.
WIDTH, LAST = 1100, "#declining svg, #declining canvas"


def main() -> None:
    """Draw the pictures named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = (*FIGURES, REPORT)
    parser.add_argument("names", nargs="*", help=f"which of {', '.join(known)}; default: all")
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder of the pictures")
    settings = parser.parse_args()
    unknown = sorted(set(settings.names) - set(known))
    if unknown:
        parser.error(f"no picture is called {unknown[0]!r}; there are {', '.join(known)}")
    for name in settings.names or known:
        picture = settings.out / f"{name}.png"
        with redirect_stdout(StringIO()):  # the output of the scripts
            if name == REPORT:
                screenshot_report(picture)
            else:
                draw(*FIGURES[name], picture)
        print(f"{picture}: {picture.stat().st_size // 1000} kB")


def draw(script: str, number: int, picture: Path) -> None:
    """Run a script of the gallery and save one of its figures."""
    mpl.use("agg")
    runpy.run_path(str(EXAMPLES / script))
    plt.figure(number).savefig(picture, dpi=100)
    plt.close("all")


def screenshot_report(picture: Path) -> None:
    """Write the demo's report and save a screenshot of it."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only for the report

    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        sys.argv = ["demo.py", "--out", folder]
        runpy.run_path(str(EXAMPLES / "demo.py"), run_name="__main__")
        browser = playwright.chromium.launch(
            executable_path=browser_path, args=["--no-sandbox", "--force-color-profile=srgb"]
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": WIDTH}, color_scheme="light")
        page.goto(Path(folder, "report.html").as_uri(), wait_until="networkidle")
        boxes = [chart.bounding_box() for chart in page.locator(LAST).all()]
        below = max(box["y"] + box["height"] for box in boxes if box is not None)
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": below + 20}
        page.screenshot(path=str(picture), clip=clip, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
