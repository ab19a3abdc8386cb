"""`demix probe` reads factors out of features, joined by name, and refuses what it cannot mean."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree

import numpy as np
import pandas
import pytest

ROWS = 160


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Features without and with names, and factors of other rows in another order."""
    folder = tmp_path_factory.mktemp("probe")
    random = np.random.default_rng(0)
    features = random.normal(size=(ROWS, 3)).astype(np.float32)
    angle = np.degrees(np.arctan2(features[:, 1], features[:, 0]))
    names = [f"{i:03d}.png" for i in range(ROWS)]
    table = pandas.DataFrame(
        {
            "file": names,
            "size": features @ [1, 2, 0] + random.normal(size=ROWS),
            "shape": np.where(features[:, 2] > 0, "cube", "ball"),
            "angle": angle % 360,
            "noise": random.normal(size=ROWS),
            "rare": np.arange(ROWS) < 3,
        }
    )
    np.save(folder / "F.npy", features)
    (folder / "F.txt").write_text("\n".join(names))
    frame = pandas.DataFrame(features, columns=["a", "b", "c"]).assign(file=names)
    frame[:150].to_csv(folder / "F.csv", index=False)
    frame[:150].to_parquet(folder / "F.parquet")
    table.drop(columns="file").to_csv(folder / "same.csv", index=False)
    table = table[::-1][:-10]
    table.to_csv(folder / "y.csv", index=False)
    table.to_parquet(folder / "y.parquet")
    return folder


@pytest.fixture(scope="module")
def probed(demix, files):
    out = files / "out"
    done = demix.run(
        *("probe", files / "F.csv", files / "y.csv", "--join", "file"),
        *("--kind", "angle=periodic:360", "--out", out),
    )
    assert done.returncode == 0, done
    return out, done


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_same_ids_in_another_order_are_refused(demix, tmp_path, kind):
    random = np.random.default_rng(0)
    frame = pandas.DataFrame({"id": 101000000 + np.arange(ROWS), "a": random.normal(size=ROWS)})
    true = frame.assign(size=frame["a"] + 0.1)[["id", "size"]]
    x, y, z = (tmp_path / f"{name}.{kind}" for name in "xyz")
    for path, table in ((x, frame), (y, true.sample(frac=1, random_state=0)), (z, true)):
        table.to_csv(path, index=False) if kind == "csv" else table.to_parquet(path, index=False)
    told = "hold the same numbers in column 'id', but in another order; sort both by it, or join"
    assert told in demix.refusal("probe", x, y)
    assert told in demix.refusal("evaluate", "--latents", x, "--factors", y)
    frame[:-1].to_csv(tmp_path / "s.csv", index=False)
    told = f"have {ROWS - 1} and {ROWS} rows"
    assert told in demix.refusal("evaluate", "--latents", tmp_path / "s.csv", "--factors", y)
    for given in ((x, z), (x, y, "--join", "id")):
        done = demix.run_briefly("probe", *given, "--json")
        assert done.returncode == 0, done.stderr
        (*_, size) = json.loads(done.stdout)["factors"]
        assert size["value"] > 0.99


def test_numbers_figure_and_report_are_written(probed):
    out, _ = probed
    names = {"probe.json", "figure.svg", "figure.png", "report.html"}
    assert {path.name for path in out.iterdir()} == names
    found = json.loads((out / "probe.json").read_text(encoding="utf-8"))
    assert found["features"] == 3
    assert found["tested"] == 4
    assert sum(found["rows"].values()) == 140
    factors = {factor["name"]: factor for factor in found["factors"]}
    assert {name: factor.get("measure") for name, factor in factors.items()} == {
        "size": "r",
        "shape": "auc",
        "angle": "r",
        "noise": "r",
        "rare": None,
    }
    for name in ("size", "shape", "angle"):
        assert factors[name]["bonferroni"] < 0.05
        assert factors[name]["low"] <= factors[name]["value"] <= factors[name]["high"]
    assert factors["angle"]["kind"] == "periodic"
    assert factors["noise"]["benjamini_hochberg"] > 0.05
    assert factors["rare"]["reason"] == "it has one value only"
    assert found["provenance"]["command"].startswith("demix probe ")
    assert found["provenance"]["features"].startswith("F.csv sha256 ")


def test_rows_that_are_not_in_both_are_counted_and_named(probed):
    out, done = probed
    assert done.stderr.splitlines() == [
        "warning  10 of the 150 rows of F.csv are not in y.csv: 000.png, 001.png, 002.png and 7 "
        "more.",
        "warning  10 of the 150 rows of y.csv are not in F.csv: 159.png, 158.png, 157.png and 7 "
        "more.",
    ]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert all(line.removeprefix("warning  ") in page for line in done.stderr.splitlines())


def test_a_table_is_shown_and_what_it_means(probed):
    out, done = probed
    for words in ("Pearson's r", "AUC", "Bonferroni", "Not testable: rare, it has one value only."):
        assert words in done.stdout
    assert "3 of 4 factors are predicted better than by chance" in done.stdout
    assert f"Wrote {out}/probe.json, figure.svg, figure.png and report.html\n" in done.stdout


