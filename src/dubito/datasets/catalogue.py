"""The datasets `load` knows: one declarative table.

Counts, means and checksums were computed from the files that the published reproductions use.

An OpenML number is given only where number and name were seen together in public code or pages
that use it; no copy could be fetched and compared when this table was written. Label codes of
OpenML (dna, usps, wallrobot) are safe to translate because their class counts all differ, so that
a wrong translation fails the check of the counts. Three datasets have no number:

- satimage: OpenML 182 has 6430 rows, not the 6435 of UCI.
- saheart: OpenML 1498 codes the family history in a way that could not be confirmed.
- forest: no OpenML copy is known.
"""

from __future__ import annotations

from math import nan
from string import ascii_uppercase
from typing import TYPE_CHECKING

from dubito.datasets._records import Dataset, OpenML

if TYPE_CHECKING:
    from collections.abc import Mapping

# The archive's general terms were not looked up dataset by dataset.
_UCI_LICENCE = "CC BY 4.0 (UCI general terms, unverified)"
_ESL_LICENCE = "not stated (book site; R package GPL >= 2)"
_ESL = "web site of the book The Elements of Statistical Learning"
_ESL_MIRROR = "R package ElemStatLearn"
_MLBENCH = "R package mlbench 2.1-3"
_WEKA = "GitHub renatopp/arff-datasets"
_BROWNLEE = "GitHub jbrownlee/Datasets"

