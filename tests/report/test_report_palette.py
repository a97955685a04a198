"""Colours that can be told apart, on both kinds of page, by every reader."""

import re
from importlib.resources import files

import numpy as np
import pytest

from expclr.report.palette import CLASSES_DARK, CLASSES_LIGHT, RAMP_DARK, RAMP_LIGHT, ramp

# Machado, Oliveira, Fernandes 2009, severity 1: what each kind of colour blindness sees.
SEEN = {
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],  # noqa: E501
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],  # noqa: E501
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],  # noqa: E501
}  # fmt: skip
RGB_TO_LMS = [[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]]  # noqa: E501  # fmt: skip
LMS_TO_LAB = [[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099], [0.0259040371, 0.7827717662, -0.8086757660]]  # noqa: E501  # fmt: skip


def linear(colours):
    rgb = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in colours])
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def oklab(rgb):
    return np.cbrt(np.clip(rgb, 0, 1) @ np.transpose(RGB_TO_LMS)) @ np.transpose(LMS_TO_LAB)


def contrast(a, b):
    light, dark = sorted((linear([c])[0] @ [0.2126, 0.7152, 0.0722] for c in (a, b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def css_colours():
    """[light, dark]: the named colours of the style sheet."""
    css = files("expclr.report").joinpath("static", "report.css").read_text(encoding="utf-8")
    return [dict(re.findall(r"--([\w-]+): (#\w{6})", part)) for part in css.split("@media")[:2]]


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("classes", [CLASSES_LIGHT, CLASSES_DARK])
def test_classes_differ_for_every_reader(seen, classes):
    lab = oklab(linear(classes) @ np.transpose(SEEN[seen]))
    apart = [np.linalg.norm(lab[i] - lab[j]) for i in range(8) for j in range(i)]
    assert min(apart) > 0.085


@pytest.mark.parametrize(("page", "classes"), [(0, CLASSES_LIGHT), (1, CLASSES_DARK)])
def test_marks_and_text_stand_out_from_the_page(page, classes):
    colours = css_colours()[page]
    assert min(contrast(colours["page"], c) for c in (*classes, colours["bar"])) >= 3
    for name in ("ink", "soft", "accent", "warning"):
        for ground in ("page", "raised"):
            assert contrast(colours[ground], colours[name]) >= 4.5, (name, ground)
    assert contrast(colours["best"], colours["ink"]) >= 4.5


@pytest.mark.parametrize("anchors", [RAMP_LIGHT, RAMP_DARK])
def test_the_ramp_grows_lighter_in_even_steps(anchors):
    lab = oklab(linear(ramp(anchors)))
    assert (np.diff(lab[:, 0]) > 0).all()
    steps = np.linalg.norm(np.diff(lab, axis=0), axis=1)
    assert steps.max() < 2 * steps.min()
