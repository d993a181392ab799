"""A folder of images: pixels at one size, labels from sub-folders or from a file."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tvsvm.tables.arrays import ArrayTable
from tvsvm.tables.base import Columns, Progress, TableError, need
from tvsvm.tables.cells import as_text, object_array, plain

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp"})
SIDE = 32
FILE, LABEL = "file", "given"
# Sub-folders whose images have no label yet.
UNLABELLED = frozenset({"unlabelled", "unlabeled", "unknown", "unsorted"})


class ImageTable(ArrayTable):
    """Images of a folder, each 32 × 32 pixels; written as a CSV file of their names."""

    def write(self, path: Path, added: Columns, progress: Progress) -> None:
        """Write file names, given labels and the new columns as CSV."""
        columns = self.columns | {name: plain(cells) for name, cells in added.items()}
        with path.open("w", encoding="utf-8", newline="") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(columns)
            for cells in zip(*columns.values(), strict=True):
                writer.writerow(["" if cell is None else as_text(cell) for cell in cells])
        progress(1.0)


def read_images(folder: Path, labels: Mapping[str, Any] | None, progress: Progress) -> ImageTable:
    """Open all images below a folder.

    Parameters
    ----------
    folder : Path
        Images in it have no label; those of a sub-folder have its name, unless it is called
        "unlabelled" or the like.
    labels : mapping of str to label or None
        Label of each file name, relative to the folder; then the sub-folders say nothing.
    progress : callable
        Told the share that is read.
    """
    image = need("PIL.Image", "Reading images")
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
    if not paths:
        raise TableError(
            f"{folder} holds no images ({', '.join(sorted(SUFFIXES))}); pass a file, or a folder "
            "with images."
        )
    names = [path.relative_to(folder).as_posix() for path in paths]
    if labels is None:
        given = [_label_of_folder(path.relative_to(folder)) for path in paths]
    else:
        _check_names(labels, names, folder)
        given = [labels.get(name) for name in names]
    pixels = np.empty((len(paths), SIDE, SIDE, 3), dtype=np.uint8)
    for row, path in enumerate(paths):
        pixels[row] = _pixels(image, path)
        progress((row + 1) / len(paths))
    vectors = pixels if _has_colour(pixels) else pixels[..., 0]
    columns = {FILE: object_array(names), LABEL: object_array(given)}
    return ImageTable(folder, vectors, columns)


def _pixels(image: Any, path: Path) -> NDArray[np.uint8]:
    try:
        with image.open(path) as opened:
            return np.asarray(opened.convert("RGB").resize((SIDE, SIDE)))
    except Exception as error:  # Pillow lets through whatever its decoders raise
        raise TableError(
            f"{path} cannot be read as an image; remove it or save it again."
        ) from error


def _has_colour(pixels: NDArray[np.uint8]) -> bool:
    return bool((pixels[..., :1] != pixels).any())


def _label_of_folder(path: Path) -> str | None:
    parent = path.parent.as_posix()
    return None if parent == "." or parent.lower() in UNLABELLED else parent


def _check_names(labels: Mapping[str, Any], names: list[str], folder: Path) -> None:
    strangers = sorted(set(labels) - set(names))
    if strangers:
        raise TableError(
            f"The label file names {strangers[0]!r}, which is no image below {folder}; write "
            f"names as in {names[0]!r}."
        )
