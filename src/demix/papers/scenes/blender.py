"""The same scene in Blender's path tracer, as a reference for the fast one."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from demix._support.errors import need
from demix.data.images import open_image
from demix.papers.scenes import three_d_ident as published
from demix.papers.scenes.meshes import teapot

# Blender 4 gives area lights the watts that leave them; their radiance is watts / (pi area).
_LAMP_WATTS = np.pi * published.LAMP_RADIANCE * published.LAMP_SIDE**2


class Blender:
    """3DIdent rendered with Cycles, as in Zimmermann et al. (2021), App. A: direct light only."""

    def __init__(self, size: int, *, samples: int = 512) -> None:
        self._bpy = bpy = need("bpy", "The engine 'blender'", "blender")
        bpy.ops.wm.read_factory_settings(use_empty=True)
        scene = self._scene = bpy.context.scene
        render, cycles = scene.render, scene.cycles
        render.engine = "CYCLES"
        render.resolution_x = render.resolution_y = size
        render.resolution_percentage = 100
        render.dither_intensity = 0.0
        render.image_settings.file_format = "PNG"
        render.image_settings.color_mode = "RGBA"
        scene.view_settings.view_transform = "Standard"
        cycles.samples = samples
        cycles.use_adaptive_sampling = False
        cycles.use_denoising = False
        cycles.max_bounces = 0
        self._still()
        self._colours = {name: self._rubber(name) for name in ("ground", "object")}
        corners = 750 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])
        plane = np.column_stack([corners, np.full(4, published.GROUND_LEVEL)])
        faces, up = np.array([[0, 1, 2], [0, 2, 3]]), np.tile([0.0, 0.0, 1.0], (4, 1))
        self._ground = self._object("ground", plane, faces, up)
        mesh = teapot().scaled(published.SCALE)
        self._teapot = self._object("object", mesh.vertices, mesh.triangles, mesh.normals)
        self._spot = self._light("SPOT", published.SPOT_WATTS)
        self._spot.data.shadow_soft_size = published.SPOT_RADIUS
        self._spot.data.spot_size = published.SPOT_ANGLE
        self._spot.data.spot_blend = published.SPOT_BLEND

    def image(self, latents: np.ndarray) -> np.ndarray:
        """Return the image ``(size, size, 3)`` of latents ``(10,)``, as bytes."""
        self._place(latents)
        self._ground.hide_render = self._scene.render.film_transparent = False
        return self._render()[..., :3]

    def cover(self, latents: np.ndarray) -> np.ndarray:
        """Return the share ``(size, size)`` of each pixel that the object fills."""
        self._place(latents)
        self._ground.hide_render = self._scene.render.film_transparent = True
        return self._render()[..., 3] / 255

    def _place(self, latents: np.ndarray) -> None:
        from mathutils import Matrix, Vector

        pose, spot = published.pose(latents), published.spotlight(latents)
        matrix = np.eye(4)
        matrix[:3, :3], matrix[:3, 3] = pose.turned, pose.at
        self._teapot.matrix_world = Matrix(matrix.tolist())
        self._spot.location = Vector(spot.center)
        self._spot.rotation_euler = Vector(spot.axis).to_track_quat("-Z", "Y").to_euler()
        hues = published.hues(latents)
        self._spot.data.color = hues["spotlight"]
        for name, colours in self._colours.items():
            for colour in colours:
                colour.default_value = (*hues[name], 1.0)

    def _render(self) -> np.ndarray:
        with tempfile.TemporaryDirectory() as folder, _quiet():
            file = Path(folder) / "image.png"
            self._scene.render.filepath = str(file)
            self._bpy.ops.render.render(write_still=True)
            return np.asarray(open_image(file, "RGBA"))

    def _still(self) -> None:
        """Add what never moves: camera, lamp, sun, and a world without light."""
        from mathutils import Vector

        bpy = self._bpy
        camera = bpy.data.cameras.new("camera")
        camera.angle = published.CAMERA.angle
        self._scene.camera = self._link("camera", camera)
        self._scene.camera.location = published.CAMERA.eye
        forward = Vector(published.CAMERA.target) - Vector(published.CAMERA.eye)
        self._scene.camera.rotation_euler = forward.to_track_quat("-Z", "Y").to_euler()
        lamp = self._light("AREA", _LAMP_WATTS)
        lamp.data.size = published.LAMP_SIDE
        lamp.location = published.LAMP_AT
        self._light("SUN", published.SUN_IRRADIANCE).data.angle = published.SUN_ANGLE
        self._scene.world = bpy.data.worlds.new("world")
        self._scene.world.color = (0.0, 0.0, 0.0)

    def _light(self, kind: str, energy: float) -> Any:
        data = self._bpy.data.lights.new(kind, kind)
        data.energy = energy
        light = self._link(kind, data)
        light.visible_camera = False
        return light

    def _link(self, name: str, data: Any) -> Any:
        thing = self._bpy.data.objects.new(name, data)
        self._scene.collection.objects.link(thing)
        return thing

    def _object(self, name: str, points: np.ndarray, faces: np.ndarray, normals: np.ndarray) -> Any:
        mesh = self._bpy.data.meshes.new(name)
        mesh.from_pydata(points.tolist(), [], faces.tolist())
        mesh.normals_split_custom_set_from_vertices(normals.tolist())
        mesh.materials.append(self._bpy.data.materials[name])
        return self._link(name, mesh)

    def _rubber(self, name: str) -> list[Any]:
        """Make the material of `materials.Rubber`, and return its colour inputs."""
        material = self._bpy.data.materials.new(name)
        material.use_nodes = True
        tree = material.node_tree
        tree.nodes.clear()

        def node(kind: str, **values: float) -> Any:
            made = tree.nodes.new(f"ShaderNode{kind}")
            for key, value in values.items():
                made.inputs[key].default_value = value
            return made

        def mix(share: Any, first: Any, second: Any) -> Any:
            made = node("MixShader")
            for k, part in enumerate((share, first, second)):
                tree.links.new(part.outputs[0], made.inputs[k])
            return made

        diffuse, velvet = node("BsdfDiffuse"), node("BsdfSheen", Roughness=0.6)
        velvet.distribution = "ASHIKHMIN"
        # Blender squares roughness.
        gloss = node("BsdfAnisotropic", Roughness=0.35**0.5)
        gloss.distribution = "BECKMANN"
        below = mix(node("Fresnel", IOR=1.4), diffuse, velvet)
        whole = mix(node("Fresnel", IOR=1.2), below, gloss)
        tree.links.new(whole.outputs[0], node("OutputMaterial").inputs["Surface"])
        return [diffuse.inputs["Color"], velvet.inputs["Color"]]


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Blender, which writes of every file it saves, from the standard output."""
    sys.stdout.flush()
    kept = os.dup(1)
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
