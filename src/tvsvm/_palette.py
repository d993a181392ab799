"""Colours of classes: told apart also by the colour-blind, on light and on dark ground."""

import math

# Up to ten classes: the sequence of M. Petroff (arXiv:2107.02270), made for colour-blind readers.
TEN = (
    "#3f90da",
    "#ffa90e",
    "#bd1f01",
    "#94a4a2",
    "#832db6",
    "#a96b59",
    "#e76300",
    "#b9ac70",
    "#717581",
    "#92dadb",
)
GOLDEN_ANGLE = math.pi * (3 - math.sqrt(5))
LIGHTNESS = (0.62, 0.78, 0.48)  # beyond ten classes hue alone does not do


def class_colors(n_classes: int) -> list[str]:
    """Colour of each class as "#rrggbb".

    More than ten cannot all be told apart by colour: hues a golden angle apart, in three
    lightnesses, keep at least classes that follow each other distinct.
    """
    if n_classes <= len(TEN):
        return list(TEN[:n_classes])
    return [
        _from_oklch(LIGHTNESS[k % len(LIGHTNESS)], 0.13, k * GOLDEN_ANGLE) for k in range(n_classes)
    ]


def _from_oklch(lightness: float, chroma: float, hue: float) -> str:
    """Colour of the Oklab space (B. Ottosson, 2020) as "#rrggbb", clipped to what screens show."""
    a, b = chroma * math.cos(hue), chroma * math.sin(hue)
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    return "#" + "".join(f"{_gamma(channel):02x}" for channel in linear)


def _gamma(channel: float) -> int:
    value = min(max(channel, 0.0), 1.0)
    value = 12.92 * value if value <= 0.0031308 else 1.055 * value ** (1 / 2.4) - 0.055
    return round(255 * value)
