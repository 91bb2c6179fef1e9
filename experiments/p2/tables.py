"""Tables of finished rounds: paper and ours side by side, claims, and further experiments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from experiments.common.published import (
    allowed,
    claims_table,
    is_reproduced,
    read_claims,
    read_expected,
    spread,
)
from experiments.common.tables import contrast, estimate, markdown, with_width
from experiments.p2 import counts as c
from experiments.p2 import fusion, measures, networks, perceptron
from experiments.p2.measures import measured

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from experiments.common.published import Expected
    from experiments.p2.measures import Floats, Numbers, Results

HERE = Path(__file__).resolve().parent
RULE_NAMES = {
    "mp": "most plausible class (MP)",
    "interval_dominance": "interval dominance (ID)",
    "maximality": "maximality",
    "e_admissibility": "E-admissibility",
}
SET_MEASURES: dict[str, Callable[[Floats], float]] = {
    "error": c.error,
    "class not in the set": c.outside,
    "pairs": lambda table: c.of_size(table, 2),
    "triples": lambda table: c.of_size(table, 3),
    "u65": lambda table: c.utility(table, 1.6),
    "u80": lambda table: c.utility(table, 2.2),
}


# Heart disease


def render_heart(results: Results) -> str:
    """Return Tables 1 and 2, the claims about them, and other rules."""
    found = measures.of_heart(results)
    names = {"1": "positive", "2": "negative", "12": "both"}
    rules = {
        **RULE_NAMES,
        "cautious_features_mp": "MP, features combined by the cautious rule",
        "cautious_features": "ID, features combined by the cautious rule",
    }
    beyond = (
        "**Other rules** (the paper's outlook), in per cent; for two classes the three rules that "
        "return sets coincide. Below: the two features' masses combined by the cautious "
        "rule in place of Dempster's."
    )
    shown = {name: SET_MEASURES[name] for name in ("error", "pairs", "u65", "u80")}
    return "\n".join(
        [
            *_published("heart", found, "replication", len(results)),
            *("", "**Table 1**, MP rule: paper / ours.", ""),
            *_matrix("heart", found, "mp", {k: names[k] for k in "12"}),
            *("", "**Table 2**, ID rule: paper / ours.", ""),
            *_matrix("heart", found, "id", names),
            *("", *_claims("heart", found)),
            *("", beyond, "", *_rules(results, rules, shown)),
        ]
    )


# Gaussian data


def render_networks(results: Results) -> str:
    """Return Tables 3 and 4, the claims about them, and the effect of training options."""
    main = _after(results, networks.MAIN, networks.MAIN_EPOCHS)
    found = measures.of_trio(main)
    names = {"1": "θ1", "2": "θ2", "3": "θ3"}
    sets = {**names, "12": "{θ1, θ2}", "13": "{θ1, θ3}", "23": "{θ2, θ3}", "123": "all"}
    lengths = (
        "**Training.** The same numbers for each penalty, optimiser and number of epochs, in per "
        "cent, mean ± standard deviation of one training. `keras` and `adam`: λ = 0.5 times the "
        "sum of squared output weights beside the mean cross-entropy (with RMSprop and with Adam); "
        "`summed`: beside the sum of a minibatch's cross-entropies; `none`: no penalty."
    )
    return "\n".join(
        [
            *_published("networks", found, "training", len(main)),
            *("", "**Table 3**, MP rule: ours alone, since the paper's is lost.", ""),
            *_matrix("networks", found, "mp", names),
            *("", "**Table 4**, ID rule: paper, where it can be read, / ours.", ""),
            *_matrix("networks", found, "id", sets),
            *("", *_claims("networks", found)),
            *("", lengths, "", *_lengths(results)),
            *("", _outlook(len(main)), "", *_rules(main, RULE_NAMES, SET_MEASURES)),
        ]
    )


def render_perceptron(results: Results) -> str:
    """Return the numbers of scikit-learn's perceptron beside the paper's."""
    expected = _expected("networks")
    quantities = ("mp.error", "id.error", "id.pairs", "id.triples", "id.guessed_as_printed")
    variants = {variant: _variant(results, variant) for variant in perceptron.ALPHAS}
    found = {variant: measures.of_trio(some) for variant, some in variants.items() if some}
    lines = [
        [expected[q].words, expected[q].printed, *(_with_sd(n[q]) for n in found.values())]
        for q in quantities
    ]
    main = variants[perceptron.MAIN]
    epochs = np.mean([one["epochs"] for one in main])
    head = (
        f"**Perceptron.** In per cent, mean ± standard deviation of one training, {len(main)} "
        f"rounds. Training stopped by itself, after {epochs:.0f} epochs on average (alpha = 0.5)."
    )
    costs = (
        "**Other rules with unequal costs of errors.** A missed θ3 costs 3, other errors 1 "
        "(alpha = 0.5), in per cent. Only here does maximality differ from interval dominance."
    )
    cost_rules = {rule: RULE_NAMES[rule] for rule in list(RULE_NAMES)[1:]}
    with_costs = [{"counts": one["costs"]} for one in main]
    alphas = [f"ours, alpha = {perceptron.ALPHAS[variant]:g}" for variant in found]
    return "\n".join(
        [
            *(head, "", *markdown(["", "paper's network", *alphas], lines)),
            *("", _outlook(len(main)), "", *_rules(main, RULE_NAMES, SET_MEASURES)),
            *("", costs, "", *_rules(with_costs, cost_rules, _sizes_alone())),
        ]
    )


def render_fusion(results: Results) -> str:
    """Return the table of ways to combine an ensemble."""
    names = {
        "alone": "one member",
        "probabilities": "probabilities averaged",
        "masses_averaged": "masses averaged",
        "dempster": "Dempster's rule",
        "cautious": "cautious rule",
    }
    blocks = []
    for scheme in fusion.SCHEMES:
        some = [one["methods"] for one in results if one["scheme"] == scheme]
        if some:
            blocks += ["", _scheme_words(scheme, len(some)), "", *_ensemble(some, names)]
    return "\n".join(blocks[1:])


def _scheme_words(scheme: str, rounds: int) -> str:
    rows = {"same": "the same 900 rows", "own": "180 rows of its own"}[scheme]
    return (
        f"**{fusion.N_MEMBERS} perceptrons, each trained on {rows}.** Rounds: {rounds}; in per "
        "cent, mean ± 95% interval, but for the log loss of the normalised plausibilities and the "
        "mean mass of the whole frame. Last: error by the most plausible class less that of "
        "averaged probabilities, paired by rounds, **bold** where the interval excludes zero."
    )


def _ensemble(some: Sequence[Any], names: dict[str, str]) -> list[str]:
    def errors(method: str) -> Floats:
        return measured([one[method] for one in some], "mp", c.error)

    lines = []
    for method, words in names.items():
        rounds = [one[method] for one in some]
        sets = [
            _with_interval(measured(rounds, "interval_dominance", SET_MEASURES[name]))
            for name in ("error", "pairs", "triples", "u65", "u80")
        ]
        means = [np.mean([one[key] for one in rounds]) for key in ("log_loss", "ignorance")]
        difference = contrast(estimate(errors(method) - errors("probabilities")))
        lines.append(
            [
                *(words, _with_interval(errors(method)), *sets),
                *(f"{means[0]:.3f}", f"{means[1]:.1%}".replace("%", " %")),
                "" if method == "probabilities" else difference,
            ]
        )
    head = ["", "MP: error", "ID: error", "pairs", "triples", "u65", "u80"]
    return markdown([*head, "log loss", "ignorance", "MP: difference"], lines)


def _after(results: Results, variant: str, epochs: int) -> list[Any]:
    return [one["after"][str(epochs)] for one in _variant(results, variant)]


def _variant(results: Results, variant: str) -> list[Any]:
    return [one for one in results if one["variant"] == variant]


def _lengths(results: Results) -> list[str]:
    quantities = {
        "MP: error": "mp.error",
        "ID: error": "id.error",
        "pairs": "id.pairs",
        "triples": "id.triples",
        "class not in the set": "id.outside",
    }
    lines = []
    for variant in dict.fromkeys(one["variant"] for one in results):
        for epochs in _variant(results, variant)[0]["after"]:
            some = _after(results, variant, epochs)
            found = measures.of_trio(some)
            cells = [_with_sd(found[q]) for q in quantities.values()]
            lines.append([f"`{variant}`", epochs, str(len(some)), *cells])
    expected = _expected("networks")
    paper = [expected[q].printed if q in expected else "" for q in quantities.values()]
    return markdown(
        ["penalty", "epochs", "trainings", *quantities], [["paper", "?", "1", *paper], *lines]
    )


def _outlook(rounds: int) -> str:
    return (
        f"**Other rules** (the paper's outlook) with 0/1 losses, in per cent, mean of {rounds} "
        "rounds. Maximality then equals interval dominance: k is out if some Bel({l}) > Pl(k)."
    )


def _sizes_alone() -> dict[str, Callable[[Floats], float]]:
    names = ("error", "class not in the set", "pairs", "triples")
    return {name: SET_MEASURES[name] for name in names}


# Blocks


def _expected(part: str) -> dict[str, Expected]:
    return read_expected(HERE / "expected.csv", part)


def _published(part: str, found: Numbers, round_: str, rounds: int) -> list[str]:
    """Return the published numbers outside the matrices, and how many of all are reproduced."""
    expected = _expected(part)
    reproduced = [q for q in expected if is_reproduced(expected[q], found[q])]
    lines = []
    for q, one in expected.items():
        if "Table" in one.source:
            continue
        values = found[q]
        digits = 3 if q == "cutoff.ldl" else 2
        ours = [with_width(values.mean(), estimate(values).half_width, digits=digits)]
        limits = ["", ""]
        if len(values) > 1:
            limits = [f"{spread(values):.2f}", f"{values.min():.1f} to {values.max():.1f}"]
        answer = "yes" if q in reproduced else f"**no**, {values.mean() - one.value:+.1f}"
        lines.append(
            [one.words, one.printed, *ours, *limits, f"{allowed(one, values):.2g}", answer]
        )
    words = (
        f"**Published numbers.** Ours: mean of {rounds} {round_}s ± 95% interval of the mean, then "
        f"standard deviation and range of single {round_}s. "
        f"{len(reproduced)} of {len(expected)} are reproduced, cells of the tables included: our "
        "mean is no further from them than allowed."
    )
    spread_head = f"sd of one {round_}"
    head = ["", "paper", "ours", spread_head, "range", "allowed", "reproduced"]
    return [words, "", *markdown(head, lines)]


def _matrix(part: str, found: Numbers, rule: str, sets: dict[str, str]) -> list[str]:
    """Return a confusion matrix; ours in italics where the published number is not reproduced."""
    expected = _expected(part)
    classes = [key for key in sets if len(key) == 1]

    def cell(q: str) -> str:
        ours = f"{found[q].mean():.1f}"
        spread_ = f" (sd {spread(found[q]):.1f})" if len(found[q]) > 1 else ""
        if q not in expected:
            return f"{ours}{spread_}"
        mark = "" if is_reproduced(expected[q], found[q]) else "*"
        return f"{expected[q].printed} / {mark}{ours}{mark}{spread_}"

    lines = [[name, *(cell(f"{rule}.{key}.{k}") for k in classes)] for key, name in sets.items()]
    return markdown(["decided", *(f"truly {sets[k]}" for k in classes)], lines)


def _claims(part: str, found: Numbers) -> list[str]:
    return claims_table(read_claims(HERE / "claims.csv", part), found)


def _rules(
    results: Results, rules: dict[str, str], shown: dict[str, Callable[[Floats], float]]
) -> list[str]:
    lines = []
    for rule, words in rules.items():
        values = [measured(results, rule, measure) for measure in shown.values()]
        lines.append([words, *map(_with_interval, values)])
    return markdown(["rule", *shown], lines)


def _with_sd(values: Floats) -> str:
    return with_width(values.mean(), spread(values))


def _with_interval(values: Floats) -> str:
    return with_width(values.mean(), estimate(values).half_width)
