"""Control tasks (dm-control) under random actions: pixels, or sensors through a fixed net."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from benchmarks.real.task import Dataset, Task, angles, seen_through_net

_SEED, _SIDE = 3, 32
_PLAIN = {"shadow": False, "reflection": False, "skybox": False, "fog": False}  # ten times faster


def pendulum() -> Task:
    """Images of a pendulum that is pushed at random; its angle."""
    states, images = _episode("pendulum", "swingup", rows=5000, swing=2.0, pixels=True)
    return Task(images, {"angle": angles(states[:, 0])}, n_latents=2)


def cartpole() -> Task:
    """Images of a pole on a cart; where the cart is, and the angle of the pole."""
    states, images = _episode("cartpole", "swingup", rows=5000, push=3.0, pixels=True)
    pose = np.concatenate([states[:, :1] / states[:, 0].std(), angles(states[:, 1])], axis=1)
    return Task(images, {"pose": pose.astype(np.float32)}, n_latents=4)


def ball_in_cup() -> Task:
    """Images of a ball that hangs from a cup; where both are."""
    states, images = _episode("ball_in_cup", "catch", rows=3000, push=2.0, pixels=True)
    places = states[:, :4] / states[:, :4].std(axis=0)
    return Task(images, {"places": places.astype(np.float32)}, n_latents=4)


def acrobot() -> Task:
    """Angles and speeds of two links through a fixed random net; the angles."""
    states, _ = _episode("acrobot", "swingup", rows=6000, every=4, push=3.0, pixels=False)
    turned, speeds = angles(states[:, :2]), np.tanh(states[:, 2:] / states[:, 2:].std(axis=0))
    x = seen_through_net(np.concatenate([turned, speeds], axis=1), 24, seed=_SEED)
    return Task(x, {"angles": turned}, n_latents=4)


def _episode(
    domain: str,
    task: str,
    *,
    rows: int,
    pixels: bool,
    push: float = 0.0,
    swing: float = 0.0,
    every: int = 1,
) -> tuple[np.ndarray, np.ndarray]:
    """Return positions and speeds of joints ``(rows, 2 joints)``, and images if asked for.

    A push is as likely to either side; to swing is to act with the motion, or against it.
    """
    os.environ.setdefault("MUJOCO_GL", "egl")  # draws without a display
    from dm_control import suite

    world = suite.load(domain, task, task_kwargs={"random": _SEED, "time_limit": float("inf")})
    random = np.random.default_rng(_SEED)
    world.reset()
    world.physics.model.vis.quality.shadowsize = world.physics.model.vis.quality.offsamples = 0
    pushed, swung = np.zeros((2, *world.action_spec().shape))
    states, images = [], []
    for moment in range(rows * every):
        pushed, swung = (
            slow * last + np.sqrt(1 - slow**2) * random.normal(size=last.shape)
            for slow, last in ((0.9, pushed), (0.99, swung))
        )
        action = push * pushed + swing * swung * np.sign(world.physics.data.qvel[0])
        world.step(np.clip(action, -1, 1))
        if moment % every:
            continue
        states.append(np.concatenate([world.physics.data.qpos, world.physics.data.qvel]))
        if pixels:
            images.append(_drawn(world.physics))
    return np.array(states), np.array(images)


def _drawn(physics: Any) -> np.ndarray:
    """Return what the first camera sees, ``(3, side, side)`` from 0 to 1."""
    image = physics.render(2 * _SIDE, 2 * _SIDE, camera_id=0, render_flag_overrides=_PLAIN)
    image = image.astype(np.float32) / 255
    return image.reshape(_SIDE, 2, _SIDE, 2, 3).mean(axis=(1, 3)).transpose(2, 0, 1)


SETS = (
    Dataset("pendulum pixels", "series", "images 3 x 32 x 32; the angle", pendulum),
    Dataset("cartpole pixels", "series", "images 3 x 32 x 32; position and angle", cartpole),
    Dataset("acrobot sensors", "series", "24 sensors; two angles", acrobot),
)
OTHERS = (Dataset("cup pixels", "series", "images 3 x 32 x 32; cup and ball", ball_in_cup),)
