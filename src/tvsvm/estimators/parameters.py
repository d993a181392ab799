"""Constructor parameters, written once: name, default, constraint and text of each in one place."""

from dataclasses import dataclass, field, fields
from textwrap import indent
from typing import Any, TypeVar, dataclass_transform

C = TypeVar("C", bound=type)


def parameter(default: Any, constraints: list[Any], text: str) -> Any:
    """Describe a constructor parameter: default, scikit-learn constraints, type and text.

    The first line of `text` is the type, the rest its explanation.
    """
    return field(default=default, metadata={"constraints": constraints, "text": text})


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(parameter,))
def with_parameters(cls: C) -> C:
    """Give a class what its parameters, and those of its bases, amount to.

    A keyword-only constructor that only stores, scikit-learn's `_parameter_constraints`, and the
    sections of the docstring on parameters and attributes, the latter from the `_attributes` of
    the class and its bases.
    """
    described: Any = dataclass(kw_only=True, eq=False, repr=False)(cls)
    described._parameter_constraints = {
        item.name: item.metadata["constraints"] for item in fields(described)
    }
    entries = {
        item.name: item.metadata["text"].replace("\n", f", default={item.default!r}\n", 1)
        for item in fields(described)
    }
    attributes: dict[str, str] = {}
    for base in cls.__mro__:
        attributes = vars(base).get("_attributes", {}) | attributes
    described.__doc__ = "\n".join(
        [
            (cls.__doc__ or "").rstrip() + "\n",
            _section("Parameters", entries),
            _section("Attributes", attributes),
        ]
    )
    return described


def _section(title: str, entries: dict[str, str]) -> str:
    lines = [title, "-" * len(title)]
    for name, text in entries.items():
        kind, explanation = text.split("\n", 1)
        lines += [f"{name} : {kind}", indent(explanation, "    ")]
    return indent("\n".join(lines) + "\n", "    ")