def test_the_figure_names_all_factors_that_were_tested_best_ones_first(probed):
    root = ElementTree.fromstring((probed[0] / "figure.svg").read_text(encoding="utf-8"))
    words = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    found = json.loads((probed[0] / "probe.json").read_text(encoding="utf-8"))["factors"]
    numbers = [factor for factor in found if factor.get("measure") == "r"]
    order = [factor["name"] for factor in sorted(numbers, key=lambda factor: -factor["value"])]
    assert [word for word in words if word in order] == order
    assert "shape" in words
    assert "rare" not in words
    assert "<svg" in (probed[0] / "report.html").read_text(encoding="utf-8")


def values(told: str) -> list[float]:
    return [factor["value"] for factor in json.loads(told)["factors"]]


def test_names_may_be_a_column_or_a_file_and_tables_csv_or_parquet(demix, files):
    asked = ["--factors", "size,shape", "--json"]
    ways = [
        (files / "F.parquet", files / "y.parquet", "--join", "file"),
        (files / "F.csv", files / "y.parquet", "--join", "file"),
        (files / "F.npy", files / "y.csv", "--join", "file", "--names", files / "F.txt"),
    ]
    done = [demix.run("probe", *way, *asked) for way in ways]
    assert [one.returncode for one in done] == [0, 0, 0], done
    assert values(done[0].stdout) == pytest.approx(values(done[1].stdout))
    assert json.loads(done[2].stdout)["rows"] == {"train": 75, "validation": 30, "test": 45}
    assert [factor["name"] for factor in json.loads(done[2].stdout)["factors"]] == ["size", "shape"]


def test_blocks_follow_the_rows_of_the_features(demix, files, tmp_path):
    subjects = [f"subject {i // 10}" for i in range(ROWS)]
    (tmp_path / "subjects.txt").write_text("\n".join(subjects))
    given = [files / "F.npy", files / "y.csv", "--join", "file", "--names", files / "F.txt"]
    done = demix.run("probe", *given, "--blocks", tmp_path / "subjects.txt", "--json")
    assert done.returncode == 0, done
    found = json.loads(done.stdout)
    # Fifteen subjects are left of sixteen, all with ten rows: parts hold whole ones.
    assert {count % 10 for count in found["rows"].values()} == {0}
    assert found["permutations"] == found["rows"]["test"] - 1
    for wrong in (subjects[:100], [*subjects, "one more"]):
        (tmp_path / "wrong.txt").write_text("\n".join(wrong))
        told = demix.refusal("probe", *given, "--blocks", tmp_path / "wrong.txt")
        assert f"a block for each of {ROWS} rows, but has" in told
        assert f"but has {len(wrong)}." in told


def test_images_are_read_pixel_by_pixel(demix, files, tmp_path):
    pixels = np.random.default_rng(1).integers(0, 256, (ROWS, 4, 4, 3)).astype(np.uint8)
    np.save(tmp_path / "images.npy", pixels)
    np.save(tmp_path / "y.npy", pixels[:, 1, 2].astype(float))
    done = demix.run("probe", tmp_path / "images.npy", tmp_path / "y.npy", "--json")
    found = json.loads(done.stdout)
    assert found["features"] == 48
    assert [factor["name"] for factor in found["factors"]] == ["factor 1", "factor 2", "factor 3"]
    assert min(values(done.stdout)) > 0.99


def test_rows_in_the_same_order_need_no_names(demix, files):
    done = demix.run("probe", files / "F.npy", files / "same.csv", "--factors", "0", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    (factor,) = json.loads(done.stdout)["factors"]
    assert factor["name"] == "size"
    assert factor["value"] > 0.8


@pytest.mark.parametrize(
    ("features", "factors", "options", "words"),
    [
        ("F.npy", "y.csv", [], "has 150; join them by a column of names with --join"),
        ("F.npy", "y.csv", ["--join", "file"], "has no columns with names; give a file"),
        ("F.csv", "y.csv", ["--join", "path"], "Expected one column 'path' in"),
        ("F.npy", "y.csv", ["--names", "F.txt"], "say with --join which column"),
        ("F.csv", "y.csv", [], "both have a column 'file' of text; join their rows by it"),
        ("F.npy", "same.csv", ["--factors", "sise"], "There is no factor 'sise'; known are"),
        ("F.npy", "same.csv", ["--kind", "mass=ordinal"], "There is no factor 'mass'"),
        ("F.npy", "same.csv", ["--kind", "size"], "--kind takes a factor and its kind"),
        ("F.npy", "same.csv", ["--kind", "size=periodic"], "angle=periodic:360, but got"),
        ("F.npy", "same.csv", ["--kind", "size=periodic:x"], "A period is a number, such as 360"),
        ("F.npy", "same.csv", ["--kind", "size=big"], "A kind is one of continuous, ordinal"),
        ("F.csv", "y.csv", ["--join", "file", "--factors", "rare"], "'rare' is False in all 140"),
        ("nowhere.npy", "y.csv", ["--join", "file"], "nowhere.npy"),
        ("F.npy", "nowhere.csv", [], "nowhere.csv does not exist"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_written(
    demix, files, tmp_path, features, factors, options, words
):
    given = [files / text if text.endswith(".txt") else text for text in options]
    told = demix.refusal(
        "probe", files / features, files / factors, *given, "--out", tmp_path / "new"
    )
    assert words in told
    assert not (tmp_path / "new").exists()
