import json
import zipfile

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression

from tvsvm import RLS, AutoTV, LapSVM
from tvsvm.persistence import HEADER, ModelError, SavedModel, load_model, save_model
from tvsvm.tables.base import Chunk
from tvsvm.tables.cells import object_array
from tvsvm.tables.features import Feature, FeatureReader


def chunk_of(n=30):
    rng = np.random.default_rng(0)
    side = np.arange(n) % 2
    return Chunk(
        np.arange(n),
        {
            "x": object_array((rng.normal(size=n) + 4 * side).astype(str)),
            "c": object_array(np.array(["a", "b"])[side]),
            "v": rng.normal(size=(n, 3)) + side[:, None],
        },
        1.0,
    )


def fitted(classifier=None, chunk=None):
    chunk = chunk_of() if chunk is None else chunk
    features = [Feature("x", "number"), Feature("c", "category"), Feature("v", "vector", 3)]
    reader = FeatureReader(features).learn([chunk], len(chunk), "line")
    y = [("left", "right")[i % 2] if i < 6 else None for i in range(len(chunk))]
    model = (classifier or RLS()).fit(reader(chunk, "line"), pd.Series(y, dtype=object))
    return SavedModel(model, reader)


@pytest.mark.parametrize("classifier", [RLS(), LapSVM(random_state=3), AutoTV()])
def test_a_saved_model_predicts_the_same(tmp_path, classifier):
    saved, path = fitted(classifier), tmp_path / "model.skops"
    save_model(path, saved)
    loaded = load_model(path)
    X = saved.reader(chunk_of(), "line")
    np.testing.assert_array_equal(loaded.reader(chunk_of(), "line"), X)
    np.testing.assert_array_equal(
        loaded.classifier.predict_proba(X), saved.classifier.predict_proba(X)
    )
    assert loaded.classifier.get_params() == classifier.get_params()


def test_a_saved_model_does_not_remember_the_rows(tmp_path):
    saved, path = fitted(LapSVM()), tmp_path / "model.skops"
    save_model(path, saved)
    loaded = load_model(path).classifier
    assert not hasattr(loaded, "transduction_")
    assert not hasattr(loaded, "graph_")
    assert hasattr(saved.classifier, "transduction_")


def test_what_cannot_be_loaded_is_not_saved(tmp_path):
    with pytest.raises(ModelError, match="cannot be saved"):
        save_model(tmp_path / "model.skops", fitted(RLS(kernel="poly")))


def altered(path, change):
    """Rewrite the archive with its schema changed."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files |= change(files)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def test_a_tampered_model_is_refused_and_nothing_runs(tmp_path):
    path, trace = tmp_path / "model.skops", tmp_path / "trace"
    save_model(path, fitted())

    def evil(files):
        schema = json.loads(files["schema.json"])
        schema["content"]["content"] = {
            "__class__": "system",
            "__module__": "os",
            "__loader__": "FunctionNode",
            "__id__": 1,
            "content": {"module_path": "os", "function": f"touch {trace}"},
        }
        return {"schema.json": json.dumps(schema).encode()}

    altered(path, evil)
    with pytest.raises(ModelError, match=r"altered|damaged"):
        load_model(path)
    assert not trace.exists()


def test_a_foreign_type_is_named(tmp_path):
    path = tmp_path / "model.skops"
    save_model(path, fitted())

    def foreign(files):
        text = files["schema.json"].decode()
        return {"schema.json": text.replace('"RLS"', '"Popen"').encode()}

    altered(path, foreign)
    with pytest.raises(ModelError, match=r"Popen, which no tvsvm model has"):
        load_model(path)


def test_models_from_elsewhere(tmp_path):
    path = tmp_path / "model.skops"
    skops.io.dump(LogisticRegression(), path)
    with pytest.raises(ModelError, match="is no tvsvm model"):
        load_model(path)
    with pytest.raises(ModelError, match="does not exist"):
        load_model(tmp_path / "none.skops")
    path.write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(ModelError, match="is no tvsvm model"):
        load_model(path)


def test_newer_and_damaged_models(tmp_path):
    path = tmp_path / "model.skops"
    save_model(path, fitted())
    whole = path.read_bytes()
    altered(path, lambda files: {HEADER: b'{"format": 99, "tvsvm": "7.0"}'})
    with pytest.raises(ModelError, match=r"model format 99, saved by tvsvm 7\.0"):
        load_model(path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError, match="damaged"):
        load_model(path)
    path.write_bytes(whole)
    altered(path, lambda files: {"schema.json": b"{}"})
    with pytest.raises(ModelError, match="damaged"):
        load_model(path)
