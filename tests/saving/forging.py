"""Forged model files: arbitrary content with a valid checksum."""

from __future__ import annotations

import json
from io import BytesIO
from zipfile import ZipFile

import numpy as np

from dubito.saving.archive import SCHEMA, STAMP, checksum, pack_members, unpack
from dubito.saving.stamp import checksummed_bytes


def members_of(path):
    return unpack(path.read_bytes(), str(path))


def write(path, members):
    """Write members unchanged, the stamp included."""
    path.write_bytes(pack_members(members))


def forge(path, *, schema=None, members=None, stamp=None):
    """Change a model file in place and correct its checksum.

    `schema` and `stamp` edit their parsed JSON in place; `members` edits the dict of other members.
    """
    content = members_of(path)
    raw = json.loads(content.pop(STAMP))
    if members is not None:
        members(content)
    if schema is not None:
        parsed = json.loads(content[SCHEMA])
        schema(parsed)
        content[SCHEMA] = json.dumps(parsed).encode()
    if stamp is not None:
        stamp(raw)
    raw["sha256"] = checksum(content, checksummed_bytes(raw))
    write(path, {**content, STAMP: json.dumps(raw).encode()})


def node(loader, module, name, **rest):
    return {"__loader__": loader, "__module__": module, "__class__": name, **rest}


def value(plain):
    return node("JsonNode", "builtins", "str", content=json.dumps(plain), is_json=True)


def values(*nodes):
    return node("TupleNode", "builtins", "tuple", content=list(nodes))


def put(new):
    """Return an edit that replaces some attribute of the outermost object by a node."""

    def edit(schema):
        attributes = schema["content"]["content"]
        attributes[next(iter(attributes))] = new

    return edit


def nodes_of(schema, loader):
    """Return all nodes of a schema that a loader would make."""
    found, waiting = [], [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            found += [part] if part.get("__loader__") == loader else []
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
    return found


def as_npy(array):
    buffer = BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def zipped(members, **options):
    """Return a zip file of members; names may occur twice."""
    buffer = BytesIO()
    with ZipFile(buffer, "w", **options) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()
