"""Measured series that come inside packages, as windows of the last moments."""

from __future__ import annotations

import numpy as np

from benchmarks.real.task import Dataset, Task, angles, windows


def electricity() -> Task:
    """Demand of England and Wales every half an hour (pmdarima); the time of day."""
    from pmdarima.datasets import load_taylor

    demand = np.asarray(load_taylor(as_series=False), dtype=np.float64)
    return _of_time(demand[:, None], np.arange(len(demand)) / 48, length=12, name="time of day")


def temperatures() -> Task:
    """Temperature of two cities each hour of a year (vega_datasets); the hour of the day."""
    from vega_datasets import local_data

    cities = [local_data.seattle_temps(), local_data.sf_temps()]
    both = cities[0].merge(cities[1], on="date").sort_values("date")
    dates = both["date"].dt
    day = (dates.hour + dates.minute / 60).to_numpy() / 24
    degrees = both[["temp_x", "temp_y"]].to_numpy(np.float64)
    return _of_time(degrees, day, length=8, name="hour")


def carbon_dioxide() -> Task:
    """Carbon dioxide over Mauna Loa each week (statsmodels); the season."""
    from statsmodels.datasets import co2

    weekly = co2.load_pandas().data["co2"].interpolate()
    parts = weekly.to_numpy(np.float64)
    year = np.asarray(weekly.index.dayofyear) / 365.25
    return _of_time(parts[:, None], year, length=16, name="season")


def _of_time(series: np.ndarray, turns: np.ndarray, *, length: int, name: str) -> Task:
    """Return windows, and when the last moment of each is, in turns of a clock."""
    return Task(
        windows(series, length), {name: angles(2 * np.pi * turns[length - 1 :])}, n_latents=3
    )


SETS = (
    Dataset("electricity", "series", "12 half hours of demand; time of day", electricity),
    Dataset("temperatures", "series", "8 hours of two cities; hour of the day", temperatures),
    Dataset("carbon dioxide", "series", "16 weeks; season", carbon_dioxide),
)
