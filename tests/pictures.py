"""Small pictures and annotations, in the formats of ImageNet and ImageNet-X."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from demix.papers import ImageNetX
from demix.papers.pages.panels import Subplot, _drawn
from demix.report.static import figure_svg


def panels_svg(panels: Sequence[Subplot]) -> str:
    """The SVG of a figure, without its PNG, which takes longer."""
    return figure_svg(lambda: _drawn(panels))


def picture(shade: tuple[int, int, int], size: tuple[int, int] = (20, 16), seed: int = 0) -> bytes:
    """A JPEG of one colour with a little noise."""
    noise = np.random.default_rng(seed).integers(-9, 10, size=(size[1], size[0], 3))
    pixels = np.clip(np.array(shade) + noise, 0, 255).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


def write_tar(path: Path, files: Mapping[str, bytes], mode: str = "w") -> Path:
    """An archive of such files."""
    with tarfile.open(path, mode) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def annotation(name: str, kind: int = 0, **factors: int) -> dict[str, object]:
    """One line of annotations; factors are absent unless they are given."""
    row = {"file_name": name, "class": kind} | dict.fromkeys(ImageNetX.factor_names, 0)
    return row | factors | {"justification": "It is so.", "one_word": "so"}


def write_lines(path: Path, rows: list[dict[str, object]]) -> Path:
    """A .jsonl file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def averages(path: Path, batch: int | str = "batch", side: int = 8) -> Path:
    """Write an ONNX file that averages each channel, for batches of a size, or of any."""
    from onnx import helper

    return _model(path, [helper.make_node("GlobalAveragePool", ["pixels"], ["z"])], batch, side)


def endless(path: Path) -> Path:
    """Write an ONNX file that goes on without an end before it averages."""
    from onnx import TensorProto, helper

    def value(name: str, kind: int, shape: list[int | str]) -> Any:
        return helper.make_tensor_value_info(name, kind, shape)

    number, truth, count = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64
    shape = ["batch", 3, 8, 8]
    body = helper.make_graph(
        [helper.make_node("Identity", [a], [b]) for a, b in (("on", "still"), ("old", "new"))],
        "body",
        [value("step", count, []), value("on", truth, []), value("old", number, shape)],
        [value("still", truth, []), value("new", number, shape)],
    )
    nodes = [
        helper.make_node("Constant", [], ["yes"], value=helper.make_tensor("", truth, [], [True])),
        helper.make_node("Loop", ["", "yes", "pixels"], ["same"], body=body),
        helper.make_node("GlobalAveragePool", ["same"], ["z"]),
    ]
    return _model(path, nodes, "batch", 8)


def _model(path: Path, nodes: list[Any], batch: int | str, side: int) -> Path:
    import onnx
    from onnx import helper

    number = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "of_images",
        [helper.make_tensor_value_info("pixels", number, [batch, 3, side, side])],
        [helper.make_tensor_value_info("z", number, [batch, 3, 1, 1])],
    )
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=opsets), path)
    return path
