"""A linear classifier, three ways to calibrate it, one report: `make demo`.

A support vector machine is trained on 150 tumours, benign or malignant, and has no probabilities.
Three calibrations add them, and the report compares these on 419 other tumours: how often the
model is right, which rows it should leave to a doctor, and why.
"""

from __future__ import annotations

import argparse
import sys
from os.path import relpath
from pathlib import Path
from shutil import which

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from dubito.calibration import CalibratedClassifier, PlattCalibrator
from dubito.evidence import EvidentialClassifier
from dubito.report import write_report
from dubito.saving import save


def main() -> None:
    """Train, calibrate, report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for what is written")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)

    data = load_breast_cancer(as_frame=True)
    X, y = data.data.iloc[:, :10], data.target_names[data.target]
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, train_size=150, stratify=y, random_state=0
    )
    X_test = X_test.reset_index(drop=True)

    svm = make_pipeline(StandardScaler(), LinearSVC(C=0.1))
    models = {
        "sigmoid with evidence": EvidentialClassifier(
            CalibratedClassifier(svm, PlattCalibrator(), cv=5)
        ),
        "default": CalibratedClassifier(svm),
        "isotonic": CalibratedClassifier(svm, "isotonic"),
    }
    for model in models.values():
        model.fit(X_train, y_train)

    report, table, saved = out / "report.html", out / "tumours.csv", out / "tumours.skops"
    collected = write_report(
        models, X_test, y_test, report, title="Benign or malignant?", cost=0.2, force=True
    )
    X_test.assign(diagnosis=y_test).to_csv(table, index=False)
    first = models["sigmoid with evidence"]
    save(first, saved, label="diagnosis", rows=len(X_train), force=True)

    print(*collected["summary"]["lines"], sep="\n")
    print(f"\nAll of it, for a browser: {report.resolve()}")
    dubito = "dubito" if which("dubito") else relpath(Path(sys.executable).with_name("dubito"))
    print("Why is a row doubtful, and which rows does the model decide or leave to a doctor?")
    print(f"  {dubito} explain {saved} {table} --row {collected['doubt']['rows'][0]['name']}")
    print(
        f"  {dubito} predict {saved} {table} --reject-cost 0.2 -o {out / 'decisions.csv'} --force"
    )


if __name__ == "__main__":
    main()
