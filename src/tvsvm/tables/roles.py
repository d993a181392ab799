"""Which column holds the labels, which name the rows, which are features, which are left out."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

from tvsvm.tables.base import TableError
from tvsvm.tables.features import KINDS, Feature
from tvsvm.tables.profile import MOST_CATEGORIES, Profile

ADDED = ("label", "confidence", "reachable")
LABEL_NAMES = ("label", "labels", "class", "target", "y")
NO_USE = {
    "empty": "it is empty",
    "text": "it is text, nearly every cell another",
    "id": "it looks like an id",
    "constant": "every cell is the same",
    "earlier": "it was added by an earlier run",
}


@dataclass(frozen=True)
class Roles:
    """What each column is for.

    Attributes
    ----------
    label : str or None
        The column with the labels.
    ids : list of str
        Columns that name the rows.
    features : list of Feature
        Columns that classes are found from.
    left_out : dict of str to str
        Other columns, with the reason.
    """

    label: str | None
    ids: list[str]
    features: list[Feature]
    left_out: dict[str, str] = field(default_factory=dict)


def new_names(names: Sequence[str], added: Sequence[str] = ADDED) -> dict[str, str]:
    """Names of the columns to add that no column has: `label` or, all alike, `tvsvm_label` ..."""
    number = 0
    while True:
        prefix = ("", "tvsvm_")[number] if number < 2 else f"tvsvm_{number}_"
        if not any(prefix + name in names for name in added):
            return {name: prefix + name for name in added}
        number += 1


def label_column(profiles: Mapping[str, Profile], given: str | None) -> str | None:
    """Find the column of labels: the given one, or the one with gaps; None without gaps.

    Of several with gaps, the only one whose name says that it is.
    """
    if given is not None:
        return _known(given, profiles, "--label")
    with_gaps = [
        name for name, profile in profiles.items() if profile.n_missing and profile.kind != "vector"
    ]
    # An empty column may be meant for the labels, but not beside one that has some.
    gaps = [name for name in with_gaps if profiles[name].kind != "empty"] or with_gaps
    named = [name for name in gaps if name.strip().lower() in LABEL_NAMES]
    gaps = named if len(named) == 1 else gaps
    if len(gaps) > 1:
        likely = max(gaps, key=lambda name: profiles[name].n_missing)
        raise TableError(
            f"Several columns have gaps: {_listed(gaps)}; say which one holds the labels, for "
            f"example --label {shlex.quote(likely)}."
        )
    return gaps[0] if gaps else None


def choose_roles(
    profiles: Mapping[str, Profile],
    *,
    label: str | None,
    ids: Sequence[str] = (),
    features: Sequence[str] = (),
) -> Roles:
    """Give every column its part.

    Parameters
    ----------
    profiles : mapping of str to Profile
        All columns of the table.
    label : str or None
        The column with the labels.
    ids : sequence of str
        Columns that name the rows; those that look like it are taken as such in any case.
    features : sequence of str
        Columns to find classes from, as "name" or "name:kind"; all that can serve by default.
    """
    ids = [_known(name, profiles, "--id") for name in _split(ids, profiles)]
    asked = dict(_asked(item, profiles) for item in _split(features, profiles))
    left_out: dict[str, str] = {}
    chosen: list[Feature] = []
    earlier = _earlier(profiles, label)
    for name, profile in profiles.items():
        if name == label or name in ids:
            if name in asked:
                part = "the label" if name == label else "an id"
                raise TableError(
                    f"Column {name!r} cannot be a feature and {part} at once; leave it out of "
                    "--features."
                )
        elif asked:
            if name in asked:
                chosen.append(_feature(profile, asked[name] or profile.kind))
        elif reason := "earlier" if name in earlier else _no_use(profile):
            left_out[name] = NO_USE[reason]
            if reason == "id":
                ids.append(name)
        else:
            chosen.append(_feature(profile, profile.kind))
    if not chosen:
        reasons = "; ".join(f"{name!r}: {reason}" for name, reason in left_out.items())
        raise TableError(
            "No column is left to find the classes from"
            + (f" ({reasons})" if reasons else "")
            + "; add columns of numbers, categories, dates or embeddings, or choose some by "
            "--features."
        )
    return Roles(label, ids, chosen, left_out)


def _earlier(profiles: Mapping[str, Profile], label: str | None) -> set[str]:
    """Columns that earlier runs of `tvsvm label` or `tvsvm predict` have added."""
    prefixes = {
        name.removesuffix("confidence")
        for name in profiles
        if name.endswith("confidence") and name.removesuffix("confidence") + "label" in profiles
    }
    return {prefix + name for prefix in prefixes if prefix + "label" != label for name in ADDED}


def _no_use(profile: Profile) -> str | None:
    if profile.kind in ("empty", "text") and not profile.is_id:
        return profile.kind
    if profile.is_id:
        return "id"
    return "constant" if profile.is_constant else None


def _feature(profile: Profile, kind: str) -> Feature:
    """Feature of a column, or an error that says which cell is in its way."""
    if kind not in KINDS:
        many = len(profile.values) > MOST_CATEGORIES
        different = f"more than {MOST_CATEGORIES:,}" if many else f"{len(profile.values):,}"
        what = f"text, {different} different values in {profile.n_rows:,} rows"
        raise TableError(
            f"Column {profile.name!r} cannot be a feature, it is "
            f"{'empty' if kind == 'empty' else what}; leave it out, or turn it into numbers first, "
            "for example by an embedding."
        )
    return Feature(profile.name, kind, profile.width if kind == "vector" else 1)


def _asked(item: str, profiles: Mapping[str, Profile]) -> tuple[str, str | None]:
    name, colon, kind = item.rpartition(":")
    if item in profiles or not colon:
        return _known(item, profiles, "--features"), None
    if kind not in KINDS:
        raise TableError(
            f"A feature must be a column, or column:kind with kind one of {_listed(KINDS)}. "
            f"Got {item!r}; correct --features."
        )
    return _known(name, profiles, "--features"), kind


def _split(items: Sequence[str], profiles: Mapping[str, Profile]) -> list[str]:
    """Items separated by commas, unless a column has that name with its commas."""
    parts: list[str] = []
    for item in items:
        parts += [item] if item in profiles else [part.strip() for part in item.split(",")]
    return [part for part in parts if part]


def _known(name: str, profiles: Mapping[str, Profile], option: str) -> str:
    if name in profiles:
        return name
    close = get_close_matches(name, profiles, n=1) or get_close_matches(
        name.lower(), [other.lower() for other in profiles], n=1
    )
    hint = f"did you mean {close[0]!r}?" if close else f"there are {_listed(profiles)}."
    raise TableError(f"{option} names the column {name!r}, which is not in the table; {hint}")


def _listed(names: Mapping[str, object] | Sequence[str]) -> str:
    shown = [repr(name) for name in names]
    return ", ".join(shown if len(shown) <= 10 else [*shown[:9], f"and {len(shown) - 9} more"])
