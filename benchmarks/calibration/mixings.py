"""Mixings of different kinds: a network, a spiral, many columns, bumps, images."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from demix.papers.scenes.sprites import Sprites
from demix.processes.process import LeakyMixing

Mixed = Callable[[np.ndarray, int], np.ndarray]
"""``mixed(factors, seed)`` returns the observations."""
_SIDE = 24


def leaky(factors: np.ndarray, seed: int) -> np.ndarray:
    """Mix by the first paper's network, into as many columns."""
    mixing = LeakyMixing(factors.shape[1], seed=seed)
    return mixing(torch.from_numpy(factors).float()).numpy()


def spiral(factors: np.ndarray, seed: int) -> np.ndarray:
    """Turn pairs of factors the further the larger they are, after a turn of all of them."""
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(factors.shape[1],) * 2))[0]
    z = torch.from_numpy((factors - factors.mean(axis=0)) @ turn)
    paired = 2 * (z.shape[1] // 2)
    a, b = z[:, 0:paired:2], z[:, 1:paired:2]
    angle = 2 * torch.pi * 0.3 * torch.hypot(a, b)
    sides = [a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()]
    turned = torch.stack(sides, dim=-1).flatten(-2)
    return torch.cat([turned, z[:, paired:]], dim=1).float().numpy()


def columns(count: int) -> Mixed:
    """Return a smooth mixing into many columns: waves in all directions, and a linear map."""

    def mixed(factors: np.ndarray, seed: int) -> np.ndarray:
        random = np.random.default_rng(seed)
        n = factors.shape[1]
        factors = (factors - factors.mean(axis=0)) / factors.std(axis=0)
        straight, bent = random.normal(size=(2, n, count)) / np.sqrt(n)
        phase = 2 * np.pi * random.random(count)
        return np.asarray(
            np.sin(1.5 * factors @ bent + phase) + 0.3 * factors @ straight, np.float32
        )

    return mixed


def tuning(count: int) -> Mixed:
    """Return a mixing of bumps: each column is large around a direction of its own."""

    def mixed(factors: np.ndarray, seed: int) -> np.ndarray:
        centres = np.random.default_rng(seed).normal(size=(factors.shape[1], count))
        along = factors @ (centres / np.linalg.norm(centres, axis=0))
        return np.exp(10 * (along - 1)).astype(np.float32)

    return mixed


def hearts(factors: np.ndarray, seed: int) -> np.ndarray:
    """Return images of hearts whose size and place are three factors of a unit box."""
    scene, z = Sprites(), 2 * factors - 1
    return (
        np.stack(
            [
                scene.image(np.array([2, size, 0, x, y]), _SIDE)[:, :, 0].reshape(1, _SIDE, _SIDE)
                for size, x, y in z
            ]
        ).astype(np.float32)
        / 255
    )
