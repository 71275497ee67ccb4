"""People in three dimensions: a head of blend shapes, skin, hair, clothes, light and places, drawn by own kernels.

`masquerade faces` draws a sheet of them. The two drawn datasets still have the simpler faces of _drawn/.
"""
