"""Renders people in three dimensions: a head of blend shapes, skin, hair, clothes, light and places, by own kernels.

`sampling.sample_person` and `shot.sample_shot` choose a person and the conditions of an image; `renderer.draw` renders
it, with its 68 landmarks and its parsing mask. `sheet.sheet` renders many people on one image. The same seed gives the
same bytes on every x86-64 processor. The package imports nothing of Masquerade.
"""
