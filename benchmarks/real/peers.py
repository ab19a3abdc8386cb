"""What people use: each peer as its own documentation advises, in the settings that did best.

Settings were chosen by `benchmarks.real.tuning` on other sets and other seeds than in the table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.real.task import Task

COMPONENTS = 16
"""So many principal components of the input are what a reduced peer sees."""

VAMP_NET: dict[str, Any] = {"reduced": True, "rate": 1e-3, "width": 64, "epochs": 60}
CEBRA_TIME: dict[str, Any] = {"reduced": True, "temperature": 1.0, "iterations": 5000}
CEBRA_LABELS: dict[str, Any] = {"reduced": False, "temperature": 1.0, "iterations": 5000}

Peer = Callable[[Task, int], np.ndarray]
"""``peer(task, seed)``: fits the first rows and returns latents ``(N, n_latents)`` of all."""


def principal(task: Task, seed: int) -> np.ndarray:
    """Return principal components."""
    return _principal(task.flat, task.fitted, task.n_latents)


def fast_ica(task: Task, seed: int) -> np.ndarray:
    """Return independent components of the reduced input."""
    from sklearn.decomposition import FastICA

    ica = FastICA(task.n_latents, whiten="unit-variance", max_iter=1000, random_state=seed)
    return np.asarray(ica.fit(task.flat[: task.fitted]).transform(task.flat))


def slow(task: Task, seed: int) -> np.ndarray:
    """Return the slowest linear directions (TICA), scaled to kinetic distances."""
    from deeptime.decomposition import TICA

    x = _many_reduced(task)
    tica = TICA(lagtime=task.lag, dim=task.n_latents, scaling="kinetic_map")
    return np.asarray(tica.fit_fetch(x[: task.fitted]).transform(x))


def vamp_net(task: Task, seed: int, **changed: Any) -> np.ndarray:
    """Return slow features of a net (VAMPNet), turned by TICA as its documentation does."""
    import torch
    from deeptime.decomposition import TICA
    from deeptime.decomposition.deep import VAMPNet
    from deeptime.util.data import TrajectoryDataset
    from torch.utils.data import DataLoader, Subset

    own = VAMP_NET | changed
    torch.manual_seed(seed)
    x = _input(task, own["reduced"])
    data = TrajectoryDataset(task.lag, x[: task.fitted])
    cut = len(data) * 9 // 10  # the last tenth in time validates
    parts = [Subset(data, range(cut)), Subset(data, range(cut, len(data)))]
    loaders = [
        DataLoader(parts[0], batch_size=512, shuffle=True, drop_last=True),
        DataLoader(parts[1], batch_size=len(parts[1])),
    ]
    net = VAMPNet(_lobe(x.shape[1], own["width"], task.n_latents), learning_rate=own["rate"])
    model = net.fit(loaders[0], own["epochs"], validation_loader=loaders[1]).fetch_model()
    found = model.transform(x)
    turned = TICA(lagtime=task.lag, dim=task.n_latents, scaling="kinetic_map")
    return np.asarray(turned.fit_fetch(found[: task.fitted]).transform(found))


def vamp_net_of_views(task: Task, seed: int, **changed: Any) -> np.ndarray:
    """Return features of the first view, of two nets whose outputs are most alike (VAMPNet)."""
    import torch
    from deeptime.decomposition.deep import VAMPNet
    from torch.utils.data import DataLoader, TensorDataset

    own = VAMP_NET | changed
    torch.manual_seed(seed)
    assert task.view is not None
    views = [torch.from_numpy(view) for view in (task.flat, task.view)]
    cut, end = task.fitted * 9 // 10, task.fitted
    parts = [TensorDataset(*(v[s] for v in views)) for s in (slice(cut), slice(cut, end))]
    loaders = [
        DataLoader(parts[0], batch_size=512, shuffle=True, drop_last=True),
        DataLoader(parts[1], batch_size=end - cut),
    ]
    lobes = [_lobe(view.shape[1], own["width"], task.n_latents) for view in views]
    net = VAMPNet(lobes[0], lobes[1], learning_rate=own["rate"])
    model = net.fit(loaders[0], own["epochs"], validation_loader=loaders[1]).fetch_model()
    return np.asarray(model.transform(task.flat))


def _lobe(columns: int, width: int, n_latents: int) -> Any:
    from torch import nn

    layers: list[nn.Module] = [nn.BatchNorm1d(columns)]
    for size in (columns, width, width):
        layers += [nn.Linear(size, width), nn.ELU()]
    return nn.Sequential(*layers, nn.Linear(width, n_latents))


def cebra_time(task: Task, seed: int, **changed: Any) -> np.ndarray:
    """Return the embedding of CEBRA with time as the only label."""
    own = CEBRA_TIME | changed
    return _cebra(task, seed, own, conditional="time", time_offsets=task.lag)


def cebra_labels(task: Task, seed: int, **changed: Any) -> np.ndarray:
    """Return the embedding of CEBRA with classes as labels."""
    assert task.labels is not None
    own = CEBRA_LABELS | changed
    return _cebra(task, seed, own, task.labels[: task.fitted], conditional="time_delta")


def _cebra(
    task: Task, seed: int, own: dict[str, Any], *labels: np.ndarray, **how: Any
) -> np.ndarray:
    import torch
    from cebra import CEBRA

    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002 the peer draws from it
    x = _input(task, own["reduced"])
    peer = CEBRA(
        model_architecture="offset1-model",
        batch_size=512,
        learning_rate=3e-4,
        temperature=own["temperature"],
        output_dimension=task.n_latents,
        max_iterations=own["iterations"],
        distance="cosine",
        device="cpu",
        verbose=False,
        **how,
    )
    return np.asarray(peer.fit(x[: task.fitted], *labels).transform(x))


def discriminant(task: Task, seed: int) -> np.ndarray:
    """Return the directions that tell classes apart (LDA)."""
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    assert task.labels is not None
    cut = task.fitted
    lda = LinearDiscriminantAnalysis(n_components=task.n_latents, solver="eigen", shrinkage="auto")
    return np.asarray(lda.fit(task.flat[:cut], task.labels[:cut]).transform(task.flat))


def classifier(task: Task, seed: int) -> np.ndarray:
    """Return principal components of the last hidden layer of a plain classifier.

    It has as many and as wide layers as an encoder of demix by default.
    """
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler

    assert task.labels is not None
    cut = task.fitted
    x = StandardScaler().fit(task.flat[:cut]).transform(task.flat)
    plain = MLPClassifier((64,) * 4, early_stopping=True, max_iter=500, random_state=seed)
    plain.fit(x[:cut], task.labels[:cut])
    for weights, offsets in zip(plain.coefs_[:-1], plain.intercepts_[:-1], strict=True):
        x = np.maximum(x @ weights + offsets, 0)
    return _principal(x, cut, task.n_latents)


def canonical(task: Task, seed: int) -> np.ndarray:
    """Return canonical variables of the first view (CCA)."""
    from sklearn.cross_decomposition import CCA

    assert task.view is not None
    cca = CCA(task.n_latents, max_iter=2000).fit(task.flat[: task.fitted], task.view[: task.fitted])
    return np.asarray(cca.transform(task.flat))


def _input(task: Task, reduced: bool) -> np.ndarray:
    """Return what a net sees, with columns of unit variance, reduced or not."""
    x = _many_reduced(task) if reduced else task.flat
    head = x[: task.fitted]
    spread = head.std(axis=0)
    return ((x - head.mean(axis=0)) / np.where(spread > 0, spread, 1)).astype(np.float32)


def _many_reduced(task: Task) -> np.ndarray:
    """Return the leading principal components of rows that have more columns."""
    few = task.flat.shape[1] <= COMPONENTS
    return task.flat if few else _principal(task.flat, task.fitted, COMPONENTS)


def _principal(x: np.ndarray, fitted: int, components: int) -> np.ndarray:
    from sklearn.decomposition import PCA

    return np.asarray(PCA(components, random_state=0).fit(x[:fitted]).transform(x))
