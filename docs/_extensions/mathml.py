"""Formulas as MathML, made while building: readers need no network and no script."""  # noqa: INP001

from typing import Any
from xml.etree import ElementTree as ET

from docutils.nodes import SkipNode
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import accents, tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)
NAMESPACE = "http://www.w3.org/1998/Math/MathML"


def to_mathml(formula: str, *, as_block: bool) -> str:
    """Return the MathML of a formula, with indices of accented letters at their side."""
    ET.register_namespace("", NAMESPACE)
    text = tex2mathml(formula, as_block=as_block).replace(
        "&ApplyFunction;", "\N{FUNCTION APPLICATION}"
    )
    tree = ET.fromstring(text)  # noqa: S314
    for node in tree.iter(f"{{{NAMESPACE}}}munderover"):
        letter, index, accent = node
        # docutils puts the index of \hat\theta_1 below the letter, as if it were a limit.
        if accent.text in accents.values() and not accent.get("movablelimits"):
            node.tag = f"{{{NAMESPACE}}}msub"
            hat = ET.Element(f"{{{NAMESPACE}}}mover", accent="true")
            hat.extend((letter, accent))
            node[:] = (hat, index)
    return ET.tostring(tree, encoding="unicode")


def _write(writer: Any, node: Any, *, as_block: bool) -> None:
    try:
        writer.body.append(to_mathml(node.astext(), as_block=as_block))
    except MathError as error:
        logger.warning("formula %r: %s", node.astext(), error, location=node)
        writer.body.append(f"<code>{writer.encode(node.astext())}</code>")
    raise SkipNode


def _visit_inline(writer: Any, node: Any) -> None:
    _write(writer, node, as_block=False)


def _visit_block(writer: Any, node: Any) -> None:
    _write(writer, node, as_block=True)


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer ``mathml``."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
