"""Colours of a page, light and dark, as CSS variables.

It also has the colour ramp of the heat maps.

Sources: Okabe and Ito, Color Universal Design, jfly.uni-koeln.de/color, for categories; magma, by Smith and van der
Walt (matplotlib, CC0), for shares: perceptually uniform and monotone in lightness, so that it
reads without colour too.
Leaves out: meaning; every chart also tells by words, dashes or place what it tells by colour.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from weftwork.spec.time_kinds import TIME_KINDS

__all__ = ["RAMP_STEPS", "css_variables", "kind_colours", "ramp"]

# magma at 0, 0.1 ... 1
_MAGMA: Final = (
    "000004", "150e37", "3b0f70", "641a80", "8c2981", "b63679", "de4968", "f76f5c", "fe9f6d", "fece91", "fcfdbf",
)  # fmt: skip
# chosen: the ends that would vanish against the paper, or look like ink, are not used
_SPAN: Final = {"light": (0.97, 0.13), "dark": (0.16, 1.0)}
RAMP_STEPS: Final = 11  # of the CSS variables --u0 ... --u10

_CHROME: Final = {
    "light": {
        "bg": "#f7f7f5", "panel": "#ffffff", "ink": "#1a2027", "soft": "#57616d", "line": "#dfe3e8", "grid": "#e9ecef",
        "accent": "#0072b2", "warn-bg": "#fff4e0", "warn-line": "#d55e00", "faint": "#c6ccd4",
    },
    "dark": {
        "bg": "#0e1217", "panel": "#161b22", "ink": "#e7ebf0", "soft": "#9aa6b4", "line": "#2b333e", "grid": "#232a34",
        "accent": "#56b4e9", "warn-bg": "#2c2113", "warn-line": "#e69f00", "faint": "#3a4450",
    },
}  # fmt: skip
# Okabe and Ito, ordered so that neighbours differ most; blue and sky blue change places in the dark
_CATEGORIES: Final = {
    "light": ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"),
    "dark": ("#56b4e9", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#f0e442"),
}


def _kinds(theme: str) -> list[str]:
    """Colours of the kinds of time, in their order."""
    return [kind.colours[theme == "dark"] for kind in TIME_KINDS.values()]


def kind_colours(theme: str) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """Colours of the kinds of time.

    Returns
    -------
    shape (kinds, 3): red, green, blue
    """
    found = [[int(colour[place : place + 2], 16) for place in (1, 3, 5)] for colour in _kinds(theme)]
    return np.array(found, np.uint8)


def ramp(theme: str, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """Colours of the ramp, from zero to the full share.

    Parameters
    ----------
    theme : ``light``, where more is darker, or ``dark``, where more is lighter
    count : how many

    Returns
    -------
    shape (count, 3): red, green, blue
    """
    anchors = np.array([[int(colour[place : place + 2], 16) for place in (0, 2, 4)] for colour in _MAGMA], np.float64)
    first, last = _SPAN[theme]
    at = np.linspace(first, last, count) * (len(anchors) - 1)
    channels = [np.interp(at, np.arange(len(anchors)), anchors[:, channel]) for channel in range(3)]
    return np.round(np.stack(channels, axis=1)).astype(np.uint8)


def css_variables(theme: str) -> str:
    """CSS declarations of a theme: ``--bg`` and the like, and colours.

    ``--c1`` ... for categories, ``--u0`` ... for shares, ``--k0`` ... for what time goes to.
    """
    shares = ramp(theme, RAMP_STEPS).tolist()
    named = {
        **_CHROME[theme],
        **{f"c{place}": colour for place, colour in enumerate(_CATEGORIES[theme], 1)},
        **{f"k{place}": colour for place, colour in enumerate(_kinds(theme))},
        **{f"u{place}": f"#{red:02x}{green:02x}{blue:02x}" for place, (red, green, blue) in enumerate(shares)},
    }
    return "".join(f"--{name}:{colour};" for name, colour in named.items())
