"""Saved models: files that hold what prediction needs, and that execute nothing when loaded."""

import copy
import json
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer

from tvsvm import estimators
from tvsvm.estimators.base import KernelClassifier
from tvsvm.kernel import Expansion
from tvsvm.kernel.functions import RowKernel, rbf
from tvsvm.tables.features import BlockScaler, Feature, FeatureReader

FORMAT = 1
HEADER = "tvsvm.json"
# All that a model may be made of besides scikit-learn, NumPy and Python's own plain types.
CLASSIFIERS = tuple(getattr(estimators, name) for name in estimators.__all__)
PARTS = (*CLASSIFIERS, Expansion, RowKernel, rbf, BlockScaler, np.dtype)
TRUSTED = frozenset(f"{part.__module__}.{part.__qualname__}" for part in PARTS)
# What the classifier knows of the rows it was fitted to: large, and perhaps private.
ABOUT_ROWS = (
    "transduction_",
    "label_distributions_",
    "reachable_",
    "graph_",
    "labeled_",
    "_memory",
)


class ModelError(ValueError):
    """A model file that cannot be used; the message is one sentence for its owner."""


@dataclass(frozen=True)
class SavedModel:
    """A fitted classifier with the way from a table's columns to its rows.

    Attributes
    ----------
    classifier : KernelClassifier
        Fitted; it does not remember the rows, apart from its landmarks.
    reader : FeatureReader
        Turns chunks of a table into rows of numbers.
    """

    classifier: KernelClassifier
    reader: FeatureReader


def save_model(path: Path, model: SavedModel) -> None:
    """Write a model to a file."""
    from skops.io import dump, get_untrusted_types

    content = {
        "classifier": _without_rows(model.classifier),
        "transformer": model.reader.transformer,
        "features": [asdict(feature) for feature in model.reader.features],
    }
    with path.open("wb") as file:
        dump(content, file)
    strangers = set(get_untrusted_types(file=path)) - TRUSTED
    if strangers:
        raise ModelError(
            f"A model with {min(strangers)} cannot be saved; use the kernel 'rbf' and plain values "
            "of all parameters."
        )
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(HEADER, json.dumps({"format": FORMAT, "tvsvm": version("tvsvm")}))


def load_model(path: Path) -> SavedModel:
    """Read a model that `save_model` has written; anything else is refused before it is built."""
    from skops.io import get_untrusted_types, load

    _check_header(path)
    try:
        strangers = set(get_untrusted_types(file=path)) - TRUSTED
    except Exception as error:  # skops lets through whatever its parsers raise
        raise _damaged(path) from error
    if strangers:
        raise ModelError(
            f"{path} holds {min(strangers)}, which no tvsvm model has; it was altered, do not use "
            "it."
        )
    try:
        with warnings.catch_warnings():  # of another scikit-learn's version; the format is ours
            warnings.simplefilter("ignore")
            return _assembled(load(path, trusted=sorted(TRUSTED)))
    except Exception as error:  # as above, and parts that do not fit together
        raise _damaged(path) from error


def _check_header(path: Path) -> None:
    if not path.is_file():
        raise ModelError(f"{path} does not exist; save a model by tvsvm label --save-model.")
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
            header = json.loads(archive.read(HEADER))
            found = int(header["format"])
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError) as error:
        raise ModelError(
            f"{path} is no tvsvm model, or it is damaged; save one by tvsvm label --save-model."
        ) from error
    if damaged:
        raise _damaged(path)
    if found > FORMAT:
        raise ModelError(
            f"{path} has model format {found}, saved by tvsvm {header.get('tvsvm')}; this version "
            f"reads up to {FORMAT}: run pip install --upgrade tvsvm."
        )


def _assembled(content: Mapping[str, Any]) -> SavedModel:
    classifier, transformer = content["classifier"], content["transformer"]
    if not isinstance(classifier, KernelClassifier) or not isinstance(
        transformer, ColumnTransformer
    ):
        raise TypeError("not the parts of a model")
    features = [Feature(**feature) for feature in content["features"]]
    return SavedModel(classifier, FeatureReader(features, transformer))


def _without_rows(classifier: KernelClassifier) -> KernelClassifier:
    lean = copy.copy(classifier)
    for name in ABOUT_ROWS:
        lean.__dict__.pop(name, None)
    return lean


def _damaged(path: Path) -> ModelError:
    return ModelError(f"{path} is damaged; save the model again by tvsvm label --save-model.")