_DATASETS = (
    Dataset(
        name="australian",
        title="Australian credit approval (Statlog)",
        paper="P1",
        features=14,
        classes={0: 383, 1: 307},
        mean=90.0856,
        sha256="785038d560b8482e5ee3bb3fa3e62350bf35e0bff0bbf953dd88d62b95ff94b9",
        origin='UCI "Statlog (Australian Credit Approval)"',
        mirror="GitHub Phas3r/MLCourse",
        licence=_UCI_LICENCE,
        openml=OpenML(data_id=40981),
        notes="Label 1 is approved. Some features are category codes.",
    ),
    Dataset(
        name="dermatology",
        title="Erythemato-squamous skin diseases",
        paper="P3",
        features=34,
        classes={1: 112, 2: 61, 3: 72, 4: 49, 5: 52, 6: 20},
        missing=8,
        mean=1.76713,
        sha256="ca8e01e263ffdaefe425123acac27b81d7c5e88a676591a78fa94aa5257608e1",
        origin='UCI "Dermatology"',
        mirror=_WEKA,
        licence=_UCI_LICENCE,
        words={"": nan},
        openml=OpenML(data_id=35),
        notes="8 ages are missing and are nan; no row is dropped.",
    ),
    Dataset(
        name="diabetes",
        title="Pima Indians diabetes",
        paper="P1",
        features=8,
        classes={0: 500, 1: 268},
        mean=44.9858,
        sha256="0ba1a3df2b518daef8302a1d09261c7d15fb30eb9af1626b4983ebaeeabfe531",
        origin='formerly UCI "Pima Indians Diabetes" (withdrawn there)',
        mirror=_BROWNLEE,
        licence="unverified (withdrawn from UCI; CC0 on other mirrors)",
        openml=OpenML(data_id=37, labels={"tested_negative": "0", "tested_positive": "1"}),
        notes="Label 1 is positive. Zeros in plas, pres, skin, insu, mass are unrecorded.",
    ),
    Dataset(
        name="dna",
        title="Splice junctions of DNA (Statlog form, 180 binary features)",
        paper="P0",
        features=180,
        classes={"ei": 767, "ie": 765, "n": 1654},
        train_classes=(464, 485, 1051),
        mean=0.252671,
        sha256="afdd2545781d38478b64ca648cf55afebd1b942e9f80ade88dc7050fdc053489",
        origin='UCI "Molecular Biology (Splice-junction Gene Sequences)", Statlog form',
        mirror=_MLBENCH,
        licence=_UCI_LICENCE,
        openml=OpenML(data_id=40670, labels={"1": "ei", "2": "ie", "3": "n"}),
    ),
    Dataset(
        name="forest",
        title="Forest types in Japan from satellite images",
        paper="P3",
        features=27,
        classes={"d": 159, "h": 86, "o": 83, "s": 195},
        train_classes=(54, 48, 37, 59),
        mean=19.6013,
        sha256="ea49f52e07232fdc21b150c4cd6f6a6c8306790968e96b90b98264e25b3c296c",
        origin='UCI "Forest type mapping" (training.csv, then testing.csv)',
        mirror="GitHub VedanshMaheshwari/Forest-Type-Mapping-ESP32",
        licence=_UCI_LICENCE,
    ),
    Dataset(
        name="heart",
        title="Heart disease (Statlog)",
        paper="P1",
        features=13,
        classes={"absent": 150, "present": 120},
        mean=46.036,
        sha256="49056ebb8e345b8b6ff9fc184ac826f2338b2e7ecaf46d8ada90e91b89016a9e",
        origin='UCI "Statlog (Heart)"',
        mirror=_WEKA,
        licence=_UCI_LICENCE,
        openml=OpenML(data_id=53),
    ),
    Dataset(
        name="ionosphere",
        title="Radar returns from the ionosphere",
        paper="P1",
        features=34,
        classes={"b": 126, "g": 225},
        mean=0.247697,
        sha256="395ec59a7fd25701ba6b350825a91c7786f19d309ed7853ad4b6cf0e2361a607",
        origin='UCI "Ionosphere"',
        mirror=_BROWNLEE,
        licence=_UCI_LICENCE,
        openml=OpenML(data_id=59),
        notes="The second feature is constant.",
    ),
    Dataset(
        name="iris",
        title="Iris flowers",
        paper="P3",
        features=4,
        classes={0: 50, 1: 50, 2: 50},
        mean=3.4645,
        sha256="d5d502053f2c34eb8a9a16368b8c84b670aca283c8a1701f36e75e7e8a8e8e9b",
        origin='UCI "Iris"',
        mirror="scikit-learn",
        licence=_UCI_LICENCE,
        bundled=True,
        notes="Labels 0, 1, 2 are setosa, versicolor, virginica. "
        "Rows 35 and 38 hold the corrected values, unlike the UCI file.",
    ),
    Dataset(
        name="letter",
        title="Printed capital letters",
        paper="P4",
        features=16,
        classes=dict(
            zip(
                ascii_uppercase,
                (
                    *(789, 766, 736, 805, 768, 775, 773, 734, 755, 747, 739, 761, 792),
                    *(783, 753, 803, 783, 758, 748, 796, 813, 764, 752, 787, 786, 734),
                ),
                strict=True,
            )
        ),
        train_classes=(
            *(633, 630, 594, 638, 616, 622, 609, 583, 590, 599, 593, 604, 648),
            *(617, 614, 635, 615, 597, 587, 645, 645, 628, 613, 628, 641, 576),
        ),
        mean=5.92547,
        sha256="3da94bc4e962b7ef0131738cf6a7f6643372d0cb96b848dfe9137e8eb16dbd84",
        origin='UCI "Letter Recognition"',
        mirror=_MLBENCH,
        licence=_UCI_LICENCE,
        openml=OpenML(data_id=6),
        notes="The first 16000 rows are the usual training part.",
    ),
    Dataset(
        name="micromass",
        title="Bacteria from mass spectra (pure spectra)",
        paper="P4",
        features=1300,
        classes=dict(
            enumerate(
                (50, 26, 52, 29, 14, 16, 26, 11, 26, 24, 29, 21, 31, 18, 32, 31, 60, 27, 20, 28),
                start=1,
            )
        ),
        mean=67437.3,
        sha256="8799977633c1cf0c07fc38a97bd8180caa10d53392fc733b2d22832913d10755",
        origin='UCI "MicroMass"',
        mirror="GitHub jasonshi1997/Data-Mining (OpenML micro-mass form)",
        licence=_UCI_LICENCE,
        openml=OpenML(data_id=1515),
        notes="Only one copy was found, so its values are not cross-checked. "
        "Strains, for grouped splits, are not included.",
    ),
    Dataset(
        name="optdigits",
        title="Handwritten digits, 8 x 8 counts",
        paper="P4",
        features=64,
        classes=dict(enumerate((554, 571, 557, 572, 568, 558, 558, 566, 554, 562))),
        train_classes=(376, 389, 380, 389, 387, 376, 377, 387, 380, 382),
        mean=4.91124,
        sha256="d272835047825c32800af8d228cacab93784da479a4079c9ddae3178987a52c0",
        origin='UCI "Optical Recognition of Handwritten Digits"',
        mirror=_WEKA,
        licence=_UCI_LICENCE,
        openml=OpenML(data_id=28),
    ),
    Dataset(
        name="pendigits",
        title="Handwritten digits, pen positions",
        paper="P0",
        features=16,
        classes=dict(enumerate((1143, 1143, 1144, 1055, 1144, 1055, 1056, 1142, 1055, 1055))),
        train_classes=(780, 779, 780, 719, 780, 720, 720, 778, 719, 719),
        mean=50.711,
        sha256="1ffc3dd3666635d641a032c3a9f7baac7bc675346d95ba40793047e8b6fb9e26",
        origin='UCI "Pen-Based Recognition of Handwritten Digits"',
        mirror=_WEKA,
        licence=_UCI_LICENCE,
        openml=OpenML(data_id=32),
    ),
    Dataset(
        name="saheart",
        title="Coronary heart disease in South Africa",
        paper="P2",
        features=9,
        classes={0: 302, 1: 160},
        mean=34.6148,
        sha256="5742c9a0cfa3b5b06f4245d49e2639fbc328f54872c4c3938b0c54b9e341cc20",
        origin=_ESL,
        mirror=_ESL_MIRROR,
        licence=_ESL_LICENCE,
        words={"Absent": 0.0, "Present": 1.0},
        notes="Label 1 is disease. famhist Absent is 0 and Present is 1.",
    ),
    Dataset(
        name="satimage",
        title="Landsat satellite images (Statlog)",
        paper="P0",
        features=36,
        classes={1: 1533, 2: 703, 3: 1358, 4: 626, 5: 707, 7: 1508},
        train_classes=(1072, 479, 961, 415, 470, 1038),
        mean=83.4718,
        sha256="e5deecc4e993eb89c8670354509c2ba8eace89e10b0d980047ce4d16c7d67fbd",
        origin='UCI "Statlog (Landsat Satellite)" (sat.trn, then sat.tst)',
        mirror="GitHub YannisSch/Statlog_Landstat_Satellite_Project",
        licence=_UCI_LICENCE,
        notes="There is no class 6.",
    ),
    Dataset(
        name="seeds",
        title="Kernels of three wheat varieties",
        paper="P3",
        features=7,
        classes={1: 70, 2: 70, 3: 70},
        mean=6.89617,
        sha256="b2b9f8e7eba2937b4afc3640c70a033384af50c6c6ee7b9d7ff32191e61663de",
        origin='UCI "seeds"',
        mirror=_BROWNLEE,
        licence=_UCI_LICENCE,
        openml=OpenML(data_id=1499),
    ),
    Dataset(
        name="segment",
        title="Outdoor images, 3 x 3 regions (Statlog)",
        paper="P0",
        features=19,
        classes=dict.fromkeys(
            ("brickface", "cement", "foliage", "grass", "path", "sky", "window"), 330
        ),
        mean=24.6331,
        sha256="524d7fc67e31f7fc49ec8cbcdafc4d8352f3fcdb3dce57aa27a1df7737f105cc",
        origin='UCI "Image Segmentation", Statlog form',
        mirror=f"GitHub ImBeji/ProjetPythonPapierGit; names from {_WEKA}",
        licence=_UCI_LICENCE,
        openml=OpenML(data_id=36),
        notes="region_pixel_count is constant; 224 rows are exact duplicates.",
    ),
    Dataset(
        name="usps",
        title="Handwritten zip code digits, 16 x 16 grey values in [-1, 1]",
        paper="P0",
        features=256,
        classes=dict(enumerate((1553, 1269, 929, 824, 852, 716, 834, 792, 708, 821))),
        train_classes=(1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644),
        mean=-0.485371,
        sha256="76afb91c1fa59bbcbfbc22c5359fb17bcbd4581a672ad308806ea236beef9ed1",
        origin=_ESL + " (zip.train, then zip.test)",
        mirror=_ESL_MIRROR,
        licence=_ESL_LICENCE,
        openml=OpenML(data_id=41082, labels={str(d + 1): str(d) for d in range(10)}),
    ),
    Dataset(
        name="vehicle",
        title="Vehicle silhouettes (Statlog)",
        paper="P3",
        features=18,
        classes={"bus": 218, "opel": 212, "saab": 217, "van": 199},
        mean=117.635,
        sha256="bc5a990ec9bffe4969510e2b7ecd26df35553d649fe87360a120ec9c884294de",
        origin='UCI "Statlog (Vehicle Silhouettes)"',
        mirror=_WEKA,
        licence=_UCI_LICENCE,
        openml=OpenML(data_id=54),
    ),
    Dataset(
        name="vowel",
        title="Eleven British English vowels from 15 speakers",
        paper="P3",
        features=10,
        classes=dict.fromkeys(
            ("hAd", "hEd", "hId", "hOd", "hUd", "hYd", "had", "hed", "hid", "hod", "hud"), 90
        ),
        train_classes=(48,) * 11,
        mean=-0.10318,
        sha256="1815d721b4204217c0c9be31c2919d66cf38a7ce1af3671384bdd78124ced290",
        origin='UCI "Connectionist Bench (Vowel Recognition)"',
        mirror=_WEKA,
        licence=_UCI_LICENCE,
        openml=OpenML(data_id=307, columns=tuple(f"Feature_{i}" for i in range(10))),
        groups_file="vowel_groups.csv",
        notes="Some labels differ by letter case alone. Training and test speakers differ.",
    ),
    Dataset(
        name="wallrobot",
        title="Wall-following robot, 24 ultrasound sensors",
        paper="P3",
        features=24,
        classes={
            "Move-Forward": 2205,
            "Sharp-Right-Turn": 2097,
            "Slight-Left-Turn": 328,
            "Slight-Right-Turn": 826,
        },
        mean=2.04579,
        sha256="84e5afaa75428860ce7269ac02dfed86f28b8d94502f38a7178ef701c6c244cb",
        origin='UCI "Wall-Following Robot Navigation Data"',
        mirror="GitHub Transcendence-ML-Python/robot-sensor-data-classification-ml",
        licence=_UCI_LICENCE,
        openml=OpenML(
            data_id=1497,
            labels={
                "1": "Move-Forward",
                "2": "Sharp-Right-Turn",
                "3": "Slight-Left-Turn",
                "4": "Slight-Right-Turn",
            },
        ),
        notes="Rows are a time series.",
    ),
    Dataset(
        name="waveform",
        title="Breiman's waveforms, 21 features",
        paper="P0",
        features=21,
        classes={0: 1692, 1: 1653, 2: 1655},
        mean=1.70978,
        sha256="ad2c71ee4b023ed494df8cd9680ae9dcb313c5f99147ca56f9e332fbc1f2d773",
        origin='UCI "Waveform Database Generator (Version 2)", first 21 of 40 columns',
        mirror=_WEKA,
        licence=_UCI_LICENCE,
        openml=OpenML(data_id=60, columns=tuple(f"x{i}" for i in range(1, 22))),
        notes="Not the UCI waveform-21 file but the waveform+noise file without its 19 noise "
        "columns: the same recipe, another draw. make_waveform draws more.",
    ),
    Dataset(
        name="wine",
        title="Wines of three cultivars",
        paper="P3",
        features=13,
        classes={0: 59, 1: 71, 2: 48},
        mean=69.1337,
        sha256="3923d035a157b2392dc6bb585da70e00a6b522cd706e9a0e169630030a20ede1",
        origin='UCI "Wine"',
        mirror="scikit-learn",
        licence=_UCI_LICENCE,
        bundled=True,
        notes="Labels 0, 1, 2 are the three cultivars.",
    ),
    Dataset(
        name="winequality_red",
        title="Quality of red Vinho Verde wines",
        paper="P3",
        features=11,
        classes={3: 10, 4: 53, 5: 681, 6: 638, 7: 199, 8: 18},
        mean=8.13422,
        sha256="3e3ab65514e8d9ae894b8a22f0882102c70eef35d86a9643e85a1c9ba4aef238",
        origin='UCI "Wine Quality" (winequality-red.csv)',
        mirror=_BROWNLEE,
        licence=_UCI_LICENCE,
        openml=OpenML(data_id=40691),
    ),
)

CATALOGUE: Mapping[str, Dataset] = {dataset.name: dataset for dataset in _DATASETS}
